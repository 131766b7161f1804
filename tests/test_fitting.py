"""What `fit` makes of its arguments before anything is decided."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import call, places, result, talk, user
from tests.properties.toy_format import ToyFormat, said
from tests.properties.toy_format import words as spoken
from trimtab import (
    Budget,
    BudgetExceededError,
    ConfigurationError,
    PriorityBased,
    SlidingWindow,
    Summarize,
    TruncateText,
    counter_for,
    fit,
)
from trimtab.counting import CountRequest, measure
from trimtab.errors import CountingError
from trimtab.formats import get_format
from trimtab.models import facts_for
from trimtab.testing import WordCounter

WORDS = WordCounter()
TOY = ToyFormat()
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {}}}]


@pytest.mark.parametrize(("budget", "kept"), [(7, [0, 1, 2]), (6, [2]), (2, [2])])
def test_everything_fits_at_the_limit_itself(budget: int, kept: list[int]) -> None:
    """7 tokens into 7 are kept as they are; into 6 they are cut."""
    messages = talk("u2 a3 u2")
    fitted = fit(messages, budget, counter=WORDS)
    assert places(fitted.messages, messages) == kept
    assert fitted.report.blocks[0].actions == (("kept",) if budget == 7 else ("evicted",))


@pytest.mark.parametrize(("budget", "kept"), [(5, [0, 1, 2, 3]), (4, [0, 1, 3])])
def test_leading_system_messages_are_part_of_the_whole(budget: int, kept: list[int]) -> None:
    """Two of them, one token each."""
    messages = talk("s1 d1 a2 u1")
    fitted = fit(messages, budget, counter=WORDS)
    assert places(fitted.messages, messages) == kept
    assert fitted.report.blocks[0].actions == (("kept",) if budget == 5 else ("evicted",))


def test_system_text_is_pinned_in_front_and_pins_are_the_callers() -> None:
    """Positions given as `pin` are those of the list that was given."""
    messages = talk("a2 a3 a4 u1")
    fitted = fit(messages, 1 + 1 + 3, counter=WORDS, system="be", pin=[1])
    assert fitted.messages == [{"role": "system", "content": "be"}, messages[1], messages[3]]
    assert fitted.report.tokens_after == 5
    assert fitted.report.inserted[0].tokens == 1
    assert [row.tokens_before for row in fitted.count_all().messages] == [2, 3, 4, 1]
    assert fitted.system is None


def test_a_body_brings_its_system_text_tools_and_schema() -> None:
    """Each is counted, and handed back."""
    body = {"model": "m", "messages": talk("u2 a3 u2"), "tools": TOOLS}
    fitted = fit(body, 99, counter=WORDS)
    assert fitted.tools is TOOLS
    assert fitted.report.fixed_tokens == 1
    assert fitted.request == body
    schema = {**body, "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {}}}}
    assert fit(schema, 99, counter=WORDS).report.fixed_tokens == 2


def test_what_a_body_lacks_may_be_given_beside_it_but_not_twice() -> None:
    """Tools here; both at once are an error."""
    body = {"messages": talk("u2")}
    assert fit(body, 99, counter=WORDS, tools=TOOLS).tools is TOOLS
    assert fit(body, 99, counter=WORDS, system="be").messages[0] == {"role": "system", "content": "be"}
    assert fit(body, 99, counter=WORDS, system="be").report.tokens_after == 3
    with pytest.raises(ConfigurationError, match="tools is given twice"):
        fit({**body, "tools": TOOLS}, 99, counter=WORDS, tools=TOOLS)


def test_a_model_that_is_given_goes_before_the_one_a_body_names() -> None:
    """That one is not looked up."""
    body = {"model": "nobody-knows", "messages": talk("u2 a3")}
    fitted = fit(body, 99, model="gpt-4o")
    assert fitted.report.notes == ()
    assert fitted.report.tokens_after == fit(body["messages"], 99, model="gpt-4o").report.tokens_after
    assert "is not known" in fit(body, 99).report.notes[0]
    assert fit(body, 99, counter=WORDS).report.notes == ()
    assert fit({**body, "model": 5}, 99).report.notes == ()
    named = fit({**body, "model": "gpt-4o"}, 99).report
    assert (named.tokens_after, named.counter) == (fitted.report.tokens_after, fitted.report.counter)
    assert fit(body, 99).report.counter != named.counter


def test_system_text_that_a_form_keeps_apart_stays_apart() -> None:
    """It is counted, and handed back beside the messages."""
    body = {"turns": [said("user", spoken("one"))]}
    for given in (body, body["turns"]):
        fitted = fit(given, 99, counter=WordCounter(format=TOY), format=TOY, system="be kind")
        assert fitted.system == "be kind"
        assert len(fitted.messages) == 1
        assert fitted.report.fixed_tokens == 2


def test_a_counter_is_looked_at_before_it_is_asked() -> None:
    """`len` counts messages."""
    with pytest.raises(ConfigurationError, match="counter=len counts messages"):
        fit(talk("u2"), 99, counter=len)


class Picky(WordCounter):
    """Fails on a message whose content is a number."""

    def count_message(self, message: Any, /) -> int:
        """Refuse numbers."""
        if isinstance(message["content"], int):
            raise ZeroDivisionError
        return super().count_message(message)


@pytest.mark.parametrize("repair", [False, True])
def test_what_was_not_counted_is_counted_when_all_is_asked_for(repair: bool) -> None:
    """Its size; or the error, which names the caller's message."""
    messages = [result("Z", "one two"), *talk("u2 a3 " * 30 + "u1")]
    fitted = fit(messages, 9, counter=WORDS, system="be", repair=repair)
    assert "of 62 messages" in repr(fitted)
    assert fitted.report.tokens_before is None
    assert fitted.count_all().tokens_before == 1 + WORDS.count(messages)
    messages[3] = user(5)
    with pytest.raises(CountingError, match=r"message 3\b") as caught:
        fit(messages, 9, counter=Picky(), system="be", repair=repair).count_all()
    assert caught.value.index == 3


