"""The contract of `Store.search`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from trimtab.stores import AppendRequest, SearchRequest
from trimtab.testing.store_asking import Asking, entry, note

__all__ = ["check_search"]

_CALL = {"name": "find_heron", "arguments": '{"place": "r\\u00edo"}'}
_PICTURE = {"url": "data:image/png;base64,heronheron"}
_MESSAGES: tuple[dict[str, Any], ...] = (
    {"role": "user", "content": "The heron stands in the river"},
    {"role": "user", "content": [{"type": "text", "text": "A HERON, and an otter"}]},
    {"role": "assistant", "tool_calls": [{"id": "otter", "type": "function", "function": _CALL}]},
    {"role": "tool", "tool_call_id": "c1", "content": "北京今天天气晴朗"},
    {"role": "user", "content": "上海的天气 and the river otter"},
    {"role": "assistant", "content": "Straße, naïve, ﬁne, १२ नमस्ते"},
    {"role": "user", "content": [{"type": "image_url", "image_url": _PICTURE}]},
)

_QUERIES: tuple[tuple[str, list[int]], ...] = (
    ("heron", [3, 2, 1]),
    ("Heron!", [3, 2, 1]),
    ("otter", [5, 2]),
    ("river heron", [1, 5, 3, 2]),
    ("otter river heron", [5, 2, 1, 3]),
    ("天气", [5, 4]),
    ("北京", [4]),
    ("京北", []),
    ("晴", [4]),
    ("北京天气", [4, 5]),
    ("STRASSE", [6]),
    ("fine", [6]),
    ("नमस्ते", [6]),
    ("find", [3]),
    ("río", [3]),
    ("user", []),
    ("c1", []),
    ("png", []),
    ("her", []),
    ("nowhere", []),
    ("", []),
    ("heron AND NOT river", [5, 2, 1, 3]),
    ('"heron" * OR', [3, 2, 1]),
)
"""What is asked, and the versions found: more of the terms first, newer before older."""


def check_search(check: Asking) -> None:
    """Ask for what is there and what is not, in a short session and at the end of a long one."""
    for before in (0, 700):
        session = check.new_session()
        others = [entry({"content": f"filler number {at}"}) for at in range(before)]
        events = [*others, *map(entry, _MESSAGES), note("heron otter 天气")]
        check.store.append(AppendRequest(session=session, expected_version=0, events=events))
        for text, versions in _QUERIES:
            _expect(check, session, text, [before + version for version in versions])
        _check_limits(check, session, before)
        _check_growth(check, session, before)
    other = check.filled(1)
    check.equal(
        "search", check.store.search(check.query(other, "heron")), [], "another session finds nothing"
    )
    check.equal(
        "search",
        check.store.search(check.query(check.new_session(), "heron")),
        [],
        "nor one that is not there",
    )


def _expect(check: Asking, session: str, text: str, versions: list[int]) -> None:
    found = [event.version for event in check.store.search(check.query(session, text))]
    check.equal("search", found, versions, f"a search for {text!r}")


def _check_limits(check: Asking, session: str, before: int) -> None:
    for limit, versions in ((0, []), (1, [before + 3]), (2, [before + 3, before + 2])):
        found = check.store.search(check.query(session, "heron", limit=limit))
        check.equal("search", [event.version for event in found], versions, f"the best {limit}")
    found = check.store.search(check.query(session, "heron", limit=1))
    check.equal("search", found, [check.load(session)[before + 2]], "an event found is the event stored")
    odd = SearchRequest(
        session=session, terms=("Heron", "find_heron", "\ud800", "a\0b", "", "heron", "heron"), limit=9
    )
    found = check.store.search(odd)
    check.equal(
        "search",
        [event.version for event in found],
        [before + 3, before + 2, before + 1],
        "terms nobody can have",
    )


def _check_growth(check: Asking, session: str, before: int) -> None:
    """What was added since is found; what was rewritten is found by its new text only."""
    version = before + len(_MESSAGES) + 1
    late = AppendRequest(session=session, expected_version=version, events=[entry({"content": "late heron"})])
    check.store.append(late)
    _expect(check, session, "late", [version + 1])
    stored = check.load(session)[before]
    new = replace(stored, data={"message": {"role": "user", "content": "withdrawn"}})
    check.store.append(
        AppendRequest(session=session, expected_version=version + 1, events=[note()], rewrites=[new])
    )
    _expect(check, session, "stands", [])
    _expect(check, session, "withdrawn", [before + 1])
    _expect(check, session, "heron", [version + 1, before + 3, before + 2])
