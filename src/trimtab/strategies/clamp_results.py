"""`ClampResults`: one large tool result is cut to its share before anything leaves."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from trimtab._shared.checks import check_flag, check_fraction, check_whole
from trimtab.conversation import History
from trimtab.conversation.assemble import owns_text, part_of
from trimtab.counting.base import AdditiveCounter
from trimtab.counting.estimate import EstimateCounter
from trimtab.counting.shorten import CUT_MARKER, shorten
from trimtab.counting.sizes import Sizes
from trimtab.errors import ConfigurationError
from trimtab.formats import Format, Path, TextSlot
from trimtab.strategies.base import Edit, EvictionRequest, EvictionResult

__all__ = ["ClampResults"]

CountText = Callable[[str], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClampResults:
    """Cut every tool result above its share, both ends kept, before whole units leave.

    What a result becomes depends on its message, the counter and the limit that is the same from call to
    call, and on nothing else, so that a prompt cache keeps its prefix. Nothing leaves. The marker says which
    call the result answers, so that the whole is found in your own messages by its id.

    Args:
        max_tokens: The most the text of one result may have. Give this or `max_ratio`.
        max_ratio: The same as a share of the limit that is the same from call to call: the block's cap, or
            the whole budget; 0 < max_ratio <= 1.
        texts: Cut other texts above the share, too: what users and the model wrote; not the latest user
            message, until the next one comes.

    Raises:
        ConfigurationError: Both of `max_tokens` and `max_ratio` are given, or none; one is out of range, or
            `texts` is neither True nor False.

    Example:
        >>> from trimtab import CharCounter, fit
        >>> call = {"id": "a", "type": "function", "function": {"name": "log", "arguments": "{}"}}
        >>> messages = [
        ...     {"role": "user", "content": "Why does the build fail?"},
        ...     {"role": "assistant", "tool_calls": [call]},
        ...     {"role": "tool", "tool_call_id": "a", "content": "make: " + "ok " * 400 + "error: no rule"},
        ... ]
        >>> clamped = fit(messages, 80, counter=CharCounter(), strategy=ClampResults(max_tokens=24))
        >>> clamped.messages[2]["content"]
        'make: ok ok ok ok ok ok ok[text cut by trimtab; all of it: result of a]k ok ok ok error: no rule'
    """

    max_tokens: int | None = None
    max_ratio: float | None = None
    texts: bool = False

    def __post_init__(self) -> None:
        """Check what was given."""
        if (self.max_tokens is None) == (self.max_ratio is None):
            both = "both are given" if self.max_tokens is not None else "neither is given"
            raise ConfigurationError(f"ClampResults takes max_tokens or max_ratio, and {both}")
        put = object.__setattr__
        if self.max_tokens is not None:
            put(self, "max_tokens", check_whole("max_tokens", self.max_tokens, least=1))
        if self.max_ratio is not None:
            put(self, "max_ratio", check_fraction("max_ratio", self.max_ratio))
        check_flag("texts", self.texts)

    @property
    def name(self) -> str:
        """The word for it in reports and data."""
        return "clamp_results"

    @property
    def clears_results(self) -> bool:
        """True if nothing but results becomes small."""
        return not self.texts

    def to_dict(self) -> dict[str, Any]:
        """Write it as data for `create_strategy`."""
        share: dict[str, Any] = (
            {"max_ratio": self.max_ratio} if self.max_tokens is None else {"max_tokens": self.max_tokens}
        )
        return {"kind": self.name, **share, "texts": self.texts}

    def evict(self, request: EvictionRequest, /) -> EvictionResult:
        """Cut every result above the share; nothing leaves."""
        units = list(request.told_units)
        edits = self._edits(request, units)
        return EvictionResult(
            kept=units,
            edits=[Edit(index=index, texts=texts) for index, texts in edits.items()],
            fits=request.fits(units, edits=edits),
            actions=("shortened",) if edits else (),
        )

    def _edits(self, request: EvictionRequest, units: Iterable[Any]) -> dict[int, dict[Path, str]]:
        """List what becomes of messages above the share."""
        share_tokens = share_of(self.max_tokens, self.max_ratio, request.constant_limit_tokens)
        history, edits = request.history, dict[int, dict[Path, str]]()
        count = text_size(request.sizes, history.format)
        for unit in units:
            if unit.state == "pinned":
                continue
            for index in unit.indices:
                if not (self.texts or history.is_result(index)) or not _may_pass(
                    request, index, share_tokens
                ):
                    continue
                slots = [slot for slot in request.texts(index) if owns_text(unit, index, slot.path)]
                cut = clamp_texts(
                    history.format,
                    slots,
                    share_tokens,
                    count=count,
                    texts=self.texts,
                    handles=_handles(history, index),
                )
                if cut:
                    edits[index] = {**edits.get(index, {}), **cut}
        return edits


HANDLE_MARKER = CUT_MARKER[:-1] + "; all of it: result of {}]"
"""Stands where a result was cut; with the id of its call, by which the caller finds it."""

_HANDLE = re.compile(r"[A-Za-z0-9_.:-]{1,64}")
"""Ids that are written into a marker: the model chose them, and no text is to come in by one."""


def _handles(history: History, index: int) -> Mapping[int | None, str]:
    """Map the results in a message, by their parts, to markers with the ids of their calls.

    Ids that the wire form makes up for results without one are none that the caller could look for.
    """
    made_up = history.format.rules.unnamed_prefix
    return {
        part: HANDLE_MARKER.format(call_id)
        for call_id, part in history.answers_in(index)
        if _HANDLE.fullmatch(call_id) and not (made_up and call_id.startswith(made_up))
    }


def _may_pass(request: EvictionRequest, index: int, share_tokens: int) -> bool:
    """Tell whether a text of a message may pass the share: where none can, its texts are not asked for."""
    return not request.additive or index in request.edits or request.sizes.of(index) > share_tokens


def share_of(max_tokens: int | None, max_ratio: float | None, limit_tokens: int) -> int:
    """Return the share in tokens; at least 1."""
    return max_tokens if max_tokens is not None else max(1, int((max_ratio or 0.0) * limit_tokens))


_PROBE = "build.log, line 1,024: the 17th test of the parser failed; see the report for details.\n" * 8
"""What a black box is asked about, to learn what its tokens are beside estimated ones."""


def text_size(sizes: Sizes, format: Format, /) -> CountText:
    """Return what counts one text, whatever else is in the conversation.

    A black box over lists says nothing of one text. Its tokens are estimated, times what it charges for a
    known text beside the estimate of that: asked once, so that a result is cut alike in every call.
    """
    counter = sizes.counter
    if isinstance(counter, AdditiveCounter):
        count: CountText = counter.count_text
        return count
    estimate = EstimateCounter().count_text
    ratio: list[float] = []

    def text_tokens(text: str) -> int:
        if not ratio:
            ratio.append(sizes.alone(format.message("user", [_PROBE])) / estimate(_PROBE))
        return round(estimate(text) * ratio[0])

    return text_tokens


def clamp_texts(
    format: Format,
    slots: Sequence[TextSlot],
    share_tokens: int,
    *,
    count: CountText,
    limit_tokens: int | None = None,
    texts: bool = False,
    marker: str = CUT_MARKER,
    handles: Mapping[int | None, str] = MappingProxyType({}),
) -> dict[Path, str]:
    """Cut the texts of a message so that each result that is too large comes to its share.

    A result of several texts is measured as one: the longest of them give way, down to one length.

    Args:
        slots: The texts of the message that may be cut.
        share_tokens: What one result may have.
        count: Tokens of a text.
        limit_tokens: A result that has no more stays whole. None: its share.
        texts: Whether what is no result is held to the share, too, as one text.
        marker: What stands where text was cut.
        handles: What stands there instead in a result, by its part of the message (None: the whole of it),
            where at least half of its room is left for text.

    Returns:
        New texts by path; empty if nothing is above the share.
    """
    limit_tokens = share_tokens if limit_tokens is None else limit_tokens
    together: dict[tuple[bool, int | None], list[TextSlot]] = {}
    for slot in slots:
        if slot.is_result or texts:
            part = result_part(format, slot) if slot.is_result else None
            together.setdefault((slot.is_result, part), []).append(slot)
    cut: dict[Path, str] = {}
    for (is_result, part), its in together.items():
        sizes = [count(slot.text) for slot in its]
        if sum(sizes) > limit_tokens:
            level = _level(sizes, share_tokens)
            handle = handles.get(part) if is_result else None
            said = handle if handle is not None and 2 * count(handle) <= level else marker
            cut.update(_shorten_to(level, its, sizes, count=count, marker=said))
    return cut


def result_part(format: Format, slot: TextSlot) -> int | None:
    """Return the part of its message that a result is, by one of its texts; None where it is the whole."""
    if format.rules.results_are_messages:
        return None
    return part_of(slot.path)


def _shorten_to(
    level: int, slots: Sequence[TextSlot], sizes: Sequence[int], *, count: CountText, marker: str
) -> Mapping[Path, str]:
    """Cut the texts of a result that are larger than a size down to that."""
    cut: dict[Path, str] = {}
    for slot, size in zip(slots, sizes, strict=True):
        if size <= level:
            continue
        text = shorten(slot.text, level, count=count, keep="both", marker=marker, size_tokens=size)
        if text is None:  # not even the marker has room: in a result one of them says it for all
            text = "" if slot.is_result and marker in cut.values() else marker
        if count(text) < size:
            cut[slot.path] = text
    return cut


def _level(sizes: Sequence[int], room: int) -> int:
    """Return the size down to which the largest must go for all to have room."""
    left = room
    for at, size in enumerate(sorted(sizes)):
        if size * (len(sizes) - at) > left:
            return left // (len(sizes) - at)
        left -= size
    return room
