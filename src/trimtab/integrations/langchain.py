"""LangChain and LangGraph: a middleware for agents, and `trim_messages` with trimtab's guarantees.

Requests to the model are fitted; the agent keeps its whole history, unless `persist=True`.
"""
# What is missing is said before it is imported.
# ruff: noqa: E402

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from inspect import signature
from itertools import takewhile
from operator import is_
from types import SimpleNamespace
from typing import Any, TypeAlias, Unpack, cast, overload

from trimtab._shared.checks import check_flag
from trimtab._shared.lazy import package_of
from trimtab.context import Context
from trimtab.conversation import Unit
from trimtab.counting import CounterLike, EstimateCounter
from trimtab.counting.base import counter_name
from trimtab.errors import ConfigurationError
from trimtab.integrations.answers import FORCED
from trimtab.integrations.base import (
    AdapterBudget,
    CallOptions,
    FitOptions,
    OnFitted,
    Outcome,
    Schemas,
    Trimmer,
    known_facts,
)
from trimtab.integrations.marks import Markable
from trimtab.integrations.recovery import last_try
from trimtab.policy.conversations import HISTORY
from trimtab.strategies import DropNewest, Edit, EvictionRequest, EvictionResult, TruncateText

package_of("langchain", package="langchain", needed_by="trimtab.integrations.langchain")

from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import ExtendedModelResponse, ModelRequest, ModelResponse
from langchain.agents.structured_output import (
    AutoStrategy,
    OutputToolBinding,
    ProviderStrategy,
    ToolStrategy,
)
from langchain_core.language_models import BaseLanguageModel
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    MessageLikeRepresentation,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
    convert_to_messages,
    convert_to_openai_messages,
)
from langchain_core.prompt_values import PromptValue
from langchain_core.runnables import Runnable, RunnableLambda
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import Command

__all__ = ["TrimMiddleware", "TrimOptions", "trim_messages"]

Answer = ModelResponse[Any] | ExtendedModelResponse[Any]


class TrimMiddleware(AgentMiddleware[Any, Any, Any]):
    """Fits each request of an agent to its model.

    It counts the system prompt, the tools, the output schema and the messages of the call, for the model of
    the call. Kept messages are the same objects as in the agent's state.

    Args:
        budget: Tokens, a `Budget`, a share of the model's input limit such as `"80%"`, a `Context`, the path
            of a policy, or None for the window less the room for the answer.
        persist: Whether to remove from the agent's state and checkpoints what is evicted from a request.
        retry_overflow: Whether to send a call again, fitted to the size that the provider names, if the
            provider refuses it as too long; or without old thinking, if the provider refuses that.
        on_fitted: Called with the `Fitted` of each call; may be async if the call is.
        options: `strategy`, `counter`, `pin` and other keyword arguments of `trimtab.fit`.

    Raises:
        ConfigurationError: The budget or an option is invalid.
        BudgetExceededError: For a call: what must be kept does not fit.
    """

    def __init__(
        self,
        budget: AdapterBudget = None,
        *,
        persist: bool = False,
        retry_overflow: bool = False,
        on_fitted: OnFitted | None = None,
        **options: Unpack[FitOptions],
    ) -> None:
        super().__init__()
        self.persist = persist
        self._trimmer = _trimmer(budget, on_fitted, options, keeps=persist, retry_overflow=retry_overflow)
        schema = _schema if self._trimmer.sets_marks else convert_to_openai_tool
        self._tools = Schemas(lambda tools: list(map(schema, tools)))
        self._answers = Schemas(lambda asked: _answers(*asked))

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> Answer:
        """Fit the messages of a call."""
        messages, call = _all_of(request), self._call(request)
        fits = self._trimmer.fit(messages, **call)
        try:
            answer = handler(_with(request, fits))
        except Exception as error:  # each provider's package has its own
            if not self._trimmer.retries:
                raise
            fits = self._trimmer.fit_again(error, fits, messages, **call)
            with last_try(error, Exception):
                answer = handler(_with(request, fits))
        return self._persist(request, fits, answer)

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> Answer:
        """Fit the messages of a call; counters and summarizers may be async."""
        messages, call = _all_of(request), self._call(request)
        fits = await self._trimmer.afit(messages, **call)
        try:
            answer = await handler(_with(request, fits))
        except Exception as error:  # each provider's package has its own
            if not self._trimmer.retries:
                raise
            fits = await self._trimmer.afit_again(error, fits, messages, **call)
            with last_try(error, Exception):
                answer = await handler(_with(request, fits))
        return self._persist(request, fits, answer)

    def _call(self, request: ModelRequest[Any]) -> dict[str, Any]:
        sent: Any = {"model": _model_name(request.model), "sent_as": _form_of(request.model)}
        _warn_stored(self._trimmer, request.model, request.model_settings)
        tools = self._tools.of(request.tools)
        answers = self._answers.of([request.response_format])
        has_system = request.system_message is not None
        mark = request.model_settings.get("cache_control") if self._trimmer.sets_marks else None
        marks = [] if mark is None else [{"cache_control": mark}]  # the provider marks the last block for it
        ways = ([*marks, *one, *tools] for one in answers)
        return {**sent, "tools": self._trimmer.dearest(ways, has_system=has_system, **sent)}

    def _persist(
        self, request: ModelRequest[Any], fits: Outcome[BaseMessage], response: ModelResponse[Any]
    ) -> Answer:
        """Have the state keep what was sent, if asked."""
        before, kept = _all_of(request), fits.kept
        same = len(before) == len(kept) and all(map(is_, before, kept))
        if same or not self.persist:
            return response
        # All of it anew: a message that is put in (a summary) would stand behind the answer otherwise.
        state = [RemoveMessage(id=REMOVE_ALL_MESSAGES), *_state_of(request, fits), *response.result]
        return ExtendedModelResponse(model_response=response, command=Command(update={"messages": state}))


