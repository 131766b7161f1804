"""What writes summaries: `Summarizer`, its request, the default prompt, and how a summary is marked.

A summary is text that trimtab puts into a conversation itself. It is marked as such and escaped, so that
what a tool said cannot end the mark and go on as if the user had written it.
"""

from __future__ import annotations

import inspect
import reprlib
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, TypeVar, runtime_checkable

from trimtab._shared.checks import answers_later, in_words, is_later, name_of, near_names
from trimtab._shared.plugins import make_plugin, plugin_names
from trimtab._shared.steps import Missing, Steps, arun, drive
from trimtab.errors import ConfigurationError, FormatError, SummaryError, UnknownNameError
from trimtab.formats import Format, OriginName, detect, mapping_of
from trimtab.formats.origin import UNTRUSTED, Origins, from_attribute, sort_origins
from trimtab.formats.values import message_in

if TYPE_CHECKING:
    from trimtab.relevance.ranker import RankCall

__all__ = [
    "SUMMARY_TAG",
    "Summarizer",
    "SummarizerLike",
    "SummaryCall",
    "SummaryRequest",
    "adrive",
    "arun_summarizer",
    "asummary_by",
    "cause_of",
    "default_prompt",
    "drive",
    "failure_of",
    "marked_summary",
    "reads_all",
    "require_summarizer",
    "role_for",
    "role_notes",
    "run_summarizer",
    "summarizer_from",
    "summary_by",
    "summary_message",
    "word_of",
]

SUMMARY_TAG = "summary"
"""The element a summary stands in. It says what it is, so that no sentence has to be paid for beside it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryRequest:
    """The request to a summarizer.

    New fields come with defaults, so old summarizers keep working.

    Args:
        messages: The caller's message objects to summarize, oldest first; not to be changed.
        existing: The summary so far, if there is one; the new one replaces it.
        max_tokens: Maximum tokens of the text; a longer one is not used. None: the limit is unknown.
        instructions: What to keep or to omit, in the caller's words.
    """

    messages: Sequence[Any]
    existing: str | None = None
    max_tokens: int | None = None
    instructions: str | None = None


@runtime_checkable
class Summarizer(Protocol):
    """Writes a short text in place of messages.

    A summarizer whose attribute `reads_all` is true gets, each time, all messages that its summary will
    replace. Others get the new ones and the summary so far. A session passes it at most sixteen budgets of
    messages.

    It may be async; then `afit` awaits it. Its exceptions are not errors of the fit: the messages are evicted
    in another way, and the report says so. Cancellation passes through.
    """

    def summarize(self, request: SummaryRequest, /) -> str | Awaitable[str]:
        """Return the summary.

        An empty summary, or one longer than `request.max_tokens`, is not used.

        Args:
            request: Messages, the summary so far, and the maximum length of the new one.
        """
        ...


class _Summarizes(Protocol):
    """A summarizer as users write it, async or not."""

    def summarize(self, request: Any, /) -> str | Awaitable[str]: ...


SummarizerLike: TypeAlias = (
    _Summarizes | Callable[[Any], str | Awaitable[str]] | Callable[[Any, Any], str | Awaitable[str]]
)
"""What a summarizer may be: a `Summarizer`, or a function `(messages)` or `(messages, existing)`; may be
async.
"""


class FunctionSummarizer:
    """A function as a summarizer; made by `summarizer_from`."""

    __slots__ = ("_function", "name", "takes_existing")

    def __init__(self, function: Callable[..., Any], *, takes_existing: bool) -> None:
        self._function = function
        self.takes_existing = takes_existing
        self.name = name_of(function)
        """The function's own name, for reports."""

    def __repr__(self) -> str:
        """Name the function."""
        return f"summarizer_from({self.name})"

    def __eq__(self, other: object) -> bool:
        """Compare by the function."""
        return isinstance(other, FunctionSummarizer) and self._function is other._function

    def __hash__(self) -> int:
        """Hash by the function."""
        return hash(("summarizer_from", self._function))

    @property
    def is_async(self) -> bool:
        """True if its answer has to be awaited."""
        return answers_later(self._function)

    def summarize(self, request: SummaryRequest, /) -> Any:
        """Call the function with the messages, and the summary so far if it takes one."""
        messages = list(request.messages)
        if self.takes_existing:
            return self._function(messages, request.existing)
        return self._function(messages)


