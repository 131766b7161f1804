"""`trimtab replay`: what policies cost on recorded conversations, and what they lose."""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any, NamedTuple

import click

from trimtab.cli.input import STANDARD_INPUT, InputKind, entries, files_of, notes_text, open_input
from trimtab.cli.options import (
    Number,
    RequestOptions,
    calibration_option,
    complete_from,
    complete_policies,
    input_options,
    keys_option,
    room_options,
    together,
    with_sources,
)
from trimtab.cli.output import Place, Progress, Refused, encode, in_options, json_text, usage
from trimtab.errors import ConfigurationError, ContextError, FormatError, MissingExtraError
from trimtab.models import DEFAULT_PRICING, CachePricing, find_facts, pricing_for, pricings
from trimtab.models.prices import row_of
from trimtab.policy import read_file
from trimtab.replay import (
    CallRow,
    Canary,
    Replayed,
    chart_page,
    find_canaries,
    plant_canaries,
    read_recording,
    replay_table,
)
from trimtab.replay import replay as play
from trimtab.replay.canaries import MAX_CANARIES
from trimtab.replay.datasets import conversations_in
from trimtab.replay.play import prices_of
from trimtab.replay.policies import BY_DEFAULT, WORDS, name_of, read_policy
from trimtab.report.text import clip, plain, plural
from trimtab.session import Session


class _Work(NamedTuple):
    """One conversation, and where it came from."""

    label: str
    place: Place
    value: Any


