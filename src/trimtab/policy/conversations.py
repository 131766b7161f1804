"""A whole conversation put into the blocks of a policy."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import takewhile
from typing import Any, NamedTuple

from trimtab._fitting.layout import blocks_in_order, items_of, messages_of
from trimtab._fitting.request import with_beside
from trimtab.budget import Budget, BudgetLike, known_budget
from trimtab.context import Context, Fitted
from trimtab.counting import AdditiveCounter, CounterLike, EstimateCounter, RequestCounter, counter_for
from trimtab.counting.door import as_counter
from trimtab.errors import (
    ConfigurationError,
    FormatError,
    option,
    phrase,
)
from trimtab.formats import Format, Request, SystemLike, ToolSchema, detect, get_format, mapping_of
from trimtab.models import known_model_in

HISTORY = "history"
"""The block that a conversation goes into, if there is one of that name."""

_SYSTEM = "system"
"""The block that leading system messages of a conversation go into, if there is one of that name."""


class Part(NamedTuple):
    """What of a conversation went into a block."""

    before: int
    """How many texts and messages of the block's own stand before it."""
    messages: Sequence[Any]


def with_conversation(
    policy: Context, messages: Sequence[Any], format: Format, /, **given: Any
) -> tuple[Context, dict[str, Part]]:
    """Return a clone of a policy with a conversation in its blocks, and what of it went into which block.

    Leading system messages go into the block for these, if there is one; else they go with the others and
    are pinned, as the oldest of a block leave first. What a block holds stays, and stands before what goes
    into it; the block "history" alone holds the conversation and nothing else.

    Args:
        policy: The blocks.
        messages: The conversation.
        format: Its wire form.
        given: What takes the place of what the policy says; see `Context.clone`.

    Raises:
        ConfigurationError: The policy and the request both have system text beside their messages.
        FormatError: No block is called "history", and there are several; or a block takes no such content.
    """
    system = given.get("system") or None
    if system is not None and policy.policy.system is not None:
        raise ConfigurationError(
            phrase(
                "system is given twice: as ",
                option("system"),
                " of the Context, and in the request. Leave out one of them, or move that of the Context"
                " into a block 'system', which is sent in addition to the request's own",
            ),
            argument="system",
        )
    changes: dict[str, Any] = {**given, "format": format, "system": system}
    context = policy.clone(**changes)
    blocks = {block.name: block for block in policy.blocks}
    name = _name_for_conversations(blocks)
    head = _count_head(messages, format) if policy.policy.read is None else 0
    apart = head > 0 and name != _SYSTEM and _SYSTEM in blocks
    parts = {_SYSTEM: messages[:head], name: messages[head:]} if apart else {name: messages}
    own = {name: () if name == HISTORY or blocks[name].is_empty else items_of(blocks[name]) for name in parts}
    fill(context, {name: [*own[name], *part] for name, part in parts.items()})
    if head and not apart:
        start = len(own[name])
        context._policy = replace(context.policy, pins={name: range(start, start + head)})
    return context, {name: Part(len(own[name]), part) for name, part in parts.items()}


def _count_head(messages: Sequence[Any], format: Format) -> int:
    """Count the system messages that a conversation begins with; what is no message ends them."""
    count = 0
    with suppress(FormatError):  # the engine says the same, and where in its block that stands
        while count < len(messages) and format.kind(mapping_of(messages[count])) == "system":
            count += 1
    return count


def own_system(policy: Context, format: Format, /) -> Any:
    """Return the system text that a policy has before any conversation, where the form keeps it apart.

    Raises:
        FormatError: No block takes a conversation, or an entry of a block is no message.
    """
    if format.rules.system_in_messages:
        return None
    context, _ = with_conversation(policy, [], format)
    held = replace(context.policy, blocks=context.blocks)
    messages = (mapping_of(one) for block in blocks_in_order(held) for one in messages_of(block, format))
    heads = takewhile(lambda one: format.kind(one) == "system", messages)
    return format.lift_system(list(heads), held.system)


def _name_for_conversations(names: Collection[str]) -> str:
    """Name the block that a list of messages or a request body fills."""
    if HISTORY in names:
        return HISTORY
    if len(names) == 1:
        return next(iter(names))
    raise FormatError(
        f"a conversation is the content of the block {HISTORY!r}, which the policy does not have: write an"
        f" object with a key for each block ({', '.join(names)})"
    )


