"""`OpenAISummarizer`, `OpenAIFactExtractor`: a chat model behind an OpenAI-compatible endpoint.

Needs extra `openai`. Connections, retries with their pauses, and timeouts are the openai client's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, NoReturn, TypeVar

from trimtab._shared.checks import check_whole, number_of
from trimtab._shared.lazy import package_of
from trimtab.budget import Budget, window_budget
from trimtab.counting import CounterLike, EstimateCounter, counter_for
from trimtab.counting.door import as_counter
from trimtab.errors import ConfigurationError, CopyError, SummaryError, UnknownNameError
from trimtab.models import facts_for
from trimtab.strategies.fact_extractor import Fact, FactRequest
from trimtab.strategies.summarizer import SummaryRequest
from trimtab.summaries.prompt import (
    FACT_INSTRUCTIONS,
    INSTRUCTIONS,
    FactPrompt,
    Prompt,
    Request,
    SummaryPrompt,
)

if TYPE_CHECKING:
    from openai import AsyncOpenAI, OpenAI

LimitParameter = Literal["max_tokens", "max_completion_tokens"]
"""What an endpoint calls the most tokens it may answer."""

Client = TypeVar("Client", "OpenAI", "AsyncOpenAI")
T = TypeVar("T")

KIND_WEIGHTS: Mapping[str, float] = {
    "name": 2.0,
    "limit": 2.0,
    "preference": 2.0,
    "decision": 1.0,
    "value": 1.0,
    "question": 1.0,
    "other": 0.5,
}
"""What a fact is worth, by the kind that the model names: a number of its own would differ from answer to
answer. Users miss most what they told once about themselves, and do not say again (design/025-facts.md)."""

_FACT: Mapping[str, Any] = {
    "text": {"type": "string"},
    "kind": {"type": "string", "enum": list(KIND_WEIGHTS)},
    "sources": {"type": "array", "items": {"type": "integer"}},
    "supersedes": {"type": ["integer", "null"]},
}
_FACTS: Mapping[str, Any] = {
    "facts": {
        "type": "array",
        "items": {
            "type": "object",
            "properties": _FACT,
            "required": list(_FACT),
            "additionalProperties": False,
        },
    },
    "again": {"type": "array", "items": {"type": "integer"}},
}
FACTS_FORMAT: Mapping[str, Any] = {
    "type": "json_schema",
    "json_schema": {
        "name": "facts",
        "strict": True,
        "schema": {
            "type": "object",
            "properties": _FACTS,
            "required": list(_FACTS),
            "additionalProperties": False,
        },
    },
}
"""What an answer with facts looks like."""


class ChatEndpoint(Generic[Client, Request]):
    """A model behind an endpoint: the request body, and how its answer is read."""

    _client_name: ClassVar[str]
    _prompt_kind: ClassVar[type[SummaryPrompt] | type[FactPrompt]]
    _instructions: ClassVar[str]
    _what: ClassVar[str]
    """The name of the answer in errors."""
    _extra: ClassVar[Mapping[str, Any]] = {}
    """Additional fields of the request body."""

    # An endpoint has that many settings; all but the model have defaults.
    def __init__(
        self,
        model: str,
        *,
        client: Client | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        budget: Budget | None = None,
        counter: CounterLike | None = None,
        instructions: str | None = None,
        timeout_seconds: float = 60.0,
        max_retries: int = 2,
        limit_parameter: LimitParameter | None = None,
    ) -> None:
        """Make the client, or use the given one.

        Args:
            model: Name of the model, as the endpoint knows it.
            client: The client; timeout and retries below replace its own. None: a new one.
            base_url: URL of a new client. None: OpenAI, or OPENAI_BASE_URL.
            api_key: Key of a new client. None: OPENAI_API_KEY. There is no other default: for a local
                server that needs no key, pass any text.
            budget: The model's window; `output_reserve` is the maximum length of an answer, including
                thinking. None: from the known facts about the model.
            counter: What counts the request. None: the model's own, or an estimate that errs high.
            instructions: The system message, to which instructions of a request are added. None: trimtab's
                own, which also tell the model to treat the conversation as data and not to obey it.
            timeout_seconds: Maximum wait for the endpoint to continue, for each try.
            max_retries: Tries after the first, for temporary errors: no connection, timeouts, status 408,
                409, 429 and 5xx.
            limit_parameter: The endpoint's name for the limit of an answer. None: `max_completion_tokens` for
                OpenAI, whose newer models refuse the other, and `max_tokens` elsewhere, because many servers
                know no other.
        """
        seconds = number_of(timeout_seconds)
        if seconds is None or seconds <= 0:
            raise ConfigurationError(
                f"timeout_seconds must be above 0 and finite, not {timeout_seconds!r}",
                argument="timeout_seconds",
            )
        max_retries = check_whole("max_retries", max_retries, least=0)
        self.name = model
        """The model's name, for reports."""
        kind: Any = self._prompt_kind
        self._prompt: Prompt[Request] = kind(
            instructions=self._instructions if instructions is None else instructions,
            budget=_budget_of(model, budget),
            counter=_counter_of(model) if counter is None else as_counter(counter),
        )
        options: dict[str, Any] = {"timeout": seconds, "max_retries": max_retries}
        given: dict[str, Any] = {"base_url": base_url, "api_key": api_key}
        self.client: Client = self._client_of(client, given, options)
        """The client that asks; close it when you are done, if you did not bring your own."""
        self._limit_parameter = limit_parameter or (
            "max_completion_tokens" if self.client.base_url.host.endswith(".openai.com") else "max_tokens"
        )

    def __repr__(self) -> str:
        """Name the model."""
        return f"{type(self).__name__}({self.name!r})"

    def __reduce__(self) -> NoReturn:
        """Refuse to be copied or pickled: a client holds connections and locks.

        Raises:
            CopyError: Always, with what to write instead.
        """
        name = type(self).__name__
        raise CopyError(
            f"{name} has a client, and cannot be copied or pickled: make it where it is used, with"
            f" {name}({self.name!r})"
        )

    def messages(self, request: Request, /) -> list[dict[str, Any]]:
        """Return the messages that are sent for a request; they fit the window.

        Args:
            request: The request to the summarizer or fact extractor.

        Raises:
            BudgetExceededError: Instructions and known content alone do not fit the window.
            FormatError: An entry to read is not a message.
            CountingError: The counter failed or returned something that is not a count.
        """
        return self._prompt.messages(request)

    def _body(self, request: Request) -> dict[str, Any]:
        # The limit is the whole room, not the tokens asked for in words: a reasoning model thinks within
        # it, and an answer that runs into it is cut off and of no use.
        limit = self._prompt.budget.output_reserve
        body = {"model": self.name, "messages": self.messages(request), self._limit_parameter: limit}
        return {**body, **self._extra}

    def _text_of(self, answer: Any) -> str:
        choices = getattr(answer, "choices", None)
        if not choices:
            raise SummaryError(f"{self.name} returned no choice")
        message, reason = choices[0].message, choices[0].finish_reason
        if message.refusal:
            raise SummaryError(f"{self.name} refused to write {self._what}")
        if reason == "length":
            limit = self._prompt.budget.output_reserve
            raise SummaryError(
                f"{self.name} was cut off at {limit} tokens: raise output_reserve of its budget"
            )
        text: str = (message.content or "").strip()
        if not text:
            raise SummaryError(f"{self.name} returned no text (finish_reason {reason})")
        return text

    def _client_of(self, client: Client | None, given: dict[str, Any], options: dict[str, Any]) -> Client:
        package: Any = package_of("openai", package="openai", needed_by=type(self).__name__)
        kind: type[Client] = getattr(package, self._client_name)
        if client is not None:
            if any(value is not None for value in given.values()):
                raise ConfigurationError(
                    "a client has its own base_url and api_key: pass either these or client="
                )
            if not isinstance(client, kind):
                raise ConfigurationError(
                    f"{type(self).__name__} takes an openai.{self._client_name}, not {type(client).__name__}"
                )
            return client.with_options(**options)
        try:
            return kind(**given, **options)
        except package.OpenAIError as error:
            raise ConfigurationError(
                f"no client for {self.name}: {error} For a server that needs no key, pass api_key='none'."
            ) from error


