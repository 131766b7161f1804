"""`trimtab fit`: conversations within a budget, and what left."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import click
from click.shell_completion import CompletionItem

from trimtab.cli.input import InputKind
from trimtab.cli.options import (
    BUDGET,
    PIN,
    TOKENS,
    bare_option,
    input_options,
    margin_option,
    pending_option,
    pins_in,
    request_options,
)
from trimtab.cli.output import Refused, Verdicts, answer_all, usage
from trimtab.cli.policy_options import Answered, PolicyFitting
from trimtab.cli.request import KINDS_ALONE, Asked, budget_of, strategy_of
from trimtab.context import Fitted
from trimtab.context import fit as fit_one
from trimtab.report import Report

__all__ = ["fit"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fit:
    """A conversation that fits."""

    fitted: Fitted[Any]
    request: Any
    only_report: bool
    ok: bool = True

    @property
    def tokens(self) -> int:
        """What comes out."""
        return self.fitted.report.tokens_after

    def result(self) -> Any:
        """Give messages or request body, as it came in."""
        return self.request

    def data(self) -> dict[str, Any]:
        """Give messages or request body, as it came in, and the report."""
        report = {"report": self.fitted.report.to_dict()}
        if self.only_report:
            return report
        request = self.request
        return {"request" if isinstance(request, Mapping) else "messages": request, **report}

    def text(self, *, width: int, colour: bool) -> str:
        """Give the text form of the report."""
        return self.fitted.report.to_text(width=width, colour=colour)

    def row(self) -> str:
        """Give the totals."""
        return _totals(self.fitted.report)


def _totals(report: Report) -> str:
    estimated = "" if report.exact else ", by estimate"
    fates = [
        f"{count:,} {fate}"
        for count, fate in (
            (report.kept_message_count, "kept"),
            (report.changed_message_count, "changed"),
            (report.evicted_message_count, "evicted"),
        )
        if count
    ]
    tokens = f"{report.tokens_after:,} of {report.input_tokens:,} tokens"
    return f"fits{estimated}: {tokens}; {', '.join(fates) or 'no messages'}"


def complete_strategies(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the kinds of strategies, then files, to a shell."""
    kinds = [CompletionItem(kind) for kind in KINDS_ALONE if kind.startswith(incomplete)]
    return kinds or [CompletionItem(incomplete, type="file")]


EPILOG = """\b
Examples:
  trimtab fit chat.json --budget 8k --model NAME --output text
  trimtab fit chat.json --model NAME --messages-only > fitted.json
  trimtab fit 'chats/*.json' --budget 8k --strategy clear_tool_results
  trimtab fit parts.jsonl --policy policy.toml --report
"""


@click.command(epilog=EPILOG)
@input_options
@click.option(
    "--budget", type=BUDGET, metavar="N", help="Room in tokens, as 8000 or 8k. Default: by --model."
)
@click.option("--output-reserve", type=TOKENS, metavar="N", help="Tokens of it kept free for the answer.")
@margin_option
@request_options
@click.option(
    "--strategy",
    metavar="KIND|FILE",
    shell_complete=complete_strategies,
    help=f"What leaves first: a JSON or TOML file, or a kind: {', '.join(KINDS_ALONE)}.",
)
@click.option(
    "--policy",
    metavar="FILE",
    type=click.Path(),
    help="Blocks, their limits and strategies: a policy in TOML or JSON.",
)
@click.option(
    "--pin", type=PIN, multiple=True, help="Message that must stay: 3, -1; or a range: 0:4, -2:. Repeatable."
)
@pending_option
@click.option(
    "--repair",
    is_flag=True,
    help="Mend orphaned results and unanswered calls first; where there is nothing else, nothing is left.",
)
@click.option("--strict", is_flag=True, help="Refuse a conversation with faults instead of fitting it.")
@click.option(
    "--report", "only_report", is_flag=True, help="The report alone; in text, in full for each of many."
)
@bare_option
@usage
def fit(
    files: tuple[str, ...],
    kind: InputKind,
    output: str,
    format: str,
    only_report: bool,
    bare: bool,
    **given: Any,
) -> None:
    """Fit conversations into a budget.

    Writes the messages that stay (or the request body with them) and the report of what left and
    why. Leading system messages and the latest user message always stay.
    """
    if only_report and bare:
        raise Refused("--report is the report alone and --messages-only the messages alone: give one")
    by_policy = given["policy"] is not None
    fitting = _by_policy(given, format) if by_policy else _by_options(given, format)

    def answer(value: Any) -> _Fit:
        fitted, request = fitting(value)
        return _Fit(fitted=fitted, request=request, only_report=only_report)

    answer_all(
        answer,
        files=files,
        kind=kind,
        output=output,
        verdicts=Verdicts(passing="fit", failing="do not fit or cannot be read"),
        full=only_report,
        bare=bare,
        parts=by_policy,
    )


def _by_policy(given: Mapping[str, Any], format: str) -> Callable[[Any], Answered]:
    return PolicyFitting(given["policy"], given, format=format).fit


def _by_options(given: Mapping[str, Any], format: str) -> Callable[[Any], Answered]:
    """Fit one history, as the options say."""
    asked = Asked(given, format=format)
    room = {key: given[key] for key in ("output_reserve", "margin")}
    if given["budget"] is not None or asked.model is not None:
        budget_of(given["budget"], model=asked.model, **room)  # what is wrong is refused at once
    settings: dict[str, Any] = {
        "format": format,
        "system": asked.system,
        "tools": asked.tools,
        "strategy": strategy_of(given["strategy"]),
        "pending_calls": given["pending_calls"],
        "repair": given["repair"],
        "strict": given["strict"],
    }

    def fitted(value: Any) -> Answered:
        taken = asked.of(value)
        budget = budget_of(given["budget"], model=taken.model, **room)
        pin = pins_in(given["pin"], len(taken.request.messages))
        found = fit_one(value, budget, model=taken.model, counter=taken.counter, pin=pin or (), **settings)
        return Answered(found, found.request)

    return fitted
