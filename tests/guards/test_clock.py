"""No test waits by the clock or measures with it: on a busy machine such a test fails for nothing."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.guards.source import ROOT, outside

TESTS = ROOT / "tests"

EXPLAINED = {
    "tests/servers.py until": "a real server comes up; the wait ends when it is there",
    "tests/servers.py start": "a killed server's processes end; the wait ends when they have",
    "tests/stores/crash.py _kill_one": "a process is killed at a moment nobody chose; any will do",
    "tests/stores/order_kills.py _run": "a process is killed at a moment nobody chose; any will do",
    "tests/stores/orders.py forked": "says how long it took, so that the kills of others fall into that",
    "tests/stores/test_pruned.py _kill_one": "a process is killed at a moment nobody chose; any will do",
    "tests/stores/test_servers.py cancelled": "a call is cancelled at any of its moments; each will do",
    "tests/session/test_drivers.py interrupt": "no event tells that a thread is in line: looked for again",
    "tests/session/test_drivers.py let": "no event tells that a thread is in line: looked for again",
    "tests/test_cli_batch.py test_ctrl_c_ends_a_run_at_once_and_a_second_one_too": (
        "a run is stopped at a moment nobody chose, twice; any will do"
    ),
    "tests/fuzz/__main__.py main": "says how long it took",
    "tests/integrations/fastapi/load.py _load": "says how long it took",
    "tests/integrations/fastapi/load.py ask": "says how long it took",
    "tests/integrations/fastapi/model.py _say": "a model writes slowly, so that others write meanwhile",
    "tests/integrations/fastapi/test_faults.py test_a_conversation_nobody_uses_ends": (
        "no wait: an order is given days as they will be"
    ),
    "tests/mutants/run.py all": "says how long it took",
}
"""Where a real process or thread is waited for, or where the moment does not matter, and why."""

CLOCKS = ("perf_counter", "perf_counter_ns", "process_time", "thread_time", "monotonic", "monotonic_ns")
SHELL_SLEEP = re.compile(r"(?:^|[;&|(]\s*)sleep [0-9.]+")


def _called(call: ast.Call) -> tuple[str, str]:
    """Name what is called, and of what: ("time", "sleep")."""
    function = call.func
    if isinstance(function, ast.Attribute):
        return ast.unparse(function.value), function.attr
    return "", function.id if isinstance(function, ast.Name) else ""


def _is_zero(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 0


def _waits(node: ast.AST) -> bool:
    """Tell whether a piece of code waits for time to pass, or looks at a clock."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return bool(SHELL_SLEEP.search(node.value))
    if not isinstance(node, ast.Call):
        return False
    owner, name = _called(node)
    if name == "sleep":
        return not (node.args and _is_zero(node.args[0]))
    if name == "wait" and node.args:
        return owner.endswith("Event()")  # nobody can set it: a sleep under another name
    return (
        name in CLOCKS or (owner, name) == ("time", "time") or (owner.endswith("loop()") and name == "time")
    )


def clock_users(path: str, tree: ast.Module) -> Iterator[str]:
    """List functions of a file that wait by the clock, each as its path and name."""

    def walk(node: ast.AST, function: str) -> Iterator[str]:
        for child in ast.iter_child_nodes(node):
            if _waits(child):
                yield f"{path} {function}"
            is_function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
            yield from walk(child, child.name if is_function else function)

    yield from dict.fromkeys(walk(tree, "module"))


@pytest.mark.long
def test_no_test_waits_by_the_clock() -> None:
    """Wait for an event, count operations; where neither can be, the list says why."""
    found = {
        user
        for path, tree in outside()
        if path.is_relative_to(TESTS) and path != Path(__file__)
        for user in clock_users(str(path.relative_to(ROOT)), tree)
    }
    assert found == set(EXPLAINED)


@pytest.mark.parametrize(
    ("line", "waits"),
    [
        ("time.sleep(1)", True),
        ("sleep(seconds)", True),
        ("await asyncio.sleep(0.01)", True),
        ("await asyncio.sleep(0)", False),
        ("threading.Event().wait(0.1)", True),
        ("done.wait(30)", False),
        ("await asyncio.Event().wait()", False),
        ("began = time.perf_counter()", True),
        ("now = asyncio.get_running_loop().time()", True),
        ("run('bash', '-c', 'true; sleep 1.8')", True),
        ("say('to sleep 8 hours')", False),
    ],
)
def test_the_guard_tells_a_wait_from_an_event(line: str, waits: bool) -> None:
    """A wait for what somebody sets is none by the clock, and neither is letting other tasks run."""
    assert list(clock_users("f.py", ast.parse(f"async def test():\n    {line}\n"))) == ["f.py test"] * waits
