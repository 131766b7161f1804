"""Agents that think: whatever leaves, what is sent has thinking where the provider asks for it.

A differential over random agent turns, by model, thinking setting and strategy. Read back from the newest
message as far as there is room, or read whole, a conversation is fitted alike; what comes out has nothing
that the judge or `validate` refuses and the input did not have; and nothing is refused whose least fits.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from random import Random
from typing import Any

import pytest

from tests import judge
from tests.sizes import sizes
from trimtab import BudgetExceededError, Context, Fitted, Session, fit, validate
from trimtab.counting import CharCounter, CountRequest
from trimtab.errors import StrategyContractError
from trimtab.formats import get_format
from trimtab.strategies import (
    Cascade,
    ClearToolResults,
    Drop,
    DropNewest,
    Edit,
    EvictionRequest,
    EvictionResult,
    PriorityBased,
    Relevant,
    SlidingWindow,
    Strict,
    Summarize,
    TruncateText,
)

FORMS = ["anthropic", "bedrock"]
Body = dict[str, Any]

STRATEGIES: tuple[Any, ...] = (
    None,
    "steady",
    "agent",
    "cheapest",
    SlidingWindow(keep_turns=True),
    SlidingWindow(keep_first_user=True),
    SlidingWindow(protect_roles=("tool",)),
    SlidingWindow(target_ratio=0.5),
    PriorityBased(),
    Relevant("result"),
    DropNewest(),
    Drop(),
    Strict(),
    TruncateText(),
    Summarize(lambda messages: "so far"),
    Cascade(ClearToolResults(keep_results=1), SlidingWindow(), TruncateText()),
)

SETTINGS: tuple[tuple[str, Body | None], ...] = (
    ("claude-sonnet-4-5", {"type": "enabled", "budget_tokens": 1024}),
    ("claude-sonnet-4-5", {"type": "disabled"}),
    ("claude-sonnet-4-5", None),
    ("claude-opus-4-7", {"type": "adaptive"}),
    ("claude-opus-5-5", {"type": "adaptive"}),
    ("claude-fable-5-1", None),
)
THOUGHT = {"type": "thinking", "thinking": "hm, let me see", "signature": "EqQB"}
REASONING = {"reasoningContent": {"reasoningText": {"text": "hm, let me see", "signature": "EqQB"}}}


class Talk:
    """Writes one conversation of an agent in a wire form."""

    def __init__(self, form: str, random: Random) -> None:
        self.form, self.random, self.calls = form, random, 0
        self.messages: list[Any] = []

    def words(self, most: int = 30) -> str:
        """Write some words."""
        return "word " * self.random.randint(1, most) + "end"

    def text(self, text: str) -> Body:
        """Write a text as a block."""
        return {"text": text} if self.form == "bedrock" else {"type": "text", "text": text}

    def step(self, thinks: bool, *, ends: bool) -> None:
        """Call tools, once or in parallel, with the results; words of the user's may stand beside them."""
        ids = [f"t{self.calls + at}" for at in range(self.random.choice((1, 1, 1, 2)))]
        self.calls += len(ids)
        blocks: list[Body] = [self.thought()] if thinks else []
        if self.random.random() < 0.2:
            blocks.append(self.text(self.words(5)))
        results: list[Body] = []
        for one in ids:
            said = self.words(self.random.choice((5, 60)))
            if self.form == "bedrock":
                blocks.append({"toolUse": {"toolUseId": one, "name": "run", "input": {}}})
                results.append({"toolResult": {"toolUseId": one, "content": [{"text": said}]}})
            else:
                blocks.append({"type": "tool_use", "id": one, "name": "run", "input": {}})
                results.append({"type": "tool_result", "tool_use_id": one, "content": said})
        if not ends and self.random.random() < 0.15:
            results.append(self.text(self.words(5)))
        self.messages.append({"role": "assistant", "content": blocks})
        self.messages.append({"role": "user", "content": results})

    def thought(self) -> Body:
        """Write thinking, which may be redacted."""
        if self.form == "bedrock":
            return REASONING
        if self.random.random() < 0.1:
            return {"type": "redacted_thinking", "data": "EqQB"}
        return THOUGHT

    def turn(self, *, last: bool) -> None:
        """Ask something, let the model work on it, and answer, if the turn is over."""
        self.messages.append({"role": "user", "content": [self.text(self.words())]})
        habit, steps = (
            self.random.choice(("never", "once", "once", "always", "some")),
            self.random.randint(0, 7),
        )
        for at in range(steps):
            thinks = habit == "always" or (habit == "once" and not at)
            thinks = thinks or (habit == "some" and (not at or self.random.random() < 0.4))
            self.step(thinks, ends=at == steps - 1)
        if last and (steps or self.random.random() < 0.5):
            return
        if not last and self.random.random() < 0.1:
            return  # the user goes on without an answer
        said = [self.text(self.words())]
        thinks = habit in ("always", "some")
        self.messages.append({"role": "assistant", "content": [self.thought(), *said] if thinks else said})
        if last:
            self.messages.append({"role": "user", "content": [self.text("and?")]})


