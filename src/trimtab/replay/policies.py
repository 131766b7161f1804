"""Which policies there are: words, data, files, objects and functions, and what plays each."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from os import PathLike, fspath
from os.path import isfile
from pathlib import PurePath
from typing import Any, TypeAlias, cast

from trimtab._shared.checks import name_of as own_name
from trimtab._shared.checks import unknown_name
from trimtab.context import Context
from trimtab.errors import ConfigurationError
from trimtab.formats import mapping_of
from trimtab.policy import load_policy, read_file, with_path
from trimtab.policy.schema import Place, Table, session_table
from trimtab.replay.players import (
    ByContext,
    ByFunction,
    BySession,
    ByStrategy,
    Player,
    Setting,
    Whole,
    with_meter,
)
from trimtab.replay.record import Messages
from trimtab.session import Session
from trimtab.session.options import SessionOptions
from trimtab.strategies import Strategy, StrategyKind, create_strategy
from trimtab.strategies.data import ALIASES, PRESETS
from trimtab.summaries import ExtractiveSummarizer

PolicyLike: TypeAlias = (
    Strategy
    | Context
    | Callable[[], Session]
    | Callable[[list[Any]], Messages]
    | Mapping[str, Any]
    | str
    | PathLike[str]
    | None
)
"""What can be replayed: anything that decides how much of a conversation is sent."""

NO_TRIMMING, BY_DEFAULT, STEADY = "none", "default", "steady"
SESSION, EXTRACTIVE = "session", "session-extractive"
WORDS = (NO_TRIMMING, BY_DEFAULT, STEADY, SESSION, EXTRACTIVE)
"""Words for policies; every kind of strategy that needs no options is one, too."""


@dataclass(frozen=True, slots=True)
class SessionPolicy:
    """Sessions of these options, as data describes them."""

    options: Mapping[str, Any] = field(default_factory=dict[str, object])


@cache
def session_keys() -> Table:
    """Return the keys of a session as data: those options of `Session` that are no functions."""
    return session_table(SessionOptions)


def name_of(policy: PolicyLike, /) -> str:
    """Return the word for a policy in tables."""
    if policy is None:
        return NO_TRIMMING
    if isinstance(policy, str | PathLike):
        word = fspath(policy)
        if word.startswith("{"):
            return name_of(_parse(word))
        return word if word in WORDS else PurePath(word).stem
    if isinstance(policy, Mapping):
        options = (f"{key}={value}" for key, value in policy.items() if key != "kind")
        return " ".join((str(policy.get("kind", "policy")), *options)) if "kind" in policy else "policy"
    if isinstance(policy, Context):
        return "policy"
    return own_name(policy)


def player_for(policy: PolicyLike, setting: Setting, /) -> Player:
    """Return what plays a policy, fresh for one recording.

    Raises:
        ConfigurationError: It is none, or its file cannot be read.
        UnknownNameError: A word nobody knows.
    """
    made = read_policy(policy)
    if made is None or made == NO_TRIMMING:
        return Whole(setting.limit_tokens())
    if made in (BY_DEFAULT, STEADY):
        return ByStrategy(setting, None, steady=made == STEADY)
    if isinstance(made, SessionPolicy):
        return _session_for(made, setting)
    if isinstance(made, Context):
        twin = made.clone()
        for block in made.blocks:
            if block.strategy is not None:
                twin.add_block(
                    replace(block, strategy=with_meter(block.gives_way_by, setting.meter)), replace=True
                )
        return ByContext(setting, twin)
    if hasattr(made, "evict"):
        return ByStrategy(setting, with_meter(made, setting.meter))
    if callable(made) and _takes_messages(made):
        return ByFunction(setting, cast("Callable[[list[Any]], Messages]", made))
    session = made() if callable(made) else made
    if not isinstance(session, Session) or session is made:
        what = "a strategy, a Context, a file, None, a function of messages, or one that makes a Session"
        raise ConfigurationError(f"a policy must be {what}, not {type(made).__name__}")
    return BySession(setting, session, leading=0)


def _takes_messages(function: Callable[..., object]) -> bool:
    """Tell a function of messages from one that makes a session, which takes nothing."""
    given = inspect.signature(function).parameters.values()
    return any(one.default is one.empty and one.kind is not one.VAR_KEYWORD for one in given)


def _parse(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise ConfigurationError(f"a policy that begins with {{ must be JSON: {error}") from error
    except RecursionError as error:
        raise ConfigurationError(
            "a policy that begins with { must be JSON, and this is nested too deep"
        ) from error


def read_policy(policy: object, /) -> Any:
    """Make what data and files describe; what is none of these comes back as it is.

    Raises:
        ConfigurationError: The file cannot be read, or an option is unknown.
        UnknownNameError: A word nobody knows.
    """
    if isinstance(policy, str | PathLike):
        word = fspath(policy)
        if word in _SESSIONS:
            return read_policy(_SESSIONS[word])
        if word in WORDS:
            return word
        if word.startswith("{"):
            return read_policy(_parse(word))
        if not is_file(word):
            return _strategy_called(word)
        data = read_file(policy)
        try:
            return _read_data(data)
        except ConfigurationError as error:
            raise with_path(error, policy) from error.__cause__
    return _read_data(policy) if isinstance(policy, Mapping) else policy


def is_file(policy: str | PathLike[str], /) -> bool:
    """Tell whether a policy stands in a file, which need not be there; else it is a word, or data."""
    word = fspath(policy)
    return not word.startswith("{") and PurePath(word).suffix.lower() in (".json", ".toml")


_SESSIONS: Mapping[str, Mapping[str, str]] = {
    SESSION: {"kind": SESSION},
    EXTRACTIVE: {"kind": SESSION, "summarizer": "extractive"},
}
"""What words for sessions are short for."""


def _strategy_called(word: str) -> Strategy:
    known = (*WORDS, *StrategyKind, *ALIASES, *PRESETS)
    if word in known:
        return create_strategy(word)
    hint = "; the file of a policy ends in .toml or .json" if PurePath(word).suffix or isfile(word) else ""
    there = ", ".join(dict.fromkeys(known))
    raise unknown_name(f"no policy is called {word!r}{hint}; there are: {there}", word, known)


def _read_data(data: object) -> Any:
    """Make a strategy, a session or a policy with blocks; its `kind` says which, and blocks have none."""
    if not isinstance(data, Mapping):
        raise ConfigurationError(f"a policy must be a table with blocks or a kind, not {data!r:.80}")
    if "kind" not in data:
        return load_policy(data)
    if data["kind"] != SESSION:
        return create_strategy(data)
    read = session_keys().read(data, Place())
    return SessionPolicy({key: value for key, value in read.items() if key not in ("kind", "$schema")})


def _session_for(policy: SessionPolicy, setting: Setting) -> Player:
    """Begin a session with the system text of the recording."""
    recording, form = setting.recording, setting.format
    first = recording.calls[0]
    leading = 0
    system = first.system
    if system is None and first.messages and form.kind(mapping_of(first.messages[0])) == "system":
        leading, system = 1, "\n".join(form.pieces(mapping_of(first.messages[0])).texts)
    options = dict(policy.options)
    if "summarizer" in options:
        options["summarizer"] = ExtractiveSummarizer()
    session = Session(
        setting.budget,
        system=system,
        model=setting.model,
        counter=setting.counter,
        tools=first.tools,
        format=form,
        **options,
    )
    return BySession(setting, session, leading=leading, asks_model=False)