Kinds: TypeAlias = str | type[BaseMessage] | Sequence[str | type[BaseMessage]]
"""LangChain's words for kinds of messages, as `"human"`, or their classes; one or several."""


class TrimOptions(FitOptions, total=False):
    """Keyword arguments of `trim_messages`: those of `fit`, and those of langchain-core that apply."""

    max_tokens: int | None
    """LangChain's name for a budget in tokens."""
    token_counter: Any
    """LangChain's name for `counter`: a chat model, `"approximate"` (an `EstimateCounter`, with this name in
    reports), or a function over a list of messages, or over one message annotated as `BaseMessage`. A model
    that trimtab knows selects its counter. Another model's `get_num_tokens_from_messages` is called, unless
    `model`, `counter` or `charge_as` says how to count. It is estimated if its class does not define that
    method, or the method fails for the model.
    """
    start_on: Kinds | None
    """Kinds of messages with which the kept part begins, after the system messages; `"human"` must be among
    them. Only with `strategy="last"`, and without `pin`.
    """
    end_on: Kinds | None
    """Kinds of messages: everything after the last message of these kinds is removed."""
    allow_partial: bool
    """Whether to cut texts before whole messages are evicted; each cut adds a marker. With `strategy="first"`
    the first message that does not fit is cut; if it has several blocks, the last are removed, without a
    marker.
    """
    include_system: bool
    """Must be True: a system message is never evicted."""
    on_fitted: OnFitted | None
    """Called with the `Fitted`; may be async if the call is."""