class _Found(NamedTuple):
    """What came of one conversation: each policy's result, or why there are none."""

    label: str
    place: Place
    results: list[Replayed]
    canaries: tuple[Canary, ...] = ()
    error: str | None = None
    is_usage: bool = False
    """Whether that is about how trimtab was called."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    """What is done with every conversation; plain data, which other processes can be given."""

    given: Mapping[str, Any]
    policies: Sequence[str]
    names: Sequence[str]
    pricing: CachePricing
    keeps_calls: bool

    def play(self, work: _Work, on_call: Callable[[CallRow], None] | None = None) -> _Found:
        """Replay one conversation under every policy."""
        asked = RequestOptions(self.given)
        try:
            model = asked.model_of(work.value)
            has_room = self.given["budget"] is not None or asked.model is not None
            recording = read_recording(
                work.value, format=self.given["format"], model=model, system=asked.system, tools=asked.tools
            )
            if self.given["canaries"] is not None:
                recording = plant_canaries(recording, self.given["canaries"], seed=self.given["seed"] or 0)
            elif self.given["lost"]:
                recording = find_canaries(recording)
            results = [
                play(
                    recording,
                    policy,
                    budget=asked.budget(model) if has_room else None,
                    model=model,
                    counter=asked.counter(model),
                    pricing=self.pricing,
                    name=name,
                    on_call=on_call,
                )
                for policy, name in zip(self.policies, self.names, strict=True)
            ]
        except ContextError as error:
            is_usage = isinstance(error, ConfigurationError | MissingExtraError)
            return _Found(work.label, work.place, [], error=in_options(error), is_usage=is_usage)
        kept = results if self.keeps_calls else [one.without_calls() for one in results]
        return _Found(work.label, work.place, kept, recording.canaries)


_what = together(
    click.option(
        "--requests",
        is_flag=True,
        help="The bodies of a FILE are the calls of one conversation, one per line, as they were sent.",
    ),
    click.option("--id", "name", metavar="NAME", help="Session in the store of --store."),
    click.option("--store", metavar="URL", help="Replay a session's log instead of FILEs: a file, or a URL."),
    keys_option,
    click.option(
        "--jobs",
        type=click.IntRange(min=1),
        default=1,
        show_default=True,
        metavar="N",
        help="Number of parallel processes.",
    ),
    click.option(
        "--pricing",
        metavar="NAME|FILE",
        shell_complete=complete_from(pricings),
        help=f"Prices: a model, a TOML or JSON file, or one of {', '.join(pricings())}. Default: those of"
        f" --model, or {DEFAULT_PRICING}.",
    ),
    click.option(
        "--baseline",
        metavar="POLICY",
        default=BY_DEFAULT,
        show_default=True,
        shell_complete=complete_policies,
        help="Policy to compare costs with, as for --policy.",
    ),
    click.option(
        "--policy",
        "policies",
        metavar="POLICY",
        multiple=True,
        shell_complete=complete_policies,
        help=f"A file with a policy or a strategy, JSON of one, a kind, or {', '.join(WORDS)}. Repeatable.",
    ),
)
_survival = together(
    click.option(
        "--canaries",
        type=click.IntRange(1, MAX_CANARIES),
        metavar="N",
        help="Plant N rules, limits, preferences, names and ids in users' messages, and count the lost ones.",
    ),
    click.option("--seed", type=int, metavar="N", help="Plant others, at other places. Default: 0."),
    click.option(
        "--lost",
        is_flag=True,
        help="Count the exact values and rules of users that are not in view at the end; in text, list them.",
    ),
)
_SHARE = Number("a number from 0 to 1", lambda share: 0 <= share <= 1)
_checks = together(
    click.option("--chart", metavar="FILE", type=click.Path(), help="Write a page of charts as HTML."),
    click.option("--calls", is_flag=True, help="In JSON, also write what happened to each call."),
    click.option(
        "--min-evidence",
        type=_SHARE,
        metavar="SHARE",
        help="Fail if a smaller share of the evidence is in view when its question is asked.",
    ),
    click.option(
        "--min-survival",
        type=_SHARE,
        metavar="SHARE",
        help="Fail if a smaller share of --canaries, or of what --lost finds, is in view at the end.",
    ),
    click.option(
        "--min-uses",
        type=_SHARE,
        metavar="SHARE",
        help="Fail if a smaller share of the details that the model takes from results is in view.",
    ),
    click.option(
        "--min-needs",
        type=_SHARE,
        metavar="SHARE",
        help="Fail if a smaller share of the details that the model takes from the request is in view.",
    ),
    click.option(
        "--no-invalid", is_flag=True, help="Fail if a provider would refuse a call, or nothing can be sent."
    ),
    click.option(
        "--max-cost-ratio",
        type=Number("a number of at least 0", lambda ratio: ratio >= 0),
        metavar="R",
        help="Fail if a policy costs more than R times the baseline.",
    ),
)

EPILOG = """\b
Examples:
  trimtab replay chat.json --budget 8k --policy steady.toml --output text
  trimtab replay 'chats/*.json' --budget 8k --policy a.toml --chart costs.html
  trimtab replay spans.json --budget 32k --policy a.toml --max-cost-ratio 0.5
  trimtab replay chat.json --budget 8k --policy a.toml --canaries 20
  trimtab replay chat.json --budget 8k --policy a.toml --min-uses 0.97
  trimtab replay --store chats.db --id ada --budget 4k --policy session
