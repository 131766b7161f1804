"""`check_counter` over every counter there is."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from tests.chat_vocabulary import TEMPLATES, chat_tokenizer, mistral_counter
from trimtab import CharCounter, EstimateCounter, counter_for, counter_from_text
from trimtab.counting import FixedCounter, counter_from_tokenizer
from trimtab.models import model_names
from trimtab.testing import WordCounter, check_counter


def _from_template(template: str) -> Any:
    return counter_from_tokenizer(chat_tokenizer(), chat_template=template)


def _with_calls() -> CharCounter:
    return CharCounter(tool_call_tokens=lambda name, arguments: 1 + len(name + arguments) // 9)


COUNTERS: dict[str, Callable[[], Any]] = {
    "words": WordCounter,
    "chars": CharCounter,
    "chars by 3.5": lambda: CharCounter(3.5, part_tokens=0),
    "chars with calls": _with_calls,
    "estimate": EstimateCounter,
    "from text": lambda: counter_from_text(lambda text: -(-len(text) // 3)),
    "from text, framed": lambda: counter_from_text(lambda text: len(text.split()), message_overhead=0),
    "o200k": lambda: counter_for("gpt-4o"),
    "cl100k": lambda: counter_for("gpt-4"),
    "tekken": mistral_counter,
    **{f"template {name}": partial(_from_template, template) for name, template in TEMPLATES.items()},
    "black box": lambda: WordCounter().count,
}


@pytest.mark.few(5)
@pytest.mark.parametrize("name", COUNTERS)
def test_every_counter_keeps_the_contract(name: str) -> None:
    """Integers >= 0, deterministic, additive, at ease with odd text, objects and threads."""
    check_counter(COUNTERS[name]())


def test_the_counter_that_looks_at_no_text_keeps_the_rest() -> None:
    """FixedCounter counts messages, parts and calls."""
    check_counter(FixedCounter(per_message=3, per_part=2, per_tool_call=5), reads_text=False)


EVERY_MODEL = tuple(model_names())


def test_the_counter_of_every_model_answers() -> None:
    """No row of the model table leads to a counter that cannot count."""
    assert len(EVERY_MODEL) >= 5
    for name in EVERY_MODEL:
        assert counter_for(name).count([{"role": "user", "content": "hi"}]) > 0
