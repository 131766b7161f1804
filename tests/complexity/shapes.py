"""Conversations of any size, in every shape that could make something quadratic."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

Message = dict[str, Any]


def user(text: str) -> Message:
    """Make a message of the user's."""
    return {"role": "user", "content": text}


def said(text: str) -> Message:
    """Make an answer of the model's."""
    return {"role": "assistant", "content": text}


def system(text: str) -> Message:
    """Make a system message."""
    return {"role": "system", "content": text}


def calls(*call_ids: str, arguments: str = "{}") -> Message:
    """Make a message that calls a tool once for each id."""
    made = [
        {"id": call_id, "type": "function", "function": {"name": "look", "arguments": arguments}}
        for call_id in call_ids
    ]
    return {"role": "assistant", "content": None, "tool_calls": made}


def result(call_id: str, text: str = "found it") -> Message:
    """Make the result of a call."""
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def ids(count: int) -> list[str]:
    """Make that many call ids."""
    return [f"c{at}" for at in range(count)]


def valid(count: int) -> list[Message]:
    """Turns of a question, a call, its result and an answer."""
    turns = (
        [user(f"question {at}"), calls(f"c{at}"), result(f"c{at}"), said(f"answer {at}")]
        for at in range(count // 4)
    )
    return [message for turn in turns for message in turn]


def late_results(count: int) -> list[Message]:
    """Every result stands behind something the model said after the call."""
    turns = ([calls(f"c{at}"), said("wait"), result(f"c{at}"), user("and?")] for at in range(count // 4))
    return [message for turn in turns for message in turn]


def orphans(count: int) -> list[Message]:
    """Every other message is a result nobody asked for."""
    return [message for at in range(count // 2) for message in (user(f"question {at}"), result(f"c{at}"))]


def interleaved(count: int) -> list[Message]:
    """All calls, then all results in the same order."""
    return [*map(calls, ids(count // 2)), *map(result, ids(count // 2))]


def nested(count: int) -> list[Message]:
    """All calls, then all results in reverse order."""
    return [*map(calls, ids(count // 2)), *map(result, reversed(ids(count // 2)))]


def reused_ids(count: int) -> list[Message]:
    """Every call has the same id, and its result behind it."""
    return [message for _ in range(count // 2) for message in (calls("c"), result("c"))]


def stacked_ids(count: int) -> list[Message]:
    """Calls with one id, then as many results for it."""
    return [*[calls("c")] * (count // 2), *[result("c")] * (count // 2)]


def unanswered(count: int) -> list[Message]:
    """Calls without results, then results without calls: none of the calls' turns is the last."""
    return [user("go"), *map(calls, ids(count // 2)), *(result(f"other{at}") for at in range(count // 2))]


def one_long_turn(count: int) -> list[Message]:
    """One question, and an agent that never stops."""
    return [system("be brief"), user("go"), *(said(f"step {at}") for at in range(count)), user("stop")]


def heavy_opener(count: int) -> list[Message]:
    """A long turn whose question is as large as a quarter of the rest."""
    return [user("word " * count), *(said(f"step {at}") for at in range(count)), user("stop")]


def one_unit(count: int) -> list[Message]:
    """A call at the beginning, its result at the end."""
    return [user("go"), calls("first"), *valid(count), result("first")]


def parallel(count: int) -> list[Message]:
    """One message that calls as often as there are results, in the same order."""
    return [user("go"), calls(*ids(count)), *map(result, ids(count))]


def parallel_reversed(count: int) -> list[Message]:
    """The same, with the results the other way round."""
    return [user("go"), calls(*ids(count)), *map(result, reversed(ids(count)))]


def answered_twice(count: int) -> list[Message]:
    """Parallel calls of which each is answered twice."""
    return [user("go"), calls(*ids(count)), *map(result, ids(count)), *map(result, ids(count))]


def parallel_open(count: int) -> list[Message]:
    """Parallel calls of which half are still open."""
    return [user("go"), calls(*ids(count)), *map(result, ids(count // 2))]


def old_parallel(count: int) -> list[Message]:
    """Parallel calls that are no longer the newest thing."""
    return [*parallel(count), said("done"), user("thanks")]


def long_results(count: int) -> list[Message]:
    """Parallel calls with results of many lengths."""
    text = "the quick brown fox "
    return [
        user("go"),
        calls(*ids(count)),
        *(result(call_id, text * (at % 37)) for at, call_id in enumerate(ids(count))),
    ]


def all_system(count: int) -> list[Message]:
    """Leading system messages, then a question."""
    return [*(system(f"rule {at}") for at in range(count)), user("go")]


def system_between(count: int) -> list[Message]:
    """System messages between everything else."""
    return [message for at in range(count // 2) for message in (user(f"question {at}"), system("note"))]


def no_user(count: int) -> list[Message]:
    """A model that talks to itself."""
    return [said(f"step {at}") for at in range(count)]


def only_results(count: int) -> list[Message]:
    """Nothing but results."""
    return [result(call_id) for call_id in ids(count)]


SHAPES: dict[str, Callable[[int], list[Message]]] = {
    shape.__name__: shape
    for shape in (
        valid,
        late_results,
        orphans,
        interleaved,
        nested,
        reused_ids,
        stacked_ids,
        unanswered,
        one_long_turn,
        heavy_opener,
        one_unit,
        parallel,
        parallel_reversed,
        answered_twice,
        parallel_open,
        old_parallel,
        long_results,
        all_system,
        system_between,
        no_user,
        only_results,
    )
}
"""Shapes by name; each makes a conversation of about so many messages."""


def random_unicode(count: int) -> str:
    """Make text of about that many UTF-8 bytes from all of Unicode; no surrogates."""
    random = Random(7)
    found, size = [], 0
    while size < count:
        code = random.choice((random.randrange(0x80), random.randrange(0x3000), random.randrange(0x110000)))
        if not 0xD800 <= code < 0xE000:
            found.append(chr(code))
            size += 1 if code < 0x80 else 2 if code < 0x800 else 3 if code < 0x10000 else 4
    return "".join(found)


TEXTS: dict[str, Callable[[int], str]] = {
    "spaces": lambda count: " " * count,
    "one_letter": lambda count: "a" * count,
    "random_unicode": random_unicode,
    "nul": lambda count: "\0" * count,
    "lone_surrogates": lambda count: "\ud800" * (count // 3),
    "special_tokens": lambda count: "<|endoftext|>" * (count // 13),
    "one_cluster": lambda count: "e" + "\u0301" * (count // 2),
    "flags": lambda count: "\U0001f1e9\U0001f1ea" * (count // 8),
    "line_ends": lambda count: "\r\n" * (count // 2),
}
"""Texts by name; each makes one of about so many UTF-8 bytes."""
