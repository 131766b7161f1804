"""`trimtab count --bills`: what calls of recordings were billed, beside what is counted of them."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from trimtab._shared.checks import error_name
from trimtab._shared.strict_json import BrokenJSONError, dump, parse
from trimtab.cli.bill_tallies import (
    NO_BILL,
    BillsTally,
    Call,
    Found,
    Unusable,
    as_text,
    fraction_text,
    rows,
    summary,
)
from trimtab.cli.input import STANDARD_INPUT, InputKind, Piece, files_of, pieces, read_piece
from trimtab.cli.options import RequestOptions, with_sources
from trimtab.cli.output import (
    Asked,
    Progress,
    Refused,
    as_ours,
    in_options,
    json_text,
    put,
    read_all,
    size_of,
    usage,
)
from trimtab.counting import EstimateCounter
from trimtab.counting.bills import Named, billed_request, compare_with_bills
from trimtab.counting.calibration import SCHEMA, Calibration, holds_calibration, learn, to_data
from trimtab.errors import ConfigurationError, ContextError, MissingExtraError, UsageError
from trimtab.formats import format_of
from trimtab.formats.recordings import Bill, ForeignConversation
from trimtab.models import find_facts
from trimtab.report.text import plain, plural

NONE_NAMED = "no model named"


class Job:
    """What is done with every recording."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        """Read the options; what is wrong with them is refused at once."""
        self._asked = RequestOptions(given)
        self._is_calibrated = given["calibration"] is not None
        self._learns: bool = given["learns"]

    def do(self, asked: Asked) -> Found:
        """Count what each call of a recording sent; what is wrong with one of its conversations is told."""
        found = Found(place=asked.place)
        for entry in read_piece(asked.piece, parts=True):
            place = asked.place._replace(conversation=entry.name)
            try:
                if entry.error is not None:
                    raise entry.error
                listed = [entry.foreign] if entry.foreign is not None else self._requests(entry.value)
                for one in listed:
                    self._compare(one, found, place)
            except MissingExtraError as error:
                found.refused = in_options(error)
            except (ContextError, RecursionError) as error:
                why = as_ours(error)
                found.errors.append((place, error_name(why), in_options(why)))
        return found

    def _compare(self, one: ForeignConversation, found: Found, place: Any) -> None:
        asked = self._asked
        compared = compare_with_bills(one, self._model_of, system=asked.system, tools=asked.tools)
        found.conversations += bool(one.bills)
        found.calls += (
            Call(place, call, compared.unrecorded_tokens.get(call.model)) for call in compared.calls
        )
        found.unusable += (Unusable(place, number, why) for number, why in compared.unusable.items())

    def _requests(self, value: Any) -> Iterator[ForeignConversation]:
        """Read requests that were recorded with their usage, one or a list of them."""
        for row in value if isinstance(value, list) else [value]:
            billed = billed_request(row)
            if billed is None:
                continue
            named = next((one for one in billed.models if find_facts(one) is not None), None)
            known = self._asked.model or named
            form = format_of(billed.body, self._asked.format, known)
            length = len(form.for_model(known).read_request(billed.body).messages)
            told = named or next(iter(billed.models), None)
            bill = Bill(at=length, usage=billed.usage, model=told)
            yield ForeignConversation(program="", format=form.name, body=billed.body, bills=(bill,))

    def _model_of(self, model: str | None) -> Named:
        """Find what counts for the model of a bill: the one that was asked for comes first.

        Raises:
            UsageError: Something is to be learned of that one, and the bill is another's.
        """
        name = self._asked.model or model
        facts = None if name is None else find_facts(name)
        billed = None if model is None else find_facts(model)
        if self._learns and facts is not None and billed is not None and billed.name != facts.name:
            raise UsageError(f"its model is {billed.name}, and --learn learns for {facts.name}")
        known = None if facts is None else name
        counter = self._asked.counter(name if self._is_calibrated else known) or EstimateCounter()
        return Named(facts.name if facts is not None else name or NONE_NAMED, known, counter)


def make(given: Mapping[str, Any]) -> Callable[[list[Asked]], list[Found]]:
    """Make in another process what does a share of the recordings."""
    job = Job(given)
    return lambda share: list(map(job.do, share))


# -- batch files


_BATCH_MARK = b'"custom_id"'
_Line = tuple[Asked, Mapping[str, Any]]


def in_pairs(asked: Iterable[Asked]) -> Iterator[Asked]:
    """Put each request of a batch file (`{"custom_id", "body"}`) together with its answer, of another file.

    All else is passed on as it is. A request or an answer that has no counterpart, or two, is refused.
    """
    requests, answers = dict[str, _Line](), dict[str, _Line]()
    for one in asked:
        value = _batch_line(one.piece)
        if value is None:
            yield one
            continue
        name, is_request = value["custom_id"], isinstance(value.get("body"), Mapping)
        own, other = (requests, answers) if is_request else (answers, requests)
        if name in own:
            yield _refusal(one, f"two lines of batch files are called {name!r:.80}: give one pair of files")
        elif name in other:
            first, told = other.pop(name)
            request, answer = (value, told) if is_request else (told, value)
            pair = {"request": request["body"], "response": answer.get("response")}
            place = one if is_request else first
            yield place._replace(piece=place.piece._replace(raw=dump(pair)))
        else:
            own[name] = (one, value)
    yield from (_refusal(one, f"no batch file answers {name!r:.80}") for name, (one, _) in requests.items())
    yield from (_refusal(one, f"no batch file asks {name!r:.80}") for name, (one, _) in answers.items())


def _batch_line(piece: Piece) -> Mapping[str, Any] | None:
    if _BATCH_MARK not in piece.raw:
        return None
    try:
        value = parse(piece.raw)
    except BrokenJSONError:
        return None
    is_line = (
        isinstance(value, Mapping) and isinstance(value.get("custom_id"), str) and "request" not in value
    )
    return value if is_line else None


def _refusal(asked: Asked, why: str) -> Asked:
    return asked._replace(piece=Piece(line=asked.piece.line, refused=why))


# -- the command


@usage
def count_bills(
    learned: str | None, files: Sequence[str], kind: InputKind, output: str, jobs: int, **given: Any
) -> None:
    """Count what calls sent beside their bills; exit 1 where there are none, or something cannot be read."""
    if given["full"]:
        raise Refused("--each lists messages, and --bills lists calls: pass one of them")
    if learned is not None and given["calibration"] is not None:
        raise Refused("--learn learns from uncorrected counts: leave out --calibration")
    given = {**with_sources(given), "learns": learned is not None}
    job = Job(given)
    listed = files_of(files)
    if learned is not None:
        _check_target(learned, listed.paths)
    progress, tally = Progress(len(listed.paths), noun="recording", into_files=output == "text"), BillsTally()
    work = in_pairs(read_all(listed, progress, functools.partial(pieces, kind=kind)))
    results: Iterator[Found] = map(job.do, work)
    if jobs > 1:
        from trimtab.cli.jobs import share_out  # not above: one process needs no others

        results = share_out(jobs, make, given, work=work, size=size_of)
    for found in results:
        if found.refused:
            raise Refused(found.refused)
        tally.add(found)
        _tell(found, progress)
        if output == "json" and not put(b"".join(json_text(row, indent=False) for row in rows(found))):
            break
        progress.step(tally.recordings)
    progress.clear()
    _end(tally, len(listed.paths), learned, output)


def _tell(found: Found, progress: Progress) -> None:
    for place, _, message in found.errors:
        progress.clear()
        click.echo(f"trimtab: {plain(place.label(place.source))}: {plain(message)}", err=True)


def _end(tally: BillsTally, files: int, learned: str | None, output: str) -> None:
    """Write the summary, what was learned, and why some of it was not counted; exit 0 or 1."""
    if output == "json":
        put(json_text(summary(tally, files), indent=False))
    elif tally.calls:
        put(as_text(tally, files))
    if tally.first_without is not None:
        where = plain(tally.first_without.label(tally.first_without.source))
        count = plural(tally.without, "recording")
        click.echo(f"trimtab: {count} without a bill, the first in {where}: {NO_BILL}", err=True)
    if tally.first_unusable is not None:
        place, number, why = tally.first_unusable
        where = plain(f"{place.label(place.source)}, call {number:,}")
        bills = plural(tally.unusable, "bill")
        click.echo(f"trimtab: {bills} set aside, the first in {where}: {plain(why)}", err=True)
    is_learned = learned is None or _learn(tally, learned)
    sys.exit(0 if tally.calls and not tally.failures and is_learned else 1)


def _learn(tally: BillsTally, path: str) -> bool:
    """Write what the bills of each model teach; False where none of them teach anything."""
    found = dict[str, Calibration]()
    for name, one in tally.models.items():
        try:
            made = found[name] = learn(one.whole, one.grown, counter=one.counter)
        except ConfigurationError as error:
            click.echo(f"trimtab: --learn: {plain(name)}: {error}", err=True)
            continue
        apart = f" ({made.calls_apart:,} set aside)" if made.calls_apart else ""
        click.echo(
            f"trimtab: --learn: {plain(name)}: factor {made.factor:.3f}, constant {made.constant_tokens:,}"
            f" tokens, from {plural(made.calls, 'call')}{apart}; median deviation"
            f" {fraction_text(made.deviation_before)} before, {fraction_text(made.deviation_after)} after",
            err=True,
        )
    if found:
        _write(path, json.dumps(to_data(found), indent=1) + "\n")
    return bool(found)


def _check_target(path: str, read: Sequence[str]) -> None:
    """Refuse before anything is read what cannot be written, and what would be lost."""
    file = Path(path)
    if file.is_file():
        if any(one != STANDARD_INPUT and file.samefile(one) for one in read):
            raise Refused(f"--learn {path} is one of the files that are read: name another file")
        if file.stat().st_size and not holds_calibration(file):
            raise Refused(
                f"--learn {path} exists and is not a {SCHEMA}: name another file, or delete it first"
            )
    _write(path, None)


def _write(path: str, text: str | None) -> None:
    """Write a file; without a text only find out whether it can be."""
    file = Path(path)
    is_there = file.exists()
    try:
        with file.open("a" if text is None else "w", encoding="utf-8") as opened:
            opened.write(text or "")
        if text is None and not is_there:
            file.unlink()
    except OSError as error:
        raise Refused(f"--learn {path}: {error.strerror or error}") from error
