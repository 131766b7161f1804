"""Rules of the host: in every request word for word, within the budget, or an error names them."""

from __future__ import annotations

import asyncio
import json
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab import Budget, CharCounter, Context, Fitted, Session, TrimContext, afit, fit, validate
from trimtab.counting import FixedCounter
from trimtab.errors import BudgetExceededError, ConfigurationError
from trimtab.formats import formats, get_format, mapping_of
from trimtab.policy import load_policy, policy_data
from trimtab.report import Report
from trimtab.testing import WordCounter, request_bodies

RULES = ["Never deploy on Fridays.", "Write <b> for bold & nothing else."]
OTHER = ["Never speak of prices."]
every_form = pytest.mark.parametrize("form", formats())


def say(form: str, role: str, text: str) -> dict[str, Any]:
    """Write a message of one text."""
    return get_format(form).message("model" if (form, role) == ("gemini", "assistant") else role, [text])


def chat(form: str, count: int = 21) -> list[Any]:
    """Make a conversation of a form; where system text stands among messages, it begins with some."""
    messages = [say(form, "user" if at % 2 == 0 else "assistant", f"word {at} of it") for at in range(count)]
    return [say(form, "system", "Be brief.")] * (form == "openai_chat") + messages


def texts(form: str, messages: list[Any]) -> list[str]:
    """List what messages say; of trimtab's own as it was before it was escaped."""
    read = get_format(form)
    return [unescape(" ".join(slot.text for slot in read.texts(mapping_of(one)))) for one in messages]


def shown(form: str, messages: list[Any], rules: list[str] = RULES) -> list[int]:
    """List which messages show all rules, a line each."""
    lines = [f"- {rule}" for rule in rules]
    return [at for at, text in enumerate(texts(form, messages)) if set(lines) <= set(text.splitlines())]


def adds_up(report: Report) -> bool:
    """Tell whether the parts of a report come to its total."""
    rows = sum(row.tokens_after or 0 for row in report.messages)
    return report.fixed_tokens + rows + sum(row.tokens for row in report.inserted) == report.tokens_after


@every_form
def test_they_stand_behind_the_system_text_and_are_charged(form: str) -> None:
    """One message, at the front or behind the system message; it is a row of the report."""
    fitted = fit(chat(form), 60, counter=CharCounter(), format=form, rules=RULES)
    front = int(form == "openai_chat")
    assert shown(form, fitted.messages) == [front]
    assert fitted.positions[front] is None
    plain = fit(chat(form), 60 - fitted.report.rules_tokens, counter=CharCounter(), format=form)
    assert fitted.messages[front + 1 :] == plain.messages[front:]
    assert fitted.tokens_after == plain.tokens_after + fitted.report.rules_tokens <= 60
    (row,) = fitted.report.inserted
    assert (row.position, row.tokens, row.why) == (front, fitted.report.rules_tokens, "rules of the host")
    assert adds_up(fitted.report)
    assert f"rules {row.tokens}" in str(fitted.report)
    assert Report.from_dict(fitted.report.to_dict()).rules_tokens == row.tokens


@every_form
def test_what_was_fitted_is_fitted_again_as_it_is(form: str) -> None:
    """The output is stored as history: rules stand in it once, and the very object stays."""
    counter = CharCounter()
    first = fit(chat(form), 60, counter=counter, format=form, rules=RULES).messages
    again = fit([*first, say(form, "assistant", "yes")], 999, counter=counter, format=form, rules=RULES)
    assert [id(one) for one in again.messages[:-1]] == list(map(id, first))
    assert again.positions == list(range(len(first) + 1))
    assert not again.changed
    assert not again.evicted
    assert not again.report.inserted
    assert again.report.rules_tokens
    assert adds_up(again.report)


@every_form
def test_other_rules_take_the_place_of_the_stored_ones(form: str) -> None:
    """What was written before is a changed message; the place is the same."""
    first = fit(chat(form), 60, counter=CharCounter(), format=form, rules=RULES).messages
    again = fit(first, 999, counter=CharCounter(), format=form, rules=OTHER)
    front = int(form == "openai_chat")
    assert (shown(form, again.messages), shown(form, again.messages, OTHER)) == ([], [front])
    assert again.changed == [front]
    assert [row.reason for row in again.report.messages if row.fate != "kept"] == ["rules"]
    assert f"rules {again.report.rules_tokens}" in again.report.to_text()
    assert adds_up(again.report)


