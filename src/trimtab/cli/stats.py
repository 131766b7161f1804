"""`trimtab stats`: what is in conversations, and what budgets would do to them."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any

import click

from trimtab._shared.checks import error_name
from trimtab.cli.count import Done, count_one
from trimtab.cli.input import Files, InputKind, files_of, pieces, read_piece
from trimtab.cli.lengths import Lengths
from trimtab.cli.options import (
    RequestOptions,
    budgets_option,
    calibration_option,
    page_options,
    request_options,
    with_sources,
)
from trimtab.cli.output import (
    Place,
    Progress,
    Refused,
    as_ours,
    encode,
    in_options,
    json_text,
    read_all,
    usage,
)
from trimtab.cli.tallies import BudgetTally, Share, Tally, calls_in
from trimtab.errors import BudgetExceededError, ConfigurationError, ContextError, MissingExtraError
from trimtab.models import dollars_for
from trimtab.report.text import align, plain, plural, share_of

_MOST_TOOLS, _MOST_REPEATS = 12, 8
"""Rows of a table for people; JSON has all tools, and so many repeats, too."""


@dataclass(frozen=True, slots=True)
class _Budgets:
    """The budgets that were asked for, each with options that say what it means for a model."""

    options: Sequence[RequestOptions]
    tallies: Sequence[BudgetTally]

    @classmethod
    def of(cls, given: dict[str, Any]) -> _Budgets:
        """Read them; what is wrong with one is refused before anything is read."""
        asked = list(dict.fromkeys(given["budgets"]))
        rest = {**given, "output_reserve": None, "margin": None}
        options = [RequestOptions({**rest, "budget": budget}) for budget in asked]
        for one in options:
            one.check_budget()
        return cls(options, [BudgetTally(budget) for budget in asked])

    def add(self, value: Any, one: Done, sent: Sequence[int], dollars: float | None) -> None:
        """Say what each would do to a conversation; only what passes a budget is fitted."""
        fitted: Any = None
        for options, tally in zip(self.options, self.tallies, strict=True):
            budget = options.budget(one.taken.model)
            room = budget.input_tokens
            tokens = sum(min(size, room) for size in sent)
            tally.sent_tokens += tokens
            tally.dollars += tokens * (dollars or 0.0) / 1e6
            if one.counted.total.tokens <= room:
                continue
            tally.over += 1
            try:
                if fitted is None:
                    from trimtab._fit import fit  # not above: most of what is looked at is never fitted

                    fitted = fit(
                        value,
                        budget,
                        model=one.taken.model,
                        counter=one.counter,
                        format=one.taken.format,
                        system=options.system,
                        tools=options.tools,
                    )
                    made = fitted
                else:
                    made = fitted.at(budget)
            except BudgetExceededError:
                tally.refused += 1
                continue
            tally.evicted += len(made.evicted)
            tally.changed += len(made.changed)
            tally.evicted_tokens += one.counted.total.tokens - made.tokens_after


def _add(tally: Tally, budgets: _Budgets, value: Any, place: Place, asked: RequestOptions) -> None:
    """Add a conversation up."""
    one = count_one(value, asked)
    form, counted, model = one.taken.format, one.counted, one.taken.model
    tally.add(place, form, counted, one.counter, len(counted.entries) - len(one.taken.request.messages))
    sent = calls_in(form, counted)
    dollars = None if model is None else dollars_for(model)
    tally.calls += len(sent)
    tally.sent_tokens += sum(sent)
    tally.dollars += sum(sent) * (dollars or 0.0) / 1e6
    tally.unpriced += dollars is None
    tally.models[model or "none named"] += 1
    budgets.add(value, one, sent, dollars)


def _read(tally: Tally, budgets: _Budgets, asked: RequestOptions, files: Files, kind: InputKind) -> None:
    """Read all files conversation by conversation, none of which is held."""
    progress, done = Progress(len(files.paths), into_files=True), 0
    for one in read_all(files, progress, functools.partial(pieces, kind=kind)):
        for entry in read_piece(one.piece):
            place = Place(one.place.source, entry.line, conversation=entry.name)
            try:
                if entry.error is not None:
                    raise entry.error
                _add(tally, budgets, entry.value, place, asked)
            except MissingExtraError:
                raise
            except (ContextError, RecursionError) as error:
                if isinstance(error, ConfigurationError) and not files.many and entry.line is None:
                    raise
                why = as_ours(error)
                tally.fail(error_name(why), place, in_options(why))
            done += 1
            progress.step(done)
    progress.clear()


EPILOG = """\b
Examples:
  trimtab stats logs/ --model NAME --output text
  trimtab stats 'chats/*.jsonl' --budget 8k --budget 32k --output text
  trimtab stats logs/ --model NAME --budget 80% --output html > stats.html
