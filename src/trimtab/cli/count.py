"""`trimtab count`: how many tokens a conversation has."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import click

from trimtab.cli.options import Conversation, RequestOptions, calibration_option, request_options, together
from trimtab.cli.output import Answer, Refused, on_conversations
from trimtab.counting import AdditiveCounter, Count, EstimateCounter
from trimtab.counting.measurement import Counted, count_of_request
from trimtab.formats import mapping_of
from trimtab.report.text import plain, plural


class Done(NamedTuple):
    """One conversation of the input, and what it comes to."""

    taken: Conversation
    counter: AdditiveCounter
    counted: Counted


def count_one(value: Any, asked: RequestOptions, /) -> Done:
    """Count one conversation as its options say."""
    taken = asked.of(value)
    counter = EstimateCounter() if taken.counter is None else taken.counter
    return Done(
        taken,
        counter,
        count_of_request(
            value, counter, format=taken.format, model=taken.model, system=asked.system, tools=asked.tools
        ),
    )


def _count(value: Any, asked: RequestOptions, *, each: bool) -> Answer:
    taken, counter, (found, *_) = count_one(value, asked)
    form, messages = taken.format, taken.request.messages
    sizes = list(found.sizes or ())
    lead_tokens = sizes.pop(0) if len(sizes) > len(messages) else 0  # --system, where it is a message
    messages_tokens = (found.messages_tokens or 0) - lead_tokens
    system_tokens = (found.system_tokens or 0) + lead_tokens
    entries = map(mapping_of, messages)
    roles = [str(entry.get("role") or form.kind(entry)) for entry in entries]
    rows = list(zip(range(len(roles)), roles, sizes, strict=True))
    how = _how(found, is_own=counter.with_format(form).exact)
    number = plural(len(messages), "message")

    def data() -> dict[str, Any]:
        data = _data(found, messages_tokens, system_tokens)
        data |= {"model": taken.model, "total_message_count": len(messages)}
        listed = [{"index": index, "role": role, "tokens": tokens} for index, role, tokens in rows]
        return {**data, "messages": listed} if each else data

    def text(width: int, colour: bool) -> str:
        """Give a small table, its numbers below each other."""
        table = [(f"{index:>5}  {plain(role)}", tokens) for index, role, tokens in rows]
        parts: dict[str, int | None] = {"system": system_tokens, "tools": found.tools_tokens}
        parts |= {"output schema": found.output_schema_tokens, "framing": found.framing_tokens}
        if not each:
            table, parts = [(number, messages_tokens)], {"media": found.media_tokens, **parts}
        table += [(name, tokens) for name, tokens in parts.items() if tokens]
        table += [(f"total, {how}", found.tokens)]
        low, high = found.over_margin_tokens, found.margin_tokens
        table += [("margin, either way", high)] if high and low == high else []
        digits = len(f"{found.tokens:,}")
        lines = [f"{tokens:>{digits},}  {name}" for name, tokens in table]
        lines += [f"{'':>{digits}}  margin -{low or 0:,} / +{high:,}"] if high and low != high else []
        lines += (f"{'?':>{digits}}  {plain(phrase)}" for phrase in found.unknown)
        return "\n".join([*lines, *(f"{'!':>{digits}}  {plain(note)}" for note in found.notes)])

    return Answer(
        tokens=lambda: found.tokens,
        data=data,
        result=found.tokens,
        text=text,
        row=lambda: f"{plural(found.tokens, 'token')} in {number}, {how}",
    )


def _data(found: Count, messages_tokens: int, system_tokens: int) -> dict[str, Any]:
    return {
        "tokens": found.tokens,
        "exact": found.exact,
        "counter": found.counter,
        "model": None,
        "format": found.format,
        "total_message_count": 0,
        "messages_tokens": messages_tokens,
        "media_tokens": found.media_tokens,
        "system_tokens": system_tokens,
        "tools_tokens": found.tools_tokens,
        "output_schema_tokens": found.output_schema_tokens,
        "framing_tokens": found.framing_tokens,
        "fixed_tokens": found.tokens - messages_tokens - (found.media_tokens or 0),
        "margin_tokens": found.margin_tokens,
        "over_margin_tokens": found.over_margin_tokens,
        "unknown": list(found.unknown),
        "notes": list(found.notes),
    }


def _how(found: Count, *, is_own: bool) -> str:
    """Say who counted; `is_own`: texts were counted by the model's own tokenizer."""
    name = plain(found.counter)
    if found.exact or is_own:
        return f"exactly, by {name}" if found.exact else f"by {name}"
    return "by estimate" if name == "estimate" else f"by estimate ({name})"


_bills_options = together(
    click.option(
        "--learn",
        "learned",
        metavar="FILE",
        type=click.Path(),
        help="With --bills: write what the bills teach, for --calibration.",
    ),
    click.option(
        "--bills",
        is_flag=True,
        help="Count each recorded call that has a usage beside its bill, and sum up by model.",
    ),
)


def _with_bills(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command that counts conversations count calls beside their bills, too."""

    @functools.wraps(command)
    def run(bills: bool, learned: str | None, **given: Any) -> None:
        if bills:
            from trimtab.cli.bills import count_bills  # not above: most counts are beside no bill

            count_bills(learned, **given)
        elif learned is not None:
            raise Refused("--learn FILE needs --bills")
        else:
            command(**given)

    return _bills_options(run)


EPILOG = """\b
Examples:
  trimtab count chat.json --model NAME
  trimtab count 'chats/*.jsonl' --output text
  trimtab fit chats.jsonl --budget 8k | trimtab count
  trimtab count --bills logs/ --output text
  trimtab count --bills calls.jsonl --learn calibration.json
"""


@click.command(epilog=EPILOG)
@_with_bills
@on_conversations(passing="are counted", failing="cannot be counted", lengths=True)
@request_options
@calibration_option
@click.option("--each", "full", is_flag=True, help="Also write the tokens of each message.")
def count(full: bool, **given: Any) -> Callable[[Any], Answer]:
    """Count the tokens of conversations.

    Counts messages, tools and framing of the request, as the provider would charge them, and says whether the
    number is exact. With --bills, compares each recorded call that has a usage with its bill.
    """
    asked = RequestOptions(given)
    return lambda value: _count(value, asked, each=full)
