"""`OpenAISummarizer`: summaries by a chat model behind an OpenAI-compatible endpoint.

Needs extra `openai`. Connections, retries with their pauses, and timeouts are the openai client's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar

from trimtab._shared.checks import check_whole, is_number
from trimtab._shared.lazy import package_of
from trimtab.budget import Budget
from trimtab.counting import CounterLike, EstimateCounter, counter_for
from trimtab.counting.door import as_counter
from trimtab.errors import ConfigurationError, SummaryError, UnknownNameError
from trimtab.models import facts_for
from trimtab.strategies.summarizer import SummaryRequest
from trimtab.summaries.prompt import INSTRUCTIONS, SummaryPrompt

if TYPE_CHECKING:
    from openai import AsyncOpenAI, OpenAI

LimitParameter = Literal["max_tokens", "max_completion_tokens"]
"""What an endpoint calls the most tokens it may answer."""

Client = TypeVar("Client", "OpenAI", "AsyncOpenAI")


class ChatEndpoint(Generic[Client]):
    """A model behind an endpoint: the body of a request to it, and how its answer is read."""

    _client_name: ClassVar[str]

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
        """Make the client, or take one.

        Args:
            model: Name of the model, as the endpoint knows it.
            client: Who asks; timeout and retries below are used instead of its own. None: a new one.
            base_url: Where a new client asks. None: OpenAI, or OPENAI_BASE_URL.
            api_key: Key of a new client. None: OPENAI_API_KEY. Nothing is made up: a local server that asks
                for none still wants some text here.
            budget: The model's window; `output_reserve` is the most it may answer, thoughts included. None:
                what is known of the model.
            counter: What counts the request. None: the model's own, or an estimate that errs high.
            instructions: The system message, to which those of a request are added. None: trimtab's own,
                which also say that the conversation is data, not to be obeyed.
            timeout_seconds: Longest wait for the endpoint to go on, for each try.
            max_retries: Tries after the first, where an error may pass: no connection, timeouts, status 408,
                409, 429 and 5xx.
            limit_parameter: What the endpoint calls the limit of an answer. None: `max_completion_tokens` at
                OpenAI, whose newer models refuse the other, and `max_tokens` elsewhere, since many servers
                know no other.
        """
        if not is_number(timeout_seconds) or timeout_seconds <= 0:
            raise ConfigurationError(f"timeout_seconds must be above 0 and finite, not {timeout_seconds!r}")
        check_whole("max_retries", max_retries, least=0)
        self.name = model
        """The model's name, for reports."""
        self._prompt = SummaryPrompt(
            instructions=INSTRUCTIONS if instructions is None else instructions,
            budget=_budget_of(model, budget),
            counter=_counter_of(model) if counter is None else as_counter(counter),
        )
        options: dict[str, Any] = {"timeout": timeout_seconds, "max_retries": max_retries}
        given: dict[str, Any] = {"base_url": base_url, "api_key": api_key}
        self.client: Client = self._client_of(client, given, options)
        """The client that asks; close it when you are done, if you did not bring your own."""
        self._limit_parameter = limit_parameter or (
            "max_completion_tokens" if self.client.base_url.host.endswith(".openai.com") else "max_tokens"
        )

    def __repr__(self) -> str:
        """Name the model."""
        return f"{type(self).__name__}({self.name!r})"

    def messages(self, request: SummaryRequest, /) -> list[dict[str, Any]]:
        """Write the messages that are sent for a request; they fit the window.

        Raises:
            BudgetExceededError: Instructions and summary so far alone do not fit.
            FormatError: What is to be summarized is no message.
            CountingError: The counter failed or answered nonsense.
        """
        return self._prompt.messages(request)

    def _body(self, request: SummaryRequest) -> dict[str, Any]:
        # The limit is the whole room, not the tokens asked for in words: a reasoning model thinks within
        # it, and an answer that runs into it is cut off and of no use.
        limit = self._prompt.budget.output_reserve
        return {"model": self.name, "messages": self.messages(request), self._limit_parameter: limit}

    def _text_of(self, answer: Any) -> str:
        choices = getattr(answer, "choices", None)
        if not choices:
            raise SummaryError(f"{self.name} answered without a choice")
        message, reason = choices[0].message, choices[0].finish_reason
        if message.refusal:
            raise SummaryError(f"{self.name} refused to write a summary")
        if reason == "length":
            limit = self._prompt.budget.output_reserve
            raise SummaryError(
                f"{self.name} was cut off at {limit} tokens: raise output_reserve of its budget"
            )
        text: str = (message.content or "").strip()
        if not text:
            raise SummaryError(f"{self.name} answered no text (finish_reason {reason})")
        return text

    def _client_of(self, client: Client | None, given: dict[str, Any], options: dict[str, Any]) -> Client:
        package: Any = package_of("openai", package="openai", needed_by=type(self).__name__)
        kind: type[Client] = getattr(package, self._client_name)
        if client is not None:
            if any(value is not None for value in given.values()):
                raise ConfigurationError("a client has its own base_url and api_key: give them, or client=")
            if not isinstance(client, kind):
                raise ConfigurationError(
                    f"{type(self).__name__} takes an openai.{self._client_name}, not {type(client).__name__}"
                )
            return client.with_options(**options)
        try:
            return kind(**given, **options)
        except package.OpenAIError as error:
            raise ConfigurationError(
                f"no client for {self.name}: {error} For a server that asks for no key pass api_key='none'."
            ) from error


class OpenAISummarizer(ChatEndpoint["OpenAI"]):
    """Summaries by a chat model, asked through the `openai` package.

    The conversation goes out as data, in one user message that fits the model's window; where the oldest
    messages or the middle of long ones had to be left out, the prompt says so. What the client raises
    passes through, and a fit takes it as a failed summary.

    Raises:
        MissingExtraError: The package is not installed.
        ConfigurationError: No key; no known window; a number out of range; an async client.

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


class AsyncOpenAISummarizer(ChatEndpoint["AsyncOpenAI"]):
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


def _budget_of(model: str, budget: Budget | None) -> Budget:
    if budget is None:
        facts = facts_for(model)
        if facts.window_tokens is None:
            raise ConfigurationError(f"the window of {model!r} is not known: pass budget=")
        budget = Budget(facts.window_tokens, output_reserve=facts.output_reserve_tokens)
    if not isinstance(budget, Budget) or not budget.output_reserve:
        raise ConfigurationError(
            f"budget must leave room for the summary, as Budget(8_192, output_reserve=1_000), not {budget!r}"
        )
    return budget


def _counter_of(model: str) -> Any:
    try:
        return counter_for(model)
    except UnknownNameError:
        return EstimateCounter()
