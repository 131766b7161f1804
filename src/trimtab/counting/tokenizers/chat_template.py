"""Chat templates: the jinja2 text by which a server writes a conversation before it splits it.

Rendered as Hugging Face's `transformers` renders them (5.23, utils/chat_template_utils.py): sandboxed,
blocks trimmed, with `raise_exception`, `strftime_now`, loop controls and the `generation` block, which
writes what it holds.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any

from trimtab._shared.extra import package_of
from trimtab.errors import ConfigurationError, CountingError

Entries = list[dict[str, Any]]
"""Messages as templates read them: Chat Completions with string content."""

Render = Callable[[Entries, list[Any] | None, bool], str]
"""Writes messages and tools as one text; True adds the beginning of the answer."""


def template_renderer(source: Any, /, *, name: str, variables: Mapping[str, Any]) -> Render:
    """Compile a chat template, or one of several.

    Args:
        source: A template, a mapping of names to templates, or a list of `{"name": ..., "template": ...}`:
            the one named "tool_use" is taken, since a size may not depend on whether tools are given,
            else "default".
        name: Whom errors name.
        variables: What else the template may read: `bos_token`, `enable_thinking` and the like.

    Raises:
        ConfigurationError: It is no template, or does not compile.
        MissingExtraError: jinja2 is not installed.
    """
    sources = _sources(source, name)
    first = next(iter(sources.values()))
    return _Template(sources.get("tool_use") or sources.get("default") or first, name, variables)


class _Template:
    """A compiled chat template; travels to another process as its text."""

    def __init__(self, text: str, name: str, variables: Mapping[str, Any]) -> None:
        package_of("tokenizers", package="jinja2", needed_by="a chat template")
        self._template = _compiled(text, name)
        self._made_of = (text, name, variables)

    def __reduce__(self) -> tuple[Any, ...]:
        return _Template, self._made_of

    def __call__(self, entries: Entries, tools: list[Any] | None, answer_begins: bool) -> str:
        """Write messages and tools as one text."""
        _, name, variables = self._made_of
        given: dict[str, Any] = {"tools": tools, "documents": None, **variables}
        try:
            return str(self._template.render(messages=entries, add_generation_prompt=answer_begins, **given))
        except Exception as error:  # a template may call anything on anything
            raise refused(name, error) from error


def refused(name: str, error: Exception) -> CountingError:
    """Make our error of what a template said, in its words."""
    return CountingError(f"the chat template of {name} refused the messages: {error!s:.300}", counter=name)


def _sources(source: Any, name: str) -> dict[str, str]:
    """Name the templates there are."""
    if isinstance(source, str):
        return {"default": source}
    if isinstance(source, list):
        pairs = [(entry.get("name"), entry.get("template")) for entry in source if isinstance(entry, Mapping)]
        source = dict(pairs) if len(pairs) == len(source) else None
    if not isinstance(source, Mapping) or not source or not all(isinstance(t, str) for t in source.values()):
        raise ConfigurationError(
            f"{name}: a chat template is a text, or several by name"
            f' ({{"default": ..., "tool_use": ...}}), not {source!r:.80}'
        )
    return {str(key): text for key, text in source.items()}


def _compiled(text: str, name: str) -> Any:
    from jinja2 import TemplateError

    try:
        return _environment().from_string(text)
    except TemplateError as error:
        raise ConfigurationError(f"the chat template of {name} is no valid template: {error}") from error


@lru_cache(maxsize=1)
def _environment() -> Any:
    from jinja2 import TemplateError, nodes
    from jinja2.ext import Extension, loopcontrols
    from jinja2.parser import Parser
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Generation(Extension):
        """Writes what a `generation` block holds; trainers mark answers with it."""

        # jinja2 declares it of instances, although it reads it of the class
        tags = {"generation"}  # noqa: RUF012

        def parse(self, parser: Parser) -> list[nodes.Node]:
            next(parser.stream)
            return parser.parse_statements(("name:endgeneration",), drop_needle=True)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols]
    )

    def raise_exception(message: object) -> None:
        raise TemplateError(str(message))

    environment.filters["tojson"] = _to_json
    given: dict[str, Any] = {"raise_exception": raise_exception, "strftime_now": _strftime_now}
    environment.globals.update(given)
    return environment


def _strftime_now(format: str) -> str:
    return datetime.now().astimezone().strftime(format)


def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Write JSON without jinja2's escapes for HTML."""
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )
