"""Counters, contexts and wire forms travel between processes by what they are made of."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import pytest

from tests.builders import assistant, user
from tests.chat_vocabulary import chat_tokenizer
from trimtab import (
    Budget,
    Cascade,
    CharCounter,
    Cheapest,
    ClampResults,
    ClearToolResults,
    Context,
    ContextError,
    DropNewest,
    EstimateCounter,
    PriorityBased,
    Relevant,
    Session,
    SlidingWindow,
    Strict,
    Summarize,
    TruncateText,
    counter_for,
    counter_from_text,
    fit,
)
from trimtab.counting import (
    CountQuestion,
    CountRequest,
    FixedCounter,
    RemoteCounter,
    UsageBaseline,
    counter_from_tokenizer,
    register_encoding,
)
from trimtab.errors import CopyError
from trimtab.formats import formats, get_format
from trimtab.models import ModelFacts, register_model
from trimtab.stores import MemoryStore, PostgresStore, RedisStore, SQLiteStore, Store
from trimtab.summaries import AsyncOpenAIFactExtractor, ExtractiveSummarizer, OpenAISummarizer

CHAT = [one for n in range(40) for one in (user(f"question {n} " * 9), assistant(f"answer {n} " * 9))]
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}]
TEMPLATE = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"


def words(text: str) -> int:
    """Count words."""
    return len(text.split())


def letters(text: str) -> int:
    """Count characters."""
    return len(text)


def size_of(messages: list[Any]) -> int:
    """Count characters over a list of messages."""
    return sum(len(one["content"]) for one in messages)


async def ask(question: CountQuestion) -> int:
    """Count as an endpoint would."""
    return size_of(question.messages)


def calibrated() -> UsageBaseline:
    """Make a baseline that has seen a bill."""
    baseline = UsageBaseline(counter_for("gpt-4o"))
    baseline.record(CHAT[:4], {"input_tokens": 321, "output_tokens": 20}, answer=CHAT[4])
    return baseline


def of_own_encoding() -> Any:
    """Make the counter of a model whose encoding a user registered."""
    register_encoding("travel-letters", letters, replace=True)
    register_model(ModelFacts(name="travel-1", encoding="travel-letters", window_tokens=99), replace=True)
    return counter_for("travel-1")


COUNTERS: dict[str, Callable[[], Any]] = {
    "exact": lambda: counter_for("gpt-4o"),
    "times a factor": lambda: counter_for("claude-sonnet-4-5"),
    "mistral": lambda: counter_for("mistral-large-latest"),
    "gemini": lambda: counter_for("gemini-2.5-flash"),
    "estimate": EstimateCounter,
    "characters": lambda: CharCounter(3),
    "fixed": lambda: FixedCounter(7),
    "a text function": lambda: counter_from_text(words),
    "a bare text function": lambda: words,
    "a bare function": lambda: size_of,
    "a template": lambda: counter_from_tokenizer(chat_tokenizer(), chat_template=TEMPLATE, name="mine"),
    "a baseline": calibrated,
    "an encoding of one's own": of_own_encoding,
}


def travelled(thing: Any) -> Any:
    """Pickle, and back."""
    return pickle.loads(pickle.dumps(thing))


def fitted(context: Context) -> list[Any]:
    """Fit in a worker; what comes back is plain data."""
    return [message["content"] for message in context.fit().messages]


def context_of(counter: Any) -> Context:
    """Make a context with strategies and a budget."""
    context = Context(Budget(1_500, output_reserve=500), counter=counter, tools=TOOLS)
    context.add("system", "Be brief.", strategy=Strict(), priority=9)
    return context.add("history", CHAT, strategy=Cascade(SlidingWindow(target_ratio=0.7), TruncateText()))


@pytest.mark.parametrize("copied", [travelled, copy.deepcopy, copy.copy], ids=["pickle", "deepcopy", "copy"])
@pytest.mark.parametrize("make", COUNTERS.values(), ids=COUNTERS)
def test_a_counter_that_travelled_counts_the_same(
    make: Callable[[], Any], copied: Callable[[Any], Any]
) -> None:
    """Messages, tools and system text, and it reads the same wire form as before."""
    counter = make()
    twin = copied(counter)
    assert fitted(context_of(twin)) == fitted(context_of(counter))
    if hasattr(counter, "count_request"):
        system = "be brief"
        assert twin.count_request(CountRequest(CHAT, system=system, tools=TOOLS)) == counter.count_request(
            CountRequest(CHAT, system=system, tools=TOOLS)
        )
        assert twin.format is counter.format
        assert (twin.name, twin.exact) == (counter.name, counter.exact)


class Tagged(Context):
    """A program's own kind of context."""

    tag = ""


