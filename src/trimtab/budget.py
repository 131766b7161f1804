"""`Budget`: how many tokens of a context window the input may take."""

from __future__ import annotations

import math
import re
import reprlib
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex, TypeAlias

from trimtab._shared.checks import check_flag, whole_of
from trimtab.errors import ConfigurationError, Hint, option, phrase
from trimtab.models import ModelFacts, find_facts

if TYPE_CHECKING:
    from trimtab.counting import CounterLike, RequestCounter

__all__ = ["Budget", "BudgetLike"]


@dataclass(frozen=True, slots=True)
class Budget:
    """The room for input in a context window, in tokens.

    Tools and system text are not part of it: pass them to `fit`, which counts them once.

    A fraction of a token is rounded down, so a computed budget can be passed as it is.

    Args:
        window: Most tokens the model takes, input and output together; above 0.
        output_reserve: Tokens kept free for the answer.
        overhead_tokens: Tokens that something outside trimtab adds to every request.
        margin: Tokens kept free because counts may be too low; "auto" keeps as many as the counter may be off
            by.
        over_limit: Whether the window may be larger than the model's known window, for example on your own
            server.

    Raises:
        ConfigurationError: `window` is less than 1, another number is negative or a share (above 0 and below
            1), a number is not finite, or reserve and overhead use up the window.

    Example:
        >>> budget = Budget(128_000, output_reserve=4_096)
        >>> budget.input_tokens, budget.available(used=100_000), budget.would_exceed(123_904)
        (123904, 23904, False)
    """

    window: int
    output_reserve: int = 0
    overhead_tokens: int = 0
    margin: int | Literal["auto"] = 0
    over_limit: bool = False

    def __init__(
        self,
        window: float | SupportsIndex,
        *,
        output_reserve: float | SupportsIndex = 0,
        overhead_tokens: float | SupportsIndex = 0,
        margin: float | SupportsIndex | Literal["auto"] = 0,
        over_limit: bool = False,
    ) -> None:
        set_value = object.__setattr__
        set_value(self, "window", _floor("window", window, 1))
        set_value(self, "output_reserve", _kept_free("output_reserve", output_reserve))
        set_value(self, "overhead_tokens", _kept_free("overhead_tokens", overhead_tokens))
        is_auto = isinstance(margin, str) and margin == "auto"
        set_value(self, "margin", "auto" if is_auto else _kept_free("margin", margin))
        set_value(self, "over_limit", check_flag("over_limit", over_limit))
        if self.output_reserve + self.overhead_tokens >= self.window:
            raise ConfigurationError(
                phrase(
                    f"no room remains in a window of {_tokens(self.window)} with ",
                    option("output_reserve", self.output_reserve),
                    f" and overhead_tokens={self.overhead_tokens:,}",
                )
            )

    @classmethod
    def of(cls, value: BudgetLike, /, *, model: str | None = None) -> Budget:
        """Return the budget that a value means, checked against the model's limits.

        Args:
            value: Tokens, such as 8_000 or "8k"; a share of the model's input limit, such as "80%"; "tier",
                which stays below the model's next price tier; or a `Budget`, which is returned unchanged if
                it is within the model's limits.
            model: Name of the model. None, or an unknown model: no limit is checked.

        Raises:
            ConfigurationError: The value is none of these, or is out of range; it is a share, and the model's
                limit is unknown; it is "tier", and the model has no price tiers; or it is a number above the
                model's window.

        Example:
            >>> Budget.of("80%", model="gpt-5").input_tokens, Budget.of("8k").input_tokens
            (217600, 8000)
        """
        facts = None if model is None else find_facts(model)
        if isinstance(value, cls):
            return value if facts is None else _within_limits(value, facts, model)
        if type(value) is int and facts is None:
            return _bare(value)
        if is_tier(value):
            return _below_tier(facts, model)
        tokens = _tokens_meant(value, facts, model)
        if facts is None:
            return cls(tokens)
        if facts.window_tokens is not None and tokens > facts.window_tokens:
            raise ConfigurationError(
                phrase(
                    option("budget", tokens),
                    f" exceeds the window of {model!r}, {facts.window_tokens:,} tokens for input and output"
                    " together: leave out budget to fill the window, or ",
                    Hint("over_limit", f"pass budget=Budget({tokens}, over_limit=True)"),
                    " if your host has a larger window",
                ),
                argument="budget",
            )
        return _within_limits(cls(tokens), facts, model)

    @property
    def input_tokens(self) -> int:
        """Tokens the input may take; 0 if the other parts use up the window.

        Raises:
            ConfigurationError: The margin is "auto", and no counter has said how large that is.
        """
        margin = self.margin
        if margin == "auto":
            raise ConfigurationError(
                "margin='auto' has no number until the counter is known: call budget.resolved(counter), or"
                " let fit, Context or Session do it",
                argument="margin",
            )
        return max(0, self.window - self.output_reserve - self.overhead_tokens - margin)

    def resolved(self, counter: CounterLike, /, *, unsure_tokens: int = 0) -> Budget:
        """Return the budget with its margin in tokens, as the counter gives it.

        A budget whose margin is a number is returned unchanged. The input room is then the largest count
        that, together with its possible error, stays within the window. `fit`, `Context` and `Session` call
        this; the first two work out `unsure_tokens` from the request.

        Args:
            counter: The counter, which says how far a count may be off.
            unsure_tokens: Further possible error that the counter cannot know: nested schemas, and media
                whose size is unknown.

        Raises:
            ConfigurationError: The counter does not say how far it may be off.

        Example:
            >>> from trimtab.counting import counter_for
            >>> Budget(100_000, margin="auto").resolved(counter_for("gpt-4o")).margin
            997
        """
        if self.margin != "auto":
            return self
        from trimtab.counting.door import as_counter  # not above: only margin="auto" needs it

        room = replace(self, margin=0).input_tokens
        known = max(0, room - unsure_tokens)
        return replace(self, margin=room - _most_within(known, as_counter(counter, later=True)))

    def available(self, used: int = 0) -> int:
        """Return the input tokens that remain after `used`; never below 0.

        Args:
            used: Tokens that are already used.
        """
        return max(0, self.input_tokens - _whole("used", used, 0))

    def utilization(self, used: int) -> float:
        """Return `used` as a share of the input room, 0.0 to 1.0; 1.0 if there is no room.

        Args:
            used: Tokens that are already used.
        """
        room, used = self.input_tokens, _whole("used", used, 0)
        return min(1.0, used / room) if room else 1.0

    def would_exceed(self, used: int) -> bool:
        """Tell whether `used` tokens are more than the input room.

        Args:
            used: Tokens that would be used.
        """
        return _whole("used", used, 0) > self.input_tokens


