"""What holds for every test: no network, no home directory, real data, no silent skips in CI."""

from __future__ import annotations

import gc
import os
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from hypothesis import HealthCheck, Phase, settings

from trimtab import formats, models
from trimtab.counting import tokenizers as _tokenizers

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("TRIMTAB_DATA", ROOT.parent / "shared" / "data"))
"""Folder of the real conversations; never committed. TRIMTAB_DATA names another."""

IN_CI = os.environ.get("CI") == "true"

TURNS, TURN = 3, os.environ.get("TURN")
"""Of the long tests a third is run in CI, in turn by the number of commits; `make test-long` runs all."""

LONGEST = (
    "tests/fuzz/test_fuzz.py",
    "tests/test_inspector_browser.py",
    "tests/batch/test_files.py",
    "tests/test_cli_batch.py",
    "tests/complexity/test_operations.py",
    "tests/test_cli.py",
    "tests/test_cli_session.py",
    "tests/stores/test_servers_crash.py",
    "tests/stores/test_order_kills.py",
    "tests/session/test_against_plain.py",
    "tests/test_near_cut.py",
    "tests/test_examples.py",
    "tests/properties/test_remembered_weights.py",
    "tests/test_clear_in_strides.py",
    "tests/test_pages_browser.py",
    "tests/batch/test_training.py",
    "tests/test_cli_wrap.py",
    "tests/gateway/test_passage.py",
    "tests/gateway/test_fits.py",
    "tests/gateway/test_clients.py",
    "tests/gateway/test_guard.py",
    "tests/test_cli_serve.py",
    "tests/gateway/test_streams.py",
    "tests/gateway/test_hostile.py",
    "tests/gateway/test_storm.py",
    "tests/gateway/test_upstream_faults.py",
    "tests/test_cli_inspect.py",
    "tests/session/test_session_forms.py",
    "tests/complexity/test_redaction_operations.py",
    "tests/properties/test_clear_with_growth.py",
    "tests/properties/test_tail.py",
    "tests/properties/test_needless.py",
    "tests/guards/test_patterns.py",
    "tests/session/test_recollection.py",
    "tests/session/test_cheapest_session.py",
    "tests/session/test_steady.py",
    "tests/complexity/test_store_operations.py",
    "tests/session/test_real.py",
    "tests/complexity/test_session_operations.py",
    "tests/docs/test_start_page.py",
    "tests/session/test_summarizers.py",
    "tests/batch/test_shapes.py",
    "tests/test_conformance_sessions.py",
    "tests/session/test_facts_fuzz.py",
    "tests/properties/test_properties.py",
    "tests/properties/test_context.py",
    "tests/session/test_hostile_snapshots.py",
    "tests/session/test_pop.py",
    "tests/stores/test_servers.py",
    "tests/stores/test_sqlite_concurrency.py",
    "tests/contracts/test_strategy_contract.py",
    "tests/guards/test_skips.py",
)
"""Files of ten seconds and more, the longest first: processes that share the tests begin with them.

What is begun last is short then, and all processes are busy to the end. The fuzz has processes of its own.
"""

# Checked by mypy and pyright, or run by `make mutants` and `make test-integrations`; never imported here.
collect_ignore = ["typing", "mutants", "integrations"]

settings.register_profile(
    "default", max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("ci", settings.get_profile("default"), derandomize=True)
settings.register_profile("long", settings.get_profile("default"), max_examples=75, derandomize=IN_CI)
settings.register_profile(  # the first example that fails will do: it is not made smaller
    "mutants",
    settings.get_profile("long"),
    derandomize=True,
    phases=(Phase.explicit, Phase.generate),
    report_multiple_bugs=False,
)
settings.register_profile("thorough", settings.get_profile("default"), max_examples=3_000)
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "ci" if IN_CI else "default")
settings.load_profile(PROFILE)

_home = tempfile.TemporaryDirectory(prefix="trimtab-home-")


def _refuse_network(event: str, args: tuple[Any, ...]) -> None:
    """Raise at the audit event of a connection that leaves this machine."""
    if event == "socket.connect" and isinstance(args[1], tuple):
        host = str(args[1][0])
        if not (host.startswith("127.") or host in ("::1", "localhost")):
            raise AssertionError(f"a test tried to reach {host}: tests have no network")