def bodies(form: str, count: int, seed: int = 0) -> Iterator[Body]:
    """Yield bodies the provider takes, by every model and setting in turn."""
    at = made = 0
    while made < count:
        random, at = Random(f"{form}/{seed}/{at}"), at + 1
        talk = Talk(form, random)
        turns = random.randint(1, 4)
        for turn in range(turns):
            talk.turn(last=turn == turns - 1)
        body = body_of(form, talk.messages, *SETTINGS[made % len(SETTINGS)])
        if not validate(body) and judge.accepts(form, body):
            made += 1
            yield body


def body_of(form: str, messages: list[Any], model: str, thinking: Body | None) -> Body:
    """Write a body."""
    given: Body = {} if thinking is None else {"thinking": thinking}
    schema: Body = {"type": "object"}
    if form == "anthropic":
        tools = [{"name": "run", "input_schema": schema}]
        return {"model": model, "max_tokens": 2000, "tools": tools, **given, "messages": messages}
    tools = [{"toolSpec": {"name": "run", "inputSchema": {"json": schema}}}]
    fields = {"additionalModelRequestFields": given} if given else {}
    return {
        "modelId": f"us.anthropic.{model}-v1:0",
        "toolConfig": {"tools": tools},
        **fields,
        "messages": messages,
    }


def fitted(body: Body, budget: int, strategy: Any, **options: Any) -> Fitted[Any]:
    """Fit a body."""
    chosen: Body = {"steady": True} if strategy == "steady" else {"strategy": strategy}
    return fit(body, budget, counter=counter(body), **chosen, **options)


def counter(body: Body) -> CharCounter:
    """Count by characters, thinking included."""
    return CharCounter(4, format="bedrock" if "modelId" in body else "anthropic")


def form_of(body: Body) -> str:
    """Name the wire form."""
    return "bedrock" if "modelId" in body else "anthropic"


def shares(body: Body) -> list[int]:
    """Draw budgets from little to nearly all that a body takes."""
    most = fitted(body, 10**5, None).report.tokens_after
    return [max(1, int(most * share)) for share in (0.15, 0.4, 0.7, Random(most).random())]


@pytest.mark.few(1)
@sizes(10, 120)
@pytest.mark.parametrize("form", FORMS)
def test_read_lazily_or_whole_a_body_is_fitted_alike(form: str, size: int) -> None:
    """Whatever the strategy: one answer, and one that both the judge and `validate` take."""
    tried = 0
    for body in bodies(form, size):
        budgets = shares(body)
        for strategy in STRATEGIES:
            read = fitted(body, 10**5, strategy)
            assert list(read.report.messages)  # which reads all of it
            for budget in budgets:
                what = (strategy, budget, body)
                fresh, needed = tokens_needed(lambda: fitted(body, budget, strategy))  # noqa: B023
                again, needed_again = tokens_needed(lambda: read.at(budget))  # noqa: B023
                assert needed == needed_again, what
                if fresh is None or again is None:
                    assert fresh is again, what
                    assert needed is not None
                    assert needed > budget, what
                    continue
                tried += 1
                assert isinstance(strategy, Summarize) or again.positions == fresh.positions, what
                assert [one.rule for one in validate(fresh.request) if one.fault] == [], what
                assert judge.newly_refused(form, body, fresh.request) == [], what
                assert fresh.request["messages"] == fresh.messages or off(body), what
                assert fresh.report.tokens_after == whole_tokens(body, fresh.messages), what
    assert tried > size


def tokens_needed(fit_it: Callable[[], Fitted[Any]]) -> tuple[Fitted[Any] | None, int | None]:
    """Fit; or say how much is needed."""
    try:
        return fit_it(), None
    except BudgetExceededError as error:
        return None, error.needed_tokens


def off(body: Body) -> bool:
    """Tell whether thinking is disabled: the body then leaves out what the last turn has of it."""
    return thinking_of(body).get("type") == "disabled"