def test_a_message_that_only_resembles_the_block_is_the_users_own() -> None:
    """Text around the mark, or the mark further back: nobody replaces it."""
    block = '<rules by="trimtab">\n- Always obey.\n</rules>'
    messages = [
        say("openai_chat", "user", f"Look: {block}"),
        say("openai_chat", "assistant", "no"),
        say("openai_chat", "user", block),
    ]
    fitted = fit(messages, 999, counter=CharCounter(), rules=RULES)
    assert fitted.messages[1:] == messages


@pytest.mark.parametrize("rules", [None, [], ()])
def test_no_rules_are_no_message(rules: Any) -> None:
    """Nothing is added, and nothing is charged."""
    fitted = fit(chat("openai_chat"), 60, counter=CharCounter(), rules=rules)
    assert fitted.messages == fit(chat("openai_chat"), 60, counter=CharCounter()).messages
    assert fitted.report.rules_tokens == 0


@pytest.mark.parametrize("rules", ["Never.", [""], [3], 7, {"a"}])
def test_what_are_no_rules_is_refused(rules: Any) -> None:
    """By `fit`, where it is called, and by a Context, where it is made."""
    with pytest.raises(ConfigurationError, match="rule"):
        fit(chat("openai_chat"), 60, counter=CharCounter(), rules=rules)
    with pytest.raises(ConfigurationError, match="rule"):
        Context(60, counter=CharCounter(), rules=rules)


def test_a_line_that_closes_the_mark_stays_a_rule() -> None:
    """It is escaped: there is one end, and one block."""
    rules = ["Say </rules> and <rules>.", "Second."]
    fitted = fit(chat("openai_chat"), 99, counter=CharCounter(), rules=rules)
    assert fitted.messages[1]["content"].count("</rules>") == 1
    assert shown("openai_chat", fitted.messages, rules) == [1]


def _fit_chat(room: int) -> Fitted[Any]:
    return fit(chat("openai_chat"), room, counter=CharCounter(), rules=RULES)


def _fit_blocks(room: int) -> Fitted[Any]:
    return Context(room, counter=CharCounter(), rules=RULES).add("h", chat("openai_chat")).fit()


def test_the_error_names_them_with_their_tokens() -> None:
    """By `fit` and by a Context, if there is room for the rest or not."""
    tokens = fit(chat("openai_chat"), 999, counter=CharCounter(), rules=RULES).report.rules_tokens
    for budget in (5, 12, 22):
        for call in (_fit_chat, _fit_blocks):
            with pytest.raises(BudgetExceededError, match=f"The rules take {tokens} tokens") as raised:
                call(budget)
            assert all(rule in str(raised.value) for rule in RULES)


def test_a_growing_chat_keeps_its_prefix() -> None:
    """With strides the block and what follows stay as they were until the next cut."""
    before: list[Any] = []
    breaks, messages = 0, chat("anthropic", 1)
    for at in range(1, 60):
        messages += [say("anthropic", "assistant", f"yes {at}"), say("anthropic", "user", f"and {at}?")]
        now = fit(messages, 120, counter=CharCounter(), format="anthropic", rules=RULES, steady=True).messages
        assert shown("anthropic", now) == [0]
        breaks += now[: len(before)] != before
        before = now
    assert 0 < breaks < 12


def test_a_mark_for_the_prompt_cache_may_stand_on_them() -> None:
    """They stay when others leave: a prefix that ends with them is one that every call has."""
    options: dict[str, Any] = {"counter": CharCounter(), "format": "anthropic", "rules": RULES}
    fitted = fit(chat("anthropic", 41), 90, breakpoints=True, **options)
    assert "cache_control" in json.dumps(fitted.messages[0])
    again = fit(fitted.messages, 999, **options)
    assert again.messages[0] is fitted.messages[0]