def pytest_configure(config: pytest.Config) -> None:
    """Take network and home directory away before anything is collected."""
    if config.getoption("numprocesses", None) and os.environ.get("TRIMTAB_TEST_REDIS"):
        raise pytest.UsageError("tests empty the Redis of TRIMTAB_TEST_REDIS for each other: run with -n 0")
    if hasattr(config.option, "loadscopereorder"):  # else files begin by their number of tests, the fuzz late
        config.option.loadscopereorder = False
    sys.addaudithook(_refuse_network)
    gc.disable()  # until all is collected: whatever is imported or collected stays, and looking cost a fifth
    # Where no bytecode is written each process that a test starts compiles the package: 0.9 s, not 0.25;
    # and pytest rewrites the assertions of 400 files in each of its processes, which is half of collecting.
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    for name in ("HOME", "USERPROFILE", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        os.environ[name] = _home.name


_left_at_home: list[str] = []
"""What tests wrote to the home directories of the run's processes."""


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail the run if anything was written to the home directory.

    A worker of pytest-xdist has a home of its own and hands what it found to the process that started it:
    nobody looks at a worker's exit status.
    """
    _left_at_home.extend(sorted(path.name for path in Path(_home.name).iterdir()))
    _home.cleanup()
    handed_on = getattr(session.config, "workeroutput", None)
    if handed_on is not None:
        handed_on["left_at_home"] = _left_at_home
    elif _left_at_home:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        print(f"\nERROR: tests wrote to the home directory: {', '.join(_left_at_home)}", file=sys.stderr)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take what a worker hands on at its end; one that crashed hands on nothing, and fails the run itself."""
    _left_at_home.extend(getattr(node, "workeroutput", {}).get("left_at_home", ()))


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Give the folder of the real conversations; a test that asks for it is marked `data`."""
    if not DATA.is_dir():
        pytest.skip(f"no real conversations at {DATA} (set TRIMTAB_DATA)")
    return DATA


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark every test that uses `data_dir`, so that `-m data` finds all of them; the longest files first.

    With TURN=n only every third test is run, others for another n. Of a test with the mark `few` the cases
    beside so many, spread evenly, are marked `long`; not for mutants, which any case may kill.
    """
    swept: dict[str, list[pytest.Item]] = {}
    for item in items:
        if "data_dir" in getattr(item, "fixturenames", ()):
            item.add_marker("data")
        if PROFILE != "mutants" and item.get_closest_marker("few") and not item.get_closest_marker("long"):
            swept.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for cases in swept.values():
        (count,) = next(cases[0].iter_markers("few")).args
        spread = {at * len(cases) // count for at in range(count)}
        for at, item in enumerate(cases):
            if at not in spread:
                item.add_marker("long")
    if TURN:
        turns = [(crc32(item.nodeid.encode()) - int(TURN)) % TURNS for item in items]
        config.hook.pytest_deselected(items=[item for item, at in zip(items, turns, strict=True) if at])
        items[:] = [item for item, at in zip(items, turns, strict=True) if not at]
    if "PYTEST_XDIST_WORKER" in os.environ:
        order = {file: at for at, file in enumerate(LONGEST)}
        items.sort(key=lambda item: order.get(item.nodeid.partition("::")[0], len(order)))


def pytest_collection_finish() -> None:
    """Set what was collected apart from garbage: to go through 16,000 tests takes a second each time.

    A fork copies less of it, too. What tests leave behind is looked through more seldom: it took a tenth of
    their time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


def _must_not_skip(item: pytest.Item) -> str | None:
    """Say why this test may not be skipped here; None if it may."""
    if not IN_CI:
        return None
    if item.get_closest_marker("data") and not DATA.is_dir():
        return None  # also where it needs a server beside the data: the data is asked for first
    if item.get_closest_marker("server"):
        return "CI=true: its server must be there"
    return f"CI=true and the data is at {DATA}" if item.get_closest_marker("data") else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn a skip that CI may not accept into a failure."""
    report = yield
    why = _must_not_skip(item) if report.skipped and not hasattr(report, "wasxfail") else None
    if why:
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped. {why}. The skip said: {report.longrepr}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Turn a whole module that skips itself into a failure in CI: nobody can see which tests it held."""
    report = yield
    if IN_CI and report.skipped:
        report.outcome = "failed"
        report.longrepr = f"{report.nodeid} skipped itself whole. CI=true. The skip said: {report.longrepr}"
    return report


@pytest.fixture(autouse=True)
def _models_as_they_were() -> Generator[None]:
    """Take back models and forms a test registered: pages and other tests list those there are."""
    before, forms = dict(models._tables().facts), dict(formats.REGISTRY)
    yield
    models._tables().facts.clear()
    models._tables().facts.update(before)
    formats.REGISTRY.clear()
    formats.REGISTRY.update(forms)


@pytest.fixture(autouse=True)
def _encodings_as_they_were() -> Generator[None]:
    """Take back encodings a test registered."""
    before = dict(_tokenizers._REGISTERED)
    yield
    _tokenizers._REGISTERED.clear()
    _tokenizers._REGISTERED.update(before)
