"""The providers' own clients through a gateway: loops of hundreds of calls, streams, errors."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from typing import Any

import anthropic
import openai
import pytest
from google.genai import errors, types

from tests.gateway.gateways import Running, gateway, talk
from tests.integrations.anthropic import play as claude
from tests.integrations.google_genai import play as gemini
from tests.integrations.loops import LOOPS, Loop
from tests.integrations.openai import play as gpt
from tests.integrations.upstream import BUDGET_TOKENS, hold
from tests.judge.server import Provider, provider
from trimtab.formats import read_refusal

Play = Callable[..., tuple[Any, list[Any]]]
PLAYS: list[tuple[str, Play, int]] = [
    ("chat completions", gpt.play_chat, BUDGET_TOKENS),
    ("responses", gpt.play_responses, BUDGET_TOKENS),
    ("messages", claude.play, claude.BUDGET_TOKENS),
    ("generate content", gemini.play, BUDGET_TOKENS),
]


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of models: the wire is what is tested
        yield


@pytest.mark.long
@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.name)
@pytest.mark.parametrize(("name", "play", "budget"), PLAYS, ids=[name for name, _, _ in PLAYS])
def test_a_loop_through_a_gateway_is_as_good_as_with_an_adapter(
    name: str, play: Play, budget: int, loop: Loop
) -> None:
    """Valid, within the budget, the question and new results in view; the budget used, the prefix kept.

    The client is bare: all it knows of trimtab is a base URL.
    """
    with ExitStack() as stack:
        score, _ = play(loop, 0, through=_through(stack, budget))
    hold(score, loop)


def _through(stack: ExitStack, budget: int) -> Callable[[str], Running]:
    return lambda address: stack.enter_context(gateway(address, budgets={"*": str(budget)}))


@pytest.mark.parametrize(("name", "play", "budget"), PLAYS, ids=[name for name, _, _ in PLAYS])
def test_a_small_loop_through_a_gateway_is_valid_and_within_the_budget(
    name: str, play: Play, budget: int
) -> None:
    """A loop with tools, up to its twelfth question, when not all of it has room any more."""
    loop = LOOPS[0]
    short = replace(loop, questions=loop.questions[:12])
    with ExitStack() as stack:
        score, _ = play(short, 0, through=_through(stack, budget))
    assert (score.invalid, score.over, score.blind) == ([], [], [])
    assert score.requests == short.model_calls
    assert score.fills


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[Running, Provider]]:
    """A gateway before all APIs, which judge what they are sent."""
    with provider() as behind, gateway(behind.address, budgets={"*": "1k"}) as front:
        yield front, behind


TALK: list[Any] = talk(20)
LONG: list[Any] = [{"role": "user", "content": "word " * 3_000}]


def _contents(messages: list[Any]) -> Any:
    """Write messages as Google's client takes them."""
    names = {"user": "user", "assistant": "model"}
    return [
        types.Content(role=names[one["role"]], parts=[types.Part(text=one["content"])]) for one in messages
    ]


def _ask(served: Any, name: str, messages: Any) -> list[str]:
    """Ask with the client of an API, whole or streamed; gives what came, as text."""
    api, streams = name.split(", ")[0], name.endswith("streamed")
    more: dict[str, Any] = {"stream": True} if streams else {}
    made: Any
    if api == "content":
        with closing(gemini.client_of(served)) as google:
            models = google.models
            generate = models.generate_content_stream if streams else models.generate_content
            made = generate(model=gemini.MODEL, contents=_contents(messages))
            return [one.model_dump_json() for one in (made if streams else [made])]
    if api == "messages":
        with closing(claude.client_of(served, max_retries=0)) as client:
            made = client.messages.create(model=claude.MODEL, max_tokens=9, messages=messages, **more)
            return [one.model_dump_json() for one in (made if streams else [made])]
    with closing(gpt.client_of(served, max_retries=0)) as gpts:
        if api == "responses":
            made = gpts.responses.create(model="gpt-5", input=messages, **more)
        else:
            made = gpts.chat.completions.create(model="gpt-4o", messages=messages, **more)
        return [one.model_dump_json() for one in (made if streams else [made])]


APIS = ("chat", "responses", "messages", "content")
NAMES = [f"{name}{way}" for name in APIS for way in ("", ", streamed")]


@pytest.mark.parametrize("name", NAMES)
def test_a_client_gets_what_it_would_get_of_the_provider(pair: tuple[Running, Provider], name: str) -> None:
    """The same answer and events; and the provider got a shorter conversation."""
    front, behind = pair
    direct = _ask(behind, name, TALK)
    whole = behind.bodies[-1][1]
    assert _without_ids(_ask(front, name, TALK)) == _without_ids(direct)
    form, sent = behind.bodies[-1]
    key = {"openai_responses": "input", "gemini": "contents"}.get(form, "messages")
    assert 0 < len(sent[key]) < len(whole[key]) == len(TALK)


def _without_ids(texts: list[str]) -> list[str]:
    """Take out what Google's client keeps of the connection."""
    return [one.partition('"sdk_http_response"')[0] for one in texts]


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("chat", openai.BadRequestError),
        ("responses, streamed", openai.BadRequestError),
        ("messages", anthropic.BadRequestError),
        ("content", errors.ClientError),
    ],
)
def test_a_client_raises_its_own_error_for_what_cannot_fit(
    pair: tuple[Running, Provider], name: str, error: type[Exception]
) -> None:
    """The class and the words that programs look for; OpenAI's has the code as well."""
    front, behind = pair
    before = len(behind.bodies)
    with pytest.raises(error) as caught:
        _ask(front, name, LONG)
    refusal = read_refusal(str(caught.value))
    assert refusal is not None
    assert (refusal.kind, len(behind.bodies)) == ("too_long", before)
    assert (refusal.sent_tokens or 0) > 3_000
    if isinstance(caught.value, openai.BadRequestError):
        assert caught.value.code == "context_length_exceeded"
