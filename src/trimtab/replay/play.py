"""`replay`: a recorded conversation call by call under a policy."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from trimtab.budget import BudgetLike
from trimtab.conversation.validity import validate
from trimtab.counting import CounterLike, RequestCounter, counter_given
from trimtab.counting.door import as_counter
from trimtab.counting.sizes import Fixed, Shares, sizes_for
from trimtab.errors import BudgetExceededError, ConfigurationError
from trimtab.formats import Format, SystemLike, ToolSchema, leading_count, mapping_of
from trimtab.formats.values import as_list, entry_of, item_of
from trimtab.models import DEFAULT_PRICING, CachePricing, dollars_for, pricing_for
from trimtab.models.prices import find_pricing
from trimtab.replay.cache import PromptCache, Sent
from trimtab.replay.evidence import Witness
from trimtab.replay.players import Meter, Setting, View
from trimtab.replay.policies import PolicyLike, name_of, player_for
from trimtab.replay.record import Messages, ModelCall, goes_on, read_recording
from trimtab.replay.results import CallRow, Replayed, totals_of
from trimtab.replay.survival import Watch
from trimtab.replay.uses import UseWatch
from trimtab.report.text import extremes
from trimtab.session.messages import RECALL_TAG
from trimtab.strategies import CUT_MARKER
from trimtab.strategies.fact_extractor import FACTS_TAG
from trimtab.strategies.summarizer import SUMMARY_TAG

_REMEMBERED = 100_000
"""Messages whose sizes are remembered."""


def replay(
    source: Any,
    /,
    policy: PolicyLike = None,
    *,
    budget: BudgetLike | None = None,
    model: str | None = None,
    counter: CounterLike | None = None,
    pricing: CachePricing | str | None = None,
    format: str | Format = "auto",
    system: SystemLike | None = None,
    tools: Sequence[ToolSchema] | None = None,
    name: str | None = None,
    on_call: Callable[[CallRow], None] | None = None,
) -> Replayed:
    """Play a recorded conversation call by call: the cost of each under a policy.

    No model is called, except by summarizers of the policy. The model's messages are the recorded ones: if
    they would have been different under a policy, this is ignored.

    Args:
        source: The recording: anything that `read_recording` reads.
        policy: A strategy; a `Context`, or the file or data of a policy or strategy; None or "none": no
            trimming; "default": that of `fit`; "steady": the same in strides; a kind of strategy, or JSON of
            one; "session" or "session-extractive"; a function that makes a new `Session` for each replay; or
            a function that takes the messages and returns those to send, as in other libraries.
        budget: Room for each call, as for `fit`. None: the policy's own, or the model's window.
        model: Name of the model, for its tokenizer and window.
        counter: What counts tokens. None: the model's own, or an estimate that errs high.
        pricing: Prices: a `CachePricing`, or the name of a pricing or a model. None: those of `model`, if
            known, otherwise "anthropic".
        format: Name of the wire form; "auto" decides by the shapes that occur.
        system: System text outside the messages, if the recording has none.
        tools: Tool schemas, if the recording has none.
        name: Name of the policy in tables. None: its own name.
        on_call: Called after each call, with its row.

    Returns:
        A `Replayed`: one row per call, and sums over them.

    Raises:
        ConfigurationError: There is no budget, or `policy` is not a policy.
        UnknownNameError: A model, price or kind of strategy is unknown.
        FormatError: The recording cannot be read.

    Example:
        >>> from trimtab import SlidingWindow
        >>> roles = ("user", "assistant") * 40
        >>> chat = [{"role": role, "content": f"{n} " * 100} for n, role in enumerate(roles)]
        >>> steady = replay(chat, SlidingWindow(target_ratio=0.5), budget=4000, pricing="openai")
        >>> oldest = replay(chat, "default", budget=4000, pricing="openai")
        >>> f"{oldest.steady.reuse:.0%} {steady.steady.reuse:.0%}, {steady.cost_ratio(oldest):.2f} of it"
        '0% 69%, 0.28 of it'
    """
    recording = read_recording(source, format=format, model=model, system=system, tools=tools)
    counted: RequestCounter = as_counter(counter_given(counter, model)).with_format(recording.format)
    sizing = _Sizing(counted, recording.format)
    meter = Meter(lambda messages: sum(map(sizing.of, messages)))
    setting = Setting(recording=recording, budget=budget, model=model, counter=counted, meter=meter)
    prices = prices_of(model) if pricing is None else pricing
    prices = pricing_for(prices) if isinstance(prices, str) else prices
    if not isinstance(prices, CachePricing):
        raise ConfigurationError(
            f"pricing must be a CachePricing or a name, not {type(prices).__name__}", argument="pricing"
        )
    stage = _Stage(setting=setting, sizing=sizing, prices=prices, cache=PromptCache(prices))
    player = player_for(policy, setting)
    witness, watch, uses = Witness(recording, player), Watch(recording), UseWatch(recording)
    rows = []
    limit_tokens = setting.limit_tokens()
    for index, call in enumerate(recording.calls):
        view = None
        try:
            view = player.play(call)
            row = stage.row(index, call, view)
            limit_tokens = row.limit_tokens
        except BudgetExceededError as error:
            row = CallRow(index=index, given_messages=len(call.messages), refused=str(error))
        watch.look(index, call, view)
        uses.look(index, call, view)
        is_over, evidence = stage.passes(call, limit_tokens), witness.look(index, call, view)
        meter.reset()  # of summaries for questions that are no calls
        rows.append(replace(row, over_before=is_over, evidence=evidence))
        if on_call is not None:
            on_call(rows[-1])
    return Replayed(
        policy=name_of(policy) if name is None else name,
        pricing=prices.name,
        calls=tuple(rows),
        totals=totals_of(rows),
        steady=totals_of(row for row in rows if row.over_before),
        models=() if model is None else (model,),
        rooms=extremes(row.limit_tokens for row in rows if row.limit_tokens is not None),
        dollars=_dollars(prices, rows),
        survival=watch.survival(),
        uses=uses.uses(),
    )


def prices_of(model: str | None, /) -> CachePricing:
    """Return the prices of a model; those there are by default where nobody knows them."""
    return (None if model is None else find_pricing(model)) or pricing_for(DEFAULT_PRICING)


def _dollars(prices: CachePricing, rows: Sequence[CallRow]) -> float | None:
    """Return the price in dollars: of a known model, or where the prices are in dollars themselves."""
    million = dollars_for(prices.name) if prices.base == 1.0 else 1.0
    return None if million is None else sum(row.price for row in rows) * million / 1e6


class _Sizing:
    """Sizes of messages, each counted once as long as it is the same object."""

    def __init__(self, counter: RequestCounter, format: Format) -> None:
        self.counter = counter
        self._format = format
        self._known: dict[int, tuple[Any, int]] = {}

    def of(self, message: object, /) -> int:
        """Count a message alone."""
        known = self._known.get(id(message))
        if known is None:
            if len(self._known) > _REMEMBERED:
                self._known.clear()
            alone = [mapping_of(message)]
            sizes = sizes_for(self.counter, alone, None)
            size = sizes.request_tokens(alone) if isinstance(sizes, Shares) else sizes.of(0)
            known = self._known[id(message)] = (message, size)
        return known[1]

    def prefix(self, messages: Messages, fixed: Fixed, /) -> Callable[[int], int]:
        """Return what counts the first so many messages with what stands before them."""
        entries = [entry_of(messages, index) for index in range(len(messages))]
        table = sizes_for(self.counter, entries, fixed)
        if isinstance(table, Shares):
            return lambda count: table.request_tokens(entries[:count])
        leads = bool(entries) and self._format.kind(entries[0]) == "system"
        beside = table.fixed_tokens(leads)
        unread = self._format.unread(entries)
        if unread:
            sizes = [0 if at in unread else self.of(message) for at, message in enumerate(messages)]
            return lambda count: beside + sum(sizes[:count])
        return lambda count: beside + sum(map(self.of, messages[:count]))


@dataclass(slots=True, kw_only=True)
class _Stage:
    """What is known between the calls of one replay."""

    setting: Setting
    sizing: _Sizing
    prices: CachePricing
    cache: PromptCache
    before: ModelCall | None = None
    cut: int = 0
    is_over: bool = False

    def passes(self, call: ModelCall, limit_tokens: int | None) -> bool:
        """Tell whether this call or one before passes the room as it stands."""
        if not self.is_over and limit_tokens is not None:
            count = self.sizing.prefix(call.messages, Fixed(call.system, call.tools))
            self.is_over = count(len(call.messages)) > limit_tokens
        return self.is_over

    def row(self, index: int, call: ModelCall, view: View) -> CallRow:
        """Say what a view costs, and what it lacks."""
        form, meter = self.setting.format, self.setting.meter
        prefix_tokens = self.sizing.prefix(view.messages, Fixed(view.system, call.tools))
        sent = Sent(
            messages=view.messages,
            beside=(view.system, call.tools),
            tokens=prefix_tokens(len(view.messages)),
            prefix_tokens=prefix_tokens,
            leading=leading_count(view.messages, form),
            marks=view.marks,
            blocks=lambda start, stop: sum(_count_blocks(one, form) for one in view.messages[start:stop]),
            time=call.time,
            cold=call.cold,
        )
        reading = self.cache.serve(sent)
        cut = cut_of(call.messages, view, form)
        before = self.before
        moved_back = before is not None and cut < self.cut and goes_on(before.messages, call.messages)
        self.before, self.cut = call, cut
        asked, read, written = meter.calls, meter.read_tokens, meter.written_tokens
        meter.reset()
        charge, compact = reading.charge, view.written
        return CallRow(
            index=index,
            given_messages=len(call.messages),
            sent_messages=len(view.messages),
            tokens=sent.tokens,
            limit_tokens=view.limit_tokens,
            shared_messages=reading.shared_messages,
            shared_tokens=reading.shared_tokens,
            read_tokens=charge.read_tokens,
            write_tokens=charge.write_tokens,
            base_tokens=charge.base_tokens,
            cold=reading.is_cold,
            price=charge.price + read * self.prices.base + written * (self.prices.output or 0.0),
            evicted=view.evicted,
            references=0 if compact is None else len(compact.references),
            saved_tokens={} if compact is None else dict(compact.saved_tokens or {}),
            cut=cut,
            moved_back=moved_back,
            summarizer_calls=asked,
            summarizer_tokens=read + written,
            over_limit=view.limit_tokens is not None and sent.tokens > view.limit_tokens,
            faults=_new_faults(call.messages, view.messages, form),
        )


def cut_of(given: Messages, view: View, form: Format, /) -> int:
    """Return the position from which on everything was sent; messages in another shape count as sent.

    What trimtab wrote itself is no message of the conversation, wherever it stands: a summary, facts, and
    earlier messages that were recalled for a question, which stand in front of it.
    """
    cut = len(given)
    for sent in reversed(view.as_said):
        if not cut:
            break
        is_own = given[cut - 1] != sent and _is_own(sent, form)
        if not is_own and not _is_same(given[cut - 1], sent, form, changed=view.changed):
            break
        cut -= not is_own
    return cut


_OWN = re.compile(f'<(?:{"|".join((SUMMARY_TAG, FACTS_TAG, RECALL_TAG))}) [^\n]*by="trimtab">\n')
"""Begins a text that trimtab wrote."""

_CUT = CUT_MARKER.removesuffix("]")
"""Begins what stands where a text was cut, with or without a handle."""


def _is_own(message: object, form: Format) -> bool:
    """Tell whether trimtab wrote a message, and nobody said it."""
    return any(_OWN.match(slot.text) for slot in form.texts(mapping_of(message))[:1])


def _count_blocks(message: object, form: Format) -> int:
    """Count the blocks of a message, by which a provider says how far back from a mark it looks."""
    parts = as_list(item_of(message, form.rules.parts_key))
    return max(1, len(parts or ()))


def _is_same(one: object, sent: object, form: Format, *, changed: bool) -> bool:
    """Tell whether a message was sent, perhaps shortened."""
    if one is sent or one == sent:
        return True
    a, b = mapping_of(one), mapping_of(sent)
    if form.kind(a) != form.kind(b):
        return False
    if not changed and not any(_CUT in slot.text for slot in form.texts(b)):
        return False
    first, second = form.pieces(a), form.pieces(b)
    return (first.result_id, first.calls, first.results) == (second.result_id, second.calls, second.results)


def _new_faults(given: Messages, sent: Messages, form: Format) -> tuple[str, ...]:
    """List the rules that are broken by what was sent, and not by what was recorded."""
    found = [one for one in validate(sent, format=form) if one.fault]
    if not found:
        return ()
    known = {(one.rule, one.call_id) for one in validate(given, format=form)}
    return tuple(dict.fromkeys(one.rule for one in found if (one.rule, one.call_id) not in known))
