"""`TrimHandler` with each of its options, and with each way to call."""

from __future__ import annotations

from functools import partial
from typing import Any

from tests.integrations.litellm.play import Chat, Items, Messages, play, sdk
from tests.integrations.litellm.test_litellm import (
    _claude,
    _gemini,
    _items,
    _items_by_claude,
    _messages,
    _messages_by_openai,
    _streamed,
)
from tests.integrations.loops import Loop
from tests.integrations.options import Way, property_of
from tests.integrations.upstream import Score
from trimtab.integrations.litellm import TrimHandler


def _by(send: Any, talk: type[Chat], loop: Loop, budget: Any, /, **options: Any) -> tuple[Score, Any]:
    return play(loop, send, TrimHandler(budget, **options), talk=talk())


WAYS = {
    "chat": Way(partial(_by, sdk, Chat)),
    "chat, streamed": Way(partial(_by, _streamed, Chat)),
    "chat to claude": Way(partial(_by, _claude, Chat), 4),
    "chat to gemini": Way(partial(_by, _gemini, Chat)),
    "messages": Way(partial(_by, _messages, Messages), 4, has_marks=True),
    "messages to openai": Way(partial(_by, _messages_by_openai, Messages), has_marks=True),
    "responses": Way(partial(_by, _items, Items)),
    "responses to claude": Way(partial(_by, _items_by_claude, Items)),
}

test_whatever_is_asked_for_what_is_sent_is_valid_and_within_the_budget = property_of(WAYS)
