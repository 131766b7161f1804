"""`trimtab fit`: conversations within a budget, and what was evicted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import click

from trimtab._fit import fit as fit_one
from trimtab._shared.checks import BODY_KEYS, in_words, near_names
from trimtab.budget import Budget, needs_model
from trimtab.cli.options import (
    ROOM,
    RequestOptions,
    Source,
    bare_option,
    calibration_option,
    compact_option,
    complete_from,
    pending_option,
    pin_option,
    pins_in,
    room_options,
    rule_options,
    rules_in,
    strategy_of,
)
from trimtab.cli.output import Answer, Refused, on_conversations
from trimtab.errors import ConfigurationError, FormatError, UnknownNameError
from trimtab.formats import Request, detect, formats, get_format
from trimtab.policy import policy_in, read_file, with_path
from trimtab.policy.conversations import FittedRequest, fill, fit_conversation, write_fitted
from trimtab.report.rows import ROWS, RowsOf
from trimtab.report.text import fate_counts
from trimtab.strategies.data import KINDS_ALONE
from trimtab.strategies.door import check_steady


class PolicyFit:
    """A policy, and the options that take the place of what it says.

    Raises:
        ConfigurationError: The policy cannot be loaded, or an option does not go with one.
    """

    def __init__(self, path: str, given: Mapping[str, Any]) -> None:
        for option in ("strategy", "steady", "no_cut_newest", "breakpoints", "pin", "repair"):
            if given[option]:
                word = option.replace("_", "-")
                raise ConfigurationError(
                    f"--{word} cannot be combined with --policy, whose blocks say what is kept"
                )
        source = path if isinstance(path, Source) else Source(path)
        policy = policy_in(source.read(lambda: read_file(path)), path)
        if not policy.blocks:
            raise ConfigurationError(f"{path}: the policy has no blocks")
        held = policy.policy
        self._held_budget = held.budget
        self._room: dict[str, Any] = {key: given[key] for key in ROOM}
        format = str(held.format) if given["format"] == "auto" else given["format"]
        strict = True if given["strict"] else None  # a policy may be strict by itself
        self._policy = policy.clone(
            format=format,
            charge_as=given["charge_as"],
            pending_calls=given["pending_calls"],
            rules=rules_in(given),
            compact=given["compact"],
            strict=strict,
        )
        self._names = [block.name for block in policy.blocks]
        try:  # what is wrong is refused at once
            self._asked = RequestOptions(given, format=format, model=held.model, counter=held.counter)
            room = held.budget if given["budget"] is None else given["budget"]
            if self._asked.model is not None or (room is not None and not needs_model(room)):
                self._budget(self._asked.model)
        except UnknownNameError as error:
            raise error if given["model"] is not None else with_path(error, path) from error.__cause__

    def fit(self, value: Any, /) -> FittedRequest:
        """Fit the parts of one request, or one conversation.

        Raises:
            FormatError: A part is of no block, or a conversation has no block to go into.
            ConfigurationError: No budget is known.
            BudgetExceededError: What must stay does not fit.
        """
        asked = self._asked
        parts = self._parts(value)
        if parts is not None:
            context = self._policy.clone(
                budget=self._budget(asked.model),
                model=asked.model,
                counter=asked.counter(asked.model),
                system=asked.system,
                tools=asked.tools,
            )
            fitted = fill(context, parts).fit()
            return FittedRequest(fitted, write_fitted(fitted, Request(messages=(), tools=asked.tools)))
        taken = asked.of(value)
        return fit_conversation(
            self._policy,
            taken.request,
            taken.format,
            budget=self._budget(taken.model),
            model=taken.model,
            counter=taken.counter,
        )

    def _budget(self, model: str | None) -> Budget:
        """Make the budget: of the options, of the policy with what they change, or of the model."""
        if self._room["budget"] is not None or self._held_budget is None:
            return self._asked.budget(model)
        changes = {key: value for key, value in self._room.items() if value is not None}
        room = Budget.of(self._held_budget, model=model if needs_model(self._held_budget) else None)
        return Budget.of(replace(room, **changes), model=model)

    def _parts(self, value: Any) -> Mapping[str, Any] | None:
        """Return what goes into which block; None for a conversation."""
        if not isinstance(value, Mapping):
            if any(map(self._holds_parts, value)):
                raise FormatError("a list of objects with parts, not of messages: write one per line (JSONL)")
            return None
        body = [key for key in BODY_KEYS if key in value and key not in self._names]
        named = [key for key in value if key in self._names]
        if body and named and self._marks(value).issuperset(named):
            return None
        for key in value:
            if not body and key not in self._names:
                raise FormatError(_unknown(key, self._names), path=key)
            if body and key in self._names:
                why = f", and with {key!r}, which is one, it is not a request body"
                raise FormatError(_unknown(body[0], self._names, why), path=body[0])
        return None if body else value

    def _marks(self, value: Mapping[str, Any]) -> frozenset[str]:
        """Return the keys of a body that occur in its wire form only: system text has the name of a block."""
        asked = self._asked
        known = detect(value, model=asked.model) if asked.format == "auto" else get_format(asked.format)
        return known.rules.body_marks

    def _holds_parts(self, value: Any) -> bool:
        if not isinstance(value, Mapping) or "role" in value or not value:
            return False
        return all(key in self._names for key in value)


def _unknown(key: str, names: list[str], why: str = "") -> str:
    hint = in_words(near_names(key, names))
    hint = "; tool schemas are given by --tools" if key == "tools" else hint
    return f"no block is called {key!r}{why}; the policy has: {', '.join(names)}{hint}"


def _answer(
    found: FittedRequest, *, only_report: bool, without_report: bool, rows: RowsOf, include_text: bool
) -> Answer:
    """Say what became of a conversation; its report is made where somebody reads it."""
    fitted, request = found

    def data() -> dict[str, Any]:
        what = "request" if isinstance(request, Mapping) else "messages"
        told = {} if only_report else {what: request}
        return told if without_report else {**told, "report": fitted.report.to_dict(rows=rows)}

    def row() -> str:
        report = fitted.report
        estimated = "" if report.exact else ", by estimate"
        tokens = f"{report.tokens_after:,} of {report.input_tokens:,} tokens"
        return f"fits{estimated}: {tokens}; {fate_counts(report) or 'no messages'}"

    return Answer(
        tokens=lambda: fitted.report.tokens_after,
        data=data,
        result=request,
        text=lambda width, colour: fitted.report.to_text(
            width=width, colour=colour, include_text=include_text
        ),
        html=lambda source: fitted.to_html(include_text=include_text, source=source),
        row=row,
    )


EPILOG = """\b
Examples:
  trimtab fit chat.json --budget 8k --model NAME --output text
  trimtab fit chat.json --model NAME --messages-only > fitted.json
  trimtab fit chat.json --budget 8k --model NAME --output html > report.html
  trimtab fit 'chats/*.json' --budget 8k --strategy clear_tool_results
  trimtab fit parts.jsonl --policy policy.toml --report
  trimtab fit chats/ --budget 8k --model NAME --no-report --jobs 4
