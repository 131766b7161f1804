"""Replay: which planted or found rules and exact values of users are in view, word for word."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests import response_items
from tests.builders import assistant, call, result, system, user
from tests.chat_in_forms import said_in
from trimtab import Session
from trimtab.conversation import validate
from trimtab.errors import ConfigurationError, FormatError
from trimtab.formats import get_format
from trimtab.replay import (
    Canary,
    Recording,
    Replayed,
    Survival,
    Tally,
    chart_page,
    find_canaries,
    plant_canaries,
    read_recording,
    read_recordings,
    replay,
    replay_table,
)
from trimtab.rules import find_rules, supersedes
from trimtab.strategies import Summarize
from trimtab.summaries import marked_summary
from trimtab.testing import WordCounter

FORMS = ("openai_chat", "openai_responses", "anthropic", "gemini", "bedrock")
KINDS = ("rule", "limit", "preference", "name", "id")


def talk(turns: int = 20) -> list[dict[str, Any]]:
    """Make a conversation that says no exact value and no rule."""
    return [one for _ in range(turns) for one in (user("It rains again today"), assistant("So have tea"))]


def with_tools(turns: int = 6) -> list[dict[str, Any]]:
    """Make one in which each question is answered by a tool."""
    made = list[dict[str, Any]]()
    for turn in range(turns):
        made += [user("How is the weather?"), call(f"c{turn}"), result(f"c{turn}"), assistant("It rains")]
    return made


def in_form(form: str) -> list[Any]:
    """Write the conversation with tools in a wire form."""
    if form == "openai_chat":
        return with_tools()
    if form == "openai_responses":
        made = list[Any]()
        for turn in range(6):
            made += [
                response_items.user([{"type": "input_text", "text": "How is the weather?"}]),
                response_items.call(f"c{turn}"),
                response_items.output(f"c{turn}"),
                response_items.said("It rains"),
            ]
        return made
    return said_in(form, with_tools())


def played(recording: Recording, policy: Any = None, budget: int = 10_000) -> Survival:
    """Replay with a token a word, and return what was in view."""
    return replay(recording, policy, budget=budget, counter=WordCounter()).survival


def newest(count: int) -> Callable[[list[Any]], list[Any]]:
    """Make a policy that shows the newest messages alone."""
    return lambda messages: messages[-count:]


def only(text: str) -> Recording:
    """Make a recording with one canary, which its first message says."""
    made = read_recording([user(f"Hello. {text}"), *talk()])
    return replace(made, canaries=(Canary(kind="value", text=text, at=0),))


# What is planted.


@pytest.mark.parametrize("form", FORMS)
def test_planting_breaks_no_order_of_a_wire_form(form: str) -> None:
    """Users' own texts get longer; there is no message more, and no result says anything else."""
    messages = in_form(form)
    made = get_format(form)
    before = read_recording(messages, format=form)
    planted = plant_canaries(before, 20, seed=5)
    after = list(planted.messages)
    assert len(after) == len(before.messages)
    assert validate(after, format=form) == validate(list(before.messages), format=form)
    changed = [at for at, pair in enumerate(zip(before.messages, after, strict=True)) if pair[0] != pair[1]]
    assert sorted({one.at for one in planted.canaries}) == changed
    for at in changed:
        assert made.kind(after[at]) == "user"
        [old], [new] = made.texts(before.messages[at]), made.texts(after[at])
        assert not old.is_result
        assert new.text.startswith(f"{old.text}\n\n")
    assert played(planted).total == Tally(sought=20, lost=0)
    assert played(planted, newest(1)).total.lost == 20


def test_five_kinds_take_turns_over_the_messages_but_the_last() -> None:
    """One message has no canary: that every policy shows."""
    planted = plant_canaries(read_recording(talk(21)), 20)
    assert [one.kind for one in planted.canaries] == [*KINDS] * 4
    assert [one.at for one in planted.canaries] == list(range(0, 40, 2))


def test_the_only_message_of_a_user_gets_all() -> None:
    """An agent's recording may have no other."""
    planted = plant_canaries(read_recording([user("Begin."), call("c0"), result("c0")]), 7)
    assert [one.at for one in planted.canaries] == [0] * 7
    text = planted.messages[0]["content"]
    assert text.startswith("Begin.\n\n")
    assert all(one.text in text for one in planted.canaries)


def test_a_seed_decides_what_is_planted() -> None:
    """The same number plants the same, and the recording that was given stays as it is."""
    recording = read_recording(talk())
    made = [plant_canaries(recording, 9, seed=seed).canaries for seed in (1, 1, 2)]
    assert made[0] == made[1]
    assert {one.text for one in made[0]} != {one.text for one in made[2]}
    assert recording.messages == read_recording(talk()).messages
    assert recording.canaries == ()


