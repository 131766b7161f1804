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
    """What a counter charges, so that a format can count a message while it reads it.

    Args:
        bases: Framing of a plain message by its role; a role that is missing is counted in full.
        counts: Tokens by text; measures what is missing. None costs nothing, what is no text is refused.
        in_full: Counts a message of any shape.
        per_call_tokens: Once a call, beside its name and arguments.
        name_factor: How often the name of a call is charged.
        parallel_tokens: Once a message with two or more calls.
        further_call_tokens: Once each call of a message behind its first.
        per_result_tokens: Once a result that is a part of a message; that of a message which is one is in its
            base.
        thoughts_counted: Whether reasoning that can be read is charged; None: what thinks is counted in full.
        sealed_chars_per_token: Characters of encrypted reasoning a token; None where it is not charged.
        write_json: Writes what a message holds as an object, as arguments of calls.
        sealed_free_chars: So many of them are free in each message.
        scale: What a message costs in the end, to the nearest token: so many times its price, by so many.
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
            chars: How long it is.

        Raises:
            TypeError: What thinks is counted in full.
        """
        if self.thoughts_counted is None:
            raise TypeError("what thinks is counted in full")
        if not self.sealed_chars_per_token:
            return 0
        return math.ceil(max(0, chars - self.sealed_free_chars) / self.sealed_chars_per_token)


class TextSlot(NamedTuple):
    """A text inside a message that may be shortened or replaced.

    Args:
        path: Keys and indices that lead to the text, from the message.
        text: The text as it is.
        is_result: True for the output of a tool.
    """

    path: Path
    text: str
    is_result: bool


