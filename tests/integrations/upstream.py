"""A model on this machine: it plays a loop, judges what it is sent, and says how good that was."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any
from urllib.parse import unquote

from tests.integrations.loops import Calls, Loop, Question, Says, label_of
from tests.judge import judge
from tests.judge.server import CONVERSE, GEMINI, answered, form_of, is_streamed
from tests.judge.streams import streamed
from tests.loopback import JSONHandler, loopback
from trimtab import counter_for
from trimtab.counting import EstimateCounter, measure
from trimtab.formats import get_format

BUDGET_TOKENS = 4_000

UNKNOWN = "mine"
"""A model of one's own, which nobody knows."""


@dataclass(slots=True)
class Score:
    """What a framework sent in a loop."""

    requests: int = 0
    invalid: list[str] = field(default_factory=list)
    """The provider's words for what it would refuse."""
    over: list[int] = field(default_factory=list)
    """Tokens of the requests above the budget."""
    blind: list[str] = field(default_factory=list)
    """What the model should have seen and did not: the question of the turn, or a result that just came."""
    tokens: int = 0
    shared_tokens: int = 0
    """Of these, in messages that begin the request as they began the one before."""
    fills: list[float] = field(default_factory=list)
    """Shares of the budget, of the requests since one could not be sent whole."""
    sizes: list[int] = field(default_factory=list)
    """Tokens of each request, in the form of the wire."""
    marks: list[int] = field(default_factory=list)
    """How many marks for a prompt cache each request has."""

    @property
    def reuse(self) -> float:
        """Share of the tokens that a prompt cache knows."""
        return self.shared_tokens / max(1, self.tokens)

    @property
    def fill(self) -> float:
        """Mean share of the budget."""
        return sum(self.fills) / max(1, len(self.fills))


def hold(score: Score, loop: Loop, *, fill: float = 0.65, reuse: float = 0.70, price: float = 0.23) -> None:
    """Hold what was sent in a loop to what every adapter promises.

    Each request is valid, within the budget, and shows the question of the turn and the results that just
    came; most of the budget is used, and most of a request is known to a prompt cache. With reads from it at
    a tenth a call costs at most so much of the budget's price; with huge results, of which each is a quarter
    of the budget, two hundredths more.
    """
    assert (score.requests, score.invalid, score.over, score.blind) == (loop.model_calls, [], [], [])
    assert score.fill >= fill
    assert score.reuse >= reuse
    assert score.fill * (1 - 0.9 * score.reuse) <= price + (0.02 if loop.huge_every else 0)


@dataclass(slots=True)
class Upstream:
    """Plays the model of a loop."""

    loop: Loop
    budget_tokens: int
    bills: bool = False
    """Whether answers say what the request was billed; else what the smallest answer of the form says."""
    charges: tuple[str | None, float] = ("gpt-4o", 1.0)
    """Whose tokens are charged: a model trimtab counts for, and the part of that count which is billed."""
    address: str = ""
    score: Score = field(default_factory=Score)
    _place: tuple[int, int] = (0, 0)
    """Question and step that are asked next."""
    _came: tuple[int, ...] = ()
    """Places whose results just came."""
    _before: list[str] = field(default_factory=list)
    _whole_tokens: int = 0
    """What was said so far: what a request would have that leaves nothing out, less the schemas."""

    def answer(self, form: str, body: dict[str, Any]) -> Any:
        """Take a request, and answer as the script says."""
        number, step = self._place
        question = self.loop.questions[number]
        tokens = self._look(form, body, question, begins=not step)
        said = question.steps[step]
        self._place = (number + 1, 0) if isinstance(said, Says) else (number, step + 1)
        self._came = said.places if isinstance(said, Calls) else ()
        answer = WRITERS[form](said, str(body.get("model")), self.score.requests)
        if "id" in answer:  # a framework takes two answers of one id for the same
            answer["id"] += f"_{self.score.requests}"
        self._whole_tokens += self._count(json.dumps(said))
        return {**answer, **_bill(form, tokens)} if self.bills else answer

    def _look(self, form: str, body: dict[str, Any], question: Question, *, begins: bool) -> int:
        score, text = self.score, json.dumps(body, ensure_ascii=False)
        score.requests += 1
        score.invalid += [refusal.words for refusal in judge(form, body)]
        labels = [question.label, *map(label_of, self._came)]
        if missing := [label for label in labels if label not in text]:
            score.blind.append(f"request {score.requests}: {', '.join(missing)}")
        tokens = self._charge(form, body)
        score.sizes.append(tokens)
        score.marks.append(count_marks(text))
        if tokens > self.budget_tokens:
            score.over.append(tokens)
        self._whole_tokens += sum(self._count(self.loop.answer(place)) for place in self._came)
        self._whole_tokens += self._count(question.text) if begins else 0
        if self._whole_tokens > self.budget_tokens:
            score.fills.append(tokens / self.budget_tokens)
        key = get_format(form).rules.body_key
        written = [json.dumps(one, sort_keys=True) for one in body[key]]
        pairs = zip(written, self._before, strict=False)
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        score.tokens += tokens
        score.shared_tokens += self._charge(form, {**body, key: body[key][:same]}) if same else 0
        self._before = written
        return tokens

    def _count(self, text: str) -> int:
        model, part = self.charges
        return round(part * counter_for(model or "gpt-4o").count([{"role": "user", "content": text}]))

    def _charge(self, form: str, body: dict[str, Any]) -> int:
        """Count a request as trimtab does, as the body it is; a provider may charge less."""
        model, part = self.charges
        name = model or str(body.get("model") or body.get("modelId"))
        counter = EstimateCounter() if name == UNKNOWN else counter_for(name)
        return round(part * measure(body, counter=counter, format=form).tokens)


