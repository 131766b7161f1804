"""`trimtab models`: what is known of models, and where it was read."""

from __future__ import annotations

import shutil
import sys
from dataclasses import asdict
from typing import Any

import click

from trimtab._shared.checks import in_words
from trimtab.cli.options import complete_from, complete_models, output_option
from trimtab.cli.output import json_text, usage
from trimtab.errors import UnknownNameError
from trimtab.models import ModelFacts, PriceTier, facts_for, find_facts, model_names, near_models
from trimtab.models.prices import find_pricing
from trimtab.report.text import align, plain

_SHOWN = (
    "name",
    "provider",
    "format",
    "window_tokens",
    "input_tokens",
    "output_tokens",
    "encoding",
    "near_encoding",
    "text_factor",
    "exact",
    "source",
    "checked",
)


def _providers() -> list[str]:
    return sorted({facts_for(name).provider for name in model_names()})


EPILOG = """\b
Examples:
  trimtab models --output text
  trimtab models NAME --output text
"""


@click.command(epilog=EPILOG)
@output_option
@click.option(
    "--provider",
    metavar="NAME",
    shell_complete=complete_from(_providers),
    help="Only the models of this provider.",
)
@click.argument("names", metavar="[MODEL]...", nargs=-1, shell_complete=complete_models)
@usage
def models(output: str, provider: str | None, names: tuple[str, ...]) -> None:
    """List the models trimtab knows, or look some up.

    Window, limits of input and output, price tiers (above a number of tokens, all input costs a multiple),
    wire form and tokenizer, with the source of each row and its date. A MODEL may have a date or a provider's
    prefix; a part of a name, such as claude, lists all models with it. Unknown values are null. Your own rows
    can be in a TOML or JSON file that the variable TRIMTAB_MODELS names.
    """
    found, unknown = list[ModelFacts](), list[str]()
    for name in names or model_names():
        if part := _with_part(name):
            found += part
            continue
        try:
            facts = facts_for(name)
        except UnknownNameError as error:
            unknown.append(f"unknown model {name!r}{in_words(error.near)}")
            continue
        if facts.counted_as is None:
            found.append(facts)
        else:
            near = in_words(near_models(name))
            unknown.append(f"model {name!r} is not known: counted as {facts.counted_as}{near}")
    if provider is not None:
        known = _providers()
        if provider not in known:
            raise click.UsageError(f"provider {provider!r} has no known model; providers: {', '.join(known)}")
        others = [facts.name for facts in found if facts.provider != provider]
        found = [facts for facts in found if facts.provider == provider]
        if names and others:
            unknown.append(f"not of provider {provider!r}: {', '.join(others)}")
    for line in unknown:
        click.echo(f"trimtab: {plain(line)}", err=True)
    if output == "json":
        rows = [_data(facts) for facts in found]
        click.echo(json_text(rows), nl=False)
    else:
        click.echo(_table(found, width=shutil.get_terminal_size().columns))
    sys.exit(1 if unknown else 0)


def _with_part(name: str) -> list[ModelFacts]:
    """List the models whose names hold what is no name of one."""
    facts = find_facts(name)
    if facts is not None and facts.counted_as is None:
        return []
    return [facts_for(known) for known in model_names() if name.lower() in known.lower()]


def _data(facts: ModelFacts) -> dict[str, Any]:
    """Write what is known of a model as plain data, its price tiers among it."""
    row = asdict(facts)
    tiers = [tier._asdict() for tier in _tiers(facts)]
    return {**{key: row[key] for key in _SHOWN}, "price_tiers": tiers}


def _tiers(facts: ModelFacts) -> tuple[PriceTier, ...]:
    prices = find_pricing(facts.name)
    return () if prices is None else prices.tiers


def _table(found: list[ModelFacts], *, width: int) -> str:
    """Write a line a model, its columns below each other; the source last, where there is room."""
    rows = [
        ("model", "window", "input", "output", "tiers", "form", "counted", "checked", "source"),
        *map(_row, found),
    ]
    *_, sources = zip(*rows, strict=True)
    lines = [line.removeprefix("  ") for line in align([row[:-1] for row in rows], right=(1, 2, 3))]
    if len(lines[0]) + 2 + max(map(len, sources)) > width:
        return "\n".join(map(str.rstrip, lines))
    return "\n".join(f"{line}  {source}" for line, source in zip(lines, sources, strict=True))


def _tokens(count: int | None) -> str:
    return "-" if count is None else f"{count:,}"


def _row(facts: ModelFacts) -> tuple[str, ...]:
    """Write what is known of a model; a dash where nothing is."""
    near = facts.near_encoding and f"{facts.near_encoding} x {facts.text_factor:g}"
    counted = facts.encoding or near or "by estimate"
    return (
        facts.name,
        _tokens(facts.window_tokens),
        _tokens(facts.input_tokens),
        _tokens(facts.output_tokens),
        ", ".join(f"{one.above_tokens // 1_000}k x {one.input:g}" for one in _tiers(facts)) or "-",
        facts.format,
        f"{counted}, exact" if facts.exact else counted,
        facts.checked,
        facts.source,
    )
