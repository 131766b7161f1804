"""`check_store` over every store there is, and what holds for every store beyond it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.stores.stores import Place
from trimtab.relevance import question_terms
from trimtab.stores import AppendRequest, Event, SearchRequest
from trimtab.testing import check_store


def test_every_store_keeps_the_contract(place: Place) -> None:
    """Versions, conflicts, atomic batches, search, deletion, many writers; see `check_store`."""
    check_store(place.make, damage=place.damage)


def test_a_store_says_which_event_was_changed_by_hand(place: Place) -> None:
    """Not only in the run above: the contract leaves it out for a store without `damage`."""
    assert place.damage is not None or place.name == "sqlite-memory"


def _messages(data_dir: Path) -> list[dict[str, object]]:
    lines = (data_dir / "glaive_toolcall_zh.jsonl").read_text(encoding="utf-8").splitlines()
    return [message for line in lines for message in json.loads(line)["messages"]]


@pytest.mark.few(2)
def test_two_characters_of_chinese_are_found_in_real_conversations(data_dir: Path, place: Place) -> None:
    """Every message that has them, as Python's `in` finds them, and none further than two from one."""
    messages = _messages(data_dir)
    events = [
        Event(id=str(at), kind="message", time=float(at), data={"message": message})
        for at, message in enumerate(messages)
    ]
    store = place.make()
    try:
        store.append(AppendRequest(session="zh", expected_version=0, events=events))
        for query in ("天气", "电影", "邮件", "计算", "新闻", "密码"):
            holding = {at + 1 for at, message in enumerate(messages) if query in _content(message)}
            assert holding, f"nothing to find: {query}"
            request = SearchRequest(session="zh", terms=question_terms(query), limit=len(messages))
            found = {event.version for event in store.search(request)}
            assert holding <= found, query
            having = {at + 1 for at, message in enumerate(messages) if query in _whole(message)}
            assert all(having & set(range(version - 2, version + 3)) for version in found), query
        store.delete("zh")
    finally:
        store.close()


def _content(message: dict[str, object]) -> str:
    return str(message.get("content") or "")


def _whole(message: dict[str, object]) -> str:
    """Return a message as text, with what is escaped in the arguments of its calls written out."""
    text = json.dumps(message, ensure_ascii=False).replace("\\\\u", "\\u")
    return re.sub(r"\\u([0-9a-f]{4})", lambda match: chr(int(match[1], 16)), text)
