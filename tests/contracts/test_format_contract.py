"""Every wire form keeps its contract; one that is broken on purpose is caught by the rule it breaks."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.properties.toy_format import ToyFormat, answers, asks, said, words
from trimtab import ConfigurationError, fit, validate
from trimtab.errors import FormatError
from trimtab.formats import (
    Fault,
    Format,
    OpenAIChat,
    Path,
    Pieces,
    Rules,
    Structure,
    TextSlot,
    detect,
    formats,
    get_format,
    register_format,
)
from trimtab.testing import ContractBroken, WordCounter, check_format, request_bodies

TOY_SAMPLES: list[list[Any]] = [
    [
        said("user", words("go")),
        said("assistant", words("look"), asks("a")),
        said("user", answers("a", "x y")),
    ],
    [
        said("user", words("one two")),
        said("thought", words("hm")),
        said("assistant", asks("a"), asks("b"), words("so")),
        said("user", answers("b", "yes"), answers("a", "no"), words("and now?")),
        said("assistant", words("done")),
    ],
    [said("user", answers("z", "of no call")), said("assistant", asks("open"))],
]


@pytest.mark.parametrize("name", formats())
def test_a_shipped_form_keeps_the_contract(name: str) -> None:
    """On request bodies of its own, valid and broken."""
    check_format(get_format(name))


def test_a_form_of_ones_own_keeps_the_contract() -> None:
    """One with shared and bound messages, system text outside, and an order."""
    check_format(ToyFormat(), samples=TOY_SAMPLES)


CHAT = [
    [
        {"role": "user", "content": "two words"},
        {"role": "assistant", "content": "so", "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}},
            {"id": "b", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "1"}]},
        {"role": "tool", "tool_call_id": "b", "content": "2"},
        {"role": "user", "content": "and now?"},
    ]
]  # fmt: skip


class _Nameless(OpenAIChat):
    name = ""


class _Partial(OpenAIChat):
    def kind(self, message: dict[str, Any], /) -> Any:
        return {"user": "user", "assistant": "assistant", "tool": "tool"}[message["role"]]


class _ByPiece(OpenAIChat):
    def scan(self, messages: list[Any], start: int, stop: int, structure: Structure, /) -> None:
        super().scan(messages, start, stop, structure)
        if start:
            structure.calls.pop(start, None)


class _Oldest(OpenAIChat):
    def newest(self, messages: list[Any], kind: Any, after: int, index: int, /) -> int:
        return next((at for at in range(after + 1, index + 1) if self.kind(messages[at]) == kind), -1)


class _Ordering(OpenAIChat):
    def order_fault(self, previous: Any, message: Any, /, *, parted: bool = False) -> str | None:
        return "no" if previous is None else None


class _Deaf(OpenAIChat):
    def with_texts(self, message: Any, texts: Mapping[Path, str], /) -> Any:
        return dict(message)


class _Rough(OpenAIChat):
    def with_texts(self, message: Any, texts: Mapping[Path, str], /) -> Any:
        for path, text in texts.items():
            if path == ("content",):
                message["content"] = text
        return super().with_texts(message, texts)


class _Free(OpenAIChat):
    def pieces(self, message: Any, /) -> Pieces:
        return replace(super().pieces(message), texts=())


class _Twice(OpenAIChat):
    def texts(self, message: Any, /) -> list[TextSlot]:
        return super().texts(message) * 2


class _Greedy(OpenAIChat):
    def without_calls(self, message: Any, call_ids: frozenset[str], /) -> Any | None:
        return {key: value for key, value in message.items() if key != "tool_calls"}


class _Forgetful(OpenAIChat):
    def write_request(self, request: Any, messages: list[Any], /) -> Any:
        return {"messages": messages}


class _Mute(OpenAIChat):
    def message(self, role: str, parts: Sequence[Any], /) -> Any:
        return {"role": role, "content": ""}


class _Careless(OpenAIChat):
    def faults(self, messages: list[Any], request: Any = None, /) -> Any:
        return [None]


class _OfDicts(OpenAIChat):
    def scan(self, messages: list[Any], start: int, stop: int, structure: Structure, /) -> None:
        super().scan([m if isinstance(m, dict) else {} for m in messages], start, stop, structure)


class _Particular(OpenAIChat):
    """Refuses what is left of its sample."""

    def faults(self, messages: list[Any], request: Any = None, /) -> Any:
        return (
            [] if len(messages) == 5 else [Fault(index=0, rule="not_five", detail="it was not made for this")]
        )


BROKEN: list[tuple[Any, str]] = [
    (_Nameless(), "declares"),
    (object(), "declares"),
    (_Partial(), "kinds"),
    (_ByPiece(), "scan"),
    (_Oldest(), "newest"),
    (_Ordering(), "order"),
    (_Deaf(), "texts"),
    (_Rough(), "input_unchanged"),
    (_Free(), "texts"),
    (_Twice(), "texts"),
    (_Greedy(), "edits"),
    (_Forgetful(), "request"),
    (_Mute(), "makes"),
    (_Careless(), "faults"),
    (_OfDicts(), "objects"),
    (_Particular(), "fit"),
]


@pytest.mark.parametrize(("form", "rule"), BROKEN, ids=lambda value: value if isinstance(value, str) else "")
def test_a_broken_form_is_caught(form: Any, rule: str) -> None:
    """By the rule it breaks, and with where."""
    with pytest.raises(ContractBroken) as caught:
        check_format(form, samples=CHAT)
    assert caught.value.rule == rule


class _Loose(OpenAIChat):
    """One rule is not that of Chat."""

    name = "loose"
    rules = replace(OpenAIChat.rules, results_follow_call=False)


def test_a_form_derived_from_a_shipped_one_is_asked_about_its_conversations() -> None:
    """Whoever changes one rule has no samples to write."""
    check_format(_Loose())


class _Lines(Format):
    """Overrides only what every form says for itself."""

    name = "lines"
    rules = Rules(system_in_messages=False, parts_key="says", body_key="lines", system_key="rules")

    def kind(self, message: dict[str, Any], /) -> Any:
        return {"user": "user", "assistant": "assistant"}.get(str(message.get("role")), "other")

    def texts(self, message: dict[str, Any], /) -> list[TextSlot]:
        says = message.get("says")
        return [TextSlot(("says",), says, False)] if isinstance(says, str) else []

    def pieces(self, message: dict[str, Any], /) -> Pieces:
        says = tuple(slot.text for slot in self.texts(message))
        return Pieces(role=str(message.get("role")), texts=says, parts=len(says))

    def matches(self, message: dict[str, Any], /) -> bool:
        return "says" in message

    def message(self, role: str, parts: Sequence[Any], /) -> dict[str, Any]:
        return {"role": role, "says": " ".join(map(str, parts))}

    def redact(self, message: dict[str, Any], /) -> dict[str, Any]:
        return {"role": message.get("role"), "says": "[redacted]"}


class _Alike:
    """Has the methods of `_Lines`, and does not derive from `Format`."""

    name = "alike"
    rules = _Lines.rules
    kind, texts, pieces = _Lines.kind, _Lines.texts, _Lines.pieces
    matches, message, redact = _Lines.matches, _Lines.message, _Lines.redact


LINES: list[list[Any]] = [
    [
        {"role": "user", "says": "one two"},
        {"role": "assistant", "says": "three"},
        {"role": "user", "says": "four five six"},
    ],
    [{"role": "assistant", "says": ""}, {"role": "nobody", "says": "hm"}, {"role": "user"}],
]


def test_defaults_make_a_whole_form_of_what_none_can_say() -> None:
    """Six methods keep the contract: reading, edits, bodies and transcripts have defaults."""
    form = _Lines()
    check_format(form, samples=LINES)
    assert form.transcript(LINES[0][0]) == "USER: one two"
    assert form.tool_schema("f", description="d", parameters={}) == {
        "type": "function", "name": "f", "description": "d", "parameters": {}}  # fmt: skip
    body = {"rules": "be brief", "lines": LINES[0]}
    fitted = fit(body, 5, counter=WordCounter(format=form), format=form)
    assert fitted.request == {"rules": "be brief", "lines": LINES[0][2:]}
    with pytest.raises(FormatError, match="a lines body needs a list under 'lines', not NoneType"):
        form.read_request({})
    changed = form.write_request(replace(form.read_request(body), system="be kind", tools=[{}]), [])
    assert changed == {"rules": "be kind", "lines": [], "tools": [{}]}


def test_system_text_stands_beside_the_messages_only_where_the_rules_say_so() -> None:
    """A key called "system" in a body of Chat is one that nobody knows: it is neither read nor written."""
    chat, body = get_format("openai_chat"), {"system": "be brief", "messages": []}
    request = chat.read_request(body)
    assert request.system is None
    assert chat.write_request(replace(request, system="be kind"), []) == body
    assert _Lines().read_request({"rules": "be brief", "lines": []}).system == "be brief"


def test_a_message_without_its_parts_is_a_copy_only_where_some_leave() -> None:
    """And one whose content is no list has none."""
    chat = get_format("openai_chat")
    parts = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
    message = {"role": "user", "content": parts}
    assert chat.without_parts(message, ()) is message
    assert chat.without_parts(message, [0]) == {"role": "user", "content": parts[1:]}
    said = {"role": "user", "content": "one"}
    assert chat.without_parts(said, [0]) is said


def test_a_part_that_is_null_costs_nothing() -> None:
    """There is nothing in it to be shown to a model."""
    assert get_format("openai_chat").pieces({"role": "user", "content": [None, 1]}).other == ("1",)


def test_an_object_with_the_methods_is_taken_as_a_form_with_the_defaults() -> None:
    """By the registry and as it is, pickled and copied; `auto` finds it by its shapes."""
    alike: Any = _Alike()
    check_format(alike, samples=LINES)
    register_format(alike)
    assert [detect(LINES[0]).name, get_format("alike").name, get_format(alike).name] == ["alike"] * 3
    by_name = fit(LINES[0], 3, counter=WordCounter(format="alike"), format="alike")
    itself = fit(LINES[0], 3, counter=WordCounter(format=alike), format=alike)
    assert by_name.messages == itself.messages == LINES[0][2:]
    twin = pickle.loads(pickle.dumps(get_format("alike")))
    assert twin.transcript(LINES[0][0]) == "USER: one two"
    assert copy.copy(get_format("alike")) is get_format("alike")


def test_a_copy_of_a_form_with_options_keeps_them() -> None:
    """Another of its kind stands under the name: it is not taken for the one that was copied."""
    registered, other = _Lines(), _Lines()
    other.rules = replace(_Lines.rules, body_key="rows")
    register_format(registered)
    assert copy.deepcopy(registered) is registered
    assert copy.deepcopy(other).rules.body_key == "rows"


def test_a_form_whose_samples_nobody_wrote_is_asked_for_them() -> None:
    """There is a generator of the shipped forms, and of what derives from them."""
    with pytest.raises(LookupError, match="toy"):
        check_format(ToyFormat())


@pytest.fixture
def registered() -> Format:
    """Register the toy form; what a test registers is taken back (conftest)."""
    form: Any = ToyFormat()
    register_format(form)
    return get_format("toy")


def test_a_registered_form_is_known_by_its_name_and_by_its_shapes(registered: Format) -> None:
    """Everywhere a name is taken, and where "auto" looks."""
    assert "toy" in formats()
    assert get_format("toy") is registered
    messages = TOY_SAMPLES[1]
    assert detect(messages) is registered
    assert fit(messages, 4, counter=WordCounter(format="toy")).report.format == "toy"
    assert [one for one in validate(messages) if one.fault] == []


def test_a_taken_name_is_refused_unless_it_is_to_be_replaced(registered: Format) -> None:
    """Two forms of one name would be told apart by who came last."""
    with pytest.raises(ConfigurationError, match="'toy' exists already"):
        register_format(ToyFormat())
    other = ToyFormat()
    register_format(other, replace=True)
    assert get_format("toy") is other


def test_what_is_no_form_is_not_registered() -> None:
    """A name alone is none, and "auto" is no name."""
    auto = ToyFormat()
    auto.name = "auto"
    for value in (object(), _Nameless(), "toy", auto):
        with pytest.raises(ConfigurationError, match="methods of Format"):
            register_format(value)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["anthropic", "bedrock", "gemini", "openai_chat", "openai_responses"])
def test_request_bodies_are_what_they_say(name: str) -> None:
    """The same seed gives the same; valid ones are valid but for calls that are open; others are broken."""
    form = get_format(name)
    assert request_bodies(3, format=name, seed=4) == request_bodies(5, format=name, seed=4)[:3]
    assert request_bodies(3, format=name, seed=4) != request_bodies(3, format=name, seed=5)
    proper = request_bodies(150, format=name, valid=True)
    assert [v for body in proper for v in validate(body, format=form) if v.fault] == []
    rules = {v.rule for body in request_bodies(150, format=name) for v in validate(body, format=form)}
    assert {"orphan_result", "unanswered_call", "open_call"} <= rules
