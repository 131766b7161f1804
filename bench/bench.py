"""trimtab, two peers and three floors on real conversations: speed, and whether the output is right.

    python bench/bench.py [--quick] [--only NAME]… [--json FILE]

Conversations come from TRIMTAB_DATA (default ../shared/data). Everyone gets the same bare tokenizer and the
same size formula, except litellm, which takes none. Nothing here fails for being slow: it prints.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cases
import conversations
import first_call
import peers
import prefix_reuse
import recount
import replay
import table
from aims import Aim, of_cases, of_first_calls, of_replay, of_reuse
from conversations import Messages

if TYPE_CHECKING:
    from options import Option
    from ratios import Ratio

SIZES = (100, 1_000, 10_000)
BUDGETS = (8_000, 128_000)
REPLAYED_MESSAGES = 2_000
RATIO_MESSAGES = 10_000
RATIO_SECONDS = 2.0
"""A row of the ratios at one budget."""
SECTIONS = ("fit", "first-call", "replay", "prefix", "ratios", "options", "batch")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What this run does."""

    sections: frozenset[str]
    effort: cases.Effort
    sizes: tuple[int, ...] = SIZES
    budgets: tuple[int, ...] = BUDGETS
    replayed_messages: int = REPLAYED_MESSAGES
    first_call_runs: int = first_call.RUNS
    ratio_messages: int = RATIO_MESSAGES
    ratio_seconds: float = RATIO_SECONDS
    batch_rows: int = 10_000
    batch_megabytes: int = 100


@dataclass(slots=True)
class Results:
    """What this run found."""

    cases: list[cases.Case] = field(default_factory=list)
    first_calls: dict[int, list[dict[str, float]]] = field(default_factory=dict)
    replays: dict[int, list[replay.Replayed]] = field(default_factory=dict)
    reuse: list[prefix_reuse.Reuse] = field(default_factory=list)
    ratios: list[Ratio] = field(default_factory=list)
    options: list[Option] = field(default_factory=list)
    aims: list[Aim] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "python": platform.python_version(),
            "machine": platform.machine(),
            "versions": peers.versions(),
            "cases": [case.to_dict() for case in self.cases],
            "first_calls_ms": {str(budget): batches for budget, batches in self.first_calls.items()},
            "replays": {
                str(budget): [one.to_dict() for one in found] for budget, found in self.replays.items()
            },
            "prefix_reuse": [one.to_dict() for one in self.reuse],
            "ratios": [one.to_dict() for one in self.ratios],
            "options": [one.to_dict() for one in self.options],
            "aims": [aim.to_dict() for aim in self.aims],
        }


def main() -> int:
    """Measure what the arguments ask for and print it; 2 if there are no conversations."""
    arguments = _arguments()
    plan, results = _plan(arguments), Results()
    if not cases.trimtab_missing():
        print(f"from trimtab import fit: {_import_milliseconds():.0f} ms of processor time, least of ten")
    print(f"Python {platform.python_version()}, {', '.join(f'{n} {v}' for n, v in peers.versions().items())}")
    try:
        _run(plan, results)
    except conversations.NoDataError as error:
        print(error, file=sys.stderr)
        return 2
    if results.aims:
        _print("", "Aims", *table.of_aims(results.aims))
    if arguments.json:
        arguments.json.write_text(json.dumps(results.to_dict(), indent=2) + "\n", encoding="utf-8")
    return 0


def _import_milliseconds() -> float:
    code = "import time; a = time.process_time(); from trimtab import fit; print(time.process_time() - a)"
    runs = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        for _ in range(10)
    ]
    return min(float(run.stdout) for run in runs) * 1_000


def _run(plan: Plan, results: Results) -> None:
    with tempfile.TemporaryDirectory() as folder:
        if "fit" in plan.sections:
            _fit(plan, results, Path(folder))
        if cases.TRIMTAB not in plan.effort.contenders:
            return
        if why := cases.trimtab_missing():
            print(f"\nno first calls and prefixes: {why}")
        elif "first-call" in plan.sections:
            _first_calls(plan, results, Path(folder))
        if "replay" in plan.sections:
            _replay(plan, results)
        if "prefix" in plan.sections and not cases.trimtab_missing():
            _prefix(results)
        if "ratios" in plan.sections and not cases.trimtab_missing():
            _ratios(plan, results)
        if "options" in plan.sections and not cases.trimtab_missing():
            _options(results)
        if "batch" in plan.sections and not cases.trimtab_missing():
            _batch(plan, results)


def _fit(plan: Plan, results: Results, folder: Path) -> None:
    for size in plan.sizes:
        messages = conversations.airline(size)
        tokens = recount.recount(messages)
        file = _written(messages, folder)
        for budget in plan.budgets:
            _progress(f"{size:,} messages into {budget:,}")
            case = cases.measure(
                messages, wanted=size, tokens=tokens, budget=budget, file=file, effort=plan.effort
            )
            results.cases.append(case)
            _print(*table.of_case(case))
    results.aims.extend(of_cases(results.cases))