@pytest.mark.parametrize(
    "copied",
    [travelled, copy.deepcopy, copy.copy, lambda context: context.clone()],
    ids=["pickle", "deepcopy", "copy", "clone"],
)
def test_a_copy_of_a_context_is_changed_apart(copied: Callable[[Any], Any]) -> None:
    """Adding to one adds nothing to the other; what a subclass holds comes along."""
    made = Tagged(99, counter=CharCounter()).add("a", "one")
    made.tag = "mine"
    twin = copied(made)
    twin.add("b", "two")
    made.replace("a", "three")
    assert [block.name for block in made.blocks] == ["a"]
    assert [(block.name, block.content) for block in twin.blocks] == [("a", "one"), ("b", "two")]
    assert (type(twin), twin.tag) == (Tagged, "mine")
    assert len(twin.fit().messages) == 2


def test_counts_stay_behind() -> None:
    """A pickle of a counter that has counted a million characters is as small as that of a new one."""
    counter = counter_from_text(words)
    new = len(pickle.dumps(counter))
    for n in range(1_000):
        counter.count([user(f"{n} " * 500)])
    assert len(pickle.dumps(counter)) == new


def test_counters_of_a_model_share_their_counts_after_a_journey_too() -> None:
    """A worker that gets the counter with each task counts each text once."""
    asked: list[str] = []

    def count(text: str) -> int:
        asked.append(text)
        return len(text)

    register_encoding("travel-shared", count, replace=True)
    register_model(ModelFacts(name="travel-2", encoding="travel-shared", window_tokens=99), replace=True)
    counter = counter_for("travel-2")
    copy.deepcopy(counter).count_text("once")
    copy.deepcopy(counter).count_text("once")
    assert asked == ["once"]


def test_a_baseline_goes_on_learning_after_a_journey() -> None:
    """Bills are kept; it can record the next one, and says the same of it as the one that stayed."""
    here = calibrated()
    there = travelled(here)
    for one in (here, there):
        one.record(CHAT[:6], {"input_tokens": 400, "output_tokens": 10})
    assert there.to_dict() == here.to_dict()


def test_a_remote_counter_travels_with_its_function() -> None:
    """Answers stay behind; one that asks through a client says what to do instead."""
    twin = travelled(RemoteCounter(ask, name="endpoint", timeout_seconds=3))
    assert twin.name == "endpoint"
    openai = pytest.importorskip("openai")
    client = openai.AsyncOpenAI(api_key="none", base_url="http://127.0.0.1:9")
    with pytest.raises(TypeError, match=r"make it where it is used, with RemoteCounter\.of\(client"):
        pickle.dumps(RemoteCounter.of(client, model="gpt-4o"))


@pytest.mark.parametrize("name", formats())
def test_a_wire_form_comes_back_as_itself(name: str) -> None:
    """There is one of each in a process."""
    form = get_format(name)
    assert travelled(form) is copy.deepcopy(form) is copy.copy(form) is form


def test_a_wire_form_of_ones_own_that_was_never_registered_travels_as_what_it_is() -> None:
    """One derived from another does not become the other."""
    mine = Own()
    twin = travelled(mine)
    assert (type(twin), twin.name, twin.note) == (Own, "openai_chat", "kept")
    assert twin is not get_format("openai_chat")


class Own(type(get_format("openai_chat"))):  # type: ignore[misc]  # a class that is only known by its object
    """A wire form that differs from Chat in nothing but a note."""

    def __init__(self) -> None:
        self.note = "kept"


def test_contexts_are_fitted_by_a_pool_of_processes() -> None:
    """Processes that are started anew, and inherit nothing."""
    contexts = [context_of(COUNTERS[name]()) for name in ("exact", "times a factor", "a text function")]
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn) as pool:
        assert list(pool.map(fitted, contexts)) == [fitted(context) for context in contexts]


def test_a_fitted_comes_back_from_a_worker_as_what_can_be_read() -> None:
    """Its messages and its report."""
    here = fit(CHAT, 500, model="gpt-4o")
    there = travelled(here)
    assert there.messages == here.messages
    assert there.report == here.report


def twice(messages: list[Any]) -> str:
    """Summarize."""
    return f"{len(messages)} messages"


