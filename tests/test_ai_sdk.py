"""What the Vercel AI SDK itself writes, from npm, is read as it is."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.npm import node_program
from trimtab import fit, validate
from trimtab.formats import read_foreign

pytestmark = pytest.mark.long

PACKAGES = ("ai@6.0.326", "zod@4.1.13")  # ai 7 needs Node 22
RUN_SECONDS = 120
SCRIPT = Path(__file__).with_name("ai_sdk.mjs")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Run the SDK once: a loop of generateText and of streamText, and pages by chance."""
    folder = tmp_path_factory.mktemp("ai")
    command = node_program(folder, SCRIPT, PACKAGES)
    run = subprocess.run(command, cwd=folder, capture_output=True, timeout=RUN_SECONDS, check=False)
    assert run.returncode == 0, run.stderr.decode()
    found: dict[str, Any] = json.loads(run.stdout)
    return found


def _call(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


STEPS: list[dict[str, Any]] = [
    {
        "role": "assistant",
        "content": "I look at both.",
        "tool_calls": [
            _call("call_1", "weather", '{"city":"Paris"}'),
            _call("call_2", "weather", '{"city":"Rome"}'),
        ],
    },
    {"role": "tool", "tool_call_id": "call_1", "content": "no station"},
    {"role": "tool", "tool_call_id": "call_2", "content": '{"sky":"clear","degrees":21}'},
    {"role": "assistant", "content": None, "tool_calls": [_call("call_3", "map", '{"of":"Rome"}')]},
    {"role": "tool", "tool_call_id": "call_3", "content": "a map of Rome"},
    {"role": "assistant", "content": "Go to Rome."},
]


def test_messages_and_those_of_the_response_are_a_body(written: dict[str, Any]) -> None:
    """With the system text, the model and the tools beside them; reasoning is noted."""
    [found] = read_foreign(written["model_messages"]) or []
    assert found.body["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Paris or Rome?"},
        *STEPS,
    ]
    assert found.body["model"] == "gpt-4o"
    assert [tool["function"]["name"] for tool in found.body["tools"]] == ["weather", "map"]
    assert found.body["tools"][0]["function"]["parameters"]["required"] == ["city"]
    assert [note.partition(":")[2].split()[0] for note in found.notes] == ["reasoning"]
    assert validate(found.body["messages"]) == []
    assert fit(found.body, 1_000, model="gpt-4o").messages == found.body["messages"]


def test_what_the_sdk_sends_to_a_model_is_a_body(written: dict[str, Any]) -> None:
    """As middleware that logs calls keeps it: the last call has all but the answer."""
    [found] = read_foreign(written["sent"][-1]) or []
    assert found.body["messages"][2:] == STEPS[:-1]
    assert [tool["function"]["name"] for tool in found.body["tools"]] == ["weather", "map"]


def test_a_page_is_the_same_conversation(written: dict[str, Any]) -> None:
    """Its one answer with three steps is three messages of the model, each with its results."""
    [found] = read_foreign(written["ui_messages"]) or []
    [converted] = read_foreign(written["converted"]) or []
    assert found.body == converted.body
    told = STEPS[1] | {"content": "An error occurred."}  # the SDK hides errors from a page
    assert found.body["messages"][1:-1] == [STEPS[0], told, *STEPS[2:]]
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    assert found.body["messages"][0]["content"] == [{"type": "text", "text": "Paris or Rome?"}, image]
    assert validate(found.body["messages"]) == []


def test_pages_in_any_state_are_read_as_the_sdk_converts_them(written: dict[str, Any]) -> None:
    """300 pages: calls that failed, were denied, ran at a provider or were never whole."""
    read = 0
    for page, converted in written["pages"]:
        found, oracle = (read_foreign({"messages": listed}) for listed in (page, converted))
        if found is not None and oracle is not None:
            assert found[0].body == oracle[0].body, json.dumps(page)
            read += 1
    assert read > 100
