"""The libraries people use today, each called as its own documentation recommends.

LangChain runs in this process with the bare tokenizer everyone gets. litellm takes no tokenizer, may run for
minutes and is stopped at a time limit, so it runs in a process of its own: `python peers.py FILE BUDGET OUT`.
"""

from __future__ import annotations

import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any

from conversations import Messages
from formula import CALL_TOKENS, COUNT, MESSAGE_TOKENS, PARALLEL_TOKENS, REQUEST_TOKENS

LITELLM_MODEL = "gpt-4o"
_RUNS_IF_FAST = 5
_FAST_SECONDS = 1.0


def missing(distribution: str, module: str) -> str | None:
    """Return why a peer cannot run, or None if it can."""
    if importlib.util.find_spec(module) is None:
        return f"{distribution} is not installed (make bench installs it)"
    return None


def versions() -> dict[str, str]:
    """Return the versions of everything timed that is installed."""
    modules = {"trimtab": "trimtab", "toktok-rs": "toktok", "tiktoken": "tiktoken"}
    modules |= {"langchain-core": "langchain_core", "litellm": "litellm"}
    found = {}
    for distribution, module in modules.items():
        if importlib.util.find_spec(module) is not None:
            try:
                found[distribution] = version(distribution)
            except importlib.metadata.PackageNotFoundError:
                found[distribution] = "from the source tree"
    return found


def langchain_messages(messages: Messages) -> list[Any]:
    """Convert to LangChain's own messages, off the clock: its users hold these already.

    `id` is the index, to find the original again.
    """
    from langchain_core.messages import convert_to_messages

    converted = convert_to_messages(messages)
    for index, message in enumerate(converted):
        message.id = str(index)
    return list(converted)


def langchain_counter() -> Callable[[list[Any]], int]:
    """Return a list counter over the bare tokenizer and everyone's formula, on LangChain's own fields.

    Its messages hold parsed arguments only; `json.dumps` makes the text that langchain-openai 1.x sends.
    """
    return lambda messages: _langchain_count(messages, _dumped)


def langchain_counter_given_texts(messages: Messages) -> Callable[[list[Any]], int]:
    """Return the same counter with the arguments' text looked up by call id: kinder than life."""
    texts = {
        call["id"]: call["function"]["arguments"]
        for message in messages
        for call in message.get("tool_calls") or ()
    }
    return lambda converted: _langchain_count(converted, lambda call: texts[call["id"]])


def _dumped(call: Any) -> str:
    return json.dumps(call["args"], ensure_ascii=False)


def _langchain_count(messages: list[Any], arguments: Callable[[Any], str]) -> int:
    total = REQUEST_TOKENS
    for message in messages:
        total += MESSAGE_TOKENS
        content = message.content
        if content:
            total += COUNT(content)
        if message.type == "ai":
            calls = message.tool_calls
            for call in calls:
                total += CALL_TOKENS + 2 * COUNT(call["name"]) + COUNT(arguments(call))
            if len(calls) > 1:
                total += PARALLEL_TOKENS
    return total


def langchain_trim(converted: list[Any], limit_tokens: int, counter: Callable[[list[Any]], int]) -> list[Any]:
    """Call `trim_messages` with the settings of its documentation."""
    from langchain_core.messages import trim_messages

    return list(
        trim_messages(
            converted,
            max_tokens=limit_tokens,
            token_counter=counter,
            strategy="last",
            include_system=True,
            start_on="human",
            end_on=("human", "tool"),
            allow_partial=False,
        )
    )


def langchain_trim_by_default(
    converted: list[Any], limit_tokens: int, counter: Callable[[list[Any]], int]
) -> list[Any]:
    """Call `trim_messages` with nothing but what it must be given."""
    from langchain_core.messages import trim_messages

    return list(trim_messages(converted, max_tokens=limit_tokens, token_counter=counter))