class FittedRequest(NamedTuple):
    """A request that fits, and what is sent of it."""

    fitted: Fitted[Any]
    request: Any
    """The messages; or a body: the one they came in, or one for system text that is sent beside them."""


def fit_conversation(
    policy: Context,
    request: Request,
    format: Format,
    *,
    budget: Budget | None,
    model: str | None,
    counter: RequestCounter | None,
) -> FittedRequest:
    """Fit one conversation by a policy; what else its body is charged for has its place in the budget.

    Raises:
        ConfigurationError: Both the policy and the body have system text.
        FormatError: There is no block for it to go into, or a message is none.
        BudgetExceededError: What must stay does not fit.
    """
    beside_tokens = 0 if budget is None else _beside(request, counter)
    if budget is not None and beside_tokens:
        most_tokens = (
            budget.window - budget.output_reserve - 1
        )  # what is larger does not fit, and is no budget
        budget = replace(budget, overhead_tokens=min(most_tokens, budget.overhead_tokens + beside_tokens))
    context, _ = with_conversation(
        policy,
        request.messages,
        format,
        budget=budget,
        model=model,
        counter=counter,
        system=request.system,
        tools=request.tools,
    )
    fitted = context.fit()
    return FittedRequest(fitted, write_fitted(fitted, request))


def fitter(
    policy: Context,
    /,
    *,
    budget: BudgetLike | None = None,
    model: str | None = None,
    counter: CounterLike | None = None,
    format: str | Format = "auto",
    system: SystemLike | None = None,
    tools: Sequence[ToolSchema] | None = None,
) -> Callable[[Sequence[Any] | Mapping[str, Any]], FittedRequest]:
    """Make what fits conversations by a policy, each a list of messages or a request body.

    What is given takes the place of what the policy says; a model that neither names is that of the body.

    Raises:
        ConfigurationError: What is given is no counter.
    """
    policy = policy.clone(system=system)
    held = policy.policy
    own = held.counter if counter is None else as_counter(counter)
    room = held.budget if budget is None else budget
    form = held.format if format == "auto" else format

    def fit(value: Sequence[Any] | Mapping[str, Any]) -> FittedRequest:
        named = known_model_in(value)
        meant = next((one for one in (model, held.model, named) if one is not None), None)
        read = detect(value, model=meant) if form == "auto" else get_format(form)
        request = read.read_request(value) if isinstance(value, Mapping) else Request(messages=value)
        if system is not None and request.system:
            raise ConfigurationError(
                phrase("system is given twice: by ", option("system"), " and in the request body"),
                argument="system",
            )
        return fit_conversation(
            policy,
            with_beside(request, system=None, tools=tools),
            read,
            budget=known_budget(room, meant),
            model=meant,
            counter=counter_for(meant) if own is None and meant is not None else own,
        )

    return fit


def counted_model(policy: Context, model: str | None, /) -> str | None:
    """Return the model whose tokenizer counts: the given one, or the policy's; None: a counter does."""
    held = policy.policy
    return None if held.counter is not None else held.model if model is None else model


def fill(context: Context, parts: Mapping[str, Any], /) -> Context:
    """Put parts of a request into the blocks of their names.

    Raises:
        FormatError: What is given for a block is no content; its path is the block.
    """
    for name, content in parts.items():
        try:
            context.replace(name, content)
        except ConfigurationError as error:
            raise FormatError(str(error), path=name) from error
    return context


def write_fitted(fitted: Fitted[Any], request: Request, /) -> Any:
    """Write a request that fits in the form's own shape.

    The messages alone, if they came so and there is no system text beside them.
    """
    format = fitted.settlement.outcome.format  # not the report's, which takes as long to make as the fit
    request = replace(request, system=fitted.system)
    if request.body is None and fitted.system is not None:
        request = replace(request, body={format.rules.body_key: []}, key=format.rules.body_key)
    return format.write_request(request, fitted.messages)


def _beside(request: Request, counter: RequestCounter | None) -> int:
    """Count what else a body is charged for: legacy functions, an output schema."""
    extra = request.extra
    if not extra:
        return 0
    made = counter if isinstance(counter, AdditiveCounter) else EstimateCounter()
    with_extra = made.fixed_tokens(None, request.tools, has_system=True, extra=extra)
    return with_extra - made.fixed_tokens(None, request.tools, has_system=True)
