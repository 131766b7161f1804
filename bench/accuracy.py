"""Counts against bills: recorded requests by provider, project and kind, beside what else counts tokens.

    python bench/accuracy.py [--quick] [--half made] [--provider NAME] [--misses] [--json FILE]

Reads golden_usage.jsonl, golden_usage_2.jsonl and pi_coding_sessions in TRIMTAB_DATA (default
../shared/data); needs no network. Rules were made on one half of the distinct requests, by a hash of the
request; the table is of the other. `--quick` asks no other counter and learns from no bill: some seconds.
Exits with 1 if a count of either half calls itself exact and misses its bill, by however little.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median, quantiles
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "bench")]

# Below the line that says where these are: a script of bench/ reads the bills as the tests do.
import accuracy_baseline  # noqa: E402
from accuracy_aims import aims, aims_table, by_provider, misses, projects_table  # noqa: E402
from accuracy_cases import DATA, LEAST_TOKENS, PART, Case, cases, is_missed  # noqa: E402
from accuracy_features import bills, claims_of, tried, write  # noqa: E402
from rivals import RIVALS, as_chat, asked, missing  # noqa: E402

from tests.billed import KINDS, Billed, billed  # noqa: E402
from trimtab.counting import CountRequest, UsageBaseline, counter_for  # noqa: E402
from trimtab.formats import get_format  # noqa: E402


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table; errors and margins are parts of the bill."""

    name: str
    requests: int
    exact: int
    missed: int
    median_error: float
    p95_error: float
    above: int
    """Bills above count and margin."""
    inside: float
    median_margin: float | None
    others: dict[str, tuple[float, int]]
    """By name: median error, and how many missed or raised."""


def with_others(case: Case) -> Case:
    """Ask the other counters about a request, too."""
    messages, tools = as_chat(case.request.request, case.request.format)
    model = case.request.model
    return replace(case, others={name: asked(RIVALS[name], model, messages, tools) for name in _there()})


def _there() -> list[str]:
    absent = missing()
    return [name for name in RIVALS if name not in absent]


def p95(values: Sequence[float]) -> float:
    """Return the 95th percentile."""
    return quantiles(values, n=20, method="inclusive")[-1] if len(values) > 1 else values[0]


def row(name: str, some: Sequence[Case]) -> Row:
    """Sum up some requests."""
    margins = [case.margin_tokens / case.request.tokens for case in some if case.margin_tokens is not None]
    others = {}
    for rival in _there() if any(case.others for case in some) else ():
        pairs = [(case.others[rival], case.request.tokens) for case in some]
        answered = [abs(tokens - bill) / bill for tokens, bill in pairs if tokens is not None]
        others[rival] = (
            median(answered) if answered else float("nan"),
            sum(is_missed(tokens, bill) for tokens, bill in pairs),
        )
    errors = [case.error for case in some]
    return Row(
        name=name,
        requests=len(some),
        exact=sum(case.off == 0 for case in some),
        missed=sum(case.missed for case in some),
        median_error=median(errors),
        p95_error=p95(errors),
        above=sum(case.is_above for case in some),
        inside=sum(case.inside for case in some) / len(some),
        median_margin=median(margins) if margins else None,
        others=others,
    )


def rows(some: Iterable[Case]) -> list[Row]:
    """Sum up by provider and kind."""
    by: dict[str, dict[str, list[Case]]] = defaultdict(lambda: defaultdict(list))
    for case in some:
        by[case.request.provider][case.request.kind].append(case)
    found = []
    for provider, kinds in sorted(by.items()):
        found += [row(f"{provider:<17} {kind}", kinds[kind]) for kind in KINDS if kind in kinds]
        if len(kinds) > 1:
            found.append(row(f"{provider:<17} all", [case for listed in kinds.values() for case in listed]))
    return found


