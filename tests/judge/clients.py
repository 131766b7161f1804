"""Sends requests with the providers' own clients to the server of this folder."""

from __future__ import annotations

import atexit
import functools
import warnings
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from tests.judge.server import Provider, provider

MODELS = {
    "openai_chat": "gpt-4o",
    "openai_responses": "gpt-5",
    "anthropic": "claude-sonnet-4-5",
    "gemini": "gemini-2.5-flash",
    "bedrock": "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
}
"""Where a body names none."""
OWN = "The client sends no such request:"


def accepted(form: str, body: Mapping[str, Any]) -> bool:
    """Say whether the real client of a form sends a request and gets an answer."""
    return refusal(form, body) is None


def refusal(form: str, body: Mapping[str, Any]) -> str | None:
    """Send a request with the real client; return the words of the refusal, None if it is answered.

    Google's client and boto3 check a request themselves: what they do not send is refused in their own words.
    """
    senders = {"gemini": _gemini, "anthropic": _anthropic, "bedrock": _bedrock}
    send, named = senders.get(form, _openai), "modelId" if form == "bedrock" else "model"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of models: the wire is what is tested
        return send(form, {named: MODELS[form], **body})


@functools.cache
def place() -> Provider:
    """Start the server that the clients ask; it ends with the process."""
    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(provider())


@functools.cache
def _client(kind: str) -> Any:
    """Make a client of this machine's server: no keys, no proxies, no second try."""
    address = place().address
    made: Any
    if kind == "openai":
        import openai

        http = openai.DefaultHttpxClient(trust_env=False)
        made = openai.OpenAI(api_key="none", base_url=f"{address}/v1", max_retries=0, http_client=http)
    elif kind == "anthropic":
        import anthropic

        http = anthropic.DefaultHttpxClient(trust_env=False)
        made = anthropic.Anthropic(api_key="none", base_url=address, max_retries=0, http_client=http)
    elif kind == "bedrock":
        made = bedrock_client(address)
    else:
        from google import genai

        options = genai.types.HttpOptions(base_url=address, client_args={"trust_env": False})
        made = genai.Client(api_key="none", vertexai=False, http_options=options)
    atexit.register(made.close)
    return made


def bedrock_client(address: str) -> Any:
    """Make a client of Bedrock that asks a server of this machine."""
    import boto3
    from botocore.config import Config

    return boto3.client(
        "bedrock-runtime",
        endpoint_url=address,
        region_name="us-east-1",
        aws_access_key_id="none",
        aws_secret_access_key="none",
        config=Config(proxies={}, retries={"total_max_attempts": 1}),
    )


def _openai(form: str, body: dict[str, Any]) -> str | None:
    from openai import BadRequestError

    client = _client("openai")
    create = client.chat.completions.create if form == "openai_chat" else client.responses.create
    try:
        create(**body)
    except BadRequestError as error:
        return str(error.body["message"])
    return None


def _anthropic(form: str, body: dict[str, Any]) -> str | None:
    from anthropic import BadRequestError

    try:
        _client("anthropic").messages.create(**{"max_tokens": 4096, **body})
    except BadRequestError as error:
        return str(error.body["error"]["message"])
    return None


def _gemini(form: str, body: dict[str, Any]) -> str | None:
    from google.genai.errors import ClientError

    config = {key: body[key] for key in ("systemInstruction", "tools", "toolConfig") if body.get(key)}
    config |= body.get("generationConfig") or {}
    try:
        _client("google").models.generate_content(
            model=body["model"], contents=body.get("contents"), config=config or None
        )
    except ClientError as error:
        if error.code != 400:
            raise
        return str(error.message)
    except ValueError as error:
        return f"{OWN} {error}"
    return None


def _bedrock(form: str, body: dict[str, Any]) -> str | None:
    from botocore.exceptions import ClientError, ParamValidationError

    try:
        _client("bedrock").converse(**body)
    except ParamValidationError as error:
        return f"{OWN} {error}"
    except ClientError as error:
        if error.response["Error"]["Code"] != "ValidationException":
            raise
        return str(error.response["Error"]["Message"])
    return None