@pytest.mark.parametrize("line", ["s1 u2", "u2", "u2 s1"])
def test_tools_beside_leading_system_text_cost_less(line: str) -> None:
    """As a request with both does."""
    counter = counter_for("gpt-4o")
    report = fit(talk(line), 999, counter=counter, tools=TOOLS).report
    assert report.tokens_after == counter.count_request(CountRequest(talk(line), tools=TOOLS))


@pytest.mark.parametrize("messages", ["hello", b"hello", 3, None, {1, 2}, iter([])])
def test_what_is_no_list_of_messages_is_refused(messages: Any) -> None:
    """Text and iterators too: a list that is read twice is needed."""
    with pytest.raises(ConfigurationError, match="messages must be a list"):
        fit(messages, 9, counter=WORDS)


def test_a_tuple_of_messages_will_do() -> None:
    """Any sequence; what comes out is a list of the same objects."""
    messages = tuple(talk("u2 a3"))
    assert fit(messages, 9, counter=WORDS).messages == list(messages)


def test_without_a_budget_the_model_decides() -> None:
    """Its window less its output reserve; unknown is an error that says what to pass."""
    facts = facts_for("gpt-4o")
    room = fit([user("hi")], model="gpt-4o", counter=WORDS).report.input_tokens
    assert facts.window_tokens is not None
    assert 0 < room < facts.window_tokens
    with pytest.raises(ConfigurationError, match="no model is named: pass budget="):
        fit([user("hi")], counter=WORDS)


def test_a_repair_comes_before_pins_and_is_reported() -> None:
    """A pin follows its message; one that left pins nothing; a message that lost a call is changed."""
    messages = [result("Z"), call("A", "B"), result("A", "one two"), user("three"), user("four")]
    fitted = fit(messages, 5, counter=WORDS, repair=True, pin=[1])
    assert [message["role"] for message in fitted.messages] == ["assistant", "tool", "user"]
    rows = fitted.report.messages
    assert [(row.fate, row.reason) for row in rows] == [
        ("evicted", "repair"),
        ("changed", "repair"),
        ("kept", None),
        ("evicted", "over_limit"),
        ("kept", None),
    ]
    assert fit(messages, 3, counter=WORDS, repair=True, pin=[0]).messages == [messages[3], messages[4]]
    with pytest.raises(BudgetExceededError):
        fit(messages, 4, counter=WORDS, repair=True, pin=[1])


def test_a_repair_that_leaves_nothing_says_so() -> None:
    """Unless there was nothing."""
    assert "The repair kept nothing" in fit([result("Z")], 9, counter=WORDS, repair=True).report.notes[0]
    assert fit([], 9, counter=WORDS, repair=True).report.notes == ()


def test_a_result_that_was_moved_is_the_same_object_and_reported() -> None:
    """It comes out behind its call, and its row says that a repair did something to it."""
    messages = [user("q"), call("A"), user("wait"), result("A"), user("go")]
    fitted = fit(messages, 99, counter=WORDS, repair=True)
    assert places(fitted.messages, messages) == [0, 1, 3, 2, 4]
    assert fitted.report.changed_message_count == 1
    assert (fitted.report.messages[3].fate, fitted.report.messages[3].reason) == ("changed", "repair")


def test_the_error_says_the_numbers_and_what_to_change() -> None:
    """Needed, there, and how many are missing."""
    with pytest.raises(BudgetExceededError) as caught:
        fit(talk("u1200"), Budget(1_100, margin=50), counter=WORDS, tools=TOOLS)
    said = str(caught.value)
    assert "at least 1,201 tokens are needed and 1,050 are available, 151 too few" in said
    assert "Raise the budget" in said
    assert caught.value.attempt is not None
    assert len(caught.value.attempt.messages) == 1


