"""The results of a conversation, and what each is written as by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from trimtab._shared.checks import name_of
from trimtab._shared.memory import Copies
from trimtab.compact.options import Compact, Kind
from trimtab.compact.tight import is_json, tight
from trimtab.conversation.assemble import part_of
from trimtab.counting.shorten import CUT_MARKER, marker_with
from trimtab.errors import ConfigurationError
from trimtab.formats import Format, Path, Structure, TextSlot
from trimtab.formats.handles import READ_RESULT, is_handle

__all__ = ["Place", "Reading", "Result", "Text"]

Place = tuple[int, "int | None"]
"""Where a result stands: its message, and the part of it; None: the whole message."""


_CUT = CUT_MARKER[:-1]
"""How the marker begins that stands where something was cut, with or without a handle."""


class Text(NamedTuple):
    """One text of a result."""

    path: Path
    text: str
    """As the tool wrote it."""
    base: str
    """As it is written where nothing repeats."""
    step: str
    """What made it so: "json", the name of a kind, or "": nothing did."""
    takes_references: bool
    """False for JSON, and for what is sent as it is."""


@dataclass(slots=True)
class Result:
    """A result, and its texts."""

    place: Place
    call_id: str
    """Id of its call; "" where there is none that a reference may name."""
    texts: list[Text]

    @property
    def is_one_text(self) -> bool:
        """True if it is one text, whose lines a reference can count."""
        return len(self.texts) == 1

    @property
    def is_cut(self) -> bool:
        """True if something was cut out of it before: its lines are not those of the tool any more."""
        return any(_CUT in text.base for text in self.texts)


class Reading:
    """The results of a conversation as far as it was read; more is added at the end.

    Args:
        format: The wire form.
        compact: How results are written.
    """

    def __init__(self, format: Format, compact: Compact) -> None:
        self.format = format
        self._compact = compact
        self._tools: dict[str, str] = {}
        """Names of tools by the ids of their calls, so far."""
        self._names: dict[int, dict[str, str]] = {}
        """The same for each message that calls tools."""
        self._holders: set[int] = set()
        """Messages with results."""
        self.copies = Copies()
        """The messages that were read."""
        self.results: list[Result] = []

    def add(self, messages: list[Any], /) -> None:
        """Read messages that follow."""
        if not messages:
            return
        structure = Structure(len(messages))
        self.format.scan(messages, 0, len(messages), structure)
        start, results = len(self.copies), list[Result]()
        for at, message in enumerate(messages):
            if at in structure.calls:
                self._names[start + at] = names = dict(self.format.tool_names(message))
                self._tools.update(names)
            answers = structure.answers.get(at, ())
            if answers:
                self._holders.add(start + at)
                results += self._results_of(message, start + at, answers)
        # A kind may raise: then nothing was read, and the next call reads all of it.
        self.results += results
        self.copies.add(messages)

    def is_of(self, messages: Sequence[Any], /) -> bool:
        """Tell whether a conversation begins with the messages that were read, as they were.

        All are compared, also those without results: a message may get a call or a result in place. Where one
        without differs, or has objects of an SDK in it that no copy equals, it is read again.
        """
        known = len(self.copies)
        if known > len(messages):
            return False
        changed = self.copies.differences(messages[:known])
        return not changed or (self._holders.isdisjoint(changed) and self._read_as_before(changed, messages))

    def _read_as_before(self, places: Sequence[int], messages: Sequence[Any]) -> bool:
        """Tell whether messages that had no results have none, and call the same tools by the same ids."""
        few = [messages[at] for at in places]
        structure = Structure(len(few))
        self.format.scan(few, 0, len(few), structure)
        names = [
            dict(self.format.tool_names(message)) if at in structure.calls else None
            for at, message in enumerate(few)
        ]
        return not any(structure.answers.values()) and names == [*map(self._names.get, places)]

    def _results_of(
        self, message: Any, index: int, answers: Sequence[tuple[str, int | None]]
    ) -> list[Result]:
        slots: dict[int | None, list[TextSlot]] = {part: [] for _, part in answers}
        whole = None in slots
        for slot in self.format.texts(message):
            part = None if whole else part_of(slot.path)
            if slot.is_result and part in slots:
                slots[part].append(slot)
        made = []
        for call_id, part in answers:
            name = call_id if is_handle(call_id, self.format.rules) else ""
            tool = self._tools.get(call_id, "")
            texts = [self._text(slot, name, tool) for slot in slots[part]]
            made.append(Result((index, part), name, texts))
        return made

    def _text(self, slot: TextSlot, call_id: str, tool: str) -> Text:
        compact, text = self._compact, slot.text
        if tool == READ_RESULT or (tool and tool in compact.exclude_tools):
            return Text(slot.path, text, text, "", takes_references=False)
        for kind in compact.kinds:
            if kind.takes(tool, text):
                written = _written_by(kind, text, call_id)
                if written is not None:
                    return Text(slot.path, text, written, kind.name, takes_references=not is_json(written))
                break
        if compact.json is not None:
            written = tight(text, tables=compact.json == "table")
            if written is not None:
                return Text(slot.path, text, written, "json", takes_references=False)
        return Text(slot.path, text, text, "", takes_references=not is_json(text))


def _written_by(kind: Kind, text: str, call_id: str) -> str | None:
    """Return what a kind writes; None where the text stays as it is."""
    if kind.lossy and (not call_id or is_json(text)):
        return None
    try:
        written = kind.write(text)
    except BaseException as error:
        result = f" for the result of {call_id}" if call_id else ""
        error.add_note(f"raised by write of Kind {kind.name!r}{result}")
        raise
    if not isinstance(written, str):
        raise ConfigurationError(
            f"write of Kind {kind.name!r} returned a {name_of(type(written))}: it must return a text",
            argument="kinds",
        )
    if kind.lossy and written != text:
        written = f"{written}\n{marker_with(f'result of {call_id}')}"
    if len(written) >= len(text) or (is_json(text) and not is_json(written)):
        return None
    return written