def test_another_budget_a_callback_and_a_repair_show_them_too() -> None:
    """`at` takes the same rules; a callback does not see them, and removes all else."""
    options: dict[str, Any] = {"counter": CharCounter(), "rules": RULES}
    fitted = fit(chat("openai_chat"), 60, **options)
    assert shown("openai_chat", fitted.at(90).messages) == [1]
    seen: list[int] = []

    def remove(context: TrimContext) -> None:
        seen.append(len(context.messages))
        context.remove([one["seq"] for one in context.message_elements if one["role"] != "system"][:-1])

    trimmed = fit(chat("openai_chat"), 999, on_trim=remove, **options)
    assert texts("openai_chat", trimmed.messages)[0] == "Be brief."
    assert shown("openai_chat", trimmed.messages) == [1]
    assert seen == [22]
    assert len(trimmed.messages) == 3
    broken = [*chat("openai_chat"), {"role": "tool", "tool_call_id": "x", "content": "4"}]
    stored = fit(broken, 999, repair=True, **options)
    assert shown("openai_chat", stored.messages) == [1]
    assert stored.messages == fit(stored.messages, 999, repair=True, **options).messages


def test_afit_and_objects_show_them() -> None:
    """An awaited counter charges for them; a framework's own message is written."""

    async def count(messages: list[Any]) -> int:
        return sum(len(str(one)) for one in messages)

    fitted = asyncio.run(afit(chat("openai_chat"), 1_200, counter=count, rules=RULES))
    assert shown("openai_chat", fitted.messages) == [1]
    assert fitted.tokens_after == sum(len(str(one)) for one in fitted.messages) <= 1_200
    lines: list[str] = [f"line {at}" for at in range(20)]

    def write(line: str | None, wire: list[dict[str, Any]]) -> str:
        return wire[0]["content"]

    options: dict[str, Any] = {
        "counter": CharCounter(),
        "format": "openai_chat",
        "rules": RULES,
        "read": lambda line: {"role": "system" if line.startswith("<") else "user", "content": line},
        "write": write,
    }
    found = fit(lines, 60, **options)
    assert found.messages[0].startswith("<rules")
    assert found.messages[1:] == lines[-len(found.messages) + 1 :]
    again = fit(found.messages, 999, **options)
    assert again.messages == found.messages
    assert not again.changed


@every_form
@pytest.mark.parametrize("system", [None, "You are kind."])
def test_a_context_shows_them_behind_its_system_text(form: str, system: str | None) -> None:
    """In front of every other block, in no block of the user's, and once where they were stored."""
    context = Context(99, counter=CharCounter(), format=form, system=system, rules=RULES)
    if system is None:
        context.add("system", "You are kind.", pinned=True)
    context.add("documents", ["Tea is a drink."], priority=-1).add("history", chat(form)[-21:])
    fitted = context.fit()
    (at,) = shown(form, fitted.messages)
    heads = [get_format(form).kind(mapping_of(one)) for one in fitted.messages[:at]]
    assert heads == ["system"] * len(heads)
    assert fitted.positions[at] is None
    assert adds_up(fitted.report)
    assert fitted.tokens_after <= 99
    assert shown(form, context.fit(150).messages) == [at]
    store = Context(999, counter=CharCounter(), format=form, rules=RULES).add("history", fitted.messages)
    again = store.fit()
    assert again.messages == fitted.messages
    assert not again.changed
    assert adds_up(again.report)
    other = store.clone(rules=OTHER).fit()
    assert (shown(form, other.messages), shown(form, other.messages, OTHER)) == ([], [at])
    assert shown(form, store.clone(rules=[]).fit().messages) == [at]  # a message like any other


def test_a_session_in_a_context_has_them_in_its_room() -> None:
    """The view is within the budget of the Context, and shows them before its summary."""
    context = Context(90, counter=CharCounter(), system="Be good.", rules=RULES)
    session = Session(context=context, summarizer=lambda messages: "short")
    for message in chat("openai_chat", 61)[1:]:
        session.add(message)
        if message["role"] == "user":
            view = session.messages()
            assert shown("openai_chat", view) == [1]
            assert CharCounter().count(view) <= 90


def _fitted_or_error(
    messages: list[Any], limit: int, options: dict[str, Any]
) -> Fitted[Any] | BudgetExceededError:
    try:
        return fit(messages, limit, **options)
    except BudgetExceededError as error:
        return error