def _most_within(room_tokens: int, counter: RequestCounter) -> int:
    """Find the largest count that stays in a room together with its margin; 0 if none does."""
    from trimtab.counting.margin import margin_of  # not above: only margin="auto" needs it

    least, most = 0, room_tokens
    while least < most:
        middle = (least + most + 1) // 2
        margin = margin_of(counter, middle)
        if middle + margin <= room_tokens:
            least = middle
        else:
            most = middle - 1
    return least


BudgetLike: TypeAlias = Budget | float | str | SupportsIndex
"""What a budget may be: tokens such as 8_000 or "8k", a share of the model's input limit such as "80%",
"tier" for the room below its next price tier, or a `Budget`.
"""


@dataclass(frozen=True, slots=True, eq=False)
class HeldBudget(Budget):
    """A budget that was lowered to what a model takes."""

    note: str = ""
    """What the report says of that."""

    def __init__(self, window: int, *, note: str = "", **given: Any) -> None:
        Budget.__init__(self, window, **given)  # a class with slots is made twice, and super() has the first
        object.__setattr__(self, "note", note)

    def __eq__(self, other: object) -> bool:
        """Compare numbers, also with a budget that was not lowered: the note is no part of the value."""
        return bool(self._plain == (other._plain if isinstance(other, HeldBudget) else other))

    __hash__ = Budget.__hash__

    @property
    def _plain(self) -> Budget:
        return Budget(
            self.window,
            output_reserve=self.output_reserve,
            overhead_tokens=self.overhead_tokens,
            margin=self.margin,
            over_limit=self.over_limit,
        )


class TierBudget(Budget):
    """A budget that stays below a price tier, also by what counts may be off where a counter says that."""

    __slots__ = ()

    def resolved(self, counter: CounterLike, /, *, unsure_tokens: int = 0) -> Budget:
        """Return the budget with its margin in tokens; none where the counter does not say."""
        from trimtab.counting.door import as_counter  # not above: only margin="auto" needs it
        from trimtab.counting.margin import known_margin

        if known_margin(as_counter(counter, later=True), 0) is None:
            return replace(self, margin=0)
        return Budget.resolved(self, counter, unsure_tokens=unsure_tokens)


def is_tier(value: object, /) -> bool:
    """Tell the word for a budget below a price tier."""
    return isinstance(value, str) and value.strip().lower() == "tier"