class Media(NamedTuple):
    """An image, sound, video or file inside a message.

    Args:
        kind: What it is.
        detail: The image detail asked for ("low", "high", "auto"), if any.
        data: Base64 payload or URL, never counted as text.
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
    """What of one message is charged for, in the order it stands in.

    Args:
        role: The role as the wire form calls it.
        name: Name of who speaks, if the message has one.
        texts: Text content and refusals, one entry a part.
        calls: (tool name, arguments as text) of each call.
        media: Images, sounds, videos and files.
        result_id: Id of the call this message answers, if it answers one.
        parts: Parts of a list content; 1 for a non-empty or empty string, 0 for none.
        results: Results of calls that stand in the message as parts; 0 where the message itself is one.
        thoughts: Reasoning that can be read.
        sealed_chars: Characters of reasoning that only the provider can read; of OpenAI's and Gemini's,
            `thoughts` are a summary.
        tools: Schemas of tools the message brings along.
        documents: Documents whose words are here, and not a file of them.
        is_cited: Whether the model may cite what the message holds.
        is_elsewhere: It only names what the provider has stored, which nobody can count from the request.
        other: Fields and parts the format has no name for, each as compact JSON.
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
        """What stands beside texts and calls, as text."""
        if not (self.thoughts or self.tools):
            return self.other

        return (*self.thoughts, *map(compact_json, self.tools), *self.other)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What a wire form demands of a conversation, as data.

    Args:
        results_are_messages: A result is a message of kind "tool" of its own, and each such message is one;
            else parts may be.
        calls_are_messages: A call is a message of its own; else it is a part of what the model said.
        arguments_are_text: What a call asks for is text that holds JSON; else an object.
        result_frame: What is charged around the text of a result, where that is written as JSON.
        results_follow_call: Every result stands directly after the message with its call (other results
            between).
        results_lead: Results stand before all else in what answers a turn's calls, though they are parts of
            it.
        results_in_one: All results of one turn's calls stand in the one message behind it; `join_results`
            puts them there.
        takes_apart: They may also stand in several messages right behind it, though they are not put so.
        system_in_messages: System text stands among the messages; else the request holds it apart.
        parts_key: The key of a message that holds its parts.
        parts_listed: They are a list in every message: where one holds a text there, the shapes of others
            tell nothing.
        lifts_system: No message at the front may have the role "system". `Context` and `Session` put their
            text into the request. `fit` keeps what it was given, and `validate` tells.
        binds_messages: A message may be bound to the one after it.
        users_stand_alone: A message of kind "user" neither calls, answers nor is bound to another.
        ordered: Not every message may stand behind every other, or come first; see `Format.order_fault`.
        keeps_messages: Some messages may not leave; see `Structure.kept`.
        body_key: The key of a request body that holds its messages.
        system_key: The key of a request body that holds its system text, where it does not stand among the
            messages.
        body_marks: Keys of a request body that occur in this wire form only.
        mark_keys: Keys by which a part marks the end of a prefix for the provider's prompt cache; none: no
            form of it.
        orphan_result: What the provider answers to a result without its call; `{call_id}` and `{index}` are
            filled in.
        unanswered_call: What the provider answers to a call without its result.
        late_result: What the provider answers to a result that does not follow its call.
        repeated_result: What the provider answers to a second result for one call.
        stray_result: What it answers to a result among those of a call, if not the same as to an orphan
            elsewhere.
        words_by_type: What it answers instead to an orphan result or an unanswered call, by the `type` of its
            message.
        unnamed_prefix: How ids begin that the form makes up itself for results without one, beside `UNNAMED`.
        unchecked_prefix: Call ids that begin so are pairs the provider itself does not check.
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
    """A request body taken apart: its messages and what is charged beside them.

    Args:
        messages: The messages, as the body holds them.
        system: System text outside the messages, where the wire form keeps it there.
        tools: Tool schemas, and any output schema, as the body holds them.
        body: The body itself; None if the input was a plain list.
        key: The body's key that holds the messages.
        elsewhere: True if the conversation goes on from messages the provider has stored: calls may be among
            those.
        extra: Other charged parts of the body by key (an output schema under "response_format").
        unseen: What the provider reads beside the body, which only names it; a phrase each.
        unsure: What the body asks for and may cost a little that no rule says; a phrase each.
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

    A form of your own derives from this class, or from a shipped form it is nearly like, and overrides what
    differs. What is abstract every form says for itself; all else has a default that is right for a form
    without calls of tools.

    `messages` are dicts here (see `mapping_of`); editing takes and returns the caller's own objects.
    There is one object of a registered form in a process: copies and pickles come back to it.
    """

    name: str
    """What the form is called, in `format=` and in reports."""
    title: str = ""
    """What errors call it, if not by its name."""
    rules: Rules = Rules()
    """What it demands of a conversation."""
    write_json: Callable[[Any], str] = staticmethod(compact_json)
    """Writes what a message holds as an object, to be counted: arguments of calls, what a tool returned."""
    _write_sent: Callable[[Any], str] = staticmethod(ascii_json)
    """Writes the same where a framework sends it as text in another wire form, as LiteLLM does: others leave
    what is not ASCII as it is, which is shorter."""
    _sent: Format | None = None
    """The form in which what is read here is sent, where that has rules of order and this one has none."""

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
    """The model by which it is told what is refused; "" where none is named. See `for_model`."""

    def for_model(self, model: str | None, /) -> Format:
        """Return the form as a model takes it, of whose faults alone it is asked.

        Models of one provider refuse different things; where none is named, it is the form itself, and what
        only some refuse is no fault.

        Args:
            model: Name of the model, as it is asked for.
        """
        return self._with({"model": model}) if model else self

    def _model_of(self, request: Request | None) -> str:
        """Return the model to go by: this form's, or the one that a request names; "" if none is."""
        return self.model or ("" if request is None else request.model)

    # What is there.

    @abstractmethod
    def kind(self, message: Dict, /) -> Kind:
        """Tell whom one message is from, reading as little of it as possible.

        It is "other" for a role nobody knows.

        Args:
            message: The message, as a dict.
        """

    def kinds(self, messages: Sequence[Dict], /) -> list[Kind]:
        """Tell the same of each of many messages.

        Args:
            messages: The messages, as dicts.
        """
        return [*map(self.kind, messages)]

    def scan(self, messages: list[Any], start: int, stop: int, structure: Structure, /) -> None:
        """Read `messages[start:stop]` into the columns of `structure`.

        An entry that is not a plain dict is read by `structure.read_as_dict`. The default reads kinds alone;
        a form with calls fills in `calls` and `answers`, and what else of its messages belongs together.

        Args:
            messages: All messages; entries that are read as dicts are replaced.
            start: The first to read.
            stop: One past the last.
            structure: What was read, to be filled in.

        Raises:
            FormatError: An entry is no message; `.path` says which.
        """
        for index in range(start, stop):
            structure.kinds[index] = self.kind(structure.read_as_dict(messages, index))

    def latest_compaction(self, messages: Sequence[Any], /) -> int:
        """Find the latest message that stands for those before it, and stays; or -1.

        Args:
            messages: The messages as they were given.
        """
        return -1

    def unread(self, messages: Sequence[Any], /, *, compaction: int | None = None) -> range:
        """Tell which messages cost nothing: a compaction is read in their place.

        Args:
            messages: In their order, as they are sent.
            compaction: What `latest_compaction` says of them; None: it is asked.
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
        """Look over and count a descending span in one pass, until the room is passed.

        Fills `sizes` with what the counter's `count_message` says of each. Walks that go on from each other
        take the same `structure`. What a walk notes there is what `scan` of all messages would say, as far as
        what was read tells, so that nothing older and no part of it has to be scanned:

        * `bound`: a message bound to the one after it. Both were read when it is noted, and at times older
          ones have to be: of the messages of one turn all is known once its first message was read.
        * `behind`: results read since the last message that answers nothing. What remains there when the
          walk is over answers no message that was read.
        * `unanswered`: messages with a call which no result directly behind answers. Behind calls that are
          bound to one another stand the results of all of them.
        * `odd`: where this does not tell what belongs together. A result that does not stand directly behind
          its call is noted at the nearest message before it that is none, or at the first of all; a message
          whose parts belong to several units, and one that `scan` takes for more than calls, results and
          words, at itself. From the user message before it that stands alone to the next is for `scan`.
        * `foreign`, `replaced`: a message looked like one of another form; entries that were no dict.
        * `kinds_back`, `callers`: each message's `kind`, and whether it calls; of none, where that is cheap.

        Args:
            messages: All messages; entries that are read as dicts are replaced.
            span: Positions to read, each one less than the one before.
            room_tokens: Where to end: at the message by which it is passed.
            sizes: Tokens by position, to be filled in; None where nothing is known.
            structure: What the walk notes.
            prices: What the counter charges.

        Returns:
            The last position read, one past the first of an empty span; None if the form does not count so.
        """
        return None

    def is_foreign(self, message: Dict, /) -> bool:
        """Tell a form that counts as it reads whether a message is of another.

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
            kind: The kind that is looked for.
            after: The position before the first that may be it.
            index: The last that may be it.
        """
        for at in range(index, after, -1):
            message = messages[at]
            if self.kind(message if type(message) is dict else entry_of(messages, at)) == kind:
                return at
        return -1

    def order_fault(self, previous: Dict | None, message: Dict, /, *, parted: bool = False) -> str | None:
        """Say what the provider answers to a message directly behind another.

        None where it takes it. Leading system messages are passed over; None for `previous` is the beginning.
        Asked only where `Rules.ordered` says that there is such a rule.

        Args:
            previous: The message before it.
            message: The message.
            parted: They were apart: other messages between them were evicted. What a provider takes only
                sometimes is not made anew.
        """
        if self._sent is None or previous is not None or not parted or self.kind(message) == "user":
            return None  # where a framework sends what is given it may put a user's message in front
        return self._sent.order_fault(None, self._sent.message("assistant", ["-"]), parted=True)

    def thinking_rules(self, model: str | None, body: Mapping[str, Any] | None, /) -> Thinking:
        """Say what a model asks of thinking that is sent back to it: nothing.

        Args:
            model: Its name, if it is known.
            body: The request body, if there is one: its settings decide, too.
        """
        return Thinking()

    def without_thinking(self, message: Any, /) -> Any | None:
        """Return a shallow copy of the caller's message without its thinking.

        None if nothing remains; the message itself where it has none. Asked only where thinking is bound.

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
        """Say what a message is to the turn of the model's it stands in.

        Asked only where a turn may have to begin with thinking.

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
        """List what of a message is charged for.

        Args:
            message: The message, as a dict.

        Raises:
            FormatError: A field is nested too deep, or in a circle, to be written as JSON.
        """

    def weight(self, message: Dict, /) -> tuple[int, int]:
        """Return the bytes of a message's texts and call arguments, and its calls.

        It tells how much of a conversation a message is without asking a counter; of the calls, how many.

        Args:
            message: The message, as a dict.
        """
        pieces = self.pieces(message)
        if not pieces.calls and (slots := self.texts(message)):
            return sum([bytes_of(slot.text) for slot in slots]), 0
        written = (*pieces.texts, *(arguments for _, arguments in pieces.calls))
        return sum(map(bytes_of, written)), len(pieces.calls)

    def weights(self, messages: Sequence[Dict], /) -> list[float]:
        """Return of each of many messages, by the same, how much of a stride it takes.

        Args:
            messages: The messages, as dicts.
        """
        return [
            size / BYTES_PER_TOKEN + MESSAGE_WEIGHT + CALL_WEIGHT * calls
            for size, calls in map(self.weight, messages)
        ]

    def tool_names(self, message: Dict, /) -> dict[str, str]:
        """Map the call ids of a message to the names of the tools called.

        Args:
            message: The message, as a dict.
        """
        return {}

    def origins(self, message: Dict, /) -> Origins:
        """Tell who said what a message holds (SPEC E14).

        A message of the user's may hold the output of a tool, or a document; the default goes by `kind`, and
        by the files of a user message.

        Args:
            message: The message, as a dict.
        """
        whose = ORIGIN_OF[self.kind(message)]
        if whose == "user" and any(one.kind == "file" for one in self.pieces(message).media):
            return frozenset(("user", "document"))
        return frozenset((whose,))

    @abstractmethod
    def matches(self, message: Dict, /) -> bool:
        """Tell whether a message has a shape that occurs in this wire form only.

        Args:
            message: The message, as a dict. Which keys it may tell them by, `told_by` says.
        """

    def faults(self, messages: list[Any], request: Request | None = None, /) -> list[Fault]:
        """List what the provider would refuse in the shape of messages, in order.

        Pairs of calls and results are not looked at here: `Rules` has the words for these.

        Args:
            messages: The messages, as dicts.
            request: What they stand in, if more is known than a list: the body they came in, whose settings
                decide too, and which may not be without messages; or system text and tools beside a list.
        """
        return []

    def mend(self, message: Dict, /) -> Dict | None:
        """Return a message of a refused shape as the provider takes it, if that can be.

        Nothing is made up and nothing said is lost: a text without words leaves, a text that stands where a
        part must is made one, arguments are written as the provider reads them. What cannot be mended so
        stays as it is, for `faults` to tell.

        Args:
            message: The message, as a dict; it is not changed.

        Returns:
            A dict, the same one if nothing can be mended; None if the message says nothing.
        """
        return message

    def transcript(self, message: Dict, /) -> str:
        """Write a message for reading: whose it is, and its text, calls or result.

        Args:
            message: The message, as a dict.
        """
        found = self.pieces(message)
        return f"{(found.role or 'unknown').upper()}: " + "\n".join((*found.texts, *found.beside))

    def full_text(self, message: Dict, /) -> str:
        """Return all that a message says, to be searched.

        Texts, results, calls with their arguments, reasoning that can be read.

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
            message: The caller's own: a dict, or an object of an SDK.
            texts: The new texts, by the path of `TextSlot`.
        """
        return with_values(message, texts)

    def without_parts(self, message: Any, parts: Sequence[int], /) -> Any:
        """Return a shallow copy of the caller's message without those parts.

        Args:
            message: The caller's own: a dict, or an object of an SDK.
            parts: Positions of the parts that leave.
        """
        held = as_list(item_of(message, self.rules.parts_key))
        if held is None or not parts:
            return message
        return with_values(message, {(self.rules.parts_key,): without_indices(held, frozenset(parts))})

    def without_calls(self, message: Any, call_ids: frozenset[str], /) -> Any | None:
        """Return a shallow copy without those calls; None if nothing would remain.

        Args:
            message: The caller's own: a dict, or an object of an SDK.
            call_ids: Ids of the calls that leave.
        """
        return message

    def join_results(self, message: Any, other: Any, /) -> Any:
        """Return a copy with the results of `other` behind those of `message`.

        Where a result is a message of its own nothing is joined, and the message itself comes back.

        Args:
            message: The caller's own: a dict, or an object of an SDK.
            other: The message whose results are put behind.
        """
        return message

    def with_role(self, message: Any, role: str, /) -> Any:
        """Return a shallow copy of the caller's message with another role.

        Args:
            message: The caller's own: a dict, or an object of an SDK.
            role: The new role, as the wire form calls it.
        """
        return with_values(message, {("role",): role})

    def with_text(self, message: Any, text: str, /) -> Any:
        """Return a shallow copy of the caller's message with one text for content.

        Args:
            message: The caller's own: a dict, or an object of an SDK.
            text: The new content.
        """
        return with_values(message, {(self.rules.parts_key,): text})

    def with_cache_control(self, message: Any, value: Any, /) -> Any:
        """Return a shallow copy that ends a prefix for the provider's prompt cache.

        The message itself comes back where nothing in it can be marked.

        Args:
            message: The caller's own: a dict, or an object of an SDK.
            value: The mark, as in `{"type": "ephemeral"}`.
        """
        return message

    def mark_last(self, parts: Any, value: Any, /) -> Any:
        """Return system text or tools whose last part ends a cached prefix.

        What was given comes back where nothing in it can be marked, or the form has no marks there.

        Args:
            parts: System text or tools, as they are sent.
            value: The mark, as in `{"type": "ephemeral"}`.
        """
        return parts

    def most_marks(self, model: str | None, /) -> int:
        """Return how many marks a request may have; 0 where a cache needs none.

        Args:
            model: Name of the model; of one that is not known all that the form has are taken.
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

        For one that was refused, since thinking is of another conversation. Where a turn that goes on would
        have to begin with thinking, that is switched off. None if it holds none.

        Args:
            body: The body, as it is sent.
            known: Which leaves, by `thinking_key`; None: all of it.
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
        """List the marks for a prompt cache in a message, system text or tools.

        Args:
            value: A message, system text or tools, as they are sent.
        """
        return list(marks_in(value, self.rules.mark_keys))

    @abstractmethod
    def redact(self, message: Dict, /) -> Dict:
        """Return a message that says nothing any more and is as valid as it was.

        What stays is whose it is, and which calls it makes or answers.

        Args:
            message: The message, as a dict.
        """

    # Made new.

    @abstractmethod
    def message(self, role: str, parts: Sequence[Any], /) -> Dict:
        """Make a message of texts and ready-made parts.

        Args:
            role: Whose it is, as the wire form calls it.
            parts: Texts, and parts as the wire form has them.
        """

    def tool_schema(self, name: str, /, *, description: str, parameters: Dict) -> Dict:
        """Write a function as the tools of a request hold it.

        Args:
            name: Its name.
            description: What the model is told of it.
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

        System text and tools that were given beside it go into it. Without a body the list itself comes back.

        Args:
            request: The body taken apart, as `read_request` gave it.
            messages: The messages that go into it.
        """
        if request.body is None:
            return messages
        written: Dict = {**request.body, request.key: messages}
        key, apart = self.rules.system_key, not self.rules.system_in_messages
        if apart and request.system is not None and request.system is not request.body.get(key):
            written[key] = request.system
        return {**written, "tools": request.tools} if request.tools else written

    def lift_system(self, messages: Sequence[Any], system: Any, /) -> Any:
        """Return a request's system text with that of system messages behind it.

        For wire forms that know no such message (`Rules.lifts_system`); others return `system`.

        Args:
            messages: The messages as they were given.
            system: System text of the request, if it has any.
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
"""What `system=` takes: a text, a part as the wire form has it, or a list of these."""