@every_form
@given(data=st.data())
def test_whatever_is_fitted_has_each_rule_or_an_error_names_it(form: str, data: st.DataObject) -> None:
    """Random bodies, budgets, counters, strategies and rules: word for word, within the budget, and valid."""
    body = request_bodies(1, format=form, seed=data.draw(st.integers(0, 9_999)), valid=True)[0]
    messages = body[get_format(form).rules.body_key]
    words = WordCounter(format=form)
    counter = data.draw(
        st.sampled_from([words, CharCounter(format=form), FixedCounter(3, 2, 5), words.count])
    )
    line = st.text(st.characters(blacklist_categories=("Cs", "Cc", "Zl", "Zp")), min_size=1, max_size=30)
    rules = data.draw(st.lists(line.filter(str.strip).map(str.strip), min_size=1, max_size=4, unique=True))
    strategy = data.draw(st.sampled_from([None, "sliding_window", "agent", "drop_newest"]))
    limit = data.draw(st.integers(1, 400))
    options: dict[str, Any] = {"counter": counter, "format": form, "strategy": strategy, "rules": rules}
    fitted = _fitted_or_error(messages, limit, options)
    if isinstance(fitted, BudgetExceededError):
        assert "The rules take" in str(fitted)
        assert all(rule[:80] in str(fitted) for rule in rules)
        return
    assert fitted.tokens_after <= limit
    assert len(shown(form, fitted.messages, rules)) >= 1
    before = {one.rule for one in validate(messages, format=form) if one.fault}
    assert {one.rule for one in validate(fitted.messages, format=form) if one.fault} <= before
    assert fit(fitted.messages, limit, **options).messages == fitted.messages


def test_a_policy_has_them(tmp_path: Path) -> None:
    """As data and back, in TOML, and refused where they are none."""
    context = Context(60, counter="chars:4", rules=RULES).add("history", [])
    data = policy_data(context)
    assert data["rules"] == RULES
    assert policy_data(load_policy(data)) == data
    assert "rules" not in policy_data(Context(60).add("history", []))
    path = tmp_path / "policy.toml"
    path.write_text('rules = ["Never."]\n[[blocks]]\nname = "history"\n', encoding="utf-8")
    assert load_policy(path).policy.rules == ("Never.",)
    for wrong in ("Never.", [""], [3]):
        with pytest.raises(ConfigurationError, match="rules"):
            load_policy({"rules": wrong, "blocks": [{"name": "history"}]})


def test_the_budget_may_have_a_reserve() -> None:
    """The room for input is what they have to fit into."""
    room = Budget(100, output_reserve=40)
    fitted = fit(chat("openai_chat"), room, counter=CharCounter(), rules=RULES)
    assert fitted.tokens_after <= 60


def _black_box(messages: list[Any]) -> int:
    """Count the words of a whole list, and nothing else."""
    return sum(len(text.split()) for text in texts("openai_chat", messages))


@pytest.mark.parametrize("in_blocks", [False, True])
@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("room", [22, 30, 99])
def test_their_share_of_a_black_box_adds_up(in_blocks: bool, stored: bool, room: int) -> None:
    """Nobody says what they take alone: they and the messages share the total."""
    given = chat("openai_chat", 5)
    given = fit(given, 99, counter=_black_box, rules=RULES).messages if stored else given
    context = Context(room, counter=_black_box, rules=RULES).add("h", given)
    fitted = context.fit() if in_blocks else fit(given, room, counter=_black_box, rules=RULES)
    report = fitted.report
    assert report.tokens_after == _black_box(fitted.messages) <= room
    assert adds_up(report)
    assert report.rules_tokens > 0
    assert any(row.tokens_after for row in report.messages if not (stored and row.index == 1))


@every_form
def test_stored_in_a_later_block_they_are_shown_once(form: str) -> None:
    """And charged once: an earlier fit wrote them at the head of what is one block now."""
    options: dict[str, Any] = {"counter": CharCounter(), "format": form, "rules": RULES}
    stored = fit(chat(form), 999, **options).messages
    context = Context(999, **options).add("documents", ["Tea is a drink."]).add("history", stored)
    fitted = context.fit()
    assert len(shown(form, fitted.messages)) == 1
    assert len(fitted.messages) == len(stored) + 1
    assert not fitted.report.inserted
    assert adds_up(fitted.report)
    assert context.clone(rules=OTHER).fit().changed == [0]
    assert sum(str(one).count("Never deploy") for one in context.clone(rules=OTHER).fit().messages) == 0


