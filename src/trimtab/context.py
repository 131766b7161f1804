"""`Context`: a request of many blocks."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self, cast

from trimtab._fitting.allocation import Allocation, Claim, Offer, Ties, allocate, offers
from trimtab._fitting.blocks import Block, Tier, TrimBehavior
from trimtab._fitting.callbacks import MessageElement, OnTrim, TrimContext
from trimtab._fitting.fitted import Fitted, fitted_for
from trimtab._fitting.fold import settle_blocks
from trimtab._fitting.layout import Policy, check_policy, compose
from trimtab._fitting.objects import check_read_write
from trimtab._fitting.objects_in_blocks import ObjectsInBlocks
from trimtab._fitting.request import keep_all
from trimtab._shared import observers
from trimtab._shared.checks import unknown_name
from trimtab._shared.docstrings import args_of
from trimtab._shared.steps import drive, rerun
from trimtab.budget import BudgetLike, known_budget
from trimtab.counting import CounterLike
from trimtab.counting.door import as_awaited
from trimtab.counting.sizes import sizes_for
from trimtab.errors import ConfigurationError
from trimtab.formats import Format, SystemLike, ToolSchema
from trimtab.formats.origin import OriginOf
from trimtab.strategies.door import StrategyLike
from trimtab.strategies.summarizer import adrive

if TYPE_CHECKING:
    from trimtab.compact import CompactLike

__all__ = [
    "Allocation",
    "Block",
    "Claim",
    "Context",
    "Fitted",
    "MessageElement",
    "Offer",
    "OnTrim",
    "Tier",
    "Ties",
    "TrimBehavior",
    "TrimContext",
    "allocate",
    "offers",
]


class Context:
    """A request made of named blocks that share one budget.

    It is a template: `fit` does not change it, so it can be fitted many times,
    from many threads and tasks. Methods that change it return it, so calls can
    be chained.

    Args:
        budget: Room for the request: tokens such as 8_000 or "8k", a share of
            the model's input limit such as "80%", "tier" for the room below its
            next price tier, or a `Budget`. None: the model's window less its
            output limit. With `on_trim` and no such window there is no budget:
            only callbacks and the `max_tokens` of blocks evict anything.
        model: Name of the model, for its tokenizer, window and wire form.
        counter: What counts tokens; see `fit`.
        format: Name of the wire form. "auto": decided by the shapes of the
            messages.
        charge_as: Name of the wire form the messages are sent in, if that is
            another one; see `fit`.
        system: System text besides the blocks; it is kept, and counted once.
        tools: Tool schemas; counted with the request and returned unchanged.
        ties: Which of two blocks of one rank gives way: "newest" keeps the
            block added later, "first" the block added first. None: "first" in a
            context that uses tiers, otherwise "newest".
        pending_calls: Ids of calls whose results are still to come.
        on_trim: Called with a `TrimContext` of all messages before anything is
            decided.
        origin: Function that names a lower origin for a message than its role
            says; see `fit`.
        rules: Rules of the host: always shown, word for word, in one message
            behind the system text; see `fit`.
        compact: How tool results are written in blocks that do not say it
            themselves; see `fit`. A result refers to results of its own block.
        strict: Whether to raise if the messages of the blocks contain something
            that the provider refuses.
        breakpoints: True marks the output for the provider's prompt cache, in
            addition to blocks that have their own `cache_control`; see `fit`.
        read: Function that makes a wire message from a framework's object, or a
            list of wire messages from every object. The messages in blocks are
            then objects, and so are those of the output. All objects are read
            at each fit.
        write: Function that takes an object and the messages it became, and
            returns a changed copy; with None and a message that was inserted or
            made from text, it returns a new object. Required with `read`, and
            only allowed with it.

    Raises:
        ConfigurationError: An argument is out of range or of the wrong kind;
            raised when the context is made.

    Example:
        >>> from trimtab import CharCounter, Context
        >>> context = Context(60, counter=CharCounter())
        >>> context = context.add("system", "Be brief.", pinned=True)
        >>> context = context.add("documents", ["Tea is a drink." * 20])
        >>> context = context.add("question", "What is tea?", priority=8)
        >>> [message["role"] for message in context.fit().messages]
        ['system', 'user']
    """

    __slots__ = ("_blocks", "_policy")

    # Those of `fit` that do not belong to one history, and what only several blocks need.
    def __init__(
        self,
        budget: BudgetLike | None = None,
        *,
        model: str | None = None,
        counter: CounterLike | None = None,
        format: str | Format = "auto",
        charge_as: str | Format | None = None,
        system: SystemLike | None = None,
        tools: Sequence[ToolSchema] | None = None,
        ties: Ties | None = None,
        pending_calls: Collection[str] = (),
        on_trim: OnTrim | None = None,
        origin: OriginOf | None = None,
        rules: Sequence[str] | None = None,
        compact: CompactLike = None,
        strict: bool = False,
        breakpoints: bool | Mapping[str, Any] = False,
        read: Callable[[Any], Any] | None = None,
        write: Callable[[Any, list[dict[str, Any]]], Any] | None = None,
    ) -> None:
        if read is not None or write is not None:
            check_read_write(read, write)
        self._blocks: dict[str, Block] = {}
        self._policy = check_policy(
            Policy(
                budget=budget,
                model=model,
                counter=counter,
                format=format,
                charge_as=charge_as,
                system=system,
                tools=tools,
                ties=ties,
                pending_calls=pending_calls,
                on_trim=on_trim,
                origin=origin,
                rules=rules,
                compact=compact,
                strict=strict,
                breakpoints=breakpoints,
                read=read,
                write=write,
                blocks=(),
            )
        )

    def __repr__(self) -> str:
        """Name the blocks; no content."""
        return f"<Context of {', '.join(map(repr, self._blocks)) or 'no blocks'}>"

    def _repr_html_(self) -> str:
        """Show the blocks and their limits in a notebook; no content, and nothing is counted."""
        from trimtab.report.html import table_fragment  # not above: only who looks at it needs it
        from trimtab.report.text import plural

        heads = ("block", "rank", "floor", "cap", "strategy")
        return table_fragment(
            f"Context, {plural(len(self.blocks), 'block')}", heads, map(_limits_of, self.blocks)
        )

    def __contains__(self, name: object) -> bool:
        """Tell whether there is a block of that name."""
        return name in self._blocks

    @property
    def policy(self) -> Policy:
        """The options it was made with, apart from its blocks.

        For adapters: its names may change between versions.
        """
        return self._policy

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The blocks, in the order they were added."""
        return tuple(self._blocks.values())

    # SPEC D2 fixes the parameters.
    @args_of(Block)
    def add(
        self,
        name: str,
        content: Any,
        *,
        priority: float = 0,
        position: float | None = None,
        tier: int | None = None,
        min_tokens: int = 0,
        max_tokens: int | None = None,
        min_ratio: float = 0.0,
        max_ratio: float = 1.0,
        share: float | None = None,
        role: str | None = None,
        strategy: StrategyLike | None = None,
        trim_behavior: TrimBehavior | None = None,
        pinned: bool = False,
        cache_control: Any = None,
        join: str | None = None,
        wrap: str | None = None,
        labels: Sequence[str] | None = None,
        on_trim: OnTrim | None = None,
        compact: CompactLike = None,
        replace: bool = False,
    ) -> Self:
        """Add a block; the other options are those of `Block`.

        Args:
            name: Name that is not used yet, unless by a block without content
                or with `replace`.
            content: Text, a message, a list of these, or `{"text": …,
                "attachments": [parts]}`. None and `[]` add nothing to the
                request; the block can be filled later.
            replace: Whether to replace the block of that name, if there is one.

        Raises:
            ConfigurationError: The name is taken, an option is out of range, or
                one context would have both tiers and other ranks.
        """
        block = Block(
            name=name,
            content=content,
            priority=priority,
            position=position,
            tier=tier,
            min_tokens=min_tokens,
            max_tokens=max_tokens,
            min_ratio=min_ratio,
            max_ratio=max_ratio,
            share=share,
            role=role,
            strategy=strategy,
            trim_behavior=trim_behavior,
            pinned=pinned,
            cache_control=cache_control,
            join=join,
            wrap=wrap,
            labels=labels,
            on_trim=on_trim,
            compact=compact,
        )
        return self.add_block(block, replace=replace)

    def add_block(self, block: Block, /, *, replace: bool = False) -> Self:
        """Add an existing block.

        Args:
            block: The block, with its content.
            replace: Whether to replace the block of that name, if there is one;
                otherwise a name that is taken is an error.

        Raises:
            ConfigurationError: As for `add`.
        """
        there = self._blocks.get(block.name)
        if there is not None and not replace and not there.is_empty:
            raise ConfigurationError(
                f"a block named {block.name!r} exists already: pass replace=True, or call replace()",
                argument="name",
            )
        other = next((one for one in self._blocks.values() if one.name != block.name), block)
        if (other.tier is None) != (block.tier is None):  # and so for all others, which agree
            tiered, ranked = (block, other) if other.tier is None else (other, block)
            raise ConfigurationError(
                f"block {tiered.name!r} has a tier but block {ranked.name!r} has none: in one context,"
                " either all blocks have tiers or none"
            )
        self._blocks[block.name] = block
        return self

    def replace(self, name: str, content: Any, *, labels: Sequence[str] | None = None) -> Self:
        """Give a block new content and labels; its options and place do not
        change.

        Args:
            name: Name of the block.
            content: As for `add`.
            labels: One label for each text or message of the content; None: no
                labels.

        Raises:
            UnknownNameError: There is no such block.
            ConfigurationError: The number of labels is not the number of texts
                or messages.
        """
        self._blocks[name] = replace(self._block(name), content=content, labels=labels)
        return self

    def remove(self, name: str) -> Self:
        """Remove a block.

        Args:
            name: Name of the block.

        Raises:
            UnknownNameError: There is no such block.
        """
        del self._blocks[self._block(name).name]
        return self

    def clone(
        self,
        *,
        budget: BudgetLike | None = None,
        model: str | None = None,
        counter: CounterLike | None = None,
        format: str | Format | None = None,
        charge_as: str | Format | None = None,
        system: SystemLike | None = None,
        tools: Sequence[ToolSchema] | None = None,
        pending_calls: Collection[str] | None = None,
        rules: Sequence[str] | None = None,
        compact: CompactLike = None,
        strict: bool | None = None,
    ) -> Self:
        """Return a context with the same blocks that can be changed
        independently.

        Arguments replace the options of the original; None keeps an option.

        Args:
            budget: Tokens, or a `Budget`.
            model: Name of the model.
            counter: What counts tokens; see `fit`.
            format: Name of the wire form.
            charge_as: Name of the wire form the messages are sent in; see
                `fit`.
            system: System text besides the blocks.
            tools: Tool schemas.
            pending_calls: Ids of calls whose results are still to come.
            rules: Rules of the host; `[]` for none.
            compact: How tool results are written in blocks that do not say it
                themselves; False: as they are.
            strict: Whether faults of the messages raise an error.

        Raises:
            ConfigurationError: As for a new context.
        """
        given: dict[str, Any] = {
            "budget": budget,
            "model": model,
            "counter": counter,
            "format": format,
            "charge_as": charge_as,
            "system": system,
            "tools": tools,
            "pending_calls": pending_calls,
            "rules": rules,
            "compact": compact,
            "strict": strict,
        }
        changes = {name: value for name, value in given.items() if value is not None}
        twin = copy(self)
        if changes:
            twin._policy = check_policy(replace(self._policy, **changes))
        return twin

    def __getstate__(self) -> tuple[Any, dict[str, Any]]:
        """Give what copies are made of: blocks added to one are in no other."""
        attributes, slots = cast("tuple[Any, dict[str, Any]]", super().__getstate__())
        return attributes, {**slots, "_blocks": dict(self._blocks)}

    def fit(self, budget: BudgetLike | None = None) -> Fitted[Any]:
        """Fit the blocks into the budget; does not change the context.

        Args:
            budget: Budget for this call, in place of the context's own.

        Raises:
            BudgetExceededError: What must be kept does not fit; the error has
                the numbers and the best attempt.
            ConfigurationError: There is no budget, a summarizer or the counter
                is async (await `afit`), or a result is in a block before the
                block of its call.
            FormatError: An entry of a block is not a message.
            InvalidHistoryError: The context is `strict`, and its messages have
                faults; the error lists them.
            CountingError: The counter failed or returned something that is not
                a count.
            StrategyContractError: A strategy broke its contract.

        Complexity: O(n) in messages; O(kept) in the largest block if no other
            has tool calls.
        """
        if not observers.active:
            return fit_policy(self._snapshot(budget))
        from trimtab._fitting.observation import FitWatch  # not above: only who is looked at needs it

        with FitWatch("context") as watch:
            fitted = watch.fitted = fit_policy(self._snapshot(budget))
        return fitted

    async def afit(self, budget: BudgetLike | None = None) -> Fitted[Any]:
        """Fit the blocks into the budget as `fit` does; awaits async functions.

        The counter may be an async function or have async methods; summarizers
        may be async. Cancelling the task, or a timeout around it, also cancels
        these. Raises the same errors as `fit`.
        """
        if not observers.active:
            return await afit_policy(self._snapshot(budget))
        from trimtab._fitting.observation import FitWatch

        with FitWatch("context") as watch:
            fitted = watch.fitted = await afit_policy(self._snapshot(budget))
        return fitted

    def _snapshot(self, budget: BudgetLike | None) -> Policy:
        given = self._policy.budget if budget is None else known_budget(budget, self._policy.model)
        return replace(self._policy, blocks=self.blocks, budget=given)

    def _block(self, name: str) -> Block:
        if not isinstance(name, str):
            raise ConfigurationError(
                f"the name of a block must be a text, not {reprlib.repr(name)}", argument="name"
            )
        try:
            return self._blocks[name]
        except KeyError:
            there = ", ".join(self._blocks) or "none"
            error = unknown_name(f"no block is named {name!r}; there are: {there}", name, self._blocks)
            raise error from None


