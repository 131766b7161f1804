"""What is asked for, and by which budget, is read from the path that an upstream gets, however it came."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import pytest

from tests.gateway.gateways import APIS, gateway, recorder, talk

SAID = talk(20)
GEMINI = [
    {"role": {"assistant": "model"}.get(one["role"], "user"), "parts": [{"text": one["content"]}]}
    for one in SAID
]
BODIES: Mapping[str, Mapping[str, Any]] = {
    "chat": {"model": "gpt-4o", "messages": SAID},
    "responses": {"model": "gpt-4o", "input": SAID},
    "messages": {"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": SAID},
    "content": {"contents": GEMINI},
}
ENDS = {
    "/v1/chat/completions": "chat",
    "/openai/deployments/prod/chat/completions": "chat",
    "/v1/responses": "responses",
    "/v1/responses/input_tokens": "responses",
    "/v1/messages": "messages",
    "/v1/messages/count_tokens": "messages",
    "/v1beta/models/gemini-2.5-flash:generateContent": "content",
    "/v1beta/models/gemini-2.5-flash:streamGenerateContent": "content",
    "/v1beta/models/gemini-2.5-flash:countTokens": "content",
}
"""Where servers have conversations, and what these are."""


def _splits() -> dict[str, list[tuple[str, str]]]:
    """List by the path of a server how each of the ends is reached: with the shared segment, and without."""
    found: dict[str, list[tuple[str, str]]] = {}
    for end in ENDS:
        parts = end[1:].split("/")
        for many in range(len(parts)):
            base, rest = ("/" + "/".join(one) if one else "" for one in (parts[:many], parts[many:]))
            found.setdefault(base, []).append((rest, end))
            if base:
                found[base].append((f"/{parts[many - 1]}{rest}", end))
                found[base].append((f"/{rest}", end))
    return found


@pytest.mark.parametrize(("base", "paths"), list(_splits().items()))
def test_no_part_of_a_path_that_is_the_servers_is_a_way_around_the_budget(
    base: str, paths: Sequence[tuple[str, str]]
) -> None:
    """A client may leave out what its base URL shares with the server's: the server gets the same path."""
    with ExitStack() as stack:
        behind = stack.enter_context(recorder())
        servers = [{"api": api, "url": behind.address + base} for api in APIS]
        # One server alone is asked about everything, whatever API its path seems to be of.
        asked = [servers, servers[1:2]] if base == "/v1" else [servers]
        fronts = [stack.enter_context(gateway(given, budgets={"*": "1k"})) for given in asked]
        for path, end in paths:
            for one in fronts:
                answer = one.ask(path, BODIES[ENDS[end]])
                assert (answer.status, behind.seen[-1].target.replace("//", "/")) == (200, end), path
                assert answer.report["after"] <= 1_000 < answer.report["before"], path


ROUTES = {"*": "6k", "route:/v1/chat/completions": "2k", "route:/inner/v1/responses": "3k"}


@pytest.mark.parametrize("base", ["/v1", "/inner/v1"])
def test_a_route_is_that_of_the_path_that_is_sent(base: str) -> None:
    """Whether it came with the segment that both have, or without; and written with the server's or not."""
    with recorder() as behind:
        with gateway([{"api": "openai", "url": behind.address + base}], budgets=ROUTES) as front:
            limits = [
                front.ask(path, BODIES[kind]).report["limit"]
                for path, kind in (
                    ("/v1/chat/completions", "chat"),
                    ("/chat/completions", "chat"),
                    ("/%63hat//completions/", "chat"),
                    ("/v1/responses", "responses"),
                    ("/responses", "responses"),
                )
            ]
        assert {one.target.split("/", 1)[1].rpartition("v1/")[0] for one in behind.seen} == {
            base[1:].removesuffix("v1")
        }
    assert limits == [2_000] * 3 + [3_000 if base == "/inner/v1" else 6_000] * 2


def test_a_route_holds_for_the_server_that_the_model_leads_to() -> None:
    """Each has a path of its own, and the body says which of them is asked."""
    with recorder() as behind:
        servers = [
            {"api": "openai", "url": f"{behind.address}/one/v1"},
            {"api": "openai", "url": f"{behind.address}/two/v1", "models": "qwen*"},
        ]
        with gateway(servers, budgets={"*": "6k", "route:/two": "2k", "route:/one": "3k"}) as front:
            limits = [
                front.ask(path, {**BODIES["chat"], "model": model}).report["limit"]
                for path in ("/v1/chat/completions", "/chat/completions")
                for model in ("gpt-4o", "qwen3")
            ]
    assert limits == [3_000, 2_000] * 2


BILL = b'{"usage": {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}}'
GATE = "/v1beta/models/gemini-2.5-pro:generateContent"
DEPLOYED = "/openai/deployments/prod/chat/completions"
NAMED = {"*": "6k", "gemini-2.5-pro": "1500", "prod": "1k"}


@pytest.mark.parametrize(
    ("path", "body", "limit", "model", "upstream", "dollars"),
    [
        (GATE, {"model": "models/gemini-2.5-flash", "contents": GEMINI}, 1_500, "gemini-2.5-pro", 1, 3.25e-5),
        (
            GATE.replace("generateContent", "countTokens"),
            {"generateContentRequest": {"model": "models/gemini-2.5-flash", "contents": GEMINI}},
            1_500,
            "gemini-2.5-pro",
            1,
            None,
        ),
        (DEPLOYED, {"model": "gpt-4o", "messages": SAID}, 1_000, "gpt-4o", 3, 4.5e-5),
        (DEPLOYED, {"messages": SAID}, 1_000, "prod", 3, None),
        (DEPLOYED.replace("prod", "other"), {"model": "prod", "messages": SAID}, 6_000, "prod", 2, None),
    ],
)
def test_who_is_asked_is_said_by_the_path_before_the_body(
    path: str, body: Mapping[str, Any], limit: int, model: str, upstream: int, dollars: float | None
) -> None:
    """Of Gemini whole; a deployment is called as its owner likes, so its window and price go by the body."""
    with recorder(lambda _: (200, {}, BILL)) as behind:
        servers = [
            {"api": "gemini", "url": behind.address},
            {"api": "gemini", "url": behind.address, "models": "gemini-2.5-pro"},
            {"api": "azure", "url": behind.address},
            {"api": "azure", "url": behind.address, "models": "prod"},
        ]
        with gateway(servers, budgets=NAMED) as front:
            answer = front.ask(path, body)
    names = ("gemini", "gemini/gemini-2.5-pro", "azure", "azure/prod")
    assert (answer.line["model"], answer.line["upstream"]) == (model, names[upstream])
    assert answer.report["limit"] == limit
    # In dollars for a million: 2.50 and 10 of gpt-4o, 1.25 and 10 of gemini-2.5-pro.
    assert answer.line.get("dollars") == (None if dollars is None else pytest.approx(dollars))