def test_positions_are_among_the_messages_without_the_system_text() -> None:
    """As those of questions are."""
    recording = read_recording(talk(), system="Be brief.")
    planted = plant_canaries(recording, 3)
    assert recording.lead == 1
    for one in planted.canaries:
        assert planted.messages[one.at + 1]["content"].count(one.text) == 1
    assert played(planted).total == Tally(sought=3, lost=0)


@pytest.mark.parametrize("seed", range(3))
def test_what_is_planted_is_found_by_who_looks_for_it(seed: int) -> None:
    """Whatever is lost is lost by the policy; and no sentence replaces another."""
    planted = plant_canaries(read_recording(talk(120)), 100, seed=seed)
    found = {(one.kind, one.text) for one in find_canaries(planted).canaries}
    as_value = {"name": "value", "id": "value"}
    assert {(as_value.get(one.kind, one.kind), one.text) for one in planted.canaries} <= found
    said = [rule for message in planted.messages for rule in find_rules(message["content"])]
    rules = [rule for rule in said if rule.standing]
    assert len(rules) == 60
    assert not any(supersedes(new, old) for at, new in enumerate(rules) for old in rules[:at])


@pytest.mark.parametrize("seed", range(40))
def test_each_planted_rule_is_found_alone(seed: int) -> None:
    """Word for word, as standing: in any order of the templates, the finder knows every sentence."""
    planted = plant_canaries(read_recording(talk()), 100, seed=seed).canaries
    rules = [one.text for one in planted if one.kind in ("rule", "limit", "preference")]
    assert len(rules) == 60
    assert [[rule.text for rule in find_rules(text) if rule.standing] for text in rules] == [
        [text] for text in rules
    ]


@pytest.mark.parametrize(
    ("count", "seed", "said"),
    [(0, 0, "count"), (101, 0, "at most 100"), (1.5, 0, "count"), (1, "x", "seed")],
)
def test_numbers_that_are_none_are_refused(count: Any, seed: Any, said: str) -> None:
    """With the name of the argument."""
    with pytest.raises(ConfigurationError, match=said):
        plant_canaries(read_recording(talk()), count, seed=seed)


@pytest.mark.parametrize(
    "messages",
    [
        pytest.param([assistant("Hello"), assistant("?")], id="no-user"),
        pytest.param(
            [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "x"}]}],
            id="a-result-alone",
        ),
    ],
)
def test_where_no_user_says_anything_nothing_can_be_planted(messages: list[Any]) -> None:
    """Results and the model's messages are not the user's own text."""
    form = "anthropic" if messages[0]["role"] == "user" else "openai_chat"
    with pytest.raises(FormatError, match="user's own"):
        plant_canaries(read_recording(messages, format=form), 1)


# Both kinds of recordings.


def test_bodies_get_what_messages_get() -> None:
    """One body for each call says the same as the list of all messages."""
    messages = [*talk(8), user("And now?")]
    calls = read_recording(messages).calls
    bodies = json.loads(json.dumps([{"messages": list(one.messages)} for one in calls]))
    planted = [plant_canaries(read_recording(one), 10, seed=3) for one in (messages, bodies)]
    assert planted[0].canaries == planted[1].canaries
    assert [one.messages for one in planted[0].calls] == [one.messages for one in planted[1].calls]
    assert played(planted[0], newest(6)) == played(planted[1], newest(6))


def test_a_call_without_the_message_is_left_alone() -> None:
    """A program that shortened its history between two calls has other messages at those places."""
    long = {"messages": [user("Old words"), assistant("Yes"), user("More old words")]}
    short = {"messages": [user("Words"), assistant("Yes"), user("More")]}
    planted = plant_canaries(read_recording([long, short]), 5)
    assert {one.at for one in planted.canaries} == {0}
    assert planted.calls[0].messages == long["messages"]
    assert [one.sought for one in played(planted).by_round] == [0, 0, 5, 5, 5]


# What is in view.


@pytest.mark.parametrize(
    ("text", "shown", "is_lost"),
    [
        pytest.param("Never call Bo.", "He said: never call Bo", True, id="another-letter"),
        pytest.param("Never call Bo.", "He said: Never call Bo, please", False, id="without-its-stop"),
        pytest.param("Never call Bo.", "Never\n  call Bo.", False, id="other-white-space"),
        pytest.param("Never call Bo.", "Never, call Bo.", True, id="another-sign"),
        pytest.param("42 EUR", "It costs 420 EUR or 142 EUR", True, id="a-part-of-a-number"),
        pytest.param("42 EUR", "(42 EUR)", False, id="in-brackets"),
        pytest.param("Keep a < b & c", "Keep a &lt; b &amp; c", False, id="escaped"),
        pytest.param("Keep a &lt; b", "Keep a &lt; b", False, id="said-like-an-escape"),
    ],
)
def test_a_text_is_in_view_word_for_word(text: str, shown: str, is_lost: bool) -> None:
    """White space and the escapes of trimtab's marks aside."""
    found = played(only(text), lambda messages: [user(shown), messages[-1]])
    assert found.total == Tally(sought=1, lost=is_lost)
    assert [one.text for one in found.lost] == [text] * is_lost


