"""What in a text is an exact value: a name, a number with its unit, an id, a path, a date, an address.

One module for all who ask: what a summary must keep, and whether a recording kept it. It knows words and
patterns, and neither messages nor tokens. A text is cut into words once; each that is not plain is looked at
once, with at most five behind it, so that the time is a multiple of the length of the text, whatever it says.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

__all__ = ["LONGEST_VALUE", "Finder", "Places", "fold", "says", "values_in"]

LONGEST_VALUE = 300
"""Characters of the longest value; a longer run, as of base64, is no value that anybody repeats."""

Finder = Callable[[str], Sequence[str]]
"""Lists the values of a text, each time one is said, in order."""

_MARKER = re.compile(r"\[(?:text cut by trimtab|trimtab:)[^\[\]\n]{0,200}\]")
"""What trimtab writes where it cut a text: its words are nobody's."""

_LETTERS = r"A-Za-z0-9_\u00c0-\u024f\u0370-\u04ff"
"""Signs of words that have blanks between them; Chinese and Japanese have none."""

_RUN = rf"{_LETTERS}@.:/\\#$€£¥₹%‰°+~&'’*!?-"

_WORD = re.compile(
    r"https?://[^\s<>\"'`()\[\]{}\u2e80-\uffef]+"
    rf"|[{_RUN}]+(?:,[0-9][{_RUN}]*)*"
)
_AFTER, _BEFORE = ".,:;!?'’*&~", ",:;!?'’*&"
_ORDINAL = re.compile(r"\d{1,2}\.")
_CODE = re.compile(r"`([^`\n]{1,80})`")
_CJK_UNITS = "|".join(
    (
        "万元|亿元|美元|欧元|日元|块钱|元|块|万|亿|公斤|千克|克|厘米|毫米|公里|千米|平方米|米|升|毫升|小时",
        "分钟|秒|天|周|个月|年|岁|度|个|人|名|位|件|本|张|次|页|字|倍|折|点|号|円|時間|分|日",
    )
)
_CJK = re.compile(
    r"(?<!\d)(?:\d{2,4}年\d{1,2}月(?:\d{1,2}[日号])?|\d{1,2}月\d{1,2}[日号]"
    rf"|\d{{1,15}}(?:\.\d{{1,6}})?(?:{_CJK_UNITS}))"
)


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_MONTHS = _set(
    """
    january february march april may june july august september october november december
    jan feb mar apr jun jul aug sep sept oct nov dec
    januar februar märz mai juni juli oktober dezember okt dez
    janvier février mars avril juin juillet août septembre octobre novembre décembre
    enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre
    """
)
_UNITS = _set(
    """
    eur usd gbp jpy cny rmb chf inr cad aud euro euros dollar dollars cent cents pound pounds yen yuan rupees
    k m bn thousand million billion percent % € $ am pm a.m p.m o'clock uhr
    kg g mg km cm mm mi mile miles ft feet inch inches litre litres liter liters ml l oz lb lbs
    ms s sec second seconds min minute minutes h hr hrs hour hours day days night nights week weeks
    month months year years stunde stunden minuten tag tage tagen woche wochen monat monate monaten
    jahr jahre jahren jours heures mois ans días horas años
    kb mb gb tb kib mib gib mbps gbps px pt rpm hz khz mhz ghz kw kwh °c °f degrees
    tokens words characters lines rows items pieces people persons passengers guests adults children
    bags tickets seats rooms units times points pages messages sentences
    """
)
_PARTICLES = _set("of de da di del la van von der den bin al")
_FILES = _set(
    """
    py pyi ipynb js mjs jsx ts tsx json jsonl yaml yml toml ini cfg conf env lock md rst txt log csv tsv
    parquet xls xlsx doc docx ppt pptx pdf png jpg jpeg gif svg webp mp3 mp4 wav zip tar tgz gz sql db sqlite
    html htm css scss xml sh bash ps1 bat rs go c h cc cpp hpp java kt cs rb php swift scala lua pl tf proto
    vue exe dll so whl
    """
)
_NO_NAMES = _set(
    """
    a about absolutely actually add after all also always an and another any are as ask at be because been
    before book but by call can cancel certainly change check continue correct could create day days dear did
    do does don't done during each either else every everything exact few final finally find fine first for
    from get give go good great had has have he hello her here hey hi his how however i i'd i'll i'm i've if
    in is it it's its just keep last let let's like make many may maybe me might mind more most mr mrs ms must
    my never new next nice no none nor not note nothing now of oh ok okay on once one only or other otherwise
    our out over perfect perhaps please plus put regarding remove right same second see send set she should
    show since so some sorry start still stop such sure take tell than thank thanks that that's the their them
    then there there's these they think this those though three to today tomorrow too two under understood
    unless until up update use user users values very want was we we'll we're we've welcome well were what
    what's when where whether which while who why will with without would write yes yesterday yet you you'd
    you'll you're you've your assistant system tool summary
    der die das den dem ein eine einen ich wir sie er es du ihr und oder aber nicht bitte danke ja nein mein
    le les un une des je nous vous il elle et ou mais non oui merci el los las una yo nosotros y o pero sí
    bonjour hallo hola
    """
)
"""Words that are written large where a sentence begins, or to be heard, and name nobody."""

