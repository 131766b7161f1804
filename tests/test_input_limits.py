"""What a model takes of input holds every budget, share and window, at every door (SPEC D0)."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from trimtab import Budget, ConfigurationError, Context, Session, cli, fit
from trimtab.batch import BatchTask
from trimtab.counting import CharCounter
from trimtab.integrations.base import Trimmer
from trimtab.integrations.bodies import Bodies
from trimtab.models import ModelFacts, facts_for, model_names, register_model, register_models
from trimtab.policy import load_policy, policy_data
from trimtab.replay import replay
from trimtab.stores import MemoryStore

COUNTER = CharCounter(1)
"""A token a character, so that 400,000 tokens are counted at once."""

LIMIT = 272_000
CHAT = [{"role": role, "content": "x" * 10_000} for _ in range(25) for role in ("user", "assistant")] + [
    {"role": "user", "content": "Go on."}
]
"""More than half a million tokens."""

HELD = "is held to what 'gpt-5' takes, 272,000 tokens of input"


def test_openai_takes_less_input_than_its_window() -> None:
    """Of 400,000 tokens 272,000, of 1,050,000 tokens 922,000; others take the window."""
    openai = [facts_for(name) for name in model_names() if facts_for(name).provider == "openai"]
    limits = {facts.window_tokens: facts.input_limit_tokens for facts in openai if facts.input_tokens}
    assert limits == {400_000: 272_000, 1_050_000: 922_000}
    assert (facts_for("gpt-4o").input_tokens, facts_for("gpt-4o").input_limit_tokens) == (None, 128_000)
    assert facts_for("openai/gpt-5-2025-08-07").input_tokens == 272_000


ROOMS: list[tuple[Any, int, bool]] = [
    (300_000, LIMIT, True),
    ("300k", LIMIT, True),
    ("272k", LIMIT, False),
    ("80%", 217_600, False),
    ("100%", LIMIT, False),
    (Budget(400_000), LIMIT, True),
    (Budget(400_000, output_reserve=4_096), LIMIT, True),
    (Budget(400_000, output_reserve=4_096, overhead_tokens=1_000, margin=500), LIMIT - 1_500, True),
    (Budget(400_000, output_reserve=128_000), LIMIT, False),
    (Budget(400_000, over_limit=True), 400_000, False),
    (None, LIMIT, False),
]
"""A budget, the room it means on gpt-5, and whether the report says that it was held."""


@pytest.mark.parametrize(("budget", "room", "told"), ROOMS)
def test_every_budget_is_held_to_the_input_limit(budget: Any, room: int, told: bool) -> None:
    """In `fit`, `Context` and `at`; what comes out is within it, and the report says when it held."""
    context = Context(budget, model="gpt-5", counter=COUNTER).add("history", CHAT)
    for fitted in (
        fit(CHAT, budget, model="gpt-5", counter=COUNTER),
        context.fit(),
        *([] if budget is None else [fit(CHAT, 9_000, model="gpt-5", counter=COUNTER).at(budget)]),
        *([] if budget is None else [context.fit(budget)]),
    ):
        report = fitted.report
        assert report.input_tokens == room
        assert room - 20_010 < report.tokens_after <= room
        assert any(HELD in note for note in report.notes) is told


@pytest.mark.parametrize(("budget", "room", "told"), [one for one in ROOMS if one[0] is not None])
def test_a_session_is_held_to_it(budget: Any, room: int, told: bool) -> None:
    """From the first view, after `set_budget`, and when it is opened again."""
    session = Session(budget, model="gpt-5", counter=COUNTER)
    session.extend(CHAT)
    assert session.budget_tokens == room
    assert sum(len(message["content"]) for message in session.messages()) <= room
    assert any(HELD in note for note in session.fit().report.notes) is told
    session.set_budget(100_000)
    session.set_budget(budget)
    assert session.budget_tokens == session.fit(budget=budget).report.input_tokens == room


def test_a_session_that_goes_on_with_a_smaller_model_is_held_to_that(tmp_path: Path) -> None:
    """Also a budget that was set later; one that was given over the limit stays."""
    store = f"sqlite:///{tmp_path / 'chats.db'}"
    Session(300_000, model="gpt-4.1", counter=COUNTER, store=_store(store), id="a").extend(CHAT)
    again = Session(model="gpt-5", counter=COUNTER, store=_store(store), id="a")
    assert again.budget_tokens == LIMIT
    set_later = Session(9_000, model="gpt-4.1", counter=COUNTER, store=_store(store), id="b")
    set_later.set_budget(300_000)
    assert Session(model="gpt-5", counter=COUNTER, store=_store(store), id="b").budget_tokens == LIMIT
    over = Budget(500_000, over_limit=True)
    Session(over, model="gpt-5", counter=COUNTER, store=_store(store), id="c").extend(CHAT)
    opened = Session.open(_store(store), "c", counter=COUNTER)
    assert (opened.budget_tokens, opened.fit().report.input_tokens) == (500_000, 500_000)


def _store(url: str) -> Any:
    from trimtab.stores import open_store

    return open_store(url)


@pytest.mark.parametrize(("budget", "room", "told"), ROOMS)
def test_an_adapter_is_held_to_it(budget: Any, room: int, told: bool) -> None:
    """Whatever the call says; this is `with_budget(OpenAI(), "80%")`."""
    seen: list[Any] = []
    trimmer = Trimmer[Any](budget, format="openai_chat", on_fitted=seen.append, options={"counter": COUNTER})
    trimmer.fit(CHAT, model="gpt-5")
    assert (seen[0].report.input_tokens, seen[0].report.tokens_after <= room) == (room, True)
    assert any(HELD in note for note in seen[0].report.notes) is told


@pytest.mark.parametrize(
    ("budget", "room"), [("80%", 217_600), ("100%", LIMIT), (390_000, LIMIT), (None, LIMIT)]
)
def test_a_client_with_a_budget_sends_no_more_than_the_model_takes(budget: Any, room: int) -> None:
    """`with_budget(OpenAI(), "80%")` and its like, whatever the call says of its answer."""
    seen: list[Any] = []
    for answer in ({}, {"max_completion_tokens": 1_000}):
        bodies = Bodies(
            budget,
            format="openai_chat",
            retry_overflow=False,
            on_fitted=seen.append,
            options={"counter": COUNTER},
        )
        bodies.fit_body({"model": "gpt-5", "messages": CHAT, **answer}, model="gpt-5")
        assert (seen[-1].report.input_tokens, seen[-1].report.tokens_after <= room) == (room, True)


def test_who_deploys_a_model_knows_its_window() -> None:
    """As LiteLLM's router says it: a share is of that, and the model's own limit does not hold it."""
    trimmer = Trimmer[Any]("80%", format="openai_chat", on_fitted=None, options={"counter": COUNTER})
    outcome = trimmer.fit(CHAT, model="gpt-5", window=Budget(400_000, over_limit=True))
    assert outcome.fitted.report.input_tokens == 320_000


@pytest.mark.parametrize(("budget", "room"), [("80%", 217_600), ("300k", LIMIT), ("300000", LIMIT)])
def test_the_command_line_is_held_to_it(tmp_path: Path, budget: str, room: int) -> None:
    """By `--model`, or by the model of a body."""
    path, body = tmp_path / "chat.json", tmp_path / "body.json"
    path.write_text(json.dumps(CHAT), encoding="utf-8")
    body.write_text(json.dumps({"model": "gpt-5", "messages": CHAT}), encoding="utf-8")
    for file, model in ((path, ["--model", "gpt-5"]), (body, [])):
        given = ["fit", str(file), "--budget", budget, "--counter", "chars:1", "--report", *model]
        found = CliRunner().invoke(cli.command(), given)
        assert found.exit_code == 0, found.output
        assert json.loads(found.stdout)["report"]["input_tokens"] == room
    wrong = CliRunner().invoke(cli.command(), ["fit", str(path), "--budget", "80%"])
    assert (wrong.exit_code, "no model is named" in wrong.stderr) == (2, True)


def test_a_policy_may_say_a_share_before_it_knows_the_model() -> None:
    """It is of the model that is named where it is used, and it is written as it was given."""
    policy = load_policy({"budget": "80%", "blocks": [{"name": "history"}]})
    assert policy_data(policy)["budget"] == "80%"
    fitted = policy.clone(model="gpt-5", counter=COUNTER).replace("history", CHAT).fit()
    assert fitted.report.input_tokens == 217_600
    with pytest.raises(ConfigurationError, match="no model is named"):
        policy.replace("history", CHAT).fit()
    with pytest.raises(ConfigurationError, match="input limit must be above 0% and at most 100%"):
        Context("180%", model="gpt-5")


def test_replay_and_batch_are_held_to_it() -> None:
    """Each call of a replay, by a strategy, by blocks and by a session; and each row."""
    policy = load_policy({"budget": "100%", "blocks": [{"name": "history"}]})
    for word, budget in (("default", 390_000), (policy, None), ("session", 390_000), ("none", 390_000)):
        found = replay(CHAT, word, budget=budget, model="gpt-5", counter=COUNTER)
        assert {call.limit_tokens for call in found.calls} == {LIMIT}
    pa = pytest.importorskip("pyarrow")
    task = BatchTask(operation="fit", budget="80%", model="gpt-5", counter="chars:1", column="messages")
    (row,) = task(pa.Table.from_pylist([{"messages": json.dumps(CHAT)}])).to_pylist()
    assert row["tokens_after"] <= 217_600


def test_facts_of_ones_own_win() -> None:
    """One's own server may take more: a model that is registered, or a file that says another window."""
    register_model(ModelFacts(name="my-gpt", window_tokens=400_000))
    assert Budget.of(390_000, model="my-gpt") == Budget(390_000)
    with pytest.raises(
        ConfigurationError, match="input_tokens must be at most window_tokens, 1,000, or None"
    ):
        register_model(ModelFacts(name="odd", window_tokens=1_000, input_tokens=2_000))
    with pytest.raises(ConfigurationError, match="input_tokens must be a whole number of tokens above 0"):
        register_model(ModelFacts(name="odd", window_tokens=1_000, input_tokens=0))


