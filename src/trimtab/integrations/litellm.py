"""LiteLLM: one callback that fits each call of its SDK, its Router and its proxy.

Requests to the provider are fitted; the caller's messages are not changed. LiteLLM calls its callbacks only
in async calls that pass their messages by name: for other calls this module has functions of the same names.
"""
# What is missing is said before it is imported.
# ruff: noqa: E402

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache, wraps
from inspect import iscoroutinefunction, signature
from math import inf
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar, Unpack, cast
from uuid import uuid4
from weakref import WeakKeyDictionary, WeakValueDictionary

from trimtab._shared.checks import check_flag
from trimtab._shared.lazy import package_of
from trimtab.budget import Budget
from trimtab.counting.base import SYSTEM_ROLES
from trimtab.errors import BudgetExceededError, ConfigurationError, ContextError
from trimtab.formats.values import item_of
from trimtab.integrations.answers import answer_part, answer_ways
from trimtab.integrations.base import (
    AdapterBudget,
    FitOptions,
    OnFitted,
    Outcome,
    Trimmer,
    known_name,
    known_window,
)
from trimtab.integrations.bills import BilledTrimmer
from trimtab.integrations.chats import Sent
from trimtab.integrations.recovery import last_try

package_of("litellm", package="litellm", needed_by="trimtab.integrations.litellm")

import litellm
from litellm.exceptions import BadRequestError, ContextWindowExceededError
from litellm.integrations.custom_logger import CustomLogger
from litellm.litellm_core_utils.streaming_handler import CustomStreamWrapper
from litellm.llms.base_llm.base_utils import type_to_response_format_param
from litellm.main import responses_api_bridge_check
from litellm.router import Router
from litellm.router_utils.fallback_event_handlers import (
    check_non_standard_fallback_format,
    get_fallback_model_group,
)
from litellm.types.utils import CallTypes

if TYPE_CHECKING:
    from litellm.proxy._types import UserAPIKeyAuth
    from litellm.types.utils import ModelResponseStream

__all__ = [
    "TrimHandler",
    "WindowExceededError",
    "acompletion",
    "anthropic_messages",
    "aresponses",
    "completion",
    "responses",
    "trim_call",
]

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class _Form:
    """Where a call of a wire form has what is counted."""

    messages: str
    system: str = ""


FORMS: Final = {
    "openai_chat": _Form("messages"),
    "anthropic": _Form("messages", "system"),
    "openai_responses": _Form("input", "instructions"),
}
CALLS: Final = {
    CallTypes.completion: "openai_chat",
    CallTypes.acompletion: "openai_chat",
    CallTypes.anthropic_messages: "anthropic",
    CallTypes.responses: "openai_responses",
    CallTypes.aresponses: "openai_responses",
}
"""Wire forms by the calls that a handler is asked for."""

UNSEEN: Final = ("completion", "responses")
"""Calls that are not awaited: a handler is asked for the second alone, where its provider has that API."""

FALLBACKS: Final = ("fallbacks", "context_window_fallbacks", "content_policy_fallbacks")
"""What a Router goes on to when an attempt fails: its own attributes, or arguments of a call."""

DETAILS: Final = ("prompt_tokens_details", "input_tokens_details")
"""Parts of a usage by which a provider's own is known."""

MOST_STREAMS: Final = 10_000
"""Streams whose bill may come; those that were begun last."""

TEXTS: Final = ("text_completion", "atext_completion")
"""Calls of one text, of which nothing can leave."""

STORED: Final = ("prompt_id", "prompt")
"""Arguments that name a prompt which is stored at LiteLLM or at the provider."""

NATIVE: Final = {
    "claude": (("anthropic", "azure_ai", "bedrock", "bedrock_converse", "vertex_ai"), "anthropic"),
    "gemini": (("gemini", "vertex_ai", "vertex_ai_beta"), "gemini"),
}
"""By a word in the name of a model: which of LiteLLM's providers are sent its maker's form."""

OPENAI: Final = ("azure", "openai")
"""Providers that are sent Responses by their own API, chat completions that need it, too."""


class WindowExceededError(BudgetExceededError, ContextWindowExceededError):
    """What must stay does not fit.

    A Router takes it for the provider's own refusal and continues with `context_window_fallbacks`; a proxy
    answers with status 400.

    Args:
        error: The error of the fit.
        model: Name of the requested model.
    """

    def __init__(self, error: BudgetExceededError, *, model: str) -> None:
        ContextWindowExceededError.__init__(self, str(error), model=model, llm_provider="trimtab")
        self.__dict__.update(vars(error))