def test_a_text_is_not_in_view_over_the_border_of_two_messages() -> None:
    """Neither of them says it."""
    found = played(only("Never call Bo."), lambda messages: [user("Never call"), assistant("Bo.")])
    assert found.total.lost == 1


def test_a_summary_that_keeps_values_and_one_that_does_not() -> None:
    """By construction: the model says nothing of what was said, and the line behind its text has values."""
    recording = plant_canaries(read_recording(talk(40)), 20)

    def played_with(must_keep: Any) -> Survival:
        strategy = Summarize(lambda messages: "They talked.", max_summary_tokens=150, must_keep=must_keep)
        return played(recording, strategy, budget=220)

    silent, kept = played_with(None), played_with("values")
    assert kept.by_kind["name"].lost == kept.by_kind["id"].lost == 0
    assert silent.by_kind["name"].lost > 0 < silent.by_kind["id"].lost
    assert kept.by_kind["rule"].lost >= silent.by_kind["rule"].lost > 0


def test_rules_in_a_session_are_lost_when_their_messages_leave() -> None:
    """A plain session shows the newest messages, and nothing of the others."""
    recording = plant_canaries(read_recording(talk(40)), 20)
    views: list[Any] = []

    def make() -> Session:
        views.append(Session(120, counter=WordCounter()))
        return views[0]

    found = played(recording, make, budget=120)
    shown = "\n".join(one["content"] for one in views[0].messages())
    assert 0 < found.total.lost < 20
    assert {one.text for one in found.lost} == {
        one.text for one in recording.canaries if one.text not in shown
    }


def test_a_mark_may_stand_anywhere() -> None:
    """A summary is looked into without its escapes, also in system text."""
    said = marked_summary("Keep a < b.", messages=3)
    recording = only("Keep a < b.")
    found = replay(recording, lambda messages: [system(f"Be brief.\n{said}")], counter=WordCounter())
    assert found.survival.total.lost == 0


# Rounds.


def test_a_round_is_a_fifth_of_the_calls() -> None:
    """Ten calls, each after two more messages: rounds end with 3, 7, 11, 15 and 19 of them."""
    recording = read_recording(talk(10))
    canaries = tuple(Canary(kind="rule", text="It rains again today", at=at) for at in range(0, 19, 2))
    found = played(replace(recording, canaries=canaries))
    assert [one.sought for one in found.by_round] == [2, 4, 6, 8, 10]
    gone = played(replace(recording, canaries=canaries), lambda messages: [user("Hi")])
    assert [one.lost for one in gone.by_round] == [2, 4, 6, 8, 10]


def test_where_nothing_fits_all_is_lost() -> None:
    """A call that is refused shows nothing."""
    found = played(plant_canaries(read_recording(talk()), 10), "default", budget=3)
    assert found.total == Tally(sought=10, lost=10)
    assert found.share == 0


def test_several_recordings_are_summed_by_round_and_kind() -> None:
    """A recording without canaries adds nothing."""
    one = replay(plant_canaries(read_recording(talk()), 5), newest(9), counter=WordCounter())
    two = replay(plant_canaries(read_recording(talk()), 10), newest(9), counter=WordCounter())
    none = replay(talk(), newest(9), counter=WordCounter())
    both = (one + none + two).survival
    assert both.total == one.survival.total + two.survival.total
    assert both.by_kind["id"].sought == 3
    assert both.lost == ()
    assert none.survival.share is None


# What users say.


def test_values_and_rules_of_users_are_found_where_they_are_said_first() -> None:
    """Nothing of a tool, of the model, or of the operator; a rule that another replaces is not sought."""
    messages = [
        system("Never say 9 EUR."),
        user("My budget is $500. Never call me before 9 am. Order ORD-7, please."),
        assistant("Never use TK-12."),
        call("c0"),
        result("c0", "From now on, always use ZZZ-99."),
        user("My budget is $800. Order ORD-7, and say ` ` thanks. Do not search again."),
    ]
    found = find_canaries(read_recording(messages)).canaries
    assert {(one.kind, one.text, one.at) for one in found} == {
        ("value", "$500", 1),
        ("value", "9 am", 1),
        ("value", "ORD-7", 1),
        ("rule", "Never call me before 9 am.", 1),
        ("value", "$800", 5),
        ("limit", "My budget is $800.", 5),
    }


