"""Compare what trimtab knows of models with what litellm's table and genai-prices know.

A model that we have is looked up in both. Compared are the window, the most input and output, and prices as
multiples of the price of input: a token that the cache serves or stores, one of output, and price tiers. What
differs is printed, with the reason in `REASONS` of the module that has the row, if there is one. A value that
both tables have, and neither has as we do, needs such a reason with a date; without one the exit code is 1.
So it is for a reason without a date, or of a value that does not differ any more.

    make models                 # all
    make models MODELS=gpt-5.5  # one
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from genai_prices.data import providers

from trimtab.errors import UnknownNameError
from trimtab.models import (
    ModelFacts,
    anthropic,
    facts_for,
    google,
    model_names,
    open_weights,
    openai,
    others,
    prices,
    pricing_for,
)

TODAY = datetime.now(UTC)
TOLERANCE = 0.02
"""Of prices: our rows round them."""
HOSTS: dict[str, tuple[str, str | None]] = {
    "openai": ("", "openai"),
    "anthropic": ("", "anthropic"),
    "google": ("gemini/", "google"),
    "mistral": ("mistral/", "mistral"),
    "xai": ("xai/", "x-ai"),
    "deepseek": ("deepseek/", "deepseek"),
    "alibaba": ("dashscope/", None),
    "moonshot": ("moonshot/", "moonshotai"),
    "z.ai": ("zai/", "zai"),
    "minimax": ("minimax/", "minimax"),
    "amazon": ("amazon.", "aws"),
    "cohere": ("", "cohere"),
    "perplexity": ("perplexity/", "perplexity"),
    "ai21": ("", None),
}
"""What stands before a maker's models in litellm's table, and its name in genai-prices."""

Values = dict[str, Any]
REASONS: dict[tuple[str, str], str] = {
    key: reason
    for module in (openai, anthropic, google, others, open_weights, prices)
    for key, reason in module.REASONS.items()
}


class Difference(NamedTuple):
    """A value that is not the same everywhere."""

    model: str
    what: str
    ours: Any
    litellm: Any
    genai: Any

    @property
    def contradicted(self) -> bool:
        """Whether both tables know it, and neither has what we have."""
        known = (self.litellm, self.genai)
        return self.ours is not None and all(
            value is not None and not same(self.what, self.ours, value) for value in known
        )


def main(asked: list[str]) -> int:
    """Print the table; tell whether a row contradicts both without a reason."""
    found = [one for name in asked or model_names() for one in differences(name)]
    wrong = 0
    for one in found:
        reason = REASONS.get((one.model, one.what))
        mark = f"  # {reason}" if reason else "  ! NO REASON" if one.contradicted else ""
        wrong += one.contradicted and reason is None
        sides = f"ours {one.ours!s:24} litellm {one.litellm!s:24} genai {one.genai}"
        print(f"{one.model:36} {one.what:8} {sides}{mark}")
    needed = {(one.model, one.what) for one in found if one.contradicted}
    unused = [] if asked else sorted(REASONS.keys() - {(one.model, one.what) for one in found})
    for model, what in unused:
        print(f"{model}: {what}: a reason that nothing needs any more")
    undated = [key for key, reason in REASONS.items() if not re.match(r"2\d{3}-\d\d-\d\d: ", reason)]
    for model, what in undated:
        print(f"{model}: {what}: a reason without a date")
    known = [name for name in model_names() if litellm_of(facts_for(name)) or genai_of(facts_for(name))]
    print(
        f"{len(known)} of {len(model_names())} models are in one of the tables; {len(found)} values differ,"
    )
    print(f"{len(needed)} from both, {wrong} of these without a reason")
    return 1 if wrong or unused or undated else 0


def differences(name: str) -> Iterator[Difference]:
    """List what of a model is not the same in the tables that have it."""
    facts = facts_for(name)
    ours, litellm, genai = values_of(facts), litellm_of(facts), genai_of(facts)
    for what, value in ours.items():
        one = Difference(name, what, value, litellm.get(what), genai.get(what))
        known = [other for other in (one.litellm, one.genai) if other is not None]
        if any(not same(what, value, other) for other in known):
            yield one


def same(what: str, ours: Any, other: Any) -> bool:
    """Compare two values; a table's window may be our input limit, and prices are rounded."""
    if ours is None:
        return False
    if what == "window":
        return other in ours
    if what == "tiers":
        return [round(one[0], -2) for one in ours] == [round(one[0], -2) for one in other] and all(
            near(a, b)
            for one, two in zip(ours, other, strict=True)
            for a, b in zip(one[1:], two[1:], strict=True)
        )
    return near(ours, other) if isinstance(other, float) and what != "output" else ours == other