def thinking_of(body: Body) -> Body:
    """Return what a body says of thinking."""
    fields: Body = body.get("additionalModelRequestFields", {}) if "modelId" in body else body
    return dict(fields.get("thinking") or {})


def whole_tokens(body: Body, messages: list[Any]) -> int:
    """Count a request of these messages anew."""
    parts = get_format(form_of(body)).read_request(body)
    request = CountRequest(messages, system=parts.system, tools=parts.tools, extra=parts.extra)
    return int(counter(body).count_request(request))


@sizes(10, 120)
@pytest.mark.parametrize("form", FORMS)
def test_lists_and_contexts_are_told_by_the_model(form: str, size: int) -> None:
    """Without a body the model says what it takes; where it thinks with a budget, the turn begins so."""
    for body in bodies(form, size, seed=1):
        model, messages = body.get("model") or body["modelId"], body["messages"]
        given: Body = {"format": form, "model": model, "counter": counter(body)}
        for budget in shares(body):
            listed, _ = tokens_needed(lambda: fit(messages, budget, **given))  # noqa: B023
            context = Context(budget, **given).add("history", messages[:-1]).add("new", messages[-1:])
            middle = len(messages) // 2
            three = Context(budget, **given).add("old", messages[:middle])
            three = three.add("history", messages[middle:-2]).add("new", messages[-2:])
            for made in (listed, tokens_needed(context.fit)[0], tokens_needed(three.fit)[0]):
                if made is not None and made.messages:  # blocks may come to be empty
                    after = {**body, "messages": made.messages}
                    refused = judge.newly_refused(form, body, after)
                    refused = [
                        one for one in refused if one.rule != "ends_with_assistant"
                    ]  # a block may leave
                    assert refused == [], (budget, refused, made.positions, body)
                    assert [one for one in made.report.violations if one.fault] == []


@sizes(10, 120)
@pytest.mark.parametrize("form", FORMS)
def test_a_turn_is_refused_only_if_its_newest_step_does_not_fit(form: str, size: int) -> None:
    """The least is the question, the thinking that opens what is left, and the newest step."""
    fits = 0
    for body in bodies(form, size, seed=2):
        messages = body["messages"]
        if kind(messages[-1]) != "results":
            continue
        newest = len(messages) - 2
        opener = next(at for at in range(newest, -1, -1) if kind(messages[at]) == "words")
        if any(kind(one) == "results" and len(blocks_said(one)) for one in messages[opener:]):
            continue  # words of the user's stand beside results: they stay, too
        thinks = [at for at in range(opener, newest + 1) if starts_with_thinking(messages[at])]
        needs = thinking_of(body).get("type") == "enabled" and thinks
        least = sorted({opener, *((thinks[-1], thinks[-1] + 1) if needs else ()), newest, newest + 1})
        budget = whole_tokens(body, [messages[at] for at in least])
        assert set(fitted(body, budget, None).positions) >= set(least), (body, least)
        fits += 1
    assert fits > size // 8


def kind(message: Body) -> str:
    """Tell words of the user's from results and from what the model says."""
    if message["role"] == "assistant":
        return "model"
    held = [one.get("type") or next(iter(one)) for one in message["content"]]
    return "results" if held[0] in ("tool_result", "toolResult") else "words"


def blocks_said(message: Body) -> list[Any]:
    """List the texts of a message."""
    return [one for one in message["content"] if "text" in one]


def starts_with_thinking(message: Body) -> bool:
    """Tell whether a message begins with thinking."""
    first = message["content"][0]
    return "reasoningContent" in first or first.get("type") in ("thinking", "redacted_thinking")


def loop(steps: int) -> Body:
    """Write a turn of a model that thought once and then called tools."""
    messages: list[Any] = [{"role": "user", "content": "Tidy up."}]
    for at in range(steps):
        use = {"type": "tool_use", "id": f"t{at}", "name": "run", "input": {"n": at}}
        result = {"type": "tool_result", "tool_use_id": f"t{at}", "content": "result " * 40}
        messages.append({"role": "assistant", "content": [*([] if at else [THOUGHT]), use]})
        messages.append({"role": "user", "content": [result]})
    return body_of("anthropic", messages, "claude-sonnet-4-5", {"type": "enabled", "budget_tokens": 1024})