@overload
def trim_messages(
    messages: Iterable[MessageLikeRepresentation] | PromptValue,
    budget: AdapterBudget = None,
    **options: Unpack[TrimOptions],
) -> list[BaseMessage]: ...
@overload
def trim_messages(
    messages: None = None, budget: AdapterBudget = None, **options: Unpack[TrimOptions]
) -> Runnable[Iterable[MessageLikeRepresentation] | PromptValue, list[BaseMessage]]: ...
def trim_messages(messages: Any = None, budget: AdapterBudget = None, **options: Any) -> Any:
    """Trim messages as langchain-core's `trim_messages` does, with trimtab's guarantees.

    Args:
        messages: LangChain's messages, or what it makes them from; None: return a `Runnable` that trims its
            input, for `trim_messages(max_tokens=32_000) | model`.
        budget: As for `TrimMiddleware`.
        options: See `TrimOptions`. `strategy="last"` is the default; `"first"` keeps the beginning of the
            conversation, without the question at its end if that does not fit.

    Raises:
        ConfigurationError: An argument of langchain-core does not apply here; the error names ours. Or no
            message is of the requested kinds.
        BudgetExceededError: What must stay does not fit.
    """
    max_tokens, token_counter = options.pop("max_tokens", None), options.pop("token_counter", None)
    if max_tokens is not None and budget is not None:
        raise ConfigurationError(
            "max_tokens is LangChain's name for the budget: pass one of them", argument="max_tokens"
        )
    if not options.pop("include_system", True):
        raise ConfigurationError(
            "include_system=False: a system message is never evicted; leave it out of the messages instead",
            argument="include_system",
        )
    if options.pop("text_splitter", None):
        raise ConfigurationError(
            "text_splitter is not supported: TruncateText cuts texts between words and sentences",
            argument="text_splitter",
        )
    if counter := _counter_given(token_counter):
        if options.get("counter") is not None:
            raise ConfigurationError(
                "token_counter is LangChain's name for counter: pass one of them", argument="token_counter"
            )
        options["counter"] = counter
    tokens, on_fitted = max_tokens if budget is None else budget, options.pop("on_fitted", None)
    part = _part_asked(options)
    tokens = _with_strategy(tokens, options, part)
    trimmer = _trimmer_beside(token_counter, tokens, on_fitted, options)
    call: CallOptions = {"model": _model_name(token_counter), "sent_as": _form_of(token_counter)}

    _warn_stored(trimmer, token_counter, {})

    def part_of(given: Any) -> list[BaseMessage]:
        _check_counts(token_counter)
        return part.of(convert_to_messages(given))

    def trim(given: Any) -> list[BaseMessage]:
        return trimmer.fit(part_of(given), **call).messages

    async def atrim(given: Any) -> list[BaseMessage]:
        return (await trimmer.afit(part_of(given), **call)).messages

    return RunnableLambda(trim, atrim, name="trim_messages") if messages is None else trim(messages)


@dataclass(frozen=True, slots=True)
class _Part:
    """Which part of a conversation is asked for, by the kinds of messages it begins and ends with."""

    start_on: tuple[type[BaseMessage], ...] = ()
    end_on: tuple[type[BaseMessage], ...] = ()
    is_partial: bool = False
    """Whether texts are cut before whole messages leave."""

    def of(self, messages: list[BaseMessage]) -> list[BaseMessage]:
        """Leave out what stands behind the last message of a kind, and before the first of another.

        Raises:
            ConfigurationError: There is no such message.
        """
        head = len([*takewhile(lambda one: isinstance(one, SystemMessage), messages)])
        first, stop = head, len(messages)
        if self.end_on:
            stop = next((at + 1 for at in reversed(range(stop)) if self.ends(messages[at])), 0)
            if messages and not stop:
                raise _none_of("end_on", self.end_on)
        if self.start_on and head < stop:
            first = next((at for at in range(head, stop) if isinstance(messages[at], self.start_on)), stop)
            if first == stop:
                raise _none_of("start_on", self.start_on)
        return [*messages[: min(head, stop)], *messages[first:stop]]

    def ends(self, message: BaseMessage) -> bool:
        """Tell whether what stays may end with a message."""
        return not self.end_on or isinstance(message, self.end_on)


def _none_of(name: str, kinds: Iterable[type[BaseMessage]]) -> ConfigurationError:
    return ConfigurationError(f"{name}: there is no {' or '.join(kind.__name__ for kind in kinds)}")


