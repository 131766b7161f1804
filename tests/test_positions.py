"""Where the messages of an output were in the input, and which of them trimtab changed."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.builders import assistant, call, result, system, talk, user, words
from tests.properties.cases import GAPS, STRATEGIES, SUMMARIES
from trimtab import BudgetExceededError, CharCounter, Context, Session, SlidingWindow, fit
from trimtab.errors import InvalidHistoryError, UnknownNameError
from trimtab.formats import formats, get_format
from trimtab.testing import WordCounter, request_bodies

WORDS = WordCounter()


class Tag(str):
    """A role that knows of which message it is: every copy keeps it, and no form refuses it as a field."""

    n: int


def tagged(messages: list[Any]) -> list[Any]:
    """Say in the role of each message which it is."""
    made = []
    for n, message in enumerate(messages):
        role = Tag(message.get("role", "user"))
        role.n = n
        made.append({**message, "role": role})
    return made


def tag(message: Any) -> int | None:
    """Tell which message of the input this one is, or was made of; None: it is none of them."""
    return getattr(message["role"], "n", None)


def attempt(messages: Any, limit: int, **how: Any) -> Any:
    """Fit, or return what came nearest."""
    try:
        return fit(messages, limit, **how)
    except BudgetExceededError as error:
        return error.attempt
    except InvalidHistoryError:  # the provider would refuse what stays, and no repair makes it good
        assume(False)


@pytest.mark.parametrize("name", formats())
@given(data=st.data())
def test_each_message_says_where_it_was_and_whether_it_is_the_same(name: str, data: st.DataObject) -> None:
    """In every form, for every strategy, repaired or not: by a tag that each message carries."""
    body = request_bodies(
        1, format=name, seed=data.draw(st.integers(0, 99_999)), valid=data.draw(st.booleans())
    )
    messages = tagged(body[0][get_format(name).rules.body_key])
    counter = WordCounter(format=name)
    counts = data.draw(st.sampled_from((counter, counter.count)))
    limit = max(1, counter.count(messages) * data.draw(st.integers(1, 110)) // 100)
    fitted = attempt(
        messages,
        limit,
        counter=counts,
        strategy=data.draw(st.sampled_from((*STRATEGIES, *SUMMARIES, *GAPS))),
        format=name,
        repair=data.draw(st.booleans()),
        system=data.draw(st.sampled_from((None, "be brief"))),
    )
    assert fitted.positions == [tag(message) for message in fitted.messages]
    assert fitted.positions_in("history") == fitted.positions
    pairs = enumerate(zip(fitted.messages, fitted.positions, strict=True))
    assert fitted.changed == [at for at, (m, was) in pairs if was is not None and m is not messages[was]]
    twin = pickle.loads(pickle.dumps(fitted))
    assert (twin.positions, twin.changed) == (fitted.positions, fitted.changed)
    assert twin.positions_in("history") == fitted.positions


def test_a_message_given_twice_is_two() -> None:
    """The same object in several places: each place has its own index."""
    ping = user("ping")
    fitted = fit([ping, assistant("a"), ping, assistant("b"), ping], 4, counter=WORDS)
    assert fitted.positions == [2, 3, 4]
    assert all(message is ping for message in fitted.messages[::2])
    assert fitted.changed == []


def test_what_trimtab_put_in_has_no_index() -> None:
    """System text that became a message was not in the list."""
    fitted = fit(talk("u5 a5 u1"), 4, counter=WORDS, system="be brief")
    assert (fitted.positions, fitted.changed) == ([None, 2], [])


def test_marks_change_a_message_and_not_its_place() -> None:
    """A message marked for a prompt cache is another object."""
    talked = [user([{"type": "text", "text": "hi"}]), assistant("so"), user("go on")]
    fitted = fit(talked, 100, counter=WordCounter(format="anthropic"), format="anthropic", breakpoints=True)
    assert fitted.positions == [0, 1, 2]
    assert fitted.changed
    assert all(fitted.messages[at] != talked[at] for at in fitted.changed)


def test_a_body_is_counted_in_its_list_of_messages() -> None:
    """The index is that in the list a request body holds, whatever stands beside it."""
    body = {"model": "gpt-4o", "messages": talk("s1 u9 a1 u1"), "max_tokens": 9}
    assert fit(body, 5, counter=WORDS).positions == [0, 3]


def test_a_callback_that_removes_leaves_the_places() -> None:
    """What a callback took out is missing, and what stays is where it was."""
    fitted = fit(talk("u1 a1 u1 a1 u1"), 9, counter=WORDS, on_trim=lambda trim: trim.remove(1))
    assert fitted.positions == [0, 2, 3, 4]
    blocks = Context(9, counter=WORDS, on_trim=lambda trim: trim.remove(3))
    blocks.add("notes", talk("u1 a1")).add("history", talk("u1 a1 u1"))
    assert blocks.fit().positions == [0, 1, 2, 4]


def test_what_a_repair_moved_has_its_old_place_and_is_not_changed() -> None:
    """A late result stands behind its call, and is the very object."""
    late = [user(), call("A"), user("wait"), result("A"), user()]
    fitted = fit(late, 99, counter=WORDS, repair=True)
    assert fitted.positions == [0, 1, 3, 2, 4]
    assert fitted.changed == []


def test_blocks_are_counted_as_the_rows_of_the_report() -> None:
    """In the order of the request, and block by block for who filled one of them."""
    history, extra = talk("u3 a2 u1"), {"role": "user", "content": "also"}
    made = Context(9, counter=WORDS, system="be kind")
    made.add("late", extra, role="assistant").add("documents", ["one", "two"], join="\n", position=2)
    made.add("history", history, position=3).add("rules", "be brief", position=1)
    fitted = made.fit()
    said = ["be kind", "be brief", "one\ntwo", "w", "also"]
    assert [message["content"] for message in fitted.messages] == said
    assert fitted.positions == [None, 0, None, 5, 6]
    blocks = [fitted.report.messages[at].block for at in fitted.positions if at is not None]
    assert blocks == ["rules", "history", "late"]
    assert fitted.positions_in("history") == [None, None, None, 2, None]
    assert fitted.changed == [4]
    twin = copy.copy(fitted)
    assert (twin.positions_in("history"), twin.changed) == ([None, None, None, 2, None], [4])
    for one in (fitted, twin):
        with pytest.raises(UnknownNameError, match="did you mean history"):
            one.positions_in("histroy")


def test_system_text_that_is_lifted_out_of_the_messages_has_no_place_there() -> None:
    """Where the provider wants system text beside the messages, these are told alone."""
    made = Context(99, counter=WordCounter(format="anthropic"), format="anthropic")
    fitted = made.add("system", "be brief").add("history", talk("u1 a1 u1")).fit()
    assert (fitted.positions, fitted.positions_in("history")) == ([1, 2, 3], [0, 1, 2])


def test_objects_that_nothing_changed_are_the_very_objects() -> None:
    """Objects of an SDK come out themselves; one that was shortened is a copy of its class."""
    chat = pytest.importorskip("openai.types.chat")
    one = chat.ChatCompletionMessage(role="assistant", content=words(40))
    other = chat.ChatCompletionMessage(role="assistant", content="short")
    given = [user("a"), one, user("b"), other, user("c")]
    whole = fit(given, 999, counter=WORDS)
    assert all(m is g for m, g in zip(whole.messages, given, strict=True))
    assert (whole.positions, whole.changed) == ([0, 1, 2, 3, 4], [])
    cut = fit(given, 20, counter=WORDS, strategy="truncate_text")
    assert cut.changed == [cut.positions.index(1)]
    assert cut.messages[cut.positions.index(3)] is other
    assert [message is one for message in fit(given, 4, counter=WORDS).evicted] == [False, True]
    assert type(cut.messages[cut.changed[0]]) is type(one)


def test_a_view_of_a_session_is_told_by_the_rows_of_its_report() -> None:
    """What the session listed is the input: nothing of it is put in by the fit."""
    session = Session(budget=100, counter=WORDS, system="be brief")
    for message in talk("u30 a30 u30 a30 u20"):
        session.add(message)
    fitted = session.fit()
    kept = [row.index for row in fitted.report.messages if row.fate != "evicted"]
    assert fitted.positions == kept
    assert fitted.changed == []


def test_other_budgets_have_places_of_their_own() -> None:
    """`at` fits again: its result tells its own."""
    fitted = fit(talk("u2 a2 u2 a2 u2"), 10, counter=WORDS, strategy=SlidingWindow())
    assert (fitted.positions, fitted.at(5).positions) == ([0, 1, 2, 3, 4], [4])


def test_leading_system_text_stays_where_it_was() -> None:
    """The kept front and the kept end are not neighbours in the input."""
    fitted = fit([system("s"), *talk("u5 a5 u1")], 3, counter=CharCounter(1))
    assert fitted.positions == [0, 3]
