"""`Fitted`: what `fit` gives back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, NoReturn, Protocol, TypeVar

from trimtab._shared import observers
from trimtab._shared.checks import unknown_name
from trimtab.budget import Budget, BudgetLike
from trimtab.counting.awaited import CountsNeeded
from trimtab.errors import BudgetExceededError, ConfigurationError
from trimtab.formats import Format, Request

if TYPE_CHECKING:
    from trimtab.report import Report

__all__ = ["NO_MARKS", "Fitted", "Marks", "Plan", "PlanAround", "fitted_for"]

M = TypeVar("M")
T = TypeVar("T")


class Marks(NamedTuple):
    """Marks for the provider's prompt cache that were set on what a plan gives."""

    at: frozenset[int] = frozenset()
    """Messages of the caller's that carry one, by their rows."""
    tokens: int = 0
    """What all of them cost."""
    notes: tuple[str, ...] = ()
    """What a reader should know of them."""

    def charge(self, report: Report) -> Report:
        """Return a report with what they cost, which is beside the messages."""
        if not self.tokens and not self.notes:
            return report
        return replace(
            report,
            notes=(*report.notes, *self.notes),
            tokens_after=report.tokens_after + self.tokens,
            fixed_tokens=report.fixed_tokens + self.tokens,
        )


NO_MARKS = Marks()


class Plan(Protocol):
    """What was decided for one budget: all a `Fitted` shows, and how to decide again."""

    @property
    def budget(self) -> Budget:
        """The budget it was decided for."""
        ...

    @property
    def fits(self) -> bool:
        """False if what must stay passes the budget."""
        ...

    @property
    def tokens(self) -> int:
        """Tokens of the whole request."""
        ...

    @property
    def model(self) -> str | None:
        """The model it was asked for."""
        ...

    @property
    def counter(self) -> Any:
        """What counts, for the wire form."""
        ...

    @property
    def stable(self) -> int:
        """Messages at the front of the output that stay there when a cut moves, as far as that is known."""
        ...

    @property
    def source(self) -> Sequence[Any]:
        """The caller's messages, in the order of the rows of the report."""
        ...

    @property
    def format(self) -> Format:
        """The wire form."""
        ...

    @property
    def body(self) -> Request:
        """What was asked for, as a request."""
        ...

    @property
    def given(self) -> Sequence[Any]:
        """What the caller gave for each of `source`: the message itself, or what it was written from."""
        ...

    @property
    def spans(self) -> Mapping[str, range]:
        """Where in `source` the messages of each block stand."""
        ...

    def messages(self) -> list[Any]:
        """Put the output together."""
        ...

    def positions(self) -> list[int | None]:
        """List where in `source` each message of the output was; None: trimtab put it in."""
        ...

    def stays(self) -> set[int]:
        """List where in `source` stands what is in the output, or a part of it."""
        ...

    def without_marks(self) -> Plan:
        """Return the plan without the marks that were set for a prompt cache."""
        ...

    def report(self, messages: list[Any], /, *, marks: Marks = NO_MARKS) -> Report:
        """Make the report of the fit that gave these messages, with marks that were set on what it gave."""
        ...

    def at(self, budget: Budget, /) -> Plan:
        """Decide for another budget; no summarizer is asked."""
        ...

    def count_all(self) -> None:
        """Count what the fit did not need to."""
        ...

    def budget_error(self) -> BudgetExceededError:
        """Make the error for what does not fit."""
        ...


class PlanAround:
    """A plan that shows the output of another one otherwise."""

    def __init__(self, plain: Plan) -> None:
        self.plain = plain
        """The other one."""

    @property
    def budget(self) -> Budget:
        """The budget it was decided for."""
        return self.plain.budget

    @property
    def fits(self) -> bool:
        """False if what must stay passes the budget."""
        return self.plain.fits

    @property
    def tokens(self) -> int:
        """Tokens of the whole request."""
        return self.plain.tokens

    @property
    def model(self) -> str | None:
        """The model it was asked for."""
        return self.plain.model

    @property
    def counter(self) -> Any:
        """What counts."""
        return self.plain.counter

    @property
    def stable(self) -> int:
        """Messages that stand in front of every cut."""
        return self.plain.stable

    @property
    def source(self) -> Sequence[Any]:
        """The caller's messages."""
        return self.plain.source

    @property
    def format(self) -> Format:
        """The wire form."""
        return self.plain.format

    @property
    def body(self) -> Request:
        """What was asked for, as a request."""
        return self.plain.body

    @property
    def given(self) -> Sequence[Any]:
        """What the caller gave."""
        return self.plain.given

    @property
    def spans(self) -> Mapping[str, range]:
        """Where the messages of each block stand."""
        return self.plain.spans

    def positions(self) -> list[int | None]:
        """List where each message of the output was."""
        return self.plain.positions()

    def stays(self) -> set[int]:
        """List where what is in the output was."""
        return self.plain.stays()

    def without_marks(self) -> Plan:
        """Return the other one without marks."""
        return self.plain.without_marks()

    def report(self, messages: list[Any], /, *, marks: Marks = NO_MARKS) -> Report:
        """Make the report of the other one."""
        return self.plain.report(self.plain.messages(), marks=marks)

    def count_all(self) -> None:
        """Count what the fit did not need to."""
        self.plain.count_all()

    def budget_error(self) -> BudgetExceededError:
        """Make the error for what does not fit."""
        return self.plain.budget_error()


_BESIDE = ", fitted.request for the body, or fitted.report.to_dict() for what happened, which JSON can hold"

_INSTEAD = {
    **dict.fromkeys(("tokens", "tokens_after", "token_count", "total_tokens"), "report.tokens_after"),
    **dict.fromkeys(("dropped", "removed", "trimmed", "left"), "evicted"),
    **dict.fromkeys(("remaining", "remaining_tokens", "free"), "report.remaining_tokens"),
    **dict.fromkeys(("to_dict", "dict", "model_dump", "json", "to_json"), "report.to_dict()"),
    **dict.fromkeys(("body", "payload"), "request"),
    **dict.fromkeys(("kept", "output", "result", "history"), "messages"),
    **{name: f"report.{name}" for name in ("fits", "notes", "tokens_before", "violations", "to_text")},
}
"""What people look for in a `Fitted`, and where it is."""