def _part_asked(options: dict[str, Any]) -> _Part:
    """Take LangChain's words for a part of a conversation out of the options."""
    start_on, end_on = _kinds("start_on", options), _kinds("end_on", options)
    is_partial = check_flag("allow_partial", options.pop("allow_partial", False))
    strategy = options.get("strategy") or "last"
    if start_on:
        if strategy != "last":
            raise ConfigurationError("start_on is only valid with strategy='last'", argument="start_on")
        if not issubclass(HumanMessage, start_on):
            raise ConfigurationError(
                "start_on must include 'human': the user message that opened a turn is kept with the turn",
                argument="start_on",
            )
        if options.get("pin") is not None:
            raise ConfigurationError(
                "start_on and pin contradict each other: start_on evicts messages before the first user"
                " message, and a pin keeps them; pass one of them",
                argument="start_on",
            )
    if is_partial and strategy not in ("first", "last"):
        raise ConfigurationError(
            "allow_partial is only valid with strategy='last' and 'first'; with trimtab's strategies, use"
            " TruncateText to cut texts",
            argument="allow_partial",
        )
    if strategy == "first" and not set(end_on).issubset(_KINDS.values()):
        raise ConfigurationError(
            f"end_on must be one of {_KINDS_IN_WORDS} with strategy='first'", argument="end_on"
        )
    return _Part(start_on, end_on, is_partial)


_KINDS: dict[str, type[BaseMessage]] = {
    "human": HumanMessage,
    "ai": AIMessage,
    "tool": ToolMessage,
    "system": SystemMessage,
    "function": FunctionMessage,
    "chat": ChatMessage,
}
"""Kinds of messages by LangChain's words."""

_KINDS_IN_WORDS = ", ".join(map(repr, _KINDS))


def _kinds(name: str, options: dict[str, Any]) -> tuple[type[BaseMessage], ...]:
    """Take LangChain's kinds of messages out of the options.

    Raises:
        ConfigurationError: One is no kind: langchain-core would find no message of it.
    """
    given: Any = options.pop(name, None) or ()
    found: list[type[BaseMessage]] = []
    for kind in given if isinstance(given, list | tuple | set | frozenset) else [given]:
        known = _KINDS.get(kind) if isinstance(kind, str) else kind
        if not isinstance(known, type) or not issubclass(known, BaseMessage):
            raise ConfigurationError(
                f"{name}={kind!r:.80} is not a kind of LangChain message: use one of {_KINDS_IN_WORDS}, or a"
                " message class"
            )
        found.append(known)
    return tuple(found)


def _with_strategy(tokens: AdapterBudget, options: dict[str, Any], part: _Part) -> AdapterBudget:
    """Put the strategy for LangChain's word into the options, or into a budget of blocks.

    The question at the end of a conversation leaves a block, and no list that is fitted by itself.
    """
    strategy = options.get("strategy")
    if strategy == "first" and isinstance(tokens, Context):
        options["strategy"] = _Beginning(part)  # and is told that blocks say how they give way
    elif strategy == "first":
        del options["strategy"]
        others = sorted(name for name in options if options[name] is not None and name not in _OF_FIRST)
        if others:
            raise ConfigurationError(
                f"{', '.join(others)}: not supported with strategy='first', which is LangChain's;"
                " strategy='drop_newest' supports it, and keeps the latest user message"
            )
        return Context(cast("Any", tokens)).add(HISTORY, [], strategy=_Beginning(part))
    if strategy == "last":
        del options["strategy"]
    if part.is_partial and not part.start_on:
        options["strategy"] = TruncateText()
    return tokens


_OF_FIRST = ("charge_as", "counter", "model", "pending_calls", "strict")
"""Options of `fit` that go with LangChain's `strategy="first"`."""


class _Gone(str):
    """The text of a block that leaves: it is neither counted nor sent."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class _Beginning:
    """Keep the beginning of a conversation, as langchain-core's `strategy="first"` does."""

    part: _Part
    name = "first"

    def evict(self, request: EvictionRequest, /) -> EvictionResult:
        """Drop the newest units that do not fit, and those behind the last that may be the end."""
        dropped = DropNewest().evict(request)
        kept, edits = list(dropped.kept), list[Edit]()
        gone = next((unit for unit in request.units if unit not in kept), None)
        if dropped.fits and self.part.is_partial and gone is not None and not gone.parts:
            edits = _edits_that_fit(request, kept, gone)
            kept += [gone] if edits else []
        ends = self.part.ends
        while (
            kept and not request.stays(kept[-1]) and not ends(_write(None, request.messages(kept[-1])[-1:]))
        ):
            if kept.pop() is gone:
                edits = []
        actions = ("evicted", "shortened") if edits else ("evicted",)
        return EvictionResult(kept=kept, edits=edits, fits=dropped.fits, actions=actions)


