"""What was recorded of a conversation: its model calls in order, from messages, bodies, a log or spans."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, takewhile
from typing import Any, TypeAlias

from trimtab._shared.checks import BODY_KEYS, is_number, is_whole
from trimtab.errors import ConfigurationError, FormatError
from trimtab.formats import ForeignConversation, Format, format_of, get_format, leading_system, read_foreign
from trimtab.formats.foreign import FORMS
from trimtab.formats.values import entry_of
from trimtab.replay.datasets import Conversation, conversations_in
from trimtab.stores import Event

Messages: TypeAlias = Sequence[Any]
"""Messages of any wire form."""

_SHAPE = '{"at": 12, "evidence": [3, 5]} or {"text": "Where is it?", "evidence": [3, 5]}'

_Refusal: TypeAlias = type[ConfigurationError] | type[FormatError]
"""What is raised of times and questions: an argument is wrong, or what was recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCall:
    """One call of a model, as it would be made without trimming.

    Args:
        messages: All messages of the call.
        system: System text outside the messages.
        tools: Tool schemas.
        time: When it was made, in seconds on any clock; None: unknown.
        cold: Whether the provider's cache was empty, if a bill says so; None: the time decides.
        answer: What the model answered, where messages are recorded behind the call; otherwise the next call
            says it, if it goes on from this one.
    """

    messages: Messages
    system: Any = None
    tools: Any = None
    time: float | None = None
    cold: bool | None = None
    answer: Messages = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question whose answer is known to be in certain messages.

    Args:
        evidence: Positions of the messages that the answer needs, all of them before `at`.
        at: Position of the message that asks. If there is `text`: the minimum number of messages before it;
            None: all of them.
        text: The question, if no message of the conversation asks it: it is asked outside the conversation,
            does not change it, and is not billed.
        answer: The words of the answer, if known: a summary or a fact counts if it has these words in
            addition to the question's.
    """

    evidence: tuple[int, ...]
    at: int | None = None
    text: str | None = None
    answer: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Canary:
    """A text of a user that has to stay in view word for word.

    Args:
        kind: "rule", "limit", "preference", "name" or "id" of one that was planted; "rule", "limit",
            "preference" or "value" of one that the user says in the recording.
        text: What is looked for: a whole sentence, or the value alone.
        at: Position of the message that says it.
    """

    kind: str
    text: str
    at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """A recorded conversation.

    Args:
        calls: Its model calls, in order.
        format: The wire form.
        questions: Questions with known evidence; positions are among the messages of the last call.
        lead: How many of those messages come before the first position: the caller's system text.
        notes: What was omitted from the source, and why.
        canaries: Texts that have to stay in view; their positions are like those of questions.
    """

    calls: tuple[ModelCall, ...]
    format: Format
    questions: tuple[Question, ...] = ()
    lead: int = 0
    notes: tuple[str, ...] = ()
    canaries: tuple[Canary, ...] = ()

    @property
    def messages(self) -> Messages:
        """The messages of the last call: all of them, unless some were dropped earlier."""
        return self.calls[-1].messages if self.calls else ()


def read_recording(
    source: Any,
    /,
    *,
    format: str | Format = "auto",
    model: str | None = None,
    system: Any = None,
    tools: Any = None,
    times: Sequence[float | None] | None = None,
    questions: Iterable[Question] = (),
) -> Recording:
    """Read a recorded conversation.

    A list of messages, or one body with all of them, is played from its beginning: a model was called before
    each of its messages, and once more at the end if the last message is not its own.

    Args:
        source: A list of messages in any wire form; a request body; a list of bodies, one per call; events of
            a session's log or a snapshot of one; a recording of another program, as `read_foreign` of
            `trimtab.formats` takes it; or LoCoMo or BEAM with one conversation. A mapping may have `times`
            and `questions` next to its messages.
        format: Name of the wire form; "auto" decides by the shapes that occur.
        model: Decides the wire form of a list that could be in several.
        system: System text outside the messages, if the source has none. If the wire form keeps it among
            them, each call begins with it; positions are those of the original messages.
        tools: Tool schemas, if the recording has none.
        times: The time of each message in seconds, one per message. None: unknown.
        questions: Questions with known evidence.

    Raises:
        FormatError: The source is none of these, has no call, or has several conversations; or its times or
            questions do not match its messages.
        ConfigurationError: The given times or questions do not match the messages.

    Example:
        >>> from trimtab.replay import read_recording
        >>> chat = [{"role": "user", "content": "2 + 2?"}, {"role": "assistant", "content": "4"},
        ...         {"role": "user", "content": "And 3 + 3?"}]
        >>> [len(call.messages) for call in read_recording(chat).calls]
        [1, 3]
    """
    asked = tuple(questions)
    source, notes = _only_one(source, format)
    if isinstance(source, Recording):
        return _with_check(replace(source, questions=asked or source.questions), ConfigurationError)
    calls = list[ModelCall]()
    wrong_times: _Refusal = FormatError if times is None else ConfigurationError
    if isinstance(source, ForeignConversation):
        notes, times = source.notes, (source.times or None) if times is None else times
        format = source.format if format == "auto" else format
        calls = [
            ModelCall(messages=one.messages, tools=one.tools, time=one.time, cold=one.cold)
            for one in source.calls
        ]
        source = source.body
    messages: Messages | None = None  # of the whole conversation, where its calls have to be found
    wrong_questions: _Refusal = ConfigurationError if asked else FormatError
    if calls:
        form = format_of(calls[-1].messages, format, model)
        calls = [_with_beside(call, form, system, tools) for call in calls]
    elif _is_log(source):
        messages, times, options = _messages_in(source["events"] if isinstance(source, Mapping) else source)
        form = format_of(messages, options.get("format", "auto") if format == "auto" else format, model)
        system = system if options.get("system") is None else options["system"]
        tools = tools if options.get("tools") is None else options["tools"]
    elif _is_bodies(source):
        form = format_of(source[-1], format, model)
        calls = [_call_of(form, body) for body in source]
    elif isinstance(source, Mapping):
        form = format_of(source, format, model)
        request = form.read_request(source)
        messages = list(request.messages)
        times = source.get("times") if times is None else times
        asked = asked or _questions(source.get("questions"))
        system = system if request.system is None else request.system
        tools = tools if request.tools is None else request.tools
    elif isinstance(source, Sequence) and not isinstance(source, str | bytes):
        form, messages = format_of(source, format, model), list(source)
    else:
        raise FormatError(f"a recording must be a list or a mapping, not {type(source).__name__}")
    lead = 0
    if messages is not None:
        _check_times(times, len(messages), wrong_times)
        calls = _calls(messages, form, system, tools, times, asked)
        lead = len(leading_system(system, form))
    if not calls:
        raise FormatError("it has no model call to replay")
    found = Recording(calls=tuple(calls), format=form, questions=asked, lead=lead, notes=notes)
    return _with_check(found, wrong_questions)


def read_recordings(source: Any, /, **options: Any) -> dict[str, Recording]:
    """Read all conversations of a source, by name.

    Args:
        source: A file of LoCoMo or BEAM as parsed from JSON, which has questions with known evidence; a
            recording of another program, as `read_foreign` of `trimtab.formats` takes it; or anything
            that `read_recording` reads, which is one conversation without a name.
        **options: As for `read_recording`.

    Raises:
        FormatError: The source is none of these; the error says what is wrong in which conversation.

    Example:
        >>> from trimtab.replay import read_recordings
        >>> turns = [{"speaker": "Ann", "dia_id": "D1:1", "text": "My cat is Tom."},
        ...          {"speaker": "Bo", "dia_id": "D1:2", "text": "Nice."}]
        >>> talk = {"speaker_a": "Ann", "speaker_b": "Bo", "session_1": turns}
        >>> qa = [{"question": "How is Ann's cat called?", "answer": "Tom", "evidence": ["D1:1"]}]
        >>> recordings = read_recordings([{"sample_id": "talk-1", "conversation": talk, "qa": qa}])
        >>> recordings["talk-1"].questions
        (Question(evidence=(0,), at=None, text="How is Ann's cat called?", answer='Tom'),)
    """
    found = _conversations(source, options.get("format", "auto"))
    return {name: read_recording(one, **options) for name, one in found}


def _conversations(source: Any, format: str | Format) -> list[tuple[str, Conversation]]:
    """List the conversations of a file of LoCoMo or BEAM, or of another program; all else is one."""
    conversations = conversations_in(source)
    if conversations is not None:
        return [*conversations.items()]
    is_ours = format == "auto" or get_format(format).name in FORMS  # else it is a form of the caller's own
    foreign = read_foreign(source) if is_ours else None
    if foreign is None:
        return [("", Conversation(source))]
    return [(one.name, Conversation(one)) for one in foreign]


def _only_one(source: Any, format: str | Format) -> Conversation:
    """Take the conversation out of a source that has no other; one that was taken out is that."""
    if isinstance(source, Conversation):
        return source
    if isinstance(source, Recording):
        return Conversation(source)
    found = _conversations(source, format)
    if len(found) > 1:
        raise FormatError(f"it has {len(found):,} conversations: use read_recordings")
    return found[0][1] if found else Conversation(source)


def _with_check(recording: Recording, refusal: _Refusal) -> Recording:
    """Name each piece of evidence once.

    Raises:
        ConfigurationError, FormatError: A question does not go with the messages; which, and why.
    """
    count = len(recording.messages) - recording.lead
    for number, question in enumerate(recording.questions):
        why = _why_not(question, count)
        if why is not None:
            raise refusal(f"questions[{number}] {why}")
    once = (replace(one, evidence=tuple(dict.fromkeys(one.evidence))) for one in recording.questions)
    return replace(recording, questions=tuple(once))


def _why_not(question: Question, count: int) -> str | None:
    """Say why a question cannot be asked of so many messages; None: it can."""
    at, evidence = question.at, question.evidence
    if at is None and question.text is None:
        return "has neither `at`, the position of the message that asks, nor a text: give one of them"
    if not evidence:
        return "has no evidence: name the positions of the messages that hold its answer"
    ends = count - (question.text is None)  # beside all messages a text may be asked
    if at is not None and not 0 <= at <= ends:
        return f"has at={at}, position {at} of {count} messages: take one from 0 to {ends}"
    beyond = next((place for place in evidence if not 0 <= place < count), None)
    if beyond is not None:
        return f"has evidence at position {beyond} of {count} messages: take one from 0 to {count - 1}"
    late = next((place for place in evidence if at is not None and place >= at), None)
    if late is not None:
        return f"has evidence at position {late}, and is asked at {at}: leave it out, or ask later"
    return None


def _is_log(source: object) -> bool:
    if isinstance(source, Mapping):
        return "events" in source and not any(key in source for key in BODY_KEYS)
    return isinstance(source, Sequence) and bool(source) and isinstance(source[0], Event)


def _is_bodies(source: object) -> bool:
    if isinstance(source, str | bytes) or not isinstance(source, Sequence) or not source:
        return False
    return all(
        isinstance(one, Mapping) and "role" not in one and "type" not in one
        and any(key in one for key in BODY_KEYS)
        for one in source
    )  # fmt: skip


def _messages_in(events: Iterable[Any]) -> tuple[list[Any], list[float | None], dict[str, Any]]:
    """Take messages and times out of a session's log, or of a snapshot, and the options it last had."""
    messages, times, options = list[Any](), list[float | None](), dict[str, Any]()
    for event in events:
        kind, data, time = (
            (event.kind, event.data, event.time)
            if isinstance(event, Event)
            else (event.get("kind"), event.get("data") or {}, event.get("time"))
        )
        if kind == "message" and data.get("message") is not None:
            messages.append(data["message"])
            times.append(time)
        elif kind == "options" and isinstance(data.get("options"), Mapping):
            options.update(data["options"])
    return messages, times, options