@dataclass(slots=True)
class _Attempt:
    """A call that is fitted: what was asked for, and what is sent."""

    trimmer: Trimmer[Any]
    call: _Call
    beside: dict[str, Any]
    """What the trimmer is told beside the messages."""
    outcome: Outcome[Any]

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments that have what is sent."""
        return self.call.arguments(self.outcome.messages, self.outcome.fitted.system)

    @property
    def bill(self) -> Sent | None:
        """What takes in the bill; None: nobody learns from it, or the server adds what nobody here sees."""
        return None if self.call.is_stored else self.outcome.bill

    def fit_again(self, error: Exception) -> dict[str, Any]:
        """Fit the call otherwise, which was refused; the very error where that cannot be."""
        self.outcome = self.trimmer.fit_again(error, self.outcome, self.call.messages, **self.beside)
        return self.arguments

    async def afit_again(self, error: Exception) -> dict[str, Any]:
        """Do what `fit_again` does; wait for what is async."""
        self.outcome = await self.trimmer.afit_again(error, self.outcome, self.call.messages, **self.beside)
        return self.arguments


_FITTED: Final[set[str]] = set()
"""Ids of calls that `trim_call` has fitted, under way: LiteLLM may ask about their translations."""

_STREAMED: Final[OrderedDict[str, dict[TrimHandler, Sent]]] = OrderedDict()
"""What takes in the bills of streams, by the ids of their calls. LiteLLM tells of some when all else of them
is gone, and of others never."""

_WATCHED: Final[dict[str, dict[TrimHandler, _Attempt]]] = {}
"""The latest attempt of calls under way that are sent once more if they are refused, by id and handler."""


class TrimHandler(CustomLogger):
    """Fits each call: `litellm.callbacks = [TrimHandler("80%")]`, or `callbacks:` in the proxy's config.yaml.

    It fits chat completions, Anthropic's messages and OpenAI's responses, streamed or not, at each attempt of
    a retry or fallback, for the chosen deployment. Kept messages are the same objects.

    The proxy's answers report the fit in the headers `x-trimtab-tokens-before`, `x-trimtab-tokens-after` and
    `x-trimtab-evicted-messages`.

    Args:
        budget: Tokens, a `Budget`, a share of the model's input limit such as `"80%"`, a `Context`, the path
            of a policy, or None for the window less the room for the answer.
        retry_overflow: Whether to send a call again, fitted to the size that the provider names, if the
            provider refuses it as too long; or without old thinking, if the provider refuses that. This
            applies to calls of this module and of `trim_call`; for others LiteLLM makes its own attempts, and
            this callback fits the next one.
        on_fitted: Called with the `Fitted` of each call; may be async if the call is.
        options: `strategy`, `counter`, `pin` and other keyword arguments of `trimtab.fit`.

    Raises:
        ConfigurationError: The budget or an option is invalid.
        WindowExceededError: For a call: what must be kept does not fit.
    """

    def __init__(
        self,
        budget: AdapterBudget = None,
        *,
        retry_overflow: bool = False,
        on_fitted: OnFitted | None = None,
        **options: Unpack[FitOptions],
    ) -> None:
        super().__init__()
        self.retries = check_flag("retry_overflow", retry_overflow)
        """Whether a call that is refused is sent once more."""
        self._trimmers: dict[str, Trimmer[Any]] = {
            form: BilledTrimmer(
                budget,
                format=form,
                retry_overflow=retry_overflow,
                on_fitted=on_fitted,
                options=options,
            )
            for form in FORMS
        }
        self._attempts: WeakKeyDictionary[Any, _Attempt] = WeakKeyDictionary()
        """The latest of each call, by what LiteLLM logs it with: one for its attempts and translations."""
        self._asked: WeakValueDictionary[str, Any] = WeakValueDictionary()
        """The same by the ids of the calls that this was asked about."""

    async def async_pre_call_deployment_hook(
        self, kwargs: dict[str, Any], call_type: CallTypes | None
    ) -> dict[str, Any] | None:
        """Fit a call after its deployment was chosen."""
        form, log = CALLS.get(call_type) if call_type else None, kwargs.get("litellm_logging_obj")
        if log is not None:
            self._asked[log.litellm_call_id] = log
        if form is None or _has_attempts(form, kwargs) or self._is_fitted(form, log):
            return None
        if kwargs.get(FORMS[form].messages) is None:
            stored = next((key for key in STORED if kwargs.get(key) is not None), None)
            if stored is not None:
                raise ConfigurationError(
                    f"{stored}={kwargs[stored]!r:.80} names a stored prompt, and the call has no"
                    f" {FORMS[form].messages}=: its messages are unknown here, and cannot be fitted. Pass"
                    f" {FORMS[form].messages}=, or remove the TrimHandler from litellm.callbacks for this"
                    " call"
                )
            raise ConfigurationError(
                f"litellm.{call_type.value if call_type else ''} got its messages by position, where no"
                f" callback sees them: pass {FORMS[form].messages}=, or call the function of that name in"
                " trimtab.integrations.litellm"
            )
        with _window_errors(kwargs):
            call = _Call(form, kwargs)
            trimmer = self._trimmers[form]
            call.warn_stored(trimmer)
            beside = {**call.beside, "tools": call.tools(trimmer)}
            sent = await trimmer.afit(call.messages, **beside)
        attempt = _Attempt(trimmer, call, beside, sent)
        if log is not None:
            self._attempts[log] = attempt
            if kwargs.get("stream"):
                _await_bill(log.litellm_call_id, self, attempt)
            if log.litellm_call_id in _WATCHED:
                _WATCHED[log.litellm_call_id][self] = attempt
        return {**kwargs, **attempt.arguments}

    async def async_post_call_success_deployment_hook(
        self, request_data: dict[str, Any], response: Any, call_type: CallTypes | None
    ) -> None:
        """Record the bill of an attempt that is not streamed."""
        attempt = self._attempt_of(request_data.get("litellm_logging_obj"))
        if attempt is not None and call_type and CALLS.get(call_type) == attempt.call.form:
            _take_bill(response, attempt)

    async def async_log_success_event(
        self, kwargs: dict[str, Any], response_obj: Any, start_time: object, end_time: object
    ) -> None:
        """Record the bill of a stream, which is known after its end."""
        self.log_success_event(kwargs, response_obj, start_time, end_time)

    def log_success_event(
        self, kwargs: dict[str, Any], response_obj: Any, start_time: object, end_time: object
    ) -> None:
        """Record the bill of a stream that is not async."""
        usage = item_of(response_obj, "usage")
        # Where no event of a stream told it, LiteLLM counts by itself: that has no such parts.
        is_told = usage is not None and any(item_of(usage, key) is not None for key in DETAILS)
        if is_told and kwargs.get("stream"):
            _take_bill_of_stream(kwargs.get("litellm_call_id"), usage)

    def _attempt_of(self, log: Any) -> _Attempt | None:
        return None if log is None else self._attempts.get(log)

    async def async_post_call_failure_deployment_hook(
        self,
        request_data: Mapping[str, object],
        exception: Exception,
        call_type: CallTypes | None,
        fallback_depth: int | None = None,
    ) -> None:
        """Record why an attempt was refused, for LiteLLM's next attempt."""
        one = self._attempt_of(request_data.get("litellm_logging_obj"))
        if one is not None:
            model = one.beside["model"]
            one.trimmer.learn(exception, one.outcome, one.call.messages, model=model)

    def fit_call(
        self, kwargs: Mapping[str, Any], *, format: str, others: Sequence[Mapping[str, Any]] = ()
    ) -> dict[str, Any]:
        """Fit a call; returns the arguments that have its messages and system text.

        Args:
            kwargs: The arguments of the call, by name.
            format: "openai_chat", "anthropic" or "openai_responses".
            others: Arguments that replace some of these for other deployments: the call is counted at the
                highest of their counts.

        Raises:
            WindowExceededError: What must stay does not fit.
        """
        return self._attempt(kwargs, format, others).arguments

    def _attempt(
        self, kwargs: Mapping[str, Any], format: str, others: Sequence[Mapping[str, Any]]
    ) -> _Attempt:
        with _window_errors(kwargs):
            call = _Call(format, kwargs, others)
            trimmer = self._trimmers[format]
            call.warn_stored(trimmer)
            beside = {**call.beside, "tools": call.tools(trimmer)}
            sent = trimmer.fit(call.messages, **beside)
        return _Attempt(trimmer, call, beside, sent)

    async def async_post_call_response_headers_hook(
        self,
        data: dict[str, Any],
        user_api_key_dict: UserAPIKeyAuth,
        response: object,
        request_headers: dict[str, str] | None = None,
        litellm_call_info: dict[str, object] | None = None,
    ) -> dict[str, str] | None:
        """Report in the headers of an answer what the fit did to the request."""
        attempt = self._attempt_of(data.get("litellm_logging_obj"))
        if attempt is None:
            return None
        try:
            report = await attempt.outcome.fitted.acount_all()
        except ContextError:  # what was evicted cannot be counted: the number of tokens before is not known
            report = attempt.outcome.fitted.report
        said = {
            "x-trimtab-tokens-before": report.tokens_before,
            "x-trimtab-tokens-after": report.tokens_after,
            "x-trimtab-evicted-messages": report.evicted_message_count,
        }
        return {name: str(number) for name, number in said.items() if number is not None}

    def log_pre_api_call(self, model: object, messages: object, kwargs: dict[str, Any]) -> None:
        """Warn of a call that is sent unchanged because no callback was called."""
        call_type, call_id = kwargs.get("call_type"), kwargs.get("litellm_call_id")
        if self not in litellm.callbacks:  # LiteLLM goes on to tell those that were taken out of them
            return
        if call_type in TEXTS:
            warnings.warn(
                f"litellm.{call_type} was sent as it was given: its prompt is one text, and nothing of it can"
                " leave. Write the prompt as messages, and call trimtab.integrations.litellm.completion or"
                " litellm.acompletion",
                stacklevel=2,
            )
        if call_type in UNSEEN and call_id not in self._asked and call_id not in _FITTED:
            warnings.warn(
                f"litellm.{call_type} was sent as it was given: no callback sees the messages of a call that"
                f" is not awaited. Call trimtab.integrations.litellm.{call_type}, or"
                f" trim_call(router.{call_type}) for a Router",
                stacklevel=2,
            )

    def _is_fitted(self, form: str, log: Any) -> bool:
        """Tell whether this is a call that was fitted, as LiteLLM writes it for its provider."""
        if log is None:
            return False
        attempt = self._attempts.get(log)
        is_translation = attempt is not None and attempt.call.is_whole and attempt.call.form != form
        return is_translation or log.litellm_call_id in _FITTED