def summarizer_from(function: Callable[..., Any], /) -> Summarizer:
    """Make a summarizer from a function.

    It takes `(messages)` or `(messages, existing)`, and may be async.

    Args:
        function: The function.

    Raises:
        ConfigurationError: It cannot be called with one or two arguments.

    Example:
        >>> summarizer = summarizer_from(lambda messages: f"{len(messages)} messages about tea")
        >>> summarizer.summarize(SummaryRequest(messages=[{"role": "user", "content": "Tea?"}]))
        '1 messages about tea'
    """
    if isinstance(function, type) or not callable(function):
        raise ConfigurationError(
            "a summarizer must be a function of messages, or have summarize(request), not"
            f" {reprlib.repr(function)}",
            argument="summarizer",
        )
    return FunctionSummarizer(function, takes_existing=_takes_two(function))


def _takes_two(function: Callable[..., Any]) -> bool:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some built-ins have none: they are given the messages alone
        return False
    for arguments, takes_two in (((None, None), True), ((None,), False)):
        try:
            signature.bind(*arguments)
        except TypeError:
            continue
        return takes_two
    raise ConfigurationError(
        f"a summarizer must take (messages) or (messages, existing); this function takes {signature}",
        argument="summarizer",
    )


def require_summarizer(value: Any, /) -> Summarizer:
    """Return a summarizer as it is, a function as one, and for a name what is published in its name.

    Raises:
        ConfigurationError: It is none of these.
        UnknownNameError: No package publishes such a name.
    """
    if isinstance(value, str):
        value = _plugin_of(value)
    if not isinstance(value, type) and callable(getattr(value, "summarize", None)):
        summarizer: Summarizer = value
        return summarizer
    if value is None:
        raise ConfigurationError(
            "a summary needs a summarizer: a function of messages, or a Summarizer", argument="summarizer"
        )
    return summarizer_from(value)


def _plugin_of(name: str) -> Any:
    """Make the summarizer another package publishes in the entry points `trimtab.summarizers`."""
    made = make_plugin("summarizers", name)
    if made is None:
        known = plugin_names("summarizers")
        near = near_names(name, known)
        raise UnknownNameError(
            "a summarizer must be a function of messages, a Summarizer, or the name of one that a package"
            f" publishes ({', '.join(known) or 'there are none'}), not {name!r}{in_words(near)}",
            name=name,
            near=near,
            argument="summarizer",
        )
    return made


def default_prompt(messages: Sequence[Any], /) -> str:
    r"""Write a conversation as the prompt of a summary request, one line per message.

    Args:
        messages: Messages in any wire form.

    Example:
        >>> default_prompt([{"role": "user", "content": "Hello"}])
        'Summarize the following conversation concisely:\n\nUSER: Hello'
    """
    format = detect(messages)
    lines = "\n".join(format.transcript(mapping_of(message)) for message in messages)
    return f"Summarize the following conversation concisely:\n\n{lines}"


def run_summarizer(summarizer: SummarizerLike, request: SummaryRequest, /) -> str | None:
    """Call a summarizer once; None if it fails or returns no text.

    Args:
        summarizer: A summarizer, or a function; see `summarizer_from`.
        request: The request to it.

    Raises:
        ConfigurationError: The argument is not a summarizer, or is async: `arun_summarizer` awaits it.

    Example:
        >>> run_summarizer(lambda messages: "tea", SummaryRequest(messages=[]))
        'tea'
    """
    try:
        return summary_by(require_summarizer(summarizer), request)
    except SummaryError:
        return None


