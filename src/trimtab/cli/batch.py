"""`trimtab batch`: whole data sets, from files into files."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from trimtab.batch import ENGINES, PURPOSES, BatchSummary, BatchTask, Operation, run_batch
from trimtab.budget import needs_model
from trimtab.cli.options import (
    F,
    RequestOptions,
    calibration_option,
    choice,
    compact_option,
    complete_policies,
    format_option,
    output_option,
    pending_option,
    request_options,
    room_options,
    rule_options,
    rules_in,
    taker_option,
    together,
)
from trimtab.cli.output import Progress, Refused, in_options, json_text, usage
from trimtab.counting import TemplateCounter, counter_from_tokenizer
from trimtab.errors import BatchError
from trimtab.models import DEFAULT_PRICING, pricings
from trimtab.report.text import plain, plural

HELP = """Process whole data sets, from files to files.

IN is Parquet, JSONL (plain, `.gz` or `.zst`) or a folder of these; OUT is a file, or a folder that gets one
file for each input file. Every row keeps its place, and its results are in separate columns; a row that
cannot be processed has an error there. A file appears in its place once it is complete. If a stopped run is
started again, it continues from there.

\b
Exit codes: 0  every row was processed
            1  rows were set aside, or the run could not continue
            2  wrong usage
          130  stopped by Ctrl-C; the same command continues
"""

EPILOG = """\b
Examples:
  trimtab batch fit chats.parquet fitted.parquet --budget 8k --model NAME
  trimtab batch fit chats/ fitted/ --policy policy.toml --workers 8
  trimtab batch fit in.jsonl out.jsonl --for training --budget 4k --model NAME
"""
COUNT_EPILOG = """\b
Examples:
  trimtab batch count chats.jsonl.zst counts.parquet --model NAME
"""
VALIDATE_EPILOG = """\b
Examples:
  trimtab batch validate chats.jsonl verdicts.jsonl
"""
REPLAY_EPILOG = """\b
Examples:
  trimtab batch replay logs.parquet costs.parquet --policy a.toml --budget 32k
