"""The common part of the providers' clients: the body of each call is fitted (`chats` remembers)."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypedDict, Unpack

from trimtab._fit import Fitted, afit, fit
from trimtab._shared.steps import Steps
from trimtab.budget import Budget, known_budget
from trimtab.context import Context
from trimtab.counting import EstimateCounter, counter_for
from trimtab.counting.door import as_additive
from trimtab.counting.totals import TotalBaseline
from trimtab.errors import ConfigurationError
from trimtab.formats import Request
from trimtab.formats.api_errors import Refusal
from trimtab.formats.values import item_of
from trimtab.integrations.base import (
    AdapterBudget,
    Blocks,
    Question,
    afinish,
    finish,
    known_name,
    known_window,
)
from trimtab.integrations.bills import ChatOptions, ChatTrimmer
from trimtab.integrations.chats import Chat, Chats, Held, Kept, Sent, beside_counted, is_learned
from trimtab.integrations.ledgers import Ledger, Recall
from trimtab.integrations.recovery import (
    Refused,
    ask_again,
    is_below,
    note_in,
    note_left_out,
    refusal_in,
    room_after,
)


class _Keys(TypedDict, total=False):
    """The keys of a body that say more of a call than its messages do."""

    stored: Sequence[str]
    held: str
    most_output: Sequence[str]


_KEYS: Mapping[str, _Keys] = {
    "openai_chat": {"most_output": ("max_completion_tokens", "max_tokens")},
    "openai_responses": {
        "stored": ("previous_response_id", "conversation"),
        "most_output": ("max_output_tokens",),
    },
    "anthropic": {"stored": ("thread",), "most_output": ("max_tokens",)},
    "gemini": {"held": "cachedContent", "most_output": ("generationConfig.maxOutputTokens",)},
    "bedrock": {"most_output": ("inferenceConfig.maxTokens",)},
}
"""By wire form."""


class Bodies(ChatTrimmer[Any]):
    """Fits the body of each call of a client in one wire form.

    Args:
        budget: See `AdapterBudget`.
        given: See `ChatOptions`.

    Raises:
        ConfigurationError: The budget is none, or options contradict each other.
    """

    def __init__(self, budget: AdapterBudget, **given: Unpack[ChatOptions]) -> None:
        super().__init__(budget, **given)
        keys = _KEYS.get(self._format.name, _Keys())
        self._stored: Sequence[str] = keys.get("stored", ())
        """By which a body goes on from a conversation that the server keeps."""
        self._held_key = keys.get("held")
        """Names what the server puts before the messages, and says the size of."""
        self._most_output: Sequence[str] = keys.get("most_output", ())
        """Say how long the answer may be; dotted ones lead into a mapping."""
        self._ledger = Ledger(Chats(self._format, self._new_baseline), self._refused, Held())
        self.held = self._ledger.held
        """The size of what the server puts before the messages of a call, if it was reported."""
        self.warns = True
        """Whether warnings and the log tell of a call what its programmer should know. A server that fits the
        calls of others tells them in its answers: what they write must not fill a pipe that nobody reads."""

    def fit_body(
        self,
        body: Mapping[str, Any],
        *,
        model: str | None,
        asker: str | None = "",
        recall: Recall | None = None,
    ) -> Sent:
        """Return a body that fits.

        Args:
            body: As it would be sent; what the caller left out may stand there as the SDK writes that.
            model: Who is asked.
            asker: Who asks, where one object serves several: what the server said to one does not change what
                is sent for another. None: nothing is remembered, and nothing remembered is used.
            recall: Where what earlier calls taught is kept; None: here.
        """
        return finish(self._send(body, model, asker, recall))

    async def afit_body(self, body: Mapping[str, Any], *, model: str | None) -> Sent:
        """Do what `fit_body` does; wait for async counters and summarizers."""
        return await afinish(self._send(body, model, "", None))

    def _send(
        self, body: Mapping[str, Any], model: str | None, asker: str | None, recall: Recall | None
    ) -> Steps[Sent]:
        """Fit a call with one counter after another; if none makes it fit, raise the first one's error."""
        request = self._request_of(body)
        if request is None:
            return Sent(body)
        ledger, form = self._ledger, self._format
        if recall is not None:
            ledger = Ledger(Chats(form, self._new_baseline, recall.digest), Refused(), Held())
            recall.fill(ledger, ledger.chats.opening_of(request.messages, self._model(model), asker))
        known = () if asker is None else ledger.refused.thinking_of(asker)
        left = form.forget_thinking(request.body or {}, known) if known else None
        if left is None:
            return (yield from self._fit_call(self._call(body, request, model, asker, ledger)))
        count = sum(form.thinking_key(message) in known for message in request.messages)
        call = self._call({**body, **left}, form.read_request(left), model, asker, ledger)
        return (yield from self._fit_call(replace(call, left_out=count)))

    def _fit_call(
        self, call: _Call, limit_tokens: int | None = None, why: Refusal | None = None
    ) -> Steps[Sent]:
        """Fit a call; one that was refused to a room of its own."""

        def fit_by(counter: TotalBaseline | None) -> Steps[tuple[Fitted[Any], Sequence[int | None]]]:
            question, places = self._question(call, counter, limit_tokens)
            fitted = yield question
            return fitted, places(fitted)

        counter, (fitted, places) = yield from call.chat.fit_by_one(fit_by)
        return (yield from self._outcome(call, counter, fitted, places, why))

    def recover(self, sent: Sent, error: Exception) -> Sent:
        """Return what to send in place of a refused request.

        What the provider says of its size is taken in as a bill is.

        Args:
            sent: What was refused.
            error: What the client raised.

        Raises:
            Exception: The very error, where there is nothing to send: it says why, if it is one of these.
        """
        return finish(self._recover(sent, error))

    async def arecover(self, sent: Sent, error: Exception) -> Sent:
        """Do what `recover` does; wait for async counters and summarizers."""
        return await afinish(self._recover(sent, error))

    def _recover(self, sent: Sent, error: Exception) -> Steps[Sent]:
        refusal = refusal_in(error) if self.retries and sent.call is not None else None

        def make(refusal: Refusal) -> Steps[Sent | None]:
            made = self._shorter if refusal.kind == "too_long" else self._without_thinking
            return (yield from made(sent, refusal))

        return (yield from ask_again(error, refusal, make, lambda again: again.body == sent.body))

    def _shorter(self, sent: Sent, refusal: Refusal) -> Steps[Sent | None]:
        call, fitted, tokens = sent.call, sent.fitted, refusal.sent_tokens
        assert fitted is not None
        if tokens is not None and sent.counter is not None:
            call.chat.take_bill(tokens - call.held_tokens, sent)
        is_taught = tokens is not None and call.chat.baseline is not sent.counter
        room = room_after(refusal, fitted.settlement.tokens, is_taught=is_taught)
        limit = fitted.settlement.limit_tokens
        if call.asker is not None:
            call.ledger.refused.learn_window(self._model(call.model), refusal, asker=call.asker)
        return (yield from self._fit_call(call, max(1, min(room, limit)), refusal))

    def _without_thinking(self, sent: Sent, refusal: Refusal) -> Steps[Sent | None]:
        call: _Call = sent.call
        if call.asker is not None:
            keys = map(self._format.thinking_key, call.request.messages)
            call.ledger.refused.learn_thinking(keys, asker=call.asker)
        body = self._format.forget_thinking(call.request.body or {})
        if body is None:
            return None
        request = self._format.read_request(body)
        again = self._call({**call.body, **body}, request, call.model, call.asker, call.ledger)
        return (yield from self._fit_call(again, why=refusal))

    def _question(
        self, call: _Call, counter: TotalBaseline | None, limit_tokens: int | None
    ) -> tuple[Question, Callable[[Fitted[Any]], Sequence[int | None]]]:
        """Ask for a fit; returns with it what lists where the messages that are sent stand in the call."""
        room = self._room(call, limit_tokens)
        if isinstance(self._budget, Context):
            context = self._budget
            asked = context.policy.budget
            name = known_name(self._model(call.model))
            if is_below(room, None if asked is None else Budget.of(asked, model=name)):
                context = context.clone(budget=_budget_of(room, counter))
            blocks = self._in_context(context, call, counter)
            return Question(blocks.context.fit, blocks.context.afit), blocks.places
        limit, given = self._arguments(call, counter)
        if is_below(room, limit):
            limit = _budget_of(room, counter)
        asked = (call.request.body or {}, limit)
        fits, afits = partial(fit, *asked, **given), partial(afit, *asked, **given)
        return Question(fits, afits), lambda fitted: fitted.positions

    def _room(self, call: _Call, limit_tokens: int | None) -> int | None:
        """Return the room of a refused call, or of one whose model is known from an error to accept less."""
        room = None
        if call.asker is not None:
            output_tokens = self._output_of(call.request)
            name = self._model(call.model)
            room = call.ledger.refused.room(name, output_tokens=output_tokens, asker=call.asker)
        return min((one for one in (room, limit_tokens) if one is not None), default=None)

    def _call(
        self, body: Mapping[str, Any], request: Request, model: str | None, asker: str | None, ledger: Ledger
    ) -> _Call:
        """Find the conversation of a call, and how much the server puts before it."""
        chat, name = ledger.chats.find(request.messages, self._model(model), asker), None
        if self._held_key is not None and _has(body, self._held_key):
            name = str(body[self._held_key])
            name = ledger.chats.digest(f"{asker} {name}") if asker else name
            if self.warns and ledger.held.asks(name):
                warnings.warn(
                    f"{self._held_key}={name!r:.200}: the server puts content before the messages that nobody"
                    " here sees. This call is fitted without it; how large it is is known from what the call"
                    " is billed, or from caches.create and caches.get of this client",
                    stacklevel=2,
                )
        return _Call(body, request, model, asker, ledger, chat, name, ledger.held.tokens(name) or 0)

    def stored_key(self, body: Mapping[str, Any]) -> str | None:
        """Return the key by which a body goes on from a conversation that the server keeps; None: none.

        Args:
            body: That of a call.
        """
        return next((key for key in self._stored if _has(body, key)), None)

    def _request_of(self, body: Mapping[str, Any]) -> Request | None:
        """Read a body; None if it has no messages, or the server keeps what it goes on from."""
        kept = self.stored_key(body)
        if kept is not None:
            self.warn_stored(
                f"{kept} is given, and the call is sent as it is",
                instead=f"leave {kept}= out, and give all messages",
            )
            return None
        key = self._format.rules.body_key
        clean = {name: value for name, value in body.items() if _has(body, name)}
        if key not in clean:  # a stored prompt or instructions alone: there is nothing that could leave
            return None
        if not isinstance(clean[key], str | list):  # SDKs take any iterable
            clean[key] = list(clean[key])
        return self._format.read_request(clean)

    def _new_baseline(self, name: str | None) -> TotalBaseline | None:
        """Make what counts a conversation of a model; None: the caller's own counter, which takes no bill."""
        counter: Any = self._own
        if counter is None:
            known = known_name(name)
            counter = EstimateCounter() if known is None else self._estimate(known) or counter_for(known)
        try:
            return TotalBaseline(as_additive(counter).with_format(self._format))
        except ConfigurationError:  # it counts whole requests, or is awaited: such counts need no bill
            return None

    def _arguments(self, call: _Call, counter: TotalBaseline | None) -> tuple[Budget | None, dict[str, Any]]:
        """Return the budget and the options of a call."""
        given = self._ask(call.model, None, None, None)
        given["counter"] = call.counter(counter) or self._own
        if self._holds:
            given["strategy"] = self._strides(call.chat, call.request.messages)
        return self._limit(call.request, counter, call.model), given

    def _in_context(self, context: Context, call: _Call, counter: TotalBaseline | None) -> Blocks[Any]:
        given = self._ask(call.model, None, call.request.system, call.request.tools)
        given["counter"] = call.counter(counter) or self._own
        return Blocks(context, call.request.messages, self._format, None, given)

    def _limit(self, request: Request, baseline: TotalBaseline | None, model: str | None) -> Budget | None:
        """Return the budget of a call: an answer has its room, and an estimate keeps some free."""
        if self._exactly:
            return self._tokens(model, None)
        output, name = self._output_of(request), known_name(self._model(model))
        if self._budget is None:
            limit = known_budget(None, name, output_reserve=output)
        else:
            limit = self._tokens(model, None)
            window = known_window(name)
            if isinstance(self._budget, str) and output and window and limit:
                limit = replace(limit, window=max(1, min(limit.window, window - output)))
        return replace(limit, margin="auto") if limit is not None and is_learned(baseline) else limit

    def _output_of(self, request: Request) -> int | None:
        """Return the most tokens an answer may have; None if the body does not say."""
        for dotted in self._most_output:
            value: Any = request.body
            for key in dotted.split("."):
                value = item_of(value, key)
            if isinstance(value, int) and value > 0:
                return value
        return None

    def _outcome(
        self,
        call: _Call,
        counter: TotalBaseline | None,
        fitted: Fitted[Any],
        places: Sequence[int | None],
        why: Refusal | None,
    ) -> Steps[Sent]:
        note_left_out(fitted, call.left_out)
        self._note_missing(fitted, self._name_of(self._model(call.model)))
        if why is not None:
            note_in(fitted, why, logs=self.warns)
        yield from self._tell(fitted)
        request = call.request
        kept = Kept.of(fitted, places, request.messages)
        if self._holds:
            call.chat.learn(request.messages, fitted, kept)
        written = fitted.request
        if isinstance(self._budget, Context):
            written = self._format.write_request(replace(request, system=fitted.system), fitted.messages)
        made = {**call.body, **written}
        held = None if call.held is None else (call.held, call.ledger.held)
        if counter is None:
            return Sent(made, fitted=fitted, call=call, held=held)
        settlement = fitted.settlement
        return Sent(
            made,
            chat=call.chat,
            counter=counter,
            tokens=settlement.tokens - call.held_tokens,
            fixed_counted=beside_counted(counter, request),
            limit_tokens=settlement.limit_tokens,
            fitted=fitted,
            call=call,
            kept=kept,
            held=held,
        )


def _budget_of(room: int, counter: TotalBaseline | None) -> Budget:
    return Budget(room, margin="auto" if is_learned(counter) else 0)


@dataclass(frozen=True, slots=True)
class _Call:
    """A call to fit."""

    body: Mapping[str, Any]
    request: Request
    model: str | None
    asker: str | None
    """Who asks; None: nothing is remembered of this call."""
    ledger: Ledger
    chat: Chat
    held: str | None
    """The name of what the server puts before its messages."""
    held_tokens: int
    left_out: int = 0
    """Of how many messages the thinking was left out, since it was refused before."""

    def counter(self, counter: TotalBaseline | None) -> TotalBaseline | None:
        """Have a conversation's counter count what the server holds, too."""
        return None if counter is None else counter.with_held(self.held_tokens)


def _has(body: Mapping[str, Any], key: str) -> bool:
    """Tell whether a key has a value: SDKs have special objects for omitted arguments."""
    return body.get(key) is not None and type(body[key]).__name__ not in ("Omit", "NotGiven")
