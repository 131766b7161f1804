"""What a summarizer is asked, what it may be, and how a summary is marked."""

from __future__ import annotations

import asyncio
import functools
import gc
import html
import logging
import subprocess
import sys
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import assistant, user
from tests.guards.source import PACKAGE
from trimtab.errors import ConfigurationError, MissingExtraError, SummaryError
from trimtab.summaries import (
    ExtractiveSummarizer,
    Summarizer,
    SummaryRequest,
    arun_summarizer,
    default_prompt,
    marked_summary,
    run_summarizer,
    summarizer_from,
)
from trimtab.testing import aask_summarizer, ask_summarizer

TALK = [user("Tea?"), assistant("Yes.")]
REQUEST = SummaryRequest(messages=TALK, existing="old")


def of_messages(messages: list[Any]) -> str:
    """Take one argument."""
    return f"{len(messages)}"


def of_both(messages: list[Any], existing: str | None) -> str:
    """Take two."""
    return f"{len(messages)} after {existing}"


def of_any(*arguments: Any) -> str:
    """Take as many as there are."""
    return f"{len(arguments)} arguments"


def with_an_option(messages: list[Any], *, style: str = "short") -> str:
    """Take one, and an option."""
    return style


def with_a_default(messages: list[Any], existing: str | None = None) -> str:
    """Take a second that need not be given."""
    return f"{existing}"


class Callee:
    """An object that is called."""

    def __call__(self, messages: list[Any]) -> str:
        """Count."""
        return f"called with {len(messages)}"

    def method(self, messages: list[Any], existing: str | None) -> str:
        """Count, too."""
        return f"method with {existing}"


async def later(messages: list[Any]) -> str:
    """Answer when awaited."""
    await asyncio.sleep(0)
    return "later"


class Own:
    """A summarizer, by its one method."""

    def summarize(self, request: SummaryRequest, /) -> str:
        """Say what was asked."""
        return f"{len(request.messages)} in {request.max_tokens}"


class OwnLater:
    """An async one."""

    async def summarize(self, request: SummaryRequest, /) -> str:
        """Say what was asked."""
        return f"{request.instructions}"


@pytest.mark.parametrize(
    ("function", "answer"),
    [
        pytest.param(of_messages, "2", id="messages"),
        pytest.param(of_both, "2 after old", id="messages and existing"),
        pytest.param(of_any, "2 arguments", id="any number"),
        pytest.param(with_an_option, "short", id="an option"),
        pytest.param(with_a_default, "old", id="a second with a default"),
        pytest.param(Callee(), "called with 2", id="an object"),
        pytest.param(Callee().method, "method with old", id="a method"),
        pytest.param(functools.partial(with_an_option, style="long"), "long", id="partial"),
        pytest.param(lambda messages: messages[0]["content"], "Tea?", id="lambda"),
    ],
)
def test_a_function_gets_what_it_takes(function: Callable[..., str], answer: str) -> None:
    """The messages, and the summary so far if it has a place for it."""
    summarizer = summarizer_from(function)
    assert isinstance(summarizer, Summarizer)
    assert summarizer.summarize(REQUEST) == answer
    assert run_summarizer(function, REQUEST) == answer


def test_a_function_may_do_with_the_list_what_it_likes() -> None:
    """The caller's list stays; the messages in it are the caller's own."""
    seen: list[Any] = []

    def emptying(messages: list[Any]) -> str:
        seen.extend(messages)
        messages.clear()
        return "gone"

    messages = list(TALK)
    run_summarizer(emptying, SummaryRequest(messages=messages))
    assert messages == TALK
    assert all(one is other for one, other in zip(seen, TALK, strict=True))


def test_a_builtin_without_a_signature_gets_the_messages() -> None:
    """Nothing tells how many arguments it takes."""
    assert summarizer_from(max).summarize(SummaryRequest(messages=["tea"])) == "tea"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (lambda: "none", r"must take \(messages\) or \(messages, existing\)"),
        (lambda a, b, c: "three", "this function takes"),
        (lambda *, messages: "by name", "this function takes"),
        (Callee, "a summarizer must be a function"),
        ("text", "a summarizer must be a function"),
        (3, "a summarizer must be a function"),
    ],
)
def test_what_cannot_be_called_with_messages_is_refused(value: Any, message: str) -> None:
    """When it is made, not when a summary is needed."""
    with pytest.raises(ConfigurationError, match=message):
        summarizer_from(value)
    with pytest.raises(ConfigurationError):
        run_summarizer(value, REQUEST)


