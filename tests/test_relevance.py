"""`trimtab.relevance`: terms of any script, and which texts a question finds first."""

from __future__ import annotations

import random

import pytest

from tests.complexity.counting_machine import operations_of
from trimtab.counting import clear_counts
from trimtab.errors import ConfigurationError
from trimtab.relevance import Index, question_terms, relevance, text_terms


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        pytest.param("The Flights were booked.", ["the", "flight", "wer", "book"], id="stems"),
        pytest.param("order_id", ["order_id", "order", "id"], id="snake"),
        pytest.param("getUserName", ["getusernam", "get", "user", "nam"], id="camel"),
        pytest.param("HTTPServer PDFs", ["httpserver", "pdf", "http", "server"], id="acronym"),
        pytest.param("59XX6W aBcDeFgHiJkLmNoPqR", ["59xx6w", "abcdefghijklmnopqr"], id="key"),
        pytest.param("xY " * 2, ["xy", "xy", "x", "y", "x", "y"], id="as-often"),
        pytest.param("AB-17", ["ab-17", "ab", "17"], id="code"),
        pytest.param("on 2026-05-07", ["on", "2026-05-07", "2026", "05", "07", "20260507"], id="date"),
        pytest.param("+49 (30) 12-34", ["49", "30", "12-34", "12", "34", "49301234"], id="telephone"),
        pytest.param("12,345; 1,234,567", ["12", "345", "1", "234", "567", "12345", "1234567"], id="amount"),
        pytest.param("030 123 4567", ["030", "123", "4567", "0301234567"], id="groups"),
        pytest.param("12-30", ["12-30", "12", "30"], id="four-digits"),
        pytest.param("userHTTPServer", ["userhttpserver", "user", "http", "server"], id="both-humps"),
        pytest.param("7 of 22, 4 3", ["7", "of", "22", "4", "3"], id="few-digits"),
        pytest.param("3.14", ["3.14", "3", "14"], id="number"),
        pytest.param("北京", ["北", "京", "北京"], id="chinese"),
        pytest.param("카메라", ["카", "메", "라", "카메", "메라"], id="korean"),
        pytest.param("Größe Привет", ["gros", "привет", "groes"], id="case"),
        pytest.param("Café Łódź Ørsted", ["caf", "lodz", "orst", "oerst"], id="accents"),
        pytest.param("cafe\u0301 ёлка Άλφα", ["caf", "елка", "αλφα"], id="marks"),
        pytest.param("हिन्दी ガ", ["हिन्दी", "ガ"], id="marks-that-are-letters"),
        pytest.param("ＡＢ１", ["ab1"], id="width"),
        pytest.param("ℌut", ["hut"], id="letterlike"),
        pytest.param(
            "猫はAB-17です", ["猫", "は", "猫は", "ab-17", "ab", "17", "で", "す", "です"], id="both"
        ),
        pytest.param("", [], id="empty"),
        pytest.param("?! \ud800 \0", [], id="no-word"),
    ],
)
def test_a_text_has_the_terms_of_its_script(text: str, terms: list[str]) -> None:
    """Words by their stems, identifiers whole and in parts, unspaced scripts by characters and pairs."""
    assert list(text_terms(text)) == terms


@pytest.mark.parametrize(
    "family",
    [
        "book books booked booking bookings",
        "move moves moved moving",
        "stop stops stopped stopping",
        "party parties",
        "try tries tried trying",
        "box boxes",
        "class classes",
        "house houses housing housed",
        "plan plans planned planning",
    ],
)
def test_the_forms_of_a_word_have_one_stem(family: str) -> None:
    """Number and tense do not hide a word."""
    assert len({term for word in family.split() for term in text_terms(word)}) == 1


@pytest.mark.parametrize("word", ["bus", "sing", "need", "red", "us", "string", "привет"])
def test_what_only_looks_like_an_ending_stays(word: str) -> None:
    """A stem keeps a vowel and three letters, and what is no English word is left alone."""
    assert list(text_terms(word)) == [word]


def test_a_question_is_looked_for_without_the_words_that_ask() -> None:
    """Unless there is nothing else; each term once."""
    assert question_terms("What did Nora's cat eat, and what did the cat drink?") == (
        "nora",
        "cat",
        "eat",
        "drink",
    )
    assert question_terms("Yes, are there any other, or some such, flights?") == ("flight",)
    assert question_terms("Who are you?") == ("who", "are", "you")
    assert question_terms("猫的名字是什么") == ("猫的", "的名", "名字", "字是")
    assert question_terms("猫") == ("猫",)
    assert question_terms("") == ()
    assert question_terms("orderId") == ("orderid", "order", "id")


def test_rare_words_count_more_than_frequent_ones() -> None:
    """Of two texts with one word of the question each, that with the rarer word is better."""
    scores = relevance("rain in Oslo", ["more rain", "back to Oslo", *["rain again"] * 9], neighbors=0)
    assert scores[1] > scores[0] > 0


