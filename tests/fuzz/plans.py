"""One fuzz case from a form and a seed: a request, a strategy, a budget, and the door it goes through."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from random import Random
from typing import Any

from trimtab import BudgetExceededError, Context, ContextError, Fitted, fit
from trimtab.counting import CountRequest
from trimtab.formats import Request, Structure, get_format
from trimtab.strategies import Edit, EvictionRequest, EvictionResult, Strategy, create_strategy
from trimtab.testing import request_bodies
from trimtab.testing.corpus import COUNTERS, NAMES, Case

FORMS = ("openai_chat", "openai_responses", "anthropic", "gemini", "bedrock")


_WINDOW = {"kind": "sliding_window"}
_CLEAR = {"kind": "clear_tool_results", "keep_results": 0}
_CUT = {"kind": "truncate_text"}
STRATEGIES: tuple[dict[str, Any] | str | None, ...] = (
    *(None,) * 5,
    _WINDOW,
    {**_WINDOW, "keep_turns": True},
    {**_WINDOW, "keep_first_user": True},
    {**_WINDOW, "protect_roles": ["user"]},
    {**_WINDOW, "protect_roles": ["tool", "assistant", "model"], "keep_first_user": True},
    {**_WINDOW, "min_messages": 4},
    {**_WINDOW, "target_ratio": 0.5},
    {**_WINDOW, "target_ratio": 0.7, "keep_turns": True},
    "drop",
    "drop_newest",
    "priority_based",
    {"kind": "priority_based", "score": {"relevance": 1, "role": 0.3}},
    "relevant",
    {"kind": "relevant", "recent_ratio": 0.2, "gap": "[{count} left out]"},
    "strict",
    _CUT,
    {**_CUT, "keep": "start"},
    {**_CUT, "keep": "both"},
    "clear_tool_results",
    _CLEAR,
    {**_CLEAR, "keep_results": 1, "clear_at_least_tokens": 20, "exclude_tools": ["search"]},
    {"kind": "cheapest", "pricing": "openai", "room_weight": 0.1},
    {"kind": "clamp_results", "max_tokens": 9},
    {"kind": "clamp_results", "max_ratio": 0.2, "texts": True},
    "agent",
    {"kind": "summarize", "summarizer": "gist"},
    {"kind": "summarize", "summarizer": "wordy", "max_summary_tokens": 20, "fallback": "drop_newest"},
    {"kind": "cascade", "steps": [_CLEAR, {**_WINDOW, "keep_turns": True}, {**_CUT, "keep": "both"}]},
    {"kind": "cascade", "steps": [{**_CLEAR, "keep_results": 1}, "priority_based", _CUT]},
    {"kind": "cascade", "steps": [_CLEAR, {"kind": "relevant", "gap": "[{count} left out]"}, _CUT]},
    {"kind": "cascade", "steps": ["drop_newest", {**_CUT, "keep": "start"}]},
    {"kind": "cascade", "steps": [_CLEAR, {"kind": "summarize", "summarizer": "gist"}, _CUT]},
    "oldest_first",
)
_MODELS: Mapping[str, tuple[str, ...]] = {
    "anthropic": ("claude-sonnet-4-5", "claude-opus-4-7", "claude-opus-5-5", "claude-fable-5-1"),
    "bedrock": ("us.anthropic.claude-sonnet-4-5-v1:0", "us.anthropic.claude-opus-5-5-v1:0"),
}
_THINKING = ({"type": "enabled", "budget_tokens": 1024}, {"type": "disabled"}, {"type": "adaptive"}, None)


class EverySecond:
    """A strategy of somebody's own that thins the middle out, and says whether that was enough."""

    name = "every_second"

    def evict(self, request: EvictionRequest, /) -> EvictionResult:
        """Keep what must stay and every second of the others."""
        kept = [unit for at, unit in enumerate(request.units) if at % 2 or request.stays(unit)]
        return EvictionResult(kept=kept, fits=request.fits(kept))


class FirstWords:
    """A strategy of somebody's own that shortens texts, and leaves the rest to the next step."""

    name = "first_words"

    def evict(self, request: EvictionRequest, /) -> EvictionResult:
        """Leave three words of what every unit that may leave says, but of the newest."""
        history = request.history
        free = [unit for unit in request.units[:-1] if not request.stays(unit) and not unit.parts]
        edits = []
        for at in sorted({at for unit in free for at in unit.indices}):
            slots = history.format.texts(request.message(at))
            texts = {one.path: " ".join(one.text.split()[:3]) + " …" for one in slots if len(one.text) > 40}
            if texts:
                edits.append(Edit(index=at, texts=texts))
        return EvictionResult(kept=list(request.units), edits=edits, fits=False)