class Fitted(Generic[M]):
    """A conversation that fits: messages ready to send, and the report of what left.

    A copy (`pickle`, `copy`) holds all there is to read, but not counter, strategy and callbacks:
    `at` and `count_all` of a copy are a ConfigurationError. Pickling reads the report.

    Example:
        >>> from trimtab import fit
        >>> from trimtab.counting import FixedCounter
        >>> fitted = fit([{"role": "user", "content": "hi"}], budget=10, counter=FixedCounter(per_message=7))
        >>> fitted.report.remaining_tokens, fitted.at(8).report.remaining_tokens
        (3, 1)
    """

    __slots__ = ("_plan", "_report", "messages")

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._report: Report | None = None
        self.messages: list[M] = plan.messages()
        """What stays, in order: the caller's own objects; edited ones are shallow copies."""

    def __repr__(self) -> str:
        """Say how much stayed."""
        plan = self._plan
        room = plan.budget.input_tokens
        return f"<Fitted {len(self.messages)} of {len(plan.source)} messages, {plan.tokens}/{room} tokens>"

    def _repr_html_(self) -> str:
        """Show the report in a notebook; no text of messages."""
        return self.report._repr_html_()

    def to_html(self, *, include_text: bool = False, title: str = "trimtab report") -> str:
        """Write the report as a page of HTML; see `Report.to_html`.

        Args:
            include_text: Show the text of messages that have a line of their own, as far as it is at hand.
            title: Stands over it.
        """
        return self.report.to_html(include_text=include_text, title=title)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle without counter, strategy and callbacks."""
        places = Places(self.positions, self.changed, dict(self._spans))
        read = (self.messages, self.system, self.tools, self.request, self.report, self.evicted, places)
        return _copy, read

    def __iter__(self) -> NoReturn:
        """Refuse: it is no list, it has one.

        Raises:
            TypeError: Always.
        """
        raise TypeError(f"a Fitted is no list: write fitted.messages{_BESIDE}")

    def __getitem__(self, key: Any, /) -> NoReturn:
        """Refuse: it is no list, it has one.

        Raises:
            TypeError: Always.
        """
        raise TypeError(f"a Fitted is no list: write fitted.messages[{key!r:.20}]{_BESIDE}")

    if not TYPE_CHECKING:  # or a checker would take any name for one

        def __getattr__(self, name: str) -> NoReturn:
            """Say what a name that is often looked for is called here."""
            instead = _INSTEAD.get(name)
            raise AttributeError(
                f"a Fitted has no {name!r}" + ("" if instead is None else f": write fitted.{instead}")
            )

    @property
    def system(self) -> Any:
        """System text to send beside the messages: a text, or a list of parts.

        None if there is none, or where it became the first of the messages.
        """
        return self._plan.body.system

    @property
    def tools(self) -> Any:
        """Tool schemas as given; None if there are none."""
        return self._plan.body.tools

    @property
    def request(self) -> Any:
        """The messages in the form the input had: a copy of the request body, or the list."""
        return self._plan.format.write_request(self._plan.body, list(self.messages))

    @property
    def evicted(self) -> list[M]:
        """The messages of the input that left, in its order: the caller's own objects.

        A message of which a part stays is not among them.
        """
        stay = self._plan.stays()
        return [message for at, message in enumerate(self._plan.given) if at not in stay]

    @property
    def positions(self) -> list[int | None]:
        """For each of the messages its index in the input; None if trimtab put it in.

        The input is the list that was given or that of the body; in a `Context` it is the messages of all
        blocks in the order of the request (see `positions_in`), and for a view of a session what the session
        listed: the rows of `report.messages` have the same index. Put in are summaries, lines for what left,
        system text that became a message, and what joined documents became. Where a message was given twice,
        each has its own index; one of which a repair put parts in several places is there once for each.
        """
        return self._plan.positions()

    def positions_in(self, block: str, /) -> list[int | None]:
        """For each message its index in the list given for a block; None for others.

        Args:
            block: Its name; "history" in `fit`.

        Raises:
            UnknownNameError: No block with messages has this name; that of `fit` is "history".
        """
        spans = self._spans
        if block not in spans:
            there = ", ".join(spans) or "none"
            raise unknown_name(f"no block with messages is named {block!r}; there are: {there}", block, spans)
        span = spans[block]
        return [None if at is None or at not in span else at - span.start for at in self.positions]

    @property
    def _spans(self) -> Mapping[str, range]:
        return self._plan.spans

    @property
    def changed(self) -> list[int]:
        """Which of `messages`, by index, trimtab changed.

        The input has another object in their place: they are shallow copies with a text, a part, a role or
        a mark that differs. What was put in is not among them, nor is what merely moved.
        """
        plan, given = self._plan, self._plan.given
        pairs = enumerate(zip(plan.messages(), plan.positions(), strict=True))
        return [at for at, (message, was) in pairs if was is not None and message is not given[was]]

    @property
    def report(self) -> Report:
        """What was kept, what left, why, and the tokens before and after."""
        if self._report is None:
            self._report = self._plan.report(self.messages)
        return self._report

    def at(self, budget: BudgetLike, /) -> Fitted[M]:
        """Fit the same input to another budget; every size already known is used again.

        Callbacks are not run again, and what they decided holds. No summarizer is asked: the cap of its
        summary stands in for it, and the report says `planned`.

        Args:
            budget: As for `fit`.

        Raises:
            BudgetExceededError: What must stay does not fit this budget.
            ConfigurationError: It is a bare number that passes the model's window, as for `fit`.
        """
        if not observers.active:
            return self._at(budget)
        from trimtab._fitting.observation import FitWatch  # not above: only who is looked at needs it

        with FitWatch("at") as watch:
            fitted = watch.fitted = self._at(budget)
        return fitted

    def _at(self, budget: BudgetLike) -> Fitted[M]:
        return fitted_for(_at_once(lambda: self._plan.at(Budget.of(budget, model=self._plan.model)), "aat"))

    async def aat(self, budget: BudgetLike, /) -> Fitted[M]:
        """Fit the same input to another budget, with an async counter; see `at`.

        Raises:
            BudgetExceededError: What must stay does not fit this budget.
            ConfigurationError: It is a bare number that passes the model's window, as for `fit`.
        """
        if not observers.active:
            return await self._aat(budget)
        from trimtab._fitting.observation import FitWatch

        with FitWatch("at") as watch:
            fitted = watch.fitted = await self._aat(budget)
        return fitted

    async def _aat(self, budget: BudgetLike) -> Fitted[M]:
        from trimtab._shared.steps import rerun

        return fitted_for(await rerun(lambda: self._plan.at(Budget.of(budget, model=self._plan.model))))

    def count_all(self) -> Report:
        """Count what the fit did not need to.

        Returns the report without unknown numbers.

        Raises:
            CountingError: The counter failed on a message the fit did not need.
            FormatError: Such a message is none.
        """
        _at_once(self._plan.count_all, "acount_all")
        self._report = None
        return self.report

    async def acount_all(self) -> Report:
        """Count what the fit did not need to, with an async counter; see `count_all`.

        Raises:
            CountingError: The counter failed on a message the fit did not need.
            FormatError: Such a message is none.
        """
        from trimtab._shared.steps import rerun

        await rerun(self._plan.count_all)
        self._report = None
        return self.report


def _at_once(call: Callable[[], T], instead: str) -> T:
    """Call what may need more counts; with an async counter that is an error.

    Raises:
        ConfigurationError: More counts are needed, and the counter is async.
    """
    try:
        return call()
    except CountsNeeded:
        raise ConfigurationError(
            f"the counter is async and more counts are needed: await fitted.{instead}(...)"
        ) from None


class Places(NamedTuple):
    """Where the messages of an output were, as a copy keeps it."""

    positions: list[int | None]
    changed: list[int]
    spans: dict[str, range]


class CopiedFitted(Fitted[M]):
    """What of a `Fitted` is there after copying or pickling: all there is to read."""

    __slots__ = ("_evicted", "_kept_report", "_places", "_request", "_system", "_tools")

    def __init__(
        self,
        messages: list[M],
        report: Report,
        *,
        system: Any,
        tools: Any,
        request: Any,
        evicted: list[M],
        places: Places,
    ) -> None:
        self.messages = messages
        self._evicted = evicted
        self._places = places
        self._kept_report = report
        self._system = system
        self._tools = tools
        self._request = request

    def __repr__(self) -> str:
        """Say how much stayed."""
        report = self._kept_report
        total, room = report.total_message_count, report.input_tokens
        return f"<Fitted {len(self.messages)} of {total} messages, {report.tokens_after}/{room} tokens>"

    @property
    def system(self) -> Any:
        """System text to send beside the messages."""
        return self._system

    @property
    def tools(self) -> Any:
        """Tool schemas as given."""
        return self._tools

    @property
    def request(self) -> Any:
        """The messages in the form the input had."""
        return self._request

    @property
    def evicted(self) -> list[M]:
        """The messages of the input that left, in its order."""
        return list(self._evicted)

    @property
    def positions(self) -> list[int | None]:
        """For each of the messages its index in the input; None if trimtab put it in."""
        return list(self._places.positions)

    @property
    def _spans(self) -> Mapping[str, range]:
        return self._places.spans

    @property
    def changed(self) -> list[int]:
        """Which of `messages`, by index, trimtab changed."""
        return list(self._places.changed)

    @property
    def report(self) -> Report:
        """What was kept, what left, why, and the tokens before and after."""
        return self._kept_report

    def at(self, budget: BudgetLike, /) -> Fitted[M]:
        """Refuse: a copy cannot count.

        Raises:
            ConfigurationError: Always.
        """
        raise ConfigurationError(
            "at() needs the counter, which a copied or pickled Fitted lacks: call fit again"
        )

    async def aat(self, budget: BudgetLike, /) -> Fitted[M]:
        """Refuse: a copy cannot count.

        Raises:
            ConfigurationError: Always.
        """
        return self.at(budget)

    async def acount_all(self) -> Report:
        """Refuse: a copy cannot count.

        Raises:
            ConfigurationError: Always.
        """
        return self.count_all()

    def count_all(self) -> Report:
        """Refuse: a copy cannot count.

        Raises:
            ConfigurationError: Always.
        """
        raise ConfigurationError("count_all() needs the counter, which a copied or pickled Fitted lacks")


def _copy(
    messages: list[Any],
    system: Any,
    tools: Any,
    request: Any,
    report: Report,
    evicted: list[Any],
    places: Places,
) -> CopiedFitted[Any]:
    return CopiedFitted(
        messages, report, system=system, tools=tools, request=request, evicted=evicted, places=places
    )


def fitted_for(plan: Plan) -> Fitted[Any]:
    """Put the output of a plan together.

    Raises:
        BudgetExceededError: It does not fit; with the nearest attempt.
    """
    fitted: Fitted[Any] = Fitted(plan)
    if not plan.fits:
        raise plan.budget_error().with_attempt(fitted)
    return fitted