_MANY_CAPITALS = 0.15
"""Share of the words inside sentences, written large, above which that names nothing: German."""

_AMOUNT = re.compile(r"[+-]?\d{1,15}(?:[.,]\d{1,15}){0,8}")
_WITH_SIGN = re.compile(r"[$€£¥₹][+-]?\d[\d.,]{0,30}[A-Za-z]{0,3}|[+-]?\d[\d.,]{0,30}[%‰€£¥°$][CF]?")
_SIGN_ALONE = frozenset("$€£¥₹")
_SIGNS = _SIGN_ALONE | set("+-")
_OF = frozenset(("of", "de"))
_DAY = re.compile(r"\d{1,2}(?:st|nd|rd|th|\.)?")
_YEAR = re.compile(r"[12]\d{3}")
_DIGITS = re.compile(r"\+?\d[\d.,:/-]*\d")
_ID = re.compile(rf"#?[{_LETTERS}]+(?:[-.+/:][{_LETTERS}]+)*")
_EMAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_PATH = re.compile(r"(?:[A-Za-z]:|~|\.{1,2})?(?:[/\\]?[\w.@+%~-]+)(?:[/\\][\w.@+%~-]+)*[/\\]?")
_LARGE = re.compile(r"[A-ZÀ-ÞΑ-ΩА-Я](?:[a-zß-ÿα-ωа-яё]|['’][A-Z])[A-Za-zÀ-ÿΑ-ωА-яё'’-]*")
_STRESSED = re.compile(r"[A-Z]{3,12}(?:-[A-Z]{2,12}){0,4}")


@dataclass(slots=True)
class _Words:
    """The words of a text, without the signs around them."""

    texts: list[str] = field(default_factory=list[str])
    starts: list[int] = field(default_factory=list[int])
    """Where in the text each begins."""
    begins: set[int] = field(default_factory=set[int])
    """Words that begin a sentence or a line."""
    closed: set[int] = field(default_factory=set[int])
    """Words behind which a sign ends what they are a part of."""
    candidates: list[int] = field(default_factory=list[int])
    """Words that are not plain: a value may begin with each."""
    nameless: int = 0
    """No name begins before this word: those that were read are written large and name nobody."""

    def append(self, word: str, start: int, *, begins: bool) -> None:
        """Add a word."""
        at = len(self.texts)
        if begins:
            self.begins.add(at)
        if not (word.islower() and word.isalpha()):
            self.candidates.append(at)
        self.texts.append(word)
        self.starts.append(start)

    def next_to(self, at: int) -> str:
        """Return the word behind one that is not closed, or nothing."""
        return "" if at in self.closed or at + 1 >= len(self.texts) else self.texts[at + 1]


def values_in(text: str, /) -> list[str]:
    """List the exact values of a text, each time one is said, in order of their kinds.

    A bare number of one or two digits is none: without what it counts nobody can look for it. Names are found
    by their capitals, so none is found in Chinese or Japanese.

    Args:
        text: Any text.

    Complexity: O(n) in its characters.

    Example:
        >>> values_in("I am Ada Lovelace. Send order ORD-7 for 42 EUR by 5 May, please.")
        ['Ada Lovelace', 'ORD-7', '42 EUR', '5 May']
    """
    text = _MARKER.sub("\n", text) if "trimtab" in text else text
    words = _words(text)
    large = _names_nothing(words)
    found = list[str]()
    read = 0
    for at in words.candidates:
        if at < read:
            continue
        first, count = _value_at(words, at, large=large)
        if first < count:
            last = at + count - 1
            said = text[words.starts[at + first] : words.starts[last] + len(words.texts[last])]
            found.append(fold(said).removesuffix("'s").removesuffix("’s"))
        read = at + count
    found += filter(None, map(fold, _CODE.findall(text)))
    if not text.isascii():
        found += _CJK.findall(text)
    return found