def _edits_that_fit(request: EvictionRequest, kept: list[Unit], unit: Unit) -> list[Edit]:
    """Cut a message so that it fits behind others: its last blocks leave, then its text; or not at all."""
    if len(unit.indices) > 1:  # a call with its results
        return []
    [index], units = unit.indices, [*kept, unit]
    slots = request.texts(index)
    for count in range(len(slots) - 1, 0, -1):
        texts: dict[Any, str] = {slot.path: _Gone() for slot in slots[count:]}
        if request.fits(units, edits={index: texts}):
            return [Edit(index=index, texts=texts)]
    for slot in slots[:1]:
        bare: dict[Any, str] = {slot.path: "", **{other.path: _Gone() for other in slots[1:]}}
        room = request.limit_tokens - request.total(units, edits={index: bare})
        text = request.shorten(slot.text, room, keep="start") if room > 0 else None
        if text and request.fits(units, edits={index: {**bare, slot.path: text}}):
            return [Edit(index=index, texts={**bare, slot.path: text})]
    return []


def _counter_given(token_counter: Any) -> CounterLike | None:
    """Make LangChain's function one over wire messages; None where none is given, or a chat model."""
    if isinstance(token_counter, str):
        if token_counter != "approximate":
            raise ConfigurationError(
                f"Invalid token_counter shortcut {token_counter!r:.80}: pass 'approximate', a chat model or"
                " a function",
                argument="token_counter",
            )
        return EstimateCounter(name="approximate")
    if token_counter is None or hasattr(token_counter, _COUNTS) or not callable(token_counter):
        return None
    if _takes_one(token_counter):
        return _counter(token_counter, lambda messages: sum(map(token_counter, messages)), each=True)
    return _counter(token_counter, token_counter)


def _check_counts(token_counter: Any) -> None:
    """Refuse what cannot count where it is asked to, as langchain-core does: not where a chain is made."""
    if token_counter is None or isinstance(token_counter, str) or callable(token_counter):
        return
    if not hasattr(token_counter, _COUNTS):
        raise ConfigurationError(
            f"'token_counter' expected to be a model that implements '{_COUNTS}()' or a function. Received"
            f" object of type {type(token_counter)}."
        )


def _schema(tool: Any) -> dict[str, Any]:
    """Write a tool as a schema, with the mark for a prompt cache that its `extras` have."""
    mark = (getattr(tool, "extras", None) or {}).get("cache_control")
    written = convert_to_openai_tool(tool)
    return written if mark is None else {**written, "cache_control": mark}


def _answers(asked: Any) -> list[list[Any]]:
    """List the ways in which an agent may ask for its answer; where that goes by the model, both."""
    if asked is None:
        return [[]]
    if isinstance(asked, ProviderStrategy):
        return [[asked.to_model_kwargs()]]
    if isinstance(asked, ToolStrategy):
        tools = [OutputToolBinding.from_schema_spec(one).tool for one in asked.schema_specs]
        return [[FORCED, *map(convert_to_openai_tool, tools)]]
    schema = asked.schema if isinstance(asked, AutoStrategy) else asked
    ways = _answers(ToolStrategy(schema))
    with suppress(ValueError):  # of several types, each of which is a call
        ways += _answers(ProviderStrategy(schema))
    return ways


_COUNTS = "get_num_tokens_from_messages"
"""The method by which LangChain's models count."""


def _trimmer_beside(
    model: Any, budget: AdapterBudget, on_fitted: OnFitted | None, options: dict[str, Any]
) -> Trimmer[BaseMessage]:
    """Make the trimmer of a call; a chat model counts where nothing else says how."""
    trimmer = _trimmer(budget, on_fitted, options)
    own = None if trimmer.counts else _own_counter(model, options)
    if own is None:
        return trimmer
    return _trimmer(budget, on_fitted, {**options, "counter": own})