def _call_of(form: Format, body: Mapping[str, Any]) -> ModelCall:
    request = form.read_request(body)
    return ModelCall(messages=list(request.messages), system=request.system, tools=request.tools)


def _with_beside(call: ModelCall, form: Format, system: Any, tools: Any) -> ModelCall:
    """Put system text and tools beside a call that was recorded without them."""
    has_system = bool(call.messages) and form.kind(entry_of(call.messages, 0)) == "system"
    lead = [] if has_system else leading_system(system, form)
    return replace(
        call,
        messages=[*lead, *call.messages],
        system=None if has_system or lead else system,
        tools=tools if call.tools is None else call.tools,
    )


def _check_times(times: Sequence[float | None] | None, count: int, refusal: _Refusal) -> None:
    if times is None:
        return
    is_right = isinstance(times, Sequence) and len(times) == count
    if not is_right or not all(one is None or is_number(one) for one in times):
        raise refusal(f"times must have a number for each message ({count}), or be left out")


def _calls(
    messages: Messages,
    form: Format,
    system: Any,
    tools: object,
    times: Sequence[float | None] | None,
    asked: Sequence[Question],
) -> list[ModelCall]:
    lead = leading_system(system, form)
    is_asked = any(question.text is not None for question in asked)
    return [
        ModelCall(
            messages=[*lead, *messages[:at]],
            system=None if lead else system,
            tools=tools,
            time=times[at - 1] if times else None,
            answer=_answer(messages, form, at, end),
        )
        for at, end in pairwise([*_borders(messages, form, is_asked=is_asked), len(messages)])
    ]


