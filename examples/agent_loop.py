"""An agent's loop whose tools really run; each step is fitted before the model would be called.

    python examples/agent_loop.py
    python examples/agent_loop.py --budget 2500

No model is asked: what to call next is decided by the few functions in `SCRIPT`, which read nothing but
the request as it was fitted. What the tools answer is real: they list, read and search this project's own
files and run a snippet (`session_tools.py`). One line a step says what was sent and what had to leave.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from session_tools import SCHEMAS, Toolbox

from trimtab import (
    BudgetExceededError,
    Cascade,
    ClearToolResults,
    Context,
    Fitted,
    SlidingWindow,
    Strict,
    TruncateText,
    validate,
)

SYSTEM = "You look into the repository of trimtab. You can list, read and search files and run snippets."
TASK = "Which module of src/ is the longest, what is in it, and which errors does the package raise?"

Message = dict[str, Any]
Call = tuple[str, dict[str, Any]]
Decision = Callable[[str], list[Call]]
"""What to call next, from the text of the newest results."""


def main() -> None:
    """Run the loop to the final answer, and print the report of the last request."""
    parser = argparse.ArgumentParser(description="An agent's loop with real tools and a scripted model.")
    parser.add_argument("--budget", type=int, default=4_000, help="tokens a request may have (4000)")
    budget_tokens = parser.parse_args().budget
    print(f"Decisions are scripted, no model is asked; the tools run. {budget_tokens:,} tokens a request.\n")
    try:
        answer, fitted = run(Toolbox(Path(__file__).resolve().parent.parent), budget_tokens=budget_tokens)
    except BudgetExceededError as error:
        parser.exit(1, f"The request does not fit: {error}\n")
    print(f"\n{answer}\n\nThe last request:\n\n{fitted.report}")
    print("\nAll requests are within the budget and valid.")


def run(tools: Toolbox, *, budget_tokens: int) -> tuple[str, Fitted[Any]]:
    """Step until there is an answer; the full history is kept, and a part of it is sent."""
    steps: list[list[Message]] = []
    while True:
        fitted = fit_step(steps, budget_tokens=budget_tokens)
        check(fitted, budget_tokens=budget_tokens)
        calls = decide(len(steps), fitted.messages)
        show_step(len(steps) + 1, fitted, calls)
        if not calls:
            return answer_from(steps), fitted
        steps.append(take_step(tools, calls, number=len(steps) + 1))


def fit_step(steps: Sequence[list[Message]], *, budget_tokens: int) -> Fitted[Any]:
    """Fit a request: the task stays, the newest step is cut if it must be, old steps give way first.

    No model is named, so tokens are estimated, and nothing has to be installed.
    """
    before = [message for step in steps[:-1] for message in step]
    gentle = Cascade(ClearToolResults(keep_results=0), SlidingWindow())  # the newest results are in "latest"
    context = Context(budget_tokens, tools=SCHEMAS)
    context.add("system", SYSTEM, priority=100, strategy=Strict())
    context.add("task", TASK, priority=95, strategy=Strict())
    context.add("steps", before, priority=50, strategy=gentle)
    context.add("latest", steps[-1] if steps else None, priority=90, max_ratio=0.6, strategy=TruncateText())
    return context.fit()


def take_step(tools: Toolbox, calls: Sequence[Call], *, number: int) -> list[Message]:
    """Run the tools that were called; returns the call and its results."""
    wire = [
        {
            "id": f"call_{number}_{place}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments)},
        }
        for place, (name, arguments) in enumerate(calls, 1)
    ]
    results = [
        {"role": "tool", "tool_call_id": made["id"], "content": tools.run(name, arguments)}
        for made, (name, arguments) in zip(wire, calls, strict=True)
    ]
    return [{"role": "assistant", "content": None, "tool_calls": wire}, *results]


def decide(step: int, messages: Sequence[Message]) -> list[Call]:
    """Stand for the model: choose by the newest results of the request; no call is the end."""
    newest: list[str] = []
    for message in reversed(messages):
        if message["role"] != "tool":
            break
        newest.insert(0, message["content"])
    return SCRIPT[step]("\n".join(newest)) if step < len(SCRIPT) else []


def _longest(listing: str, count: int) -> list[str]:
    sizes = re.findall(r"^ *(\d+) (src/\S+\.py)$", listing, re.M)
    return [path for _, path in sorted(sizes, key=lambda row: -int(row[0]))[:count]]


def _named(outputs: str) -> str:
    found = re.findall(r"^(?:def|class) (\w+)|^ *\d+  (?:def|class) (\w+)", outputs, re.M)
    return next((one or other for one, other in found), "fit")


SCRIPT: tuple[Decision, ...] = (
    lambda _: [("list_files", {"folder": "src", "pattern": "*.py"})],
    lambda outputs: [("word_count", {"path": path}) for path in _longest(outputs, 3)],
    lambda _: [
        ("list_files", {"folder": "src", "pattern": "_*.py"}),
        ("search", {"pattern": r"^class \w+Error"}),
    ],
    lambda _: [
        ("outline", {"path": "src/trimtab/errors.py"}),
        ("read_file", {"path": "src/trimtab/none.py"}),
    ],
    lambda _: [("search", {"pattern": r"raise \w+Error", "folder": "src"})],
    lambda outputs: [
        ("read_file", {"path": path}) for path in re.findall(r"^(src/\S+\.py):", outputs, re.M)[:1]
    ],
    lambda outputs: [("search", {"pattern": rf"\b{_named(outputs)}\b"})],
    lambda _: [("run_python", {"code": "import trimtab\nprint(len(trimtab.__all__), 'public names')"})],
)
"""The decisions, in order; the agent answers when there are no more."""


def answer_from(steps: Sequence[list[Message]]) -> str:
    """Put an answer together from what the tools said."""
    if len(steps) < len(SCRIPT):
        return "I cannot tell: too little of the last result fitted for me to go on."
    asked, counted = steps[1][0]["tool_calls"][0], steps[1][1]
    longest = json.loads(asked["function"]["arguments"])["path"]
    errors = re.findall(r"class (\w+)", "\n".join(message["content"] for message in steps[3][1:]))
    return (
        f"The longest module is {longest} ({counted['content']}). The package defines"
        f" {len(errors)} errors: {', '.join(errors)}."
    )


def show_step(number: int, fitted: Fitted[Any], calls: Sequence[Call]) -> None:
    """Say what was sent, what was evicted of it or cut, and what is called next."""
    report = fitted.report
    called = ", ".join(name for name, _ in calls) or "answers"
    changes = {
        "blanked or cut": report.changed_message_count,
        "evicted": report.evicted_message_count,
    }
    less = "".join(f", {count} {what}" for what, count in changes.items() if count)
    sent = f"{report.tokens_after:>5,} tokens, {report.total_message_count:>2} messages{less}"
    print(f"step {number}: {sent}; {called}")


def check(fitted: Fitted[Any], *, budget_tokens: int) -> None:
    """Trust nothing: within the budget, and a provider would take it."""
    assert fitted.report.tokens_after <= budget_tokens
    assert [fault for fault in validate(fitted.messages) if fault.fault] == []
    assert [message["content"] for message in fitted.messages[:2]] == [SYSTEM, TASK]


if __name__ == "__main__":
    main()