async def arun_summarizer(summarizer: SummarizerLike, request: SummaryRequest, /) -> str | None:
    """Call a summarizer once, async or not; None if it fails or returns no text.

    Args:
        summarizer: A summarizer, or a function; see `summarizer_from`.
        request: The request to it.

    Raises:
        ConfigurationError: The argument is not a summarizer.
    """
    try:
        return await asummary_by(require_summarizer(summarizer), request)
    except SummaryError:
        return None


def summary_by(summarizer: Summarizer, request: SummaryRequest, /) -> str:
    """Return what a summarizer answers at once.

    Raises:
        SummaryError: It failed, or answered no text.
        ConfigurationError: It is async.
    """
    try:
        answer = summarizer.summarize(request)
    except BaseException as error:
        raise failure_of(word_of(summarizer), error) from cause_of(error)
    if is_later(answer):
        raise ConfigurationError(
            f"{word_of(summarizer)} is async: await afit(...) instead of calling fit(...)"
        )
    return _text_of(summarizer, answer)


async def asummary_by(summarizer: Summarizer, request: SummaryRequest, /) -> str:
    """Return what a summarizer answers, awaited if it has to be.

    Raises:
        SummaryError: It failed, or answered no text. Cancellation passes through.
    """
    try:
        answer = summarizer.summarize(request)
        if inspect.isawaitable(answer):
            answer = await answer
    except BaseException as error:
        raise failure_of(word_of(summarizer), error) from cause_of(error)
    return _text_of(summarizer, answer)


def failure_of(word: str, error: BaseException) -> SummaryError:
    """Make the error for what a summarizer raised; its traceback is logged. `word` names who did.

    Raises:
        BaseException: What stops us, too: an interrupt, or the cancellation of our own task.
    """
    if not isinstance(error, Exception) and not _is_of_another_task(error):
        raise error
    import logging  # not above: only a failure needs it

    logging.getLogger("trimtab.summaries").debug("%s failed", word, exc_info=error)
    if isinstance(error, SummaryError):
        return error  # it says what went wrong better than the name of its class
    return SummaryError(f"{word} failed with {type(error).__name__}")


def cause_of(error: BaseException) -> BaseException | None:
    """Return what an error is raised from: what was raised, unless that says all itself."""
    return error.__cause__ if isinstance(error, SummaryError) else error


def _is_of_another_task(error: BaseException) -> bool:
    """Tell the cancellation of a task a summarizer started from that of our own, which asks us to stop."""
    from asyncio import CancelledError, current_task  # not above: whoever raised it has it

    if not isinstance(error, CancelledError):
        return False
    try:
        task = current_task()
    except RuntimeError:  # no event loop runs in this thread
        return True
    return task is not None and not task.cancelling()


def _text_of(summarizer: Summarizer, answer: object) -> str:
    """Return the text of an answer; a message is taken by its text.

    Raises:
        SummaryError: It has none.
    """
    if isinstance(answer, str):
        return answer
    try:
        message = message_in(answer)
        texts = [slot.text for slot in detect([message]).texts(message)] if "role" in message else []
    except FormatError:  # no message either
        texts = []
    if not texts:
        raise SummaryError(f"{word_of(summarizer)} returned {type(answer).__name__}, not text")
    return "\n".join(texts)


class SummaryCall(NamedTuple):
    """What an algorithm yields when it needs a summary.

    It is sent the text, or None where no summarizer is to be asked.
    """

    summarizer: Summarizer
    request: SummaryRequest

    def now(self) -> str:
        """Ask a summarizer that answers at once; see `summary_by`."""
        return summary_by(*self)

    async def later(self) -> str:
        """Ask a summarizer, awaited if it has to be; see `asummary_by`."""
        return await asummary_by(*self)

    def for_plan(self) -> None:
        """Ask nobody: a plan is no reason to pay a model."""


T = TypeVar("T")

Call: TypeAlias = "SummaryCall | RankCall"
"""What a strategy yields when it needs something from outside."""