@pytest.mark.parametrize("value", [None, Own])
def test_no_summarizer_is_no_answer(value: Any) -> None:
    """A class is not its object."""
    with pytest.raises(ConfigurationError):
        run_summarizer(value, REQUEST)


def test_a_function_summarizer_says_its_name() -> None:
    """In reports, and whether it has to be awaited."""
    summarizer: Any = summarizer_from(later)
    assert (summarizer.name, summarizer.is_async, repr(summarizer)) == (
        "later",
        True,
        "summarizer_from(later)",
    )
    assert summarizer_from(Callee()).name == "Callee"  # type: ignore[attr-defined]  # not of the protocol


def test_an_object_with_the_method_is_asked_with_the_request() -> None:
    """With all of it."""
    request = SummaryRequest(messages=TALK, max_tokens=9, instructions="brief")
    assert run_summarizer(Own(), request) == "2 in 9"
    assert asyncio.run(arun_summarizer(OwnLater(), request)) == "brief"


@pytest.mark.parametrize(
    ("summarizer", "answer"), [(of_messages, "2"), (later, "later"), (Own(), "2 in None")]
)
def test_the_async_form_takes_either_colour(summarizer: Any, answer: str) -> None:
    """It awaits what has to be awaited."""
    assert asyncio.run(arun_summarizer(summarizer, SummaryRequest(messages=TALK))) == answer


class Awaitable:
    """Something to await that is no coroutine, and has nothing to close."""

    def __await__(self) -> Generator[None, None, str]:
        """Answer at once."""
        yield from ()
        return "awaited"


def test_any_awaitable_will_do() -> None:
    """A future or a task, for example."""

    def answer(messages: list[Any]) -> Awaitable:
        return Awaitable()

    assert asyncio.run(arun_summarizer(answer, REQUEST)) == "awaited"
    with pytest.raises(ConfigurationError, match="summarizer answer is async"):
        run_summarizer(answer, REQUEST)


@pytest.mark.few(1)
@pytest.mark.parametrize("summarizer", [later, OwnLater()])
def test_an_async_summarizer_is_not_left_unawaited(summarizer: Any) -> None:
    """The sync form says what to do, and Python has nothing to warn of."""
    with pytest.raises(ConfigurationError, match="await afit"):
        run_summarizer(summarizer, REQUEST)
    gc.collect()


def _raising(messages: list[Any]) -> str:
    raise ValueError("no")


async def _raising_later(messages: list[Any]) -> str:
    raise ValueError("no")


@pytest.mark.parametrize("summarizer", [_raising, _raising_later])
def test_a_failure_is_none_and_its_cause_is_kept(summarizer: Any) -> None:
    """`aask_summarizer` tells what `arun_summarizer` leaves out."""
    assert asyncio.run(arun_summarizer(summarizer, REQUEST)) is None
    with pytest.raises(SummaryError, match="failed with ValueError") as caught:
        asyncio.run(aask_summarizer(summarizer, REQUEST))
    assert isinstance(caught.value.__cause__, ValueError)


@pytest.mark.parametrize("answer", [None, 3, b"bytes", ["text"]])
def test_an_answer_that_is_no_text_is_a_failure(answer: Any) -> None:
    """It is not turned into text."""
    assert run_summarizer(lambda messages: answer, REQUEST) is None
    with pytest.raises(SummaryError, match=f"returned {type(answer).__name__}, not text"):
        ask_summarizer(lambda messages: answer, REQUEST)


def test_a_summarizer_that_says_what_went_wrong_is_quoted() -> None:
    """Its `SummaryError` is the one that is raised."""
    error = SummaryError("the model refused")

    def refusing(messages: list[Any]) -> str:
        raise error

    async def refusing_later(messages: list[Any]) -> str:
        raise error

    with pytest.raises(SummaryError) as caught:
        ask_summarizer(refusing, REQUEST)
    assert caught.value is error
    with pytest.raises(SummaryError) as caught:
        asyncio.run(aask_summarizer(refusing_later, REQUEST))
    assert caught.value is error


def test_what_stops_a_program_is_no_failure() -> None:
    """KeyboardInterrupt and the cancellation of our own task pass through."""

    def interrupted(messages: list[Any]) -> str:
        raise KeyboardInterrupt

    async def waits(messages: list[Any]) -> str:
        asking.set()
        return await asyncio.Future[str]()

    async def main() -> None:
        task = asyncio.create_task(arun_summarizer(waits, REQUEST))
        await asking.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with pytest.raises(KeyboardInterrupt):
        run_summarizer(interrupted, REQUEST)
    asking = asyncio.Event()
    asyncio.run(main())


