"""Many users of the web app at once: nothing acknowledged is lost, and every request to the model is valid.

    python -m tests.integrations.fastapi.load --store postgres --users 500 --messages 20

Each user asks in one conversation. Some questions are answered anew, some answers are stopped, some questions
come from two tabs at once. The model is a process of its own, which judges what it is asked. Afterwards every
conversation is read and exported, and held against what the browsers were told.

Then one user at a time asks the app and `floor.py`, in turns: the difference is what sessions add.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx

from tests.integrations.fastapi.model import SLOW, model
from tests.integrations.fastapi.service import process, store_url
from trimtab import counter_for

ROOT = Path(__file__).resolve().parents[3]
BUDGET = 2_000
WORKERS = 2
"""Processes, each with a port: those of `uvicorn --workers` send pieces late (Kludex/uvicorn#3149)."""

ALONE = 8
"""Conversations of which one asks at a time, to see what a request takes."""

ANEW, STOPPED, TWO_TABS = 0.1, 0.08, 0.08
"""Shares of questions: answered anew, with an answer that is stopped, asked beside another one."""

TRIES = 20
"""The most a browser asks with the same id; each time the app itself tries for up to 20 seconds."""

WORDS = "does the belt drive of my red bicycle need oil or water after a ride in the rain on " * 3


@dataclass(slots=True)
class Outcome:
    """What was found."""

    asked: int = 0
    """Questions that were acknowledged."""
    answered: int = 0
    stopped: int = 0
    """Answers whose connection was closed in the middle."""
    anew: int = 0
    again: int = 0
    """Requests that were repeated with the same id: 503."""
    refused: Counter[str] = field(default_factory=Counter)
    """What else was told to a browser, and how often."""
    lost: list[str] = field(default_factory=list)
    invalid: int = 0
    over: int = 0
    seconds: float = 0.0
    """Of the whole load."""
    loaded_ms: list[float] = field(default_factory=list)
    """Each answered question from its request to its end, while all ask."""
    alone_ms: list[float] = field(default_factory=list)
    floor_ms: list[float] = field(default_factory=list)
    cpu_ms: float = 0.0
    """What a request of one who asks alone takes of processors, workers only."""
    floor_cpu_ms: float = 0.0

    @property
    def failures(self) -> list[str]:
        """What must not happen; a conversation that went on (409) may."""
        told = [f"refused {count} times: {told}" for told, count in self.refused.items() if told[:3] != "409"]
        bad = [f"{self.invalid} invalid"] * bool(self.invalid) + [f"{self.over} over"] * bool(self.over)
        return [*self.lost, *told, *bad]

    @property
    def added_ms(self) -> tuple[float, float]:
        """What sessions add to a request of one who asks alone: median, and 95th percentile."""
        (mine, worst), (floor, worst_floor) = _middle_and_high(self.alone_ms), _middle_and_high(self.floor_ms)
        return mine - floor, worst - worst_floor

    def __str__(self) -> str:
        times = {
            "while all ask": _middle_and_high(self.loaded_ms),
            "alone": _middle_and_high(self.alone_ms),
            "without sessions": _middle_and_high(self.floor_ms),
            "added": self.added_ms,
        }
        told = ", ".join(f"{name} {middle:.1f} and {high:.1f}" for name, (middle, high) in times.items())
        return (
            f"{self.asked:,} questions, {self.answered:,} answers read to their end, {self.anew:,} anew,"
            f" {self.stopped:,} stopped, {self.again:,} repeated after a 503, refused: {dict(self.refused)}\n"
            f"lost {len(self.lost)}, invalid {self.invalid}, over budget {self.over}\n"
            f"{(self.asked + self.anew) / self.seconds:.0f} requests a second\n"
            f"ms of one, p50 and p95: {told}\n"
            f"ms of processors {self.cpu_ms:.1f}, without sessions {self.floor_cpu_ms:.1f}"
        )


def _middle_and_high(found: Sequence[float]) -> tuple[float, float]:
    return statistics.median(found), statistics.quantiles(found, n=20)[-1]


@dataclass(slots=True)
class User:
    """One user in one conversation, and what the app acknowledged."""

    clients: Sequence[httpx.AsyncClient]
    """One of each worker."""
    name: str
    outcome: Outcome
    dice: random.Random
    questions: dict[str, str] = field(default_factory=dict)
    """Texts by ids."""
    answers: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The newest answer of each question, as the app says it is stored."""
    replaced: set[str] = field(default_factory=set)
    """Ids of answers that have a later attempt; one stays if something else came between them."""

    async def talk(self, count: int) -> None:
        """Ask so many questions."""
        numbers = iter(range(count))
        for number in numbers:
            fate = self.dice.random()
            if fate < STOPPED:
                await self.ask(number, stops=True)
                if self.dice.random() < 0.5:  # as a browser whose connection broke
                    await self.ask(number)
            elif fate < STOPPED + TWO_TABS and (other := next(numbers, None)) is not None:
                await asyncio.gather(self.ask(number), self.ask(other))
            else:
                await self.ask(number)
                if fate > 1 - ANEW:
                    await self.ask(number, attempt=2)

    async def ask(self, number: int, *, attempt: int = 1, stops: bool = False) -> None:
        """Ask until it is answered or refused; a stop closes the connection at the first piece."""
        status, last = 0, dict[str, Any]()
        id, text = f"q{number}", f"{self.name} {number}: {WORDS}"
        slow = stops or SLOW in self.questions.get(id, "")
        body = {"id": id, "text": text + SLOW * slow, "attempt": attempt}
        self.outcome.anew += attempt > 1
        for _ in range(TRIES):
            began = time.perf_counter()
            status, last = await self._once(body, stops=stops)
            if status == 503 or last.get("error") == "ask again, with the same id":
                self.outcome.again += 1
                continue
            if status == 200 and not stops and "message" in last:
                self.outcome.loaded_ms.append((time.perf_counter() - began) * 1_000)
                self._note(id, last["message"])
            elif not stops:
                self.outcome.refused[f"{status} {last}"] += 1
            return
        self.outcome.refused[f"{status} {last}, {TRIES} times"] += 1

    async def _once(self, body: dict[str, Any], *, stops: bool) -> tuple[int, dict[str, Any]]:
        client = self.dice.choice(self.clients)
        async with client.stream("POST", "/chats/main", json=body, headers={"X-User": self.name}) as response:
            if response.status_code != 200:
                refused: dict[str, Any] = json.loads(await response.aread())
                return response.status_code, refused
            self.questions[body["id"]] = body["text"]
            last: dict[str, Any] = {}
            async for event in _events(response):
                last = event
                if stops:
                    self.outcome.stopped += 1
                    break
            return 200, last

    def _note(self, id: str, message: dict[str, Any]) -> None:
        if id in self.answers and self.answers[id]["id"] != message["id"]:
            self.replaced.add(self.answers[id]["id"])
        self.answers[id] = message

    async def check(self) -> None:
        """Hold the log and the conversation against what was acknowledged."""
        headers = {"X-User": self.name}
        read = (await self.clients[0].get("/chats/main", headers=headers)).json()
        export = (await self.clients[-1].get("/me/export", headers=headers)).text.splitlines()
        events = [json.loads(line) for line in export]
        logged = Counter(event["id"] for event in events if event.get("kind") == "message")
        texts = {
            event["id"]: event["data"]["message"]["content"]
            for event in events
            if event.get("kind") == "message"
        }
        living = {message["id"]: message for message in read}
        said = [*self.questions.items(), *((one["id"], one["content"]) for one in self.answers.values())]
        for id, text in said:
            if logged[id] != 1 or texts[id] != text or living.get(id, {}).get("content") != text:
                self.outcome.lost.append(f"{self.name}: {id}")
        beside = {one["id"] for one, after in pairwise(read) if _answer_the_same(one, after)}
        if len(living) != len(read) or self.replaced & beside:
            self.outcome.lost.append(f"{self.name}: what was taken back is there")
        self.outcome.asked += len(self.questions)
        self.outcome.answered += len(self.answers) + len(self.replaced)


def _answer_the_same(one: dict[str, Any], after: dict[str, Any]) -> bool:
    """Tell an answer with another one right behind it, which would have taken its place."""
    (question, *answer), (same, *other) = one["id"].split("/"), after["id"].split("/")
    return bool(answer and other) and question == same


async def _events(response: httpx.Response) -> AsyncIterator[dict[str, Any]]:
    async for line in response.aiter_lines():
        if line.startswith("data: "):
            yield json.loads(line.removeprefix("data: "))


@asynccontextmanager
async def _clients(addresses: Iterable[str]) -> AsyncIterator[list[httpx.AsyncClient]]:
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=100)
    given: dict[str, Any] = {"limits": limits, "trust_env": False, "timeout": 120}
    async with AsyncExitStack() as open_ones:
        made = [httpx.AsyncClient(base_url=address, **given) for address in addresses]
        yield [await open_ones.enter_async_context(client) for client in made]


async def _load(
    addresses: Iterable[str], outcome: Outcome, *, users: int, messages: int, at_once: int
) -> None:
    async with _clients(addresses) as clients:
        gate = asyncio.Semaphore(at_once)
        people = [User(clients, f"user-{n}", outcome, random.Random(n)) for n in range(users)]

        async def talk(user: User) -> None:
            async with gate:
                await user.talk(messages)

        began = time.perf_counter()
        await asyncio.gather(*map(talk, people))
        outcome.seconds = time.perf_counter() - began
        for user in people:
            await user.check()


def _cpu_ms(pid: int) -> float:
    """Return what a process has used: Linux has a clock for each."""
    return time.clock_gettime_ns((~pid << 3) | 2) / 1e6


async def _ask_alone(address: str, pid: int, *, user: int, messages: int) -> tuple[list[float], float]:
    """Ask one question after the other; returns what each took, and what all took of processors."""
    before, outcome = _cpu_ms(pid), Outcome()
    async with _clients([address]) as clients:
        for number in range(messages):
            await User(clients, f"alone-{user}", outcome, random.Random(0)).ask(number)
    return outcome.loaded_ms, _cpu_ms(pid) - before


async def _alone(
    app: tuple[str, int], floor: tuple[str, int], outcome: Outcome, *, users: int, messages: int
) -> None:
    for user in range(users + 1):
        mine, cpu = await _ask_alone(*app, user=user, messages=messages)
        bare, floor_cpu = await _ask_alone(*floor, user=user, messages=messages)
        if user:  # the first ones read tables
            outcome.alone_ms += mine
            outcome.floor_ms += bare
            outcome.cpu_ms += cpu / messages / users
            outcome.floor_cpu_ms += floor_cpu / messages / users


@contextmanager
def _model(outcome: Outcome) -> Iterator[str]:
    """Run the model in a process of its own, and take its verdict at the end."""
    command = [sys.executable, "-m", "tests.integrations.fastapi.load", "--model"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
        process.stdin.close()
        verdict = json.loads(process.stdout.readline())
        outcome.invalid, outcome.over = verdict["invalid"], verdict["over"]
        assert verdict["asked"] >= outcome.answered
    finally:
        process.kill()
        process.wait()


def be_model() -> None:
    """Answer until the standard input ends; then say what was wrong with what was asked."""
    with model() as api:
        print(api.address, flush=True)
        sys.stdin.read()
        counter = counter_for("gpt-4o")
        chats = [body["messages"] for _, body in api.bodies if body["model"] == "gpt-4o"]
        over = sum(counter.count(messages) > BUDGET for messages in chats)
        print(json.dumps({"asked": len(chats), "invalid": len(api.refusals), "over": over}), flush=True)


def run(kind: str, *, users: int, messages: int, at_once: int, alone: int = ALONE) -> Outcome:
    """Run the load over a store, then so many conversations alone, beside the floor."""
    outcome = Outcome()
    with store_url(kind) as url, _model(outcome) as api, ExitStack() as running:
        apps = [running.enter_context(process(url, api)) for _ in range(WORKERS)]
        addresses = [address for address, _ in apps]
        asyncio.run(_load(addresses, outcome, users=users, messages=messages, at_once=at_once))
        if alone:
            [(address, app), *_] = apps
            bare, floor = running.enter_context(process(url, api, program="floor"))
            sides = (address, app.pid), (bare, floor.pid)
            asyncio.run(_alone(*sides, outcome, users=alone, messages=messages))
    return outcome


def main() -> int:
    """Print what was found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--store", choices=("sqlite", "postgres", "redis"), default="sqlite")
    parser.add_argument("--users", type=int, default=500)
    parser.add_argument("--messages", type=int, default=20, help="questions of each user")
    parser.add_argument("--at-once", type=int, default=50, help="users who ask at the same time")
    parser.add_argument("--model", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.model:
        be_model()
        return 0
    outcome = run(given.store, users=given.users, messages=given.messages, at_once=given.at_once)
    print(f"{given.store}: {given.users} users, {given.messages} questions each, {given.at_once} at once")
    print(outcome)
    for one in outcome.failures[:20]:
        print("  failed:", one)
    return int(bool(outcome.failures))


if __name__ == "__main__":
    sys.exit(main())