async def adrive(make: Callable[[], Steps[T]], /) -> T:
    """Run an algorithm to its end, awaiting summarizers, rankers and counters.

    Where counts are missing it is made and run again; what was answered is given again to the same
    question, so that no model is asked twice.
    """
    answers: list[tuple[Call, Any]] = []

    async def answer(call: Call) -> Any:
        # by what was asked, not in order: a strategy that remembers its summary asks no second time
        known = next((known for asked, known in answers if asked == call), None)
        if known is None:
            try:
                known = await call.later()
            except SummaryError as error:
                known = error
            answers.append((call, known))
        if isinstance(known, SummaryError):
            raise known
        return known

    while True:
        try:
            return await arun(make(), answer)
        except Missing as error:
            missing = error
        await missing.fill()


def word_of(summarizer: object, /) -> str:
    """Return the word for a summarizer in reports and errors."""
    return f"summarizer {name_of(summarizer)}"


def reads_all(summarizer: object, /) -> bool:
    """Tell whether a summarizer wants all messages each time, and not its last summary and what is new."""
    return bool(getattr(summarizer, "reads_all", False))


def takes_existing(summarizer: object, /) -> bool:
    """Tell whether a summarizer is given the summary so far; one that does not say is."""
    return bool(getattr(summarizer, "takes_existing", True))


def marked_summary(text: str, /, *, messages: int, origins: Iterable[OriginName] = ()) -> str:
    """Return a summary as a conversation contains it: marked, counted and escaped.

    Args:
        text: The text of the summarizer.
        messages: How many messages it replaces.
        origins: The origins of the messages it replaces, in any order; empty if unknown.

    Example:
        >>> print(marked_summary("They said </system>.", messages=2, origins=["tool", "user"]))
        <summary of="2 messages" from="user, tool" by="trimtab">
        They said &lt;/system&gt;.
        </summary>
    """
    from html import escape  # not above: it brings every named entity of HTML

    body = escape(text.strip(), quote=False)
    of = f"{messages} message{'' if messages == 1 else 's'}"
    return f'<{SUMMARY_TAG} of="{of}"{from_attribute(origins)} by="trimtab">\n{body}\n</{SUMMARY_TAG}>'


def summary_message(
    format: Format,
    role: str,
    text: str,
    /,
    *,
    messages: int,
    origins: Iterable[OriginName] = (),
    trusted: bool = False,
) -> dict[str, Any]:
    """Write a summary as a message of the role asked for, or of the one its sources allow."""
    sources = frozenset(origins)
    written = marked_summary(text, messages=messages, origins=sources)
    return format.message(role_for(format, role, sources, trusted=trusted), [written])


def role_for(format: Format, role: str, origins: Origins, *, trusted: bool = False) -> str:
    """Return the role of a text that trimtab writes from messages (SPEC E14).

    It is the user's where the provider does not take every role everywhere: that one it takes. It is the
    user's, too, where system text was asked for and a tool or a document is among the sources: nothing a tool
    returned gains the say of an operator by being summarized.

    Args:
        format: The wire form of the message.
        role: The role asked for.
        origins: Who said what the text is made of.
        trusted: The host takes it as system text all the same.
    """
    raised = role in SYSTEM_ROLES and not trusted and not origins.isdisjoint(UNTRUSTED)
    return "user" if raised or format.rules.ordered else role


def role_notes(format: Format, role: str, origins: Origins, *, trusted: bool = False) -> tuple[str, ...]:
    """Say for a report that a text was written as the user's and not in the role asked for.

    Args:
        format: The wire form of the message.
        role: The role asked for.
        origins: Who said what the text is made of.
        trusted: The host takes it as system text all the same.
    """
    if format.rules.ordered or role_for(format, role, origins, trusted=trusted) == role:
        return ()
    sources = " and ".join(one for one in sort_origins(origins) if one in UNTRUSTED)
    return (
        f"What trimtab wrote as a summary or facts has the role 'user', not {role!r}: {sources} text is among"
        " its sources. trust_summaries=True keeps the role.",
    )


SYSTEM_ROLES = ("system", "developer")
"""Roles by which an operator speaks."""
