"""What each way to call trimtab costs beside the plain newest-first loop over the same messages.

Every row is a median over pairs: one run of trimtab, one of the loop, in turns. Cold rows begin with no text
remembered. Rows of "each call" are the last calls of a chat that grew message by message: both sides have
counted the calls before, trimtab with one counter, the loop with a dict.
"""

from __future__ import annotations

import copy
import gc
import json
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from time import perf_counter, perf_counter_ns
from typing import Any

import subject
from conversations import Messages, airline, airline_tools, coding_session, differing, model_calls
from floors import TextCounts, plain_loop
from forms import ANTHROPIC, GEMINI, RESPONSES, SDK_OBJECTS, Form, newest_first
from formula import COUNT, message_tokens

MESSAGES = 10_000
BUDGETS = (8_000, 128_000)
SMALL = 41
ADAPTED = 400
"""Messages of an adapter's call."""
LAST_CALLS = 40
"""Of the growing chat; the ones before are what both sides remember."""
LEAST_PAIRS = 5
MOST_PAIRS = 60

QUICK_LANE = "501402f7543d3ac57c40048d55d951bf3b88aafc"
"""The last commit with the quick lane, against which 41 messages are timed."""

Run = Callable[[], Any]
Pair = tuple[Run, Run]
"""A run of trimtab and a run of what it is compared with; made off the clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """One row at one budget."""

    name: str
    aim: float
    budget: int | None = None
    """None where no budget is part of it."""
    found: float | None = None
    """The median over pairs; None if it could not be measured, and then `note` says why."""
    milliseconds: float | None = None
    """Of trimtab alone, the median."""
    pairs: int = 0
    note: str = ""

    @property
    def reached(self) -> bool:
        """Whether the row holds."""
        return self.found is not None and self.found <= self.aim

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    name: str
    aims: tuple[float, float]
    """At each of BUDGETS."""
    pairs: Callable[[Messages, int], Iterable[Pair]]


def ratios(*, seconds: float, messages: int = MESSAGES, only: str = "") -> Iterator[Ratio]:
    """Measure every row whose name holds `only`, each for about so many seconds a budget."""
    chat = airline(messages)
    for row in _ROWS:
        if only in row.name:
            for budget, aim in zip(BUDGETS, row.aims, strict=True):
                yield _measured(row, aim, budget, chat, seconds)
    yield from (one for one in _in_processes(chat) if only in one.name)


def _measured(row: _Row, aim: float, budget: int, chat: Messages, seconds: float) -> Ratio:
    quotients, times = [], []
    gc.collect()
    gc.freeze()  # the chat lives on; what a run leaves behind is collected as it would be in a program
    until = perf_counter() + seconds
    for ours, floor in islice(row.pairs(chat, budget), MOST_PAIRS):
        if len(times) % 2:
            other, one = _ns(floor), _ns(ours)
        else:
            one, other = _ns(ours), _ns(floor)
        times.append(one)
        quotients.append(one / other)
        if len(times) >= LEAST_PAIRS and perf_counter() > until:
            break
    return Ratio(
        name=row.name,
        aim=aim,
        budget=budget,
        found=statistics.median(quotients),
        milliseconds=statistics.median(times) / 1e6,
        pairs=len(times),
    )


def _ns(run: Run) -> int:
    start = perf_counter_ns()
    result = run()
    elapsed = perf_counter_ns() - start
    del result  # freeing it is off the clock
    return elapsed


# Cold: nothing is remembered.


def _cold(
    floor: Callable[[Messages, int], Any] = plain_loop, **options: Any
) -> Callable[..., Iterator[Pair]]:
    def pairs(chat: Messages, budget: int) -> Iterator[Pair]:
        while True:
            ours = partial(subject.fitted, chat, budget, subject.fresh_counter(), **options)
            yield ours, partial(floor, chat, budget)

    return pairs


def _cold_tools(chat: Messages, budget: int) -> Iterator[Pair]:
    """Pair with a loop that counts the tools' JSON once and leaves trimtab's own count of them free."""
    tools = airline_tools()
    room = budget - subject.tool_tokens(tools)

    def floor() -> None:
        COUNT(json.dumps(tools))
        plain_loop(chat, room)

    while True:
        fresh = copy.deepcopy(tools)  # the same objects might be known
        yield partial(subject.fitted, chat, budget, subject.fresh_counter(), tools=fresh), floor


def _cold_system(chat: Messages, budget: int) -> Iterator[Pair]:
    text, rest = chat[0]["content"], chat[1:]
    while True:
        ours = partial(subject.fitted, rest, budget, subject.fresh_counter(), system=text)
        yield ours, partial(plain_loop, chat, budget)


def _cold_body(chat: Messages, budget: int) -> Iterator[Pair]:
    body = {"model": subject.MODEL, "messages": chat, "temperature": 0}
    while True:
        ours = partial(subject.fitted, body, budget, subject.fresh_counter())
        yield ours, partial(plain_loop, chat, budget)


def _cold_form(form: Form) -> Callable[..., Iterator[Pair]]:
    def pairs(chat: Messages, budget: int) -> Iterator[Pair]:
        messages = form.write(chat)
        while True:
            ours = partial(subject.fitted, messages, budget, subject.fresh_counter())
            yield ours, partial(newest_first, messages, budget, form)

    return pairs


def _cold_blocks(chat: Messages, budget: int) -> Iterator[Pair]:
    blocks = _blocks(chat, 5)

    def loops() -> None:
        for block in blocks:
            plain_loop(block, budget // 5)

    while True:
        yield partial(subject.fitted_blocks, blocks, budget, subject.fresh_counter()), loops


def _blocks(chat: Messages, wanted: int) -> list[Messages]:
    """Cut a chat before user messages, so that no call is in one block and its result in the next."""
    cuts = [0]
    for part in range(1, wanted):
        at = len(chat) * part // wanted
        cuts.append(next(index for index in range(at, len(chat)) if chat[index]["role"] == "user"))
    return [chat[start:end] for start, end in zip(cuts, [*cuts[1:], len(chat)], strict=True)]


def _count_everything(chat: Messages, budget: int) -> int:
    return sum(message_tokens(message, COUNT) for message in chat)


def _of_differing(pairs: Callable[..., Iterable[Pair]]) -> Callable[..., Iterable[Pair]]:
    """Take the chat with no text that is there twice: of the bench's own three in four are."""
    return lambda chat, budget: pairs(differing(chat), budget)


