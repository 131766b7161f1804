"""Loops played with boto3's own client: what a user's program does around it, and nothing else."""

from __future__ import annotations

from base64 import b64decode
from typing import Any

import boto3
from botocore.config import Config

from tests.integrations.loops import IMAGE, SYSTEM, LookError, Loop, Question
from tests.integrations.upstream import Score, upstream
from trimtab.integrations.bedrock import with_budget

MODEL = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
BUDGET_TOKENS = 6_000
"""For the loops that have 4,000 elsewhere: Claude charges half as much again for the same."""
CHARGES = ("claude-sonnet-4-5", 0.85)
"""Nobody here has Claude's tokenizer: the count errs high, by as much as it does for many texts."""
LOOK: dict[str, Any] = {
    "toolSpec": {
        "name": "look",
        "description": "Look at a place.",
        "inputSchema": {
            "json": {"type": "object", "properties": {"place": {"type": "integer"}}, "required": ["place"]}
        },
    }
}


def client_of(served: Any) -> Any:
    """Make a client of this machine's server: no account, no proxy, no second try."""
    return boto3.client(
        "bedrock-runtime",
        region_name="us-east-1",
        endpoint_url=served.address,
        aws_access_key_id="k",
        aws_secret_access_key="k",
        config=Config(retries={"total_max_attempts": 1}, proxies={}),
    )


def play(loop: Loop, budget: Any, *, bills: bool = True, **options: Any) -> tuple[Score, list[Any]]:
    """Play a loop; returns the score and the program's own messages.

    Args:
        budget: What `with_budget` is given; 0: the bare client.
    """
    with upstream(loop, budget_tokens=BUDGET_TOKENS, bills=bills, charges=CHARGES) as served:
        client = client_of(served)
        client = with_budget(client, budget, **options) if budget else client
        said: list[Any] = []
        for question in loop.questions:
            said.append({"role": "user", "content": _blocks(question)})
            while True:
                answer = client.converse(
                    modelId=MODEL, system=[{"text": SYSTEM}], messages=said, toolConfig={"tools": [LOOK]}
                )["output"]["message"]
                said.append(answer)
                calls = [block["toolUse"] for block in answer["content"] if "toolUse" in block]
                if not calls:
                    break
                said.append({"role": "user", "content": [_result_of(loop, call) for call in calls]})
        return served.score, said


def _result_of(loop: Loop, call: Any) -> dict[str, Any]:
    """Run the tool; what it raises is its result."""
    result: dict[str, Any] = {"toolUseId": call["toolUseId"]}
    try:
        return {"toolResult": {**result, "content": [{"text": loop.look(call["input"]["place"])}]}}
    except LookError as error:
        return {"toolResult": {**result, "content": [{"text": str(error)}], "status": "error"}}


def _blocks(question: Question) -> list[Any]:
    image = {"image": {"format": "png", "source": {"bytes": b64decode(IMAGE.partition(",")[2])}}}
    return [{"text": question.text}, *([image] if question.has_image else [])]