"""


@click.command(epilog=EPILOG)
@input_options
@usage
@room_options
@calibration_option
@_what
@_survival
@_checks
def replay(files: Sequence[str], kind: InputKind, output: str, **given: Any) -> None:
    """Compute what policies cost on recorded conversations.

    Each conversation is played call by call under each policy. A FILE has messages, request bodies, the
    snapshot of a session, OpenTelemetry's GenAI spans, or the questions of LoCoMo or BEAM. No model is
    called. Exits with 1 if a threshold is exceeded, or a conversation cannot be read.
    """
    given = with_sources(given)
    _check_survival(given)
    asked = list(dict.fromkeys(given["policies"]))
    words = list(dict.fromkeys([given["baseline"], *asked]))
    for word in words:
        read_policy(word)  # one that cannot be read is refused before anything is played
    names = [name_of(word) for word in words]
    job = _Job(
        given=given,
        policies=words,
        # by its path where two files have one name
        names=[word if names.count(name) > 1 else name for word, name in zip(words, names, strict=True)],
        pricing=_prices(given["pricing"], given["model"]),
        keeps_calls=bool(given["calls"] or given["chart"]),
    )
    if given["chart"]:
        _write(given["chart"], "")  # what cannot be written is refused at once
    found = list(_results(job, _work(files, kind, given), jobs=given["jobs"]))
    done = [one for one in found if one.error is None]
    totals = [reduce(add, column) for column in zip(*(one.results for one in done), strict=True)]
    checked = [one for one, word in zip(totals, words, strict=False) if word in asked]
    failed = list(_failures(checked, totals[0], done, given)) if totals else []
    if totals or output == "json":
        told = [*(f"{one.label}: {one.error}" for one in found if one.error is not None), *failed]
        click.echo(_answer(totals, done, told, job, output=output, calls=given["calls"]), nl=False)
    if given["chart"] and totals:
        title = f"Replay of {done[0].label if len(done) == 1 else f'{len(done):,} recordings'}"
        _write(given["chart"], chart_page({one.label: one.results for one in done}, title=title))
    for why in failed:
        click.echo(f"trimtab: {plain(why)}", err=True)
    sys.exit(1 if failed or len(done) < len(found) or not found else 0)


def _check_survival(given: Mapping[str, Any]) -> None:
    """Refuse options of canaries that have no effect.

    Raises:
        Refused: They do not go together.
    """
    if given["canaries"] is not None and given["lost"]:
        raise Refused(
            "--lost looks for what users said, and --canaries for what is planted: take one of them"
        )
    if given["canaries"] is None and given["seed"] is not None:
        raise Refused("--seed is of what is planted: pass --canaries N, too")
    if given["canaries"] is None and not given["lost"] and given["min_survival"] is not None:
        raise Refused("--min-survival needs something to look for: pass --canaries N or --lost, too")


def _prices(value: str | None, model: str | None) -> CachePricing:
    """Read the prices: of a file, of a model, or a row; without a word those of the model that is named.

    Raises:
        ConfigurationError: There are none of that name, or the file is wrong.
    """
    if value is None:
        return prices_of(model)
    if Path(value).suffix.lower() not in (".json", ".toml"):
        found = pricing_for(value)
        _tell_row(value)
        return found
    try:
        data = read_file(value)
    except ConfigurationError as error:  # which says the file
        raise ConfigurationError(f"--pricing {error}") from error
    try:
        return CachePricing.from_dict(data)
    except ConfigurationError as error:
        raise ConfigurationError(f"--pricing {value}: {error}") from error


def _tell_row(model: str) -> None:
    """Say by which row a model is priced that nobody knows."""
    row, facts = row_of(model), find_facts(model)
    if model not in pricings() and row is not None and (facts is None or facts.counted_as is not None):
        told = f"model {model!r} is not known: by its name it is priced as {row.row}"
        click.echo(f"trimtab: --pricing: {plain(told)}", err=True)


def _work(files: Sequence[str], kind: InputKind, given: Mapping[str, Any]) -> Iterator[_Work | _Found]:
    """Read the conversations one by one; what cannot be read is an answer at once."""
    if given["store"] is not None:
        if given["name"] is None or files:
            raise Refused("--store needs --id NAME, and cannot be combined with FILEs")
        yield _Work(given["name"], Place(), _log_of(given["store"], given["name"]))
        return
    if given["name"] is not None:
        raise Refused("--id NAME is a session of a store: pass --store URL, too")
    listed = files_of(files)
    for path in listed.paths:
        label = "standard input" if path == STANDARD_INPUT else path
        named = label if listed.many else None
        with open_input(path) as file:
            name = "" if path == STANDARD_INPUT else path
            read = entries(file, kind="jsonl" if given["requests"] else kind, name=name, parts=True)
            if given["requests"]:
                bodies = list(read)
                wrong = next((one for one in bodies if one.error is not None), None)
                place = Place(named, None if wrong is None else wrong.line)
                yield (
                    _Work(label, place, [one.value for one in bodies])
                    if wrong is None
                    else _Found(place.label(label), place, [], error=str(wrong.error))
                )
                continue
            for one in read:
                place = Place(named, one.line, conversation=one.name)
                where = place.label(label)
                if one.error is not None:
                    yield _Found(where, place, [], error=in_options(one.error))
                elif one.foreign is not None:
                    if notes := one.notes_at(where):
                        click.echo(notes, err=True)
                    yield _Work(where, place, one.foreign)
                else:
                    yield from _conversations(_Work(where, place, one.value))


def _conversations(work: _Work) -> Iterator[_Work | _Found]:
    """Take the conversations out of a file of LoCoMo or BEAM, by their names; what is none is one."""
    try:
        found = conversations_in(work.value)
    except FormatError as error:
        yield _Found(work.label, work.place, [], error=in_options(error))
        return
    if found is None:
        yield work
        return
    for name, one in found.items():
        label = f"{work.label}: conversation {name}"
        if notes := notes_text(label, one.notes):
            click.echo(notes, err=True)
        yield _Work(label, work.place, one.body)


def _log_of(url: str, name: str) -> list[Any]:
    """Read the messages of a session's log."""
    from trimtab.cli.session.commands import open_session_store  # loaded where it is asked for: it takes long

    with open_session_store(url) as store:
        return list(Session.open(store, name, allow_missing=True).history(kinds=("message", "options")))


