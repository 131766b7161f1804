"""What is often written by mistake at the front doors: the error says what to write."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import trimtab
from tests.builders import assistant, user
from trimtab import Budget, ConfigurationError, Context, Session, fit, validate
from trimtab.counting import FixedCounter, counter_from_text, counter_from_tokenizer
from trimtab.errors import FormatError

TEN = FixedCounter(10)
TALK = [user("one"), assistant("two"), user("three")]
MADE: Any = fit(TALK, 20, counter=TEN)
"""Without its types: what is looked for is not there."""


def fitted(messages: Any, budget: Any = 99, **options: Any) -> Any:
    """Fit at ten tokens a message."""
    options.setdefault("counter", TEN)
    return fit(messages, budget, **options)


class Tokenizer:
    """One as tiktoken's: it splits a text, takes nothing else, and can be told by `encode`."""

    def encode(self, text: str) -> list[int]:
        """Split a text."""
        if not isinstance(text, str):
            raise TypeError("expected string")
        return [*map(len, text.split())]


SPLITTER = Tokenizer()
BEDROCK = {
    "output": {"message": {"role": "assistant", "content": [{"text": "hi"}]}},
    "stopReason": "end_turn",
}
CHAT = {"choices": [{"index": 0, "message": assistant(), "finish_reason": "stop"}]}

WRONG: list[tuple[str, Callable[[], object], str]] = [
    ("budget-model", lambda: fitted(TALK, "gpt-4o"), "write model='gpt-4o'"),
    ("budget-model-context", lambda: Context("claude-sonnet-4-5"), "write model='claude-sonnet-4-5'"),
    ("budget-model-session", lambda: Session("gpt-4o"), "write model='gpt-4o'"),
    ("budget-model-of", lambda: Budget.of("gpt-4o"), "write model='gpt-4o'"),
    ("messages-json", lambda: fitted(json.dumps(TALK)), r"JSON as text: write json\.loads\(text\)"),
    ("messages-json-bytes", lambda: fitted(json.dumps(TALK).encode()), r"write json\.loads\(text\)"),
    ("messages-json-validate", lambda: validate(json.dumps(TALK)), r"write json\.loads\(text\)"),
    ("messages-path", lambda: fitted(Path("chat.json")), r"a path: write json\.loads\(path\.read_text\(\)\)"),
    ("messages-file", lambda: fitted("chat.json"), r"name of a file: write json\.loads\(Path\(name\)"),
    ("messages-columns", lambda: fitted({"role": ["user"], "content": ["hi"]}), "columns: write a list of"),
    ("messages-chats", lambda: fitted({"one": TALK}), "it has a list under 'one': pass that list"),
    ("messages-answer", lambda: validate(CHAT), r"append answer\['choices'\]\[0\]\['message'\] to the list"),
    ("messages-fitted", lambda: fitted(MADE), r"write its messages, as fitted\.messages$"),
    ("messages-session", lambda: fitted(Session(999)), r"write its messages, as session\.messages\(\)$"),
    ("bedrock", lambda: fitted([user(), BEDROCK]), r"append answer\['output'\]\['message'\]"),
    ("bedrock-form", lambda: fitted([BEDROCK], format="bedrock"), r"append answer\['output'\]\['message'\]"),
    ("bedrock-output", lambda: fitted([user(), BEDROCK["output"]]), "append its 'message'"),
    ("bedrock-session", lambda: Session(999).add(BEDROCK), r"append answer\['output'\]\['message'\]"),
    ("bedrock-context", lambda: Context(99).add("a", [BEDROCK]).fit(), r"append answer\['output'\]"),
    ("bedrock-block", lambda: fitted([user(), {"toolUse": {}}]), r"a block of content \(toolUse\)"),
    ("choice", lambda: fitted([user(), CHAT["choices"][0]]), "append its 'message'"),
    ("gemini-part", lambda: fitted([{"text": "hi"}], format="gemini"), r"'parts': \[block, \.\.\.\]"),
    ("tokenizer", lambda: fitted(TALK, counter=SPLITTER), r"counter_from_tokenizer\(tokenizer\)"),
    (
        "tokenizer-encode",
        lambda: fitted(TALK, counter=SPLITTER.encode),
        r"returns a list for a text, as a tokenizer does",
    ),
]


