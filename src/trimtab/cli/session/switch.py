"""`trimtab session plan` and `switch`: going on with another model, or another budget."""

from __future__ import annotations

from typing import Any

from trimtab._shared.options import UNSET
from trimtab.cli.options import counter_of, switch_options
from trimtab.cli.output import Refused, usage
from trimtab.cli.session.commands import open_session, open_session_store, session, session_options
from trimtab.cli.session.io import say_missing, write
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
    asked = _counter_in(model, budget, counter)
    with open_session_store(url) as store:
        one = open_session(store, name)
        found = one.plan(model, budget=budget, counter=asked)
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
    asked = _counter_in(model, budget, counter)
    with open_session_store(url) as store:
        one = open_session(store, name)
        done = one.switch(model, budget=budget, counter=asked)
        say_missing(one, adds=True)
        found = {"id": one.id, "version": one.version, **done.to_dict()}
        write(found, lambda: plain(str(done)), output=output)


def _counter_in(model: str | None, budget: Any, counter: str | None) -> Any:
    """Check the options before a store is opened, and return the counter that they name."""
    if model is None and budget is None:
        raise Refused("pass --model NAME, --budget N, or both")
    return UNSET if counter is None else counter_of(counter)
