"""`recall` finds what is out of view and nothing else; what is redacted is found no more (E11)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from tests.builders import assistant, call, result, user, words
from tests.session.test_summarizers import WORDS, one_session
from tests.stores.stores import holders
from trimtab import ConfigurationError, Session, validate
from trimtab.formats import OpenAIChat
from trimtab.relevance import question_terms, text_terms
from trimtab.stores import MemoryStore, SearchRequest, SQLiteStore, Store, searchable_text


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """Both stores that need no server."""
    if request.param == "memory":
        yield MemoryStore()
        return
    with SQLiteStore(tmp_path / "log.db") as made:
        yield made


def found(session: Session, query: str, limit: int = 5) -> list[str]:
    """What is found by its own words, as texts; not what stands beside it."""
    terms = set(question_terms(query))
    return [
        event.message["content"]
        for event in session.recall(query, limit)
        if terms & {*text_terms(searchable_text(event))}
    ]


def test_only_what_is_out_of_view_is_found(store: Store) -> None:
    """Truncated and summarized alike; newer first where they match alike."""
    for id, summarizer in {"evicts": None, "summarizes": lambda messages: "about apples"}.items():
        session = one_session(summarizer, id=id, store=store)
        for at in range(20):
            session.add(user(f"apple number{at:02} {words(8)}"))
        view = [message["content"] for message in session.messages()]
        out = [
            event.message["content"] for event in session.history() if event.message["content"] not in view
        ]
        assert out
        assert found(session, "apple", 50) == out[::-1]
        assert found(session, "APPLE", 2) == out[::-1][:2]
        assert found(session, "number00 apple", 1) == out[:1]
        assert found(session, f"number{19}") == []
        assert found(session, "pear") == found(session, "") == found(session, "?!") == []


def test_what_comes_into_view_again_is_not_found_any_more(store: Store) -> None:
    """By a larger budget, a pin, an undo; what clear() takes out is."""
    session = Session(100, counter=WORDS, id="s", store=store)
    first = session.add(user(f"apple {words(9)}"))
    for _ in range(10):
        session.add(user(words(10)))
    assert len(found(session, "apple")) == 1
    session.pin(first.id)
    assert found(session, "apple") == []
    session.unpin(first.id)
    session.set_budget(500)
    assert found(session, "apple") == []
    session.clear()
    assert len(found(session, "apple")) == 1


def test_results_and_arguments_of_calls_are_found(store: Store) -> None:
    """What tools were asked and answered."""
    session = Session(100, counter=WORDS, id="s", store=store)
    asked = call("A")
    asked["tool_calls"][0]["function"]["arguments"] = json.dumps({"city": "Berlin"})
    session.extend([user("hi"), asked, result("A", "sunny")])
    for _ in range(10):
        session.add(user(words(12)))
    assert [event.message for event in session.recall("berlin", 1)] == [asked]
    assert [event.message for event in session.recall("Sunny", 1)] == [result("A", "sunny")]


def test_an_answer_is_found_beside_its_question(store: Store) -> None:
    """Though it has no word of what is asked."""
    session = Session(100, counter=WORDS, id="s", store=store)
    session.extend([user("Where did Nora leave the kayak?"), assistant("In the barn.")])
    for _ in range(10):
        session.add(user(words(12)))
    texts = [event.message["content"] for event in session.recall("the kayak", 2)]
    assert texts == ["Where did Nora leave the kayak?", "In the barn."]


def ask(session: Session, question: str, answer: str) -> None:
    """Do what a chat loop does: a question, a view, what the provider reports, the answer."""
    session.add(user(question))
    session.record_usage({"prompt_tokens": WORDS.count(session.messages()), "completion_tokens": 1})
    session.add(assistant(answer))


def test_an_answer_is_found_beside_its_question_in_the_log_of_a_real_loop(store: Store) -> None:
    """Reported usage, what was recalled and evictions stand between the two, and are no step."""
    session = Session(150, counter=WORDS, id="s", store=store, recall_ratio=0.3)
    for at in range(20):
        ask(session, f"About filler{at} {words(6)}", words(9))
    ask(session, "Where did the zebra of filler3 go?", "Ferdinand stayed in Lisbon.")
    question, answer = list(session.history())[-2:]
    between = session.history(kinds=None, after=question.version, before=answer.version)
    assert {"recalled", "usage"} <= {event.kind for event in between}
    for _ in range(20):
        ask(session, f"And {words(8)}", words(9))
    assert session.recall("zebra", 2) == [question, answer]
    session.add(user("Tell me of the zebra!"))
    assert "Ferdinand stayed in Lisbon." in str(session.messages()[-2])


def _long(store: Store) -> Session:
    """A session of 3,301 messages, in each third of which one of three words is."""
    session = Session(200, counter=WORDS, id="s", store=store)
    lines = ["There is a cat over there", "Nobody has a name in here", "Again there was rain today"]
    session.add(user("The name of my cat is Tom."))
    for _ in range(11):
        session.extend([user(line) for line in lines * 100])
    return session


@pytest.mark.few(1)
def test_what_very_many_messages_have_is_found_by_two_words_and_else_it_is_said(store: Store) -> None:
    """In the list, awaited or not, and to the model: nothing is missed in silence."""
    session = _long(store)
    both = session.recall("What is the name of my cat?", 10)
    first = next(session.history())
    assert (both[0], both.complete, both.since) == (first, True, 1)
    one = session.recall("cat", 10)
    assert (one.complete, first in one) == (False, False)
    with_cat = [event.version for event in session.history() if "cat" in event.message["content"]]
    assert one.since == with_cat[-1_000]
    assert asyncio.run(session.arecall("cat", 10)).since == one.since
    told = f"before message {one.since} not all of them were looked at"
    tool = session.recall_tool()
    assert told in tool("cat")
    assert told in asyncio.run(tool.acall("cat"))
    assert "looked at" not in tool("name of the cat")
    assert session.recall("nothing").complete is session.recall("").complete is True
    ranked = Session(id="s", store=store, counter=WORDS, ranker=lambda query, messages: [1.0] * len(messages))
    assert ranked.recall("cat").complete is True  # every message was ranked
    few = Session(id="s", store=store, counter=WORDS, ranker=len_ranker, max_candidates=20)
    assert few.recall("cat").since == one.since


def len_ranker(query: str, messages: Sequence[Any]) -> list[float]:
    """Rank the longest first."""
    return [float(len(message["content"])) for message in messages]


class Silent(MemoryStore):
    """A store somebody wrote, whose searches answer a list and no more."""

    def search(self, request: SearchRequest, /) -> Any:
        """Find messages."""
        return list(super().search(request))


def test_a_store_that_does_not_say_how_far_it_looked_is_not_said_to_have_looked_at_all() -> None:
    """It works as before; nobody knows what it left out."""
    session = Session(100, counter=WORDS, store=Silent())
    added = session.add(user("apple one"))
    session.extend([user(words(12)) for _ in range(10)])
    one = session.recall("apple", 1)
    assert (one, one.complete, one.since) == ([added], None, None)
    assert "looked at" not in session.recall_tool()("apple")


def test_what_is_redacted_is_found_no_more(store: Store) -> None:
    """Neither by the words it said, nor in a summary, nor in any event of the log."""
    session = one_session(
        lambda messages: " ".join(str(m["content"]).split()[0] for m in messages), id="s", store=store
    )
    for at in range(30):
        session.add(user(f"secret{at} {words(9)}"))
    summaries = [event for event in session.history(kinds=("summary",)) if "secret0" in event.data["text"]]
    assert summaries
    in_force = session.summary
    done = session.redact([next(session.history()).id])
    assert found(session, "secret0") == []
    assert "secret0 " not in json.dumps([[e.data, e.state] for e in session.history(kinds=None)], default=str)
    assert "secret0 " not in str(session.messages())
    assert [event.id for event in done.mended] == [event.id for event in summaries]
    assert session.summary == in_force  # it does not repeat what was redacted
    assert WORDS.count(session.messages()) <= 100


def test_redaction_leaves_nothing_of_any_shape() -> None:
    """Arguments, names, numbers, media, unknown keys; ids and roles stay, so that the view is valid."""
    session = Session(500, counter=WORDS)
    asked = call("A", text="say 4711")
    asked["tool_calls"][0]["function"] = {"name": "f4711", "arguments": '{"n": 4711}'}
    asked["extra"] = {"id": {"k": 4711}, "number": 4711, "list": ["4711", 4711, {"input": {"4711": True}}]}
    events = session.extend(
        [
            user(
                [
                    {"type": "image_url", "image_url": {"url": "https://4711"}},
                    {"type": "text", "text": "4711"},
                ]
            ),
            asked,
            result("A", "4711"),
        ]
    )
    session.redact([event.id for event in events])
    assert "4711" not in json.dumps([event.data for event in session.history(kinds=None)])
    roles = [message["role"] for message in session.messages()]
    assert roles == ["user", "assistant", "tool"]
    assert json.loads(session.messages()[1]["tool_calls"][0]["function"]["arguments"]) == {}
    assert session.messages()[2]["tool_call_id"] == session.messages()[1]["tool_calls"][0]["id"] == "A"


SECRET = "Ada 4711"


def odd(**more: Any) -> dict[str, Any]:
    """A call with more in it than there has to be."""
    function = {"name": SECRET, "arguments": SECRET, SECRET: SECRET}
    made = {"id": "A", "type": "function", "function": function, "index": 4711, SECRET: {"id": SECRET}}
    return {"role": "assistant", "content": None, "tool_calls": [made], **more}


SHAPES: dict[str, list[dict[str, Any]]] = {
    "unknown": [user("x") | {"mood": {SECRET: SECRET, "id": SECRET, "type": SECRET}, "type": SECRET}],
    "numbers": [user("x") | {"a": 4711, "b": 4711.5, "c": [4711, {"id": SECRET}], "id": SECRET, "d": True}],
    "parts": [
        user(
            [
                {"type": "text", "text": SECRET, "id": SECRET, "cache_control": {"type": SECRET}},
                {"type": "image_url", "image_url": {"url": SECRET}},
                {"type": "input_audio", "input_audio": {"data": SECRET, "format": "wav"}},
            ]
        )
    ],
    "a part of no known kind": [user([{"type": SECRET, "id": SECRET, "input": {SECRET: 1}}])],
    "calls": [user("x"), odd(name=SECRET, refusal=None), result("A", SECRET)],
    "a call of another kind": [
        user("x"),
        odd(tool_calls=[{"id": "A", "type": "custom", "custom": {"name": SECRET, "input": SECRET}}]),
        result("A", [{"type": "text", "text": SECRET}]),
    ],
    "a call without an id": [
        user("x"),
        {"role": "assistant", "content": None, "function_call": {"name": "look", "arguments": SECRET}},
        {"role": "function", "name": "look", "content": SECRET},
    ],
    "refused": [user("x"), assistant([{"type": "refusal", "refusal": SECRET}]) | {"refusal": SECRET}],
    "spoken": [user("x"), {"role": "assistant", "content": None, "audio": {"id": SECRET}}],
    "spoken and said": [user("x"), {"role": "assistant", "content": SECRET, "audio": {"id": SECRET}}],
}


@pytest.mark.parametrize("said", SHAPES.values(), ids=SHAPES.keys())
@pytest.mark.parametrize("only_last", [False, True])
def test_what_is_left_of_a_message_says_nothing_and_is_valid(
    said: list[dict[str, Any]], only_last: bool
) -> None:
    """Unknown mappings and their keys go, and ids where the wire form has none; pairs stay pairs."""
    session = Session(500, counter=WORDS)
    events = session.extend(said)
    before = {(found.index, found.rule) for found in validate(said)}
    session.redact([event.id for event in (events[-1:] if only_last else events)])
    kept = [event.message for event in session.history()]
    assert not any("audio" in message for message in kept), "its id names what was said"
    assert [one["role"] for one in kept] == [one["role"] for one in said]
    assert {(found.index, found.rule) for found in validate(kept)} <= before
    blanked = json.dumps(kept[-1:] if only_last else kept)
    assert not any(word in blanked for word in ("Ada", "4711", "true"))


def test_a_redaction_of_what_is_not_there_changes_nothing() -> None:
    """Not even for the ids that are."""
    session = Session(500, counter=WORDS)
    event = session.add(user("a"))
    options = next(iter(session.history(kinds=("options",))))
    for ids in ([event.id, "nothing"], [event.id, options.id], []):
        with pytest.raises((LookupError, ConfigurationError)):
            session.redact(ids)
    assert session.messages() == [user("a")]
    assert session.version == 2


@pytest.mark.parametrize("query", [5, None, b"a"])
def test_a_query_is_a_text(query: Any) -> None:
    """And a limit a number."""
    session = Session(500, counter=WORDS)
    with pytest.raises(ConfigurationError, match="query must be a text"):
        session.recall(query)
    with pytest.raises(ConfigurationError, match="at least 1"):
        session.recall("a", 0)


def test_the_tool_has_a_schema_and_answers_in_text() -> None:
    """Ready to be given to a model; nothing found is said in words."""
    session = Session(100, counter=WORDS)
    tool = session.recall_tool(limit=1)
    function = tool.schema["function"]
    assert tool.schema["type"] == "function"
    assert function["parameters"]["required"] == ["query"]
    assert set(function["parameters"]["properties"]) == {"query", "limit"}
    assert (tool.__name__, tool.__doc__) == (function["name"], function["description"])
    assert tool(query="apple") == "Nothing was found."
    session.extend([user("apple one"), assistant("apple two")])
    for _ in range(12):
        session.add(user(words(10)))
    answer = tool(query="apple")
    assert "apple two" in answer
    assert "apple one" not in answer


def test_two_characters_of_chinese_are_found(data_dir: Path) -> None:
    """In real conversations, on both stores, exactly where they stand and beside that."""
    lines = (data_dir / "glaive_toolcall_zh.jsonl").read_text(encoding="utf-8").splitlines()[:12]
    messages = [message for line in lines for message in json.loads(line)["messages"]]
    with TemporaryDirectory() as folder, SQLiteStore(Path(folder, "log.db")) as sqlite:
        for store in (MemoryStore(), sqlite):
            session = Session(2_000, id="s", store=store)
            session.extend(messages)
            view = session.messages()
            for query in ("天气", "电影", "计算", "价格"):
                said = [
                    event
                    for event in session.history()
                    if query in json.dumps(event.message, ensure_ascii=False)
                ]
                out = {event.version for event in said if event.message not in view}
                found = session.recall(query, 10_000)
                assert set(holders(found, *question_terms(query))) == out
                near = {event.version + step for event in said for step in range(-2, 3)}
                assert {event.version for event in found} <= near


def test_a_call_of_the_tool_may_ask_for_fewer_messages_and_gets_no_more() -> None:
    """What it was made for is the most: an answer takes room in the context."""
    session = Session(100, counter=WORDS)
    session.extend([user(f"apple {at}") for at in range(4)])
    for _ in range(12):
        session.add(user(words(10)))
    tool = session.recall_tool(limit=3)
    assert [tool(query="apple", limit=limit).count("<recalled") for limit in (None, 1, 3, 99)] == [3, 1, 3, 3]
    with pytest.raises(ConfigurationError, match="limit must be a whole number"):
        tool(query="apple", limit=0)


class Shouted(OpenAIChat):
    """A wire form of somebody's own."""

    name = "shouted"

    def transcript(self, message: dict[str, Any], /) -> str:
        """Write it loudly."""
        return super().transcript(message).upper()


def test_what_is_recalled_is_written_as_the_format_of_the_session_says() -> None:
    """Whatever a single message looks like."""
    session = Session(100, counter=WORDS, format=Shouted())
    session.add(user("apple one"))
    for _ in range(12):
        session.add(user(words(10)))
    assert "APPLE ONE" in session.recall_tool()(query="apple")