@pytest.mark.parametrize("form", FORMS)
def test_what_users_say_is_found_in_every_form(form: str) -> None:
    """And the results beside it are not."""
    made = get_format(form)
    messages = in_form(form)
    first = next(at for at, one in enumerate(messages) if made.kind(one) == "user")
    [slot] = made.texts(messages[first])
    messages[first] = made.with_texts(messages[first], {slot.path: "Never deploy on Fridays."})
    found = find_canaries(read_recording(messages, format=form)).canaries
    assert [(one.kind, one.at) for one in found if one.kind == "rule"] == [("rule", first)]


def test_a_document_beside_a_users_text_is_not_the_users_own() -> None:
    """What it says is neither planted in nor looked for."""
    source = {"type": "text", "media_type": "text/plain", "data": "Never use TK-12."}
    parts = [{"type": "text", "text": "Never use TK-13."}, {"type": "document", "source": source}]
    recording = read_recording([user(parts), assistant("Yes"), user("Go on")], format="anthropic")
    assert {one.text for one in find_canaries(recording).canaries} == {"TK-13", "Never use TK-13."}
    planted = plant_canaries(recording, 1).messages[0]["content"]
    assert planted[0]["text"].startswith("Never use TK-13.\n\n")
    assert planted[1] == parts[1]


# What is told of it.


def both(canaries: int = 20) -> list[Replayed]:
    """Replay under two policies, one of which loses all but those of the newest nine messages."""
    recording = plant_canaries(read_recording(talk(21)), canaries)
    return [
        replay(recording, policy, name=name, counter=WordCounter())
        for name, policy in (("nine", newest(9)), ("none", None))
    ]


def test_the_table_has_a_column_and_rows_by_round_and_kind() -> None:
    """The last call has 41 messages: of its newest nine, 32, 34, 36 and 38 have a canary."""
    lines = [line.split() for line in replay_table(both()).splitlines()]
    assert lines[0][-1] == "lost"
    assert [line[-1] for line in lines[1:3]] == ["16/20", "0/20"]
    heads = [word for number in "12345" for word in ("round", number)]
    assert lines[4] == ["lost", *heads, *KINDS]
    assert lines[5][5:] == ["16/20", "4/4", "3/4", "3/4", "3/4", "3/4"]
    assert "lost" not in replay_table([replay(talk(), None, counter=WordCounter())])


def test_plain_data_has_kinds_rounds_and_what_is_lost() -> None:
    """As JSON writes it."""
    data = json.loads(json.dumps(both()[0].to_dict()))["survival"]
    assert (data["share"], data["sought"], data["lost"]) == (0.2, 20, 16)
    assert [sum(kind["sought"] for kind in one.values()) for one in data["rounds"]] == [5, 9, 13, 17, 20]
    assert [one["at"] for one in data["canaries_lost"]] == list(range(0, 32, 2))


def test_the_page_says_what_is_lost_and_nothing_of_what_was_said() -> None:
    """A row a policy; numbers alone."""
    found = both()
    page = chart_page({"chat": found})
    assert "Lost of what users say" in page
    assert page.count(">16/20</td>") == 2  # of all, and of round 5
    assert not any(one.text in page for one in found[0].survival.lost)


# Real conversations.


@pytest.mark.parametrize(
    "name",
    ["tau_airline_gpt4o", "swe_agent_trajectories", "glaive_toolcall_zh", "pydantic_ai_chats"],
)
def test_real_recordings_take_canaries(data_dir: Path, name: str) -> None:
    """What a provider would say of them is what it said before; untrimmed, none of twenty is lost."""
    lines = (data_dir / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    for line in lines[:: max(1, len(lines) // 4)][:4]:
        [recording] = read_recordings(json.loads(line)).values()
        planted = plant_canaries(recording, 20, seed=1)
        form = recording.format
        assert validate(planted.messages, format=form) == validate(recording.messages, format=form)
        assert played(planted, budget=10**6).total == Tally(sought=20, lost=0)
        found = find_canaries(recording)
        assert played(found, budget=10**6).total == Tally(sought=len(found.canaries), lost=0)


def test_a_window_loses_what_is_planted_early_in_a_real_chat(data_dir: Path) -> None:
    """At a fifth of its words, of the canaries of the first half none is in view at the end."""
    line = (data_dir / "tau_airline_gpt4o.jsonl").read_text(encoding="utf-8").splitlines()[0]
    [recording] = read_recordings(json.loads(line)).values()
    planted = plant_canaries(recording, 20, seed=1)
    half = len(planted.messages) // 2
    found = replay(planted, newest(len(planted.messages) // 5), counter=WordCounter()).survival
    assert {one.text for one in planted.canaries if one.at < half} <= {one.text for one in found.lost}
    assert 0 < found.total.lost <= 20
