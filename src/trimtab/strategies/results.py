"""What a strategy has to know of results: which tool each is from, and how a marker names it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias, get_args

from trimtab._shared.checks import in_words, near_names
from trimtab._shared.mapping import FixedMapping
from trimtab.conversation import History, Unit
from trimtab.conversation.assemble import part_of, tools_answered
from trimtab.counting.shorten import Keep, marker_with
from trimtab.errors import ConfigurationError
from trimtab.formats import Format, TextSlot
from trimtab.formats.handles import call_text, is_handle, is_made_up
from trimtab.formats.structure import UNNAMED

KEEPS: tuple[Keep, ...] = ("start", "both", "end")
"""What may stay of a result that is cut."""

assert set(KEEPS) == set(get_args(Keep))

ANY_TOOL = "*"
"""Stands for the tools that a mapping does not name."""

KeepLike: TypeAlias = Keep | Mapping[str, Keep]
"""What stays of a result that is cut: its start, its end, or both; or that by the name of its tool."""


class KeepByTool(FixedMapping[Keep]):
    """What stays of a result that is cut, by the name of its tool; cannot be changed."""

    __slots__ = ()

    def __init__(self, keep: Mapping[str, Keep], /) -> None:
        super().__init__(sorted(keep.items()))


def check_keep(value: object, /) -> Keep | KeepByTool:
    """Return what stays of results that are cut.

    Raises:
        ConfigurationError: It is neither "start", "both" or "end", nor a mapping of names of tools to these.
    """
    if isinstance(value, Mapping):
        for name, keep in value.items():
            if not isinstance(name, str) or not name:
                raise ConfigurationError(
                    f"keep goes by the names of tools, not by {name!r:.80}", argument="keep"
                )
            _check_word(keep, f"keep[{name!r:.80}]", "'start', 'both' or 'end'")
        return KeepByTool(value)
    return _check_word(value, "keep", "'start', 'both' or 'end', or a mapping of names of tools to these")


def _check_word(value: object, said: str, allowed: str) -> Keep:
    for known in KEEPS:
        if value == known:
            return known
    near = near_names(value, KEEPS) if isinstance(value, str) else ()
    raise ConfigurationError(
        f"{said} must be {allowed}, not {value!r:.80}{in_words(map(repr, near))}", argument="keep"
    )


def keep_for(keep: Keep | KeepByTool, tool: str | None, /) -> Keep:
    """Return what stays of a result of a tool; both ends where nothing is said of that.

    Args:
        keep: As `check_keep` gave it.
        tool: Name of the tool; None: it is unknown.
    """
    if not isinstance(keep, KeepByTool):
        return keep
    found = None if tool is None else keep.get(tool)
    return found or keep.get(ANY_TOOL, "both")


def result_part(format: Format, slot: TextSlot) -> int | None:
    """Return the part of its message that a result is, by one of its texts; None where it is the whole."""
    if format.rules.results_are_messages:
        return None
    return part_of(slot.path)


def tools_in(history: History, units: Iterable[Unit], /) -> dict[tuple[int, int | None], str]:
    """Map the results of some units, by message and part, to the names of the tools that gave them.

    Args:
        history: The conversation.
        units: The units; each is looked at once.
    """
    return tools_near(history, {id(unit): unit.indices for unit in units}.values())


def tools_near(history: History, units: Iterable[Iterable[int]], /) -> dict[tuple[int, int | None], str]:
    """Map results, by message and part, to the names of the tools that gave them.

    Nothing else has to be read where each result stands behind its call: of 10,000 messages a fortieth of the
    time. Results without ids are told by all there are, unless an id made of the tool's name and the place
    among its results is that of a call in front of them.

    Args:
        history: The conversation.
        units: The messages of each unit.
    """
    rules = history.format.rules
    names: dict[tuple[int, int | None], str] = {}
    for indices in units:
        called: dict[str, str] = {}
        for index in indices:
            called.update(history.format.tool_names(history.message(index)))
            for call_id, part in history.answers_in(index) if history.is_result(index) else ():
                if call_id in called and not call_id.startswith(UNNAMED):
                    names[index, part] = called[call_id]
                elif not call_id or is_made_up(call_id, rules):
                    return tools_answered(history, history.units)
    return names


def named_results(history: History, index: int, /) -> dict[int | None, str]:
    """Map the results in a message, by their parts, to the ids of their calls, where a marker may have them.

    Args:
        history: The conversation.
        index: The message.
    """
    rules = history.format.rules
    return {part: call_id for call_id, part in history.answers_in(index) if is_handle(call_id, rules)}


def cut_marker(call_id: str, /, *, offered: bool) -> str:
    """Write what marks where a result was cut, with the id of its call, by which it is found.

    Args:
        call_id: The id.
        offered: Whether the request offers the tool that reads it.
    """
    return marker_with(call_text(call_id) if offered else f"result of {call_id}")


def cleared_marker(placeholder: str, call_id: str, /) -> str:
    """Write what stands in place of a cleared result where the request offers the tool that reads it.

    Args:
        placeholder: What stands there elsewhere, in square brackets.
        call_id: Id of the call that the result answers.
    """
    return f"{placeholder[:-1]}; {call_text(call_id)}]"
