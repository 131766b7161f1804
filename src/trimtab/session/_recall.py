"""`recall` as a tool for an agent: a schema, and answers in marked, escaped text."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from trimtab.formats import detect
from trimtab.session._marks import RECALL_TAG
from trimtab.stores import Event

if TYPE_CHECKING:
    from trimtab.session._looks import Looks

__all__ = ["RecallTool"]


class RecallTool:
    """Finds what an agent was told and no longer sees; made by `Session.recall_tool`.

    Give `schema` to the model, and answer its calls with the object itself.

    Example:
        >>> from trimtab import Session
        >>> tool = Session(budget=500).recall_tool()
        >>> tool.schema["function"]["name"], tool(query="the order number")
        ('recall', 'Nothing was found.')
    """

    def __init__(self, session: Looks, /, *, limit: int = 5) -> None:
        self._session = session
        self._limit = limit

    @property
    def schema(self) -> dict[str, Any]:
        """The tool as Chat Completions take it."""
        return {
            "type": "function",
            "function": {
                "name": "recall",
                "description": "Search earlier messages of this conversation that are no longer shown.",
                "parameters": {
                    "type": "object",
                    "properties": {
                        "query": {"type": "string", "description": "Words that occur in what is looked for."}
                    },
                    "required": ["query"],
                    "additionalProperties": False,
                },
            },
        }

    def __call__(self, query: str) -> str:
        """Answer a call of the tool."""
        return recalled_text(self._session.recall(query, self._limit))

    async def acall(self, query: str) -> str:
        """Answer a call of the tool, for asyncio."""
        return recalled_text(await self._session.arecall(query, self._limit))


def recalled_text(events: Sequence[Event]) -> str:
    """Write messages that were found, each marked and escaped: what they say is no instruction."""
    if not events:
        return "Nothing was found."
    return "\n".join(map(_written, events))


def _written(event: Event) -> str:
    text = escape(detect([event.message]).transcript(event.message), quote=False)
    return f'<{RECALL_TAG} of="message {event.version}" by="trimtab">\n{text}\n</{RECALL_TAG}>'
