"""The counting endpoints of three SDKs, known by what a client has; no SDK is imported."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from trimtab._shared.checks import answers_later
from trimtab.counting.checks import counter_name
from trimtab.errors import ConfigurationError, UnknownNameError
from trimtab.formats import formats

if TYPE_CHECKING:
    from trimtab.counting.remote import CountQuestion

__all__ = ["Endpoint", "Told", "endpoint_of"]


class Told(NamedTuple):
    """What a provider said of a request."""

    tokens: int
    tools: Any = None
    """Tool schemas the endpoint does not take, which are not counted here."""


class Endpoint:
    """One client's way to count a request."""

    form = ""
    """The wire form it takes."""
    path: tuple[str, ...] = ()
    """The attributes that lead from a client to the endpoint."""

    def __init__(self, call: Callable[..., Any], *, model: str, options: Mapping[str, Any]) -> None:
        self._call = call
        self._model = model
        self._options = options

    def __reduce__(self) -> tuple[Any, ...]:
        """Refuse: a client holds connections and locks.

        Raises:
            TypeError: Always, with what to do instead.
        """
        raise TypeError(
            "a RemoteCounter that asks through a client can't be pickled or deep-copied: make it where it is"
            " used, as RemoteCounter.of(client, model=...)"
        )

    async def ask(self, question: CountQuestion, /) -> int | Told:
        """Ask; what it raises is the client's."""
        raise NotImplementedError

    def estimate(self) -> Any:
        """Make the counter for what the provider does not answer."""
        from trimtab.counting import EstimateCounter, counter_for

        form = self.form if self.form in formats() else "openai_chat"
        try:
            return counter_for(self._model).with_format(form)
        except UnknownNameError:
            return EstimateCounter(format=form)


class _Messages(Endpoint):
    """Anthropic. Source: docs.claude.com, "Token counting"; anthropic 2.12 (2026-11-21)."""

    form = "anthropic"
    path = ("messages", "count_tokens")

    async def ask(self, question: CountQuestion, /) -> int:
        """Ask with all there is of the request."""
        given = _given(system=question.system, tools=question.tools)
        answer = await self._call(
            model=self._model, messages=list(question.messages), **given, **self._options
        )
        tokens: int = answer.input_tokens
        return tokens


class _Contents(Endpoint):
    """Gemini. Source: ai.google.dev, "Count tokens"; google-genai 3.4 (2026-11-21).

    Its Developer API takes no system text and no tools there, and the client says so before it asks: system
    text is then asked about as one more content, and tools are left out. Errs: high by a few tokens.
    """

    form = "gemini"
    path = ("aio", "models", "count_tokens")

    async def ask(self, question: CountQuestion, /) -> int | Told:
        """Ask with all there is of the request, or with what the endpoint takes."""
        contents = list(question.messages)
        config = {
            **_given(system_instruction=question.system, tools=question.tools),
            **self._options,
        }
        try:
            return await self._asked(contents, config)
        except ValueError as error:
            if not _NOT_TAKEN.search(str(error)):
                raise
        system, tools = config.pop("system_instruction", None), config.pop("tools", None)
        if system is not None:
            contents = [{"role": "user", "parts": _parts_of(system)}, *contents]
        return Told(await self._asked(contents, config), tools)

    async def _asked(self, contents: list[Any], config: dict[str, Any]) -> int:
        answer = await self._call(model=self._model, contents=contents, config=config or None)
        tokens: int = answer.total_tokens
        return tokens


class _Responses(Endpoint):
    """OpenAI Responses. Source: platform.openai.com, "Get input token counts"; openai 3.54 (2026-11-21)."""

    form = "openai_responses"
    path = ("responses", "input_tokens", "count")

    async def ask(self, question: CountQuestion, /) -> int:
        """Ask with all there is of the request."""
        given = _given(instructions=question.system, tools=question.tools)
        answer = await self._call(model=self._model, input=list(question.messages), **given, **self._options)
        tokens: int = answer.input_tokens
        return tokens


_NOT_TAKEN = re.compile(r"\b(system_instruction|tools) parameter is (not|only) supported")
"""What the ValueError of google-genai says (3.4, read 2026-11-22); earlier ones say "not supported"."""

_ENDPOINTS: tuple[type[Endpoint], ...] = (_Messages, _Contents, _Responses)


def endpoint_of(client: Any, /, *, model: str, options: Mapping[str, Any] | None) -> Endpoint:
    """Find the counting endpoint of a client.

    Raises:
        ConfigurationError: It has none, or its endpoint is not async.
    """
    for kind in _ENDPOINTS:
        call = client
        for name in kind.path:
            call = getattr(call, name, None)
        if callable(call):
            if not answers_later(call):
                raise ConfigurationError(
                    f"{counter_name(client)} does not answer later: pass the async client (AsyncAnthropic,"
                    " AsyncOpenAI)"
                )
            return kind(call, model=model, options={} if options is None else options)
    paths = ", ".join(f"client.{'.'.join(kind.path)}" for kind in _ENDPOINTS)
    raise ConfigurationError(
        f"{type(client).__name__} has none of {paths}. For another client pass an async function:"
        " RemoteCounter(ask)"
    )


def _given(**arguments: Any) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if value is not None}


def _parts_of(system: Any) -> list[Any]:
    """Write system text as the parts of a content."""
    if isinstance(system, Mapping):
        return list(system.get("parts") or ())
    return [{"text": system}] if isinstance(system, str) else list(system)
