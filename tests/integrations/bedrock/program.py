"""What users write with trimtab's module for boto3's client of Bedrock, for the type checkers."""

from __future__ import annotations

from typing import Any

import boto3  # type: ignore[import-untyped]  # pyright: ignore[reportMissingTypeStubs]

from trimtab import Budget, Fitted
from trimtab.integrations.bedrock import with_budget


def report(fitted: Fitted[Any]) -> None:
    """Take what each fit gave."""
    print(fitted.report.evicted_message_count)


made: Any = boto3.client("bedrock-runtime")
client: Any = with_budget(made, "80%", on_fitted=report, breakpoints=True)
other = with_budget(made, Budget(8_000), pin=[0], retry_overflow=True)


def ask(messages: list[dict[str, Any]]) -> str:
    """Ask for an answer."""
    said: str = client.converse(modelId="us.amazon.nova-pro-v1:0", messages=messages)["stopReason"]
    return said
