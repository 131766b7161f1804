"""Functions that a session calls when something happens."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from trimtab._shared.checks import answers_later, check_parameters
from trimtab.errors import ConfigurationError, SummaryError
from trimtab.report import SummaryCheck
from trimtab.session.rule_record import SessionRule
from trimtab.strategies.fact_extractor import Fact

HookName = Literal[
    "on_evict",
    "on_summarize",
    "on_budget_exceeded",
    "on_summary_compressed",
    "on_summary_checked",
    "on_error",
    "on_facts",
    "on_rules",
]
"""What hooks are called."""

_GIVEN: Mapping[HookName, tuple[str, ...]] = {
    "on_evict": ("messages", "reason"),
    "on_summarize": ("messages", "existing", "summary", "seconds"),
    "on_budget_exceeded": ("total_tokens", "budget_tokens"),
    "on_summary_compressed": ("old", "new"),
    "on_summary_checked": ("summary", "checked", "lost"),
    "on_error": ("error",),
    "on_facts": ("messages", "facts"),
    "on_rules": ("rules",),
}
"""The arguments of each hook: a hook that takes fewer would fail each time, and only the log would show
it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionHooks:
    """Functions a session calls when something happens; each may be omitted.

    An exception of a hook is logged with its traceback, counted in `Session.hook_errors`, and does not stop
    the session.

    Args:
        on_evict: `(messages, reason)`: "budget" when they stopped being recent, "truncation" when they went
            out of view.
        on_summarize: `(messages, existing, summary, seconds)`: a summary was written and is now in use.
        on_budget_exceeded: `(total_tokens, budget_tokens)`: an add exceeds the budget; called once per such
            add, before anything is evicted.
        on_summary_compressed: `(old, new)`: a summary was too long and was written again.
        on_summary_checked: `(summary, checked, lost)`: the exact values of a summary were checked, and it is
            now in use; `checked` is a `SummaryCheck`, `lost` lists the values it does not have.
        on_error: `(error)`: a summary or facts failed, and nothing is lost; the original error of the
            summarizer or fact extractor is its `__cause__`.
        on_facts: `(messages, facts)`: messages out of view were read, and these facts are now in use.
        on_rules: `(rules)`: messages were added, and these rules were found in them, each a `SessionRule`.
    """

    on_evict: Callable[[list[Any], str], object] | None = None
    on_summarize: Callable[[list[Any], str | None, str, float], object] | None = None
    on_budget_exceeded: Callable[[int, int], object] | None = None
    on_summary_compressed: Callable[[str, str], object] | None = None
    on_summary_checked: Callable[[str, SummaryCheck, list[str]], object] | None = None
    on_error: Callable[[SummaryError], object] | None = None
    on_facts: Callable[[list[Any], list[Fact]], object] | None = None
    on_rules: Callable[[list[SessionRule]], object] | None = None

    @classmethod
    def of(cls, value: Any, /) -> SessionHooks:
        """Read hooks from a `SessionHooks`, or from a mapping of names to functions.

        Args:
            value: Hooks, or a mapping of the names of hooks to functions.

        Raises:
            ConfigurationError: The argument is neither, or a hook is not a function.
        """
        if value is None:
            return cls()
        if isinstance(value, Mapping):
            unknown = sorted(set(value) - set(cls.__slots__))
            if unknown:
                raise ConfigurationError(
                    f"there is no hook {unknown[0]!r}; there are {', '.join(sorted(cls.__slots__))}",
                    argument="hooks",
                )
            value = cls(**value)
        if not isinstance(value, cls):
            raise ConfigurationError(
                f"hooks must be a SessionHooks or a mapping, not {value!r:.80}", argument="hooks"
            )
        for name, hook in hooks_by_name(value).items():
            if hook is not None and (not callable(hook) or answers_later(hook)):
                raise ConfigurationError(
                    f"hook {name} must be a synchronous function, not {hook!r:.80}", argument="hooks"
                )
            if hook is not None:
                check_parameters(f"hook {name}", hook, *_GIVEN[name])
        return value


def hooks_by_name(hooks: SessionHooks, /) -> Mapping[HookName, Callable[..., object] | None]:
    """Return all hooks, also omitted ones."""
    return {
        "on_evict": hooks.on_evict,
        "on_summarize": hooks.on_summarize,
        "on_budget_exceeded": hooks.on_budget_exceeded,
        "on_summary_compressed": hooks.on_summary_compressed,
        "on_summary_checked": hooks.on_summary_checked,
        "on_error": hooks.on_error,
        "on_facts": hooks.on_facts,
        "on_rules": hooks.on_rules,
    }


HooksLike: TypeAlias = SessionHooks | Mapping[str, Callable[..., object]]
"""What `hooks=` may be: a `SessionHooks`, or a mapping of its names to functions."""