"""


class _FitCommand(click.Command):
    """Takes `--steady` with a share behind it, or with none."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the words of the command line: what stands behind `--steady` is a number, or no share."""
        words = list[str]()
        for at, word in enumerate(args):
            if word == "--steady" and "--" not in args[:at] and not _is_number(args[at + 1 : at + 2]):
                word = "--steady=true"
            words.append(word)
        return super().parse_args(ctx, words)


def _is_number(words: list[str]) -> bool:
    """Tell whether there is a next word, and it is a number."""
    try:
        float(words[0])
    except (IndexError, ValueError):
        return False
    return True


def _steady_of(_: click.Context, __: click.Parameter, value: str | None) -> bool | float:
    """Return the share that was written, True where none was."""
    if value is None or value == "true":
        return value is not None
    try:
        return check_steady(float(value))
    except ValueError:  # of which a ConfigurationError is one
        raise click.BadParameter(f"a share must be a number above 0 and below 1, not {value!r}") from None


@click.command(cls=_FitCommand, epilog=EPILOG)
@on_conversations(passing="fit", failing="do not fit or cannot be read", pages=True)
@room_options
@calibration_option
@click.option(
    "--strategy",
    metavar="KIND|FILE|JSON",
    shell_complete=complete_from(lambda: KINDS_ALONE, files=True),
    help=f"What is evicted first: a JSON or TOML file, JSON itself, or a kind: {', '.join(KINDS_ALONE)}.",
)
@click.option(
    "--steady",
    metavar="[RATIO]",
    callback=_steady_of,
    help="Cut in strides, so a prompt cache can read most of the next prompt of a growing chat; a cut keeps"
    " RATIO of the room, 0.5 by default.",
)
@click.option(
    "--no-cut-newest",
    is_flag=True,
    help="Never cut the newest message or result: if the rest does not fit beside it, that is an error.",
)
@click.option(
    "--breakpoints",
    is_flag=True,
    help="Mark the output for a prompt cache that stores marked prefixes only.",
)
@click.option(
    "--policy",
    metavar="FILE",
    type=click.Path(),
    help="Blocks, their limits and strategies: a policy in TOML or JSON.",
)
@click.option(
    "--charge-as",
    type=click.Choice(formats()),
    help="Wire form the messages are sent in, if it is not their own.",
)
@rule_options
@compact_option
@pin_option
@pending_option
@click.option(
    "--repair",
    is_flag=True,
    help="Repair orphaned results, unanswered calls and shapes first; the result may be empty.",
)
@click.option("--strict", is_flag=True, help="Refuse a conversation with faults instead of fitting it.")
@click.option(
    "--report", "full", is_flag=True, help=("Write only the report; as text, in full for each conversation.")
)
@click.option(
    "--no-report",
    "without_report",
    is_flag=True,
    help="Leave out the report: only messages or request, with file and line if there are several.",
)
@click.option(
    "--rows",
    type=click.Choice(ROWS),
    default="runs",
    show_default=True,
    help="Rows of a report as JSON: one per run of neighbors with the same fate, or one per message.",
)
@click.option(
    "--include-text",
    is_flag=True,
    help="Show the text of messages that have their own line in a report as text or a page.",
)
@bare_option
def fit(
    full: bool,
    bare: bool,
    without_report: bool,
    rows: RowsOf,
    include_text: bool,
    policy: str | None,
    **given: Any,
) -> Callable[[Any], Answer]:
    """Fit conversations into a budget.

    Writes the kept messages (or the request body with them) and the report of what was evicted and why.
    Leading system messages and the latest user message are always kept.
    """
    if full + bare + without_report > 1:
        raise Refused("--report, --messages-only and --no-report cannot be combined: pass one")
    fit_value = fit_by_options(given) if policy is None else PolicyFit(policy, given).fit
    return lambda value: _answer(
        fit_value(value),
        only_report=full,
        without_report=without_report,
        rows=rows,
        include_text=include_text,
    )


def fit_by_options(given: Mapping[str, Any]) -> Callable[[Any], FittedRequest]:
    """Make what fits a request by options, without a policy."""
    asked = RequestOptions(given)
    asked.check_budget()
    if given["steady"] and given["strategy"] is not None:
        raise Refused("--steady sets the strategy: pass --steady or --strategy")
    taken_over = ("format", "charge_as", "pending_calls", "repair", "strict", "steady", "breakpoints")
    settings: dict[str, Any] = {key: given[key] for key in taken_over}
    settings |= {"system": asked.system, "tools": asked.tools, "strategy": strategy_of(given["strategy"])}
    settings |= {"cut_newest": not given["no_cut_newest"], "rules": rules_in(given)}
    settings["compact"] = given["compact"]

    def fit_history(value: Any) -> FittedRequest:
        model = asked.model_of(value)
        counter, room = asked.counter(model), asked.budget(model)
        pin = pins_in(given["pin"], len(asked.of(value).request.messages)) if given["pin"] else ()
        found = fit_one(value, room, model=model, counter=counter, pin=pin, **settings)
        return FittedRequest(found, found.request)

    return fit_history