def fit_policy(policy: Policy, /) -> Fitted[Any]:
    """Fit what a context holds, and tell nobody who looks on: a session tells of its whole view."""
    policy, objects = _read(policy)
    settlement = drive(settle_blocks(compose(policy)))
    return fitted_for(settlement if objects is None else objects.show(settlement))


async def afit_policy(policy: Policy, /) -> Fitted[Any]:
    """Fit what a context holds; see `fit_policy`."""
    policy, objects = _read(policy)
    counter = await as_awaited(policy.counter)
    policy = replace(policy, counter=counter)
    if policy.trims and counter is not None and counter.is_awaited:
        before = await rerun(lambda: compose(replace(policy.without_callbacks(), on_trim=keep_all)))
        whole = sizes_for(counter, before.source, None)
        for sizes in (whole, *(part.sizes for part in before.parts)):
            await rerun(sizes.count_each)  # a callback is run once, and may ask for any size
    composition = await rerun(lambda: compose(policy))
    settlement = await adrive(lambda: settle_blocks(composition))
    return fitted_for(settlement if objects is None else objects.show(settlement))


def _read(policy: Policy) -> tuple[Policy, ObjectsInBlocks | None]:
    """Read the objects in the blocks, where they are a framework's; from here on they are wire messages."""
    if policy.read is None:
        return policy, None
    objects = ObjectsInBlocks(policy)
    return objects.policy, objects


def _limits_of(block: Block) -> tuple[str, ...]:
    """Say in words how a block shares the room."""
    floor = [f"{block.min_tokens:,} tokens"] if block.min_tokens else []
    floor += [f"{100 * block.min_ratio:g} % of the room"] if block.min_ratio else []
    cap = [] if block.max_tokens is None else [f"{block.max_tokens:,} tokens"]
    cap += [f"{100 * block.max_ratio:g} % of the room"] if block.max_ratio < 1 else []
    most, least = ("the larger of " if len(floor) > 1 else ""), ("the smaller of " if len(cap) > 1 else "")
    strategy = "pinned" if block.pinned else block.gives_way_by.name
    return block.name, f"{block.rank:g}", most + " and ".join(floor), least + " and ".join(cap), strategy