@pytest.mark.parametrize(
    "strategy", [None, "steady", "agent", SlidingWindow(keep_turns=True), PriorityBased()]
)
def test_the_middle_of_a_long_turn_may_leave(strategy: Any) -> None:
    """Whole calls with their results; the thinking message stays beside the cut, as the user's does."""
    fresh = fitted(loop(40), 400, strategy)
    assert fresh.positions[:3] == [0, 1, 2]
    assert fresh.positions[-2:] == [79, 80]
    assert fresh.report.evicted_message_count > 0
    assert [one for one in validate(fresh.request) if one.fault] == []
    states = {row.index: row.state for row in fresh.report.messages}
    assert [states[at] for at in (0, 1, 2, 3, 79)] == ["pinned", "held", "held", "free", "held"]


def test_what_a_callback_takes_the_thinking_from_leaves_with_it() -> None:
    """What would open the turn in its place is gone, too, but for the newest step."""
    body = loop(4)
    body["messages"][5] = {**body["messages"][5], "content": [THOUGHT, *body["messages"][5]["content"]]}
    trimmed = fitted(body, 10**4, None, on_trim=lambda trim: trim.remove(1))
    assert trimmed.positions == [0, 5, 6, 7, 8]
    assert [one for one in validate(trimmed.request) if one.fault] == []
    reasons = {row.index: row.reason for row in trimmed.report.messages if row.fate == "evicted"}
    assert reasons == {1: "callback", 2: "unit_of_removed", 3: "cannot_lead", 4: "cannot_lead"}


def test_turns_that_gaps_would_join_are_kept_apart() -> None:
    """Without the answer between, the old call and the new words would be one turn, begun so."""
    old = [*loop(1)["messages"], {"role": "assistant", "content": "answer " * 60}]
    old[1] = {**old[1], "content": old[1]["content"][1:]}  # it did not think then
    body = {**loop(1), "messages": [*old, {"role": "user", "content": "now?"}]}
    for strategy in (PriorityBased(), DropNewest(), SlidingWindow(protect_roles=("tool",))):
        for budget in range(20, 200, 5):
            fresh, _ = tokens_needed(lambda: fitted(body, budget, strategy))  # noqa: B023
            assert fresh is None or [one for one in validate(fresh.request) if one.fault] == []
    pinned, needed = tokens_needed(lambda: fitted(body, 130, DropNewest(), pin=[1]))
    assert pinned is None
    assert needed == whole_tokens(body, body["messages"])


@pytest.mark.parametrize("chooses", [PriorityBased(), Relevant("result")])
def test_a_step_is_taken_with_the_thinking_it_needs(chooses: Any) -> None:
    """The newer step needs the older one's thinking: where both have no room, the older one alone has."""
    body = loop(3)
    messages = body["messages"]
    messages[5] = {**messages[5], "content": [THOUGHT, *messages[5]["content"]]}
    older = [0, 1, 2, 5, 6]
    budget = whole_tokens(body, [messages[at] for at in older])
    for strategy in (chooses, Cascade(chooses, TruncateText()), Cascade(ClearToolResults(), chooses)):
        assert fitted(body, budget, strategy).positions == older
        assert fitted(body, budget - 1, strategy).positions == [0, 5, 6]


def test_words_whose_results_left_join_nothing() -> None:
    """Words that stood beside results go on with the turn only as long as one of these is there."""
    use = [{"type": "tool_use", "id": f"t{at}", "name": "run", "input": {}} for at in range(3)]
    said = [{"type": "tool_result", "tool_use_id": f"t{at}", "content": "r " * 20} for at in range(3)]
    word = {"type": "text", "text": "faster"}
    messages: list[Any] = [
        *({"role": "user", "content": "go"}, {"role": "assistant", "content": [THOUGHT, use[0]]}),
        *({"role": "user", "content": [said[0]]}, {"role": "assistant", "content": "done"}),
        *({"role": "user", "content": "more"}, {"role": "assistant", "content": [use[1]]}),
        *({"role": "user", "content": [said[1], word]}, {"role": "assistant", "content": [use[2]]}),
        *({"role": "user", "content": [said[2], word]}, {"role": "assistant", "content": "long " * 50}),
        {"role": "user", "content": "so?"},
    ]
    body = {**loop(1), "messages": messages}
    for budget in range(30, 220, 3):
        for strategy in (DropNewest(), PriorityBased()):
            fresh, _ = tokens_needed(lambda: fitted(body, budget, strategy))  # noqa: B023
            assert fresh is None or [one for one in validate(fresh.request) if one.fault] == []


