"""Which features of requests are charged as counted: the table `trimtab.models.features`, made from bills.

    python bench/accuracy.py --quick --write-features

A feature is in the table of a family if a bill of a request that has it came out exact, and no bill of a
request that has nothing but such features did not. Bills of both halves are looked at: what one of them
refutes is not claimed.
"""

from __future__ import annotations

import textwrap
from collections import Counter as Tally
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from accuracy_cases import ROOT, Case

from trimtab.counting import features_in
from trimtab.models import charge_of, exact_table, facts_for

PAGE = ROOT / "src" / "trimtab" / "models" / "features.py"

UNDATED = "name without a date"

MOVED = 0.05
"""A name without a date moves if more of its plain requests than this are refuted."""

Family = tuple[str, tuple[str, ...]]
"""A wire form, and the models that are charged alike in it."""


@dataclass(frozen=True, slots=True)
class Bill:
    """What of a bill says which features are charged as counted."""

    model: str
    features: frozenset[str]
    off: int
    is_plain: bool
    """Whether the request has nothing but texts, so that little but its name can be why it is not met."""

    @property
    def is_met(self) -> bool:
        """Whether it came out as counted."""
        return self.off == 0


def bills(some: Iterable[Case]) -> dict[Family, list[Bill]]:
    """Sort bills of models with a tokenizer of their own by family; what is apart says nothing."""
    found: dict[tuple[str, object], list[Bill]] = defaultdict(list)
    for case in some:
        one = case.request
        facts = facts_for(one.model)
        if case.apart is None and facts.exact:
            features = features_in(one.request, model=one.model, format=one.format)
            bill = Bill(facts.name, features, case.off, one.kind == "plain")
            found[one.format, charge_of(facts, one.format)].append(bill)
    return {(form, tuple(sorted({bill.model for bill in held}))): held for (form, _), held in found.items()}


def claims_of(held: Sequence[Bill]) -> frozenset[str]:
    """List the features whose bills came out exact, without those that a bill refutes.

    Of what a refuted request has, the feature leaves that such requests have more often than others. A name
    without a date leaves first, if plain requests under it were refuted: where it leads may have moved.
    """
    plain = [bill for bill in held if bill.is_plain and UNDATED in bill.features]
    moves = sum(not bill.is_met for bill in plain) > MOVED * len(plain)
    everything = frozenset(feature for bill in held for feature in bill.features)
    seen = _met(held, everything - {UNDATED} if moves else everything)
    while refuted := [bill for bill in held if not bill.is_met and bill.features <= seen]:
        claimed = Tally(feature for bill in held if bill.features <= seen for feature in bill.features)
        against = Tally(feature for bill in refuted for feature in bill.features)
        worst = max(against, key=lambda name: (against[name] / claimed[name], -claimed[name], name))
        seen = _met(held, seen - {worst})
    return seen


def claimed() -> dict[tuple[str, str], frozenset[str]]:
    """List what the table claims, by wire form and model."""
    return {(form, name): held for name, forms in exact_table().items() for form, held in forms.items()}


def unfounded(some: Iterable[Case]) -> dict[tuple[str, str], frozenset[str]]:
    """List claims that no bill of the family bears out: none came out exact that has nothing else."""
    table, founded = claimed(), defaultdict[tuple[str, str], frozenset[str]](frozenset)
    for (form, models), held in bills(some).items():
        for model in models:
            founded[form, model] |= _met(held, table.get((form, model), frozenset()))
    return {key: rest for key, listed in table.items() if (rest := listed - founded[key])}


def tried(known: Iterable[Case], others: Iterable[Case]) -> tuple[int, list[int]]:
    """Make the table from some bills and try it on others.

    Returns:
        How many of the others it would call exact, and how far off those are that miss.
    """
    by_charge = {_key(*family): held for family, held in bills(known).items()}
    claims, off = 0, []
    for (form, models), held in bills(others).items():
        listed = claims_of(by_charge.get(_key(form, models), []))
        exact = [bill for bill in held if bill.features <= listed]
        claims += len(exact)
        off += [bill.off for bill in exact if not bill.is_met]
    return claims, off


def _key(form: str, models: Sequence[str]) -> tuple[str, object]:
    """Tell a family by what decides its counts: which models have bills differs from half to half."""
    return form, charge_of(facts_for(models[0]), form)


def _met(held: Sequence[Bill], allowed: frozenset[str]) -> frozenset[str]:
    """List the features of bills that came out exact and have no other than those."""
    return frozenset(
        feature for bill in held if bill.is_met and bill.features <= allowed for feature in bill.features
    )


def write(families: Mapping[Family, frozenset[str]], page: Path = PAGE) -> None:
    """Write the table."""
    lines = []
    for (form, models), seen in sorted(families.items()):
        if seen:
            lines.append(f"    (\n        {form!r},\n        {_text(models)},")
            lines += [f"        {_text(sorted(seen), mark='|')},", "    ),"]
    page.write_text(_HEAD + "\n".join(lines).replace("'", '"') + "\n)\n", encoding="utf-8")


def _text(words: Sequence[str], *, mark: str = " ") -> str:
    rows = textwrap.wrap(" ".join(word.replace(" ", "\0") + mark.strip() for word in words), 92)
    rows = [row.replace("\0", " ") for row in rows]
    return "\n".join(["(", *(f"            {row + ' '!r}" for row in rows), "        )"])


_HEAD = '''"""Features of requests whose bills came out exact, by wire form and family of models.

Made by `make accuracy ACCURACY="--quick --write-features"` from recorded bills: what stands here stood in a
request that was billed as counted, and no bill of a request with nothing but these was not. It holds no
recorded text.
"""

from __future__ import annotations

EXACT: tuple[tuple[str, str, str], ...] = (
'''