def _results(job: _Job, work: Iterator[_Work | _Found], *, jobs: int) -> Iterator[_Found]:
    """Replay everything in its order; several processes read no further ahead than they have to."""
    progress = Progress(1, noun="call")
    calls = 0

    def count(row: CallRow) -> None:
        nonlocal calls
        calls += 1
        progress.step(calls)

    if jobs == 1:
        made = (job.play(one, count) if isinstance(one, _Work) else one for one in work)
        yield from _tell(made, progress)
        return
    RequestOptions(job.given)  # reads what other processes may not be able to: a pipe
    with ProcessPoolExecutor(max_workers=jobs) as pool:
        asked = [pool.submit(job.play, one) if isinstance(one, _Work) else one for one in work]
        yield from _tell((one if isinstance(one, _Found) else one.result() for one in asked), progress)


def _tell(found: Iterator[_Found], progress: Progress) -> Iterator[_Found]:
    """Say of what cannot be replayed why, while it goes on.

    Raises:
        Refused: That is about how trimtab was called.
    """
    for one in found:
        if one.error is not None:
            progress.clear()
            if one.is_usage and one.place.is_only:
                raise Refused(one.error)
            click.echo(f"trimtab: {plain(one.label)}: {plain(one.error)}", err=True)
        yield one
    progress.clear()


def _failures(
    checked: Sequence[Replayed], first: Replayed, done: Sequence[_Found], given: Mapping[str, Any]
) -> Iterator[str]:
    """Say which thresholds are passed."""
    for one in checked:
        ratio, most = one.cost_ratio(first), given["max_cost_ratio"]
        if most is not None and (ratio is None or ratio > most):
            told = "more than nothing" if ratio is None else f"{ratio:.3f} times as much as {first.policy}"
            yield f"{one.policy} costs {told}, and --max-cost-ratio is {most:g}"
        refused, invalid = one.totals.refused, one.totals.invalid
        if given["no_invalid"] and (refused or invalid):
            yield f"{one.policy}: {plural(invalid, 'call')} invalid, {refused:,} without anything to send"
        share, least = one.totals.evidence_share, given["min_evidence"]
        if least is not None and share is None:
            yield f"{one.policy}: no recording has questions with evidence, and --min-evidence is {least:g}"
        elif least is not None and share is not None and share < least:
            yield f"{one.policy} has {share:.1%} of the evidence in view, and --min-evidence is {least:g}"
        yield from _lost_too_much(one, given)
        yield from _lost_uses(one, done, given)