def _below_tier(facts: ModelFacts | None, model: str | None) -> Budget:
    if model is None:
        raise _unknown_limit(
            phrase(option("budget", "tier"), " means the room below a price tier of the model"), None
        )
    from trimtab.models.prices import find_pricing  # not above: few budgets ask for prices

    prices = find_pricing(model)
    limit_tokens = None if facts is None else facts.input_limit_tokens
    for tier in () if prices is None else prices.tiers:
        if limit_tokens is None or tier.above_tokens < limit_tokens:
            return TierBudget(tier.above_tokens, margin="auto")
    raise ConfigurationError(
        phrase(
            option("budget", "tier"),
            f" means the room below a price tier, and {model!r} has no known tier: pass tokens, or a share"
            " of its input limit, such as '80%'",
        ),
        argument="budget",
    )


def window_budget(facts: ModelFacts, /, *, output_reserve: int | None = None) -> Budget | None:
    """Return what a model takes of input beside the room for its answer; None if nobody knows.

    Args:
        facts: What is known of it.
        output_reserve: Tokens kept free for the answer; None: as many as it may have.
    """
    window_tokens = facts.window_tokens
    if window_tokens is None:
        return None if facts.input_tokens is None else Budget(facts.input_tokens)
    reserve = facts.output_reserve_tokens if output_reserve is None else output_reserve
    if facts.input_tokens is not None:
        window_tokens = min(window_tokens, facts.input_tokens + reserve)
    return Budget(window_tokens, output_reserve=reserve)


def known_budget(
    budget: BudgetLike | None, model: str | None, /, *, output_reserve: int | None = None
) -> Budget | None:
    """Return the budget asked for, or what the model takes of input; None without either.

    Args:
        budget: As it was asked for; held to what the model takes.
        model: Name of the model.
        output_reserve: Room for the answer where no budget says it; None: as much as it may have.

    Raises:
        ConfigurationError: It is a bare number above the window of the model; see `Budget.of`.
    """
    if budget is not None:
        return Budget.of(budget, model=model)
    facts = None if model is None else find_facts(model)
    return None if facts is None else window_budget(facts, output_reserve=output_reserve)


def within(budget: Budget, counter: RequestCounter, tools: Any, /) -> Budget:
    """Resolve a budget for a request of which its tools alone are known."""
    if budget.margin != "auto":
        return budget
    from trimtab.counting.margin import unsure_of  # not above: only margin="auto" needs it

    return budget.resolved(counter, unsure_tokens=unsure_of(counter, tools, ()) or 0)


def _within_limits(budget: Budget, facts: ModelFacts, model: str | None) -> Budget:
    """Lower a budget to a model's window and input limit, if it passes one of them."""
    if budget.over_limit:
        return budget
    window_tokens, limit_tokens = budget.window, facts.input_tokens
    if facts.window_tokens is not None:
        window_tokens = min(window_tokens, facts.window_tokens)
    if limit_tokens is not None:
        window_tokens = min(window_tokens, limit_tokens + budget.output_reserve)
    if window_tokens == budget.window:
        return budget
    if budget.output_reserve + budget.overhead_tokens >= window_tokens:
        raise ConfigurationError(
            phrase(
                option("output_reserve", budget.output_reserve),
                f" and overhead_tokens={budget.overhead_tokens:,} use up the window of {model!r},"
                f" {window_tokens:,} tokens; if it is larger, ",
                Hint("over_limit", "pass Budget(..., over_limit=True)"),
            ),
            argument="output_reserve",
        )
    is_input = limit_tokens is not None and window_tokens == limit_tokens + budget.output_reserve
    known = f"{limit_tokens:,} tokens of input" if is_input else f"{window_tokens:,} tokens in all"
    note = (
        f"The budget of {budget.window:,} tokens is held to what {model!r} takes, {known}; where it takes"
        " more, pass Budget(..., over_limit=True)."
    )
    return HeldBudget(
        window_tokens,
        output_reserve=budget.output_reserve,
        overhead_tokens=budget.overhead_tokens,
        margin=budget.margin,
        note=note,
    )


_SHARE = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*%\s*")
_NUMBER = re.compile(r"\s*([0-9][0-9_]*(?:,[0-9]{3})*)(\.[0-9]+)?([km])?\s*", re.IGNORECASE)
_TIMES = {"": 1, "k": 1_000, "m": 1_000_000}
WORDS_PATTERN = r"^\s*([0-9]+(\.[0-9]+)?\s*%|[0-9][0-9_]*(,[0-9]{3})*(\.[0-9]+)?[kKmM]?|[tT][iI][eE][rR])\s*$"
"""Texts that mean a budget, as schemas write it."""
_MOST_CHARS = 40
"""No number of tokens is longer; what is may be anything."""


def needs_model(value: object, /) -> bool:
    """Tell a text that means so many tokens of a model's: a share of its input limit, or its price tier."""
    return isinstance(value, str) and (is_tier(value) or _SHARE.fullmatch(value) is not None)


def check_words(value: str, /) -> str:
    """Refuse a share that is none."""
    _share_in(value)
    return value


