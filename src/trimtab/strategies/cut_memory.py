"""`HeldCut`: cuts results, and keeps the previous call's cut while everything after it fits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from trimtab.formats import Path
from trimtab.strategies.base import Edit, EvictionRequest, EvictionResult
from trimtab.strategies.clamp_results import ClampResults
from trimtab.strategies.sliding_window import SlidingWindow

Known = Callable[[tuple[int, Path], str, str], str]
"""Given where a result is (its message, its place in that), its whole text, and what became of it now: what
became of it first."""

_CLAMP = ClampResults(max_ratio=0.25)
_WINDOW = SlidingWindow()
_PARTS = (1.0, 0.5, 0.25, 0.0)
"""Of a stride, the first that leaves enough."""


@dataclass(frozen=True, slots=True)
class HeldCut:
    """The first step of a `Cascade` for a conversation of which something is remembered from call to call.

    Sizes that are learned from bills move a little with each, and a cut that is worked out anew would move
    with them. The window behind this step cuts where it did, or a whole stride further.
    """

    planned_cut: int
    """Where the previous call was cut; 0: nowhere."""
    target_ratio: float
    """What stays where it is cut anew, as a share of the limit."""
    known: Known

    @property
    def name(self) -> str:
        """The word for it in reports."""
        return _CLAMP.name

    @property
    def clears_results(self) -> bool:
        """True: nothing but results becomes small."""
        return True

    def evict(self, request: EvictionRequest, /) -> EvictionResult:
        """Cut large results, and say where the window behind is to cut."""
        clamped, plan = _CLAMP.evict(request), self.planned_cut
        edits = [self._as_before(request, edit) for edit in clamped.edits]
        if not plan and (clamped.fits if edits == clamped.edits else _fit(request, edits)):
            return replace(clamped, edits=edits, fits=True)
        left = request.after(replace(clamped, edits=edits, planned_cut=plan))
        if not plan or _WINDOW.evict(left).cut != plan:
            plan = _next_cut(left, self.target_ratio, request.constant_limit_tokens)
        # Units were told apart where a cut may fall: these are what stays.
        return replace(
            clamped, cut=None, kept=list(request.told_units), edits=edits, fits=False, planned_cut=plan
        )

    def _as_before(self, request: EvictionRequest, edit: Edit) -> Edit:
        whole = {slot.path: slot.text for slot in request.texts(edit.index)}
        texts = {path: self.known((edit.index, path), whole[path], text) for path, text in edit.texts.items()}
        return Edit(index=edit.index, texts=texts)


def _next_cut(request: EvictionRequest, target_ratio: float, limit_tokens: int) -> int:
    """Say where to cut a stride further; 0: nowhere.

    Where a result that had to be cut is in view, one unit is as large as a stride: what it takes along when
    it leaves is room that nobody uses, and a shorter stride makes up for it (design/029). So it is where a
    turn is larger than what a stride leaves: to keep less than half of that would forget a turn that fits.
    """
    stride_tokens = round((1 - target_ratio) * limit_tokens)
    if any(index >= request.planned_cut for index in request.edits):
        stride_tokens = stride_tokens * 3 // 4
    scarce = _WINDOW.evict(request.within(round(target_ratio * limit_tokens / 2)))
    strides = (round(part * stride_tokens) for part in _PARTS)
    cuts = (_WINDOW.evict(request.within(request.limit_tokens - stride)) for stride in strides)
    further = next((found for found in cuts if not scarce.fits or found.cut != scarce.cut), scarce)
    return further.cut or 0 if further.fits else 0


def _fit(request: EvictionRequest, edits: list[Edit]) -> bool:
    return request.fits(request.told_units, edits={edit.index: edit.texts for edit in edits})
