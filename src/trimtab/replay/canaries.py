"""Texts that have to stay in view word for word: planted into a recording, or found in what its users say."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any, NamedTuple

from trimtab._shared.checks import check_whole
from trimtab.errors import ConfigurationError, FormatError
from trimtab.formats import Format, Path, mapping_of
from trimtab.formats.origin import OriginName, lower
from trimtab.formats.values import entry_of
from trimtab.replay.record import Canary, Messages, ModelCall, Recording
from trimtab.rules import Rule, find_rules, supersedes
from trimtab.strategies.exact_values import fold, values_in
from trimtab.strategies.must_keep import sources_of

__all__ = ["MAX_CANARIES", "canaries_in", "find_canaries", "is_same", "plant_canaries"]

MAX_CANARIES = 100
"""There are no more sentences, and none is planted twice."""

KINDS = ("rule", "limit", "preference", "name", "id")


def plant_canaries(recording: Recording, count: int, /, *, seed: int = 0) -> Recording:
    """Plant rules and exact values in what users say, to see which ones are lost.

    Five kinds take turns: a rule, a limit, a preference, a name and an id. Each is a sentence in English that
    becomes the last paragraph of a user's own text; no message is added. Places are spread evenly over the
    messages of users, without the last of them, which every policy shows. Nothing is planted in results,
    documents or system text.

    A call has the canary if it has the message at the same place; a recording whose program had already
    dropped that message in an earlier call keeps that call as it is.

    Args:
        recording: The recording, as `read_recording` reads it; it is not changed.
        count: How many, from 1 to 100.
        seed: Decides places and texts: the same number plants the same.

    Returns:
        The recording with the sentences, and with them as `canaries`.

    Raises:
        FormatError: No message of a user has text of the user's own.
        ConfigurationError: The count or the seed is not such a number.

    Example:
        >>> from trimtab.replay import read_recording
        >>> chat = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}] * 20
        >>> planted = plant_canaries(read_recording(chat), 2, seed=7)
        >>> [one.kind for one in planted.canaries]
        ['rule', 'limit']
        >>> planted.messages[planted.canaries[0].at]["content"].endswith(planted.canaries[0].text)
        True
    """
    if check_whole("count", count, least=1) > MAX_CANARIES:
        raise ConfigurationError(f"count={count} must be at most {MAX_CANARIES}", argument="count")
    check_whole("seed", seed)
    slots = [*_last_texts(recording)]
    if not slots:
        raise FormatError("no message of a user has text of the user's own to plant canaries in")
    slots = slots[:-1] or slots
    random = Random(seed)
    sentences = _sentences(random, count, said=_all_text(recording))
    found, added = list[Canary](), dict[int, list[str]]()
    where = {slot.place: slot for slot in slots}
    for number, (kind, sentence, sought) in enumerate(sentences):
        slot = slots[min(int((number + random.random()) * len(slots) / count), len(slots) - 1)]
        added.setdefault(slot.place, []).append(sentence)
        found.append(Canary(kind=kind, text=sought, at=slot.place - recording.lead))
    messages = {
        index: recording.format.with_texts(
            recording.messages[index],
            {where[index].path: "\n\n".join((where[index].text.rstrip(), *lines))},
        )
        for index, lines in added.items()
    }
    calls = tuple(_with_messages(call, messages, recording.messages) for call in recording.calls)
    return replace(recording, calls=calls, canaries=tuple(found))


def find_canaries(recording: Recording, /) -> Recording:
    """Take the exact values and standing rules that users say for canaries.

    Nothing is planted.

    Only users' own words count, as for `must_keep="values"` and `trimtab.rules.find_rules`: no results and no
    documents. A value or rule that is said again is sought once, and a rule is not sought where a later one
    plainly replaces it.

    Args:
        recording: The recording, as `read_recording` reads it.

    Returns:
        The recording with them as `canaries`, in the order in which they were first said.

    Example:
        >>> from trimtab.replay import read_recording
        >>> chat = [{"role": "user", "content": "My order is ORD-7. Never call me before 9 am."}]
        >>> [(one.kind, one.text) for one in find_canaries(read_recording(chat)).canaries]
        [('value', 'ORD-7'), ('value', '9 am'), ('rule', 'Never call me before 9 am.')]
    """
    found = canaries_in(recording.format, recording.messages)
    return replace(recording, canaries=tuple(replace(one, at=one.at - recording.lead) for one in found))


def canaries_in(
    form: Format, messages: Messages, /, lowered: Mapping[int, OriginName | None] | None = None
) -> list[Canary]:
    """List the exact values and the standing rules of users in messages; positions are among these.

    Args:
        form: Their wire form.
        messages: The messages, oldest first.
        lowered: By position, what the host said of whose words a message has.
    """
    found: dict[tuple[str, str], Canary] = {}
    rules: dict[tuple[Any, ...], list[tuple[Rule, Canary]]] = {}
    for slot in _own_texts(form, messages, lowered or {}):
        at = slot.place
        for value in values_in(slot.text):
            found.setdefault(("value", value), Canary(kind="value", text=value, at=at))
        for rule in find_rules(slot.text):
            key = ("rule", fold(rule.text))
            if not rule.standing or key in found:
                continue
            found[key] = canary = Canary(kind=rule.kind, text=rule.text, at=at)
            alike = rules.setdefault((rule.kind, rule.language, rule.topic), [])
            for older, said in alike:
                if supersedes(rule, older):
                    found.pop(("rule", fold(said.text)), None)
            alike.append((rule, canary))
    return [*found.values()]


class _Slot(NamedTuple):
    """A text of a user's own, and where it is."""

    place: int
    path: Path
    text: str


