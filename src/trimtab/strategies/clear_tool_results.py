"""`ClearToolResults`: old tool output is blanked, its message stays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple

from trimtab._shared.checks import check_roles, check_whole
from trimtab.conversation import Unit
from trimtab.errors import ConfigurationError
from trimtab.formats import Path
from trimtab.strategies.base import Edit, EvictionRequest, EvictionResult

__all__ = ["ClearToolResults"]

DEFAULT_PLACEHOLDER = "[trimtab: tool result cleared]"
"""What stands for a cleared result; marked as ours, so that a model does not take it for output."""


class _Blank(NamedTuple):
    """A result that may be blanked."""

    message: int
    texts: Mapping[Path, str]
    saved_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearToolResults:
    """Blank old tool results, oldest first, only until the rest fits.

    The newest `keep_results` stay as they are.

    Args:
        keep_results: The newest results that are left alone.
        clear_at_least_tokens: Once it clears, go on until so many tokens are gone, if there is that much.
        exclude_tools: Names of tools whose results are left alone.
        placeholder: Text that stands for a cleared result; used only where it is smaller.

    Raises:
        ConfigurationError: A number is negative, or the placeholder is not text.
    """

    keep_results: int = 3
    clear_at_least_tokens: int = 0
    exclude_tools: tuple[str, ...] = ()
    placeholder: str = DEFAULT_PLACEHOLDER

    def __init__(
        self,
        *,
        keep_results: int = 3,
        clear_at_least_tokens: int = 0,
        exclude_tools: Iterable[str] = (),
        placeholder: str = DEFAULT_PLACEHOLDER,
    ) -> None:
        if not isinstance(placeholder, str):
            raise ConfigurationError(f"placeholder must be text, not {placeholder!r}")
        put = object.__setattr__
        put(self, "keep_results", check_whole("keep_results", keep_results, least=0))
        put(
            self,
            "clear_at_least_tokens",
            check_whole("clear_at_least_tokens", clear_at_least_tokens, least=0),
        )
        put(self, "exclude_tools", check_roles(exclude_tools, name="exclude_tools"))
        put(self, "placeholder", placeholder)

    @property
    def name(self) -> str:
        """The word for it in reports and data."""
        return "clear_tool_results"

    @property
    def clears_results(self) -> bool:
        """True unless it is left alone where little is won."""
        return not self.clear_at_least_tokens

    def to_dict(self) -> dict[str, Any]:
        """Write it as data for `create_strategy`."""
        return {
            "kind": self.name,
            "keep_results": self.keep_results,
            "clear_at_least_tokens": self.clear_at_least_tokens,
            "exclude_tools": list(self.exclude_tools),
            "placeholder": self.placeholder,
        }

    def evict(self, request: EvictionRequest, /) -> EvictionResult:
        """Blank results from the oldest on until it fits."""
        units = list(request.units)
        before = request.total(units)
        cuts = self._clearable(request, units)
        count = self._blank_count(request, units, cuts, before)
        edits = {index: texts for index, texts, _ in cuts[:count]}
        return EvictionResult(
            kept=units,
            edits=[Edit(index=index, texts=texts) for index, texts in edits.items()],
            fits=request.fits(units, edits=edits),
            actions=("cleared",) if edits else (),
        )

    def _clearable(self, request: EvictionRequest, units: list[Unit]) -> list[_Blank]:
        """List the results that may be blanked, oldest first, with the blank."""
        names = self._tool_names(request, units)
        is_result = request.history.is_result
        results = sorted({index for unit in units for index in unit.indices if is_result(index)})
        newest = len(results) - self.keep_results if self.keep_results else len(results)
        pinned = {index for unit in units if unit.state == "pinned" for index in unit.indices}
        found = []
        for index in results[: max(0, newest)]:
            if index in pinned or names.get(index) in self.exclude_tools:
                continue
            if (blank := self._blank(request, index)) is not None:
                found.append(blank)
        return found

    def _tool_names(self, request: EvictionRequest, units: list[Unit]) -> dict[int, str]:
        """Map results to the names of the tools that gave them."""
        if not self.exclude_tools:
            return {}
        names: dict[int, str] = {}
        for unit in units:
            called: dict[str, str] = {}
            for index in unit.indices:
                called.update(request.history.format.tool_names(request.message(index)))
                for call_id in request.history.answers_in(index):
                    if call_id in called:
                        names[index] = called[call_id]
        return names

    def _blank(self, request: EvictionRequest, index: int) -> _Blank | None:
        """Return what blanks a result, if that makes it smaller."""
        message, sizes, tokens = request.message(index), request.sizes, None
        if index in request.edits:
            before = sizes.message(message, index)
        else:
            before, tokens = sizes.of(index), sizes.with_text(index, self.placeholder)
        if tokens is not None:
            texts: Mapping[Path, str] = self._one_text
        else:
            slots = [slot for slot in request.history.format.texts(message) if slot.is_result]
            if not slots:
                return None
            texts = {slot.path: self.placeholder if at == 0 else "" for at, slot in enumerate(slots)}
            tokens = sizes.message(request.history.format.with_texts(message, texts), index)
        return _Blank(index, texts, before - tokens) if before > tokens else None

    @property
    def _one_text(self) -> Mapping[Path, str]:
        """What blanks a message whose content is one text."""
        return {("content",): self.placeholder}

    def _blank_count(
        self,
        request: EvictionRequest,
        units: list[Unit],
        cuts: list[_Blank],
        before: int,
    ) -> int:
        """Return how many results to blank: until it fits, then on to `clear_at_least_tokens`."""
        goal = min(request.limit_tokens, before - self.clear_at_least_tokens)
        if request.additive and not any(unit.parts for unit in units):
            left = accumulate((-cut.saved_tokens for cut in cuts), initial=before)
            return next((count for count, tokens in enumerate(left) if tokens <= goal), len(cuts))
        low, high = 0, len(cuts)
        while low < high:
            middle = (low + high) // 2
            edits = {index: texts for index, texts, _ in cuts[:middle]}
            if request.total(units, edits=edits) <= goal:
                high = middle
            else:
                low = middle + 1
        return low