def _words(text: str) -> _Words:
    """Cut a text into words; a run that is longer than any value is none, and ends what was before it."""
    words = _Words()
    at, end, begins = 0, 0, True
    for piece in text.split(" "):
        start, at = at, at + len(piece) + 1
        if not piece:
            continue
        # Most words stand alone between blanks, and need no pattern.
        if end == start - 1 and piece.isalnum() and piece.isascii() and len(piece) <= LONGEST_VALUE:
            words.append(piece, start, begins=begins)
            end, begins = at - 1, False
            continue
        for match in _WORD.finditer(text, start, at - 1):
            run = match[0]
            gap, end = text[end : match.start()], match.end()
            if gap != " ":
                begins = begins or "\n" in gap
                if begins or not gap or not gap.isspace():
                    words.closed.add(len(words.texts) - 1)
            if len(run) > LONGEST_VALUE:
                begins = False
                continue
            bare, tail = (run, "") if run.isalnum() else _bare(run)
            if bare:
                words.append(bare, end - len(tail) - len(bare), begins=begins)
                if tail:
                    words.closed.add(len(words.texts) - 1)
            begins = bool(tail) and ("." in tail or "?" in tail or "!" in tail)
    return words


def _bare(run: str) -> tuple[str, str]:
    """Return a run without the signs around it, and those behind it."""
    bare = run.rstrip(_AFTER)
    tail = run[len(bare) :]
    if tail == "." and _ORDINAL.fullmatch(run):
        return run, ""  # "5. Mai"
    return bare.lstrip(_BEFORE), tail


def _names_nothing(words: _Words) -> bool:
    """Tell whether a text writes so many words large that this names nothing."""
    alone, before = 0, -1
    for at in words.candidates:
        word = words.texts[at]
        if word[0].isupper() and word[-1].islower():
            if at not in words.begins and before != at - 1 and not _is_no_name(word):
                alone += 1
            before = at
    return alone > 3 and alone > _MANY_CAPITALS * len(words.texts)


def _value_at(words: _Words, at: int, *, large: bool) -> tuple[int, int]:
    """Say with which word from here a value begins and how many are read; none where these are the same."""
    word = words.texts[at]
    if word[0].isdigit() or word[0] in _SIGNS:
        return 0, _amount_length(words, at)
    if word[0].isupper() and word.lower() in _MONTHS and (count := _date_length(words, at)):
        return 0, count
    if _is_single(word):
        return 0, 1
    if at >= words.nameless and _LARGE.fullmatch(word):
        return _name_at(words, at, large=large)
    return 0, 0


def _amount_length(words: _Words, at: int) -> int:
    """Say how many words a date, a number with its unit or another value takes; 0: it is none."""
    word, following = words.texts[at], words.next_to(at)
    if word in _SIGN_ALONE:
        return 2 if _AMOUNT.fullmatch(following) else 0
    if following:
        lowered = following.lower()
        may_be_day = (lowered in _MONTHS or lowered in _OF) and _DAY.fullmatch(word)
        if may_be_day and (count := _date_length(words, at)):
            return count
        if lowered in _UNITS and (_AMOUNT.fullmatch(word) or _is_time(word) or word[0] in _SIGN_ALONE):
            return 2
        if word[0] == "+" and following[0].isdigit():
            return _phone_length(words, at)
    return 1 if _is_single(word) else 0


def _phone_length(words: _Words, at: int) -> int:
    """Say how many words a number takes that begins with the code of a country."""
    count = 2
    while count < 6 and words.next_to(at + count - 1)[:1].isdigit():
        count += 1
    return count


def _is_time(word: str) -> bool:
    return ":" in word and word.replace(":", "").isdigit()


def _date_length(words: _Words, at: int) -> int:
    """Say how many words a date takes whose day or month is there; 0: it is none."""
    if at in words.closed:
        return 0
    near = words.texts[at : at + 5] + [""] * 4
    count = 0
    if near[0].lower() in _MONTHS:  # "May 15, 2024" or "May 2024"
        if not near[1][:1].isdigit():
            return 0
        if _YEAR.fullmatch(near[1]):
            return 2
        count = 2 if _DAY.fullmatch(near[1]) else 0
    else:  # "15 May 2024", "15th of May"
        of = 1 if near[1] in _OF and at + 1 not in words.closed else 0
        if near[1 + of].lower() in _MONTHS and (of or near[1][0].isupper()):
            count = 2 + of
    if not count:
        return 0
    year = count + 1 if near[count] == "de" else count
    # The comma before a year closes a word, and the date goes on behind it.
    return year + 1 if _YEAR.fullmatch(near[year]) and at + year not in words.begins else count


def _is_single(word: str) -> bool:
    """Tell whether a word is a value by itself."""
    if word.isdigit():
        return len(word) > 2
    if word.isupper() and _STRESSED.fullmatch(word):
        return word.lower() not in _NO_NAMES
    if word.isalpha():
        return False
    if word.startswith(("http://", "https://", "www.")) or ("@" in word and _EMAIL.fullmatch(word)):
        return True
    if not word[0].isalpha() and (_WITH_SIGN.fullmatch(word) or (len(word) > 2 and _DIGITS.fullmatch(word))):
        return True
    if ("/" in word or "\\" in word or "." in word) and _is_path(word):
        return True
    return _ID.fullmatch(word) is not None and _is_id(word)