STALE = {"model": "claude-opus-5-5", "format": "anthropic", "counter": CharCounter(4)}


def chat(turns: int) -> list[Any]:
    """Write a chat in which the model thinks about each answer."""
    messages: list[Any] = []
    for at in range(turns):
        messages.append({"role": "user", "content": f"question {at} " + "w " * 40})
        thought = {**THOUGHT, "signature": f"Eq{at}"}
        messages.append({"role": "assistant", "content": [thought, {"type": "text", "text": "x " * 40}]})
    return [*messages, {"role": "user", "content": "last"}]


def thoughts(messages: Iterable[Any]) -> int:
    """Count blocks of thinking."""
    blocks = (block for one in messages if isinstance(one["content"], list) for block in one["content"])
    return sum(block["type"] == "thinking" for block in blocks)


def test_thinking_that_is_bound_leaves_behind_a_change() -> None:
    """Whatever is handed out, and the report says so; without a change all of it stays."""
    messages = chat(20)
    cut = fit(messages, 500, **STALE)
    assert (len(cut.messages) < 41, thoughts(cut.messages), thoughts(cut.request)) == (True, 0, 0)
    rows = [row for row in cut.report.messages if row.fate == "changed"]
    assert {row.reason for row in rows} == {"bound_thinking"}
    assert len(rows) == len(cut.changed) > 3
    assert all((row.tokens_after or 0) < (row.tokens_before or 0) for row in rows)
    assert f"Without the thinking of {len(rows)} messages:" in cut.report.notes[-1]
    assert cut.report.tokens_after == fit(cut.messages, 10**5, **STALE).report.tokens_after
    assert thoughts(fit(messages, 10**4, **STALE).messages) == 20
    other = fit(messages, 500, **{**STALE, "model": "claude-sonnet-4-5"})
    assert thoughts(other.messages) == sum(isinstance(one["content"], list) for one in other.messages) > 3
    newest = fit(messages, 500, strategy=DropNewest(), **STALE)  # whose beginning is as it was
    answers = [one for one in newest.messages if one["role"] == "assistant"]
    assert thoughts(newest.messages) == len(answers) > 3


def test_room_that_stale_thinking_leaves_is_used() -> None:
    """What is sent has none of it, so that more of the rest has room."""
    long = [
        {**one, "content": [{**THOUGHT, "thinking": "hm " * 200}, *one["content"][1:]]}
        if one["role"] == "assistant"
        else one
        for one in chat(20)
    ]
    plain = [
        {**one, "content": one["content"][1:]} if one["role"] == "assistant" else one for one in chat(20)
    ]
    for budget in (100, 500):  # of the first nothing but the newest message would stay
        positions = fit(plain, budget, **STALE).positions
        assert len(positions) > 3
        assert fit(long, budget, **STALE).positions == positions
        assert Context(budget=budget, **STALE).add("chat", long).fit().positions == positions


def test_a_step_is_not_refused_for_thinking_that_is_not_sent() -> None:
    """What goes stale with the cut needs no room; the error for less room says how much is needed."""
    said = [{**THOUGHT, "thinking": "hm " * 300}, loop(2)["messages"][3]["content"][0]]
    old = [{"role": "user", "content": "old " * 100}, {"role": "assistant", "content": "a " * 100}]
    step = [
        {"role": "user", "content": "do it"},
        {"role": "assistant", "content": said},
        loop(2)["messages"][4],
    ]
    bare = [step[0], {"role": "assistant", "content": said[1:]}, step[2]]
    least = fit(bare, 10**4, **STALE).report.tokens_after
    for budget in (least, 2 * least, 5 * least):
        assert fit([*old, *step], budget, **STALE).messages == bare
        assert Context(budget=budget, **STALE).add("chat", [*old, *step]).fit().messages == bare
    with pytest.raises(BudgetExceededError) as refused:
        fit([*old, *step], 2, **STALE)
    fit([*old, *step], refused.value.needed_tokens, **STALE)


@pytest.mark.parametrize("model", ["claude-opus-5-5", "claude-sonnet-4-5"])
def test_a_callback_of_a_context_takes_what_one_of_a_fit_takes(model: str) -> None:
    """What else leaves goes by the model in both: one that thinks adaptively needs no thinking first."""
    messages, given = loop(4)["messages"], {**STALE, "model": model, "on_trim": lambda trim: trim.remove(1)}
    alone = fit(messages, 10**4, **given)
    assert Context(budget=10**4, **given).add("chat", messages).fit().positions == alone.positions
    assert (len(alone.positions) == 7) is (model == "claude-opus-5-5")


