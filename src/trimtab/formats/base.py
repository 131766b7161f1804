"""What a wire form must tell the rest of trimtab: the `Format` protocol and its values.

A format reads messages in place and converts nothing. Grouping, counting, validating and
editing all go through it, so no other module names a provider.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

from trimtab.formats.structure import Dict, Kind, Prices, Structure, entry_of, mapping_of, shown

__all__ = [
    "Dict",
    "Fault",
    "Format",
    "Kind",
    "Media",
    "Path",
    "Pieces",
    "Prices",
    "Registered",
    "Request",
    "Rules",
    "Structure",
    "TextSlot",
    "entry_of",
    "mapping_of",
    "shown",
]

Path = tuple[str | int, ...]
"""Keys and indices that lead from a message to a value inside it."""


class TextSlot(NamedTuple):
    """A text inside a message that may be shortened or replaced."""

    path: Path
    text: str
    is_result: bool
    """True for the output of a tool."""


class Media(NamedTuple):
    """An image, sound, video or file inside a message."""

    kind: Literal["image", "audio", "video", "file"]
    detail: str | None
    """The image detail asked for ("low", "high", "auto"), if any."""
    data: str | None
    """Base64 payload or URL, never counted as text."""
    name: str | None
    """File name, if any."""
    is_sealed: bool = False
    """True if only the provider can read it; `name` says what it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pieces:
    """What of one message is charged for, in the order it stands in."""

    role: str = ""
    name: str | None = None
    texts: tuple[str, ...] = ()
    """Text content and refusals, one entry a part."""
    calls: tuple[tuple[str, str], ...] = ()
    """(tool name, arguments as text) of each call."""
    media: tuple[Media, ...] = ()
    result_id: str | None = None
    """Id of the call this message answers, if it answers one."""
    parts: int = 0
    """Parts of a list content; 1 for a non-empty or empty string, 0 for none."""
    results: int = 0
    """Results of calls that stand in the message as parts; 0 where the message itself is one."""
    thoughts: tuple[str, ...] = ()
    """Reasoning that can be read."""
    sealed_chars: int = 0
    """Characters of reasoning that only the provider can read; of OpenAI's and Gemini's, `thoughts` are a
    summary.
    """
    tools: tuple[Any, ...] = ()
    """Schemas of tools the message brings along."""
    is_elsewhere: bool = False
    """It only names what the provider has stored, which nobody can count from the request."""
    other: tuple[str, ...] = ()
    """Fields and parts the format has no name for, each as compact JSON."""

    @property
    def beside(self) -> tuple[str, ...]:
        """What stands beside texts and calls, as text."""
        if not (self.thoughts or self.tools):
            return self.other
        from trimtab.formats.values import compact_json  # not above: few messages have any

        return (*self.thoughts, *map(compact_json, self.tools), *self.other)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What a wire form demands of a conversation, as data."""

    results_are_messages: bool = False
    """A result is a message of kind "tool" of its own, and each such message is one; else parts may be."""
    results_follow_call: bool = True
    """Every result stands directly after the message with its call (other results between)."""
    results_lead: bool = False
    """Results stand before all else in what answers a turn's calls, though they are parts of it."""
    results_in_one: bool = False
    """All results of one turn's calls stand in the one message behind it, and are `joined` there."""
    system_in_messages: bool = True
    """System text stands among the messages; else the request holds it apart."""
    parts_key: str = "content"
    """The key of a message that holds its parts."""
    lifts_system: bool = False
    """No message at the front may have the role "system".

    `Context` and `Session` put their text into the request. `fit` keeps what it was given, and
    `validate` tells.
    """
    binds_messages: bool = True
    """A message may be bound to the one after it."""
    users_stand_alone: bool = False
    """A message of kind "user" neither calls, answers nor is bound to another."""
    ordered: bool = False
    """Not every message may stand behind every other, or come first; see `Format.order_fault`."""
    keeps_messages: bool = False
    """Some messages may not leave; see `Structure.kept`."""
    body_key: str = "messages"
    """The key of a request body that holds its messages."""
    body_marks: frozenset[str] = frozenset()
    """Keys of a request body that occur in this wire form only."""
    orphan_result: str = ""
    """What the provider answers to a result without its call; `{call_id}` and `{index}` are filled in."""
    unanswered_call: str = ""
    """What the provider answers to a call without its result."""
    late_result: str = ""
    """What the provider answers to a result that does not follow its call."""
    repeated_result: str = ""
    """What the provider answers to a second result for one call."""
    stray_result: str = ""
    """What it answers to a result among those of a call, if not the same as to an orphan elsewhere."""
    words_by_type: Mapping[str, str] = field(default_factory=dict)
    """What it answers instead to an orphan result or an unanswered call, by the `type` of its message."""
    unchecked_prefix: str | None = None
    """Call ids that begin so are pairs the provider itself does not check."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One thing a provider would refuse in the shape of a message or request."""

    index: int | None
    """Position of the message; None for what is about no single one."""
    rule: str
    detail: str
    path: Path = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request body taken apart: its messages and what is charged beside them."""

    messages: Sequence[Any]
    system: Any = None
    """System text outside the messages, where the wire form keeps it there."""
    tools: Any = None
    """Tool schemas, and any output schema, as the body holds them."""
    body: Mapping[str, Any] | None = None
    """The body itself; None if the input was a plain list."""
    key: str = "messages"
    """The body's key that holds the messages."""
    elsewhere: bool = False
    """True if the conversation goes on from messages the provider has stored: calls may be among those."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Other charged parts of the body by key (an output schema under "response_format")."""
    unseen: tuple[str, ...] = ()
    """What the provider reads beside the body, which only names it; a phrase each."""
    unsure: tuple[str, ...] = ()
    """What the body asks for and may cost a little that no rule says; a phrase each."""


