"""Holds a request to the types of the providers' own packages.

The packages' `Iterable` fields (the content of a message, its tool calls) become lazy iterators in pydantic:
they are checked when read, so never. And their TypedDicts drop keys they don't know. Both are changed in the
schema: what is iterable is a list, a key that is unknown is an error.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import SchemaValidator

KEYS = {"openai_chat": "messages", "openai_responses": "input", "anthropic": "messages", "gemini": "contents"}


def check_types(form: str, request: Mapping[str, Any]) -> list[str]:
    """Say what of a request's conversation is not of the package's types; nothing if all is."""
    if form == "bedrock":
        return _service_faults(request)
    listed = request.get(KEYS[form])
    if form == "openai_responses" and isinstance(listed, str):
        return []
    try:
        validator = _validator(form)
        if form == "gemini":  # bytes and enums are read from JSON
            validator.validate_json(json.dumps(listed))
        else:
            validator.validate_python(listed, strict=True)
    except ValidationError as error:
        return [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors(include_url=False)]
    return []


def _service_faults(request: Mapping[str, Any]) -> list[str]:
    """Say what botocore says against a request, by the service model it brings along."""
    from botocore.validate import ParamValidator

    report = ParamValidator().validate(dict(request), _converse())
    return str(report.generate_report()).splitlines() if report.has_errors() else []


@functools.cache
def _converse() -> Any:
    """Load the shape of a request."""
    from botocore.session import Session

    return Session().get_service_model("bedrock-runtime").operation_model("Converse").input_shape


@functools.cache
def _validator(form: str) -> SchemaValidator:
    """Build the validator of a form's messages, once: the unions are long."""
    return SchemaValidator(_strict(TypeAdapter(list[_type(form)]).core_schema))  # type: ignore[misc]


def _type(form: str) -> Any:
    """Import the type of one message; the beta's of Anthropic knows the blocks of betas too."""
    if form == "openai_chat":
        from openai.types.chat import ChatCompletionMessageParam

        return ChatCompletionMessageParam
    if form == "openai_responses":
        from openai.types.responses import ResponseInputItemParam

        return ResponseInputItemParam
    if form == "anthropic":
        from anthropic.types.beta import BetaMessageParam

        return BetaMessageParam
    from google.genai.types import Content

    return Content


def _strict(schema: Any) -> Any:
    """Rewrite a schema: lists for iterables, no unknown keys."""
    if isinstance(schema, list):
        return [_strict(part) for part in schema]
    if isinstance(schema, tuple):
        return tuple(_strict(part) for part in schema)
    if not isinstance(schema, dict):
        return schema
    made = {key: value if key == "metadata" else _strict(value) for key, value in schema.items()}
    if made.get("type") == "generator":
        made["type"] = "list"
    if made.get("type") == "typed-dict":
        made["extra_behavior"] = "forbid"
    return made