def _own_counter(model: Any, options: Mapping[str, Any]) -> CounterLike | None:
    """Ask a chat model that trimtab does not know to count; None where options say how, or it cannot."""
    count = getattr(model, _COUNTS, None)
    if count is None or known_facts(_model_name(model)) is not None:
        return None
    if any(options.get(name) is not None for name in ("model", "charge_as")):
        return None
    if getattr(count, "__func__", None) is getattr(BaseLanguageModel, _COUNTS):  # counts as GPT-2 does
        return None
    try:
        count([HumanMessage("Hello")])
    except (NotImplementedError, ImportError, OSError):  # OSError: its vocabulary cannot be had
        return None
    return _counter(model, count)


def _counter(named: Any, count: Callable[[list[BaseMessage]], int], *, each: bool = False) -> CounterLike:
    """Make a counter of a function over LangChain's messages; a bare one might be taken for one of a text."""

    def over_wire(wire: Any) -> int:
        # Some are read only when they are looked at, and LangChain takes dicts alone.
        return count(convert_to_messages(map(_wire_of, [wire] if isinstance(wire, Mapping) else wire)))

    counter: Any = SimpleNamespace(name=counter_name(named), count=over_wire)
    if each:
        counter.count_message = over_wire
    return cast("CounterLike", counter)


def _wire_of(wire: Mapping[str, Any]) -> dict[str, Any]:
    """Write a wire message without the blocks that leave."""
    content = wire["content"]
    return {**wire, "content": _without_gone(content) if isinstance(content, list) else content}


def _without_gone(parts: list[Any]) -> list[Any]:
    return [one for one in parts if not isinstance(one, Mapping) or not isinstance(one.get("text"), _Gone)]


def _takes_one(token_counter: Callable[..., Any]) -> bool:
    """Tell whether a function is over one message, as langchain-core does: by what it annotates."""
    try:
        parameters = signature(token_counter).parameters.values()
    except ValueError:  # some of C say nothing
        return False
    return next((one.annotation in (BaseMessage, "BaseMessage") for one in parameters), False)


def _trimmer(
    budget: AdapterBudget,
    on_fitted: OnFitted | None,
    options: Any,
    *,
    keeps: bool = False,
    retry_overflow: bool = False,
) -> Trimmer[BaseMessage]:
    return Trimmer(
        budget,
        format=Markable(_MARKED),
        read=_read,
        write=_write,
        retry_overflow=retry_overflow,
        on_fitted=on_fitted,
        options=options,
        keeps=keeps,
    )


def _all_of(request: ModelRequest[Any]) -> list[BaseMessage]:
    """List what is sent: the system message stands beside the others."""
    head = [] if request.system_message is None else [request.system_message]
    return [*head, *request.messages]


def _with(request: ModelRequest[Any], fits: Outcome[BaseMessage]) -> ModelRequest[Any]:
    """Put what fits into a call; a message of the agent's state never becomes the system message."""
    messages: list[Any] = fits.messages
    if request.system_message is None:
        return request.override(messages=messages)
    is_beside = fits.places[:1] in ([0], [None]) and isinstance(messages[0], SystemMessage)
    if not is_beside:  # the blocks of a Context let it leave, or have it stand elsewhere
        return request.override(system_message=None, messages=messages)
    return request.override(system_message=messages[0], messages=messages[1:])


def _state_of(request: ModelRequest[Any], fits: Outcome[BaseMessage]) -> list[BaseMessage]:
    """List what the state keeps: what was sent of it, and what other middleware had left out, where it is.

    Where that put in messages that the state has not, they may stand for some of its own: it keeps what was
    sent.
    """
    lead = 0 if request.system_message is None else 1
    places = [None if place is None else place - lead for place in fits.places]
    sent = [(one, place) for one, place in zip(fits.kept, places, strict=True) if place != -1]
    shown = {one.id: at for at, one in enumerate(request.messages)}
    held, kept = request.state.get("messages", ()), list[BaseMessage]()
    if not shown.keys() <= {one.id for one in held if one.id is not None}:
        return [one for one, _ in sent]
    for one in held:
        at = shown.get(one.id)
        if at is None:
            kept.append(one)
        while at is not None and sent and (sent[0][1] is None or sent[0][1] <= at):
            kept.append(sent.pop(0)[0])
    return [*kept, *(one for one, _ in sent)]


