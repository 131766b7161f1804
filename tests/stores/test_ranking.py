"""Every store finds the same messages in the same order: that of BM25, worked out here by another way."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.stores.stores import Place
from trimtab.relevance import question_terms, relevance, text_terms
from trimtab.stores import AppendRequest, Event, LoadRequest, SearchRequest, Store

WORDS = {
    "English": [
        "book",
        "booked",
        "flight",
        "flights",
        "Oslo",
        "party",
        "parties",
        "order_id",
        "AB-17",
        "rain",
        "the",
        "was",
        "Anna",
    ],
    "Chinese": ["天气", "北京", "晴朗", "上海", "航班", "哈哈哈", "的", "订了", "猫", "Anna"],
}
"""What the made texts are of; some of it is said often."""


def _event(at: int, text: str | None) -> Event:
    """Make a message; or, of no text, an event that is none."""
    if text is None:
        return Event(id=f"n{at}", kind="note", time=0.0, data={"message": {"content": "Oslo 天气"}})
    return Event(id=f"m{at}", kind="message", time=0.0, data={"message": {"role": "user", "content": text}})


def _texts(words: list[str], count: int, draw: random.Random, *, notes: float = 0.0) -> list[str | None]:
    weights = [1 / place for place in range(1, len(words) + 1)]
    return [
        None if draw.random() < notes else " ".join(draw.choices(words, weights, k=draw.randint(1, 12)))
        for _ in range(count)
    ]


def _whole(place: Place, texts: Sequence[str | None]) -> list[str | None]:
    """Make texts as long as the store counts them."""
    return [None if text is None else place.whole(text) for text in texts]


def _fill(store: Store, texts: list[str | None], *, session: str = "s", batch: int = 97) -> None:
    for at in range(0, len(texts), batch):
        events = [_event(at + more, text) for more, text in enumerate(texts[at : at + batch])]
        store.append(AppendRequest(session=session, expected_version=at, events=events))


def _found(store: Store, question: str, limit: int, *, session: str = "s") -> list[int]:
    request = SearchRequest(session=session, terms=question_terms(question), limit=limit)
    return [event.version for event in store.search(request)]


def _brute_scores(texts: list[str | None], question: str, limit: int) -> dict[int, float]:
    """Score each text by the formula as it is written in books, one text and one term after the other.

    Not in the books: what stands beside the best hits says half or a quarter as much; and of two texts that
    say as much, the one that takes less room is worth more. No index knows how long one without the terms is:
    as long as usual, and not shorter than what it stands beside.
    """
    messages = {version: text for version, text in enumerate(texts, 1) if text is not None}
    mean = sum(len(text) for text in messages.values()) / len(messages)
    have = {version: list(text_terms(text)) for version, text in messages.items()}
    terms = question_terms(question)
    who = {term: sorted((one for one in have if term in have[one]), reverse=True) for term in terms}
    common = sum(len(holders) > 1_000 for holders in who.values())
    most = max(1_000, 20_000 // max(1, common)) if sum(map(bool, who.values())) > 1 else 1_000
    scores = {}
    for version, text in messages.items():
        score = 0.0
        for term in terms:
            holders = who[term]
            if term not in have[version] or (len(holders) > most and version < holders[most - 1]):
                continue
            count = float(len(holders))
            if len(holders) > most:
                count = most * len(texts) / (len(texts) - holders[most - 1] + 1)
            rarity = math.log((len(messages) - count + 0.5) / (count + 0.5) + 1)
            often = have[version].count(term)
            norm = 1 - 0.75 + 0.75 * len(text) / mean
            score += rarity * often * (1.2 + 1) / (often + 1.2 * norm)
        if score:
            scores[version] = score
    order, first = sorted(messages), sorted(scores, key=lambda one: (scores[one], one))[-limit:]
    found = {}
    for at, version in enumerate(order):
        for other in range(max(0, at - 2), min(len(order), at + 3)):
            hit = order[other]
            if hit in scores and (hit in first or hit == version):
                known = [len(texts[one - 1] or "") for one in (version, hit)]
                room = max(40, known[0] if version in scores else max(mean, known[1]))
                said = scores[hit] / 2 ** abs(other - at) / room**0.5
                found[version] = max(found.get(version, 0.0), said)
    return found


def _check(store: Store, texts: list[str | None], question: str, limit: int) -> None:
    """Compare with the formula; what scores the same but for rounding may stand in either order there."""
    scores = _brute_scores(texts, question, limit)
    found = _found(store, question, limit)
    assert len(found) == min(limit, len(scores)) == len(set(found))
    wanted = sorted(scores.values(), reverse=True)[:limit]
    for version, score in zip(found, wanted, strict=True):
        assert scores[version] == pytest.approx(score, rel=1e-9), (question, limit, version)


@pytest.mark.few(3)
@pytest.mark.parametrize("language", WORDS)
def test_messages_are_found_in_the_order_of_bm25(place: Place, language: str) -> None:
    """In a log of 430 events, in an index and behind it, with events that are no messages between them."""
    draw = random.Random(5)
    words = WORDS[language]
    texts = _whole(place, _texts(words, 430, draw, notes=0.2))
    store = place.make()
    _fill(store, texts)
    for _ in range(25):
        question = " ".join(draw.choices(words, k=draw.randint(1, 4)))
        _check(store, texts, question, draw.choice([1, 3, 10, 1_000]))
    store.close()


def test_messages_score_as_trimtab_relevance_says(place: Place) -> None:
    """Where there is nothing but messages, and every hit stands closer than two to the next."""
    draw = random.Random(7)
    words = WORDS["English"][:6]
    texts = _whole(place, ["Oslo", *_texts(words, 40, draw)])
    store = place.make()
    _fill(store, texts)
    said = [text for text in texts if text is not None]
    for question in ("flight to Oslo", "book", "a party in Oslo"):
        scores = relevance(question, said)
        wanted = sorted(range(len(said)), key=lambda at: (scores[at], at), reverse=True)
        if not place.name.endswith("-encrypted"):
            assert _found(store, question, 20) == [at + 1 for at in wanted[:20]]
            continue
        # Behind the ninth of those whose lengths count in steps stands one that lacks the words.
        found = [scores[version - 1] for version in _found(store, question, 9)]
        assert found == pytest.approx([scores[at] for at in wanted[:9]])
    store.close()


def test_whoever_said_it_is_found_in_the_same_order(place: Place) -> None:
    """A store knows no roles: of two that say as much the newer is first, be it an answer or a question."""
    with place.make() as store:
        for session, roles in (("a", ("user", "assistant")), ("b", ("assistant", "user"))):
            events = [_event(at, "a flight to Oslo") for at in range(2)]
            for event, role in zip(events, roles, strict=True):
                event.data["message"]["role"] = role
            store.append(AppendRequest(session=session, expected_version=0, events=events))
            assert _found(store, "Oslo", 2, session=session) == [2, 1]


@pytest.mark.few(2)
def test_a_word_that_most_messages_have_is_looked_at_in_the_newest_thousand(place: Place) -> None:
    """And counts for as common as it is there."""
    draw = random.Random(11)
    texts = [f"tea {draw.choice(['cup', 'pot', 'leaf green'])}" if at % 5 else "rain" for at in range(1_450)]
    texts[3] = "tea kettle"
    texts[701] = f"kettle {'-' * 293}"  # so long that it is as good as a word of one in five, and no better
    texts = _whole(place, texts)
    store = place.make()
    _fill(store, [*texts], batch=500)
    for question in ("tea", "tea kettle", "tea rain", "pot"):
        _check(store, [*texts], question, 1_400)
    store.close()


@pytest.mark.few(2)
def test_a_message_with_two_common_words_is_found_however_old(place: Place) -> None:
    """Each of them is in more messages than are looked at for one word: many more of them are for two."""
    said = [
        "The name of my cat is Tom",
        *("There is a cat over there", "Nobody has a name in here", "Again there was rain today") * 1_100,
    ]
    texts = _whole(place, said)
    with place.make() as store:
        _fill(store, [*texts], batch=500)
        for question in ("What is the name of my cat?", "name cat rain", "cat Tom"):
            _check(store, [*texts], question, 20)
            found = store.search(SearchRequest(session="s", terms=question_terms(question), limit=1))
            assert ([one.version for one in found], found.complete, found.since) == ([1], True, 1)
        found = store.search(SearchRequest(session="s", terms=("cat",), limit=1))
        assert (found.complete, found.since) == (False, 302)  # 1,100 have it, each third, from 2 on
        assert asyncio.run(_of_loop(store, "cat")) == (False, 302)


async def _of_loop(store: Store, term: str) -> tuple[bool | None, int | None]:
    """Say how far a search looked that was awaited."""
    found = await store.asearch(SearchRequest(session="s", terms=(term,), limit=1))
    await store.aclose()
    return found.complete, found.since


@pytest.mark.few(1)
def test_of_many_common_words_each_is_looked_at_as_far_as_the_others(place: Place) -> None:
    """What is read for a question is bounded: of nineteen such words the newest 1,052 messages of each."""
    words = [f"{one}word" for one in "abcdefghijklmnopqrs"]
    line = " ".join(words)
    texts = ["aword", *[line if at % 2 else "rain" for at in range(2_160)]]
    texts[1:2_001:2] = ["tea"] * 1_000
    texts = _whole(place, texts)
    dense = _whole(place, [f"kettle {'- ' * 55}", *["rain"] * 1_000, *[line] * 1_080])
    with place.make() as store:
        _fill(store, [*texts], batch=500)
        for asked in (words, words[:18], [*words, "rain"]):
            _check(store, [*texts], " ".join(asked), 1_500)
        _fill(store, [*dense], batch=500, session="dense")
        assert _found(store, f"kettle {line}", 1, session="dense") == [
            1
        ]  # the others are in every message there

        def since(*terms: str) -> int | None:
            return store.search(SearchRequest(session="s", terms=terms, limit=1)).since

        assert since(*words) == len(texts) - 2 * 1_051
        assert since("aword", "rain") == since("tea") == since(*words[:18], "tea") == 1


def test_a_rewrite_leaves_nothing_of_the_old_text(place: Place) -> None:
    """It is not found, nor does it count for how rare a word is or how long a text: as in a log made anew."""
    draw = random.Random(13)
    texts = _whole(place, _texts(WORDS["English"], 330, draw, notes=0.1))
    store = place.make()
    _fill(store, texts)
    for at in (0, 1, 150, 299, 300, 329):
        text = draw.choice(["rain", "", "a party in Oslo, 天气 " + "and more " * 20])
        text = text and place.whole(text)
        events = store.load(LoadRequest(session="s", after=at, limit=1))
        if events[0].kind != "message":
            continue
        texts[at] = text
        new = replace(events[0], data={"message": {"role": "user", "content": text}})
        request = AppendRequest(
            session="s", expected_version=len(texts), events=[_event(len(texts), "done")], rewrites=[new]
        )
        store.append(request)
        texts.append("done")
    _fill(store, texts, session="anew")
    for question in ("rain", "Oslo", "天气", "flight for Anna", "more", "done"):
        found = _found(store, question, 400)
        assert found == _found(store, question, 400, session="anew")
    store.close()


def test_a_term_is_looked_up_once_and_one_that_no_message_has_not_at_all(place: Place) -> None:
    """Neither how a store writes its index nor what its server refuses is a word."""
    store = place.make()
    _fill(store, [f"{'cat' if at % 2 else 'bird'} {at}" for at in range(300)])

    def found(*terms: str) -> list[int]:
        return [one.version for one in store.search(SearchRequest(session="s", terms=terms, limit=400))]

    for term in ("cat 0", "cat 1", "", "a\0b", "\ud800"):
        assert found(term) == []
        assert found(term, "bird", "cat", "cat", term, "cat") == found("bird", "cat")
    store.close()


def test_a_session_of_a_deleted_ones_name_is_indexed_from_its_first_message(place: Place) -> None:
    """Though as many messages of the old one were."""
    store = place.make()
    _fill(store, ["tea"] * 250)
    assert len(_found(store, "tea", 400)) == 250
    store.delete("s")
    _fill(store, ["rain", "cat"])
    assert _found(store, "cat", 9) == [2, 1]
    assert _found(store, "tea", 9) == []
    store.close()


def test_an_answer_without_the_words_of_its_question_is_found_beside_it(place: Place) -> None:
    """One message away before two, nothing beyond; what is no message is no step, up to 64 versions away."""
    texts = ["far", "before", "Where is the cat?", None, None, "In the barn.", None, "Good night.", "late"]
    store = place.make()
    _fill(store, texts)
    assert _found(store, "Did you see my cat?", 9) == [3, 6, 2, 8, 1]
    for apart, session in ((64, "near"), (65, "far")):
        _fill(store, ["cat", *[None] * (apart - 1), "barn"], session=session)
        assert _found(store, "cat", 9, session=session) == ([1, 65] if apart == 64 else [1])
        assert _found(store, "barn", 9, session=session) == ([65, 1] if apart == 64 else [66])
    store.close()


SPELLINGS = [
    ("café Zoë", "cafe zoe"),
    ("Geschäftsführer", "Geschaeftsfuehrer"),
    ("Muller", "Müller"),
    ("getUserName", "get user name"),
    ("parse HTTPServer", "http server"),
    ("030 123-4567", "0301234567"),
    ("0171/234 56 78", "0171 2345678"),
    ("1,234,567", "1234567"),
    ("ёлка", "елка"),
]
"""What is written in one way, and asked for in another."""


def test_a_word_is_found_however_it_is_spelled(place: Place) -> None:
    """In the index and behind it, whichever of the two is asked for."""
    texts = [text for pair in SPELLINGS for text in pair]
    apart = [None] * 65
    with place.make() as store:
        for session, before in (("behind", 0), ("index", 1)):
            said = [one for text in texts for one in (f"so {text} it is", *apart)]
            _fill(store, [*said, *["rain"] * 400 * before], session=session)
            for at, (one, other) in enumerate(SPELLINGS):
                pair = {1 + 132 * at, 67 + 132 * at}
                for asked in (one, other):
                    assert set(_found(store, asked, 2, session=session)) == pair, (asked, session)


def test_what_stands_beside_a_long_hit_never_comes_before_it(place: Place) -> None:
    """However long the hit is; one with words of its own may: it takes less room, and says something."""
    long = f"otter {'river and bank ' * 3_000}"
    with place.make() as store:
        _fill(store, ["hm", "hm", long, "hm", "hm", *["rain"] * 40])
        for limit in (1, 2, 9):
            assert _found(store, "otter", limit) == [3, 4, 2, 5, 1][:limit]
        rain = "rain " * 400
        _fill(store, ["otter", *[rain] * 30, f"otter {rain}", *[rain] * 30], session="brief")
        assert _found(store, "otter", 3, session="brief") == [
            1,
            32,
            2,
        ]  # what lacks the word is as long as usual
        longer = f"an otter?{' ' * 60}" if place.name.endswith("-encrypted") else "an otter?"
        _fill(store, ["an otter", *["rain"] * 40, "hm", longer, long], session="own")
        assert _found(store, "otter", 2, session="own") == [1, 43]


def test_nothing_is_found_beside_a_fact_nor_a_fact_beside_a_message(place: Place) -> None:
    """What stands there was said when it was noted, and seldom what it is about."""
    fact = Event(id="f", kind="fact", time=0.0, data={"text": "The cat is in the barn"})
    said = [_event(0, "hello"), fact, _event(2, "good night"), _event(3, "a barn"), _event(4, "late")]
    with place.make() as store:
        store.append(AppendRequest(session="s", expected_version=0, events=said))
        assert _found(store, "cat", 9) == [2]
        assert set(_found(store, "barn", 9)) == {2, 4, 5, 3, 1}
        assert _found(store, "night", 9) == [3, 4, 1, 5]
