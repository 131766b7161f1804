"""A session's history as one block of a Context: the room it gets, where it stands, what changes it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from trimtab import (
    BudgetExceededError,
    ConfigurationError,
    Context,
    Drop,
    Session,
    Strict,
    Summarize,
    Tier,
    validate,
)
from trimtab.counting import FixedCounter
from trimtab.session import SessionHooks
from trimtab.stores import MemoryStore, Retry

TEN = FixedCounter(per_message=10)


def user(n: int | str) -> dict[str, Any]:
    """A message of the user."""
    return {"role": "user", "content": str(n)}


def assistant(n: int | str) -> dict[str, Any]:
    """A message of the model."""
    return {"role": "assistant", "content": str(n)}


def policy(budget: int = 300, **options: Any) -> Context:
    """System text, five documents, the history and a question: in this order."""
    context = Context(budget, counter=TEN, **options)
    context.add("system", "You are brief.", priority=100, strategy=Strict())
    context.add("documents", [f"document {n}" for n in range(5)], priority=60, strategy=Drop())
    context.add("history", None, priority=50)
    context.add("question", "What now?", priority=95, strategy=Strict())
    return context


def texts(messages: list[dict[str, Any]]) -> list[str]:
    """What they say, in order."""
    return [message["content"] for message in messages]


def told(session: Session, count: int) -> Session:
    """Add so many messages."""
    for n in range(count):
        session.add(user(n) if n % 2 == 0 else assistant(n))
    return session


def test_the_history_stands_where_its_block_stands() -> None:
    """Blocks before and after it stay before and after it."""
    session = told(Session(target_ratio=1.0, context=policy()), 3)
    assert texts(session.messages()) == [
        "You are brief.", *[f"document {n}" for n in range(5)], "0", "1", "2", "What now?",
    ]  # fmt: skip


def test_the_history_has_the_room_the_other_blocks_leave() -> None:
    """300 tokens, less 20 for system text and question and 50 for documents of a higher rank."""
    session = told(Session(target_ratio=1.0, context=policy()), 100)
    assert session.budget_tokens == 300 - 20 - 50
    fitted = session.fit()
    assert texts(fitted.messages)[6:-1] == [str(n) for n in range(77, 100)]
    assert fitted.report.tokens_after == 300


def test_a_history_of_a_higher_rank_is_served_first() -> None:
    """Documents of a lower rank give way to it (SPEC D5)."""
    context = Context(300, counter=TEN)
    context.add("documents", [f"document {n}" for n in range(20)], priority=1, strategy=Drop())
    context.add("history", None, priority=50)
    session = told(Session(target_ratio=1.0, context=context), 100)
    assert session.budget_tokens == 300
    assert texts(session.messages()) == [str(n) for n in range(70, 100)]


def test_floor_and_cap_of_the_block_hold() -> None:
    """A floor keeps room for the history, a cap keeps it from taking all."""
    for limits, room in (({"min_tokens": 120}, 120), ({"max_ratio": 0.5}, 150)):
        context = Context(300, counter=TEN)
        full = room == 120
        context.add("documents", [f"d{n}" for n in range(30 if full else 2)], priority=90, strategy=Drop())
        context.add("history", None, priority=1, **limits)
        session = told(Session(target_ratio=1.0, context=context), 60)
        assert session.budget_tokens == room
        history = [one for one in texts(session.messages()) if not one.startswith("d")]
        assert len(history) * 10 == room


def test_tiers_rank_the_history_too() -> None:
    """In a context of tiers the block is declared with one."""
    context = Context(200, counter=TEN)
    context.add("system", "s", tier=Tier.SYSTEM)
    context.add("history", None, tier=Tier.HISTORY)
    session = told(Session(target_ratio=1.0, context=context), 40)
    assert texts(session.messages()) == ["s", *[str(n) for n in range(21, 40)]]


def test_a_summary_stands_at_the_front_of_the_history() -> None:
    """And it is counted within the room of the history."""
    session = told(
        Session(target_ratio=1.0, context=policy(), summarizer=lambda messages, existing: "so far"), 100
    )
    shown = texts(session.messages())
    assert shown[:6] == ["You are brief.", *[f"document {n}" for n in range(5)]]
    assert "so far" in shown[6]
    assert shown[-2:] == ["99", "What now?"]
    assert session.fit().report.tokens_after <= 300


def test_the_report_names_the_blocks_and_says_what_the_session_did() -> None:
    """Two reports in one: what each block has, and what of the history is not in view."""
    report = told(Session(target_ratio=1.0, context=policy()), 100).fit().report
    assert [block.name for block in report.blocks] == ["system", "documents", "history", "question"]
    assert any("77 messages" in note for note in report.notes)


def test_other_blocks_may_change_and_the_room_changes_with_them() -> None:
    """`session.context` is the session's own copy."""
    context = policy()
    session = told(Session(target_ratio=1.0, context=context), 100)
    assert session.context is not None
    session.context.replace("documents", [])
    assert len(session.messages()) == 30
    session.context.replace("documents", [f"new {n}" for n in range(10)]).replace("question", "And now?")
    assert texts(session.messages())[1:11] == [f"new {n}" for n in range(10)]
    assert texts(session.messages())[-1] == "And now?"
    assert session.fit().report.tokens_after <= 300
    assert len(context.fit().messages) == 7  # the caller's own was not touched


