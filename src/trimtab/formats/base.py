"""What a wire form tells the rest of trimtab: the base class `Format` and its values.

A format reads messages in place and converts nothing. Grouping, counting, validating and
editing all go through it, so no other module names a provider.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import is_
from typing import Any, Literal, NamedTuple, Protocol, Self, TypeAlias

from trimtab.errors import FormatError, UnknownNameError
from trimtab.formats.foreign import check_message, instead_of_body
from trimtab.formats.origin import ORIGIN_OF, Origins
from trimtab.formats.refusal import Fault
from trimtab.formats.structure import Kind, Step, Structure, Thinking
from trimtab.formats.values import (
    Dict,
    Path,
    as_list,
    as_text,
    ascii_json,
    compact_json,
    entry_of,
    item_of,
    key_of_lost,
    mapping_of,
    marks_in,
    with_values,
    without_indices,
)

MOST_MARKS = 4
"""Marks for a prompt cache in one request, where nothing else is known: what all that have marks take."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Prices:
    """A counter's charges, so a format can count a message while it reads it.

    Args:
        bases: Framing of a plain message by its role; a message of a missing role is counted in full.
        counts: Tokens by text; a missing text is counted. None costs nothing; other values raise an error.
        in_full: Counts a message of any shape.
        per_call_tokens: Per call, in addition to its name and arguments.
        name_factor: How many times the name of a call is charged.
        parallel_tokens: Per message with two or more calls.
        further_call_tokens: Per call of a message after its first.
        per_result_tokens: Per result that is a part of a message; a result message has this in its base.
        thoughts_counted: Whether readable reasoning is charged; None: messages with reasoning are counted in
            full.
        sealed_chars_per_token: Characters of encrypted reasoning per token; None if it is not charged.
        write_json: Writes objects in a message as text, such as arguments of calls.
        sealed_free_chars: Characters of encrypted reasoning that are free in each message.
        scale: Two numbers: the cost of a message is multiplied by the first and divided by the second, to the
            nearest token.
    """

    bases: dict[Any, int]
    counts: dict[Any, int]
    in_full: Callable[[Dict], int]
    per_call_tokens: int
    name_factor: int
    parallel_tokens: int
    further_call_tokens: int = 0
    per_result_tokens: int = 0
    thoughts_counted: bool | None = None
    sealed_chars_per_token: float | None = None
    write_json: Callable[[Any], str] = compact_json
    sealed_free_chars: int = 0
    scale: tuple[int, int] = (1, 1)

    def sealed_tokens(self, chars: int, /) -> int:
        """Count the encrypted reasoning of a message.

        Args:
            chars: Its length.

        Raises:
            TypeError: Messages with reasoning are counted in full.
        """
        if self.thoughts_counted is None:
            raise TypeError("messages with reasoning are counted in full")
        if not self.sealed_chars_per_token:
            return 0
        return math.ceil(max(0, chars - self.sealed_free_chars) / self.sealed_chars_per_token)


class TextSlot(NamedTuple):
    """A text inside a message that may be shortened or replaced.

    Args:
        path: Keys and indices that lead to the text, from the message.
        text: The current text.
        is_result: True for the output of a tool.
    """

    path: Path
    text: str
    is_result: bool