def share_of_window(value: str, window: Budget, /) -> Budget | None:
    """Return a share of a window that somebody else vouches for, as the framework that knows the model."""
    share = _share_in(value)
    return None if share is None else Budget(max(1, window.window * share), over_limit=True)


def _share_in(value: str) -> float | None:
    """Read a share as "80%"; None if it is something else."""
    found = _SHARE.fullmatch(value)
    if found is None:
        return None
    share = float(found[1]) / 100
    if not 0 < share <= 1:
        raise ConfigurationError(
            phrase(option("budget", value), ": a share of the input limit must be above 0% and at most 100%"),
            argument="budget",
        )
    return share


def is_words(value: str, /) -> bool:
    """Tell a text that means a budget from any other."""
    return needs_model(value) or tokens_in(value) is not None


def tokens_in(text: str, /) -> int | None:
    """Read a number of tokens: 4000, 4_000, 4k, 1.5m, rounded down; None if it is none."""
    found = _NUMBER.fullmatch(text) if len(text) <= _MOST_CHARS else None
    if found is None:
        return None
    whole, fraction, suffix = found.groups(default="")
    return int(float(re.sub("[_,]", "", whole) + fraction) * _TIMES[suffix.lower()])


def _tokens_meant(value: object, facts: ModelFacts | None, model: str | None) -> int:
    """Read what is no `Budget` as tokens."""
    if not isinstance(value, str):
        if isinstance(value, float) or whole_of(value) is not None:
            return _floor("budget", value, 1)
        raise ConfigurationError(f"{_KINDS}, not {reprlib.repr(value)}", argument="budget")
    share = _share_in(value)
    if share is None:
        tokens = tokens_in(value)
        if tokens is None:
            is_model = bool(value) and find_facts(value) is not None
            instead = (": write ", option("model", value)) if is_model else ()
            raise ConfigurationError(
                phrase(f"{_KINDS}, not {reprlib.repr(value)}", *instead), argument="budget"
            )
        return _whole("budget", tokens, 1)
    limit_tokens = None if facts is None else facts.input_limit_tokens
    if limit_tokens is None:
        raise _unknown_limit(phrase(option("budget", value), " is a share of the model's input limit"), model)
    return max(1, math.floor(limit_tokens * share))


_KINDS = (
    "budget must be a number of tokens, such as 8_000 or '8k', a share of the input limit, such as '80%',"
    " 'tier', or a Budget"
)


def _unknown_limit(what: str, model: str | None) -> ConfigurationError:
    if model is None:
        return ConfigurationError(
            phrase(what, ", and no model is named: pass ", option("model"), ", or tokens"), argument="budget"
        )
    return ConfigurationError(
        phrase(
            what,
            f", and the limit of {model!r} is unknown: pass tokens, or register the model"
            " (trimtab.models.register_model)",
        ),
        argument="budget",
    )


@lru_cache(maxsize=64, typed=True)
def _bare(tokens: int) -> Budget:
    return Budget(_whole("budget", tokens, 1))


def _tokens(count: int) -> str:
    return "1 token" if count == 1 else f"{count} tokens"


MOST_TOKENS = 1 << 53
"""Numbers above are not told apart by a float, which shares of a budget are; no window comes near."""


def _kept_free(name: str, value: object) -> int:
    """Read tokens that are kept free; what lies between 0 and 1 was meant as a share (SPEC D1)."""
    if isinstance(value, float) and 0 < value < 1:
        raise ConfigurationError(
            f"{name} must be a number of tokens, and {value!r} looks like a share", argument=name
        )
    return _floor(name, value, 0)


def _floor(name: str, value: object, least: int) -> int:
    """Read one number of a budget; a fraction of a token is rounded down (SPEC D1)."""
    if isinstance(value, float) and math.isfinite(value) and value >= least:
        return _whole(name, math.floor(value), least)
    return _whole(name, value, least)


def _whole(name: str, value: object, least: int) -> int:
    """Check a number of tokens that were used; a float is taken if it is whole."""
    if type(value) is int and least <= value <= MOST_TOKENS:
        return value
    if not isinstance(value, int | float):
        value = value if (whole := whole_of(value)) is None else whole
    if isinstance(value, int) and value > MOST_TOKENS:  # which may be too long to be shown
        raise ConfigurationError(
            f"{name} must be at most {MOST_TOKENS:,} tokens, and is far larger", argument=name
        )
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ConfigurationError(
            f"{name} must be a number of tokens, not {reprlib.repr(value)}", argument=name
        )
    if not math.isfinite(value) or (value >= least and value != int(value)):
        raise ConfigurationError(f"{name} must be a finite number of tokens, not {value!r}", argument=name)
    if value < least:
        raise ConfigurationError(f"{name} must be at least {_tokens(least)}, not {value!r}", argument=name)
    return int(value)