MARKS = ("cache_control", "cachePoint", "prompt_cache_breakpoint", "CachePoint")
"""The words of marks for a prompt cache, on the wire and in frameworks."""


def count_marks(said: object) -> int:
    """Count the marks for a prompt cache in what is written of something."""
    text = str(said)
    return sum(text.count(word) for word in MARKS)


def _bill(form: str, tokens: int) -> dict[str, Any]:
    """Write what a provider says a request was billed; of the answer that it had one token."""
    if form == "gemini":
        return {"usageMetadata": {"promptTokenCount": tokens, "totalTokenCount": tokens + 1}}
    if form == "bedrock":
        return {"usage": {"inputTokens": tokens, "outputTokens": 1, "totalTokens": tokens + 1}}
    if form == "openai_chat":
        return {"usage": {"prompt_tokens": tokens, "completion_tokens": 1, "total_tokens": tokens + 1}}
    return {"usage": {"input_tokens": tokens, "output_tokens": 1, "total_tokens": tokens + 1}}


@contextmanager
def upstream(
    loop: Loop,
    *,
    budget_tokens: int = BUDGET_TOKENS,
    bills: bool = False,
    charges: tuple[str | None, float] | None = None,
) -> Iterator[Upstream]:
    """Serve the model of a loop for as long as the block lasts; what it would refuse is answered, too."""
    state = Upstream(loop, budget_tokens, bills, charges or (loop.charged_as, 1.0))

    class Answering(JSONHandler):
        def do_POST(self) -> None:
            path, body = self.path.partition("?")[0], self.received()
            form = form_of(path)
            if found := GEMINI.fullmatch(path):
                body = {**body, "model": found["model"]}
            if found := CONVERSE.fullmatch(path):
                body = {**body, "modelId": unquote(found["model"])}
            answer = state.answer(form, body)
            if is_streamed(self.path, body):
                self.stream(streamed(form, answer))
            else:
                self.answer(200, answer)

    with loopback(Answering) as state.address:
        yield state


def _chat(said: Calls | Says, model: str, number: int) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": None}
    if isinstance(said, Says):
        message["content"] = said.text
    else:
        message["tool_calls"] = [
            {"id": f"call_{n}", "type": "function", "function": {"name": "look", "arguments": _place(n)}}
            for n in said.places
        ]
    ends = "stop" if isinstance(said, Says) else "tool_calls"
    choices = [{"index": 0, "message": message, "finish_reason": ends}]
    return {**answered("openai_chat", model), "choices": choices}


def _responses(said: Calls | Says, model: str, number: int) -> dict[str, Any]:
    answer = answered("openai_responses", model)
    if isinstance(said, Says):
        answer["output"][0]["id"] = f"msg_{number}"  # the provider gives none twice, and refuses one that is
        answer["output"][0]["content"][0]["text"] = said.text
        return answer
    output = [
        {
            "type": "function_call",
            "id": f"fc_{n}",
            "call_id": f"call_{n}",
            "name": "look",
            "arguments": _place(n),
            "status": "completed",
        }
        for n in said.places
    ]
    return {**answer, "output": output}


def _anthropic(said: Calls | Says, model: str, number: int) -> dict[str, Any]:
    answer = answered("anthropic", model)
    if isinstance(said, Says):
        return {**answer, "content": [{"type": "text", "text": said.text}]}
    content = [
        {"type": "tool_use", "id": f"call_{n}", "name": "look", "input": {"place": n}} for n in said.places
    ]
    return {**answer, "content": content, "stop_reason": "tool_use"}


def _gemini(said: Calls | Says, model: str, number: int) -> dict[str, Any]:
    parts: list[dict[str, Any]]
    if isinstance(said, Says):
        parts = [{"text": said.text}]
    else:
        parts = [
            {"functionCall": {"id": f"call_{n}", "name": "look", "args": {"place": n}}} for n in said.places
        ]
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}
    return {**answered("gemini", model), "candidates": [candidate]}


def _bedrock(said: Calls | Says, model: str, number: int) -> dict[str, Any]:
    answer = answered("bedrock", model)
    if isinstance(said, Says):
        answer["output"]["message"]["content"] = [{"text": said.text}]
        return answer
    uses = [
        {"toolUse": {"toolUseId": f"call_{n}", "name": "look", "input": {"place": n}}} for n in said.places
    ]
    answer["output"]["message"]["content"] = uses
    return {**answer, "stopReason": "tool_use"}


def _place(number: int) -> str:
    return json.dumps({"place": number})


WRITERS = {
    "openai_chat": _chat,
    "openai_responses": _responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
    "bedrock": _bedrock,
}
"""What writes an answer of the script in a wire form: what is said, by which model, to which request."""