def table(listed: Sequence[Row]) -> str:
    """Write rows as text."""
    names = _there() if any(one.others for one in listed) else []
    head = f"{'':<32}{'n':>4}{'exact':>7}{'missed':>8}{'median':>8}{'p95':>8}{'above':>7}"
    head += f"{'inside':>8}{'margin':>8}"
    lines = [head + "".join(f"{name:>17}" for name in names)]
    for one in listed:
        margin = "-" if one.median_margin is None else f"{one.median_margin:.1%}"
        line = (
            f"{one.name:<32}{one.requests:>4}{one.exact:>7}{one.missed:>8}{one.median_error:>8.1%}"
            f"{one.p95_error:>8.1%}{one.above:>7}{one.inside:>8.0%}{margin:>8}"
        )
        shown = (one.others.get(name, (float("nan"), 0)) for name in names)
        lines.append(line + "".join(f"{error:>9.1%} ({missed:>3})  " for error, missed in shown).rstrip())
    return "\n".join(lines)


def going_on(found: Sequence[Case]) -> list[tuple[Case, Case]]:
    """Count again what goes on from an earlier request of the same test, after a report of that one.

    Returns:
        (cold, calibrated) of each.
    """
    tests: dict[tuple[str, str], list[Billed]] = defaultdict(list)
    for one in billed(DATA):
        if one.apart is None:
            tests[one.name.rpartition("#")[0], one.model].append(one)
    pairs = []
    for case in found:
        later = case.request
        earlier = [one for one in tests[later.name.rpartition("#")[0], later.model] if _is_before(one, later)]
        if earlier:
            longest = max(earlier, key=lambda one: len(_talk(one)))
            pairs.append((case, _after(longest, case)))
    return pairs


def _talk(one: Billed) -> list[Any]:
    return list(get_format(one.format).read_request(one.request).messages)


def _is_before(one: Billed, later: Billed) -> bool:
    first, second = _unmarked(_talk(one)), _unmarked(_talk(later))
    return len(first) < len(second) and second[: len(first)] == first


def _unmarked(value: Any) -> Any:
    """Leave out marks for the prompt cache, which move from request to request."""
    if isinstance(value, dict):
        return {key: _unmarked(one) for key, one in value.items() if key != "cache_control"}
    return [_unmarked(one) for one in value] if isinstance(value, list) else value


def _after(earlier: Billed, case: Case) -> Case:
    later = case.request
    baseline = UsageBaseline(counter_for(later.model).with_format(later.format))
    baseline.record(earlier.request, earlier.tokens, model=later.model)
    body = get_format(later.format).read_request(later.request)
    tokens = baseline.count_request(
        CountRequest(body.messages, system=body.system, tools=body.tools, extra=body.extra)
    )
    margin, over = baseline.margin_tokens(tokens), baseline.over_margin_tokens(tokens)
    return replace(case, tokens=tokens, margin_tokens=margin, over_margin_tokens=over, others={})


def exact_misses(some: Iterable[Case]) -> list[Case]:
    """List counts that call themselves exact and are not."""
    return [case for case in some if case.is_exact and case.off]


def coverage(some: Sequence[Case]) -> str:
    """Write by provider how many counts are exact, how many have a margin, and how many of these hold."""
    heads = (("n", 4), ("exact", 7), ("of these missed", 17), ("no margin", 11), ("within", 8))
    lines = [f"{'':<20}" + "".join(f"{head:>{width}}" for head, width in (*heads, ("median margin", 15)))]
    for name, cases_of in by_provider(some).items():
        bounded = [case for case in cases_of if case.margin_tokens is not None]
        within = f"{sum(case.inside for case in bounded) / len(bounded):.0%}" if bounded else "-"
        margins = [(case.margin_tokens or 0) / case.request.tokens for case in bounded]
        exact = [case for case in cases_of if case.is_exact]
        lines.append(
            f"{name:<20}{len(cases_of):>4}{len(exact):>7}{len(exact_misses(exact)):>17}"
            f"{len(cases_of) - len(bounded):>11}{within:>8}"
            + (f"{median(margins):>15.1%}" if margins else f"{'-':>15}")
        )
    return "\n".join(lines)