def _is_id(word: str) -> bool:
    """Tell whether a word has a digit beside a letter, or parts that an underscore joins."""
    if any(map(str.isdigit, word)):
        return len(word) > 1 and (word[0] == "#" or any(map(str.isalpha, word)))
    return "_" in word.strip("_")


def _is_path(word: str) -> bool:
    """Tell whether a word is a path: a file by its ending, or three parts; "and/or" is none."""
    if not _PATH.fullmatch(word):
        return False
    parts = [part for part in word.replace("\\", "/").split("/") if part]
    name, dot, ending = parts[-1].rpartition(".") if parts else ("", "", "")
    if dot and name and ending.lower() in _FILES:
        return True
    return len(parts) > 2 or (len(parts) > 1 and word[0] in "/~.\\") or word[1:3] == ":\\"


def _name_at(words: _Words, at: int, *, large: bool) -> tuple[int, int]:
    """Read a name, as `_value_at`: none where a sentence only begins, or where most words are written so."""
    texts, count = words.texts, 1
    while count < 6 and (text := words.next_to(at + count - 1)):
        if not (_LARGE.fullmatch(text) or text in _PARTICLES or (len(text) == 1 and text.isupper())):
            break
        count += 1
    begins = at in words.begins
    alone = len(texts) == 1  # an answer to "What is your name?"
    first, last = 0, count
    while last > first and (_is_no_name(texts[at + last - 1]) or texts[at + last - 1] in _PARTICLES):
        last -= 1
    if not last:
        words.nameless = at + count
    # "New York" and "Las Vegas" are names inside a sentence; "New rules" at its beginning are none.
    while first < last and _is_no_name(texts[at + first]) and (begins or last - first == 1):
        first, begins = first + 1, False
    is_name = last - first > 1 or (last > first and not large and (alone or not begins))
    if is_name and last == count and _AMOUNT.fullmatch(words.next_to(at + last - 1)):
        last += _amount_length(words, at + last) < 2  # "Postgres 15", but not of "Monday 15 people"
    return (first, last) if is_name else (0, 0)


def _is_no_name(word: str) -> bool:
    return word.lower().replace("’", "'") in _NO_NAMES


def fold(text: str, /) -> str:
    """Return a text as values are looked for in it: of any white space one blank."""
    return " ".join(text.split())


def says(text: str, value: str, /) -> bool:
    """Tell whether a text says a value word for word: "42" is neither in "420" nor in "42.5".

    Args:
        text: The text; folded.
        value: The value; folded.
    """
    at = text.find(value)
    while at >= 0:
        if _is_apart(text, value, at):
            return True
        at = text.find(value, at + len(value))
    return False


class Places:
    """Where in a text each of its words is, to look for many values in a time that does not grow with both.

    Args:
        text: A folded text.
    """

    __slots__ = ("_starts",)

    def __init__(self, text: str = "") -> None:
        self._starts: dict[str, list[int]] = {}
        self.add(text, 0)

    def add(self, text: str, start: int) -> None:
        """Add what the text goes on with; it begins with no letter.

        Args:
            text: The words.
            start: Where in the whole text these are.
        """
        for match in _PART.finditer(text):
            self._starts.setdefault(match[0], []).append(start + match.start())

    def says(self, text: str, value: str) -> bool:
        """Tell whether the text says a value, as `says`.

        Of a value whose rarest word is there very often, only the first places are looked at.

        Args:
            text: The whole text.
            value: The value; folded.
        """
        rarest, before = list[int](), 0
        for match in _PART.finditer(value):
            starts = self._starts.get(match[0])
            if starts is None:
                return False
            if not rarest or len(starts) < len(rarest):
                rarest, before = starts, match.start()
        for start in rarest[:_MOST_PLACES]:
            at = start - before
            if at >= 0 and text.startswith(value, at) and _is_apart(text, value, at):
                return True
        return False


_PART = re.compile(rf"[{_LETTERS}]+|\S")
_MOST_PLACES = 100
"""Places at which a value is looked for: those of its rarest word."""

_SIGN = re.compile(rf"[{_LETTERS}]")


def _is_apart(text: str, value: str, at: int) -> bool:
    """Tell whether what is there is the value, and not a part of a longer word or number."""
    end = at + len(value)
    before, after = text[max(0, at - 2) : at], text[end : end + 2]
    if before and _SIGN.match(value[0]) and _SIGN.match(before[-1]):
        return False
    if after and _SIGN.match(value[-1]) and _SIGN.match(after[0]):
        return False
    if value[0].isdigit() and len(before) == 2 and before[1] in ".," and before[0].isdigit():
        return False
    return not (value[-1].isdigit() and len(after) == 2 and after[0] in ".,:" and after[1].isdigit())
