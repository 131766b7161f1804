"""Origin of words: who said what a message holds, and how much say that gives it (SPEC E14)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast, get_args

from trimtab._shared.checks import check_choice
from trimtab.errors import ConfigurationError
from trimtab.formats.structure import Kind

if TYPE_CHECKING:
    from trimtab.formats.base import TextSlot

OriginName: TypeAlias = Literal["system", "user", "assistant", "document", "tool"]
"""Origins of text, from the highest authority to the lowest.

"document" is text that the user passes on, "tool" is the output of a tool. Neither has any authority.
"""

ORIGINS: tuple[OriginName, ...] = get_args(OriginName)

UNTRUSTED: frozenset[OriginName] = frozenset({"document", "tool"})
"""Words nobody in the conversation stands for: they never become system text."""

_SAY: dict[OriginName, int] = {"system": 3, "user": 2, "assistant": 1, "document": 0, "tool": 0}
"""How much say an origin has; of documents and tools neither has more."""

ORIGIN_OF: dict[Kind, OriginName] = {
    "system": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "other": "tool",  # a role nobody knows has no say
}

OriginOf: TypeAlias = Callable[[Any], "OriginName | None"]
"""What `origin=` takes: a function of a message, which says that it has less say than its role; or None."""

Origins: TypeAlias = frozenset[OriginName]
"""The origins of all words of a message, or of what was made of several."""


def sort_origins(origins: Iterable[str], /) -> list[OriginName]:
    """List origins from the one with the most say on, each once.

    Args:
        origins: Origins; words that are none are left out.
    """
    there = set(origins)
    return [origin for origin in ORIGINS if origin in there]


def least(origins: Iterable[OriginName], /) -> OriginName | None:
    """Return the origin that has the least say of some; None of none.

    Args:
        origins: Origins, in any order.
    """
    return max(origins, key=ORIGINS.index, default=None)


UNKNOWN: Origins = frozenset(("user", "assistant", "tool"))
"""Of a text nobody noted the sources of: an older trimtab wrote it."""


def from_attribute(origins: Iterable[str], /) -> str:
    """Write origins as the attribute of a mark.

    Nothing is written where all of it is the user's and the assistant's own, as of most conversations: a mark
    is paid for in every request.

    Args:
        origins: Origins; words that are none are left out.
    """
    named = sort_origins(origins)
    return "" if _CONVERSATION.issuperset(named) else f' from="{", ".join(named)}"'


_CONVERSATION: Origins = frozenset(("user", "assistant"))


def origins_in(text: str, /) -> Origins:
    """Return the origins that the marks in a text name: it was summarized or recalled before.

    A mark that somebody forged only takes say away from the words around it.

    Args:
        text: The text of a message.
    """
    named: list[str] = []
    for before in text.split(_BY_TRIMTAB)[:-1]:
        _, there, names = before[-_MARK_CHARS:].rpartition(' from="')
        if there:
            named += names.partition('"')[0].split(", ")
    return frozenset(sort_origins(named))


_BY_TRIMTAB = 'by="trimtab">'
_MARK_CHARS = 200
"""An element that trimtab writes is no longer than that."""


def is_passed_on(slot: TextSlot, origins: Origins, /) -> bool:
    """Tell whether a text is not its message's own: the output of a tool, or of a document in it.

    Args:
        slot: The text.
        origins: The origins of the message's content.
    """
    return slot.is_result or ("document" in origins and len(slot.path) > _OWN_DEPTH)


_OWN_DEPTH = 3
"""Steps from a message to a text that its author wrote, as in `content[0].text`; a document's are more."""


def own_texts(slots: Iterable[TextSlot], origins: Origins, /) -> list[str]:
    """List the texts of a message that its author wrote.

    Args:
        slots: All its texts.
        origins: The origins of its content.
    """
    return [slot.text for slot in slots if not is_passed_on(slot, origins)]


def lower(origins: Origins, origin: OriginName | None, /) -> Origins:
    """Return the origins of a message whose host says that its words have no more say than one's.

    Args:
        origins: What the wire form tells.
        origin: What the host says; None: nothing.
    """
    if origin is None:
        return origins
    most = _SAY[origin]
    # A tool's output stays a tool's where the host calls the message a document: neither has more say.
    return frozenset(one if _SAY[one] < most or (most == 0 and _SAY[one] == 0) else origin for one in origins)


def check_origin(origins: Origins, origin: object, /, *, what: str = "this message") -> OriginName | None:
    """Return what a host says of a message where it lowers something; None where the form says as much.

    Args:
        origins: What the wire form tells of the message.
        origin: What the host says; None: nothing.
        what: What an error calls the message.

    Raises:
        ConfigurationError: It is no origin, or would give the message more say than it has.
    """
    if origin is None:
        return None
    name = cast("OriginName", check_choice("origin", origin, ORIGINS))
    highest = max(origins, key=_SAY.__getitem__)
    if _SAY[name] > _SAY[highest]:
        raise ConfigurationError(
            f"origin={name!r} would raise {what} above the origin in its wire form, which is"
            f" {' and '.join(sort_origins(origins))}: origin= may only lower it. Leave origin out",
            argument="origin",
        )
    return None if lower(origins, name) == origins else name
