"""Reads LoCoMo and BEAM, long conversations with questions, into conversations with questions of our own."""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from trimtab._shared.checks import is_whole
from trimtab.errors import FormatError
from trimtab.report.text import plural

Body = dict[str, Any]
"""Messages with `questions` beside them, as `read_recording` reads them."""


class Conversation(NamedTuple):
    """One conversation of a file."""

    body: Any
    notes: tuple[str, ...] = ()
    """What of the file is left out, and why."""


_SESSION = re.compile(r"session_(\d+)")
_TURN_ID = re.compile(r"D:?(\d+):(\d+)")
_ADVERSARIAL = 5
_LOCOMO_TURN = '{"speaker": "Ann", "dia_id": "D1:3", "text": "…"}'
_BEAM_TURN = '{"role": "user", "id": 3, "content": "…"}'


def conversations_in(source: Any, /) -> dict[str, Conversation] | None:
    """Read the conversations of a file of LoCoMo or BEAM, by their names; None: it is neither.

    Raises:
        FormatError: It looks like one, and something in it is not as it has to be.
    """
    if isinstance(source, Mapping) and isinstance(source.get("rows"), list):
        source = [one.get("row", one) for one in source["rows"] if isinstance(one, Mapping)]
    listed = source if isinstance(source, list) else [source]
    if not listed:
        return None
    for is_one, name_key, read in _READERS:
        if all(map(is_one, listed)):
            names = [str(one.get(name_key) or number) for number, one in enumerate(listed, 1)]
            return {name: read(name, one) for name, one in zip(_told_apart(names), listed, strict=True)}
    return None


def _is_locomo(one: object) -> bool:
    return isinstance(one, Mapping) and "qa" in one and isinstance(one.get("conversation"), Mapping)


def _is_beam(one: object) -> bool:
    return isinstance(one, Mapping) and "chat" in one and "probing_questions" in one


def _told_apart(names: Sequence[str]) -> list[str]:
    return [f"{name} ({at})" if names.count(name) > 1 else name for at, name in enumerate(names, 1)]


# LoCoMo: sessions of turns of two people, and questions that name turns.


def _locomo(name: str, one: Mapping[str, Any]) -> Conversation:
    talk, where = one["conversation"], f"LoCoMo {name}"
    messages, places = list[dict[str, str]](), dict[tuple[int, int], int]()
    keys = sorted(filter(_SESSION.fullmatch, talk), key=lambda key: int(key.partition("_")[2]))
    for key in keys:
        turns = _items(talk[key], f"{where}: {key}", "turns")
        for number, turn in enumerate(turns):
            place = f"{where}: {key}[{number}]"
            speaker, text = _text(turn, "speaker", place, _LOCOMO_TURN), _speech(turn, place)
            ids = _TURN_ID.findall(_text(turn, "dia_id", place, _LOCOMO_TURN))
            if ids:
                places[int(ids[0][0]), int(ids[0][1])] = len(messages)
            date = talk.get(f"{key}_date_time") if number == 0 else None
            role = "assistant" if speaker == talk.get("speaker_b") else "user"
            said = f"{speaker}: {text}"
            messages.append({"role": role, "content": f"({date})\n{said}" if date else said})
    left: Counter[str] = Counter()
    questions = list[Body]()
    for number, asked in enumerate(_items(one["qa"], f"{where}: qa", "questions")):
        _text(asked, "question", f"{where}: qa[{number}]", '{"question": "…", "evidence": ["D1:3"]}')
        if asked.get("category") == _ADVERSARIAL:
            left["of category 5, which nothing in the conversation answers,"] += 1
            continue
        given = asked.get("evidence") or []
        named = _TURN_ID.findall(" ".join(map(str, given)) if isinstance(given, list) else str(given))
        found = [places.get((int(session), int(turn))) for session, turn in named]
        _add(questions, left, asked, found)
    return _conversation(where, messages, questions, left)


def _speech(turn: Mapping[str, Any], place: str) -> str:
    """Return what was said, with what a picture shows."""
    text, caption = _text(turn, "text", place, _LOCOMO_TURN), turn.get("blip_caption")
    return f"{text} [shares a picture: {caption}]" if caption else text