class Media(NamedTuple):
    """An image, sound, video or file inside a message.

    Args:
        kind: The kind of medium.
        detail: The requested image detail ("low", "high", "auto"), if any.
        data: Base64 data or URL, never counted as text.
        name: File name, if any.
        is_sealed: True if only the provider can read it; `name` says what it is.
    """

    kind: Literal["image", "audio", "video", "file"]
    detail: str | None
    data: str | None
    name: str | None
    is_sealed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Pieces:
    """The charged content of one message, in its order.

    Args:
        role: The role as the wire form names it.
        name: Name of the author, if the message has one.
        texts: Text content and refusals, one entry per part.
        calls: (tool name, arguments as text) of each call.
        media: Images, sounds, videos and files.
        result_id: Id of the call this message answers, if any.
        parts: Number of parts of a list; 1 for a string, even an empty one; 0 for no content.
        results: Results of calls that are parts of the message; 0 if the message itself is one.
        thoughts: Reasoning as readable text.
        sealed_chars: Characters of reasoning that only the provider can read; OpenAI's and Gemini's
            `thoughts` are a summary.
        tools: Schemas of tools in the message.
        documents: Documents whose text is in the message, rather than a file.
        is_cited: Whether the model may cite the content of the message.
        is_elsewhere: Whether it only names content that the provider has stored, which cannot be counted from
            the request.
        other: Fields and parts that the format does not know, each as compact JSON.
    """

    role: str = ""
    name: str | None = None
    texts: tuple[str, ...] = ()
    calls: tuple[tuple[str, str], ...] = ()
    media: tuple[Media, ...] = ()
    result_id: str | None = None
    parts: int = 0
    results: int = 0
    thoughts: tuple[str, ...] = ()
    sealed_chars: int = 0
    tools: tuple[Any, ...] = ()
    documents: int = 0
    is_cited: bool = False
    is_elsewhere: bool = False
    other: tuple[str, ...] = ()

    @property
    def beside(self) -> tuple[str, ...]:
        """Content other than texts and calls, as text."""
        if not (self.thoughts or self.tools):
            return self.other

        return (*self.thoughts, *map(compact_json, self.tools), *self.other)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The rules of a wire form for a conversation, as data.

    Args:
        results_are_messages: A result is a message of its own, of kind "tool"; otherwise it may be a part.
        calls_are_messages: A call is a message of its own; otherwise it is a part of the model's message.
        arguments_are_text: The arguments of a call are text that contains JSON; otherwise an object.
        result_frame: Charged text around the text of a result, if that is written as JSON.
        results_follow_call: Every result comes directly after the message with its call, or other results.
        results_lead: Results come first in the message that answers a turn's calls, as parts of it.
        results_in_one: All results of one turn's calls are in the message after it (`join_results`).
        takes_apart: They may also be in several messages right after it, but are not put there.
        system_in_messages: System text is among the messages; otherwise the request has it separately.
        parts_key: The message key that has the parts.
        parts_listed: The parts are a list in every message: a text there does not decide the form.
        lifts_system: No message at the front may have the role "system". `Context` and `Session` put their
            text into the request. `fit` keeps the given messages, and `validate` lists the fault.
        binds_messages: A message may be bound to the one after it.
        users_stand_alone: A message of kind "user" has no call and no result, and is not bound to another.
        ordered: Not every message may follow every other, or come first; see `Format.order_fault`.
        keeps_messages: Some messages may not be evicted; see `Structure.kept`.
        body_key: The key of a request body that has its messages.
        system_key: The key of a request body that has its system text, if that is outside the messages.
        body_marks: Keys of a request body that occur only in this wire form.
        mark_keys: Keys by which a part marks the end of a prefix for the provider's prompt cache; empty if
            the form has none.
        orphan_result: The provider's error for a result without its call; `{call_id}` and `{index}` are
            filled in.
        unanswered_call: The provider's error for a call without its result.
        late_result: The provider's error for a result that does not follow its call.
        repeated_result: The provider's error for a second result of one call.
        stray_result: The provider's error for an orphan among the results of a call, if it differs from the
            usual one.
        words_by_type: The provider's other errors for an orphan result or an unanswered call, by the `type`
            of its message.
        unnamed_prefix: Prefixes of ids the form makes for results without an id, in addition to `UNNAMED`.
        unchecked_prefix: Prefixes of the call ids of pairs that the provider itself does not check.
    """

    results_are_messages: bool = False
    calls_are_messages: bool = False
    arguments_are_text: bool = False
    result_frame: str = ""
    results_follow_call: bool = True
    results_lead: bool = False
    results_in_one: bool = False
    takes_apart: bool = False
    system_in_messages: bool = True
    parts_key: str = "content"
    parts_listed: bool = False
    lifts_system: bool = False
    binds_messages: bool = True
    users_stand_alone: bool = False
    ordered: bool = False
    keeps_messages: bool = False
    body_key: str = "messages"
    system_key: str = "system"
    body_marks: frozenset[str] = frozenset()
    mark_keys: tuple[str, ...] = ()
    orphan_result: str = ""
    unanswered_call: str = ""
    late_result: str = ""
    repeated_result: str = ""
    stray_result: str = ""
    words_by_type: Mapping[str, str] = field(default_factory=dict)
    unnamed_prefix: str | None = None
    unchecked_prefix: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request body taken apart: its messages and the other charged parts.

    Args:
        messages: The messages, as they are in the body.
        system: System text outside the messages, if the wire form keeps it there.
        tools: Tool schemas, and any output schema, as they are in the body.
        body: The body itself; None if the input was a plain list.
        key: The body's key that holds the messages.
        elsewhere: True if the conversation continues from messages that the provider has stored: calls may be
            among those.
        extra: Other charged parts of the body by key (such as an output schema under "response_format").
        unseen: Content that the body only names and the provider reads; one phrase each.
        unsure: Features of the body that may cost a little, by no known rule; one phrase each.
    """

    messages: Sequence[Any]
    system: Any = None
    tools: Any = None
    body: Mapping[str, Any] | None = None
    key: str = "messages"
    elsewhere: bool = False
    extra: Mapping[str, Any] = field(default_factory=dict)
    unseen: tuple[str, ...] = ()
    unsure: tuple[str, ...] = ()

    @property
    def model(self) -> str:
        """The model that the body names; "" if it names none."""
        body = self.body or {}
        return as_text(body.get("model")) or as_text(body.get("modelId")) or ""


