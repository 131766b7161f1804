"""OpenAI's Agents SDK: a filter that fits each model call, and a session that keeps every item."""
# What is missing is said before it is imported.
# ruff: noqa: E402

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Unpack, cast

from trimtab._fit import Fitted
from trimtab._shared.lazy import package_of
from trimtab.errors import ConfigurationError
from trimtab.formats import get_format
from trimtab.integrations.answers import answer_part
from trimtab.integrations.base import (
    AdapterBudget,
    FitOptions,
    OnFitted,
    Outcome,
    Schemas,
    Trimmer,
    afinish,
    tell,
)
from trimtab.session import Session

package_of("openai-agents", package="agents", needed_by="trimtab.integrations.openai_agents")

from agents import (
    Agent,
    AgentOutputSchema,
    AgentOutputSchemaBase,
    Handoff,
    OpenAIChatCompletionsModel,
    RunContextWrapper,
    SessionSettings,
    TResponseInputItem,
    handoff,
)
from agents.models import get_default_model
from agents.models.fake_id import FAKE_RESPONSES_ID
from agents.models.openai_responses import Converter
from agents.run import CallModelData, ModelInputData

__all__ = ["TrimSession", "trim_filter"]


def trim_filter(
    budget: AdapterBudget = None,
    *,
    persist: TrimSession | None = None,
    on_fitted: OnFitted | None = None,
    **options: Unpack[FitOptions],
) -> Callable[[CallModelData[Any]], Awaitable[ModelInputData]]:
    """Make a filter for `RunConfig(call_model_input_filter=…)`: it fits each call.

    It counts the instructions, the agent's tools and handoffs, its output schema, and the items of the call,
    for the agent's model. The run and its session keep everything, and kept items are the same objects as in
    the call.

    A call that continues a conversation on the server (`previous_response_id`, `auto_previous_response_id`,
    `conversation_id`) has only new items. If it has results of calls on the server, it is sent unchanged,
    with a warning; if it has only messages, it looks like any other call, and is fitted by itself.

    Args:
        budget: Tokens, a `Budget`, a share of the model's input limit such as `"80%"`, a `Context`, the path
            of a policy, or None for the window less the room for the answer.
        persist: The session of the run. Each call gets the view of the session. If that does not fit, the
            session is cut: what is evicted for one call is not sent again, in this run or in later ones. For
            this, the session's budget must be the room without instructions and tools: with a larger budget,
            its cut may evict too little, and the call is fitted as without a session.
        on_fitted: Called with the `Fitted` of each call; may be async.
        options: `strategy`, `counter`, `pin` and other keyword arguments of `trimtab.fit`. Pass `model` if
            the run has another model than its agents.

    Raises:
        ConfigurationError: The budget or an option is invalid.
        BudgetExceededError: For a call: what must be kept does not fit.
    """
    if persist is not None and not isinstance(persist, TrimSession):
        raise ConfigurationError(
            f"persist={persist!r:.80}: a filter cannot see the run's session, so pass that session itself,"
            " persist=TrimSession(session)"
        )
    trimmer: Trimmer[TResponseInputItem] = Trimmer(
        budget,
        format="openai_responses",
        read=_read,
        write=_write,
        on_fitted=None,
        options=options,
        hands_system=True,
    )
    tools_of, offs_of, answers_of = Schemas(_tools), Schemas(_offs), Schemas(_answers)

    async def trim(data: CallModelData[Any]) -> ModelInputData:
        agent, given = data.agent, data.model_data
        if _goes_on(given.input):
            trimmer.warn_stored("what the input answers is not in it", instead=_INSTEAD)
            return given
        tools = await agent.get_all_tools(RunContextWrapper(data.context))

        async def fit(items: list[TResponseInputItem]) -> Outcome[TResponseInputItem]:
            return await trimmer.afit(
                items,
                model=_model_name(agent),
                sent_as="openai_chat" if isinstance(agent.model, OpenAIChatCompletionsModel) else None,
                system=given.instructions,
                tools=[
                    *answers_of.of([agent.output_type]),
                    *tools_of.of(tools),
                    *offs_of.of(agent.handoffs),
                ],
            )

        view = None if persist is None else await persist.view_for(given.input)
        sent = await fit(given.input if view is None else view)
        if (
            view is not None
            and persist is not None
            and _gave_way(sent.fitted)
            and await persist.session.acut()
        ):
            sent = await fit(await persist.view_for(given.input) or given.input)
        await afinish(tell(on_fitted, sent.fitted))
        return ModelInputData(input=sent.messages, instructions=sent.fitted.system or given.instructions)

    return trim


def _read(item: Any) -> Any:
    """Leave out the id that the SDK gives all items of its chat models alike, and never sends."""
    if not isinstance(item, dict) or item.get("id") != FAKE_RESPONSES_ID:
        return item
    return {key: value for key, value in item.items() if key != "id"}