"""


def _policy_option(default: str) -> Callable[[F], F]:
    return click.option(
        "--policy",
        metavar="POLICY",
        shell_complete=complete_policies,
        help=f"A file with a policy or a strategy, JSON of one, or the name of one. Default: {default}.",
    )


def _split(_context: click.Context, _option: click.Parameter, value: str | None) -> tuple[str, ...] | None:
    return None if value is None else tuple(filter(None, map(str.strip, value.split(","))))


_run_options = together(
    output_option,
    click.option("--overwrite", is_flag=True, help="Overwrite the results of an earlier run."),
    click.option("--prefix", default="", metavar="TEXT", help="Text before the name of each result column."),
    click.option(
        "--columns",
        metavar="NAMES",
        callback=_split,
        help="Result columns to write, separated by commas; `error` is always written. Default: all.",
    ),
    click.option(
        "--column",
        default="messages",
        show_default=True,
        metavar="NAME",
        help="The column of conversations, as JSON text or nested values; for JSONL, their key.",
    ),
    click.option(
        "--workers",
        type=click.IntRange(min=1),
        metavar="N",
        help="Number of parallel processes. Default: one per processor of the machine or the cluster.",
    ),
    choice("--engine", ENGINES, "Processes on this machine, or the cluster Ray is connected to."),
    format_option,
    click.argument("target", metavar="OUT", type=click.Path()),
    click.argument("source", metavar="IN", type=click.Path()),
)
"""Where from, where to, and who does it."""


@click.group(help=HELP, epilog=EPILOG)
def batch() -> None:
    """Hold the commands."""


@batch.command(epilog=EPILOG)
@_run_options
@room_options
@calibration_option
@_policy_option("that of `trimtab fit`")
@rule_options
@compact_option
@pending_option
@click.option("--repair", is_flag=True, help="Repair orphaned results, unanswered calls and shapes first.")
@click.option("--strict", is_flag=True, help="Set aside a conversation with faults instead of fitting it.")
@click.option(
    "--template",
    metavar="PATH",
    type=click.Path(),
    help="Count by the tokenizer and chat template of an open model: its folder, its tokenizer.json, or a"
    " chat_template.jinja with a tokenizer.json beside it.",
)
@choice(
    "--for",
    PURPOSES,
    "What the conversations are for. For training, whole turns are evicted, oldest first; no answer is cut.",
    param="purpose",
)
@usage
def fit(source: str, target: str, **given: Any) -> None:
    """Fit every conversation into a budget."""
    _run("fit", source, target, given)


@batch.command(epilog=COUNT_EPILOG)
@_run_options
@request_options
@calibration_option
@usage
def count(source: str, target: str, **given: Any) -> None:
    """Count the tokens of every conversation."""
    _run("count", source, target, given)


@batch.command(epilog=VALIDATE_EPILOG)
@_run_options
@taker_option
@pending_option
@usage
def validate(source: str, target: str, **given: Any) -> None:
    """List what a provider would refuse in every conversation.

    An invalid conversation is processed as well, and its row says so.
    """
    _run("validate", source, target, given)


@batch.command(epilog=REPLAY_EPILOG)
@_run_options
@room_options
@calibration_option
@click.option(
    "--pricing",
    metavar="NAME",
    default=DEFAULT_PRICING,
    show_default=True,
    help=f"Prices: a model, or one of {', '.join(pricings())}.",
)
@_policy_option("no trimming")
@usage
def replay(source: str, target: str, **given: Any) -> None:
    """Compute what every conversation costs under a policy.

    Each is played call by call, as `trimtab replay` does.
    """
    _run("replay", source, target, given)


_PASSED_ON = (
    "policy",
    "format",
    "column",
    "columns",
    "prefix",
    "counter",
    "pending_calls",
    "repair",
    "strict",
    "purpose",
    "pricing",
)
"""Options that mean to a task what they are called."""


def _task(operation: Operation, given: Mapping[str, Any]) -> BatchTask:
    """Make the task of the options; what is wrong with them is refused before anything is read."""
    options = {name: given[name] for name in _PASSED_ON if name in given}
    if given.get("template") is not None:
        options["counter"] = _template_counter(given)
    if "rule_texts" in given:
        options["rules"] = rules_in(given)
        options["compact"] = given["compact"]
    if operation == "validate":
        options["model"] = given["model"]
    elif "model" in given:
        asked = RequestOptions(given)
        options |= {"model": asked.model, "system": asked.system, "tools": asked.tools}
        if given["calibration"] is not None:
            options["counter"] = asked.counter(asked.model)
        beside = [name for name in ("output_reserve", "margin") if given.get(name) is not None]
        if given.get("budget") is not None or (beside and asked.model is not None):
            if asked.model is None and needs_model(given["budget"]):
                if beside:
                    raise Refused(
                        f"--{beside[0].replace('_', '-')} cannot be combined with"
                        f" --budget {given['budget']} of each row's model"
                    )
                options["budget"] = given["budget"]
            else:
                options["budget"] = asked.budget(asked.model)
        elif beside:
            raise Refused(f"--{beside[0].replace('_', '-')} needs a budget: pass --budget or --model")
    return BatchTask(operation=operation, **options)


def _template_counter(given: Mapping[str, Any]) -> TemplateCounter:
    """Make the counter of a folder, of a tokenizer.json, or of a template with one beside it."""
    if given["counter"] is not None:
        raise Refused("--template and --counter both count: pass one of them")
    if given["calibration"] is not None:
        raise Refused("--template counts, and --calibration corrects another counter: pass one of them")
    path: str = given["template"]
    file = Path(path)
    if file.suffix not in _TEMPLATES:
        return counter_from_tokenizer(file)
    try:
        template = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(f"--template {path} cannot be read: {error}") from error
    return counter_from_tokenizer(file.absolute().parent, chat_template=template)


_TEMPLATES = (".jinja", ".jinja2", ".j2")
"""Endings of files that hold a chat template."""


def _run(operation: Operation, source: str, target: str, given: Mapping[str, Any]) -> None:
    task = _task(operation, given)
    line = _Line()
    try:
        done = run_batch(
            task,
            source,
            target=target,
            engine=given["engine"],
            workers=given["workers"],
            overwrite=given["overwrite"],
            on_progress=line.show,
        )
    except BatchError as error:
        line.progress.clear()
        click.echo(f"trimtab: {plain(in_options(error))}", err=True)
        sys.exit(1)
    except KeyboardInterrupt:
        line.progress.clear()
        click.echo(
            "trimtab: stopped; what is done is kept, and the same command goes on from there", err=True
        )
        sys.exit(130)
    line.progress.clear()
    click.echo(_answer(operation, done, given["output"]), nl=False)
    for kind, row in done.first_failed.items():
        where = f"{row.file}, row {row.row:,}" if row.file else f"row {row.row:,}"
        click.echo(f"trimtab: {plain(kind)}, the first in {plain(where)}: {plain(row.message)}", err=True)
    sys.exit(1 if done.failed_rows else 0)


def _answer(operation: Operation, done: BatchSummary, output: str) -> bytes:
    if output == "json":
        data: dict[str, Any] = {
            "rows": done.rows,
            "failed_rows": done.failed_rows,
            "errors": dict(done.errors),
            "first_failed": {kind: row._asdict() for kind, row in done.first_failed.items()},
            "resumed_rows": done.resumed_rows,
            "outputs": [str(path) for path in done.outputs],
            "other_files": done.other_files,
        }
        if operation == "fit":
            data["cut_targets"] = done.cut_targets
        return json_text(data)
    kinds = ", ".join(f"{kind} {count:,}" for kind, count in done.errors.items())
    aside = f"; {done.failed_rows:,} set aside ({kinds})" if kinds else ""
    resumed = f"; {done.resumed_rows:,} of them by an earlier run" if done.resumed_rows else ""
    others = f"; {plural(done.other_files, 'file')} of another kind passed over" if done.other_files else ""
    files = plural(len(done.outputs), "file")
    cut = f"; {_cut_targets(done.cut_targets)}" if done.cut_targets else ""
    return f"{plural(done.rows, 'row')} in {files}{resumed}{aside}{others}{cut}\n".encode()


def _cut_targets(number: int) -> str:
    was = "was" if number == 1 else "were"
    return f"{plural(number, 'assistant message')} {was} shortened; for training data use --for training"


class _Line:
    """The line for people who wait: rows, rows a second, time to go."""

    def __init__(self) -> None:
        self.progress = Progress(1, noun="row", into_files=True, part=self._part)
        self._begun_seconds = time.monotonic()
        self._done = BatchSummary(errors={})

    def show(self, done: BatchSummary) -> None:
        """Say how far it is."""
        self._done = done
        self.progress.step(done.rows)

    def _part(self) -> str:
        done = self._done
        fresh = done.rows - done.resumed_rows
        rate = fresh / max(1e-9, time.monotonic() - self._begun_seconds)
        if not fresh or not done.share:
            return ""
        minutes, seconds = divmod(round((done.rows / done.share - done.rows) / rate), 60)
        return f", {rate:,.0f} a second, {minutes}:{seconds:02d} to go"
