"""Budgets by model, route and key, and servers by key: who has which, and that no key is written anywhere."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.gateways import Recorder, Running, gateway, recorder, talk
from trimtab.errors import ConfigurationError, UnknownNameError
from trimtab.gateway import Upstream, make_app

CI, TEAM = "sk-of-the-ci-7f3a", "sk-of-a-team-91bc"
ASKED = {"model": "gpt-4o", "messages": talk(2)}
BUDGETS = {
    "*": "9k",
    "claude-*": "8k",
    "claude-sonnet-4-5": "7k",
    "route:/v1/responses": "6k",
    "claude-*,route:/inner/v1": "5k",
    "route:/inner": "4500",
    "key:ci": "4k",
    "key:ci,claude-*": "3k",
    "route:/v1beta/models/gemini-*,key:team": "2k",
}


def _hash(key: str) -> str:
    return f"sha256:{sha256(key.encode()).hexdigest()}"


@pytest.fixture(scope="module")
def front() -> Iterator[Running]:
    """A gateway with a budget for everything."""
    keys = {"ci": _hash(CI), "team": _hash(TEAM)}
    with recorder() as behind, gateway(behind.address, budgets=BUDGETS, keys=keys) as running:
        yield running


CHAT, MESSAGES, RESPONSES = "/v1/chat/completions", "/v1/messages", "/v1/responses"
GEMINI = "/v1beta/models/gemini-2.5-flash:generateContent"
BEARER = {"Authorization": f"Bearer {CI}"}


@pytest.mark.parametrize(
    ("path", "model", "headers", "limit"),
    [
        (CHAT, "gpt-4o", {}, 9_000),
        (CHAT, "gpt-4o", {"Authorization": "Bearer sk-of-nobody"}, 9_000),
        (MESSAGES, "claude-opus-4-1", {}, 8_000),
        (MESSAGES, "claude-sonnet-4-5", {}, 7_000),
        (RESPONSES, "gpt-4o", {}, 6_000),
        (RESPONSES + "/input_tokens", "gpt-4o", {}, 6_000),  # a count is of what would be sent
        ("/v1//responses/", "gpt-4o", {}, 6_000),
        ("/v1/%72esponses", "gpt-4o", {}, 6_000),
        ("/inner/v1/messages", "claude-opus-4-1", {}, 5_000),
        ("/inner/v1/messages/count_tokens", "claude-opus-4-1", {}, 5_000),
        ("/inner/v1/chat/completions", "gpt-4o", {}, 4_500),
        ("/innermost/v1/chat/completions", "gpt-4o", {}, 9_000),
        (CHAT, "gpt-4o", BEARER, 4_000),
        (CHAT, "gpt-4o", {"Authorization": f"bearer  {CI} "}, 4_000),
        (CHAT, "gpt-4o", {"Authorization": f"Bearer\t{CI}"}, 4_000),
        (CHAT, "gpt-4o", {"Authorization": f"Bearer\xa0{CI}"}, 4_000),
        (CHAT, "gpt-4o", {"api-key": CI}, 4_000),
        (CHAT, "gpt-4o", {"x-token": CI, **BEARER}, 4_000),
        (CHAT, "gpt-4o", {"x-token": CI, "Authorization": "Bearer sk-of-nobody"}, 4_000),
        (CHAT + f"?key={CI}", "gpt-4o", {}, 4_000),
        (RESPONSES, "gpt-4o", BEARER, 4_000),  # the key goes before the route
        (MESSAGES, "claude-sonnet-4-5", {"x-api-key": CI}, 3_000),
        (GEMINI, None, {"x-goog-api-key": TEAM}, 2_000),
        (GEMINI.replace("generateContent", "countTokens"), None, {"x-goog-api-key": TEAM}, 2_000),
        (GEMINI, None, {"x-goog-api-key": TEAM.upper()}, 9_000),
    ],
)
def test_the_budget_is_that_which_says_most_of_a_request(
    front: Running, path: str, model: str | None, headers: Mapping[str, str], limit: int
) -> None:
    """The key before the route, the route before the model, and a name before a pattern."""
    key = {"responses": "input", "messages": "messages"}.get(path.strip("/").split("/")[-1], "messages")
    key = "input" if "esponses" in path else "contents" if model is None else key
    said: list[dict[str, Any]] = [{"role": "user", "content": "Is it sunny?"}]
    if model is None:
        said = [{"role": "user", "parts": [{"text": "Is it sunny?"}]}]
    answer = front.ask(path, {"model": model, key: said} if model else {key: said}, headers)
    assert answer.status == 200
    # An estimate keeps some free of a budget.
    assert limit * 0.9 <= int(answer.report["limit"]) <= limit


@pytest.mark.parametrize("first", [{"x-token": TEAM}, {}])
def test_two_keys_that_are_named_are_refused_in_any_order(front: Running, first: Mapping[str, str]) -> None:
    """The upstream takes one of them, and which one is not known here: the other one may have more."""
    answer = front.ask(CHAT, ASKED, {**first, **BEARER, "x-token": TEAM})
    assert (answer.status, answer.line["end"]) == (400, "two_keys")
    assert "two keys" in answer.data["error"]["message"]
    assert front.ask(f"/v1/models?key={TEAM}", method="GET", headers=BEARER).status == 400


def test_the_log_says_what_the_budget_is_for_and_no_key() -> None:
    """Nor the hash of one, by which it could be found again."""
    keys, asked = {"ci": _hash(CI)}, [(ASKED, BEARER), (ASKED, {}), (b"{", BEARER)]
    with recorder() as behind, gateway(behind.address, budgets={"key:ci": "4k"}, keys=keys) as front:
        lines = [front.ask(CHAT, body, headers).line for body, headers in asked]
        told = front.end() + json.dumps(lines)
    assert [(line["status"], line["budget"]) for line in lines[:2]] == [(200, "key:ci"), (200, "*")]
    assert lines[2]["status"] == 400
    assert CI not in told
    assert keys["ci"].removeprefix("sha256:") not in told


def test_of_patterns_the_longest_and_before_them_a_name() -> None:
    """Whatever makes a pattern of them."""
    budgets = {"*": "9k", "gpt-4?": "8k", "gpt-4*": "7k", "gpt-[4]o*": "6k", "gpt-?o": "5k", "gpt-4o": "4k"}
    with recorder() as behind:
        limits = []
        for without in ({}, {"gpt-4o"}):
            given = {one: budgets[one] for one in budgets if one not in without}
            with gateway(behind.address, budgets=given) as front:
                limits.append(front.ask(CHAT, ASKED).report["limit"])
    assert limits == [4_000, 6_000]


def test_a_key_goes_to_its_own_server_with_all_that_it_asks() -> None:
    """What passes through, too; other keys go to the others, and nothing of theirs comes here."""
    with ExitStack() as stack:
        all_, own, qwen = (stack.enter_context(recorder()) for _ in range(3))
        upstreams = [
            {"api": "openai", "url": all_.address},
            {"api": "openai", "url": qwen.address, "models": "qwen*"},
            {"api": "openai", "url": own.address, "key": "ci"},
        ]
        front = stack.enter_context(gateway(upstreams, keys={"ci": _hash(CI)}, budgets={"*": "9k"}))
        names = [
            answer.line["upstream"]
            for headers in (BEARER, {"Authorization": f"Bearer {TEAM}"})
            for answer in (
                front.ask(CHAT, ASKED, headers),
                front.ask(CHAT, {**ASKED, "model": "qwen3"}, headers),
                front.ask("/v1/models", method="GET", headers=headers),
            )
        ]

    def keys_at(behind: Recorder) -> list[str]:
        return [value for one in behind.seen for value in one.values("authorization")]

    assert keys_at(own) == [f"Bearer {CI}"] * 3
    assert keys_at(all_) == [f"Bearer {TEAM}"] * 2
    assert keys_at(qwen) == [f"Bearer {TEAM}"]
    assert names == ["openai,key:ci"] * 3 + ["openai", "openai/qwen*", "openai"]


def test_a_server_of_one_key_is_not_that_of_others() -> None:
    """It is the only one, and still nobody else is let through to it."""
    upstreams = [{"api": "openai", "url": "http://127.0.0.1:9", "key": "ci"}]
    with gateway(upstreams, keys={"ci": _hash(CI)}, budgets={"*": "9k"}) as front:
        assert (front.ask(CHAT, ASKED).status, front.ask(CHAT, ASKED, BEARER).status) == (404, 502)


def test_a_key_is_told_by_a_variable_or_a_file_that_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a line's end behind it or not; the budget is there for the same key."""
    path = tmp_path / "ci"
    path.write_text(f"{CI}\n")
    monkeypatch.setenv("KEY_OF_CI", CI)
    with recorder() as behind:
        for told in (f"file:{path}", "env:KEY_OF_CI"):
            with gateway(behind.address, budgets={"*": "9k", "key:ci": "2k"}, keys={"ci": told}) as front:
                assert [int(front.ask(CHAT, ASKED, one).report["limit"]) for one in ({}, BEARER)] == [
                    9_000,
                    2_000,
                ]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"budgets": {"key:ci": 9}}, "no key is named 'ci': there is none"),
        ({"budgets": {"key:nigthly": 9}, "keys": {"nightly": _hash(CI)}}, "did you mean nightly"),
        ({"keys": {"ci": _hash(CI), "team": _hash(CI)}}, "ci and team are one key"),
        ({"keys": {"ci": "sha256:12ab"}}, "64 hex digits"),
        ({"keys": {"ci": CI}}, "never the key itself"),
        ({"keys": {"ci": "env:NO_SUCH_VARIABLE"}}, "NO_SUCH_VARIABLE has no key"),
        ({"keys": {"ci": "file:/no/such/file"}}, "/no/such/file cannot be read"),
        ({"keys": {"a b": _hash(CI)}}, "letters, digits"),
        ({"budgets": {"a,b": 9}}, "models is there twice"),
        ({"budgets": {"route:/a,route:/b": 9}}, "route is there twice"),
        ({"budgets": {"key:": 9}}, "a part of it is empty"),
        ({"budgets": {"": 9}}, "a part of it is empty"),
        ({"budgets": {"route:v1": 9}}, "must begin with a slash"),
        ({"budgets": {"a,route:/b": 9, "route:/b,a": 8}}, "two budgets are for the same"),
        ({"budgets": {"route:/v1/messages": 9, "route:/v1/messages/": 8}}, "two budgets are for the same"),
        ({"budgets": {"route:/v1/messages": 9, "route:/v1//messages": 8}}, "two budgets are for the same"),
        ({"budgets": {"route:/": 9}}, "two budgets are for the same: '\\*' and 'route:/'"),
    ],
)
def test_what_cannot_be_told_apart_is_refused_at_once(given: dict[str, Any], words: str) -> None:
    """With what to write, and without the key where one stands in the place of its hash."""
    with pytest.raises(ConfigurationError, match=words) as caught:
        make_app([Upstream(api="openai", url="http://127.0.0.1:9")], **given)
    assert CI not in str(caught.value)


def test_a_server_for_a_key_that_nobody_named_is_refused() -> None:
    """Its requests would never come."""
    with pytest.raises(UnknownNameError, match="no key is named 'ci'"):
        make_app([Upstream(api="openai", url="http://127.0.0.1:9", key="ci")])
