"""A `Trimmer` that remembers conversations: their bills, and where they were cut (`chats`)."""

from __future__ import annotations

from typing import Any, TypeVar

from trimtab._fit import Fitted
from trimtab._fitting.request import counter_of
from trimtab._shared.steps import Steps
from trimtab.budget import Budget
from trimtab.context import Context
from trimtab.counting.base import SYSTEM_ROLES
from trimtab.counting.door import as_additive
from trimtab.counting.totals import TotalBaseline
from trimtab.errors import BudgetExceededError, ConfigurationError
from trimtab.formats import mapping_of
from trimtab.integrations.base import AdapterBudget, Asked, Blocks, FitOptions, OnFitted, Trimmer
from trimtab.integrations.chats import Chat, Chats, Kept, Sent, is_learned, refuse_baseline
from trimtab.strategies import Cascade, SlidingWindow, TruncateText
from trimtab.strategies.cut_memory import HeldCut

M = TypeVar("M")


class BilledTrimmer(Trimmer[M]):
    """Fits each call as a `Trimmer` does, by what earlier calls of its conversation were billed.

    Args:
        budget: See `AdapterBudget`.
        format: The wire form of the messages.
        target_ratio: What stays when a conversation is cut; see `Bodies`.
        retry_overflow: As for a `Trimmer`.
        on_fitted: Called with the `Fitted` of each call; may be async where the call is.
        options: What the user said of `fit`.

    Raises:
        ConfigurationError: The budget is none, or options contradict each other.
    """

    def __init__(
        self,
        budget: AdapterBudget,
        *,
        format: str,
        target_ratio: float,
        retry_overflow: bool,
        on_fitted: OnFitted | None,
        options: FitOptions,
    ) -> None:
        super().__init__(
            budget,
            format=format,
            retry_overflow=retry_overflow,
            on_fitted=on_fitted,
            options=options,
            hands_system=True,
        )
        self._own: Any = options.get("counter")
        if self._own is None and isinstance(self._budget, Context):
            self._own = self._budget.policy.counter
        refuse_baseline(self._own)
        self._exactly = isinstance(budget, Budget)
        self._holds = not isinstance(self._budget, Context) and options.get("strategy") is None
        self._target_ratio = 0.5 if options.get("steady") else target_ratio
        self._options.pop("steady", None)
        self._chats: dict[Any, Chats] = {}
        """By who is asked, and the wire form that is charged."""

    def _fit_asked(self, asked: Asked[M]) -> Steps[tuple[Fitted[M], Blocks[M] | None, Sent | None]]:
        """Have a call fitted by one counter after the other; if none makes it fit, the first says why."""
        if not asked.is_one:
            return (yield from super()._fit_asked(asked))
        chat = self._chat_of(asked)
        refused: BudgetExceededError | None = None
        for counter in chat.counters():
            try:
                fitted, blocks, _ = yield from super()._fit_asked(self._ask_by(asked, chat, counter))
            except BudgetExceededError as error:
                refused = refused or error
            else:
                return fitted, blocks, self._bill(asked, chat, counter, fitted, blocks)
        assert refused is not None
        raise refused

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
        """Ask by a counter, and to cut where the conversation was cut before."""
        given = dict(asked.given)
        if counter is not None:
            given["counter"] = counter  # which `fit` asks to charge as the form that is sent
        if self._holds:
            held = HeldCut(chat.plan(asked.messages), self._target_ratio, chat.as_before)
            given["strategy"] = Cascade(held, SlidingWindow(target_ratio=self._target_ratio), TruncateText())
        keeps_free = asked.room is not None or not self._exactly
        return asked._replace(given=given, is_learned=keeps_free and is_learned(counter))

    def _bill(
        self,
        asked: Asked[M],
        chat: Chat,
        counter: TotalBaseline | None,
        fitted: Fitted[M],
        blocks: Blocks[M] | None,
    ) -> Sent | None:
        """Remember where a call was cut; returns what takes in its bill."""
        messages, given = asked.messages, asked.given
        kept = Kept.of(fitted, fitted.positions if blocks is None else blocks.places(fitted), messages)
        if self._holds:
            chat.learn(messages, fitted, kept)
        if counter is None:
            return None
        system, first = given["system"], mapping_of(messages[0]) if messages else {}
        charged = counter.charge_as(given["charge_as"]) if given["charge_as"] else counter
        fixed_counted = charged.fixed_counted(
            system, given["tools"], has_system=bool(system) or first.get("role") in SYSTEM_ROLES
        )
        settlement = fitted.settlement
        return Sent(
            {},
            chat=chat,
            counter=counter,
            tokens=settlement.tokens,
            fixed_counted=fixed_counted,
            limit_tokens=settlement.limit_tokens,
            fitted=fitted,
            kept=kept,
        )