def _write(item: Any, wire: list[Any]) -> Any:
    """Write the id again: it tells the SDK that an item is the model's."""
    [said] = wire
    return said if item is None or _read(item) is item else {**said, "id": FAKE_RESPONSES_ID}


class TrimSession:
    """A session for the SDK on top of trimtab's: a run gets its view, and its log keeps every item.

    A run reads the session once, at the start, and then adds the results of its tools: `trim_filter(…,
    persist=session)` keeps each call within the budget.

    Args:
        session: The session needs `format="openai_responses"`. Its budget is for the items only: instructions
            and tools are sent in addition.
        session_settings: The SDK's settings, or what it makes them from, such as `{"limit": 50}`; None: the
            SDK's default. A limit cuts anywhere, and may separate a call from its result.

    Raises:
        ConfigurationError: The session is of another wire form.
        TypeError: Raised by the SDK for a setting that its `SessionSettings` does not have.
    """

    def __init__(
        self, session: Session, *, session_settings: SessionSettings | Mapping[str, Any] | None = None
    ) -> None:
        if session.format.name != "openai_responses":
            raise ConfigurationError(
                "the Agents SDK writes Responses items, but the session has the format"
                f" {session.format.name!r}: make it with Session(…, format='openai_responses')"
            )
        self.session = session
        self.session_id = session.id
        is_own = isinstance(session_settings, SessionSettings)
        own: Any = session_settings if is_own else SessionSettings().resolve(cast("Any", session_settings))
        self.session_settings: SessionSettings | None = own
        self._known: list[list[TResponseInputItem]] = []
        """What whoever asked for the items has by now: these, and all that was added since."""

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the view, or this many of its newest items."""
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        items: list[Any] = await self.session.amessages()
        if limit is not None:
            return items[max(0, len(items) - limit) :]
        self._known = [*self._known[1 - _MOST_READERS :], [*items]]
        return items

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Add items, all of them or none."""
        if items:
            await self.session.aextend(items)
            for known in self._known:
                known += items

    async def pop_item(self) -> TResponseInputItem | None:
        """Remove the newest item and return it; None if there is none; the log keeps it."""
        event: Any = await self.session.apop()
        for known in self._known:
            del known[-1:]
        return None if event is None else event.message

    async def clear_session(self) -> None:
        """Start over with an empty view; the log is kept. `session.adelete()` deletes the log."""
        await self.session.aclear()
        self._known = []

    async def view_for(self, items: list[TResponseInputItem]) -> list[TResponseInputItem] | None:
        """Return the current view, and after it the run's items that it lacks.

        None if the items of the run are not those of the session: a handoff or a callback rewrote them, a
        limit cut them, or the run began with another object.

        Args:
            items: The items of a call of the run.
        """
        marks = [*map(_mark, items)]
        for known in reversed(self._known):
            if marks[: len(known)] == [*map(_mark, known)]:
                self._known = [known]
                view: list[Any] = await self.session.amessages()
                return [*view, *items[len(known) :]]
        return None


def _goes_on(items: Sequence[Any]) -> bool:
    """Tell whether the server keeps what was said before: results are here, and nothing of the model."""
    kinds = {_FORM.kind(item) for item in items if isinstance(item, dict)}
    return "tool" in kinds and "assistant" not in kinds


_FORM = get_format("openai_responses")

_INSTEAD = "leave previous_response_id=, auto_previous_response_id= and conversation_id= of the run out"


def _gave_way(fitted: Fitted[Any]) -> bool:
    return fitted.report.compacted


_MOST_READERS = 4
"""Besides the run, a program may show the items to its user meanwhile."""


def _mark(item: Any) -> Any:
    """Tell what an item is by: the SDK writes some of its keys anew for a call."""
    if not isinstance(item, Mapping):
        return item
    if "call_id" in item:
        return item.get("type"), item["call_id"]
    return {key: value for key, value in item.items() if key != "id"}


def _model_name(agent: Agent[Any]) -> str | None:
    """Name the model of an agent."""
    name = agent.model if isinstance(agent.model, str) else getattr(agent.model, "model", None)
    if agent.model is None:
        name = get_default_model()
    return name if isinstance(name, str) else None


def _tools(tools: Sequence[Any]) -> list[Any]:
    return [*Converter.convert_tools([*tools], []).tools]


def _offs(offs: Sequence[Agent[Any] | Handoff[Any, Any]]) -> list[Any]:
    made = [one if isinstance(one, Handoff) else handoff(one) for one in offs]
    return [*Converter.convert_tools([], made).tools]


def _answers(kinds: Sequence[Any]) -> list[Any]:
    """Write the schemas of answers as they are sent; a text has none."""
    schemas = [
        kind if isinstance(kind, AgentOutputSchemaBase) else AgentOutputSchema(kind)
        for kind in kinds
        if kind is not None
    ]
    asked = [Converter.get_response_format(schema) for schema in schemas if not schema.is_plain_text()]
    return [answer_part(one) for one in asked if isinstance(one, Mapping)]