def _own_texts(form: Format, messages: Messages, lowered: Mapping[int, OriginName | None]) -> Iterator[_Slot]:
    """Yield what users say themselves: no result, no document, and no summary in a message of theirs."""
    for index in range(len(messages)):
        message = entry_of(messages, index)
        if form.kind(message) != "user":
            continue
        sources = sources_of(form, [(message, lower(form.origins(message), lowered.get(index)))])
        for slot, source in zip(form.texts(message), sources, strict=True):
            if source.whose == "user" and slot.text.strip():
                yield _Slot(index, slot.path, slot.text)


def _last_texts(recording: Recording) -> Iterator[_Slot]:
    """Yield the last text of each message that has one."""
    last: _Slot | None = None
    for slot in _own_texts(recording.format, recording.messages, {}):
        if last is not None and last.place != slot.place:
            yield last
        last = slot
    if last is not None:
        yield last


def _all_text(recording: Recording) -> str:
    form = recording.format
    return "\n".join(form.full_text(mapping_of(message)) for message in recording.messages)


def _with_messages(call: ModelCall, planted: Mapping[int, Any], last: Messages) -> ModelCall:
    """Return a call with those of the planted messages that it has, at their places."""
    messages: list[Any] | None = None
    for index, message in planted.items():
        if index < len(call.messages) and is_same(call.messages[index], last[index]):
            messages = list(call.messages) if messages is None else messages
            messages[index] = message
    return call if messages is None else replace(call, messages=messages)


def is_same(one: object, other: object, /) -> bool:
    """Tell whether a message of one call is that of another."""
    return one is other or one == other


# What is planted. Nothing of it is likely in a recording, and no sentence replaces another.


class _Planted(NamedTuple):
    kind: str
    sentence: str
    sought: str
    """The sentence, or the value alone."""


