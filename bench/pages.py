"""Write what a run found into the documents: docs/performance.md, docs/accuracy.md and docs/batch.md.

    python bench/bench.py --only ratios --json ratios.json
    python bench/accuracy.py --json accuracy.json
    python bench/batch.py --sizes --json sizes.json
    python bench/pages.py --ratios ratios.json --accuracy accuracy.json --batch sizes.json

A table stands between two comments of a page; what is around them is written by hand.
"""

from __future__ import annotations

import argparse
import datetime
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent.parent / "docs"

ALIKE = (
    (r"^\w+, (?=\d+ messages \(fit\))", "an adapter, "),
    (r"^(PriorityBased|Relevant), \w+", r"\1, other forms"),
)
"""Names of rows that are one row of the page, which has their range."""


def performance(found: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of the table of ratios: a way to call, what it costs at each budget, its aim."""
    yield f"Measured on {_today()}, Python {found['python']}, {found['machine']}.\n"
    yield "| way to call | into 8,000 tokens | into 128,000 tokens | aim |"
    yield "| --- | --- | --- | --- |"
    rows: dict[str, dict[int | None, list[dict[str, Any]]]] = {}
    for one in found["ratios"]:
        name = one["name"]
        for pattern, told in ALIKE:
            name = re.sub(pattern, told, name)
        rows.setdefault(name, {}).setdefault(one["budget"], []).append(one)
    for name, cells in rows.items():
        aims = " / ".join(dict.fromkeys(f"{one['aim']:g}" for ones in cells.values() for one in ones))
        if None in cells:
            yield f"| {name} | {_ratio(cells[None])} | | {aims} |"
        else:
            yield f"| {name} | {_ratio(cells.get(8_000))} | {_ratio(cells.get(128_000))} | {aims} |"


def _ratio(ones: list[dict[str, Any]] | None) -> str:
    if not ones:
        return ""
    if len(ones) > 1:
        found = [one["found"] for one in ones if one["found"] is not None]
        return f"{min(found):.1f} to {max(found):.1f}" if found else "not measured"
    one = ones[0]
    if one["found"] is None:
        return "not measured"
    ratio = f"{one['found']:.2f}" if one["found"] < 1 else f"{one['found']:.1f}"
    return f"{ratio} ({one['milliseconds']:.2g} ms)" if one["milliseconds"] < 100 else ratio


def accuracy(found: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the lines of the table of counts: how far off they are, beside other counters."""
    others = list(dict.fromkeys(name for one in found for name in one["others"]))
    yield f"Measured on {_today()}. Cells of other counters have the median error and the number missed.\n"
    heads = ("billed by", "requests", "missed", "median error", "95th percentile", "bill above the margin")
    yield f"| {' | '.join((*heads, 'within both margins', *others))} |"
    yield "| --- " * (len(heads) + 1 + len(others)) + "|"
    for one in found:
        name, _, kind = re.sub(r"  +", "\t", one["name"]).partition("\t")
        if kind.strip() != "all":
            continue
        rivals = (f"{one['others'][other][0]:.1%}, {one['others'][other][1]}" for other in others)
        numbers = f"{one['requests']} | {one['missed']} | {one['median_error']:.1%} | {one['p95_error']:.1%}"
        numbers += f" | {one['above']} | {one['inside']:.0%}"
        yield f"| {name} | {numbers} | {' | '.join(rivals)} |"


def batch(found: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of the tables of a data set: rows a second by form and counter, memory by row group."""
    what = list(dict.fromkeys(one["what"] for one in found["speeds"]))
    yield f"Measured on {_today()}, Python {found['python']}, {found['machine']}, one core, budget"
    yield f"{found['budget']:,} tokens. In conversations per second:\n"
    yield f"| form | kB each | {' | '.join(what)} |"
    yield "| --- " * (2 + len(what)) + "|"
    rows: dict[str, dict[str, dict[str, float]]] = {}
    for one in found["speeds"]:
        rows.setdefault(one["form"], {})[one["what"]] = one
    for form, cells in rows.items():
        each = next(iter(cells.values()))
        size = each["bytes_per_second"] / each["rows_per_second"] / 1e3
        speeds = (f"{round(cells[name]['rows_per_second'], -2):,.0f}" for name in what)
        yield f"| {form} | {size:.1f} | {' | '.join(speeds)} |"
    yield "\n| conversations in a row group | memory of a worker |\n| --- | --- |"
    for held in found["memory"]:
        yield f"| {held['group']:,} | {held['bytes'] / 1e6:,.0f} MB |"


def _today() -> str:
    return datetime.datetime.now(datetime.UTC).date().isoformat()


def put(page: Path, lines: Iterator[str]) -> None:
    """Exchange what stands between the comments of a page."""
    text = page.read_text(encoding="utf-8")
    made = "\n".join(lines)
    pattern = r"(<!-- made by [^\n]* -->\n).*?(<!-- end -->)"
    text, times = re.subn(pattern, lambda match: f"{match[1]}\n{made}\n\n{match[2]}", text, flags=re.S)
    if times != 1:
        raise SystemExit(f"{page}: {times} places between `<!-- made by … -->` and `<!-- end -->`, not one")
    page.write_text(text, encoding="utf-8")


def main() -> None:
    """Write the pages whose numbers are given."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ratios", type=Path, metavar="FILE", help="what bench.py --json wrote")
    parser.add_argument("--accuracy", type=Path, metavar="FILE", help="what accuracy.py --json wrote")
    parser.add_argument("--batch", type=Path, metavar="FILE", help="what batch.py --sizes --json wrote")
    given = parser.parse_args()
    if given.ratios:
        put(DOCS / "performance.md", performance(json.loads(given.ratios.read_text(encoding="utf-8"))))
    if given.accuracy:
        put(DOCS / "accuracy.md", accuracy(json.loads(given.accuracy.read_text(encoding="utf-8"))))
    if given.batch:
        put(DOCS / "batch.md", batch(json.loads(given.batch.read_text(encoding="utf-8"))))


if __name__ == "__main__":
    main()