def test_a_file_that_says_a_window_says_the_limit_with_it(tmp_path: Path) -> None:
    """That of the smaller window said nothing of this one."""
    path, before = tmp_path / "models.toml", facts_for("gpt-5")
    path.write_text('[models."gpt-5"]\nwindow_tokens = 800000\n', encoding="utf-8")
    try:
        register_models(path)
        assert facts_for("gpt-5") == replace(before, window_tokens=800_000, input_tokens=None)
    finally:
        register_model(before, replace=True)


def test_a_reserve_that_leaves_nothing_of_the_window_is_refused() -> None:
    """With what to do where the window is larger."""
    with pytest.raises(ConfigurationError, match=r"use up the window of 'gpt-4', 8,192 tokens"):
        fit(CHAT, Budget(20_000, output_reserve=9_000), model="gpt-4", counter=COUNTER)
    with pytest.raises(ConfigurationError, match="use up the window"):
        Budget.of(Budget(20_000, output_reserve=8_191, overhead_tokens=1), model="gpt-4")
    assert Budget.of(Budget(20_000, output_reserve=8_191), model="gpt-4").input_tokens == 1


def test_a_model_that_may_answer_less_than_the_rest_is_held_without_a_budget() -> None:
    """What is left of the window beside the answer may pass the input limit."""
    register_model(ModelFacts(name="small-room", window_tokens=1_000, input_tokens=600, output_tokens=100))
    assert fit([CHAT[-1]], model="small-room", counter=COUNTER).report.input_tokens == 600


def test_a_budget_that_was_lowered_is_equal_to_one_that_was_not() -> None:
    """Both ways, and in sets; what the report says of it is no part of the value."""
    held, plain = Budget.of(400_000, model="gpt-5"), Budget(LIMIT)
    assert held == plain == Budget.of(300_000, model="gpt-5") == held
    assert {held: 1}[plain] == 1
    assert held != Budget(LIMIT, margin=1) != Budget.of(Budget(400_000, margin=2), model="gpt-5")
    assert held != LIMIT


def test_a_session_remembers_that_a_budget_it_was_set_may_pass_the_limit() -> None:
    """Opened again it has that budget; one that was set later is held again."""
    store = MemoryStore()
    session = Session(1_000, store=store, id="a", model="gpt-5", counter=COUNTER)
    session.extend(CHAT[:4])
    session.set_budget(Budget(400_000, over_limit=True))
    again = Session.open(store, "a", counter=COUNTER)
    assert again.budget_tokens == session.budget_tokens == 400_000
    again.set_budget(400_000)
    assert again.budget_tokens == Session.open(store, "a", counter=COUNTER).budget_tokens == LIMIT