def named_in(body: Mapping[str, Any], unseen: Mapping[str, str], /) -> tuple[str, ...]:
    """List the phrases for those keys of a body that name something the provider reads beside it."""
    # an empty mapping asks for something too: `"web_search_options": {}` is a search
    return tuple(phrase for key, phrase in unseen.items() if body.get(key) not in (None, "", []))


class Format(Protocol):
    """One wire form: how its messages are read, edited, checked and made.

    `messages` are dicts here (see `mapping_of`); editing takes and returns the caller's own objects.
    """

    name: str
    rules: Rules

    def kind(self, message: Dict, /) -> Kind:
        """Tell whom one message is from, reading as little of it as possible."""
        ...

    def scan(self, messages: list[Any], start: int, stop: int, structure: Structure, /) -> None:
        """Read `messages[start:stop]` into the columns of `structure`.

        An entry that is not a plain dict is read by `structure.read_as_dict`.
        """
        ...

    def order_fault(self, previous: Dict | None, message: Dict, /, *, parted: bool = False) -> str | None:
        """Say what the provider answers to a message that stands directly behind another.

        Leading system messages are passed over; None for `previous` is the beginning. Asked only where
        `Rules.ordered` says that there is such a rule.

        Args:
            previous: The message before it.
            message: The message.
            parted: They were apart: other messages between them left. What a provider takes only
                sometimes is not made anew.

        Returns:
            The provider's words; None if it takes them in this order.
        """
        ...

    def newest(self, messages: list[Any], kind: Kind, after: int, index: int, /) -> int:
        """Find the newest message of a kind in `(after, index]`; -1 if there is none.

        Runs over long turns: reads as little of each message as it can.
        """
        ...

    def texts(self, message: Dict, /) -> list[TextSlot]:
        """List the texts that may be shortened; call arguments are not among them."""
        ...

    def with_texts(self, message: Any, texts: Mapping[Path, str], /) -> Any:
        """Return a shallow copy of the caller's message with those texts replaced."""
        ...

    def without_parts(self, message: Any, parts: Sequence[int], /) -> Any:
        """Return a shallow copy of the caller's message without those parts."""
        ...

    def without_calls(self, message: Any, call_ids: frozenset[str], /) -> Any | None:
        """Return a shallow copy without those calls; None if nothing would be left."""
        ...

    def joined(self, message: Any, other: Any, /) -> Any:
        """Return a copy with the results of `other` behind those of `message`."""
        ...

    def tool_names(self, message: Dict, /) -> dict[str, str]:
        """Map the call ids of a message to the names of the tools called."""
        ...

    def pieces(self, message: Dict, /) -> Pieces:
        """List what of a message is charged for."""
        ...

    def faults(self, messages: list[Any], request: Request | None = None, /) -> list[Fault]:
        """List what a provider would refuse in the shape of messages, in order.

        Args:
            messages: The messages, as dicts.
            request: The body they came in, if they came in one: its model and settings decide too, and
                one without messages is a fault, which a list without any is not.
        """
        ...

    def read_request(self, body: Mapping[str, Any], /) -> Request:
        """Take a request body apart.

        Raises:
            FormatError: The body does not hold a list of messages.
        """
        ...

    def write_request(self, request: Request, messages: list[Any], /) -> Any:
        """Put messages back into a copy of the body they came in."""
        ...

    def matches(self, message: Dict, /) -> bool:
        """Tell whether a message has a shape that occurs in this wire form only."""
        ...

    def message(self, role: str, parts: Sequence[Any], /) -> Dict:
        """Make a message of texts and ready-made parts."""
        ...

    def with_role(self, message: Any, role: str, /) -> Any:
        """Return a shallow copy of the caller's message with another role."""
        ...

    def with_text(self, message: Any, text: str, /) -> Any:
        """Return a shallow copy of the caller's message with one text for content."""
        ...

    def with_cache_control(self, message: Any, value: Any, /) -> Any:
        """Return a shallow copy that ends a prefix for the provider's prompt cache."""
        ...

    def lifted(self, messages: Sequence[Any], system: Any, /) -> Any:
        """Return a request's system text with that of system messages behind it.

        For wire forms that know no such message (`Rules.lifts_system`); others return `system`.
        """
        ...

    def redacted(self, message: Dict, /) -> Dict:
        """Return a message that says nothing any more and is as valid as it was.

        What stays is whose it is, and which calls it makes or answers.
        """
        ...

    def tool_schema(self, name: str, /, *, description: str, parameters: Dict) -> Dict:
        """Write a function as the tools of a request hold it.

        Args:
            name: Its name.
            description: What the model is told of it.
            parameters: A JSON schema of its arguments.
        """
        ...

    def transcript(self, message: Dict, /) -> str:
        """Write a message for reading: whose it is, and its text, calls or result."""
        ...


class Registered:
    """A wire form of which there is one object in a process: copies and pickles come back to it."""

    name: str

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel as the name, with what it takes to be made where nobody registered it."""
        return _find_registered, (type(self), self.name, vars(self))


def _find_registered(kind: type[Any], name: str, state: dict[str, Any]) -> Any:
    """Return the wire form that is registered under a name; another of its kind where none is."""
    from trimtab.formats import formats, get_format  # which import this module

    found = get_format(name) if name in formats() else None
    if type(found) is kind:
        return found
    made = object.__new__(kind)
    made.__dict__.update(state)
    return made


class _Model(Protocol):
    """An object of an SDK that can be written as plain data, as pydantic's can."""

    def model_dump(self) -> Any: ...


ToolSchema: TypeAlias = Mapping[str, object] | _Model
"""A tool as it is sent to the provider: a mapping, or the SDK's own object."""

SystemLike: TypeAlias = str | Mapping[str, object] | _Model | Sequence[str | Mapping[str, object] | _Model]
"""What `system=` takes: a text, a part as the wire form has it, or a list of these."""
