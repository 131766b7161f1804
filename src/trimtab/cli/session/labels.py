"""Options that say whose sessions are meant, since when, and how long one lives."""

from __future__ import annotations

import math
import time
from datetime import UTC, datetime
from typing import Any

import click

from trimtab._shared.strict_json import parse
from trimtab.cli.options import together
from trimtab.errors import FormatError


class _Time(click.ParamType[float]):
    """A time: seconds since 1970, a date, or how long ago, as 30d or 12h."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Read it; a date without a zone is in UTC."""
        if isinstance(value, float):
            return value
        seconds = None if _is_date(value) else _seconds_in(value)
        if seconds is not None:
            return time.time() - seconds if value[-1] in _UNITS else seconds
        try:
            read = datetime.fromisoformat(value)
        except ValueError:
            self.fail(f"{value!r} is no time, as 2026-11-30, 2026-11-30T12:00:00Z, 30d or 12h", param, ctx)
        return (read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp()


_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}


def _is_date(value: str) -> bool:
    """Tell a date without dashes, as 20261130, from a number of seconds in 1970."""
    return len(value) == 8 and value.isdigit() and value[:2] in ("19", "20")


def _seconds_in(value: str) -> float | None:
    unit = _UNITS.get(value[-1:])
    try:
        seconds = float(value if unit is None else value[:-1]) * (unit or 1)
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) else None


class _Duration(click.ParamType[Any]):
    """A number of seconds, or 12h, 30d."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float | str:
        """Read it; `none` is no end."""
        if value == "none":
            return "none"
        if isinstance(value, float):
            return value
        seconds = _seconds_in(value)
        if seconds is None or not seconds > 0:
            self.fail(f"{value!r} is no number of seconds above 0, as 3600, 12h, 30d or none", param, ctx)
        return seconds


def _metadata(ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> dict[str, Any] | None:
    """Read NAME=VALUE; a value that is a number or a flag as JSON has it is one, anything else is a text."""
    found = {}
    for one in given:
        name, equals, value = one.partition("=")
        if not name or not equals:
            raise click.BadParameter(f"{one!r} is not NAME=VALUE")
        try:
            read = parse(value.encode(), whole=True)
        except FormatError:
            read = value
        found[name] = read if isinstance(read, (bool, int, float, str)) else value
    return found or None


owner_option = click.option("--owner", metavar="NAME", help="Owner of the sessions.")
metadata_option = click.option(
    "--metadata",
    metavar="NAME=VALUE",
    multiple=True,
    callback=_metadata,
    help="Metadata; a value is a number, true, false, or a text. Repeatable.",
)
ttl_option = click.option(
    "--ttl",
    type=_Duration(),
    metavar="DURATION|none",
    help="Time the session lives after its newest event: seconds, 12h, 30d. By default without end.",
)
after_option = click.option("--after", metavar="TOKEN", help="Continue where an earlier answer ended.")
filter_options = together(
    owner_option,
    click.option("--prefix", metavar="TEXT", help="Beginning of the names of the sessions."),
    metadata_option,
    click.option("--used-before", type=_Time(), metavar="TIME", help="Not used since: a date, or 30d."),
    click.option("--used-after", type=_Time(), metavar="TIME", help="Used since: a date, or 12h."),
    click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Maximum number of sessions."),
    after_option,
)
"""Which sessions a list shows."""