def test_a_second_system_block_is_refused() -> None:
    """A request has one; system= alone goes to its front."""
    with pytest.raises(ConfigurationError, match="system text is given twice"):
        Session(target_ratio=1.0, context=policy(), system="Be nice.")
    context = Context(300, counter=TEN)
    context.add("facts", "The user is called Ada.").add("history", None)
    session = told(Session(target_ratio=1.0, context=context, system="Be nice."), 2)
    assert texts(session.messages()) == ["Be nice.", "The user is called Ada.", "0", "1"]
    with pytest.raises(ConfigurationError, match="system text is given twice"):
        Session(target_ratio=1.0, context=context.clone(system="Be brief."), system="Be nice.")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"budget": 500}, "budget is passed twice"),
        ({"counter": TEN}, "counter is given twice"),
    ],
)
def test_what_the_context_says_is_not_said_again(options: dict[str, Any], said: str) -> None:
    """One of two would silently win."""
    with pytest.raises(ConfigurationError, match=said):
        Session(target_ratio=1.0, context=policy(), **options)


def test_a_filled_history_block_is_refused() -> None:
    """The session fills it."""
    with pytest.raises(ConfigurationError, match="the block 'history' has content"):
        Session(target_ratio=1.0, context=policy().replace("history", [user(1)]))
    with pytest.raises(ConfigurationError, match="context must be a Context"):
        Session(target_ratio=1.0, context={"budget": 5})  # type: ignore[arg-type]


def test_its_budget_is_the_contexts() -> None:
    """Setting another would say two things about one request."""
    session = told(Session(target_ratio=1.0, context=policy()), 3)
    with pytest.raises(ConfigurationError, match="is its Context's"):
        session.set_budget(500)
    assert session.budget_tokens == 230


def test_it_opens_again_with_the_same_and_with_another_context() -> None:
    """The log keeps no context; a larger one shows more, a missing one is an error."""
    store = MemoryStore()
    before = told(Session(target_ratio=1.0, context=policy(), store=store, id="one"), 100).messages()
    assert Session(target_ratio=1.0, context=policy(), store=store, id="one").messages() == before
    assert Session.open(store, "one", context=policy()).messages() == before
    larger = Session(target_ratio=1.0, context=policy(600), store=store, id="one")
    assert len(larger.messages()) == 60
    larger.add(user("more"))
    assert Session.open(store, "one", context=policy(600)).messages() == larger.messages()
    with pytest.raises(ConfigurationError, match="made with a context"):
        Session.open(store, "one").messages()


def test_a_snapshot_goes_on_with_the_context_given_again() -> None:
    """Same messages, and the same later behaviour."""
    session = told(Session(target_ratio=1.0, context=policy(), summarizer=lambda messages, existing: "s"), 90)
    twin = Session.restore(session.snapshot(), context=policy(), summarizer=lambda messages, existing: "s")
    for n in range(90, 130):
        assert session.messages() == twin.messages()
        session.add(user(n))
        twin.add(user(n))
    assert [one.state for one in session.history(kinds=None)] == [
        one.state for one in twin.history(kinds=None)
    ]


def test_a_call_of_the_history_keeps_its_result() -> None:
    """Units of the history are whole in the request."""
    session = Session(target_ratio=1.0, context=policy(200))
    for n in range(30):
        function = {"name": "f", "arguments": "{}"}
        session.add(user(n))
        session.add(
            {"role": "assistant", "tool_calls": [{"id": f"c{n}", "type": "function", "function": function}]}
        )
        session.add({"role": "tool", "tool_call_id": f"c{n}", "content": "ok"})
        fitted = session.fit()
        assert not validate(fitted.messages)
        assert fitted.report.tokens_after <= 200


