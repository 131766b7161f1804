"""A table of policies side by side, and what its words mean."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from trimtab.models import dollars_for
from trimtab.report.text import align, extremes, in_dollars, plain, plural

if TYPE_CHECKING:
    from trimtab.replay.results import Replayed, Tally


def replay_table(results: Sequence[Replayed], /) -> str:
    """Write policies as a table, with an explanation of its columns.

    Reuse and fill cover the calls from the first that has to be trimmed; everything else covers all calls.
    The price is in tokens of plain input, and the cost in units of the first line; it is in parentheses if
    calls were refused, exceeded their room, or are invalid: a call that is not sent costs nothing.

    Args:
        results: A result for each policy; costs are in units of the first.

    Example:
        >>> from trimtab import SlidingWindow
        >>> from trimtab.replay import replay
        >>> chat = [{"role": role, "content": "word " * 50} for role in ("user", "assistant")] * 20
        >>> policies = ("default", SlidingWindow(target_ratio=0.5))
        >>> found = [replay(chat, policy, budget=900) for policy in policies]
        >>> print(replay_table(found).partition("  tokens")[0])
          policy          calls
    """
    tables = [[cells_of(one, results[0]) for one in results], lost_cells(results), use_cells(results)]
    notes = [f"  {note}" for note in notes_of(results)]
    return "\n\n".join("\n".join(lines) for lines in (*map(_lines, tables), notes) if lines)


def _lines(cells: Sequence[Mapping[str, str]]) -> list[str]:
    """Write a table, without the columns that say nothing."""
    rows = [tuple(cells[0]), *(tuple(one.values()) for one in cells)] if cells else []
    kept = [
        place for place, column in enumerate(zip(*rows, strict=True)) if not _EMPTY.issuperset(column[1:])
    ]
    shown = [tuple(row[place] for place in kept) for row in rows]
    return [line.rstrip() for line in align(shown, right=range(1, len(kept)))]


_EMPTY = frozenset({"", "-"})
"""What a column says that says nothing."""


def cells_of(one: Replayed, first: Replayed, /) -> dict[str, str]:
    """Write what was found, by the heads of a table; the cost in units of the first line."""
    totals, steady, ratio = one.totals, one.steady, one.cost_ratio(first)
    trims, found = steady if steady.calls else totals, totals.evidence
    cost = "" if ratio is None else f"{ratio:.2f}"
    return {
        "policy": plain(one.policy)[:40],
        "calls": f"{totals.calls:,}",
        "tokens": f"{totals.tokens:,}",
        "reuse": _share(trims.reuse),
        "fill": _share(trims.fill),
        "price": f"{totals.price:,.0f}",
        "dollars": in_dollars(one.dollars),
        "cost": cost if one.is_sound or not cost else f"({cost})",
        "compacted": _some(sum(totals.saved_tokens.values())),
        "cut moved": f"{totals.cut_moves:,}",
        "back": _some(totals.moved_back),
        "summaries": _some(totals.summarizer_calls),
        "over": _some(totals.over_limit),
        "invalid": _some(totals.invalid),
        "refused": _some(totals.refused),
        "evidence": _share(found.share),
        "whole": _some(found.whole),
        "shortened": _some(found.shortened),
        "retold": _some(found.retold),
        "of": _some(found.sought),
        "lost": _loss(one.survival.total),
        "uses": _share(one.uses.share),
        "needs": _share(one.uses.needs_share),
    }


def lost_cells(results: Sequence[Replayed], /) -> list[dict[str, str]]:
    """Write how many canaries are lost, by round and by kind; nothing where there are none."""
    if not any(one.survival.total.sought for one in results):
        return []
    kinds = dict.fromkeys(kind for one in results for kind in one.survival.by_kind)
    return [
        {
            "lost": plain(one.policy)[:40],
            **{f"round {at}": _loss(tally) for at, tally in enumerate(one.survival.by_round, 1)},
            **{kind: _loss(one.survival.by_kind.get(kind)) for kind in kinds},
        }
        for one in results
    ]


_MOST_TOOLS = 4
"""Tools that have a column: those whose results are used most."""


def use_cells(results: Sequence[Replayed], /) -> list[dict[str, str]]:
    """Write how many uses are lost, by age and by tool; nothing where none is."""
    if not any(one.uses.total.lost for one in results):
        return []
    ages = dict.fromkeys(age for one in results for age in one.uses.by_age)
    sought = Counter[str]()
    for one in results:
        sought.update({tool: tally.sought for tool, tally in one.uses.by_tool.items()})
    tools = [tool for tool, _ in sought.most_common()]
    few = tools if len(tools) <= _MOST_TOOLS + 1 else tools[:_MOST_TOOLS]
    return [
        {
            "uses lost": plain(one.policy)[:40],
            **{age: _loss(one.uses.by_age.get(age)) for age in ages},
            **{f"of {_tool(tool)}": _loss(one.uses.by_tool.get(tool)) for tool in few},
            "of other tools": _loss(*(one.uses.by_tool.get(tool) for tool in tools[len(few) :])),
        }
        for one in results
    ]


def _tool(name: str) -> str:
    return plain(name)[:24] if name else "unknown tools"


def _loss(*tallies: Tally | None) -> str:
    lost = sum(one.lost for one in tallies if one)
    sought = sum(one.sought for one in tallies if one)
    return f"{lost:,}/{sought:,}" if sought else ""


_USES = "uses, needs: details that the model takes from results alone, or from anything earlier, in view then"


def _saving_notes(results: Sequence[Replayed]) -> Iterator[str]:
    """Say by which steps how many tokens were saved."""
    for one in results:
        saved = {step: tokens for step, tokens in one.totals.saved_tokens.items() if tokens}
        if saved:
            steps = ", ".join(f"{plain(step)} {tokens:,}" for step, tokens in saved.items())
            references = plural(one.totals.references, "reference")
            name = plain(one.policy)[:40]
            yield f"compacted by {name}: tokens saved, summed over calls: {steps}; {references}"


def notes_of(results: Sequence[Replayed], /) -> list[str]:
    """Say of which room, model and prices a table is, and what of its words has to be known."""
    if not results:
        return []
    lost = "lost: of what users say word for word, not in view at the end; a round is a fifth of the calls"
    has_canaries = any(one.survival.total.sought for one in results)
    return [
        "; ".join(subject_of(results)),
        _of_calls(results),
        *_costs(results),
        *_saving_notes(results),
        *([lost] if has_canaries else []),
        *([_USES] if any(one.uses.needs.sought for one in results) else []),
    ]


def subject_of(results: Sequence[Replayed], /) -> list[str]:
    """Say of which room, model and prices it is."""
    rooms = rooms_in(results)
    models = list(dict.fromkeys(model for one in results for model in one.models))
    pricing, dollars = results[0].pricing, dollars_for(results[0].pricing)
    return [
        *([f"room {rooms}"] if rooms else []),
        *([f"model {', '.join(map(plain, models))}"] if models else []),
        f"prices of {plain(pricing)}, in tokens of plain input"
        + (f" at {in_dollars(dollars)} a million" if dollars is not None else ""),
    ]


def rooms_in(results: Sequence[Replayed], /) -> str:
    """Say how much room there was for a call; nothing where nobody gave any."""
    rooms = extremes(room for one in results for room in one.rooms)
    return "–".join(f"{room:,}" for room in rooms) + " tokens" if rooms else ""


def _of_calls(results: Sequence[Replayed]) -> str:
    counts = extremes(one.steady.calls for one in results)
    if not counts[-1]:
        return "reuse, fill: of all calls, since none has to be trimmed"
    few = "–".join(f"{count:,}" for count in counts)
    each = ", in each recording" if results[0].recordings > 1 else ""
    return f"reuse, fill: of the {few} calls from the first that has to be trimmed{each}"


def _costs(results: Sequence[Replayed]) -> list[str]:
    if all(one.is_sound for one in results):
        return [f"cost: of that of {plain(results[0].policy)}"] if len(results) > 1 else []
    first = plain(results[0].policy)
    return [f"cost: of that of {first}; in parentheses where calls were refused, over or invalid"]


def wrongs_of(one: Replayed, /) -> list[str]:
    """Say in words how many calls were not sent as they should be."""
    totals = one.totals
    return [
        *([f"refused {plural(totals.refused, 'call')}"] if totals.refused else []),
        *([f"passed the room at {plural(totals.over_limit, 'call')}"] if totals.over_limit else []),
        *([f"made {plural(totals.invalid, 'call')} invalid"] if totals.invalid else []),
    ]


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.1%}"


def _some(number: int) -> str:
    return f"{number:,}" if number else "-"
