"""`Context(read=, write=)`: a framework's own messages in blocks, and the very objects out of them."""

from __future__ import annotations

import asyncio
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import assistant, conversations, user, words
from tests.test_objects import Turn, outcome, read_each, read_list, write
from trimtab import ConfigurationError, Context, Strict, TruncateText
from trimtab.errors import FormatError, UnknownNameError
from trimtab.policy import policy_data
from trimtab.testing import WordCounter

WORDS = WordCounter()
TEXTS = ("Be brief.", {"text": "See this.", "attachments": []})


def fill(context: Context, blocks: list[list[Any]]) -> Context:
    """Put texts and messages in blocks of several ranks and places."""
    context.add("system", TEXTS[0], priority=9, strategy=Strict())
    for at, content in enumerate(blocks):
        context.add(str(at), content, priority=at, position=-at if at % 2 else None)
    return context.add("notes", [TEXTS[1]], priority=5)


@given(st.lists(conversations(), min_size=1, max_size=3), st.integers(1, 80), st.data())
def test_it_is_the_fit_of_the_messages_mapped_back(
    blocks: list[list[Any]], limit: int, data: st.DataObject
) -> None:
    """The same as a `Context` of the wire messages leaves, object by object; texts become objects, too."""
    several = data.draw(st.booleans(), label="several messages in an object")
    size = data.draw(st.integers(2, 3)) if several else 1
    turns = [[Turn(tuple(one[at : at + size])) for at in range(0, len(one), size)] for one in blocks]
    try:
        plain = outcome(fill(Context(limit, counter=WORDS), blocks).fit)
    except ConfigurationError:
        with pytest.raises(ConfigurationError, match="holds the result of call"):
            fill(Context(limit, counter=WORDS, read=read_list, write=write), turns).fit()
        return
    read = read_list if several else read_each
    made = outcome(fill(Context(limit, counter=WORDS, read=read, write=write), turns).fit)
    assert [message for turn in made.messages for message in turn.said] == plain.messages
    assert made.report.tokens_after == plain.report.tokens_after
    for at, content in enumerate(turns):
        places = made.positions_in(str(at)) if content else []
        for where, place in enumerate(places):
            if place is not None and where not in made.changed:
                assert made.messages[where] is content[place]
    there = [one for content in turns for one in content]
    stay = {id(one) for one in made.messages}
    assert all(id(one) not in stay for one in made.evicted if one in there)


def _talk() -> list[Turn]:
    return [Turn((user(words(6)), assistant(words(6)))) for _ in range(5)]


def test_a_context_gives_back_the_very_objects() -> None:
    """A text is made an object; what is shortened is a copy; positions count in the list of the block."""
    turns, note = _talk(), Turn((user(words(60)),))
    context = Context(40, counter=WORDS, read=read_list, write=write)
    context.add("system", "Be brief.", priority=9, strategy=Strict())
    context.add("notes", [note], priority=5, max_tokens=15, strategy=TruncateText())
    context.add("history", turns, priority=1)
    fitted = context.fit()
    assert fitted.messages[0].said[0]["content"] == "Be brief."
    assert fitted.changed == [1]
    assert len(fitted.messages[1].said[0]["content"]) < len(note.said[0]["content"])
    assert fitted.messages[-1] is turns[-1]
    assert fitted.positions_in("history")[2:] == list(range(7 - len(fitted.messages), 5))
    assert fitted.positions_in("notes")[1] == 0
    assert fitted.evicted == turns[: 7 - len(fitted.messages)]
    assert len(fitted.at(400).messages) == 7
    assert asyncio.run(context.afit()).messages[2:] == fitted.messages[2:]
    assert pickle.loads(pickle.dumps(fitted)).positions == fitted.positions
    with pytest.raises(UnknownNameError, match="no block with messages"):
        fitted.positions_in("other")


def test_labels_are_those_of_the_objects() -> None:
    """An object of two messages gives both rows its word."""
    context = Context(400, counter=WORDS, read=read_list, write=write)
    context.add("history", _talk()[:2], labels=["first", "second"])
    rows = context.fit().report.messages
    assert [row.label for row in rows] == ["first", "first", "second", "second"]


def test_what_is_put_in_may_have_no_place_in_the_framework() -> None:
    """A text that `write` makes nothing of is left out; what is there stays."""
    turns = _talk()
    context = Context(
        400, counter=WORDS, read=read_list, write=lambda turn, messages: turn and write(turn, messages)
    )
    context.add("system", "Be brief.").add("history", turns)
    assert context.fit().messages == turns


def test_what_a_reader_gives_is_named_by_its_block() -> None:
    """The block, and the entry in it."""
    context = Context(40, counter=WORDS, read=lambda turn: 5, write=write)
    context.add("notes", "See.").add("history", _talk())
    with pytest.raises(FormatError, match=r"block 'history'.*objects\[0\]"):
        context.fit()


@pytest.mark.parametrize("given", [{"read": read_each}, {"write": write}, {"read": 5, "write": write}])
def test_both_are_given_and_are_functions(given: dict[str, Any]) -> None:
    """Whoever reads an object has to say how one is written."""
    with pytest.raises(ConfigurationError, match="read= and write= must be passed together"):
        Context(40, counter=WORDS, **given)


def test_a_context_of_objects_is_cloned_with_them_and_is_no_policy() -> None:
    """A file holds no functions."""
    turns = _talk()
    context = Context(400, model="gpt-4o", read=read_list, write=write).add("history", turns)
    assert context.clone(budget=300).fit().messages == turns
    with pytest.raises(ConfigurationError, match="read= and write= are functions"):
        policy_data(context)


def test_documents_that_were_joined_did_not_leave() -> None:
    """They are in one object, which is none of those given."""
    context = Context(400, counter=WORDS, read=read_list, write=write)
    context.add("documents", ["Tea is a drink.", "So is milk."], join="\n").add("history", _talk()[:1])
    fitted = context.fit()
    assert fitted.messages[0].said[0]["content"] == "Tea is a drink.\nSo is milk."
    assert (fitted.positions, fitted.evicted) == ([None, 2], [])