def _first_calls(plan: Plan, results: Results, folder: Path) -> None:
    size = max(plan.sizes)
    file = _written(conversations.airline(size), folder)
    _print("", f"First call of a fresh process, {size:,} messages, {plan.first_call_runs} processes a batch")
    for budget in plan.budgets:
        _progress(f"first calls into {budget:,}")
        batches = first_call.first_calls(file, budget, runs=plan.first_call_runs)
        results.first_calls[budget] = batches
        _print(*table.of_first_calls(budget, batches))
        if size == max(SIZES):
            results.aims.extend(of_first_calls(budget, batches))


def _replay(plan: Plan, results: Results) -> None:
    messages = conversations.airline(plan.replayed_messages)
    calls = len(conversations.model_calls(messages))
    _print(
        "", f"Replay, every one of the {calls:,} model calls of {len(messages):,} messages, counts remembered"
    )
    for budget in plan.budgets:
        _progress(f"replay into {budget:,}")
        found = replay.replay(messages, budget, _replayers(plan, budget))
        results.replays[budget] = found
        _print(*table.of_replay(budget, found))
        results.aims.extend(of_replay(budget, found))


def _replayers(plan: Plan, budget: int) -> dict[str, Any]:
    makers: dict[str, Any] = {cases.PLAIN: lambda: replay.dict_loop(budget)}
    if cases.TRIMTAB in plan.effort.contenders and not cases.trimtab_missing():
        import subject

        def trimtab_with_one_counter() -> replay.Trim:
            counter = subject.fresh_counter()
            return lambda messages: subject.trim(messages, budget, counter)

        makers[cases.TRIMTAB] = trimtab_with_one_counter
    return makers


def _prefix(results: Results) -> None:
    _progress("prefixes")
    results.reuse.extend(prefix_reuse.run())
    _print(
        "", "Prefix reuse, stateless, from the first call over budget on", *prefix_reuse.lines(results.reuse)
    )
    results.aims.extend(of_reuse(results.reuse))


def _ratios(plan: Plan, results: Results) -> None:
    from ratios import ratios

    size = plan.ratio_messages
    _print("", f"Beside the plain newest-first loop, {size:,} messages: medians of pairs of one run")
    _print(table.RATIO_HEAD)
    for one in ratios(seconds=plan.ratio_seconds, messages=size):
        results.ratios.append(one)
        _print(table.of_ratio(one))
    held = sum(one.reached for one in results.ratios)
    _print(f"  {held} of {len(results.ratios)} hold")


def _options(results: Results) -> None:
    from options import BUDGET, options

    _print("", f"Every option, into {BUDGET:,} tokens, texts known: medians of one run", table.OPTION_HEAD)
    for one in options():
        results.options.append(one)
        _print(table.of_option(one))


def _batch(plan: Plan, results: Results) -> None:
    from batch import ratios

    _print("", f"Batches of {plan.batch_rows:,} rows: each measured once, in processes of its own")
    _print(table.RATIO_HEAD)
    for one in ratios(rows=plan.batch_rows, megabytes=plan.batch_megabytes):
        results.ratios.append(one)
        _print(table.of_ratio(one))


def _written(messages: Messages, folder: Path) -> Path:
    """Write the messages once a size, for contenders that run in their own process."""
    file = folder / f"{len(messages)}.json"
    if not file.exists():
        file.write_text(json.dumps(messages), encoding="utf-8")
    return file


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--quick", action="store_true", help="100 and 1,000 messages, few rounds, no prefixes"
    )
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        choices=[*SECTIONS, *cases.CONTENDERS],
        metavar="NAME",
        help=f"a section ({', '.join(SECTIONS)}) or a contender ({', '.join(cases.CONTENDERS)}); repeatable",
    )
    parser.add_argument("--peer-seconds", type=float, default=None, help="time limit of litellm a case (30)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every number")
    return parser.parse_args()


def _plan(arguments: argparse.Namespace) -> Plan:
    contenders = frozenset(arguments.only) & set(cases.CONTENDERS) or frozenset(cases.CONTENDERS)
    sections = frozenset(arguments.only) & set(SECTIONS) or frozenset(SECTIONS)
    limit = arguments.peer_seconds or (5.0 if arguments.quick else 30.0)
    if arguments.quick:
        effort = cases.Effort(seconds_a_batch=0.2, peer_seconds=limit, contenders=contenders)
        return Plan(
            sections=sections - {"prefix"} or sections,
            effort=effort,
            sizes=SIZES[:2],
            replayed_messages=400,
            first_call_runs=3,
            ratio_messages=1_000,
            ratio_seconds=0.2,
            batch_rows=2_000,
            batch_megabytes=5,
        )
    return Plan(sections=sections, effort=cases.Effort(peer_seconds=limit, contenders=contenders))


def _progress(text: str) -> None:
    print(f"… {text}", file=sys.stderr, flush=True)


def _print(*lines: str) -> None:
    print("\n".join(lines), flush=True)


if __name__ == "__main__":
    sys.exit(main())