def test_tools_are_charged_once() -> None:
    """They stand beside the blocks."""
    schema = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
    bare = Session(target_ratio=1.0, context=Context(500, counter=None).add("history", None))
    with_tools = Session(
        target_ratio=1.0, context=Context(500, counter=None, tools=schema).add("history", None)
    )
    cost = Context(500, tools=schema).add("history", "x").fit().report.tokens_after
    cost -= Context(500).add("history", "x").fit().report.tokens_after
    assert cost > 0
    assert bare.budget_tokens - with_tools.budget_tokens == cost
    assert told(with_tools, 90).fit().report.tokens_after <= 500


def test_callbacks_of_the_context_run_for_views_only() -> None:
    """Measuring the room asks nobody."""
    asked: list[str] = []
    context = Context(300, counter=TEN)
    context.add("documents", ["d"], on_trim=lambda trim: asked.append("documents"))
    context.add("history", None)
    session = told(Session(target_ratio=1.0, context=context), 5)
    assert asked == []
    session.messages()
    assert asked == ["documents"]


def test_hooks_and_breakdown_are_those_of_the_history() -> None:
    """System text and documents are no part of them."""
    gone: list[str] = []
    session = Session(
        target_ratio=1.0,
        context=policy(),
        hooks=SessionHooks(on_evict=lambda messages, reason: gone.append(reason)),
    )
    told(session, 40)
    assert {"budget", "truncation"} == set(gone)
    assert session.token_breakdown.system == 0
    assert session.token_breakdown.total == 230


@pytest.mark.parametrize("first", [True, False])
def test_where_the_block_is_declared_counts_among_equal_ranks(first: bool) -> None:
    """What is added last is served first (SPEC D4): the room is that of the real fold."""
    context = Context(300, counter=TEN)
    if first:
        context.add("history", None)
    context.add("documents", [f"d{n}" for n in range(20)])
    if not first:
        context.add("history", None)
    session = told(Session(target_ratio=1.0, context=context), 30)
    event = next(iter(session.history()))
    session.pin(event.id)
    shown = texts(session.messages())
    assert session.budget_tokens == (100 if first else 300)
    assert "0" in shown
    assert "29" in shown
    assert session.token_count == 10 * sum(not one.startswith("d") for one in shown)


def test_what_must_stay_takes_the_room_of_what_may_leave() -> None:
    """Documents of a higher rank fill the window; anchors, pins and the latest message stay all the same."""
    context = Context(300, counter=TEN)
    context.add("documents", [f"d{n}" for n in range(40)], priority=90)
    context.add("history", None, priority=1)
    session = Session(target_ratio=1.0, context=context, anchors=[{"role": "system", "content": "anchor"}])
    kept = session.add(user("kept"))
    session.pin(kept.id)
    told(session, 9)
    shown = texts(session.messages())
    assert [one for one in shown if not one.startswith("d")] == ["anchor", "kept", "8"]
    assert session.fit().report.tokens_after == 300


def test_system_text_in_a_block_of_a_plain_context_stays_whole() -> None:
    """SPEC D7: its room is not the history's."""
    context = Context(300, counter=TEN).add("system", [{"role": "system", "content": "s"}] * 5)
    context.add("history", None)
    session = told(Session(target_ratio=1.0, context=context), 60)
    session.pin(next(iter(session.history())).id)
    assert session.budget_tokens == 250
    shown = texts(session.messages())
    assert shown[:6] == ["s"] * 5 + ["0"]
    assert len(shown) == 30


def test_add_is_never_refused_for_what_other_blocks_take() -> None:
    """SPEC E3: the log takes it first; the view says what does not fit, and recovers."""
    session = Session(target_ratio=1.0, context=Context(300, counter=TEN).add("history", None))
    context = session.context
    assert context is not None
    context.add("documents", [f"d{n}" for n in range(40)], strategy=Strict())
    for n in range(3):
        session.add(user(n))
    assert [event.message["content"] for event in session.history()] == ["0", "1", "2"]
    assert session.recall("nothing") == []
    with pytest.raises(BudgetExceededError, match="block 'documents'"):
        session.messages()
    context.remove("documents")
    assert texts(session.messages()) == ["0", "1", "2"]


