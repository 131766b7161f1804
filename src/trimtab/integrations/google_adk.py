"""Google's Agent Development Kit: a plugin that fits the contents of each model call."""
# What is missing is said before it is imported.
# ruff: noqa: E402

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from trimtab._shared.lazy import package_of
from trimtab.formats import Gemini
from trimtab.formats.values import python_json
from trimtab.integrations.answers import answer_part, answer_ways
from trimtab.integrations.base import (
    AdapterBudget,
    FitOptions,
    OnFitted,
    Schemas,
    Trimmer,
    known_facts,
)
from trimtab.integrations.copies import CopyCache

package_of("google-adk", package="google.adk", needed_by="trimtab.integrations.google_adk")

from google.adk.agents.callback_context import CallbackContext
from google.adk.models.llm_request import LlmRequest
from google.adk.plugins.base_plugin import BasePlugin
from google.genai import types
from pydantic import TypeAdapter

__all__ = ["TrimPlugin"]

_GO_ON = (
    "Continue processing previous requests as instructed. Exit or provide a summary if no more outputs are"
    " needed."
)
"""What ADK's models add as a user's content where the last one is not a user's; it is counted."""


_UNMARKED = (
    "a Content has no place for marks of a prompt cache; ADK sets its own with"
    " App(…, context_cache_config=ContextCacheConfig())"
)


class TrimPlugin(BasePlugin):
    """Fits each request that the agents of an app send to their models.

    It counts the system instruction, the tools, the output schema, and the contents of the call, for the
    model of the call. The events of the session are kept whole, and kept contents are the same objects as in
    the call.

    Args:
        budget: Tokens, a `Budget`, a share of the model's input limit such as `"80%"`, a `Context`, the path
            of a policy, or None for the window less the room for the answer.
        on_fitted: Called with the `Fitted` of each call; may be async.
        name: Name of the plugin; two plugins of an app need two names.
        options: `strategy`, `counter`, `pin` and other keyword arguments of `trimtab.fit`.

    Raises:
        ConfigurationError: The budget or an option is invalid.
        BudgetExceededError: For a call: what must be kept does not fit. ADK wraps errors of plugins in a
            RuntimeError, which has this error as `__cause__`.
    """

    def __init__(
        self,
        budget: AdapterBudget = None,
        *,
        on_fitted: OnFitted | None = None,
        name: str = "trimtab",
        **options: Unpack[FitOptions],
    ) -> None:
        super().__init__(name)
        # The framework copies all contents at each call.
        self._trimmer: Trimmer[types.Content] = Trimmer(
            budget,
            format=_Contents(),
            read=_read,
            write=_write,
            cache=CopyCache,
            on_fitted=on_fitted,
            options=options,
            unmarked=_UNMARKED,
        )
        self._answers = Schemas(lambda asked: [*map(_answer, asked)])

    async def before_model_callback(self, callback_context: CallbackContext, llm_request: LlmRequest) -> None:
        """Fit the contents of a call."""
        contents, config = llm_request.contents, llm_request.config
        system: Any = config.system_instruction
        if not contents or contents[-1].role != "user":
            system = [*([system] if system else []), _GO_ON]
        asked: Any = config.response_json_schema or config.response_schema
        model = llm_request.model
        if getattr(llm_request, "previous_interaction_id", None):
            self._trimmer.warn_stored(
                "previous_interaction_id is given", instead="write Gemini(use_interactions_api=False)"
            )
        facts = known_facts(model)
        ways = answer_ways(None if asked is None else self._answers.of([asked])[0])
        if facts is not None and facts.format == "gemini":  # on Vertex, too; others may be asked by a call
            del ways[1:]
        ways = [[*way, *(config.tools or ())] for way in ways]
        # LiteLLM and the classes for Claude write another form
        sent_as = None if facts is None or facts.format == "gemini" else facts.format
        tools = self._trimmer.dearest(ways, has_system=bool(system), model=model, sent_as=sent_as)
        sent = await self._trimmer.afit(contents, model=model, sent_as=sent_as, system=system, tools=tools)
        llm_request.contents = sent.messages


class _Contents(Gemini):
    """The form of its contents, whose objects `LiteLlm` writes with spaces.

    That is `json.dumps(args, ensure_ascii=False)`, of responses too (google-adk 2.13).
    """

    _write_sent = staticmethod(python_json)


def _read(content: types.Content) -> dict[str, Any]:
    return content.model_dump(exclude_none=True)


def _write(_: types.Content | None, wire: Sequence[dict[str, Any]]) -> types.Content:
    return types.Content.model_validate(wire[0])


def _answer(schema: Any) -> dict[str, Any] | None:
    """Write the schema of an answer."""
    if isinstance(schema, types.Schema):
        schema = schema.model_dump(exclude_none=True, mode="json")
    return answer_part(_strict(schema if isinstance(schema, dict) else TypeAdapter(schema).json_schema()))


def _strict(schema: Any) -> Any:
    """Have each object of a schema hold all of its properties and no others, as ADK does for LiteLLM."""
    if isinstance(schema, list):
        return [*map(_strict, schema)]
    if not isinstance(schema, dict):
        return schema
    made = {key: _strict(value) for key, value in schema.items()}
    if not isinstance(made.get("properties"), dict):
        return made
    return {**made, "required": [*made["properties"]], "additionalProperties": False}