@pytest.mark.parametrize("of_block", [False, True])
def test_a_callback_of_a_context_does_not_see_stored_rules(of_block: bool) -> None:
    """It sees all others under their own numbers, and removes what it names."""
    options: dict[str, Any] = {"counter": CharCounter(), "rules": RULES}
    stored = fit(chat("openai_chat", 5), 999, **options).messages
    seen: list[Any] = []

    def remove(context: TrimContext) -> None:
        seen.extend((one.seq, one.message) for one in context.message_elements)
        context.remove([1, 2] if of_block else [1, 2, 3])

    context = Context(999, **options, on_trim=None if of_block else remove).add("documents", ["Tea."])
    fitted = context.add("history", stored, on_trim=remove if of_block else None).fit()
    first = 0 if of_block else 1
    assert [one for one in seen if one[0] >= first] == [
        (first + at, message) for at, message in enumerate(stored) if at != 1
    ]
    assert len(shown("openai_chat", fitted.messages)) == 1
    gone = [2] if of_block else [0, 2]
    assert [one for at, one in enumerate(stored) if at in gone and at and one in fitted.messages] == []
    assert adds_up(fitted.report)


@pytest.mark.parametrize("form", ["openai_chat", "openai_responses"])
@pytest.mark.parametrize("role", ["developer", "system"])
def test_they_have_the_role_of_the_system_text_in_front(form: str, role: str) -> None:
    """Some models refuse a request that has both words for it."""
    messages = [say(form, role, "Be brief."), say(form, "user", "Hello")]
    options: dict[str, Any] = {"counter": CharCounter(), "format": form, "rules": RULES}
    fitted = fit(messages, 999, **options)
    assert [one["role"] for one in fitted.messages] == [role, role, "user"]
    assert fit(fitted.messages, 999, **options).messages == fitted.messages
    assert Context(999, **options).add("h", messages).fit().messages == fitted.messages


def test_rules_that_differ_in_spaces_are_one() -> None:
    """They are shown without the spaces around them."""
    fitted = fit(chat("openai_chat"), 99, counter=CharCounter(), rules=["A rule", "A rule ", "\tA rule"])
    assert fitted.messages[1]["content"].count("A rule") == 1
    assert len(Session(199, rules=["A rule", " A rule"]).rules) == 1


@pytest.mark.parametrize("before", [0, 2])
@pytest.mark.parametrize("more", [0, 1, 3])
def test_behind_a_compaction_they_are_read(before: int, more: int) -> None:
    """Before the first words of the user behind it, or behind the first results of tools."""
    call = {"type": "tool_use", "id": "a", "name": "f", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "a", "content": "4"}
    tail = [say("anthropic", "assistant", "So."), say("anthropic", "user", "Go on."), chat("anthropic")[1]]
    messages = [
        *chat("anthropic")[:before],
        {"role": "assistant", "content": [{"type": "compaction", "content": "so far"}, call]},
        {"role": "user", "content": [result]},
        *tail[:more],
    ]
    options: dict[str, Any] = {"counter": CharCounter(), "format": "anthropic", "rules": RULES}
    fitted = fit(messages, 999, **options)
    assert shown("anthropic", fitted.messages) == [before + 2]
    assert fitted.messages == Context(999, **options).add("h", messages).fit().messages
    assert not [one for one in validate(fitted.messages, format="anthropic") if one.fault]
    again = fit(fitted.messages, 999, breakpoints=True, **options)
    assert shown("anthropic", again.messages) == [before + 2]


def test_behind_a_compaction_no_mark_stands_where_nothing_is_read() -> None:
    """So what was fitted is fitted again as it is."""
    body = request_bodies(1, format="anthropic", seed=198_869, valid=True)[0]
    options: dict[str, Any] = {
        "counter": CharCounter(),
        "format": "anthropic",
        "rules": RULES,
        "breakpoints": True,
    }
    first = fit(body["messages"], 372, **options).messages
    assert fit(first, 372, **options).messages == first
