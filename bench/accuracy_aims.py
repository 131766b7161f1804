"""What counts are held to: the aims of the half that no rule was made on, and each request that fails one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from accuracy_cases import Case

from tests.billed import KINDS

LARGE_TOKENS = 1_000
"""Above so many, the constant part of a margin is small."""

MISSED = (
    ("openai chat", ("plain",), 0.01),
    ("openai chat", ("tools",), 0.10),
    ("openai chat", ("schema",), 0.08),
    ("openai responses", KINDS, 0.12),
)
NOT_ABOVE, BUT = 0.97, 1
INSIDE, BUT_INSIDE = 0.93, 2
MEDIAN_MARGIN = 0.08


@dataclass(frozen=True, slots=True, kw_only=True)
class Aim:
    """One aim, and what was reached of it."""

    name: str
    found: str
    met: bool


def by_provider(some: Iterable[Case]) -> dict[str, list[Case]]:
    """Sort requests by whose endpoint they were sent to."""
    found: dict[str, list[Case]] = defaultdict(list)
    for case in some:
        found[case.request.provider].append(case)
    return dict(sorted(found.items()))


def aims(held: Sequence[Case], exact_misses: Sequence[Case]) -> list[Aim]:
    """Compare the requests of one half with the aims; `exact_misses` are of both."""
    providers = by_provider(held)
    found = [_missed(providers.get(name, []), name, kinds, most) for name, kinds, most in MISSED]
    for name, some in providers.items():
        above, outside = [sum(case.is_above for case in some), sum(not case.inside for case in some)]
        found.append(_share(f"{name}: bill not above count + margin", some, above, NOT_ABOVE, BUT))
        found.append(_share(f"{name}: within both margins", some, outside, INSIDE, BUT_INSIDE))
    for name, some in [*providers.items(), ("all", [*held])]:
        margins = [
            case.margin_tokens / case.request.tokens
            for case in some
            if case.margin_tokens is not None and case.request.tokens > LARGE_TOKENS
        ]
        if margins:
            middle = median(margins)
            said = f"{middle:.1%} of {len(margins)}"
            what = f"{name}: median margin above {LARGE_TOKENS:,} tokens at most {MEDIAN_MARGIN:.0%}"
            found.append(Aim(name=what, found=said, met=middle <= MEDIAN_MARGIN))
    said = f"{len(exact_misses)} of both halves"
    return [*found, Aim(name="exact counts that miss: none", found=said, met=not exact_misses)]


def _missed(some: Sequence[Case], name: str, kinds: Sequence[str], most: float) -> Aim:
    asked = [case for case in some if case.request.kind in kinds]
    missed = sum(case.missed for case in asked)
    share = missed / max(1, len(asked))
    what = f"{name}, {'all kinds' if len(kinds) > 1 else kinds[0]}: missed at most {most:.0%}"
    return Aim(name=what, found=f"{missed} of {len(asked)}, {share:.1%}", met=share <= most)


def _share(name: str, some: Sequence[Case], failed: int, least: float, but: int) -> Aim:
    share = 1 - failed / len(some)
    what = f"{name} in {least:.0%}, or all but {but}"
    return Aim(
        name=what, found=f"all but {failed} of {len(some)}, {share:.1%}", met=share >= least or failed <= but
    )


def aims_table(found: Sequence[Aim]) -> str:
    """Write aims as text, a line each."""
    return "\n".join(f"{'met    ' if one.met else 'NOT MET'} {one.name:<78} {one.found}" for one in found)


def projects_table(some: Sequence[Case]) -> str:
    """Write by provider, project and kind how many are missed, above and outside."""
    cells: dict[tuple[str, str, int], list[Case]] = defaultdict(list)
    for case in some:
        one = case.request
        cells[one.provider, one.project, KINDS.index(one.kind)].append(case)
    heads = ("n", "missed", "above", "outside", "median", "margin")
    lines = [f"{'':<60}" + "".join(f"{head:>8}" for head in heads)]
    for (provider, project, kind), held in sorted(cells.items()):
        counts = [
            len(held),
            sum(case.missed for case in held),
            sum(case.is_above for case in held),
            sum(not case.inside for case in held),
        ]
        margins = [
            case.margin_tokens / case.request.tokens for case in held if case.margin_tokens is not None
        ]
        lines.append(
            f"{provider:<17} {project:<34} {KINDS[kind]:<7}"
            + "".join(f"{count:>8}" for count in counts)
            + f"{median(case.error for case in held):>8.1%}"
            + (f"{median(margins):>8.1%}" if margins else f"{'-':>8}")
        )
    return "\n".join(lines)


def misses(some: Iterable[Case], *, every: bool = False) -> str:
    """List each request that fails an aim, with what it fails; with `every` the others, too."""
    lines = []
    for case in some:
        failed = {"missed": case.missed, "above": case.is_above, "below": case.is_below}
        if every or any(failed.values()):
            one = case.request
            low, high = (
                "?" if margin is None else str(margin)
                for margin in (case.over_margin_tokens, case.margin_tokens)
            )
            lines.append(
                f"  {one.provider:<17}{one.kind:<7}{case.off:>+7} of {one.tokens:>6}  -{low:>5} / +{high:>5}"
                f"  {' '.join(name for name, is_so in failed.items() if is_so):<13} {one.model}  {one.name}"
            )
    return "\n".join(lines)
