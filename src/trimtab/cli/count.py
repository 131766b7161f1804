"""`trimtab count`: how many tokens a conversation has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import click

from trimtab.cli.input import InputKind
from trimtab.cli.options import RequestOptions, input_options, request_options
from trimtab.cli.output import Verdicts, answer_all, usage
from trimtab.counting import Count, EstimateCounter
from trimtab.counting.measurement import count_of_request
from trimtab.formats import Format, mapping_of
from trimtab.report.text import counted, plain


@dataclass(frozen=True, slots=True, kw_only=True)
class _Count:
    """What was counted; a row is (role, tokens)."""

    found: Count
    lead_tokens: int
    """Of `--system`, where it stands among the messages."""
    rows: list[tuple[str, int]]
    each: bool
    by_own: bool
    """Whether texts were counted by the model's own tokenizer."""
    model: str | None
    ok: bool = True

    @property
    def tokens(self) -> int:
        """The whole request."""
        return self.found.tokens

    @property
    def messages_tokens(self) -> int:
        return (self.found.messages_tokens or 0) - self.lead_tokens

    @property
    def system_tokens(self) -> int:
        return (self.found.system_tokens or 0) + self.lead_tokens

    def data(self) -> dict[str, Any]:
        """Give the total, what it is made of, and the messages if each is asked for."""
        found = self.found
        data: dict[str, Any] = {
            "tokens": found.tokens,
            "exact": found.exact,
            "counter": found.counter,
            "model": self.model,
            "format": found.format,
            "total_message_count": len(self.rows),
            "messages_tokens": self.messages_tokens,
            "media_tokens": found.media_tokens,
            "system_tokens": self.system_tokens,
            "tools_tokens": found.tools_tokens,
            "output_schema_tokens": found.output_schema_tokens,
            "framing_tokens": found.framing_tokens,
            "fixed_tokens": found.tokens - self.messages_tokens - (found.media_tokens or 0),
            "margin_tokens": found.margin_tokens,
            "unknown": list(found.unknown),
            "notes": list(found.notes),
        }
        if self.each:
            data["messages"] = [
                {"index": index, "role": role, "tokens": tokens}
                for index, (role, tokens) in enumerate(self.rows)
            ]
        return data

    def result(self) -> int:
        """Give the total."""
        return self.found.tokens

    def text(self, *, width: int, colour: bool) -> str:
        """Give a small table, its numbers below each other."""
        found = self.found
        parts = {"system": self.system_tokens, "tools": found.tools_tokens}
        parts |= {"output schema": found.output_schema_tokens, "framing": found.framing_tokens}
        table = [(f"{index:>5}  {plain(role)}", tokens) for index, (role, tokens) in enumerate(self.rows)]
        if not self.each:
            table = [(counted(len(self.rows), "message"), self.messages_tokens)]
            parts = {"media": found.media_tokens, **parts}
        table += [(name, tokens) for name, tokens in parts.items() if tokens]
        table += [("total, " + self._how(), found.tokens)]
        if found.margin_tokens:
            table += [("margin, either way", found.margin_tokens)]
        digits = len(f"{found.tokens:,}")
        lines = [f"{tokens:>{digits},}  {name}" for name, tokens in table]
        lines += (f"{'?':>{digits}}  {plain(phrase)}" for phrase in found.unknown)
        return "\n".join([*lines, *(f"{'!':>{digits}}  {plain(note)}" for note in found.notes)])

    def row(self) -> str:
        """Give the total."""
        of = counted(len(self.rows), "message")
        return f"{counted(self.found.tokens, 'token')} in {of}, {self._how()}"

    def _how(self) -> str:
        name = plain(self.found.counter)
        if self.found.exact or self.by_own:
            return f"exactly, by {name}" if self.found.exact else f"by {name}"
        return "by estimate" if name == "estimate" else f"by estimate ({name})"


def _count(value: Any, asked: RequestOptions, *, each: bool) -> _Count:
    """Count one conversation as `measure` does."""
    taken = asked.of(value)
    form, counter = taken.format, EstimateCounter() if taken.counter is None else taken.counter
    found = count_of_request(
        value, counter, format=form, model=taken.model, system=asked.system, tools=asked.tools
    )
    sizes, messages = list(found.sizes or ()), taken.request.messages
    lead_tokens = sizes.pop(0) if len(sizes) > len(messages) else 0
    return _Count(
        found=found,
        lead_tokens=lead_tokens,
        rows=[(_role(form, message), tokens) for message, tokens in zip(messages, sizes, strict=True)],
        each=each,
        by_own=counter.with_format(form).exact,
        model=taken.model,
    )


def _role(form: Format, message: Any) -> str:
    entry = mapping_of(message)
    return str(entry.get("role") or form.kind(entry))


EPILOG = """\b
Examples:
  trimtab count chat.json --model NAME
  trimtab count 'chats/*.jsonl' --output text
  trimtab fit chats.jsonl --budget 8k | trimtab count
"""


@click.command(epilog=EPILOG)
@input_options
@request_options
@click.option("--each", is_flag=True, help="Also the tokens of each message.")
@usage
def count(files: tuple[str, ...], kind: InputKind, output: str, each: bool, **given: Any) -> None:
    """Count the tokens of conversations.

    Messages, tools and framing of the request, as the provider would charge them; says whether
    the number is exact.
    """
    asked = RequestOptions(given, format=given["format"])

    def answer(value: Any) -> _Count:
        return _count(value, asked, each=each)

    verdicts = Verdicts(passing="are counted", failing="cannot be counted")
    answer_all(answer, files=files, kind=kind, output=output, verdicts=verdicts, full=each)
