"""Answers that have to follow a schema: what is counted holds what the provider is sent."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field, create_model

from trimtab import Fitted
from trimtab.counting import measure

SAID = "What was seen at this place, in one whole sentence, and how sure that is."


def _fields(count: int) -> dict[str, Any]:
    return {f"field_{at}": (str, Field(description=SAID)) for at in range(count)}


Part: type[BaseModel] = create_model("Part", **_fields(6))
Whole: type[BaseModel] = create_model(
    "Whole",
    part=(Part, Field(description="The one that matters.")),
    other=(Part, ...),
    **_fields(30),
)
"""Of some 1,500 tokens; a reference has a description beside it, so that SDKs write its schema twice."""


def hold_answer(
    fitted: Fitted[Any], sent: tuple[str, dict[str, Any]], *, model: str, most: float = 1.01
) -> None:
    """Hold a count to what was sent: never below it, and not far above it where the way is known.

    Args:
        fitted: What an adapter counted.
        sent: Form and body, as the server has them.
        model: Its name, as trimtab knows it.
        most: How many times as much may be counted.
    """
    form, body = sent
    tokens = measure(body, model=model, format=form).tokens
    counted = fitted.report.tokens_after
    assert tokens <= counted <= most * tokens
