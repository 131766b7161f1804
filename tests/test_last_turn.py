"""The model's last turn, once a callback or a block let go of something in it: what stays is taken.

A differential over random agent turns: callbacks of a fit, a Context, its blocks and a session take out any
messages, and blocks of any rank and strategy leave. What is left has nothing that the judge refuses and the
input did not have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest

from tests import judge
from tests.sizes import sizes
from tests.test_thinking_turns import (
    FORMS,
    STALE,
    Body,
    bodies,
    chat,
    counter,
    fitted,
    kind,
    loop,
    off,
    shares,
    starts_with_thinking,
    tokens_needed,
)
from trimtab import Context, Session, TrimContext, fit, validate

STRATEGIES = ("drop", "strict", "sliding_window", "drop_newest", "truncate_text", "priority_based", None)


def takes_out(random: Random) -> Callable[[TrimContext], None]:
    """Write a callback that takes out some messages of one kind."""
    most, which = random.choice((1, 1, 2, 3)), random.choice(("any", "thinks", "newest", "model"))
    seed = random.random()

    def trim(context: TrimContext) -> None:
        found = context.message_elements
        if which == "newest":
            found = found[-6:]
        elif which != "any":
            found = [one for one in found if kind(one.message) == "model"]
        if which == "thinks":
            found = [one for one in found if starts_with_thinking(one.message)]
        for one in Random(seed).sample(found, min(most, len(found))):
            context.remove(one.seq)

    return trim


def left_by_callbacks(body: Body, budget: int, random: Random) -> Iterator[tuple[str, Any]]:
    """Yield what each door hands out, once a callback has taken something."""
    form = "bedrock" if "modelId" in body else "anthropic"
    model, messages = body.get("model") or body["modelId"], body["messages"]
    given: Body = {"format": form, "model": model, "counter": counter(body)}
    trims = [takes_out(random) for _ in range(4)]
    middle = len(messages) // 2
    three = Context(budget, **given).add("old", messages[:middle], on_trim=trims[0])
    three.add("history", messages[middle:-2], on_trim=trims[1]).add("new", messages[-2:], on_trim=trims[2])
    for door, made in (
        ("body", tokens_needed(lambda: fitted(body, budget, None, on_trim=trims[3]))[0]),
        ("list", tokens_needed(lambda: fit(messages, budget, on_trim=trims[3], **given))[0]),
        ("context", tokens_needed(Context(budget, on_trim=trims[3], **given).add("all", messages).fit)[0]),
        ("blocks", tokens_needed(three.fit)[0]),
    ):
        if made is not None and made.messages:
            yield door, made.request if door == "body" else {**body, "messages": made.messages}
    if budget < 100:
        return  # which no session takes
    session = Session(budget, on_trim=trims[3], **given)
    session.extend(messages)
    view = tokens_needed(session.fit)[0]
    if view is not None and view.messages:
        yield "session", {**body, "messages": view.messages}


@sizes(10, 120)
@pytest.mark.parametrize("form", FORMS)
def test_what_callbacks_leave_is_taken(form: str, size: int) -> None:
    """Whatever they take: the thinking that opens a turn, the user's last words, or anything."""
    tried = 0
    for at, body in enumerate(bodies(form, size, seed=3)):
        for budget in (10**5, shares(body)[2]):
            for door, request in left_by_callbacks(body, budget, Random(f"{at}/{budget}")):
                refused = judge.newly_refused(form, body, request)
                assert off(body) or refused == [], (door, budget, refused, request["messages"], body)
                tried += 1
    assert tried > 5 * size


@sizes(10, 120)
@pytest.mark.parametrize("form", FORMS)
def test_what_blocks_leave_is_taken(form: str, size: int) -> None:
    """Blocks are cut anywhere, have any rank and strategy; one is pinned, if its end may be one."""
    tried = 0
    for at, body in enumerate(bodies(form, size, seed=4)):
        model, messages = body.get("model") or body["modelId"], body["messages"]
        for budget in shares(body):
            random = Random(f"{at}/{budget}")
            context = Context(budget, format=form, model=model, counter=counter(body))
            cuts = sorted(random.randint(0, len(messages)) for _ in range(random.randint(0, 3)))
            for number, (start, stop) in enumerate(zip([0, *cuts], [*cuts, len(messages)], strict=True)):
                own = messages[start:stop]
                if own and kind(own[-1]) == "model" and random.random() < 0.3:
                    context.add(f"{number}", own, pinned=True)
                    continue
                told: Body = {"strategy": random.choice(STRATEGIES), "priority": random.randint(0, 3)}
                cap = random.randint(5, 100) if random.random() < 0.2 else None
                context.add(f"{number}", own, max_tokens=cap, **told)
            made, _ = tokens_needed(context.fit)
            if made is None or not made.messages or off(body):  # nobody told a Context that it is off
                continue
            tried += 1
            refused = judge.newly_refused(form, body, {**body, "messages": made.messages})
            assert refused == [], (refused, budget, context, made.positions, body)
    assert tried > size


def test_a_turn_leaves_with_its_thinking() -> None:
    """Also its newest step, which the provider refuses without; one that thinks itself stays."""
    trimmed = fitted(loop(4), 10**4, None, on_trim=lambda trim: trim.remove(1))
    assert trimmed.positions == [0]
    reasons = [row.reason for row in trimmed.report.messages]
    assert reasons == [None, "callback", "unit_of_removed", *["cannot_lead"] * 6]
    assert [one for one in validate(trimmed.request) if one.fault] == []


def test_an_answer_leaves_with_the_words_behind_it() -> None:
    """Where the model goes on with no answer of its own; what was last before stays last."""
    messages = [*chat(2)[:-1], {"role": "user", "content": "and then?"}]
    for made in (
        fit(messages, 10**4, on_trim=lambda trim: trim.remove(4), **STALE),
        Context(10**4, on_trim=lambda trim: trim.remove(4), **STALE).add("chat", messages).fit(),
        Context(10**4, **STALE).add("chat", messages[:4]).add("new", messages[4:], max_tokens=1).fit(),
    ):
        assert made.positions == [0, 1, 2]
        assert made.report.messages[3].reason == "cannot_end"
    assert fit(messages[:4], 10**4, on_trim=lambda trim: trim.remove(9), **STALE).messages == messages[:4]
    older: Body = {**STALE, "model": "claude-sonnet-4-5"}
    plain = [{**one, "content": "yes"} if one["role"] == "assistant" else one for one in messages]
    assert fit(plain, 10**4, on_trim=lambda trim: trim.remove(4), **older).messages == plain[:4]


def test_what_is_pinned_keeps_an_end_behind_it() -> None:
    """A pinned example ends with an answer: the question behind it stays, or the request is refused."""
    messages = chat(1)
    context = Context(120, **STALE).add("example", messages[:2], pinned=True)
    context.add("chat", [*chat(3)[:-1], messages[2]], strategy="drop")
    assert context.fit().messages == messages


def test_a_view_goes_by_the_same() -> None:
    """What a callback of a session takes is of each view; the log has it."""
    session = Session(10**4, on_trim=lambda trim: trim.remove(1), **{**STALE, "model": "claude-sonnet-4-5"})
    session.extend(loop(3)["messages"])
    assert session.messages() == [{"role": "user", "content": "Tidy up."}]