def test_a_task_that_a_summarizer_started_and_lost_is_a_failure() -> None:
    """Nobody cancelled ours; without an event loop around it there is none."""

    async def loses(messages: list[Any]) -> str:
        inner = asyncio.create_task(asyncio.Event().wait())
        inner.cancel()
        await inner
        return "never"

    def loses_too(messages: list[Any]) -> str:
        return asyncio.run(loses(messages))

    assert asyncio.run(arun_summarizer(loses, REQUEST)) is None
    assert run_summarizer(loses_too, REQUEST) is None
    with pytest.raises(SummaryError, match="failed with CancelledError"):
        asyncio.run(aask_summarizer(loses, REQUEST))


@pytest.mark.parametrize("later", [False, True])
def test_the_traceback_of_a_failure_is_logged(later: bool, caplog: pytest.LogCaptureFixture) -> None:
    """At DEBUG, whoever asked: where the failure goes no further, nothing else tells where it was."""

    def fails(messages: list[Any]) -> str:
        raise ValueError("no such model")

    async def fails_later(messages: list[Any]) -> str:
        raise ValueError("no such model")

    with caplog.at_level(logging.DEBUG, "trimtab.summaries"):
        if later:
            assert asyncio.run(arun_summarizer(fails_later, REQUEST)) is None
        else:
            assert run_summarizer(fails, REQUEST) is None
    (record,) = caplog.records
    assert record.levelno == logging.DEBUG
    assert record.getMessage() == f"summarizer {'fails_later' if later else 'fails'} failed"
    assert record.exc_info is not None
    assert str(record.exc_info[1]) == "no such model"


@given(st.text(), st.integers(0, 10**6))
def test_a_mark_has_one_end_and_gives_its_text_back(text: str, messages: int) -> None:
    """Whatever the summary says, it stands between the two tags of the mark."""
    lines = marked_summary(text, messages=messages)
    head, _, rest = lines.partition("\n")
    body, _, tail = rest.rpartition("\n")
    of = "1 message" if messages == 1 else f"{messages} messages"
    assert head == f'<summary of="{of}" by="trimtab">'
    assert tail == "</summary>"
    assert "<" not in body
    assert ">" not in body
    assert html.unescape(body) == html.unescape(html.escape(text.strip(), quote=False))


def test_a_prompt_reads_objects_of_sdks() -> None:
    """A message is whatever `fit` takes."""
    from openai.types.chat import ChatCompletionMessage

    message = ChatCompletionMessage(role="assistant", content="Hi.")
    assert default_prompt([message]).endswith("\n\nASSISTANT: Hi.")


@pytest.mark.parametrize(
    ("make", "line"),
    [
        ("OpenAISummarizer('gpt-4o')", "OpenAISummarizer needs openai: pip install 'trimtab[openai]'"),
        ("AsyncOpenAISummarizer('gpt-4o')", "AsyncOpenAISummarizer needs openai"),
        ("ExtractiveSummarizer()", "needs sentencex: pip install 'trimtab[extractive]'"),
    ],
)
def test_without_its_package_a_summarizer_says_what_to_install(make: str, line: str) -> None:
    """In an interpreter without site-packages."""
    code = (
        f"import sys; sys.path.insert(0, {str(PACKAGE.parent)!r})\n"
        "from trimtab.errors import MissingExtraError\n"
        "from trimtab.models import ModelFacts, register_model\n"
        "from trimtab.summaries import *\n"
        "facts = ModelFacts(name='gpt-4o', window_tokens=1000, output_tokens=100)\n"
        "register_model(facts, replace=True)\n"
        f"try:\n    {make}\nexcept MissingExtraError as error:\n    print(error, error.extra, error.package)"
    )
    run = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False
    )
    assert line in run.stdout, run.stderr


def test_a_package_that_lacks_one_of_its_own_is_not_called_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Installing the extra again would not help."""
    monkeypatch.delitem(sys.modules, "sentencex", raising=False)
    (tmp_path / "sentencex.py").write_text("import what_it_stands_on\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="what_it_stands_on") as caught:
        ExtractiveSummarizer()
    assert not isinstance(caught.value, MissingExtraError)
    monkeypatch.setitem(sys.modules, "sentencex", None)
    said = r"^ExtractiveSummarizer needs sentencex: pip install 'trimtab\[extractive\]'$"
    with pytest.raises(MissingExtraError, match=said) as missing:
        ExtractiveSummarizer()
    assert (missing.value.extra, missing.value.package) == ("extractive", "sentencex")