def _sentences(random: Random, count: int, *, said: str) -> list[_Planted]:
    """Write as many sentences, kind by kind in turns; a value that was said anyway is not used."""
    subjects = {kind: _in_any_order(random, _SUBJECTS[kind]) for kind in KINDS}
    found, used = list[_Planted](), set[str]()
    for number in range(count):
        kind = KINDS[number % len(KINDS)]
        subject = subjects[kind][number // len(KINDS)]
        templates, values = _TEMPLATES[kind]
        value = values(random)
        while value and (value in said or value in used):
            value = values(random)
        used.add(value)
        sentence = random.choice(templates).format(*subject.split(" | "), value=value)
        found.append(_Planted(kind, sentence, value if kind in ("name", "id") else sentence))
    return found


def _in_any_order(random: Random, words: Sequence[str]) -> list[str]:
    return random.sample(words, len(words))


def _name(random: Random) -> str:
    return f"{random.choice(_FIRST)} {random.choice(_LAST)}"


def _id(random: Random) -> str:
    letters = "".join(random.choice("BCDFGHJKLMNPQRSTVWXZ") for _ in range(3))
    return f"{letters}-{random.randrange(10_000, 100_000)}"


def _amount(random: Random) -> str:
    return f"{random.randrange(110, 990)} EUR"


def _nothing(random: Random) -> str:
    return ""


_TEMPLATES: Mapping[str, tuple[tuple[str, ...], Callable[[Random], str]]] = {
    "rule": (("Never {0}.", "You must not {0}.", "From now on, do not {0}."), _nothing),
    "limit": (
        (
            "My budget for the {0} is {value}.",
            "Spend no more than {value} on the {0}.",
            "The {0} must not cost more than {value}.",
        ),
        _amount,
    ),
    "preference": (
        ("I prefer {0} to {1}.", "I would rather have {0} than {1}.", "My preference is {0} over {1}."),
        _nothing,
    ),
    "name": (
        (
            "The person to ask about the {0} is {value}.",
            "Write to {value} about the {0}.",
            "The {0} is looked after by {value}.",
        ),
        _name,
    ),
    "id": (
        (
            "The reference of the {0} is {value}.",
            "The {0} has the number {value}.",
            "They filed the {0} as {value}.",
        ),
        _id,
    ),
}
"""Sentences of each kind, and what makes a value of it.

They are plain on purpose: `find_rules` and `values_in` find all of them, so that what is lost is lost by the
policy. How well rules are found in what people write is another question (`design/043-rules.md`).
"""

_FIRST = (
    "Odalys",
    "Torvald",
    "Ysolde",
    "Bertil",
    "Maelle",
    "Anselm",
    "Ragna",
    "Corentin",
    "Sunniva",
    "Leopold",
    "Imke",
    "Fausto",
)
_LAST = (
    "Ferncastle",
    "Oudekerk",
    "Vandermolen",
    "Szabolcs",
    "Thistlewood",
    "Marchetti",
    "Lindqvist",
    "Okonjo",
    "Brackwater",
)

_SUBJECTS: Mapping[str, tuple[str, ...]] = {
    "rule": (
        "restart the pump station on a Sunday",
        "mail the landlord without a copy to me",
        "repaint the north stairwell during term",
        "move the archive boxes into the cellar",
        "lend the ladder to the neighbours",
        "switch off the greenhouse fans at night",
        "quote the old tariff to a tenant",
        "park the trailer in front of the hydrant",
        "hand out the spare keys by post",
        "water the orchids with tap water",
        "book the ferry without a cabin",
        "print the choir scores on both sides",
        "wake the night porter before six",
        "store the varnish beside the boiler",
        "forward the minutes to the press",
        "seat the two caterers at one table",
        "open the loading bay in a storm",
        "share the rowing roster with the club",
        "mix the two clays in one kiln",
        "sign the lease on behalf of the cooperative",
    ),
    "limit": (
        "tower roof",
        "beekeeping course",
        "festival lanterns",
        "choir robes",
        "allotment fence",
        "theatre curtain",
        "regatta buoys",
        "vestry carpet",
        "mushroom walk",
        "band uniforms",
        "sauna stove",
        "planetarium seats",
        "museum posters",
        "lighthouse paint",
        "orchard irrigation",
        "carousel horses",
        "archive shelves",
        "fencing masks",
        "kite workshop",
        "pottery kiln",
    ),
    "preference": (
        "slate blue envelopes | white ones",
        "rye bread | wheat bread",
        "the window table | the terrace",
        "paper maps | screens",
        "the night train | the early flight",
        "oat milk | cream",
        "brass handles | chrome ones",
        "handwritten notes | forms",
        "gravel paths | asphalt",
        "linen curtains | blinds",
        "the cello | the piano",
        "walnut shelves | pine ones",
        "woollen blankets | duvets",
        "round tables | long ones",
        "copper gutters | plastic ones",
        "the ferry | the bridge",
        "pear juice | lemonade",
        "candles | lamps",
        "quarter sheets | half sheets",
        "cork floors | tiles",
    ),
    "name": (
        "weathervane",
        "clock repair",
        "seed exchange",
        "boat shed",
        "harvest supper",
        "mural",
        "rain barrels",
        "footbridge",
        "lost umbrella",
        "wedding quartet",
        "tide tables",
        "bee hives",
        "chess evening",
        "old projector",
        "herb garden",
        "snow plough",
        "stage lights",
        "bread oven",
        "night walk",
        "guest piano",
    ),
    "id": (
        "storage unit",
        "insurance claim",
        "piano rental",
        "well permit",
        "chimney inspection",
        "mooring",
        "parcel of seeds",
        "kayak rental",
        "museum loan",
        "choir booking",
        "allotment plot",
        "tent rental",
        "bicycle locker",
        "scaffold permit",
        "glazier invoice",
        "hearing test",
        "ski pass refund",
        "tree survey",
        "warranty of the mixer",
        "garage contract",
    ),
}