def _model_name(model: Any) -> str | None:
    """Name the model as its provider does."""
    for name in ("model_name", "model", "model_id"):
        if isinstance(found := getattr(model, name, None), str):
            return found
    return None


def _warn_stored(trimmer: Trimmer[BaseMessage], model: Any, settings: Mapping[str, Any]) -> None:
    """Warn of a model that sends what is behind its last answer alone, and of a call that names one."""
    for key in ("previous_response_id", "conversation"):
        if settings.get(key):
            trimmer.warn_stored(f"{key} is given", instead=f"leave {key} out of the settings of the call")
    goes_on = getattr(model, "use_previous_response_id", False)
    if goes_on and getattr(model, "use_responses_api", None) is not False:
        told = f"{type(model).__name__}(use_previous_response_id="
        trimmer.warn_stored(f"{told}True)", instead=f"write {told}False)")


def _form_of(model: Any) -> str | None:
    """Tell the wire form in which LangChain's own package for a provider sends messages."""
    if getattr(model, "use_responses_api", None) or getattr(model, "output_version", "") == "responses/v1":
        return "openai_responses"
    return _FORMS.get(getattr(model, "_llm_type", ""))


_FORMS = {
    "amazon_bedrock_converse_chat": "bedrock",
    "chat-google-generative-ai": "gemini",
    **dict.fromkeys(("anthropic-chat", "anthropic-bedrock-chat", "anthropic-mantle-chat"), "anthropic"),
}
"""Wire forms by LangChain's word for a kind of model; what it does not hold is sent as it is read."""

_MARKED = dict.fromkeys(("anthropic", "openai_chat"), ("assistant", "system", "tool", "user"))
"""Which messages carry a mark for a prompt cache, by the form: in others none."""

_ROLES: dict[type[BaseMessage], str] = {
    SystemMessage: "system",
    HumanMessage: "user",
    AIMessage: "assistant",
    ToolMessage: "tool",
    FunctionMessage: "function",
}


def _read(message: BaseMessage) -> dict[str, Any]:
    """Write a message in OpenAI's form; its blocks stay one for one."""
    role = message.role if isinstance(message, ChatMessage) else _role_of(type(message))
    wire: dict[str, Any] = {"role": role, "content": _parts(message)}
    if isinstance(message, ToolMessage):
        wire["tool_call_id"] = message.tool_call_id
    elif isinstance(message, FunctionMessage):
        wire["name"] = message.name
    elif isinstance(message, AIMessage) and (calls := _calls(message)):
        wire["tool_calls"] = calls
        wire["content"] = wire["content"] or None
    return wire


def _role_of(kind: type[BaseMessage]) -> str:
    role = next((_ROLES[base] for base in kind.__mro__ if base in _ROLES), None)
    if role is None:
        raise ConfigurationError(f"{kind.__name__} is not a message for a model")
    return role