def _has_attempts(form: str, kwargs: Mapping[str, Any]) -> bool:
    """Tell whether LiteLLM, without a Router, makes each attempt of a call an async call of its own."""
    return form == "openai_chat" and bool(kwargs.get("fallbacks"))


@contextmanager
def _window_errors(kwargs: Mapping[str, Any]) -> Iterator[None]:
    """Write errors of a fit as LiteLLM's."""
    try:
        yield
    except BudgetExceededError as error:
        raise WindowExceededError(error, model=str(kwargs.get("model"))) from error


class _Call:
    """A call by its arguments: what is fitted, and what is counted beside it."""

    def __init__(
        self, form: str, kwargs: Mapping[str, Any], others: Sequence[Mapping[str, Any]] = ()
    ) -> None:
        self.form, self._form = form, FORMS[form]
        given = kwargs.get(self._form.messages) or []
        self._text = given if isinstance(given, str) else None
        self.messages: list[Any] = (
            [{"role": "user", "content": given}] if isinstance(given, str) else [*given]
        )
        model, window = _model(kwargs)
        calls = [kwargs, *({**kwargs, **one} for one in others)]
        sent, keeps_schemas = zip(*(_sent_as(form, one) for one in calls), strict=True)
        self.beside: dict[str, Any] = {
            "model": model,
            "window": window,
            "sent_as": sent[0],
            "others": [(_model(one)[0], sent_as) for one, sent_as in zip(calls[1:], sent[1:], strict=True)],
            "system": kwargs.get(self._form.system) or None,
        }
        self.is_whole = not kwargs.get("previous_response_id")
        """Whether its translation has nothing else: what LiteLLM keeps of a response is put before that."""
        self.is_stored = not self.is_whole and sent[0] == "openai_responses"
        """Whether it goes on from a response that its provider keeps."""
        tools = [*(kwargs.get("tools") or ()), *(kwargs.get("functions") or ())]
        ways = answer_ways(_answer(kwargs))
        self._tools = [[*way, *tools] for way in (ways[:1] if all(keeps_schemas) else ways)]

    def tools(self, trimmer: Trimmer[Any]) -> list[Any]:
        """Return the tools of the call, and the schema of its answer as it is charged most."""
        first = self.messages[0] if self.messages else {}
        return trimmer.dearest(
            self._tools,
            has_system=bool(self.beside["system"]) or item_of(first, "role") in SYSTEM_ROLES,
            model=self.beside["model"],
            sent_as=self.beside["sent_as"],
            others=self.beside["others"],
        )

    def warn_stored(self, trimmer: Trimmer[Any]) -> None:
        """Warn of a response that its provider keeps."""
        if self.is_stored:
            trimmer.warn_stored(
                "previous_response_id is given",
                instead="leave previous_response_id= out, and give all items as input=",
            )

    def arguments(self, messages: Sequence[Any], system: Any) -> dict[str, Any]:
        """Write what fits as the arguments it is given in; a text that stands alone stays a text."""
        same = self._text is not None and len(messages) == 1 and messages[0] is self.messages[0]
        beside = {self._form.system: system} if system and system != self.beside["system"] else {}
        return {self._form.messages: self._text if same else messages, **beside}