class _Summaries(ChatEndpoint[Client, SummaryRequest]):
    _prompt_kind = SummaryPrompt
    _instructions = INSTRUCTIONS
    _what = "a summary"


class _Facts(ChatEndpoint[Client, FactRequest]):
    _prompt_kind = FactPrompt
    _instructions = FACT_INSTRUCTIONS
    _what = "facts"
    _extra: ClassVar[Mapping[str, Any]] = {"response_format": FACTS_FORMAT}

    def _facts_of(self, answer: Any, request: FactRequest) -> list[Fact]:
        text = self._text_of(answer)
        try:
            data = json.loads(text)
            again = _by_number(request.known, data.get("again") or ())
            found = [_fact_of(row, request) for row in data["facts"]]
            return found + [Fact(text=one.text, weight=one.weight) for one in again]
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise SummaryError(
                f"{self.name} did not return a list of facts in JSON ({type(error).__name__})"
            ) from error


def _fact_of(row: Mapping[str, Any], request: FactRequest) -> Fact:
    """Read a fact of an answer; a number that names nothing is passed over."""
    at = row.get("supersedes")
    known = _by_number(request.known, [] if at is None else [at])
    sources = _by_number(request.ids, row.get("sources") or ())
    kind = row.get("kind")
    kind = kind if isinstance(kind, str) and kind in KIND_WEIGHTS else None
    return Fact(
        text=str(row["text"]),
        sources=sources,
        supersedes=known[0].text if known else None,
        weight=1.0 if kind is None else KIND_WEIGHTS[kind],
        kind=kind,
    )