def _calls(message: AIMessage) -> list[dict[str, Any]]:
    made = [
        (call["id"], call["name"], json.dumps(call["args"], ensure_ascii=False))
        for call in message.tool_calls
    ]
    made += [(call["id"], call["name"] or "", call["args"] or "") for call in message.invalid_tool_calls]
    return [
        {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
        for id, name, arguments in made
    ]


def _parts(message: BaseMessage) -> str | list[Any]:
    if isinstance(message.content, str):
        return message.content
    return [part for _, part in _pairs(message)]


def _pairs(message: BaseMessage) -> list[tuple[Any, Any]]:
    """Pair each block of a message with the part it is on the wire; calls and points stand beside them."""
    pairs: list[tuple[Any, Any]] = []
    for block in message.content:
        if not _is_beside(block):
            pairs.append((block, _with_mark(_part(block), block)))
        elif pairs and "cachePoint" in block:  # of a prompt cache: a mark of the block before it
            before, part = pairs[-1]
            pairs[-1] = before, {**part, "cache_control": {"type": "ephemeral"}}
    return pairs


def _with_mark(part: dict[str, Any], block: Any) -> dict[str, Any]:
    """Give a part the mark for a prompt cache that its block has."""
    mark = block.get("cache_control") if isinstance(block, Mapping) else None
    return part if mark is None else {**part, "cache_control": mark}


def _is_beside(block: Any) -> bool:
    """Tell whether a block is no part on the wire: a call, or a point of Bedrock's prompt cache."""
    if not isinstance(block, dict):
        return False
    return "cachePoint" in block or block.get("type") in ("tool_use", "tool_call", "function_call")


def _part(block: Any) -> Any:
    if isinstance(block, str):
        return {"type": "text", "text": block}
    if block.get("type", "text") in ("text", "text-plain") and isinstance(block.get("text"), str):
        return {"type": "text", "text": block["text"]}
    try:
        written = convert_to_openai_messages(HumanMessage(content=[block]), text_format="block")["content"]
    except (AttributeError, KeyError, TypeError, ValueError):  # of a kind or a place OpenAI's form has not
        return _other_part(block)
    return written[0] if written and written[0] != block else _other_part(block)


def _other_part(block: Mapping[str, Any]) -> dict[str, Any]:
    """Write a block that langchain-core cannot: a medium of its kind, and what else it says as JSON."""
    kind = str(block.get("type") or next(iter(block), ""))  # Bedrock's blocks say by a key what they are
    mime = block.get("mime_type") or (f"{kind}/*" if kind in ("audio", "image", "video") else "application/*")
    part = {"type": kind, **_with_media(block, mime)}
    if kind in _MEDIA and part == {"type": kind, **block}:  # no bytes: what it holds is base64, or elsewhere
        part["data"] = part.pop("base64", part.get("data", ""))
        part["mime_type"] = mime
    return part


_MEDIA = ("audio", "file", "image", "media", "text-plain", "video")
"""Kinds of LangChain's blocks that hold a medium, or say where one is."""


def _with_media(value: Any, mime: str) -> Any:
    """Write bytes in a block as the medium they are: JSON has none."""
    if isinstance(value, bytes):
        return {"mime_type": mime, "data": b64encode(value).decode()}
    if isinstance(value, Mapping):
        return {key: _with_media(one, mime) for key, one in value.items()}
    return [_with_media(one, mime) for one in value] if isinstance(value, list) else value


def _write(message: BaseMessage | None, wire: list[Any]) -> BaseMessage:
    """Give a changed copy of a message; what trimtab put in becomes a message of its role."""
    [said] = wire
    if message is None:
        return convert_to_messages([said])[0]
    content = said["content"]
    if isinstance(message.content, str) or isinstance(content, str):
        return message.model_copy(update={"content": content or ""})
    return message.model_copy(update={"content": _blocks(message, content or [])})


def _blocks(message: BaseMessage, parts: list[Any]) -> list[Any]:
    """Put changed parts in the place of the blocks they were written from; others stay where they are."""
    pairs, beside = _pairs(message), [block for block in message.content if _is_beside(block)]
    if len(pairs) < len(parts):
        return [*parts, *beside]
    left = list(parts)
    made: list[Any] = []
    for block in message.content:
        if _is_beside(block):
            made.append(block)
            continue
        own, part = pairs.pop(0)
        if left and (part == left[0] or len(pairs) < len(left)):
            now = left.pop(0)
            if _without_gone([now]):
                made.append(own if part == now else _rewrite(own, part, now))
    return made


def _rewrite(block: Any, was: Mapping[str, Any], now: dict[str, Any]) -> Any:
    """Write into a block what changed of its part: the text, or a mark for a prompt cache."""
    changed = {key: value for key, value in now.items() if was.get(key) != value}
    if isinstance(block, str) and changed.keys() == {"text"}:
        return now["text"]
    if isinstance(block, str) or "type" in changed or ("text" in changed and "text" not in block):
        return now
    return {**block, **changed}