def _count_everything_in(form: Form, strategy: Any) -> Callable[..., Iterator[Pair]]:
    """Pair a strategy that reads everything with counting each message of this form by hand, once."""

    def pairs(chat: Messages, budget: int) -> Iterator[Pair]:
        messages = form.write(chat)
        while True:
            counter = subject.fresh_counter()
            ours = partial(subject.fitted, messages, budget, counter, strategy=strategy)
            yield ours, lambda: sum(form.tokens(message, COUNT) for message in messages)

    return pairs


# Each call of a growing chat.


def _each_call(**options: Any) -> Callable[..., Iterator[Pair]]:
    def pairs(chat: Messages, budget: int) -> Iterator[Pair]:
        tools = options.get("tools")
        room = budget - subject.tool_tokens(tools) if tools else budget
        counter, read = subject.fresh_counter(), TextCounts().__getitem__
        calls = model_calls(chat)[-LAST_CALLS:]
        for at, messages in enumerate(calls):
            ours = partial(subject.fitted, messages, budget, counter, **options)
            floor = partial(plain_loop, messages, room, read)
            if at < 2:  # what the calls before have counted
                ours(), floor()
            else:
                yield ours, floor

    return pairs


def _each_call_of_an_agent(chat: Messages, budget: int) -> Iterator[Pair]:
    """Pair the calls of a coding session in place of the chat."""
    return _each_call(strategy=subject.AGENT)(coding_session(), budget)


def _each_call_with_tools(chat: Messages, budget: int) -> Iterator[Pair]:
    return _each_call(tools=airline_tools())(chat, budget)


# Sessions.


