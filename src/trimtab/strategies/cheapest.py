"""`Cheapest`: evicts the oldest units at the frequency and depth that cost least under a prompt cache.

A cut makes the provider write again what stands behind it; room that stays empty shows the model less. Of
both together a cut costs least, at each call, if it frees the share of the room that `free_share` says: the
same square root by which a store decides how much to order at once.

The cuts of all calls so far are a function of the conversation, each of what was there then, so that the one
of this call is where the call before had it, until it has to move. What is known of them from the call before
is remembered while the messages say the same (`course.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import sqrt
from typing import Any

from trimtab._shared.checks import check_whole, number_of
from trimtab.errors import ConfigurationError, UnknownNameError
from trimtab.models import DEFAULT_PRICING, CachePricing, pricing_for
from trimtab.strategies.base import EvictionRequest, EvictionResult, Reads
from trimtab.strategies.course import Course
from trimtab.strategies.cuts import Cuts
from trimtab.strategies.sliding_window import beside_cut

__all__ = ["Cheapest"]

_DEFAULT = pricing_for(DEFAULT_PRICING)

_MOST_FREE = 0.75
"""No cut frees more of the room than this, however fast a conversation grows (design/026)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cheapest:
    """Drop the oldest units where that costs least under a prompt cache.

    For a chat that grows with every call. The depth of a cut follows from the prices and from how much the
    conversation grows per call; the cut does not move until the next one is due.

    Args:
        pricing: What the cache costs: a `CachePricing`, its data, or the name of a pricing or a model.
        room_weight: What one token of unused room costs per call, in units of the base price, in addition to
            the price of reading it. A higher weight makes cuts less deep.
        expected_calls: Roughly how many calls the conversation will have in all; a cut frees no more than the
            remaining calls need. Pass the same number for each call, or a cut may move back. None: many.
        cold_at: Message counts (system text at the front excluded) of the calls that found the cache cold.
            At these calls a cut costs nothing, so one is made that saves the next cut.

    Raises:
        ConfigurationError: An option is of the wrong kind or out of range.
        UnknownNameError: No pricing of that name is known.

    Example:
        >>> from trimtab import CharCounter, fit
        >>> chat = [{"role": role, "content": "word " * 80} for role in ("user", "assistant") * 20]
        >>> len(fit(chat, 2_000, counter=CharCounter(4), strategy=Cheapest(pricing="openai")).messages)
        8
    """

    pricing: CachePricing = _DEFAULT
    room_weight: float = 0.3
    expected_calls: int | None = None
    cold_at: tuple[int, ...] = ()

    def __init__(
        self,
        *,
        pricing: CachePricing | Mapping[str, Any] | str = DEFAULT_PRICING,
        room_weight: float = 0.3,
        expected_calls: int | None = None,
        cold_at: Iterable[int] = (),
    ) -> None:
        put = object.__setattr__
        put(self, "pricing", _price_list(pricing))
        weight = number_of(room_weight)
        if weight is None or weight <= 0:
            raise ConfigurationError(
                f"room_weight must be a number above 0, not {room_weight!r:.60}", argument="room_weight"
            )
        put(self, "room_weight", float(weight))
        if expected_calls is not None:
            expected_calls = check_whole("expected_calls", expected_calls, least=1)
        put(self, "expected_calls", expected_calls)
        if isinstance(cold_at, str | bytes) or not isinstance(cold_at, Iterable):
            raise ConfigurationError(
                f"cold_at must be a list of whole numbers, not {cold_at!r:.60}", argument="cold_at"
            )
        put(self, "cold_at", tuple(sorted({check_whole("each of cold_at", one, least=0) for one in cold_at})))

    @property
    def name(self) -> str:
        """Its name in reports and data."""
        return "cheapest"

    @property
    def reads(self) -> Reads:
        """The promise to ask only about units near the cut.

        The earlier calls, and where each was cut, follow from the messages.
        """
        return "newest"

    def to_dict(self) -> dict[str, Any]:
        """Return it as data for `create_strategy`."""
        return {
            "kind": self.name,
            "pricing": _pricing_data(self.pricing),
            "room_weight": self.room_weight,
            "expected_calls": self.expected_calls,
            "cold_at": list(self.cold_at),
        }

    def free_share(
        self, growth_tokens: float, /, *, room_tokens: int, fixed_tokens: int, calls: int = 0
    ) -> float:
        """Return the share of the room that a cut should free.

        A cut that frees a share x rewrites the rest, (1 - x) of the room, at `write - read` more per token,
        once every x * room / growth calls, and keeps x / 2 of the room empty on average. The sum is smallest
        when x is the square root below. The part before the room is rewritten too, if it is too short to be
        stored by itself. If a full room falls into a dearer price tier, the rewritten part is dearer too: the
        cut goes deeper, so more of the later calls are below the tier.

        Args:
            growth_tokens: Tokens added by each call.
            room_tokens: The room.
            fixed_tokens: Tokens before the room.
            calls: Number of calls.
        """
        prices = self.pricing
        if room_tokens <= 0:
            return 0.0
        short = fixed_tokens if fixed_tokens < prices.min_prefix_tokens else 0
        rewrite = max(0.0, prices.write - prices.read) * growth_tokens * (room_tokens + short)
        tier = prices.tier_of(room_tokens + fixed_tokens)
        if tier is not None:
            rewrite *= tier.input
        share = sqrt(2 * rewrite / (self.room_weight * (prices.base or 1.0))) / room_tokens
        if self.expected_calls is not None:
            to_come = max(1, self.expected_calls - calls)
            share = min(share, to_come * growth_tokens / room_tokens)
        return min(share, _MOST_FREE)

    def evict(self, request: EvictionRequest, /) -> EvictionResult:
        """Cut where the earlier calls arrived, or later if that does not fit."""
        course = Course(request, asked=self, cold=self.cold_at, share=self.free_share)
        cuts = request.cuts  # behind that: what was walked over need not be read to be told apart
        limit, also = request.limit_tokens, cuts.opener

        def fits(cut: int) -> bool:
            return cuts.tokens(cut, also(cut)) <= limit

        oldest = cuts.oldest(fits, also)
        if oldest is None:
            least = beside_cut(request, cuts, also(cuts.end))
            return EvictionResult(cut=cuts.end, kept=least, fits=False, actions=("evicted",))
        wanted = _place(request, cuts, course.cut())
        # Under a black box fewer messages may count more, so a newer cut has to be asked about too.
        cut = wanted if wanted > oldest and (request.additive or fits(wanted)) else oldest
        return EvictionResult(cut=cut, kept=beside_cut(request, cuts, also(cut)), actions=("evicted",))


def _price_list(value: Any) -> CachePricing:
    if isinstance(value, str):
        return pricing_for(value)
    if isinstance(value, CachePricing):
        return value
    if not isinstance(value, Mapping):
        raise ConfigurationError(
            "pricing must be a CachePricing, the name of one or of a model, or a mapping of its values, not"
            f" {type(value).__name__}",
            argument="pricing",
        )
    return CachePricing.from_dict(value)


def _pricing_data(pricing: CachePricing) -> str | dict[str, Any]:
    """Write prices as their name, if that name means exactly these."""
    try:
        known = pricing_for(pricing.name)
    except UnknownNameError:
        known = None
    return pricing.name if pricing == known else pricing.to_dict()


def _place(request: EvictionRequest, cuts: Cuts, cut: int) -> int:
    """Return the first place from a message on at which the conversation may be cut."""
    history = request.history
    while cut < history.count:
        cuts.part(cut)
        if cuts.holds(cut) and cuts.stands(cut, cuts.opener(cut)):
            return cut
        cut = history.border_at_or_after(cut + 1)
    return cuts.end