def originals(trimmed: list[Any], messages: Messages) -> Messages:
    """Return the dicts that LangChain's messages were made of."""
    return [messages[int(message.id)] for message in trimmed]


def litellm_messages(messages: Messages) -> Messages:
    """Write null content as "": on null, litellm 1.106.2 fails inside and gives the input back untrimmed."""
    return [{**message, "content": message["content"] or ""} for message in messages]


def litellm_trim(messages: Messages, budget: int) -> Messages:
    """Call litellm's `trim_messages` in this process, which asks no other machine."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    from litellm.utils import trim_messages

    return list(trim_messages(litellm_messages(messages), model=LITELLM_MODEL, max_tokens=budget))


@dataclass(frozen=True, slots=True, kw_only=True)
class LitellmRun:
    """What one litellm process answered."""

    milliseconds: float | None
    """None: stopped at the time limit."""
    output: Messages | None
    tokenizer: str
    """How its counts of texts differ from ours, in words."""
    error: str = ""


def litellm_run(file: Path, budget: int, *, limit_seconds: float) -> LitellmRun:
    """Run litellm's `trim_messages` on the messages in `file`; stop it `limit_seconds` after it began."""
    with tempfile.TemporaryDirectory() as folder:
        out, errors = Path(folder) / "litellm.json", Path(folder) / "errors.txt"
        command = [sys.executable, __file__, str(file), str(budget), str(out)]
        environment = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
        with (
            errors.open("w", encoding="utf-8") as stderr,
            subprocess.Popen(
                command, env=environment, stdout=subprocess.PIPE, stderr=stderr, text=True
            ) as process,
        ):
            tokenizer = _wait_until_ready(process)
            try:
                process.communicate(timeout=limit_seconds)
            except subprocess.TimeoutExpired:
                process.kill()
                return LitellmRun(milliseconds=None, output=None, tokenizer=tokenizer)
        if not out.exists():
            last = errors.read_text(encoding="utf-8").strip().splitlines()[-1:]
            error = f"failed: {' '.join(last)[:200]}"
            return LitellmRun(milliseconds=None, output=None, tokenizer=tokenizer, error=error)
        answer = json.loads(out.read_text(encoding="utf-8"))
    return LitellmRun(tokenizer=tokenizer, **answer)


def _wait_until_ready(process: subprocess.Popen[str]) -> str:
    """Read lines until the child says that it starts; return what it says of its tokenizer."""
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("ready "):
            return line.removeprefix("ready ").strip()
    return ""


def _tokenizer_difference(messages: Messages) -> str:
    """Compare litellm's count of each text with ours."""
    from litellm import token_counter

    texts = [message["content"] for message in messages[:200] if message["content"]]
    theirs = [token_counter(model=LITELLM_MODEL, text=text) for text in texts]
    unequal = sum(count != COUNT(text) for count, text in zip(theirs, texts, strict=True))
    share = sum(theirs) / sum(map(COUNT, texts))
    return "same counts" if not unequal else f"{unequal} of {len(texts)} texts differ, {share:.3f} x ours"


def _litellm_child(file: str, budget: int, out: str) -> None:
    """Time litellm on `file`: one run, the median of five if it is fast; write time and output to `out`."""
    from litellm.utils import trim_messages

    messages = litellm_messages(json.loads(Path(file).read_text(encoding="utf-8")))
    print("ready " + _tokenizer_difference(messages), flush=True)
    seconds = []
    output: Any = None
    for _ in range(_RUNS_IF_FAST):
        start = perf_counter()
        output = trim_messages(messages, model=LITELLM_MODEL, max_tokens=budget)
        seconds.append(perf_counter() - start)
        if seconds[-1] > _FAST_SECONDS:
            break
    answer: dict[str, Any] = {"milliseconds": statistics.median(seconds) * 1000, "output": output}
    Path(out).write_text(json.dumps(answer), encoding="utf-8")


if __name__ == "__main__":
    _litellm_child(sys.argv[1], int(sys.argv[2]), sys.argv[3])