# BEAM: batches of turns, or plans of batches, and questions by what they try.


def _beam(name: str, one: Mapping[str, Any]) -> Conversation:
    where = f"BEAM {name}"
    messages, places = list[dict[str, str]](), dict[int, list[int]]()
    for number, turn in enumerate(_turns(_plain(one["chat"], f"{where}: chat"))):
        place = f"{where}: turn {number + 1} of chat"
        role, content = (_text(turn, key, place, _BEAM_TURN) for key in ("role", "content"))
        if is_whole(turn.get("id")):
            places.setdefault(turn["id"], []).append(len(messages))
        messages.append({"role": "user" if role == "user" else "assistant", "content": content})
    groups = _plain(one["probing_questions"], f"{where}: probing_questions")
    if not isinstance(groups, Mapping):
        raise FormatError(f"{where}: probing_questions must be a mapping of lists, not {groups!r:.40}")
    left: Counter[str] = Counter()
    questions = list[Body]()
    for kind, group in groups.items():
        for number, asked in enumerate(_items(group, f"{where}: probing_questions.{kind}", "questions")):
            place = f"{where}: probing_questions.{kind}[{number}]"
            _text(asked, "question", place, '{"question": "…", "source_chat_ids": [3]}')
            found = [places.get(one, []) for one in _numbers(asked.get("source_chat_ids"))]
            _add(questions, left, asked, [one[0] if len(one) == 1 else None for one in found])
    return _conversation(where, messages, questions, left)


def _turns(chat: object) -> Iterator[Mapping[str, Any]]:
    """List the turns of batches, of lists of turns and of plans, in their order."""
    if isinstance(chat, Mapping) and ("role" in chat or "content" in chat):
        yield chat
    elif isinstance(chat, Mapping):
        yield from (turn for value in chat.values() for turn in _turns(value))
    elif isinstance(chat, list):
        yield from (turn for value in chat for turn in _turns(value))


def _numbers(given: object) -> Iterator[int]:
    """List ids that stand in a list, or in lists by what they are for."""
    if is_whole(given):
        yield given
    elif isinstance(given, Mapping | list):
        values: Iterable[object] = given.values() if isinstance(given, Mapping) else given
        yield from (number for value in values for number in _numbers(value))


def _plain(value: object, where: str) -> Any:
    """Read what a table of texts holds: JSON, or a value as Python writes it."""
    if not isinstance(value, str):
        return value
    readers: tuple[Callable[[str], Any], ...] = (json.loads, ast.literal_eval)
    for read in readers:
        try:
            return read(value)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
    raise FormatError(f"{where} is a text that is neither JSON nor a Python value: {value!r:.40}")


# Both.


def _add(questions: list[Body], left: Counter[str], asked: Body, found: Sequence[int | None]) -> None:
    """Add a question with its evidence, or count why it is left out."""
    if not found:
        left["without evidence"] += 1
    elif None in found:
        left["with evidence that names no turn, or more than one,"] += 1
    else:
        evidence = sorted({one for one in found if one is not None})
        answer = None if asked.get("answer") is None else str(asked["answer"])
        questions.append({"text": asked["question"], "evidence": evidence, "answer": answer})


def _conversation(
    where: str, messages: list[dict[str, str]], questions: list[Body], left: Counter[str]
) -> Conversation:
    if not messages:
        raise FormatError(f"{where} has no turns")
    notes = (
        f"{plural(count, 'question')} {why} {'is' if count == 1 else 'are'} left out"
        for why, count in left.items()
    )
    return Conversation({"messages": messages, "questions": questions}, tuple(notes))


def _text(one: object, key: str, place: str, shape: str) -> str:
    value = one.get(key) if isinstance(one, Mapping) else None
    if not isinstance(value, str):
        raise FormatError(f"{place} has no text {key!r}; it is {shape}")
    return value


def _items(value: object, place: str, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise FormatError(f"{place} must be a list of {what}, not {value!r:.40}")
    return value


_READERS = ((_is_locomo, "sample_id", _locomo), (_is_beam, "conversation_id", _beam))