def near(ours: float | None, other: float | None) -> bool:
    """Compare prices."""
    if ours is None or other is None:
        return ours is other
    return abs(ours - other) <= TOLERANCE * max(ours, other)


def values_of(facts: ModelFacts) -> Values:
    """List what we have."""
    try:
        found = pricing_for(facts.name)
    except UnknownNameError:
        found = None
    made: Values = {
        "window": (facts.window_tokens, facts.input_tokens),
        "output": facts.output_tokens,
    }
    if facts.output_tokens is None:  # nothing but the window limits it
        made["output"] = facts.window_tokens
    if found is not None:
        made |= {"read": found.read, "write": found.write, "answer": found.output, "tiers": [*found.tiers]}
    else:
        made |= dict.fromkeys(("read", "write", "answer", "tiers"))
    return made


TABLE: dict[str, Any] = json.loads(
    (Path(find_spec("litellm").origin).parent / "model_prices_and_context_window_backup.json").read_text()  # type: ignore[union-attr,arg-type]
)


def litellm_of(facts: ModelFacts) -> Values:
    """List what litellm's table has of a model; nothing if it has no such row."""
    prefix = HOSTS.get(facts.provider, ("", None))[0]
    names = (prefix + facts.name, prefix + facts.name + "-v1:0", facts.name if prefix == "" else "")
    row = next((TABLE[name] for name in names if name in TABLE), None)
    if row is None:
        return {}
    made: Values = {"window": row.get("max_input_tokens"), "output": row.get("max_output_tokens")}
    base = row.get("input_cost_per_token")
    steps = row.get("tiered_pricing") or []
    if steps:
        first = steps[0]
        base = first["input_cost_per_token"]
        made["answer"] = float(first["output_cost_per_token"] / base)
        made["tiers"] = [
            (
                int(one["range"][0]),
                one["input_cost_per_token"] / base,
                one["output_cost_per_token"] / first["output_cost_per_token"],
            )
            for one in steps[1:]
        ]
        return {what: value for what, value in made.items() if value is not None}
    if base:
        output = row.get("output_cost_per_token")
        made["answer"] = output and float(output / base)
        for what, key in (
            ("read", "cache_read_input_token_cost"),
            ("write", "cache_creation_input_token_cost"),
        ):
            made[what] = float(row[key] / base) if row.get(key) else None
        made["tiers"] = sorted(
            (
                int(found[1]) * 1_000,
                value / base,
                row[f"output_cost_per_token_above_{found[1]}k_tokens"] / output,
            )
            for key, value in row.items()
            if (found := re.fullmatch(r"input_cost_per_token_above_(\d+)k_tokens", key))
            and output
            and f"output_cost_per_token_above_{found[1]}k_tokens" in row
        )
    return {what: value for what, value in made.items() if value is not None}


KNOWN = {provider.id: provider for provider in providers}


def genai_of(facts: ModelFacts) -> Values:
    """List what genai-prices has of a model; nothing if it has no such row."""
    provider = KNOWN.get(HOSTS.get(facts.provider, ("", None))[1] or "")
    names = (facts.name, facts.name.replace(".", "-"))
    found = (provider.find_model(name) for name in names) if provider is not None else ()
    model = next(filter(None, found), None)
    if model is None:
        return {}
    price = model.get_prices(TODAY)
    made: Values = {"window": model.context_window}
    base, output = plain(price.input_mtok), plain(price.output_mtok)
    if base:
        made["answer"] = output and output / base
        for what, value in (("read", price.cache_read_mtok), ("write", price.cache_write_mtok)):
            made[what] = None if value is None else plain(value) / base
        starts = {tier.start: tier for tier in getattr(price.input_mtok, "tiers", ())}
        more = {tier.start: tier for tier in getattr(price.output_mtok, "tiers", ())}
        made["tiers"] = [
            (start, float(tier.price) / base, float(more[start].price) / output)
            for start, tier in sorted(starts.items())
            if start in more and output
        ]
    return {what: value for what, value in made.items() if value is not None}


def plain(price: Any) -> float:
    """Return the price without tiers."""
    return 0.0 if price is None else float(getattr(price, "base", price))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
