"""`recall` as a tool for an agent: a schema, and answers in marked, escaped text."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from trimtab._shared.checks import check_whole
from trimtab.counting.estimate import estimate_tokens
from trimtab.counting.shorten import marker_with, shares_of, shorten
from trimtab.formats import Format
from trimtab.formats.handles import call_text
from trimtab.formats.origin import from_attribute, lower
from trimtab.session.messages import RECALL_TAG
from trimtab.stores import Event, Found

if TYPE_CHECKING:
    from trimtab.session.session import Session


class RecallTool:
    """Finds messages and facts that an agent no longer sees.

    `Session.recall_tool` makes one. Pass `schema` to the model, and answer its
    calls with the object itself.

    Example:
        >>> from trimtab import Session
        >>> tool = Session(budget=500).recall_tool()
        >>> tool.schema["function"]["name"], tool(query="the order number")
        ('recall', 'Nothing was found.')
    """

    def __init__(self, session: Session, /, *, limit: int = 5, max_tokens: int | None = None) -> None:
        self._session = session
        self._limit = limit
        self._max_tokens = None if max_tokens is None else check_whole("max_tokens", max_tokens, least=1)
        # Frameworks make a tool of a function, and read these.
        self.__name__ = "recall"
        self.__doc__ = _ABOUT

    @property
    def schema(self) -> dict[str, Any]:
        """The tool in the session's wire form, for the tools of a request."""
        parameters: dict[str, Any] = {
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "Words that occur in what is looked for."},
                "limit": {
                    "type": "integer",
                    "description": "How many messages at most.",
                    "minimum": 1,
                    "maximum": self._limit,
                },
            },
            "required": ["query"],
            "additionalProperties": False,
        }
        return self._session.format.tool_schema("recall", description=_ABOUT, parameters=parameters)

    def __call__(self, query: str, limit: int | None = None) -> str:
        """Answer a call of the tool, with at most as many messages as the tool allows.

        Args:
            query: What to look for, or the id of a message.
            limit: Maximum number of messages; None: that of the tool.
        """
        return self._answer(self._session.recall(query, self._most(limit)))

    async def acall(self, query: str, limit: int | None = None) -> str:
        """Answer a call of the tool, for asyncio.

        Args:
            query: What to look for, or the id of a message.
            limit: Maximum number of messages; None: that of the tool.
        """
        return self._answer(await self._session.arecall(query, self._most(limit)))

    def _most(self, limit: int | None) -> int:
        return self._limit if limit is None or (type(limit) is int and limit > self._limit) else limit

    def _answer(self, events: Found) -> str:
        """Write what was found, each marked and escaped: its text is not an instruction.

        Then say what was not searched.
        """
        form = self._session.format
        texts = [one.data["text"] if one.kind == "fact" else form.transcript(one.message) for one in events]
        if self._max_tokens is not None:
            texts = _within(texts, events, self._max_tokens)
        marked = (
            f'<{RECALL_TAG} of="{event.kind} {event.version}"{_from(form, event)} by="trimtab">\n'
            f"{escape(text, quote=False)}\n</{RECALL_TAG}>"
            for event, text in zip(events, texts, strict=True)
        )
        said = "\n".join(marked) or "Nothing was found."
        return said if events.complete is not False else f"{said}\n{not_all(events)}"


def _within(texts: Sequence[str], events: Sequence[Event], max_tokens: int) -> list[str]:
    """Cut the longest texts down to one size, so that all have room; each says how to read the rest."""
    cut, sizes = list[str](), [estimate_tokens(text) for text in texts]
    for text, size, share, event in zip(texts, sizes, shares_of(sizes, max_tokens), events, strict=True):
        share = max(1, share)
        marker = marker_with(call_text(event.id))
        short = shorten(text, share, count=estimate_tokens, keep="both", marker=marker, size_tokens=size)
        cut.append(short or (marker if size > share else text))
    return cut


def not_all(events: Found) -> str:
    """Say what was not searched, and what to do."""
    return (
        f"Very many messages have these words: before message {events.since} not all of them were looked at."
        " More words that occur in what is looked for, or rarer ones, find more."
    )


def _from(form: Format, event: Event) -> str:
    """Say whose words a message or a fact contains."""
    if event.kind == "fact":
        return from_attribute([event.data["origin"]] if event.data.get("origin") else ())
    return from_attribute(lower(form.origins(event.message), event.data.get("origin")))


_ABOUT = "Search earlier messages of this conversation that are no longer shown."
