"""OpenAI's Agents SDK: a filter that fits the input of each call of a model."""
# What is missing is said before it is imported.
# ruff: noqa: E402

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Unpack

from trimtab._shared.lazy import package_of
from trimtab.integrations.base import (
    BudgetLike,
    FitOptions,
    OnFitted,
    Schemas,
    Trimmer,
    clamped_strides,
)

package_of("openai-agents", package="agents", needed_by="trimtab.integrations.openai_agents")

from agents import (
    Agent,
    AgentOutputSchema,
    AgentOutputSchemaBase,
    Handoff,
    OpenAIChatCompletionsModel,
    RunContextWrapper,
    TResponseInputItem,
    handoff,
)
from agents.models import get_default_model
from agents.models.openai_responses import Converter
from agents.run import CallModelData, ModelInputData

__all__ = ["trim_filter"]

_STEADY = clamped_strides(0.76)
"""As for the other adapters, and a little shallower: a call and its result are items each, so that units are
cut with more to spare (design/029)."""


def trim_filter(
    budget: BudgetLike = None, *, on_fitted: OnFitted | None = None, **options: Unpack[FitOptions]
) -> Callable[[CallModelData[Any]], Awaitable[ModelInputData]]:
    """Make a filter for `RunConfig(call_model_input_filter=…)`: it fits each call.

    Counted are the instructions, the agent's tools and handoffs, the schema of its answer, and the items of
    the call, for the agent's model. What the run and its session keep stays whole, and items that stay are
    the very objects of the call.

    Args:
        budget: Tokens, a `Budget`, a share of the model's window as `"80%"`, a `Context`, the path of a
            policy, or None for the window less what the answer may take.
        on_fitted: Called with the `Fitted` of each call.
        options: `strategy`, `counter`, `pin` and other keyword arguments of `trimtab.fit`; `model` where the
            run has another than its agents.

    Raises:
        ConfigurationError: The budget or an option is not what it may be.
        BudgetExceededError: At a call: what must stay does not fit.
    """
    trimmer: Trimmer[TResponseInputItem] = Trimmer(
        budget, format="openai_responses", on_fitted=on_fitted, options=options, strategy=_STEADY
    )
    schemas = Schemas(_schemas)

    async def trim(data: CallModelData[Any]) -> ModelInputData:
        agent, given = data.agent, data.model_data
        tools = await agent.get_all_tools(RunContextWrapper(data.context))
        beside = [] if agent.output_type in (None, str) else [agent.output_type]
        kept = await trimmer.afit(
            given.input,
            model=_model_name(agent),
            sent_as="openai_chat" if isinstance(agent.model, OpenAIChatCompletionsModel) else None,
            system=given.instructions,
            tools=schemas.of([*tools, *agent.handoffs, *beside]),
        )
        return ModelInputData(input=kept, instructions=given.instructions)

    return trim


def _model_name(agent: Agent[Any]) -> str | None:
    """Name the model of an agent as its provider does; without the name of a provider before it."""
    name = agent.model if isinstance(agent.model, str) else getattr(agent.model, "model", None)
    if agent.model is None:
        name = get_default_model()
    return name.rpartition("/")[2] if isinstance(name, str) else None


def _schemas(tools: Sequence[Any]) -> list[Any]:
    """Write tools, handoffs and the type of an answer as they are sent."""
    offs = [one if isinstance(one, Handoff) else handoff(one) for one in tools if _is_handoff(one)]
    others = [one for one in tools if not _is_handoff(one)]
    answers = [one for one in others if isinstance(one, type | AgentOutputSchemaBase)]
    sent = Converter.convert_tools([one for one in others if one not in answers], offs)
    return [*sent.tools, *map(_answer, answers)]


def _is_handoff(one: object) -> bool:
    return isinstance(one, Agent | Handoff)


def _answer(kind: Any) -> dict[str, Any]:
    """Write the schema of an answer as that of a function: it is sent beside them."""
    schema = kind if isinstance(kind, AgentOutputSchemaBase) else AgentOutputSchema(kind)
    parameters = {} if schema.is_plain_text() else schema.json_schema()
    return {"type": "function", "name": "final_output", "parameters": parameters}
