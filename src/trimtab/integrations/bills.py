"""A `Trimmer` that remembers conversations: their bills, and where they were cut (`chats`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypedDict, TypeVar, Unpack

from trimtab._fit import Fitted
from trimtab._fitting.request import counter_of
from trimtab._shared.steps import Steps
from trimtab.budget import Budget
from trimtab.context import Context
from trimtab.counting.door import as_additive
from trimtab.counting.totals import TotalBaseline
from trimtab.errors import ConfigurationError
from trimtab.formats import Request
from trimtab.integrations.base import AdapterBudget, Asked, Blocks, FitOptions, OnFitted, Trimmer
from trimtab.integrations.chats import Chat, Chats, Kept, Sent, beside_counted, is_learned, refuse_baseline
from trimtab.strategies import Cascade, SlidingWindow, TruncateText
from trimtab.strategies.cut_memory import HeldCut

M = TypeVar("M")


class ChatOptions(TypedDict):
    """The options of a `ChatTrimmer` other than its budget."""

    format: str
    """The wire form of the messages."""
    retry_overflow: bool
    """Whether a refused call is sent once more, if it can be sent in another way."""
    on_fitted: OnFitted | None
    """Called with the `Fitted` of each call; may be async where the call is."""
    options: FitOptions
    """The user's options for `fit`."""


class ChatTrimmer(Trimmer[M]):
    """A `Trimmer` with its own counter for each conversation, which it cuts where it was cut before.

    Args:
        budget: See `AdapterBudget`.
        given: See `ChatOptions`.

    Raises:
        ConfigurationError: The budget is none, or options contradict each other.
    """

    def __init__(self, budget: AdapterBudget, **given: Unpack[ChatOptions]) -> None:
        options = given["options"]
        super().__init__(
            budget,
            format=given["format"],
            retry_overflow=given["retry_overflow"],
            on_fitted=given["on_fitted"],
            options=options,
            hands_system=True,
        )
        own: Any = options.get("counter")
        if own is None and isinstance(self._budget, Context):
            own = self._budget.policy.counter
        refuse_baseline(own)
        self._own = own
        self._exactly = isinstance(budget, Budget)
        """Whether the budget is an exact limit of the caller: a `Budget` is used as it is."""
        self._holds = not isinstance(self._budget, Context) and options.get("strategy") is None

    def _strides(self, chat: Chat, messages: Sequence[Any]) -> Cascade:
        """Cut a conversation where it was cut before, otherwise in strides."""
        held = HeldCut(chat.plan(messages), self._target_ratio, chat.as_before)
        return Cascade(held, SlidingWindow(target_ratio=self._target_ratio), TruncateText())


class BilledTrimmer(ChatTrimmer[M]):
    """Fits each call as a `Trimmer` does, by what earlier calls of its conversation were billed."""

    def __init__(self, budget: AdapterBudget, **given: Unpack[ChatOptions]) -> None:
        super().__init__(budget, **given)
        self._chats: dict[Any, Chats] = {}
        """By who is asked, and the wire form that is charged."""

    def _fit_asked(self, asked: Asked[M]) -> Steps[tuple[Fitted[M], Blocks[M] | None, Sent | None]]:
        """Fit a call with one counter after another; if none makes it fit, raise the first one's error."""
        if not asked.is_one:
            return (yield from super()._fit_asked(asked))
        chat, fit = self._chat_of(asked), super()._fit_asked
        counter, (fitted, blocks, _) = yield from chat.fit_by_one(
            lambda counter: fit(self._ask_by(asked, chat, counter))
        )
        return fitted, blocks, self._bill(asked, chat, counter, fitted, blocks)

    def _chat_of(self, asked: Asked[M]) -> Chat:
        model, given = self._model(asked.model), asked.given
        key = model, str(given["charge_as"])

        def new_baseline(_: str | None) -> TotalBaseline | None:
            own = self._own if given.get("counter") is None else given["counter"]
            name = self._name_of(given["model"])
            try:
                made: Any = counter_of(own, name, self._format)
                return TotalBaseline(as_additive(made))
            except ConfigurationError:  # it counts whole requests, or is awaited: such counts need no bill
                return None

        chats = self._chats.setdefault(key, Chats(self._format, new_baseline))
        return chats.find(asked.messages, model)

    def _ask_by(self, asked: Asked[M], chat: Chat, counter: TotalBaseline | None) -> Asked[M]:
        """Make the request with a counter, and with the previous cut of the conversation."""
        given = dict(asked.given)
        if counter is not None:
            given["counter"] = counter  # which `fit` asks to charge as the form that is sent
        if self._holds:
            given["strategy"] = self._strides(chat, asked.messages)
        keeps_free = asked.room is not None or not self._exactly
        return replace(asked, given=given, is_learned=keeps_free and is_learned(counter))

    def _bill(
        self,
        asked: Asked[M],
        chat: Chat,
        counter: TotalBaseline | None,
        fitted: Fitted[M],
        blocks: Blocks[M] | None,
    ) -> Sent | None:
        """Remember where a call was cut; returns what records its bill."""
        messages, given = asked.messages, asked.given
        kept = Kept.of(fitted, fitted.positions if blocks is None else blocks.places(fitted), messages)
        if self._holds:
            chat.learn(messages, fitted, kept)
        if counter is None:
            return None
        charged = counter.charge_as(given["charge_as"]) if given["charge_as"] else counter
        request = Request(messages=messages, system=given["system"], tools=given["tools"])
        settlement = fitted.settlement
        return Sent(
            {},
            chat=chat,
            counter=counter,
            tokens=settlement.tokens,
            fixed_counted=beside_counted(charged, request),
            limit_tokens=settlement.limit_tokens,
            fitted=fitted,
            kept=kept,
        )