def test_a_long_text_has_to_say_more() -> None:
    """The same word in a short text counts more."""
    long, short = relevance("oslo", ["Oslo " + "and much else " * 30, "Oslo it is"], neighbors=0)
    assert short > long > 0


def test_what_stands_beside_a_hit_has_a_part_of_its_score() -> None:
    """Half for its neighbors, half of that for theirs; never more than the hit, never less than its own."""
    texts = ["one", "two", "the cat", "four", "a cat and a cat"]
    alone, near = relevance("cat", texts, neighbors=0), relevance("cat", texts)
    assert alone[0] == alone[1] == alone[3] == 0
    assert near[1] == alone[2] / 2
    assert near[0] == alone[2] / 4
    assert near[3] == max(alone[2], alone[4]) / 2
    assert near[4] == max(alone[4], alone[2] / 4)


WORDS = [
    "party",
    "parties",
    "particle",
    "book",
    "booked",
    "Order",
    "y",
    "AB-17",
    "order_id",
    "北京",
    "京",
    "Größe",
    "x",
    "哈哈哈",
    "try",
    "getUserName",
    "userID",
    "Müller",
    "Mueller",
    "030 1234-5",
    "03012345",
]


def test_looking_only_for_the_words_of_a_question_finds_the_same() -> None:
    """What an index leaves out, since nobody will ask for it, changes no score."""
    draw = random.Random(3)
    for _ in range(300):
        words = draw.choice([WORDS, WORDS[:6], WORDS[:6], [f"word{at}" for at in range(40)]])
        texts = [" ".join(draw.choices(words, k=draw.randint(0, 6))) for _ in range(draw.randint(1, 8))]
        texts += draw.choices(texts, k=draw.randint(0, 4))  # a text may be there again
        question = " ".join(draw.choices(words, k=draw.randint(1, 40)))
        index = Index()
        for text in texts:
            index.add(text)
        found = index.scores(question)
        assert relevance(question, texts, neighbors=0) == [found.get(at, 0.0) for at in range(len(texts))]


def test_an_index_grows_and_may_be_asked_at_any_time() -> None:
    """After each text it answers as one that was made of all of them at once."""
    texts = ["a cat", "a dog", "two cats", "", "dogs and cats"]
    growing = Index()
    for count, text in enumerate(texts, 1):
        assert growing.add(text) == count - 1 == len(growing) - 1
        fresh = Index()
        for one in texts[:count]:
            fresh.add(one)
        assert growing.scores("cat?") == fresh.scores("cat?")
    assert sorted(growing.scores("cat?")) == [0, 2, 4]


def test_an_index_that_lost_texts_is_as_one_made_anew() -> None:
    """After each of many additions, removals and replacements: nothing of what went is left."""
    draw = random.Random(17)
    index, texts = Index(), dict[int, str]()
    for step in range(400):
        text = " ".join(draw.choices(WORDS, k=draw.randint(0, 6)))
        if texts and draw.random() < 0.45:
            place = draw.choice(list(texts))
            index.remove(texts.pop(place), place=place)
            if draw.random() < 0.5:
                texts[place] = text
                assert index.add(text, place=place) == place
        else:
            texts[index.add(text)] = text
        anew = Index()
        for place in sorted(texts):
            anew.add(texts[place], place=place)
        assert (len(index), index.sum_chars) == (len(texts), anew.sum_chars)
        question = " ".join(draw.choices(WORDS, k=3))
        assert index.scores(question) == anew.scores(question), step
        assert all(index.newest(word, 2) == anew.newest(word, 2) for word in ("party", "book", "京"))


def test_a_place_holds_one_text() -> None:
    """Another cannot be put there, nor can what is not there be taken away; nothing is changed then."""
    index = Index()
    index.add("a cat", place=4)
    with pytest.raises(ConfigurationError, match="place 4 of the index has a text"):
        index.add("a dog", place=4)
    for text, place in (("a cat!", 4), ("a cat", 3)):
        with pytest.raises(ConfigurationError, match=f"place {place} of the index has another text"):
            index.remove(text, place=place)
    assert index.newest("cat", 9) == [(4, 1)]
    assert index.add("a dog") == 5
    assert index.newest("dog", 0) == []


def test_asking_reads_the_texts_that_have_a_word_and_no_others() -> None:
    """A hundred times as many texts without it cost nothing."""

    def lines(count: int) -> int:
        index = Index()
        for at in range(count):
            index.add("the cat" if at < 5 else f"nothing {at}")
        index.scores("my cat")  # words are looked up once in a process
        return operations_of(lambda counter: index.scores("my cat")).lines

    assert lines(10_000) == lines(100)


