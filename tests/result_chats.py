"""Random chats of tools whose results repeat, in five wire forms; and how results are read."""

from __future__ import annotations

import re
from random import Random
from typing import Any

Message = dict[str, Any]

FORMS = ("openai_chat", "openai_responses", "anthropic", "gemini", "bedrock")

MARKER = re.compile(
    r"\[lines (\d+)-(\d+) as in (?:([A-Za-z0-9_.:-]+)|(\d+) results? back)"
    r" from (\d+)(?:, numbered from (\d+))?\]"
)


def chat(form: str, random: Random, *, turns: int, lookalikes: bool = True) -> list[Message]:
    """Write a chat in which files are read, in part and again, after lines of them changed."""
    files = [[_line(random) for _ in range(random.randint(4, 40))] for _ in range(3)]
    messages = [said(form, "user", "Look at the files.")]
    made = 0
    for _ in range(turns):
        asked = []
        for _ in range(1 if random.random() < 0.7 else random.randint(2, 3)):
            made += 1
            call_id = "" if form == "gemini" and random.random() < 0.5 else f"call_{made}"
            if call_id and random.random() < 0.05 and made > 3:
                call_id = f"call_{made - 3}"  # an id that is used again
            asked.append((call_id, random.choice(["read", "run"]), _text(random, files, lookalikes)))
        if len({call_id for call_id, _, _ in asked if call_id}) < sum(bool(one[0]) for one in asked):
            asked = asked[:1]
        if form == "gemini" and not all(one[0] for one in asked):
            asked = [("", tool, text) for _, tool, text in asked]
        messages += exchange(form, asked)
        if random.random() < 0.2:
            messages.append(said(form, "assistant", "I have seen it."))
            messages.append(said(form, "user", "Go on."))
    return messages


def _line(random: Random) -> str:
    return random.choice(
        [
            "",
            "}",
            "    return value",
            f"    value_{random.randint(0, 99)} = compute(argument, {random.random():.3f})",
        ]
    )


def _text(random: Random, files: list[list[str]], lookalikes: bool) -> str:
    lines = random.choice(files)
    start = random.randrange(len(lines))
    part = lines[start : start + random.randint(1, 30)]
    if random.random() < 0.3:
        lines.insert(random.randrange(len(lines)), _line(random))
    if random.random() < 0.4:
        first = random.choice([start + 1, start + 101])
        part = [f"{first + at}:{line}" if random.random() < 0.99 else line for at, line in enumerate(part)]
    elif random.random() < 0.3:
        part = [f"{start + 1 + at:>4}\t{line}" for at, line in enumerate(part)]
    if lookalikes and random.random() < 0.1:
        place = random.randint(0, len(part))
        part.insert(
            place, "\\" * random.randint(0, 2) + f"[lines {place + 1}-{place + 3} as in call_1 from 1]"
        )
    end = random.choice(["", "\n", "\r\n", "\nno newline"])
    return "\n".join(part) + end


def said(form: str, role: str, text: str) -> Message:
    """Write a message of one text."""
    if form == "gemini":
        return {"role": "model" if role == "assistant" else role, "parts": [{"text": text}]}
    if form == "bedrock":
        return {"role": role, "content": [{"text": text}]}
    if form == "anthropic":
        return {"role": role, "content": [{"type": "text", "text": text}]}
    return {"role": role, "content": text}


def exchange(form: str, asked: list[tuple[str, str, str]]) -> list[Message]:
    """Write calls, and their results: (id, tool, text) each."""
    if form == "openai_chat":
        calls = [
            {"id": one, "type": "function", "function": {"name": tool, "arguments": "{}"}}
            for one, tool, _ in asked
        ]
        return [
            {"role": "assistant", "content": None, "tool_calls": calls},
            *({"role": "tool", "tool_call_id": one, "content": text} for one, _, text in asked),
        ]
    if form == "openai_responses":
        return [
            *(
                {"type": "function_call", "call_id": one, "name": tool, "arguments": "{}"}
                for one, tool, _ in asked
            ),
            *({"type": "function_call_output", "call_id": one, "output": text} for one, _, text in asked),
        ]
    if form == "anthropic":
        return [
            {
                "role": "assistant",
                "content": [
                    {"type": "tool_use", "id": one, "name": tool, "input": {}} for one, tool, _ in asked
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": one, "content": text} for one, _, text in asked
                ],
            },
        ]
    if form == "bedrock":
        return [
            {
                "role": "assistant",
                "content": [
                    {"toolUse": {"toolUseId": one, "name": tool, "input": {}}} for one, tool, _ in asked
                ],
            },
            {
                "role": "user",
                "content": [
                    {"toolResult": {"toolUseId": one, "content": [{"text": text}]}} for one, _, text in asked
                ],
            },
        ]
    return [
        {
            "role": "model",
            "parts": [
                {"functionCall": {**({"id": one} if one else {}), "name": tool, "args": {}}}
                for one, tool, _ in asked
            ],
        },
        {
            "role": "user",
            "parts": [
                {
                    "functionResponse": {
                        **({"id": one} if one else {}),
                        "name": tool,
                        "response": {"result": text},
                    }
                }
                for one, tool, text in asked
            ],
        },
    ]


def results(form: str, messages: list[Message]) -> list[tuple[int, str, str]]:
    """List (message, id of the call, text) of the results in messages, in order."""
    return [(at, *one) for at, message in enumerate(messages) for one in _results_in(form, message)]


def _results_in(form: str, message: Message) -> list[tuple[str, str]]:
    if form == "openai_chat":
        return [(message["tool_call_id"], message["content"])] if message["role"] == "tool" else []
    if form == "openai_responses":
        is_result = message.get("type") == "function_call_output"
        return [(message["call_id"], message["output"])] if is_result else []
    if form == "gemini":
        found = [part["functionResponse"] for part in message["parts"] if "functionResponse" in part]
        return [(one.get("id", ""), one["response"]["result"]) for one in found]
    if form == "bedrock":
        found = [part["toolResult"] for part in message["content"] if "toolResult" in part]
        return [(one["toolUseId"], one["content"][0]["text"]) for one in found]
    found = [part for part in message["content"] if part["type"] == "tool_result"]
    return [(one["tool_use_id"], _text_of(one["content"])) for one in found]


def _text_of(content: Any) -> str:
    return content if isinstance(content, str) else content[0]["text"]


def unresolved(found: list[tuple[int, str, str]]) -> list[str]:
    """List the references in results that lead to nothing, or to lines that are no tool's own."""
    wrong = []
    for at, (_, _, text) in enumerate(found):
        for line in text.split("\n"):
            marker = MARKER.fullmatch(line)
            if marker is None:
                continue
            first, last, call_id, back, start, _ = marker.groups()
            earlier = found[:at]
            if back is not None:
                sources = earlier[-int(back) :][:1] if int(back) <= at else []
            else:
                sources = [one for one in earlier if one[1] == call_id][-1:]
            lines = sources[0][2].split("\n") if sources else []
            count = int(last) - int(first) + 1
            part = lines[int(start) - 1 : int(start) - 1 + count]
            if len(part) < count or any(MARKER.fullmatch(one) for one in part):
                wrong.append(line)
            elif sources and "trimtab" in sources[0][2]:
                wrong.append(line)  # it was cut or cleared
    return wrong