def _lost_too_much(one: Replayed, given: Mapping[str, Any]) -> Iterator[str]:
    """Say where too little is in view of what was planted or found."""
    share, least = one.survival.share, given["min_survival"]
    if least is not None and share is None:
        yield f"{one.policy}: no user says an exact value or a rule, and --min-survival is {least:g}"
    elif least is not None and share is not None and share < least:
        total = one.survival.total
        said = f"{one.policy} has lost {total.lost:,} of {total.sought:,} texts of users"
        yield f"{said}, {share:.1%} are in view, and --min-survival is {least:g}"


_MOST_RESULTS = 5
"""Results that are named where uses of them are lost."""


def _lost_uses(one: Replayed, done: Sequence[_Found], given: Mapping[str, Any]) -> Iterator[str]:
    """Say where too little is in view of what the model's messages took, and of which results."""
    for word, where, tally in (
        ("uses", "results", one.uses.total),
        ("needs", "anything earlier", one.uses.needs),
    ):
        share, least = tally.share, given[f"min_{word}"]
        if least is not None and share is None:
            none = f"no message of the model has a detail from {where}"
            yield f"{one.policy}: {none}, and --min-{word} is {least:g}"
        elif least is not None and share is not None and share < least:
            said = f"{one.policy} has lost {tally.lost:,} of {tally.sought:,} {word}, {share:.1%} are in view"
            named = f"; lost: {_results_lost(one.policy, done)}" if word == "uses" else ""
            yield f"{said}, and --min-{word} is {least:g}{named}"


def _results_lost(policy: str, done: Sequence[_Found]) -> str:
    """Name the results of which most uses are lost, by the ids of their calls."""
    counts = Counter[str]()
    for found in done:
        where = f" in {found.label}" if len(done) > 1 else ""
        for played in found.results:
            if played.policy == policy:
                names = (use.result or f"{use.tool or 'a tool'} without an id" for use in played.uses.lost)
                counts.update(f"{name}{where}" for name in names)
    named = ", ".join(f"{count:,} of {name}" for name, count in counts.most_common(_MOST_RESULTS))
    more = len(counts) - _MOST_RESULTS
    return named + (f", and others of {plural(more, 'more result')}" if more > 0 else "")


def _answer(
    totals: Sequence[Replayed],
    done: Sequence[_Found],
    failed: Sequence[str],
    job: _Job,
    *,
    output: str,
    calls: bool,
) -> bytes:
    """Write the answer: a table for people, or one object for programs."""
    if output == "text":
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 10_000
        lines = [*replay_table(totals).splitlines(), *_lost_lines(done)]
        return encode("".join(f"{clip(line, width)}\n" for line in lines))

    def data(one: Replayed, first: Replayed) -> dict[str, Any]:
        told = one.to_dict()
        if not calls:
            del told["calls"]
        return {**told, "cost_ratio": one.cost_ratio(first)}

    answer = {
        "pricing": job.pricing.to_dict(),
        "policies": [data(one.without_calls(), totals[0]) for one in totals],
        "recordings": [
            {
                **one.place.data,
                "policies": [data(found, one.results[0]) for found in one.results],
                "canaries": [asdict(canary) for canary in one.canaries],
            }
            for one in done
        ],
        "failed": list(failed),
    }
    return json_text(answer)


def _lost_lines(done: Sequence[_Found]) -> Iterator[str]:
    """List what is lost, by recording, policy and message."""
    for one in done:
        for found in one.results:
            by_message: dict[int, list[str]] = {}
            for canary in found.survival.lost:
                by_message.setdefault(canary.at, []).append(f"{canary.kind} “{canary.text}”")
            if by_message:
                yield from ("", f"  lost of {plain(one.label)} by {plain(found.policy)}:")
            for at, texts in by_message.items():
                yield f"    #{at:,}  {plain('; '.join(texts))}"


def _write(path: str, text: str) -> None:
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise Refused(f"--chart {path}: {error.strerror or error}") from error