@pytest.mark.parametrize("text", ["a" * 200_000, "北" * 200_000, "a-" * 100_000, "é" * 200_000, "\ud800" * 9])
def test_any_text_is_taken(text: str) -> None:
    """However long a word is: it is more than one term then."""
    index = Index()
    index.add(text)
    assert index.scores(text[:100]).keys() <= {0}


def test_a_code_is_looked_for_whole() -> None:
    """Its letters alone are in every other word, and would be looked at there one by one."""
    assert question_terms("Cancel 59XX6W and XEHM4B.") == ("cancel", "59xx6w", "xehm4b")
    texts = ["b 59 bees bring w2", "B-52", "bring 590"]
    assert relevance("b 59", texts, neighbors=0)[0] > relevance("b 59", texts, neighbors=0)[1] > 0
    assert relevance("b 59", texts, neighbors=0)[2] == 0


_SIGNS = [
    " ",
    "-",
    "_",
    "“",
    "—",
    "é",
    "e\u0301",
    "ß",
    "İ",
    "Ж",
    "٣",
    "\u0302",
    "़",
    "北",
    "ｆ",
    "\x80",
    "\ud800",
    "…",
    "·",
]
"""Separators, letters beyond ASCII, marks with a letter and without, a script without spaces."""


def test_looking_for_words_finds_what_an_index_finds_beside_any_sign() -> None:
    """Texts with letters, marks and signs beyond ASCII right beside a word, in front of it and behind it."""
    draw = random.Random(7)
    texts = [
        "".join(
            draw.choice([*_SIGNS, "fee", "Fees", "boat", "parties", "x" * 70])
            for _ in range(draw.randrange(9))
        )
        for _ in range(3_000)
    ]
    for question in ("fee", "my boats, and fees of a party"):
        index = Index()
        for text in texts:
            index.add(text)
        found = relevance(question, texts, neighbors=0)
        assert {at: score for at, score in enumerate(found) if score} == pytest.approx(index.scores(question))


def test_a_quote_or_an_accent_does_not_make_a_text_dear() -> None:
    """No more than a few lines for each of its texts, all different, beyond those of texts in ASCII."""

    def lines(sign: str) -> int:
        texts = [f"the {sign}fee{sign} of boat {at} is {at * 7 % 101} crowns" for at in range(500)]
        relevance("my boat fee", texts)  # words are looked up once in a process
        return operations_of(lambda counter: relevance("my boat fee", texts)).lines

    plain = lines("'")
    assert all(lines(sign) <= plain + 40 * 500 for sign in ("“", "é", "—"))
    assert plain <= 40 * 500


_QUESTIONS = (
    "where is the boat, and what is the fee",
    "what did 030 12-34 say of getUserName?",
    "order #ab-17, please",
    "北京 天气",
    " ".join(f"word{at}" for at in range(30)),
)
"""Words, a number in groups, an identifier, a script without spaces, and more terms than are searched for."""


def _written(draw: random.Random) -> str:
    words = [
        "boat",
        "fees",
        "030 12-34",
        "getUserName",
        "ab-17",
        "北京天气",
        "Zoë",
        "“said”",
        "word7",
        "x" * 70,
        "\x80",
    ]
    return " ".join(draw.choice(words) for _ in range(draw.randrange(9)))


def test_texts_that_were_asked_about_before_score_as_if_nobody_had() -> None:
    """A list that grows, is changed, cut and taken up again: what is remembered of its texts never shows."""
    draw = random.Random(3)
    texts = [_written(draw) for _ in range(300)]
    for end in range(100, len(texts), 3):
        drawn = draw.random()
        if drawn < 0.2:
            texts[draw.randrange(end)] = _written(draw)
        shown = texts[draw.randrange(end // 2) if drawn > 0.9 else 0 : end - draw.randrange(3)]
        for question in draw.sample(_QUESTIONS, 2):
            known = relevance(question, shown)
            if drawn > 0.97:
                clear_counts()
            index = Index()
            for text in shown:
                index.add(text)
            alone = relevance(question, shown, neighbors=0)
            assert {at: score for at, score in enumerate(alone) if score} == pytest.approx(
                index.scores(question)
            )
            assert known == relevance(question, [f"{text[:1]}{text[1:]}" for text in shown])


@pytest.mark.parametrize(("question", "most"), [(_QUESTIONS[0], 28), (_QUESTIONS[4], 24)])
def test_texts_that_were_asked_about_before_are_not_taken_apart_again(question: str, most: int) -> None:
    """Lines for each of 4,000 texts, where two calls of a list that grows went before; 33 and 150 without."""
    texts = [f"the fee of boat {at} is {at * 7 % 101} crowns, said word{at % 50}" for at in range(4_000)]
    for end in range(3_900, 3_990, 10):
        relevance(question, texts[:end])
    lines = operations_of(lambda counter: relevance(question, texts)).lines
    clear_counts()
    alone = operations_of(lambda counter: relevance(question, texts)).lines
    assert lines <= most * 4_000 < alone, (lines, alone)