def add_tool(form: str) -> list[Any]:
    """Make the tools of a request: one that adds."""
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    return [get_format(form).tool_schema("add", description="Add numbers.", parameters=schema)]


def test_a_responses_request_with_instructions_and_tools_is_held_to_what_it_measures() -> None:
    """Tools cost a token more beside instructions there: the budget that holds it is the measure, no less."""
    body = {
        "model": "gpt-4o",
        "instructions": "Be brief.",
        "input": [{"role": "user", "content": "Hello there."}],
        "tools": add_tool("openai_responses"),
    }
    tokens = measure(body, model="gpt-4o").tokens
    assert fit(body, tokens).report.tokens_after == tokens
    with pytest.raises(BudgetExceededError) as caught:
        fit(body, tokens - 1)
    assert caught.value.needed_tokens == tokens


@pytest.mark.parametrize("form", ["openai_chat", "openai_responses"])
@pytest.mark.parametrize("strategy", [None, SlidingWindow(keep_turns=True), PriorityBased(), TruncateText()])
def test_a_later_system_message_that_comes_to_lead_is_charged_as_one(form: str, strategy: Any) -> None:
    """What leads says what tools cost beside it: at its measure the rest stays, at one less it does not."""
    tools, rest = add_tool(form), talk("s3 u2")
    measured = measure(rest, model="gpt-4o", format=form, tools=tools).tokens
    messages = [*talk("a300"), *rest]
    for budget, kept in ((measured, rest), (measured - 1, rest[1:])):
        fitted = fit(messages, budget, model="gpt-4o", format=form, tools=tools, strategy=strategy)
        if kept is rest or not isinstance(strategy, TruncateText):
            assert fitted.messages == kept
        recount = measure(fitted.messages, model="gpt-4o", format=form, tools=tools)
        assert fitted.report.tokens_after == recount.tokens <= budget


@pytest.mark.parametrize("line", ["u2 a300 s3 u2", "u2 a300 s3 a2"])
@pytest.mark.parametrize("options", [{}, {"pending_calls": ["none"]}])
@pytest.mark.parametrize("strategy", [None, PriorityBased()])
def test_a_system_message_that_something_older_stays_before_does_not_lead(
    line: str, options: dict[str, Any], strategy: Any
) -> None:
    """The one that opened its turn, or the latest of the user: what stays is held to its measure."""
    messages, tools = talk(line), add_tool("openai_chat")
    rest = [messages[0], *messages[2:]]
    tokens = measure(rest, model="gpt-4o", tools=tools).tokens
    for budget in (tokens, tokens - 1):
        fitted = fit(messages, budget, model="gpt-4o", tools=tools, strategy=strategy, **options)
        assert (fitted.messages == rest) == (budget == tokens)
        recount = measure(fitted.messages, model="gpt-4o", tools=tools)
        assert fitted.report.tokens_after == recount.tokens <= budget


@pytest.mark.parametrize("form", ["openai_chat", "openai_responses"])
def test_a_summary_that_comes_to_lead_as_system_text_is_charged_as_such(form: str) -> None:
    """It may be all the system text there is: what tools cost beside it is known before it is taken."""
    tools, strategy = add_tool(form), Summarize(lambda messages: "They said hello.", role="system")
    messages = talk("u200 a300 u2")
    whole = fit(messages, 300, model="gpt-4o", format=form, tools=tools, strategy=strategy)
    tokens = measure(whole.messages, model="gpt-4o", format=form, tools=tools).tokens
    assert [message["role"] for message in whole.messages] == ["system", "user"]
    assert whole.report.tokens_after == tokens
    exact = Summarize(lambda messages: "They said hello.", role="system", max_summary_tokens=tokens)
    again = fit(messages, tokens, model="gpt-4o", format=form, tools=tools, strategy=exact)
    assert again.messages == whole.messages
    less = fit(messages, tokens - 1, model="gpt-4o", format=form, tools=tools, strategy=exact)
    assert less.messages == messages[-1:]


@pytest.mark.parametrize("strategy", [None, PriorityBased(), TruncateText()])
def test_what_fits_beside_a_system_message_that_came_to_lead_stays(strategy: Any) -> None:
    """It is known to lead when what is newer is weighed."""
    rest, tools = talk("s3 a2 u2"), add_tool("openai_chat")
    tokens = measure(rest, model="gpt-4o", tools=tools).tokens
    fitted = fit([*talk("a300"), *rest], tokens, model="gpt-4o", tools=tools, strategy=strategy)
    assert fitted.messages == rest