STRATEGIES = {
    "Cascade": Cascade(ClampResults(max_tokens=9), SlidingWindow(target_ratio=0.7)),
    "Cheapest": Cheapest(pricing="claude-sonnet-4-5"),
    "ClampResults": ClampResults(max_ratio=0.1),
    "ClearToolResults": ClearToolResults(keep_results=1),
    "DropNewest": DropNewest(),
    "PriorityBased": PriorityBased(),
    "Relevant": Relevant(),
    "SlidingWindow": SlidingWindow(keep_turns=True),
    "Summarize": Summarize(twice),
    "Summarize, extractive": Summarize(ExtractiveSummarizer(counter=CharCounter())),
    "TruncateText": TruncateText(),
}


@pytest.mark.parametrize("copied", [travelled, copy.deepcopy, copy.copy], ids=["pickle", "deepcopy", "copy"])
@pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES)
def test_a_strategy_that_travelled_decides_the_same(strategy: Any, copied: Callable[[Any], Any]) -> None:
    """In `fit`, and as it says itself."""
    twin = copied(strategy)
    assert repr(twin) == repr(strategy)
    here, there = (
        fit(CHAT, 500, counter=CharCounter(), strategy=Cascade(one, DropNewest())) for one in (strategy, twin)
    )
    assert there.messages == here.messages


def session_of(store: Store | None = None) -> Session:
    """Make a session that has said something."""
    session = Session(2_000, counter=CharCounter(), store=store, id="s")
    session.extend(CHAT)
    return session


@pytest.mark.parametrize("copied", [travelled, copy.deepcopy, copy.copy], ids=["pickle", "deepcopy", "copy"])
def test_what_a_session_says_travels(copied: Callable[[Any], Any]) -> None:
    """Events, what was found or overwritten, where it stands, and all of it as a snapshot."""
    session = session_of()
    redaction = session.redact(where="question 7")
    assert copied(redaction).to_dict() == redaction.to_dict()
    for one in (redaction, session.recall("question 9"), session.status(), session.snapshot()):
        assert copied(one) == one
    again = Session.restore(copied(session.snapshot()), counter=CharCounter())
    assert again.messages() == session.messages()


def asked_by_client() -> RemoteCounter:
    """Make a counter that asks OpenAI by their client."""
    return RemoteCounter.of(pytest.importorskip("openai").AsyncOpenAI(api_key="k"), model="gpt-5")


def summarizer_by_client() -> Summarize:
    """Make a strategy that asks OpenAI by their client."""
    pytest.importorskip("openai")
    return Summarize(OpenAISummarizer("gpt-5", api_key="k"))


def extractor_by_client() -> AsyncOpenAIFactExtractor:
    """Make an extractor that asks by another of their clients."""
    pytest.importorskip("openai")
    return AsyncOpenAIFactExtractor("gpt-5", api_key="k")


STAYING = {
    "session": (session_of, r"session\.snapshot\(\).*Session\.restore"),
    "memory": (MemoryStore, r"MemoryStore .* open_store.*copy_session"),
    "sqlite": (lambda: SQLiteStore(":memory:"), "SQLiteStore .* copy_session"),
    "sqlite in use": (lambda: session_of(SQLiteStore(":memory:")).store, "SQLiteStore .* copy_session"),
    "postgres": (lambda: PostgresStore("postgresql://h/x"), "PostgresStore .* copy_session"),
    "redis": (lambda: RedisStore("redis://h/0"), "RedisStore .* copy_session"),
}
HOLDING = {
    "recall tool": (lambda: session_of().recall_tool(), r"session\.snapshot"),
    "result tool": (lambda: session_of().result_tool(), r"session\.snapshot"),
    "method": (lambda: session_of().add, r"session\.snapshot"),
    "mapping": (lambda: {"chat": session_of()}, r"session\.snapshot"),
    "remote": (asked_by_client, r"RemoteCounter\.of"),
    "summarizer": (summarizer_by_client, r"with OpenAISummarizer\('gpt-5'\)"),
    "extractor": (extractor_by_client, r"with AsyncOpenAIFactExtractor\('gpt-5'\)"),
}
CASES: list[Any] = [
    *((copied, *case) for copied in (pickle.dumps, copy.deepcopy) for case in (STAYING | HOLDING).values()),
    *((copy.copy, *case) for case in STAYING.values()),
]


@pytest.mark.parametrize(("copied", "make", "instead"), CASES)
def test_what_holds_locks_and_connections_says_what_to_write_instead(
    copied: Callable[[Any], Any], make: Callable[[], Any], instead: str
) -> None:
    """An error of ours that is the `TypeError` which pickling and copying raise; what it holds goes on."""
    thing = make()
    with pytest.raises(CopyError, match=instead) as raised:
        copied(thing)
    assert isinstance(raised.value, TypeError)
    assert isinstance(raised.value, ContextError)
    if isinstance(thing, Session):
        thing.add(user("more"))
