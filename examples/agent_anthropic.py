"""A coding agent on Anthropic's Messages API: it reads files until it can answer."""

from __future__ import annotations

import sys
from pathlib import Path

from anthropic import Anthropic
from anthropic.types import MessageParam, ToolParam, ToolResultBlockParam, ToolUseBlock

from trimtab import Budget, Cascade, ClearToolResults, SlidingWindow, TruncateText, fit

MODEL, SYSTEM = "claude-sonnet-5", "You are a coding agent. Read files before you answer."
BUDGET = Budget(8_000, output_reserve=1_024, margin="auto")  # counts for Claude are estimates: keep a margin
OLD_RESULTS_FIRST = Cascade(ClearToolResults(keep_results=2), SlidingWindow(), TruncateText())
PATH: dict[str, object] = {"type": "object", "properties": {"path": {"type": "string"}}}
TOOLS: list[ToolParam] = [{"name": "read_file", "description": "Read a file.", "input_schema": PATH}]


def result_of(call: ToolUseBlock) -> ToolResultBlockParam:
    """Run a call."""
    path = Path(str(call.input["path"]))
    text = path.read_text(encoding="utf-8") if path.is_file() else f"no file {path}"
    return {"type": "tool_result", "tool_use_id": call.id, "content": text}


talk: list[MessageParam] = [{"role": "user", "content": sys.argv[1]}]
while True:
    fitted = fit(talk, BUDGET, model=MODEL, system=SYSTEM, tools=TOOLS, strategy=OLD_RESULTS_FIRST)
    answer = Anthropic().messages.create(
        model=MODEL, max_tokens=1_024, system=SYSTEM, tools=TOOLS, messages=fitted.messages
    )
    talk.append({"role": "assistant", "content": answer.content})  # the SDK's own blocks
    report = fitted.report
    print(f"({report.tokens_after:,} tokens; {report.changed_message_count} results blanked or cut)")
    if not (calls := [block for block in answer.content if block.type == "tool_use"]):
        break
    talk.append({"role": "user", "content": [result_of(call) for call in calls]})
print("".join(block.text for block in answer.content if block.type == "text"))