def test_an_undeclared_history_in_tiers_has_the_tier_of_one() -> None:
    """A context of tiers takes no block without."""
    context = Context(300, counter=TEN).add("documents", ["d"], tier=Tier.RAG)
    assert texts(told(Session(target_ratio=1.0, context=context), 2).messages()) == ["d", "0", "1"]


def test_what_the_session_adds_to_the_context_is_in_the_log() -> None:
    """System text and tools come back when only the context is passed again."""
    store, tools = MemoryStore(), [{"type": "function", "function": {"name": "f", "parameters": {}}}]
    plain = Context(1_000)
    session = told(
        Session(
            target_ratio=1.0, context=plain, system="S", tools=tools, model="gpt-4o", store=store, id="a"
        ),
        1,
    )
    again = [
        Session.open(store, "a", context=plain),
        Session.restore(session.snapshot(), context=plain),
        session.fork(),
    ]
    for other in (session, *again):
        fitted = other.fit()
        assert texts(fitted.messages) == ["S", "0"]
        assert fitted.tools == tools
        assert fitted.report.tokens_after == session.fit().report.tokens_after


def test_blocks_added_to_an_opened_session_stay_over_a_refresh() -> None:
    """And over a conflict with another writer, in old views and forks."""
    store = MemoryStore()
    told(
        Session(
            target_ratio=1.0, context=Context(300, counter=TEN).add("history", None), store=store, id="a"
        ),
        1,
    )
    session = Session.open(store, "a", context=Context(300, counter=TEN).add("history", None), retry=Retry())
    assert session.context is not None
    session.messages()
    session.context.add("question", "Q?")
    Session(target_ratio=1.0, context=Context(300, counter=TEN), store=store, id="a").add(user("other"))
    session.add(user("mine"))
    assert texts(session.messages()) == ["0", "other", "mine", "Q?"]
    session.refresh()
    assert texts(session.messages()) == ["0", "other", "mine", "Q?"]
    assert texts(session.view_at(2)) == ["0", "Q?"]
    assert texts(session.fork().messages()) == ["0", "other", "mine", "Q?"]


def test_a_fork_of_an_empty_session_has_a_context_of_its_own() -> None:
    """A block added to one is not in the other."""
    session = Session(target_ratio=1.0, context=policy())
    fork = session.fork()
    assert fork.context is not None
    fork.context.remove("documents")
    assert len(session.messages()) == 7
    assert len(fork.messages()) == 2


def test_a_context_may_not_become_what_is_refused_when_made() -> None:
    """A second system block, and content in the history's."""
    session = told(Session(target_ratio=1.0, context=Context(300, counter=TEN), system="S"), 1)
    assert session.context is not None
    session.context.add("system", "S2")
    with pytest.raises(ConfigurationError, match="system text is given twice"):
        session.messages()
    session.context.remove("system").add("history", [user("mine")], replace=True)
    with pytest.raises(ConfigurationError, match="the block 'history' has content"):
        session.messages()
    session.context.replace("history", None)
    assert texts(session.messages()) == ["S", "0"]


def test_blocks_that_ask_a_model_are_awaited() -> None:
    """`afit` of a session is `afit` of its context."""

    async def summarize(messages: list[Any]) -> str:
        return "short"

    context = Context(200, counter=TEN)
    context.add("documents", [f"d{n}" for n in range(30)], max_tokens=50, strategy=Summarize(summarize))
    context.add("history", None)
    session = told(Session(target_ratio=1.0, context=context), 3)
    shown = texts(asyncio.run(session.amessages()))
    assert any("short" in one for one in shown)
    assert shown[-3:] == ["0", "1", "2"]


def test_calls_that_are_pending_stay() -> None:
    """The ids a context names are open, whatever follows them (SPEC A4b)."""
    context = Context(200, counter=TEN, pending_calls=["c1"]).add("history", None)
    session = Session(target_ratio=1.0, context=context)
    function = {"name": "f", "arguments": "{}"}
    session.add(user("go"))
    session.add({"role": "assistant", "tool_calls": [{"id": "c1", "type": "function", "function": function}]})
    told(session, 60)
    assert any(message.get("tool_calls") for message in session.messages())
    session.add({"role": "tool", "tool_call_id": "c1", "content": "at last"})
    assert validate(session.messages()) == []  # the result stands behind its call (SPEC E3b)