def output_schema(schema: Mapping[str, Any], /) -> Dict:
    """Write the schema an answer must follow as `Request.extra` holds it in every wire form: as Chat does."""
    return {"response_format": {"type": "json_schema", "json_schema": schema}}


def named_in(body: Mapping[str, Any], unseen: Mapping[str, str], /) -> tuple[str, ...]:
    """List the phrases for those keys of a body that name something the provider reads beside it."""
    # an empty mapping asks for something too: `"web_search_options": {}` is a search
    return tuple(phrase for key, phrase in unseen.items() if body.get(key) not in (None, "", []))


class Format(ABC):
    """One wire form: how its messages are read, edited, checked and made.

    A form of your own derives from this class, or from a similar built-in form, and overrides what differs.
    Abstract methods must be defined; all others have a default for a form without tool calls.

    `messages` are dicts here (see `mapping_of`); editing takes and returns the caller's own objects.
    A process has one object of each registered form: copying and pickling return it.
    """

    name: str
    """The name of the form, in `format=` and in reports."""
    title: str = ""
    """Its name in errors, if different."""
    rules: Rules = Rules()
    """Its rules for a conversation."""
    write_json: Callable[[Any], str] = staticmethod(compact_json)
    """Writes objects in a message as text to be counted: arguments of calls, results of tools."""
    _write_sent: Callable[[Any], str] = staticmethod(ascii_json)
    """Writes the same for a message that a framework, such as LiteLLM, sends as text in another wire form:
    other frameworks keep non-ASCII characters as they are, which is shorter.
    """
    _sent: Format | None = None
    """The form in which these messages are sent, if that form has rules of order and this one has none."""

    def _sent_as(self, sent: Format, /) -> Format:
        """Return this form for messages sent in another: there objects may be text, and not all may lead."""
        as_text = sent.rules.arguments_are_text and not self.rules.arguments_are_text
        ordered = sent.rules.ordered and not self.rules.ordered
        told: Dict = {"write_json": self._write_sent} if as_text else {}
        told |= {"_sent": sent, "rules": replace(self.rules, ordered=True)} if ordered else {}
        return self._with(told) if told else self

    def _with(self, told: Mapping[str, Any], /) -> Self:
        """Return this form with something else said of it; `copy` gives the form itself back."""
        made = object.__new__(type(self))
        vars(made).update(vars(self), **told)
        return made

    model: str = ""
    """The model that decides what is refused; "" if no model is named. See `for_model`."""

    def for_model(self, model: str | None, /) -> Format:
        """Return the form for one model, which decides what is a fault.

        Models of one provider refuse different things; without a model it is the form itself, and what only
        some models refuse is not a fault.

        Args:
            model: Name of the model in the request.
        """
        return self._with({"model": model}) if model else self

    def _model_of(self, request: Request | None) -> str:
        """Return the model to go by: this form's, or the one that a request names; "" if none is."""
        return self.model or ("" if request is None else request.model)

    # What is there.

    @abstractmethod
    def kind(self, message: Dict, /) -> Kind:
        """Return the author of one message, reading as little of it as possible.

        It is "other" for an unknown role.

        Args:
            message: The message, as a dict.
        """

    def kinds(self, messages: Sequence[Dict], /) -> list[Kind]:
        """Return the author of each of many messages.

        Args:
            messages: The messages, as dicts.
        """
        return [*map(self.kind, messages)]

    def scan(self, messages: list[Any], start: int, stop: int, structure: Structure, /) -> None:
        """Read `messages[start:stop]` into the columns of `structure`.

        An entry that is not a plain dict is read by `structure.read_as_dict`. The default reads only kinds; a
        form with calls also fills in `calls`, `answers`, and other bonds between its messages.

        Args:
            messages: All messages; entries that are read as dicts are replaced.
            start: Index of the first to read.
            stop: One past the last.
            structure: The columns to fill in.

        Raises:
            FormatError: An entry is not a message; `.path` names it.
        """
        for index in range(start, stop):
            structure.kinds[index] = self.kind(structure.read_as_dict(messages, index))

    def latest_compaction(self, messages: Sequence[Any], /) -> int:
        """Find the latest message that replaces those before it and is kept; or -1.

        Args:
            messages: The messages as they were passed.
        """
        return -1

    def unread(self, messages: Sequence[Any], /, *, compaction: int | None = None) -> range:
        """Return the messages that cost nothing because a compaction replaces them.

        Args:
            messages: The messages in the order they are sent.
            compaction: What `latest_compaction` returns for them; None: it is called.
        """
        return range(0)

    def count_back(
        self,
        messages: list[Any],
        span: range,
        room_tokens: int,
        sizes: list[int | None],
        structure: Structure,
        prices: Prices,
        /,
    ) -> int | None:
        """Walk and count a span from newest to oldest, until the room is exceeded.

        Fills `sizes` with the counter's `count_message` of each message. Consecutive walks take the same
        `structure`. A walk notes there what `scan` of all messages would find, as far as the messages read
        show it, so nothing older and no part has to be scanned:

        * `bound`: a message bound to the one after it. Both were read when it is noted. Older ones may have
          to be read, because the bonds in a turn are known once its first message was read.
        * `behind`: results read since the last message that is not a result. Results still there at the end
          of the walk answer no message that was read.
        * `unanswered`: messages with a call that no result directly after them answers. Calls that are bound
          to one another are followed by the results of all of them.
        * `odd`: places where these notes do not decide which messages belong together. A result that is not
          directly after its call is noted at the nearest earlier message that is not a result, or at the
          first message. A message whose parts belong to several units is noted at itself, and so is one that
          has more than calls, results and words. `scan` reads from the user message alone before it to the
          next one.
        * `foreign`, `replaced`: a message looked like another form's; entries that were not dicts.
        * `kinds_back`, `callers`: each message's `kind`, and whether it calls; only where that is cheap.

        Args:
            messages: All messages; entries that are read as dicts are replaced.
            span: Positions to read, in descending order.
            room_tokens: The walk ends at the message that exceeds this many tokens.
            sizes: Tokens by position, to be filled in; None where unknown.
            structure: The notes of the walk.
            prices: The counter's charges.

        Returns:
            The last position read, or one past the first of an empty span; None if the form cannot count so.
        """
        return None

    def is_foreign(self, message: Dict, /) -> bool:
        """Tell whether a message is of another form, for a form that counts as it reads.

        Args:
            message: The message, as a dict.
        """
        try:
            check_message(message, self.name)
        except FormatError:
            return True
        return False

    def newest(self, messages: list[Any], kind: Kind, after: int, index: int, /) -> int:
        """Find the newest message of a kind in `(after, index]`; -1 if there is none.

        Args:
            messages: All messages.
            kind: The kind to find.
            after: The position before the first candidate.
            index: The last candidate.
        """
        for at in range(index, after, -1):
            message = messages[at]
            if self.kind(message if type(message) is dict else entry_of(messages, at)) == kind:
                return at
        return -1

    def order_fault(self, previous: Dict | None, message: Dict, /, *, parted: bool = False) -> str | None:
        """Return the provider's error for a message directly after another.

        None if the provider accepts it. Leading system messages are skipped; `previous` is None at the
        beginning. Called only if `Rules.ordered` says that there is such a rule.

        Args:
            previous: The message before it.
            message: The message.
            parted: Whether messages between them were evicted. An order that a provider accepts only
                sometimes is then not made.
        """
        if self._sent is None or previous is not None or not parted or self.kind(message) == "user":
            return None  # where a framework sends what is given it may put a user's message in front
        return self._sent.order_fault(None, self._sent.message("assistant", ["-"]), parted=True)

    def thinking_rules(self, model: str | None, body: Mapping[str, Any] | None, /) -> Thinking:
        """Say what a model requires of thinking sent back to it; by default nothing.

        Args:
            model: Name of the model, if known.
            body: The request body, if there is one: its settings matter too.
        """
        return Thinking()

    def without_thinking(self, message: Any, /) -> Any | None:
        """Return a shallow copy of the caller's message without its thinking.

        None if nothing remains; the message itself if it has none. Called only if thinking is bound.

        Args:
            message: The caller's message.
        """
        return message

    def thinking_key(self, message: Any, /) -> str | None:
        """Return a hash of the thinking in a message; None if it has none.

        Args:
            message: The caller's message.
        """
        bare = self.without_thinking(message)
        return None if bare is message else key_of_lost(mapping_of(message), mapping_of(bare or {}))

    def turn_step(self, message: Dict, /) -> Step:
        """Return the place of a message in its turn of the model.

        Called only if a turn may have to begin with thinking.

        Args:
            message: The message, as a dict.
        """
        return ""

    @abstractmethod
    def texts(self, message: Dict, /) -> list[TextSlot]:
        """List the texts that may be shortened; call arguments are not among them.

        Args:
            message: The message, as a dict.
        """

    @abstractmethod
    def pieces(self, message: Dict, /) -> Pieces:
        """List the charged content of a message.

        Args:
            message: The message, as a dict.

        Raises:
            FormatError: A field is nested too deep, or refers to itself, so it cannot be written as JSON.
        """

    def weight(self, message: Dict, /) -> tuple[int, int]:
        """Return the bytes of a message's texts and arguments, and its number of calls.

        This measures the share of a message in a conversation without a counter.

        Args:
            message: The message, as a dict.
        """
        pieces = self.pieces(message)
        if not pieces.calls and (slots := self.texts(message)):
            return sum([bytes_of(slot.text) for slot in slots]), 0
        written = (*pieces.texts, *(arguments for _, arguments in pieces.calls))
        return sum(map(bytes_of, written)), len(pieces.calls)

    def weights(self, messages: Sequence[Dict], /) -> list[float]:
        """Return, for each of many messages, how much of a stride it takes.

        Args:
            messages: The messages, as dicts.
        """
        return [
            size / BYTES_PER_TOKEN + MESSAGE_WEIGHT + CALL_WEIGHT * calls
            for size, calls in map(self.weight, messages)
        ]

    def tool_names(self, message: Dict, /) -> dict[str, str]:
        """Map the call ids of a message to the names of the called tools.

        Args:
            message: The message, as a dict.
        """
        return {}

    def origins(self, message: Dict, /) -> Origins:
        """Return the origins of a message's content (SPEC E14).

        A user message may contain the output of a tool, or a document; the default decides by `kind`, and by
        the files of a user message.

        Args:
            message: The message, as a dict.
        """
        whose = ORIGIN_OF[self.kind(message)]
        if whose == "user" and any(one.kind == "file" for one in self.pieces(message).media):
            return frozenset(("user", "document"))
        return frozenset((whose,))

    @abstractmethod
    def matches(self, message: Dict, /) -> bool:
        """Tell whether a message has a shape that occurs only in this wire form.

        Args:
            message: The message, as a dict. `told_by` lists the keys that can decide.
        """

    def faults(self, messages: list[Any], request: Request | None = None, /) -> list[Fault]:
        """List what the provider would refuse in the shape of messages, in order.

        Pairs of calls and results are not checked here: `Rules` has the texts for these.

        Args:
            messages: The messages, as dicts.
            request: What is known beyond the list: a body, whose settings matter and which needs at least one
                message; or the system text and tools that go with a list.
        """
        return []

    def mend(self, message: Dict, /) -> Dict | None:
        """Return a message of a refused shape as the provider accepts it, if possible.

        No content is invented or lost: an empty text is removed, a text is made a part where one is required,
        and arguments are written as the provider reads them. What cannot be repaired this way is kept, and
        `faults` lists it.

        Args:
            message: The message, as a dict; it is not changed.

        Returns:
            A dict, the same one if nothing can be repaired; None if the message has no content.
        """
        return message

    def transcript(self, message: Dict, /) -> str:
        """Write a message for people: its author, and its text, calls or result.

        Args:
            message: The message, as a dict.
        """
        found = self.pieces(message)
        return f"{(found.role or 'unknown').upper()}: " + "\n".join((*found.texts, *found.beside))

    def full_text(self, message: Dict, /) -> str:
        """Return the whole text of a message, to be searched.

        It has texts, results, calls with their arguments, and readable reasoning.

        Args:
            message: The message, as a dict.
        """
        found = self.pieces(message)
        calls = (f"{name} {arguments}" for name, arguments in found.calls)
        return "\n".join((*found.texts, *calls, *found.thoughts, *found.other))

    # A copy with a change.

    def with_texts(self, message: Any, texts: Mapping[Path, str], /) -> Any:
        """Return a shallow copy of the caller's message with those texts replaced.

        Args:
            message: The caller's own message: a dict, or an object of an SDK.
            texts: The new texts, by the path of `TextSlot`.
        """
        return with_values(message, texts)

    def without_parts(self, message: Any, parts: Sequence[int], /) -> Any:
        """Return a shallow copy of the caller's message without those parts.

        Args:
            message: The caller's own message: a dict, or an object of an SDK.
            parts: Positions of the parts to remove.
        """
        held = as_list(item_of(message, self.rules.parts_key))
        if held is None or not parts:
            return message
        return with_values(message, {(self.rules.parts_key,): without_indices(held, frozenset(parts))})

    def without_calls(self, message: Any, call_ids: frozenset[str], /) -> Any | None:
        """Return a shallow copy without those calls; None if nothing would remain.

        Args:
            message: The caller's own message: a dict, or an object of an SDK.
            call_ids: Ids of the calls to remove.
        """
        return message

    def join_results(self, message: Any, other: Any, /) -> Any:
        """Return a copy with the results of `other` after those of `message`.

        If a result is a message of its own, nothing is joined, and the message itself is returned.

        Args:
            message: The caller's own message: a dict, or an object of an SDK.
            other: The message whose results are added.
        """
        return message

    def with_role(self, message: Any, role: str, /) -> Any:
        """Return a shallow copy of the caller's message with another role.

        Args:
            message: The caller's own message: a dict, or an object of an SDK.
            role: The new role, as the wire form names it.
        """
        return with_values(message, {("role",): role})

    def with_text(self, message: Any, text: str, /) -> Any:
        """Return a shallow copy of the caller's message with one text as content.

        Args:
            message: The caller's own message: a dict, or an object of an SDK.
            text: The new content.
        """
        return with_values(message, {(self.rules.parts_key,): text})

    def with_cache_control(self, message: Any, value: Any, /) -> Any:
        """Return a shallow copy that ends a prefix for the provider's prompt cache.

        The message itself is returned if nothing in it can be marked.

        Args:
            message: The caller's own message: a dict, or an object of an SDK.
            value: The mark, such as `{"type": "ephemeral"}`.
        """
        return message

    def mark_last(self, parts: Any, value: Any, /) -> Any:
        """Return system text or tools with a cache mark on the last part.

        The argument is returned if nothing in it can be marked, or the form has no marks there.

        Args:
            parts: System text or tools, as they are sent.
            value: The mark, such as `{"type": "ephemeral"}`.
        """
        return parts

    def most_marks(self, model: str | None, /) -> int:
        """Return the maximum number of marks in a request; 0 if a cache needs none.

        Args:
            model: Name of the model; an unknown model may have all that the form has.
        """
        from trimtab.models import pricing_for  # not above: most fits mark nothing

        if not self.rules.mark_keys:
            return 0
        try:
            known = None if model is None else pricing_for(model)
        except UnknownNameError:
            known = None
        return MOST_MARKS if known is None else known.max_breakpoints or 0

    def forget_thinking(
        self, body: Mapping[str, Any], known: Collection[str] | None = None, /
    ) -> Dict | None:
        """Return a copy of a request body without the thinking that its provider signed.

        Used after a refusal because the thinking is of another conversation. If a turn in progress would have
        to begin with thinking, thinking is switched off. None if there is none.

        Args:
            body: The body, as it is sent.
            known: Keys (`thinking_key`) of the thinking to remove; None: all of it.
        """
        key = self.rules.body_key
        given = as_list(body.get(key)) or ()
        left = [
            self.without_thinking(message)
            if known is None or self.thinking_key(message) in known
            else message
            for message in given
        ]
        if all(map(is_, left, given)):
            return None
        return {**body, key: [message for message in left if message is not None]}

    def cache_marks(self, value: Any, /) -> list[Any]:
        """List the cache marks in a message, system text or tools.

        Args:
            value: A message, system text or tools, as they are sent.
        """
        return list(marks_in(value, self.rules.mark_keys))

    @abstractmethod
    def redact(self, message: Dict, /) -> Dict:
        """Return a message without its text that is as valid as before.

        Its author, and the calls it makes or answers, are kept.

        Args:
            message: The message, as a dict.
        """

    # Made new.

    @abstractmethod
    def message(self, role: str, parts: Sequence[Any], /) -> Dict:
        """Make a message from texts and ready-made parts.

        Args:
            role: The role, as the wire form names it.
            parts: Texts, and parts in the wire form.
        """

    def tool_schema(self, name: str, /, *, description: str, parameters: Dict) -> Dict:
        """Write a function as a tool of a request.

        Args:
            name: Its name.
            description: The description for the model.
            parameters: A JSON schema of its arguments.
        """
        return {"type": "function", "name": name, "description": description, "parameters": parameters}

    # The body of a request.

    def read_request(self, body: Mapping[str, Any], /) -> Request:
        """Take a request body apart.

        Args:
            body: The body, as it is sent.

        Raises:
            FormatError: The body does not hold a list of messages.
        """
        rules, key = self.rules, self.rules.body_key
        messages = as_list(body.get(key))
        if messages is None:
            found, title = type(body.get(key)).__name__, self.title or self.name
            instead = instead_of_body(body)
            raise FormatError(f"a {title} body needs a list under {key!r}, not {found}{instead}", path=key)
        system = None if rules.system_in_messages else body.get(rules.system_key)
        return Request(messages=messages, system=system, tools=body.get("tools"), body=body, key=key)

    def write_request(self, request: Request, messages: list[Any], /) -> Any:
        """Put messages back into a copy of the body they came in.

        System text and tools that were passed separately are written into it. Without a body, the list itself
        is returned.

        Args:
            request: The body taken apart, as `read_request` returned it.
            messages: The messages to put into it.
        """
        if request.body is None:
            return messages
        written: Dict = {**request.body, request.key: messages}
        key, apart = self.rules.system_key, not self.rules.system_in_messages
        if apart and request.system is not None and request.system is not request.body.get(key):
            written[key] = request.system
        return {**written, "tools": request.tools} if request.tools else written

    def lift_system(self, messages: Sequence[Any], system: Any, /) -> Any:
        """Return a request's system text with that of system messages after it.

        For wire forms without system messages (`Rules.lifts_system`); others return `system`.

        Args:
            messages: The messages as they were passed.
            system: System text of the request, if there is any.
        """
        return system

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel as the name, with what it takes to be made where nobody registered it."""
        return _find_registered, (type(self), self.name, vars(self))


BYTES_PER_TOKEN = 3.5
MESSAGE_WEIGHT = 4.0
CALL_WEIGHT = 9.0
"""Weights of research/CUTS.md: only ratios between messages matter, not the unit."""


def bytes_of(text: str, /) -> int:
    """Return the length of a text in UTF-8."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


REGISTRY: dict[str, Format] = {}
"""The wire forms of this process, by name."""


def _find_registered(kind: type[Format], name: str, state: dict[str, Any]) -> Format:
    """Return the wire form that is registered under a name; another of its kind where none is."""
    found = REGISTRY.get(name)
    if found is not None and type(found) is kind and vars(found) == state:
        return found
    made = object.__new__(kind)
    vars(made).update(state)
    return made


class _Model(Protocol):
    """An object of an SDK that can be written as plain data, as pydantic's can."""

    def model_dump(self) -> Any: ...


ToolSchema: TypeAlias = Mapping[str, object] | _Model
"""A tool as it is sent to the provider: a mapping, or the SDK's own object."""

SystemLike: TypeAlias = str | Mapping[str, object] | _Model | Sequence[str | Mapping[str, object] | _Model]
"""What `system=` may be: a text, a part in the wire form, or a list of these."""
