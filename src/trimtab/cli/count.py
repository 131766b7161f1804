"""`trimtab count`: how many tokens a conversation has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, BinaryIO

import click

from trimtab.cli._asked import Asked
from trimtab.cli._input import InputKind
from trimtab.cli._options import input_options, request_options
from trimtab.cli._output import answer_all, usage
from trimtab.counting import EstimateCounter
from trimtab.counting._measure import count_of_request
from trimtab.counting._sizes import Fixed
from trimtab.errors import FormatError
from trimtab.formats import mapping_of
from trimtab.report._lines import counted, plain

__all__ = ["count"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Count:
    """What was counted; a row is (role, tokens)."""

    tokens: int
    system_tokens: int
    """Of system text beside the messages, given or in the body."""
    tools_tokens: int
    output_schema_tokens: int
    media_tokens: int
    """Of images, sounds, videos and files; a part of the messages'."""
    margin_tokens: int | None
    """How far the bill may be off, either way; None where nobody measured."""
    rows: list[tuple[str, int]]
    each: bool
    facts: dict[str, Any]
    ok: bool = True

    @property
    def messages_tokens(self) -> int:
        return sum(tokens for _, tokens in self.rows)

    def data(self) -> dict[str, Any]:
        """Give the total, what it is made of, and the messages if each is asked for."""
        data: dict[str, Any] = {
            "tokens": self.tokens,
            **self.facts,
            "total_messages": len(self.rows),
            "messages_tokens": self.messages_tokens,
            "system_tokens": self.system_tokens,
            "tools_tokens": self.tools_tokens,
            "output_schema_tokens": self.output_schema_tokens,
            "media_tokens": self.media_tokens,
            "margin_tokens": self.margin_tokens,
            "fixed_tokens": self.tokens - self.messages_tokens,
        }
        if self.each:
            data["messages"] = [
                {"index": index, "role": role, "tokens": tokens}
                for index, (role, tokens) in enumerate(self.rows)
            ]
        return data

    def text(self, *, width: int, colour: bool) -> str:
        """Give a small table, its numbers below each other."""
        parts = {"system": self.system_tokens, "tools": self.tools_tokens}
        parts["output schema"] = self.output_schema_tokens
        parts["framing"] = self.tokens - self.messages_tokens - sum(parts.values())
        table = [(f"{index:>5}  {plain(role)}", tokens) for index, (role, tokens) in enumerate(self.rows)]
        if not self.each:
            table = [(counted(len(self.rows), "message"), self.messages_tokens - self.media_tokens)]
            parts = {"media": self.media_tokens, **parts}
        table += [(name, tokens) for name, tokens in parts.items() if tokens]
        table += [("total, " + self._how(), self.tokens)]
        if self.margin_tokens:
            table += [("margin, either way", self.margin_tokens)]
        digits = len(f"{self.tokens:,}")
        return "\n".join(f"{tokens:>{digits},}  {name}" for name, tokens in table)

    def row(self) -> str:
        """Give the total."""
        of = counted(len(self.rows), "message")
        return f"{counted(self.tokens, 'token')} in {of}, {self._how()}"

    def _how(self) -> str:
        name = plain(str(self.facts["counter"]))
        if self.facts["exact"]:
            return f"by {name}" if self.margin_tokens else f"exactly, by {name}"
        return "by estimate" if name == "estimate" else f"by estimate ({name})"


def _count(value: Any, asked: Asked, *, each: bool) -> _Count:
    """Count one conversation as `fit` would."""
    taken = asked.of(value)
    form, request = taken.format, taken.request
    counter = EstimateCounter() if taken.counter is None else taken.counter
    fixed = Fixed(request.system, request.tools if asked.tools is None else asked.tools, request.extra)
    messages = [_readable(message, index) for index, message in enumerate(request.messages)]
    lead = [] if asked.system is None else [form.message("system", [asked.system])]
    sent = [*lead, *messages]
    has_system = bool(sent) and form.kind(sent[0]) == "system"
    fixed_tokens = counter.fixed_tokens(fixed.system, fixed.tools, has_system=has_system, extra=fixed.extra)
    without_tools = counter.fixed_tokens(fixed.system, None, has_system=has_system, extra=fixed.extra)
    beside = counter.fixed_tokens(fixed.system, None, has_system=has_system)
    found = count_of_request(value, counter, format=form, system=asked.system, tools=asked.tools)
    return _Count(
        tokens=counter.count_request(sent, fixed.system, fixed.tools, fixed.extra),
        system_tokens=sum(map(counter.count_message, lead))
        + beside
        - counter.fixed_tokens(None, None, has_system=has_system),
        tools_tokens=fixed_tokens - without_tools,
        output_schema_tokens=without_tools - beside,
        media_tokens=found.media_tokens or 0,
        margin_tokens=found.margin_tokens,
        rows=[(str(one.get("role") or form.kind(one)), counter.count_message(one)) for one in messages],
        each=each,
        facts={"exact": counter.exact, "counter": counter.name, "model": taken.model, "format": form.name},
    )


def _readable(message: Any, index: int) -> dict[str, Any]:
    try:
        return mapping_of(message)
    except FormatError as error:
        raise FormatError(f"messages[{index}]: {error}", path=f"messages[{index}]") from error


@click.command()
@input_options
@request_options
@click.option("--each", is_flag=True, help="Also the tokens of each message.")
@usage
def count(file: BinaryIO | None, kind: InputKind, output: str, each: bool, **given: Any) -> None:
    """Count the tokens of conversations.

    Messages, tools and framing of the request, as the provider would charge them; says whether
    the number is exact.
    """
    asked = Asked(given, format=given["format"])

    def answer(value: Any) -> _Count:
        return _count(value, asked, each=each)

    failing = "cannot be counted"
    answer_all(answer, file=file, kind=kind, output=output, failing=failing, full=each)