"""


@click.command(epilog=EPILOG)
@page_options
@usage
@request_options
@calibration_option
@budgets_option
def stats(files: Sequence[str], kind: InputKind, output: str, **given: Any) -> None:
    """Show what is in conversations, and what budgets would do.

    Shows how many conversations and messages there are, how long they are, what takes the room, and which
    texts are repeated. With --budget, it also shows what the last request of each conversation would lack,
    and the maximum cost of all its calls: in dollars if the prices of the models are known, and without a
    prompt cache (`trimtab replay` plays each call with one). Each file is read once, and no conversation is
    kept in memory.
    """
    given = with_sources(given)
    asked = RequestOptions(given)
    budgets = _Budgets.of(given)
    tally = Tally(budgets=budgets.tallies)
    listed = files_of(files)
    _read(tally, budgets, asked, listed, kind)
    if not tally.conversation_tokens and not tally.failures:
        raise Refused("the input has no conversation")
    writers = {"json": _as_json, "text": _as_text, "html": _as_page}
    click.echo(writers[output](tally, len(listed.paths)), nl=False)
    for kind_of_error, failure in tally.failures.items():
        count = plural(failure.count, "conversation")
        where = plain(failure.place.label())
        click.echo(
            f"trimtab: {count} set aside ({kind_of_error}), the first in {where}: {plain(failure.message)}",
            err=True,
        )
    sys.exit(1 if tally.failures else 0)


# What is said of it: for programs, in a terminal, on a page.


def _as_json(tally: Tally, files: int) -> bytes:
    repeats = tally.repeats
    return json_text(
        {
            "files": files,
            "conversations": len(tally.conversation_tokens),
            "messages": tally.conversation_messages.total,
            "calls": tally.calls,
            "tokens": tally.tokens,
            "exact": tally.exact,
            "models": dict(tally.models.most_common()),
            "conversation_tokens": tally.conversation_tokens.facts(),
            "conversation_messages": tally.conversation_messages.facts(),
            "message_tokens": tally.message_tokens.facts(),
            "roles": _shares(tally.roles, "role"),
            "tools": _shares(tally.tools, "tool"),
            "kinds": [{"kind": kind, "tokens": tokens} for kind, tokens in _kinds(tally)],
            "repeats": {
                "within_conversations": _share(repeats.within),
                "across_conversations": _share(repeats.across),
                "most": [
                    {
                        **first.place.data,
                        "index": first.at,
                        "what": first.what,
                        "tokens": first.tokens,
                        "again": times,
                    }
                    for first, times in repeats.most(_MOST_REPEATS)
                ],
            },
            "sent_tokens": tally.sent_tokens,
            "dollars": round(tally.dollars, 6) if tally.is_priced else None,
            "budgets": [one.facts(priced=tally.is_priced) for one in tally.budgets],
            "failed": {
                kind: {"count": one.count, "first": {**one.place.data, "message": one.message}}
                for kind, one in tally.failures.items()
            },
        }
    )


def _share(share: Share) -> dict[str, int]:
    return {"count": share.count, "tokens": share.tokens, "most_tokens": share.most_tokens}


def _shares(shares: dict[str, Share], name: str) -> list[dict[str, Any]]:
    return [{name: word, **_share(share)} for word, share in _by_tokens(shares)]


def _by_tokens(shares: dict[str, Share]) -> list[tuple[str, Share]]:
    return sorted(shares.items(), key=lambda one: -one[1].tokens)


def _kinds(tally: Tally) -> list[tuple[str, int]]:
    return [(kind, tokens) for kind, tokens in tally.kinds.most_common() if tokens]


@dataclass(frozen=True, slots=True)
class _Table:
    """A table for people: what it is of, its heads, and its rows; of a share the last cell is drawn."""

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    shares: Sequence[float] = ()
    """Of each row, for a bar; empty where it has none."""


def _headline(tally: Tally, files: int) -> str:
    count = plural(len(tally.conversation_tokens), "conversation")
    messages = plural(tally.conversation_messages.total, "message")
    how = "" if tally.exact else ", by estimate"
    return f"{count} in {plural(files, 'file')}: {messages}, {plural(tally.tokens, 'token')}{how}"


def _tables(tally: Tally) -> Iterator[_Table]:
    lengths = {
        "tokens of a conversation": tally.conversation_tokens,
        "messages of a conversation": tally.conversation_messages,
        "tokens of a message": tally.message_tokens,
    }
    heads = ("length", "mean", "half up to", "90 % up to", "99 % up to", "longest")
    yield _Table("How long they are", heads, [(name, *_lengths(one)) for name, one in lengths.items()])
    whole = max(1, tally.tokens)
    for title, head, shares in (("By role", "role", tally.roles), ("By tool", "results of", tally.tools)):
        listed = _by_tokens(shares)
        few = listed[:_MOST_TOOLS]
        rows = [
            (word, f"{one.count:,}", f"{one.tokens:,}", f"{one.most_tokens:,}", share_of(one.tokens, whole))
            for word, one in few
        ]
        more = f" ({len(listed) - len(few):,} more)" if len(listed) > len(few) else ""
        if rows:
            columns = (head, "count", "tokens", "largest", "share")
            yield _Table(title + more, columns, rows, [one.tokens / whole for _, one in few])
    kinds = _kinds(tally)
    yield _Table(
        "By kind of content",
        ("kind", "tokens", "share"),
        [(kind, f"{tokens:,}", share_of(tokens, whole)) for kind, tokens in kinds],
        [tokens / whole for _, tokens in kinds],
    )
    yield from _repeats(tally)
    if tally.budgets:
        yield _budgets(tally)


def _lengths(lengths: Lengths) -> list[str]:
    return [f"{round(number):,}" for number in lengths.facts().values()]


def _repeats(tally: Tally) -> Iterator[_Table]:
    repeats = tally.repeats
    if not repeats.within.count and not repeats.across.count:
        return
    rows = [
        (name, f"{share.count:,}", f"{share.tokens:,}", "")
        for name, share in (("in the same conversation", repeats.within), ("in another", repeats.across))
        if share.count
    ]
    rows += [
        (f"  {first.what}, {first.tokens:,} tokens", f"{times:,}", f"{times * first.tokens:,}", where)
        for first, times in repeats.most(_MOST_REPEATS)
        for where in [f"{first.place.label()}, message {first.at}"]
    ]
    yield _Table("The same text again", ("which", "times", "tokens", "first in"), rows)


def _budgets(tally: Tally) -> _Table:
    heads = ["budget", "too long", "refused", "evicted", "of messages", "changed", "sent at most"]
    messages = max(1, tally.conversation_messages.total)
    rows = [["none", "0", "0", "0", "0 %", "0", f"{tally.sent_tokens:,}", f"{tally.dollars:,.2f}"]]
    for one in tally.budgets:
        name = f"{one.budget:,}" if isinstance(one.budget, int) else one.budget
        numbers = (one.over, one.refused, one.evicted)
        share = share_of(one.evicted, messages)
        cells = [*(f"{number:,}" for number in numbers), share, f"{one.changed:,}", f"{one.sent_tokens:,}"]
        rows.append([name, *cells, f"{one.dollars:,.2f}"])
    if tally.is_priced:
        return _Table("What budgets would do", [*heads, "dollars"], rows)
    return _Table("What budgets would do", heads, [row[:-1] for row in rows])


_ABOUT_BUDGETS = (
    "Evicted and changed are messages of the last request of each conversation, under the default of `fit`."
    " Sent are the input tokens of all calls at most, and dollars their price without a prompt cache;"
    " `trimtab replay` plays each call, with one."
)


def _as_text(tally: Tally, files: int) -> bytes:
    lines = [_headline(tally, files)]
    for table in _tables(tally):
        cells = [list(map(plain, row)) for row in (table.heads, *table.rows)]
        right = [at for at, head in enumerate(table.heads) if at and head != "first in"]
        lines += ["", table.title, *(line.rstrip() for line in align(cells, right=right))]
    if tally.budgets:
        lines += ["", *wrap(_ABOUT_BUDGETS, width=80)]
    return encode("".join(f"{line}\n" for line in lines))


def _as_page(tally: Tally, files: int) -> bytes:
    from trimtab.report.html import document, sentence, shares_table  # not above: only a page needs it

    parts = [sentence("verdict", _headline(tally, files))]
    for table in _tables(tally):
        parts.append(shares_table(table.title, table.heads, table.rows, table.shares))
    if tally.budgets:
        parts.append(sentence("note", _ABOUT_BUDGETS.replace("`", "")))
    about = [model for model, _ in tally.models.most_common(3)]
    return document("trimtab stats", "\n".join(parts), about=about).encode()