def _answer(messages: Messages, form: Format, start: int, stop: int) -> list[Any]:
    """List what the model said right behind a call."""
    places = range(start, stop)
    said = takewhile(lambda at: form.kind(entry_of(messages, at)) == "assistant", places)
    return [messages[at] for at in said]


def _borders(messages: Messages, form: Format, *, is_asked: bool) -> Iterator[int]:
    """List how many messages stood before each call; items of one answer are one call's.

    Where more is asked beside the conversation, all of it is a call's, too.
    """
    before = ""
    for at in range(len(messages)):
        kind = form.kind(entry_of(messages, at))
        if at and kind == "assistant" and not (before == "assistant" and form.rules.binds_messages):
            yield at
        before = kind
    if messages and (is_asked or before != "assistant"):
        yield len(messages)


def _questions(given: object) -> tuple[Question, ...]:
    """Read questions that a file holds."""
    if given is None:
        return ()
    if not isinstance(given, list):
        raise FormatError(f"questions must be a list of {_SHAPE}, not {given!r:.60}")
    return tuple(_question(number, one) for number, one in enumerate(given))


def _question(number: int, one: object) -> Question:
    given: Mapping[Any, Any] = one if isinstance(one, Mapping) else {}
    at, text, evidence = given.get("at"), given.get("text"), given.get("evidence")
    is_asked = (at is not None or text is not None) and (text is None or isinstance(text, str))
    is_placed = (at is None or is_whole(at)) and isinstance(given.get("answer"), str | None)
    if not (is_asked and is_placed and isinstance(evidence, list) and all(map(is_whole, evidence))):
        raise FormatError(f"questions[{number}] must be {_SHAPE}, not {one!r:.60}")
    return Question(at=at, text=text, evidence=tuple(evidence), answer=given.get("answer"))


def goes_on(before: Messages, after: Messages, /) -> bool:
    """Tell whether a call has all messages of the one before, at its front."""
    pairs = zip(before, after, strict=False)
    return len(after) >= len(before) and all(a is b or a == b for a, b in pairs)
