"""What the gateway costs beside a bare pass-through of the same stack, in seconds of processors of one run.

    python bench/gateway_cost.py [--turns 24] [--only TEXT]  the rows of `make bench`
    python bench/gateway_cost.py --memory                    also: 20,000 calls, and what they take of memory

`trimtab serve` stands between a client and an upstream, and so does an application that passes requests on
and looks at nothing (`gateway_sides.py`): uvicorn before it, httpcore behind it, as with the gateway. They
are asked in turns, and each side's process has a clock of its own, so others on the machine count for little.

A conversation has a first message of its own and grows by a question and an answer a call, as those of agents
do; with `new texts` each of its messages is one that nobody counted before.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

sys.path.append(str(Path(__file__).resolve().parents[1]))

import conversations
import table
from ratios import Ratio

SIDES = Path(__file__).with_name("gateway_sides.py")
MOST_X_PASSAGE = 2.0
SMALL_BYTES = 50_000
"""Up to here a call may cost so many times the passage; above, the passage and so many readings of JSON."""
MOST_READINGS = 3
MOST_LATER_MS = 5.0
MOST_GROWTH = 1.05
CALLS = 12
"""Of a conversation, the last of which has the length that a row names."""
TURNS = 24
MEMORY_CALLS = 20_000
BUDGET = 8_000
FITS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What is sent in a row."""

    size: int
    """Of its last body, in bytes."""
    budget: int
    model: str = "gpt-4o"
    form: str = "openai_chat"
    learns: bool = True
    stream: bool = False
    is_new: bool = False
    """Whether no text was counted before."""

    @property
    def path(self) -> str:
        """Where it is sent."""
        return "/v1/messages" if self.form == "anthropic" else "/v1/chat/completions"

    @property
    def name(self) -> str:
        """What the table calls it."""
        words = [f"{self.size // 1000} kB", "passed on" if self.budget == FITS else "fitted"]
        words += [] if self.model == "gpt-4o" else [self.model]
        words += ["no learning"] if not self.learns else []
        words += ["stream"] if self.stream else []
        return ", ".join([*words, *(["new texts"] if self.is_new else [])])


