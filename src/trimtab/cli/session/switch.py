"""`trimtab session plan` and `switch`: going on with another model, or another budget."""

from __future__ import annotations

from typing import Any

from trimtab._shared.options import UNSET
from trimtab.cli.options import switch_options
from trimtab.cli.output import Refused, usage
from trimtab.cli.session.commands import open_session, open_session_store, session, session_options
from trimtab.cli.session.io import say_missing, write
from trimtab.counting.door import counter_in_words
from trimtab.report.text import plain


@session.command()
@switch_options
@session_options
@usage
def plan(url: str, name: str, output: str, model: str | None, budget: Any, counter: str | None) -> None:
    """Say what a switch to another model or budget means.

    Nothing is written. The verdict is fits; summarize, with the number of summaries; evict, where messages
    leave and there is no summarizer; or impossible.
    """
    _check(model, budget)
    with open_session_store(url) as store:
        one = open_session(store, name)
        found = one.plan(model, budget=budget, counter=_counter_of(counter))
        say_missing(one)
        write({"id": one.id, **found.to_dict()}, lambda: plain(str(found)), output=output)


@session.command()
@switch_options
@session_options
@usage
def switch(url: str, name: str, output: str, model: str | None, budget: Any, counter: str | None) -> None:
    """Go on with another model or budget.

    Writes what was done, as `plan` does. A summarizer is a function that no store keeps: what it would
    replace waits for the program that opens the session with it.
    """
    _check(model, budget)
    with open_session_store(url) as store:
        one = open_session(store, name)
        done = one.switch(model, budget=budget, counter=_counter_of(counter))
        say_missing(one, adds=True)
        found = {"id": one.id, "version": one.version, **done.to_dict()}
        write(found, lambda: plain(str(done)), output=output)


def _check(model: str | None, budget: Any) -> None:
    if model is None and budget is None:
        raise Refused("pass --model NAME, --budget N, or both")


def _counter_of(words: str | None) -> Any:
    if words is None:
        return UNSET
    made = counter_in_words(words)
    if made is None:
        raise Refused(f"--counter must be estimate or chars:N (such as chars:4), not {words!r}")
    return made