def _model(kwargs: Mapping[str, Any]) -> tuple[str | None, Budget | None]:
    """Name the model of a call, and its window where the deployment says it, or nobody but LiteLLM knows."""
    model, info = str(kwargs.get("model")), kwargs.get("model_info") or {}
    named = (info.get("base_model"), kwargs.get("base_model"), model)
    name = next(filter(None, map(known_name, named)), model)
    if info.get("max_input_tokens") is not None:
        return name, Budget(info["max_input_tokens"], over_limit=True)  # whoever deploys it knows better
    return name, None if known_window(name) is not None else _listed_window(model)


def _sent_as(form: str, kwargs: Mapping[str, Any]) -> tuple[str | None, bool]:
    """Tell the wire form in which LiteLLM sends a call; None where it does not know the model.

    Also, whether it sends the schema of an answer as such: for some models it writes a function of it.
    """
    try:
        model, provider, *_ = litellm.get_llm_provider(
            str(kwargs.get("model")), custom_llm_provider=kwargs.get("custom_llm_provider")
        )
    except BadRequestError:
        return None, False
    for word, (providers, sent) in NATIVE.items():
        if word in model and provider in providers:
            is_kept = sent == form or (
                sent == "gemini"
                and litellm.supports_response_schema(model=model, custom_llm_provider=provider)
            )
            return sent, is_kept
    if form == "anthropic":
        is_items = provider == "openai" and not litellm.use_chat_completions_url_for_anthropic_messages
    else:
        is_items = provider in OPENAI and (form == "openai_responses" or _is_bridged(model, provider, kwargs))
    is_items = is_items or model.startswith("responses/")
    return "openai_responses" if is_items else "openai_chat", provider in OPENAI