ROWS = (
    *(Row(size=size, budget=FITS) for size in (5_000, 15_000, 50_000, 160_000, 500_000)),
    *(Row(size=size, budget=BUDGET // 4) for size in (15_000,)),
    *(Row(size=size, budget=BUDGET) for size in (50_000, 160_000, 500_000)),
    Row(size=50_000, budget=BUDGET, learns=False),
    Row(size=160_000, budget=BUDGET, learns=False),
    Row(size=50_000, budget=BUDGET, model="claude-sonnet-4-5", form="anthropic"),
    Row(size=160_000, budget=BUDGET, model="claude-sonnet-4-5", form="anthropic"),
    Row(size=50_000, budget=BUDGET, stream=True),
    Row(size=50_000, budget=BUDGET, is_new=True),
)


@dataclass(frozen=True, slots=True)
class Side:
    """A server that runs, and a connection to it."""

    address: str
    pid: int
    connection: socket.socket

    def cpu_ns(self) -> int:
        """Return the nanoseconds of processors it has used: Linux has a clock for each process."""
        return time.clock_gettime_ns((~self.pid << 3) | 2)

    def memory_bytes(self) -> int:
        """Return what it holds of memory."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def ask(self, request: bytes) -> int:
        """Send a request; returns the nanoseconds until the first byte of its answer, which is read whole."""
        began = time.perf_counter_ns()
        self.connection.sendall(request)
        came = self._part()
        first = time.perf_counter_ns() - began
        while (end := came.find(b"\r\n\r\n")) < 0:
            came += self._part()
        head = came[:end].lower()
        if not head.startswith(b"http/1.1 200"):
            raise RuntimeError(came[:2_000])
        if b"transfer-encoding: chunked" in head:
            while not came.endswith(b"0\r\n\r\n"):
                came += self._part()
            return first
        size = int(head.partition(b"content-length:")[2].split(b"\r\n", 1)[0])
        while len(came) < end + 4 + size:
            came += self._part()
        return first

    def _part(self) -> bytes:
        found = self.connection.recv(65_536)
        if not found:
            raise RuntimeError(f"{self.address} closed the connection")
        return found


@contextmanager
def _side(words: Sequence[str]) -> Iterator[Side]:
    """Run a server that says its address in the first line of its standard output or error."""
    log: Any = subprocess.PIPE if "serve" not in words else subprocess.DEVNULL
    told: Any = subprocess.PIPE if "serve" in words else None
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=log, stderr=told)
    said: Any = process.stderr or process.stdout
    try:
        line = said.readline().decode()
        if "http://" not in line:
            raise RuntimeError(line + said.read().decode())
        address = line[line.index("http://") :].split()[0]
        place = urlsplit(address)
        connection = socket.create_connection((place.hostname, place.port))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with connection:
            yield Side(address, process.pid, connection)
    finally:
        process.kill()
        process.wait()


@contextmanager
def sides(row: Row) -> Iterator[tuple[Side, Side]]:
    """Run the gateway and the passage for a row, with an upstream behind both."""
    with ExitStack() as running:
        upstream = running.enter_context(_side([sys.executable, str(SIDES), "upstream"]))
        api = "anthropic" if row.form == "anthropic" else "openai"
        words = [sys.executable, "-m", "trimtab", "serve", "--listen", "127.0.0.1:0"]
        words += ["--upstream", f"{api}={upstream.address}", "--budget", str(row.budget)]
        words += [] if row.learns else ["--no-learn"]
        ours = running.enter_context(_side(words))
        bare = running.enter_context(_side([sys.executable, str(SIDES), "passage", upstream.address]))
        yield ours, bare


def _messages_of(row: Row, number: int) -> list[dict[str, Any]]:
    """Return the messages of the last call of a conversation."""
    found = conversations.airline(2_000 if row.size < 400_000 else 6_000)
    if row.form == "anthropic":
        found = [one for one in found[1:] if one["role"] in ("user", "assistant") and one.get("content")]
        found = [{"role": one["role"], "content": one["content"]} for one in found]
    if row.is_new:
        found = [{**one, "content": f"{number} {one['content']} {number}"} for one in found]
    if row.size < SMALL_BYTES and found[0]["role"] == "system":  # its rules alone have 6 kB
        found[0] = {**found[0], "content": found[0]["content"][: row.size // 4]}
    first = next(at for at, one in enumerate(found) if one["role"] == "user")
    found[first] = {**found[first], "content": f"Conversation {number}. {found[first]['content']}"}
    size = 0
    for at, one in enumerate(found):
        size += len(json.dumps(one)) + 2
        if size >= row.size:
            return found[: at + 1]
    return found


def _bodies(row: Row, number: int) -> list[bytes]:
    """Write the bodies of a conversation, the longest last."""
    messages = _messages_of(row, number)
    ends = [at + 1 for at, one in enumerate(messages) if one["role"] in ("user", "tool")][-CALLS:]
    given = {"model": row.model, "max_tokens": 500, **({"stream": True} if row.stream else {})}
    tools = {} if row.form == "anthropic" else {"tools": conversations.airline_tools()[:4]}
    tools = tools if row.size > 10_000 else {}
    return [json.dumps({**given, **tools, "messages": messages[:end]}).encode() for end in ends]


def _request(row: Row, body: bytes, key: int) -> bytes:
    lines = [f"POST {row.path} HTTP/1.1", "host: 127.0.0.1", "content-type: application/json"]
    lines += [f"authorization: Bearer sk-test-{key:08d}", "accept: application/json"]
    lines += ["accept-encoding: gzip, deflate", "user-agent: bench/1.0", f"content-length: {len(body)}"]
    return "\r\n".join((*lines, "", "")).encode() + body


@dataclass(frozen=True, slots=True)
class Turn:
    """What a conversation cost on each side, for one call of it."""

    ours_ns: float
    bare_ns: float
    reading_ns: float
    """`json.loads` of its body once."""
    later_ns: float
    """By which the first byte came later."""


def turns(row: Row, count: int) -> Iterator[Turn]:
    """Ask both sides in turns, a conversation each time; the first ones, which read tables, are not given."""
    with sides(row) as (ours, bare):
        for number in range(count + 2):
            bodies = _bodies(row, number)
            requests = [_request(row, body, 1) for body in bodies]
            found = {}
            for side in (bare, ours) if number % 2 else (ours, bare):
                before = side.cpu_ns()
                firsts = [side.ask(request) for request in requests]
                time.sleep(0.01)  # what is written behind the answer is done by then
                found[side] = (side.cpu_ns() - before) / len(requests), statistics.median(firsts)
            before = time.process_time_ns()
            for body in bodies:
                json.loads(body)
            reading = (time.process_time_ns() - before) / len(bodies)
            if number >= 2:
                yield Turn(found[ours][0], found[bare][0], reading, found[ours][1] - found[bare][1])


def ratios(*, count: int = TURNS, only: str = "") -> Iterator[Ratio]:
    """Measure each row; the ratio is that of a turn, and what a row gives is the median over turns."""
    for row in ROWS:
        if only not in row.name:
            continue
        found = list(turns(row, count))
        ours = statistics.median(one.ours_ns for one in found) / 1e6
        # A text nobody counted before has to be: that is the price of a count, not of a gateway.
        aim = MOST_X_PASSAGE if row.size <= SMALL_BYTES and not row.is_new else 1.0
        allowed = [_allowed_ns(row, one) for one in found]
        yield Ratio(
            name=row.name,
            aim=aim,
            budget=None if row.budget == FITS else row.budget,
            found=statistics.median(one.ours_ns / most for one, most in zip(found, allowed, strict=True)),
            milliseconds=ours,
            pairs=len(found),
            note=_note(found),
        )


def _allowed_ns(row: Row, one: Turn) -> float:
    """Return what a call is held against: the passage, and above 50 kB three readings of the body."""
    return one.bare_ns + (MOST_READINGS * one.reading_ns if row.size > SMALL_BYTES or row.is_new else 0)


def _note(found: Sequence[Turn]) -> str:
    middle: Mapping[str, float] = {
        "passage": statistics.median(one.bare_ns for one in found) / 1e6,
        "json.loads": statistics.median(one.reading_ns for one in found) / 1e6,
        "first byte later": statistics.median(one.later_ns for one in found) / 1e6,
    }
    return ", ".join(f"{name} {value:.2f} ms" for name, value in middle.items())


def memory(calls: int = MEMORY_CALLS) -> Iterator[str]:
    """Ask for many conversations, and say what the gateway holds after each tenth of them."""
    row = Row(size=15_000, budget=BUDGET // 4)
    with sides(row) as (ours, _):
        done, number, held = 0, 0, []
        for tenth in range(1, 11):
            while done < calls * tenth // 10:
                for body in _bodies(row, number):
                    ours.ask(_request(row, body, number % 50))
                    done += 1
                number += 1
            held.append(ours.memory_bytes())
            yield f"  {done:>7,} calls{held[-1] / 1e6:>10.1f} MB"
        growth = held[-1] / held[1]  # the first conversations fill what is bounded
        verdict = "holds" if growth <= MOST_GROWTH else "MISSED"
        yield f"  from a fifth of the calls on: {growth:.3f} x, aim {MOST_GROWTH}  {verdict}"


def main() -> int:
    """Print the rows."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--turns", type=int, default=TURNS, help="conversations of a row")
    parser.add_argument("--only", default="", metavar="TEXT", help="rows whose name has it")
    parser.add_argument("--memory", action="store_true", help=f"{MEMORY_CALLS:,} calls, and their memory")
    arguments = parser.parse_args()
    print(table.RATIO_HEAD)
    for one in ratios(count=arguments.turns, only=arguments.only):
        print(table.of_ratio(one), one.note, sep="\n      ", flush=True)
    if arguments.memory:
        for line in memory():
            print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