OWN: Mapping[str, Any] = {"every_second": EverySecond(), "first_words": FirstWords()}
_OWN_STEPS: tuple[list[Any], ...] = (
    ["oldest_first", _CUT],
    ["every_second"],
    ["every_second", "oldest_first"],
    [_CLEAR, "every_second", _WINDOW],
    ["first_words", _WINDOW],
    ["first_words", "every_second", {"kind": "summarize", "summarizer": "gist"}],
    [{"kind": "clamp_results", "max_tokens": 9}, "first_words", "drop_newest"],
)
DOORS = ("list", "list", "list", "body", "body", "context")


@dataclass(kw_only=True)
class Plan:
    """A fuzz case, before anything is done."""

    form: str
    seed: str
    body: dict[str, Any]
    strategy: dict[str, Any] | str | None
    counter: str
    percent: int
    """The budget, of what the whole request costs, or of what may leave."""
    above_least: bool
    """Whether what must stay comes on top of that."""
    door: str
    black_box: bool = False
    pin: tuple[int, ...] = ()
    pending_calls: tuple[str, ...] = ()
    removed: tuple[int, ...] | None = None
    """What a callback removes; None: there is no callback."""
    repair: bool = False
    cuts: tuple[int, ...] = ()
    """Where the blocks of a Context end."""
    options: tuple[dict[str, Any], ...] = field(default_factory=tuple)
    """What else is said of each block."""

    @cached_property
    def request(self) -> Request:
        """The body taken apart."""
        return get_format(self.form).read_request(self.body)

    def count(self, messages: Any, system: Any) -> int:
        """Count a whole request, from nothing."""
        parts = self.request
        extra = parts.extra if self.door == "body" else {}
        counter = COUNTERS[self.counter](self.form)
        return int(
            counter.count_request(CountRequest(messages, system=system, tools=parts.tools, extra=extra))
        )

    @cached_property
    def budget_tokens(self) -> int:
        """The budget."""
        parts = self.request
        least, whole = 0, self.count(parts.messages, parts.system)
        if self.above_least and self.door != "context":
            try:
                self.fitted(1, None)
            except BudgetExceededError as error:
                least = min(whole, error.needed_tokens or 0)
            except ContextError:  # it will be said of the case itself
                pass
        return max(1, least + (whole - least) * self.percent // 100)

    def run(self) -> Fitted[Any]:
        """Do it."""
        return self.fitted(self.budget_tokens, self.make_strategy())

    def fitted(self, budget_tokens: int, strategy: Strategy | None) -> Fitted[Any]:
        """Fit it into a budget by a strategy."""
        parts = self.request
        given: dict[str, Any] = {
            "counter": self.counter_given(),
            "format": self.form,
            "pending_calls": self.pending_calls,
            "on_trim": self.callback(),
        }
        beside = {} if self.door == "body" else {"system": parts.system, "tools": parts.tools}
        if self.door == "context":
            return self.composed(Context(budget_tokens, **given, **beside)).fit()
        messages = self.body if self.door == "body" else parts.messages
        return fit(
            messages,
            budget_tokens,
            strategy=strategy,
            pin=self.pin,
            repair=self.repair,
            **given,
            **beside,
        )

    def counter_given(self) -> Any:
        """Give the counter, as a function over whole requests where it is a black box."""
        counter = COUNTERS[self.counter](self.form)
        return counter.count if self.black_box else counter

    def callback(self) -> Any:
        """Give the callback, if there is one."""
        removed = self.removed
        return None if removed is None else lambda trim: trim.remove(removed)

    def composed(self, context: Context) -> Context:
        """Lay the messages into blocks, one behind the other."""
        messages = list(self.request.messages)
        starts = (0, *self.cuts)
        for at, (start, stop) in enumerate(zip(starts, (*self.cuts, len(messages)), strict=True)):
            context.add(
                f"block {at}", messages[start:stop], strategy=self.make_strategy(), **self.options[at]
            )
        return context

    def make_strategy(self) -> Strategy | None:
        """Make the strategy."""
        return None if self.strategy is None else create_strategy(self.strategy, names={**NAMES, **OWN})

    @property
    def asks_again(self) -> bool:
        """Tell whether another fit of the result may do something: a callback, a summarizer."""
        return self.removed is not None or "summar" in str(self.strategy)

    def to_case(self, note: str) -> Case:
        """Make an entry of the corpus of it."""
        return Case(
            id=f"{self.form}/fuzz-{self.seed}",
            form=self.form,
            request=self.body,
            budget_tokens=self.budget_tokens,
            counter=self.counter,
            strategy=self.strategy,
            pin=list(self.pin),
            pending_calls=list(self.pending_calls),
            repair=self.repair,
            note=note,
        )


def plan(form: str, seed: str) -> Plan:
    """Make the case of a seed, which is a set of cases and a number in it: "5/17"."""
    random = Random(f"plan/{form}/{seed}")
    valid = random.random() < 0.4
    base, number = map(int, seed.split("/"))
    (body,) = request_bodies(
        1, format=form, seed=base * 10**6 + number, valid=valid, max_messages=random.choice((4, 8, 14))
    )
    count = len(get_format(form).read_request(body).messages)
    made = Plan(
        form=form,
        seed=seed,
        body=body,
        strategy=random.choice(STRATEGIES),
        counter=random.choice(("words", "words", "chars", "fixed")),
        percent=random.choice((0, 5, 110, *(random.randint(15, 105) for _ in range(7)))),
        door=random.choice(DOORS),
        above_least=random.random() < 0.6,
    )
    made.black_box = made.door == "list" and made.counter == "words" and random.random() < 0.1
    if made.black_box:  # a list-only counter sees system text and tools as a message
        key = get_format(form).rules.body_key
        made.body = {key: body[key]}
    if random.random() < 0.15:
        made.pin = tuple(random.randrange(count) for _ in range(random.choice((1, 2)))) if count else ()
    if random.random() < 0.1:
        made.pending_calls = tuple(f"{prefix}{random.randint(1, 6)}" for prefix in _ID_PREFIXES[form])
    if random.random() < 0.1:
        made.removed = tuple(random.randint(0, max(1, count)) for _ in range(random.choice((0, 1, 2))))
    if made.door == "context":
        made.cuts = tuple(
            sorted(_before_no_result(made, random.randint(0, count)) for _ in range(random.choice((0, 1, 2))))
        )
        made.options = tuple(_options(random) for _ in range(len(made.cuts) + 1))
        made.pin = ()
    else:
        made.repair = random.random() < 0.15
    if random.random() < 0.1:
        made.strategy = {"kind": "cascade", "steps": random.choice(_OWN_STEPS)}
    if form in _MODELS and made.door == "body" and random.random() < 0.5:
        made.body = _told(form, made.body, random.choice(_MODELS[form]), random.choice(_THINKING))
    return made


def _told(form: str, body: dict[str, Any], model: str, thinking: dict[str, Any] | None) -> dict[str, Any]:
    """Say in a body which model it is for, and whether that thinks."""
    if form == "anthropic":
        return {**body, "model": model} | ({"thinking": thinking} if thinking else {})
    fields = {"additionalModelRequestFields": {"thinking": thinking}} if thinking else {}
    return {**body, "modelId": model, **fields}


def _before_no_result(made: Plan, cut: int) -> int:
    """Move a cut behind results that are parts of a message: of these a block may keep some."""
    form, messages = get_format(made.form), made.request.messages
    if form.rules.results_are_messages:
        return cut
    structure = Structure(len(messages))
    form.scan(list(messages), 0, len(messages), structure)
    return next((at for at in range(cut, len(messages)) if at not in structure.answers), len(messages))


_ID_PREFIXES: Mapping[str, tuple[str, ...]] = {
    "openai_chat": ("call_",),
    "openai_responses": ("call_",),
    "anthropic": ("toolu_",),
    "gemini": ("fc_",),
    "bedrock": ("tooluse_",),
}


def _options(random: Random) -> dict[str, Any]:
    return random.choice(
        (
            {},
            {"priority": random.randint(0, 9)},
            {"priority": random.randint(1, 9), "max_ratio": 0.5},
            {"min_ratio": 0.3},
            {"pinned": True},
        )
    )