def _options() -> argparse.Namespace:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--half", choices=("made", "held out"), default="held out")
    options.add_argument("--quick", action="store_true", help="our counts alone")
    options.add_argument("--provider", help="requests to providers whose name begins so, alone")
    options.add_argument("--misses", action="store_true", help="list each request that fails an aim")
    options.add_argument("--write-features", action="store_true", help="make the table of features anew")
    options.add_argument("--json", type=Path, metavar="FILE", help="also write the rows there")
    return options.parse_args()


def main() -> int:
    """Print the tables; return the exit code."""
    given = _options()
    logging.disable()  # litellm logs what it does not know
    found, unnamed = cases(given.half)
    other_half, _ = cases("made" if given.half == "held out" else "held out")
    if given.provider:
        found, other_half = (
            [case for case in some if case.request.provider.startswith(given.provider)]
            for some in (found, other_half)
        )
    if given.write_features:
        write({family: claims_of(held) for family, held in bills([*found, *other_half]).items()})
        return 0
    held = [case for case in found if case.apart is None]
    listed = rows(held if given.quick else map(with_others, held))
    print(
        f"Counts against bills, the half that is {given.half};"
        f" missed: beyond {LEAST_TOKENS} tokens and {PART:.0%}. Above: the bill is above count and margin."
    )
    if not given.quick:
        print("Behind each other counter: its median error, and in brackets how many it missed.\n")
        if absent := missing():
            print(f"Not installed, so not asked: {', '.join(absent)}.\n")
    print(table(listed))
    print("\nBy project\n\n" + projects_table(held))
    _print_apart(found, unnamed)
    if not given.quick:
        _print_learned(held)
    both = [*found, *other_half]
    print(
        "\nExact counts and margins by provider, both halves, what is set apart included\n\n" + coverage(both)
    )
    missed = exact_misses(both)
    print(
        "\nCounts that call themselves exact and miss: "
        + ("none" if not missed else f"{len(missed)}\n" + misses(missed, every=True))
    )
    for what, (known, others) in {"this half": (other_half, found), "the other": (found, other_half)}.items():
        claims, off = tried(known, others)
        print(
            f"Made without the bills of {what}, {len(off)} of its {claims} exact counts would miss, by {off}."
        )
    print("\nAims\n\n" + aims_table(aims(held, missed)))
    if given.misses:
        print("\nMissed, or outside the margin\n\n" + misses(held))
    if given.json is not None:
        given.json.write_text(json.dumps([asdict(one) for one in listed], indent=1) + "\n", "utf-8")
    return 1 if missed else 0


def _print_apart(found: Sequence[Case], unnamed: Mapping[str, int]) -> None:
    apart: dict[str, list[Case]] = defaultdict(list)
    for case in found:
        if case.apart is not None:
            said = case.apart if case.unknown else f"{case.apart} (says nothing of it)"
            apart[said].append(case)
    print("\nSet apart: their bill includes what they do not hold, and the count says so\n")
    print(table([row(name, some) for name, some in sorted(apart.items())]))
    print(
        "\nNot counted, of models nobody described: "
        + ", ".join(f"{name} {n}" for name, n in unnamed.items())
    )


def _print_learned(held: Sequence[Case]) -> None:
    after: dict[str, list[tuple[Case, Case]]] = defaultdict(list)
    for pair in going_on(held):
        after[pair[0].request.provider].append(pair)
    shown = []
    for name, pairs in sorted(after.items()):
        shown += [
            row(f"{name:<17} cold", [cold for cold, _ in pairs]),
            row(f"{name:<17} after a report", [warm for _, warm in pairs]),
        ]
    print("\nGoing on from a bill of the same test\n\n" + table([replace(one, others={}) for one in shown]))
    print("\nThe new part of each call of a coding session, after the bills before it\n")
    print(accuracy_baseline.table(accuracy_baseline.pi_rows(DATA)))


if __name__ == "__main__":
    sys.exit(main())