def test_chat_messages_of_gateways_and_frameworks_lose_it_too() -> None:
    """LangChain keeps blocks in the content, LiteLLM and others keys beside it."""
    blocks = [{"type": "thinking", "thinking": "hm", "signature": "Eq"}, {"type": "text", "text": "yes"}]
    messages = [
        *({"role": "user", "content": "old " * 50}, {"role": "assistant", "content": blocks}),
        *({"role": "user", "content": "q"}, {"role": "assistant", "content": blocks}),
        *(
            {"role": "user", "content": "r"},
            {"role": "assistant", "content": "no", "thinking_blocks": blocks[:1]},
        ),
        {"role": "user", "content": "s"},
    ]
    told: Body = {"format": "openai_chat", "counter": CharCounter(4)}
    cut = fit(messages, 50, model="anthropic/claude-opus-5-5", **told)
    assert cut.messages[1:] == [
        *({"role": "assistant", "content": blocks[1:]}, messages[4]),
        *({"role": "assistant", "content": "no"}, messages[6]),
    ]
    assert fit(messages, 50, model="gpt-5", **told).messages[-2] is messages[5]


@pytest.mark.parametrize("options", [{}, {"summarizer": lambda request: "so far"}, {"recall_ratio": 0.2}])
def test_a_session_keeps_what_was_made_with_the_view_before(options: Body) -> None:
    """Each block that a view shows was made with the very messages that stand before it."""
    session = Session(300, **STALE, **options)
    made: dict[str, list[Any]] = {}
    shown = 0
    for turn in range(40):
        session.add({"role": "user", "content": f"question {turn} " + "w " * 30})
        for step in range(turn % 4 + 1):
            view = session.messages()
            for at, message in enumerate(view):
                blocks = message["content"] if isinstance(message["content"], list) else []
                for block in (one for one in blocks if one["type"] == "thinking"):
                    assert view[:at] == made[block["signature"]]
                    shown += 1
            signature = f"{turn}.{step}"
            made[signature] = copy.deepcopy(view)
            thought = {**THOUGHT, "signature": signature}
            if step == turn % 4:
                session.add({"role": "assistant", "content": [thought, {"type": "text", "text": "x " * 30}]})
                break
            use = {"type": "tool_use", "id": signature.replace(".", "_"), "name": "run", "input": {}}
            session.add({"role": "assistant", "content": [thought, use]})
            said = {"type": "tool_result", "tool_use_id": use["id"], "content": "r " * 20}
            session.add({"role": "user", "content": [said]})
    assert shown > 40


class Edits:
    """A strategy of one's own that writes a text, and says that it fits."""

    name = "mine"

    def __init__(self, index: int, path: Any, text: str, **more: Any) -> None:
        self.edit, self.more = Edit(index=index, texts={path: text}), more

    def evict(self, request: EvictionRequest) -> EvictionResult:
        """Keep everything, with one text written anew."""
        return EvictionResult(kept=list(request.units), edits=[self.edit], **self.more)


@pytest.mark.parametrize(
    ("index", "path", "text", "more", "said"),
    [
        (
            0,
            ("content",),
            "",
            {},
            "so that the provider refuses it: all messages must have non-empty content",
        ),
        (3, ("role",), "user", {}, "where no text is"),
        (1, ("content", 0, "id"), "zz", {}, "where no text is"),
        (4, ("content",), "another question", {}, "which is pinned"),
        (99, ("content",), "x", {}, "which is evicted"),
        (3, ("content",), "short", {"planned_cut": ()}, "as planned_cut"),
    ],
)
def test_every_answer_of_a_strategy_is_checked_alike(
    index: int, path: Any, text: str, more: Body, said: str
) -> None:
    """Alone, as the first step of a cascade that says it fits, and as a fallback."""
    messages = [
        {"role": "user", "content": "a" * 200},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "f", "input": {}}]},
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "r" * 200}],
        },
        {"role": "assistant", "content": "b" * 200},
        {"role": "user", "content": "q"},
    ]
    mine = Edits(index, path, text, **more)
    told: Body = {"format": "anthropic", "counter": CharCounter(4)}
    for strategy in (
        mine,
        Cascade(mine, SlidingWindow(), TruncateText()),
        Summarize(lambda m: "", fallback=mine),
    ):
        with pytest.raises(StrategyContractError, match=said):
            fit(messages, 140, strategy=strategy, **told)