def _by_number(listed: Sequence[T], numbers: Sequence[Any]) -> list[T]:
    return [listed[one - 1] for one in numbers if type(one) is int and 0 < one <= len(listed)]


class OpenAISummarizer(_Summaries["OpenAI"]):
    """Summaries by a chat model, requested through the `openai` package.

    The conversation is sent as data, in one user message that fits the model's window; if the oldest messages
    or the middle of long ones had to be omitted, the prompt says so. Exceptions of the client pass through,
    and a fit treats them as a failed summary.

    Raises:
        MissingExtraError: The package is not installed.
        ConfigurationError: There is no key or no known window, a number is out of range, or the client is
            async.

    Example:
        >>> from trimtab import Budget
        >>> OpenAISummarizer("llama3.2", base_url="http://127.0.0.1:11434/v1", api_key="none",
        ...                  budget=Budget(8_192, output_reserve=1_000))
        OpenAISummarizer('llama3.2')
    """

    _client_name = "OpenAI"

    def summarize(self, request: SummaryRequest, /) -> str:
        """Ask the model for a summary, and wait.

        Raises:
            SummaryError: The model refused, wrote nothing, or was cut off.
            BudgetExceededError: Instructions and summary so far alone do not fit the window.
        """
        return self._text_of(self.client.chat.completions.create(**self._body(request)))


class AsyncOpenAISummarizer(_Summaries["AsyncOpenAI"]):
    """`OpenAISummarizer` with an `AsyncOpenAI` client, for `afit`.

    Cancelling the task that awaits it ends the request.
    """

    _client_name = "AsyncOpenAI"

    async def summarize(self, request: SummaryRequest, /) -> str:
        """Ask the model for a summary.

        Raises:
            SummaryError: The model refused, wrote nothing, or was cut off.
            BudgetExceededError: Instructions and summary so far alone do not fit the window.
        """
        return self._text_of(await self.client.chat.completions.create(**self._body(request)))


class OpenAIFactExtractor(_Facts["OpenAI"]):
    """Facts by a chat model, requested through the `openai` package as JSON.

    The messages are sent as data, as `OpenAISummarizer` sends them, each with a number, together with the
    known facts. The model names the kind of each fact: a name, a limit or a preference weighs 2, a fact of
    the kind "other" 0.5, and any other fact 1.

    Retries and timeouts are the client's; an answer that is not JSON of that schema is an error.

    Raises:
        MissingExtraError: The package is not installed.
        ConfigurationError: There is no key or no known window, a number is out of range, or the client is
            async.

    Example:
        >>> from trimtab import Budget
        >>> OpenAIFactExtractor("llama3.2", base_url="http://127.0.0.1:11434/v1", api_key="none",
        ...                     budget=Budget(8_192, output_reserve=1_000))
        OpenAIFactExtractor('llama3.2')
    """

    _client_name = "OpenAI"

    def extract(self, request: FactRequest, /) -> list[Fact]:
        """Ask the model for facts, and wait.

        Raises:
            SummaryError: The model refused, was cut off, or did not write a list of facts.
            BudgetExceededError: Instructions and known facts alone do not fit the window.
        """
        return self._facts_of(self.client.chat.completions.create(**self._body(request)), request)


class AsyncOpenAIFactExtractor(_Facts["AsyncOpenAI"]):
    """`OpenAIFactExtractor` with an `AsyncOpenAI` client, for `aadd`.

    Cancelling the task that awaits it ends the request.
    """

    _client_name = "AsyncOpenAI"

    async def extract(self, request: FactRequest, /) -> list[Fact]:
        """Ask the model for facts.

        Raises:
            SummaryError: The model refused, was cut off, or did not write a list of facts.
            BudgetExceededError: Instructions and known facts alone do not fit the window.
        """
        return self._facts_of(await self.client.chat.completions.create(**self._body(request)), request)


def _budget_of(model: str, budget: Budget | None) -> Budget:
    if budget is None:
        budget = window_budget(facts_for(model))
        if budget is None:
            raise ConfigurationError(f"the window of {model!r} is not known: pass budget=", argument="budget")
    if not isinstance(budget, Budget) or not budget.output_reserve:
        raise ConfigurationError(
            "budget must reserve room for the answer, as in Budget(8_192, output_reserve=1_000), not"
            f" {budget!r}",
            argument="budget",
        )
    return Budget.of(budget, model=model)


def _counter_of(model: str) -> Any:
    try:
        return counter_for(model)
    except UnknownNameError:
        return EstimateCounter()