def _session_add(chat: Messages, budget: int) -> Iterator[Pair]:
    """Pair with an INSERT and a commit into a file of its own, as safe against a crash as the store's."""
    with tempfile.TemporaryDirectory() as folder:
        session = subject.stored_session(Path(folder) / "session.db", budget, chat[: len(chat) // 5])
        plain = sqlite3.connect(Path(folder) / "plain.db")
        plain.execute("PRAGMA journal_mode = WAL")
        plain.execute(f"PRAGMA synchronous = {subject.STORE_SYNCHRONOUS}")
        plain.execute("CREATE TABLE messages (id INTEGER PRIMARY KEY, body TEXT NOT NULL)")

        def insert(message: Any) -> None:
            plain.execute("INSERT INTO messages (body) VALUES (?)", (json.dumps(message),))
            plain.commit()

        for message in chat[len(chat) // 5 :]:
            yield partial(session.add, message), partial(insert, message)
        plain.close()


def _session_view(chat: Messages, budget: int) -> Iterator[Pair]:
    """Pair views after each message added with the loop over the whole list."""
    early = chat[: -2 * MOST_PAIRS]
    session = subject.session(budget, early)
    read = TextCounts().__getitem__
    plain_loop(early, budget, read)
    session.messages()
    for end in range(len(early) + 1, len(chat) + 1):
        session.add(chat[end - 1])
        yield session.messages, partial(plain_loop, chat[:end], budget, read)


_ROWS = (
    _Row(name="fit(messages, n)", aims=(1.5, 1.5), pairs=_cold()),
    _Row(name="with tools=", aims=(1.5, 1.5), pairs=_cold_tools),
    _Row(name="with system=", aims=(1.5, 1.5), pairs=_cold_system),
    _Row(name="a request body", aims=(1.5, 1.5), pairs=_cold_body),
    _Row(name="with tools=, each call", aims=(2, 2), pairs=_each_call_with_tools),
    _Row(name="SDK objects (loop over them)", aims=(2.5, 2.5), pairs=_cold_form(SDK_OBJECTS)),
    _Row(name="Anthropic form", aims=(3, 1.5), pairs=_cold_form(ANTHROPIC)),
    _Row(name="Responses form", aims=(3, 1.5), pairs=_cold_form(RESPONSES)),
    _Row(name="Gemini form", aims=(3, 1.5), pairs=_cold_form(GEMINI)),
    _Row(name="pin=[3]", aims=(2, 2), pairs=_cold(pin=[3])),
    _Row(name="repair=True, nothing broken", aims=(2, 2), pairs=_cold(repair=True)),
    _Row(name="target_ratio=0.7, each call", aims=(3, 3), pairs=_each_call(strategy=subject.STRIDES)),
    _Row(name="the agent cascade, each call", aims=(6, 6), pairs=_each_call(strategy=subject.AGENT)),
    _Row(name="the same, of a coding session", aims=(6, 6), pairs=_each_call_of_an_agent),
    _Row(name="Context of 5 blocks (5 loops)", aims=(3, 3), pairs=_cold_blocks),
    _Row(
        name="PriorityBased (count everything)",
        aims=(1.5, 1.5),
        pairs=_cold(_count_everything, strategy=subject.PRIORITY),
    ),
    _Row(
        name="Relevant (count everything)",
        aims=(3, 3),
        pairs=_cold(_count_everything, strategy=subject.RELEVANT),
    ),
    *(
        _Row(
            name=f"{word}, {name} (count everything)",
            aims=(aim, aim),
            pairs=_count_everything_in(form, strategy),
        )
        for word, strategy, aim in (
            ("PriorityBased", subject.PRIORITY, 1.5),
            ("Relevant", subject.RELEVANT, 3),
        )
        for name, form in (("Anthropic", ANTHROPIC), ("Responses", RESPONSES), ("Gemini", GEMINI))
    ),
    _Row(
        name="Relevant, all texts differ (count everything)",
        aims=(3, 3),
        pairs=_of_differing(_cold(_count_everything, strategy=subject.RELEVANT)),
    ),
    *(
        _Row(
            name=f"Relevant, all differ, {name} (count everything)",
            aims=(3, 3),
            pairs=_of_differing(_count_everything_in(form, subject.RELEVANT)),
        )
        for name, form in (("Anthropic", ANTHROPIC), ("Responses", RESPONSES), ("Gemini", GEMINI))
    ),
    _Row(name="Session.add (INSERT, commit)", aims=(6, 6), pairs=_session_add),
    _Row(name="Session.messages (loop, dict)", aims=(3, 3), pairs=_session_view),
)


# In processes of their own.


def _in_processes(chat: Messages) -> Iterator[Ratio]:
    yield _import()
    yield from _adapters(chat)
    name = f"{SMALL} messages (the quick lane)"
    with tempfile.TemporaryDirectory() as folder:
        before = _quick_lane(Path(folder))
        if before is None:
            yield Ratio(name=name, aim=1.5, note=f"commit {QUICK_LANE[:7]} is not in this checkout")
            return
        now = Path(subject.__file__).resolve().parents[1] / "src"
        file = Path(folder) / "chat.json"
        file.write_text(json.dumps(chat[:SMALL]), encoding="utf-8")
        for words, part in (("all kept", 1.1), ("half kept", 0.5)):
            yield _process_pairs(
                f"{name}, {words}",
                1.5,
                *(partial(_small_us, source, file, part) for source in (now, before)),
            )


def _adapters(chat: Messages) -> Iterator[Ratio]:
    """Have each adapter timed beside `fit`, by the interpreter of its environment."""
    root = Path(__file__).resolve().parents[1]
    script = root / "bench" / "adapter_cost.py"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "chat.json"
        file.write_text(json.dumps(chat[:ADAPTED]), encoding="utf-8")
        for cost in sorted(root.glob("tests/integrations/*/cost.py")):
            name = cost.parent.name
            python = root / ".venv-integrations" / name / "bin" / "python"
            row = f"{name}, {ADAPTED} messages (fit)"
            if not python.exists():
                yield Ratio(name=row, aim=2, note="no environment: make test-integrations")
                continue
            for budget in BUDGETS:
                command = [python, script, name, file, str(budget)]
                done = subprocess.run(command, capture_output=True, text=True, check=True)
                found, milliseconds = map(float, done.stdout.split())
                yield Ratio(name=row, aim=2, budget=budget, found=found, milliseconds=milliseconds)


def _quick_lane(folder: Path) -> Path | None:
    """Unpack the package as it was."""
    root = Path(__file__).resolve().parents[1]
    packed = subprocess.run(
        ["git", "-C", root, "archive", QUICK_LANE, "src"], capture_output=True, check=False
    )
    if packed.returncode:
        return None
    subprocess.run(["tar", "-x", "-C", folder], input=packed.stdout, check=True)
    return folder / "src"


_SMALL = """
import json, sys
from statistics import median
from time import perf_counter_ns
import trimtab
messages = json.load(open(sys.argv[1], encoding="utf-8"))
counter = trimtab.counter_for(sys.argv[2])
budget = int(counter.count(messages) * float(sys.argv[3]))
times = []
for _ in range(600):
    start = perf_counter_ns()
    trimtab.fit(messages, budget, counter=counter).messages
    times.append(perf_counter_ns() - start)
print(median(times) / 1000)
"""


def _small_us(source: Path, file: Path, part: float) -> float:
    """Return the microseconds of a fit whose texts are counted already, with the package in `source`."""
    command = [sys.executable, "-c", _SMALL, str(file), subject.MODEL, str(part)]
    environment = {**os.environ, "PYTHONPATH": str(source)}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return float(done.stdout)


def _process_pairs(name: str, aim: float, ours: Callable[[], float], other: Callable[[], float]) -> Ratio:
    pairs = [(ours(), other()) for _ in range(LEAST_PAIRS)]
    return Ratio(
        name=name,
        aim=aim,
        found=statistics.median(one / two for one, two in pairs),
        milliseconds=statistics.median(one for one, _ in pairs) / 1000,
        pairs=len(pairs),
    )


def _import() -> Ratio:
    """Compare whole processes: importing `fit`, and what it takes from the standard library alone.

    `import trimtab` alone loads nothing that takes time; `tests/guards/test_imports.py` counts its modules.
    """
    code = "import sys; before = set(sys.modules); from trimtab import fit; print(*set(sys.modules) - before)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    needed = [name for name in loaded.stdout.split() if name.split(".")[0] != "trimtab"]
    return _process_pairs(
        "from trimtab import fit (its standard library)",
        3,
        partial(_process_us, "from trimtab import fit"),
        partial(_process_us, f"import {', '.join(sorted(needed))}"),
    )


def _process_us(code: str) -> float:
    """Return the quickest of some fresh processes, in microseconds of processor time."""
    return min(_processor_us(code) for _ in range(5))


def _processor_us(code: str) -> float:
    # Compiled modules are there, as on a machine of a user: without them each import compiles them anew.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    process = os.posix_spawn(sys.executable, [sys.executable, "-c", code], environment)
    _, status, usage = os.wait4(process, 0)
    if status:
        raise RuntimeError(f"{code[:60]!r} failed")
    return (usage.ru_utime + usage.ru_stime) * 1e6