def _is_bridged(model: str, provider: str, kwargs: Mapping[str, Any]) -> bool:
    """Tell whether LiteLLM asks the Responses API for a chat completion, as for models that reason."""
    effort, address = kwargs.get("reasoning_effort"), kwargs.get("api_base")
    if isinstance(effort, Mapping):
        effort = effort.get("effort") or "medium"
    always = litellm.route_all_chat_openai_to_responses and provider == "openai"
    return always or _needs_responses(model, provider, effort, address, has_tools=bool(kwargs.get("tools")))


@lru_cache(maxsize=256)
def _needs_responses(
    model: str, provider: str, effort: str | None, address: str | None, *, has_tools: bool
) -> bool:
    """Ask LiteLLM, which takes longer than to fit a short chat."""
    tools = [{"type": "function", "function": {}}] if has_tools else None
    found, _ = responses_api_bridge_check(
        model, provider, tools=tools, reasoning_effort=effort, api_base=address
    )
    return found.get("mode") == "responses"


def _listed_window(model: str) -> Budget | None:
    """Look a window up in LiteLLM's own list; its `get_model_info` asks a server of Ollama's at each call."""
    for name in (model, model.partition("/")[2]):
        listed = litellm.model_cost.get(name) or {}
        if window_tokens := listed.get("max_input_tokens"):
            reserve = min(listed.get("max_output_tokens") or 0, window_tokens // 2)
            return Budget(window_tokens, output_reserve=reserve)
    return None


def _answer(kwargs: Mapping[str, Any]) -> dict[str, Any] | None:
    """Write the schema that a call asks an answer to follow; None: it asks for none."""
    within = [kwargs.get(key) for key in ("text", "output_config")]
    asked = [kwargs.get(key) for key in ("response_format", "text_format", "output_format")]
    asked += [one.get("format") for one in within if isinstance(one, Mapping)]
    said = (type_to_response_format_param(one) if isinstance(one, type) else one for one in asked)
    parts = (answer_part(one) for one in said if isinstance(one, Mapping))
    return next((part for part in parts if part), None)


def trim_call(function: Callable[P, R], *, format: str = "openai_chat") -> Callable[P, R]:
    """Make a fitted version of a LiteLLM call that callbacks do not see.

    It takes the same arguments, and the `TrimHandler` in `litellm.callbacks` fits it. `completion`,
    `responses` and the other functions of this module are made with it; `trim_call(router.completion)` makes
    that of a Router, fitted for the smallest window of the deployments it may use, including its fallbacks,
    and counted at the highest of their counts.

    Args:
        function: A call of LiteLLM, sync or async.
        format: The form of its messages: "openai_chat", "anthropic" or "openai_responses".

    Raises:
        ConfigurationError: There is no such form; for a call: there is no `TrimHandler` in
            `litellm.callbacks`.
    """
    if format not in FORMS:
        raise ConfigurationError(
            f"format must be one of {', '.join(FORMS)}, not {format!r:.80}", argument="format"
        )

    send: Callable[..., R] = function  # P cannot say what is given by name
    is_awaited = iscoroutinefunction(function)

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        named = _by_name(function, args, kwargs)
        handlers = [one for one in litellm.callbacks if isinstance(one, TrimHandler)]
        if not handlers:
            raise ConfigurationError(
                f"{function.__name__}: there is no TrimHandler in litellm.callbacks; call"
                " litellm.callbacks.append(TrimHandler(budget)) first"
            )
        router = getattr(function, "__self__", None)
        is_routed = isinstance(router, Router)
        retries = all(handler.retries for handler in handlers)
        if is_awaited:  # its callbacks are asked, now that all is named
            return cast("R", _send_watched(send, named, retries=retries))
        if _has_attempts(format, named) and not is_routed:
            return _with_end(send(**named))
        deployments = _deployments(router, named) if is_routed else []
        smallest, *others = deployments or [{}]
        attempts: dict[TrimHandler, _Attempt] = {}
        for handler in handlers:
            attempts[handler] = handler._attempt({**named, **smallest}, format, others)
            named |= attempts[handler].arguments
        with _as_fitted(named):
            try:
                return _with_bill(send(**named), attempts)
            except Exception as error:
                if not retries:
                    raise
                again = {key: named[key] for key in named if key != "litellm_call_id"}
                for attempt in attempts.values():
                    again |= attempt.fit_again(error)
                refused = error
        with _as_fitted(again), last_try(refused, Exception):
            return _with_bill(send(**again), attempts)

    return call


def _await_bill(call_id: Any, handler: TrimHandler, attempt: _Attempt) -> None:
    """Remember what takes in the bill of a stream, and nothing of what is sent."""
    if attempt.bill is not None:
        _STREAMED.setdefault(str(call_id), {})[handler] = replace(attempt.bill, fitted=None)
        if len(_STREAMED) > MOST_STREAMS:
            _STREAMED.popitem(last=False)


def _take_bill_of_stream(call_id: Any, usage: Any) -> None:
    """Take in what a stream was billed, for each handler: LiteLLM tells one of them."""
    for bill in _STREAMED.pop(str(call_id), {}).values():
        bill.record(usage)


def _take_bill(answer: Any, attempt: _Attempt) -> None:
    """Take in what an answer says that its call was billed."""
    if attempt.bill is not None:
        attempt.bill.record(answer)


class _Told(CustomStreamWrapper):
    """A stream that takes in, where it ends, what its provider said in it that the call was billed.

    LiteLLM tells its callbacks later, by another thread or task or not at all, and of a number that it may
    have counted itself.
    """

    def __next__(self) -> ModelResponseStream:
        try:
            return super().__next__()
        except StopIteration:
            self._take_bill()
            raise

    async def __anext__(self) -> ModelResponseStream:
        try:
            return await super().__anext__()
        except StopAsyncIteration:
            self._take_bill()
            raise

    def _take_bill(self) -> None:
        told = [one.usage for one in self.chunks if getattr(one, "usage", None) is not None]
        if told:  # an event may leave out what one before has said
            usage = max(told, key=lambda one: one.prompt_tokens or 0)
            _take_bill_of_stream(self.logging_obj.litellm_call_id, usage)


def _with_end(answer: R) -> R:
    """Have a stream take in what its call was billed; those of Routers hide their events, and stay so."""
    stream = _stream_in(answer)
    if type(stream) is CustomStreamWrapper:
        stream.__class__ = _Told
    return answer


def _stream_in(answer: Any) -> Any:
    """Return the stream of chat completions that LiteLLM writes as one of Responses; else what is given."""
    return getattr(answer, "litellm_custom_stream_wrapper", answer)


def _with_bill(answer: R, attempts: Mapping[TrimHandler, _Attempt]) -> R:
    """Take in what a call was billed that no callback was asked about: now, or when its stream ends."""
    log = getattr(_stream_in(answer), "logging_obj", None)
    for handler, attempt in attempts.items():
        if log is None:
            _take_bill(answer, attempt)
        else:
            _await_bill(log.litellm_call_id, handler, attempt)
    return _with_end(answer)


async def _send_watched(send: Callable[..., Any], named: dict[str, Any], *, retries: bool) -> Any:
    """Make a call that is awaited, and once more if it is refused; callbacks are asked about the first."""
    if not retries:
        return _with_end(await send(**named))
    call_id = named.setdefault("litellm_call_id", str(uuid4()))
    attempts = _WATCHED[call_id] = {}
    try:
        return _with_end(await send(**named))
    except Exception as error:
        if not attempts:
            raise
        again = {key: named[key] for key in named if key != "litellm_call_id"}
        for attempt in attempts.values():
            again |= await attempt.afit_again(error)
        refused = error
    finally:
        del _WATCHED[call_id]
    with _as_fitted(again), last_try(refused, Exception):
        return _with_bill(await send(**again), attempts)


@contextmanager
def _as_fitted(named: dict[str, Any]) -> Iterator[None]:
    """Have LiteLLM's questions about a call answered by that it is fitted."""
    call_id = named.setdefault("litellm_call_id", str(uuid4()))
    _FITTED.add(call_id)
    try:
        yield
    finally:
        _FITTED.discard(call_id)


def _by_name(function: Callable[..., Any], args: Any, kwargs: Any) -> dict[str, Any]:
    """Give the arguments of a call by their names."""
    shape = signature(function)
    named = shape.bind(*args, **kwargs).arguments
    others = [one.name for one in shape.parameters.values() if one.kind is one.VAR_KEYWORD]
    return {**{name: named[name] for name in named if name not in others}, **named.get("".join(others), {})}


def _deployments(router: Router, named: Mapping[str, Any]) -> list[dict[str, Any]]:
    """List what a Router may call the model that it is asked for, that with the smallest window first.

    Which of them it takes it decides later, and whether it falls back: what fits the smallest window fits
    each, if it is counted as the dearest.
    """
    found = [
        {"model": one["litellm_params"].get("model"), "model_info": one.get("model_info")}
        for group in _groups(router, named)
        for one in router.get_model_list(model_name=group) or []
    ]
    return sorted(found, key=_least_tokens)


def _groups(router: Router, named: Mapping[str, Any]) -> list[str]:
    """List the names that a Router may ask for: the model's own, what it falls back to, and what these do."""
    falls_back = named.get("disable_fallbacks") is not True
    settings = [named.get(key, getattr(router, key)) or [] for key in FALLBACKS if falls_back]
    groups = [str(named.get("model"))]
    for group in groups:
        for fallbacks in settings:
            is_list = check_non_standard_fallback_format(fallbacks)
            targets = fallbacks if is_list else get_fallback_model_group(fallbacks, group)[0] or []
            names = [one.get("model", group) if isinstance(one, Mapping) else one for one in targets]
            groups += [one for one in dict.fromkeys(names) if one not in groups]
    return groups


def _least_tokens(deployment: Mapping[str, Any]) -> float:
    """Say what a deployment's window holds; what nobody knows is held for the largest."""
    name, window = _model(deployment)
    if window is not None:
        return window.input_tokens
    return known_window(name) or inf


completion = trim_call(litellm.completion)
acompletion = trim_call(litellm.acompletion)
responses = trim_call(litellm.responses, format="openai_responses")
aresponses = trim_call(litellm.aresponses, format="openai_responses")
anthropic_messages = trim_call(litellm.anthropic_messages, format="anthropic")