@pytest.mark.parametrize(("call", "said"), [case[1:] for case in WRONG], ids=[case[0] for case in WRONG])
def test_what_is_given_wrongly_is_answered_with_what_to_write(call: Callable[[], object], said: str) -> None:
    """By an error of ours."""
    with pytest.raises((ConfigurationError, FormatError), match=said):
        call()


def test_what_is_said_of_a_tokenizer_counts() -> None:
    """Its line is taken as it stands."""
    counter = counter_from_text(lambda text: len(SPLITTER.encode(text)), message_overhead=0)
    assert counter.count(TALK) == 3
    with pytest.raises(ConfigurationError, match="takes a folder, a tokenizer"):
        counter_from_tokenizer(SPLITTER)


@pytest.mark.parametrize("made", [MADE, copy.copy(MADE), pickle.loads(pickle.dumps(MADE))])
@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda made: list(made), TypeError, r"write fitted\.messages.*to_dict\(\)"),
        (lambda made: [*made], TypeError, r"write fitted\.messages"),
        (lambda made: made[0], TypeError, r"write fitted\.messages\[0\]"),
        (lambda made: made.tokens, AttributeError, r"no 'tokens': write fitted\.report\.tokens_after"),
        (lambda made: made.dropped, AttributeError, r"no 'dropped': write fitted\.evicted"),
        (lambda made: made.to_dict(), AttributeError, r"write fitted\.report\.to_dict\(\)"),
        (lambda made: made.nothing, AttributeError, "a Fitted has no 'nothing'$"),
    ],
)
def test_what_is_looked_for_in_a_fitted_is_named(
    made: Any, call: Callable[[Any], object], error: type[Exception], said: str
) -> None:
    """Also in a copy, which holds all there is to read."""
    with pytest.raises(error, match=said):
        call(made)
    assert not hasattr(made, "tokens")
    assert made


def test_what_a_fitted_names_instead_is_there() -> None:
    """Each of them."""
    for name in ("tokens", "dropped", "remaining", "to_dict", "body", "kept", "notes", "violations"):
        with pytest.raises(AttributeError, match="write fitted") as told:
            getattr(MADE, name)
        path = str(told.value).partition("write fitted.")[2].removesuffix("()").split(".")
        found = MADE
        for part in path:
            found = getattr(found, part)
    json.dumps(MADE.report.to_dict())


@pytest.mark.parametrize(
    ("name", "home"),
    [
        ("SQLiteStore", "trimtab.stores"),
        ("counter_from_tokenizer", "trimtab.counting"),
        ("FormatError", "trimtab.errors"),
        ("run_batch", "trimtab.batch"),
    ],
)
def test_a_name_that_lives_elsewhere_says_where(name: str, home: str) -> None:
    """As an attribute, and where it is imported; who asks whether it is there hears no."""
    said = f"write from {home} import {name}"
    with pytest.raises(AttributeError, match=said):
        getattr(trimtab, name)
    with pytest.raises(ImportError, match=said):
        exec(f"from trimtab import {name}", {})
    assert not hasattr(trimtab, name)
    exec(f"from {home} import {name}", {})


def test_other_names_are_not_there() -> None:
    """Modules can be imported, and a name nobody has is an error of Python's."""
    with pytest.raises(AttributeError, match=r"no attribute 'nothing_of_ours'$"):
        exec("trimtab.nothing_of_ours", {"trimtab": trimtab})
    with pytest.raises(ImportError, match="cannot import name 'nothing_of_ours'"):
        exec("from trimtab import nothing_of_ours", {})
    exec("from trimtab import stores, cli", {})


def test_all_strategies_stand_at_the_front_door() -> None:
    """Who imports one finds the others beside it."""
    from trimtab import strategies

    kinds = [kind.value for kind in strategies.StrategyKind]
    classes = {name: getattr(strategies, name) for name in strategies.__all__}
    shipped = [name for name in classes if _word(name) in kinds]
    assert len(shipped) == 12
    assert set(shipped) <= set(trimtab.__all__)
    assert all(getattr(trimtab, name) is classes[name] for name in shipped)


def _word(name: str) -> str:
    """Write the name of a class as the kind of a strategy."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).removeprefix("_")
