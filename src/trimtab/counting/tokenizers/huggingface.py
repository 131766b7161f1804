"""Counters of open models from their tokenizer files and chat templates, as Hugging Face keeps them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any, NamedTuple

from trimtab._shared.lazy import package_of
from trimtab.counting.base import TextFunction
from trimtab.counting.tokenizers.template import (
    Entries,
    Render,
    TemplateCounter,
    refusal_of,
    template_renderer,
)
from trimtab.errors import ConfigurationError
from trimtab.formats import Format
from trimtab.models import MediaRule


def counter_from_tokenizer(
    tokenizer: Any,
    /,
    *,
    chat_template: Any = None,
    variables: Mapping[str, Any] | None = None,
    name: str | None = None,
    media: MediaRule | None = None,
    format: str | Format = "openai_chat",
) -> TemplateCounter:
    """Make the counter of an open model from its tokenizer and chat template.

    It opens no network connection: the files must be on disk. It splits text and renders the template as the
    model's server does.

    Args:
        tokenizer: The folder of a model, its `tokenizer.json`, a `tokenizers.Tokenizer`, or a tokenizer of
            `transformers`.
        chat_template: A jinja2 template, or several by name; None takes the one next to the tokenizer.
        variables: Other variables of the template, such as `{"enable_thinking": False}`; for a
            `tokenizers.Tokenizer` also `bos_token` and `eos_token`.
        name: Its name in reports; None takes the folder's name.
        media: Charges for images, sounds and files; the template gets their messages without them.
        format: The wire form of the messages.

    Raises:
        ConfigurationError: A tokenizer or template is missing.
        CountingError: The template refuses even a single user message.
        MissingExtraError: `tokenizers` or `jinja2` is not installed.

    Example:
        ```python
        counter = counter_from_tokenizer("models/Qwen3-8B")
        ```
    """
    if variables is not None and not isinstance(variables, Mapping):
        raise ConfigurationError(
            f"variables must be a mapping of names to values, not {variables!r:.80}", argument="variables"
        )
    if isinstance(tokenizer, str | PathLike):
        found = _from_files(Path(fspath(tokenizer)), chat_template, name)
    elif hasattr(tokenizer, "apply_chat_template"):
        name = name or str(getattr(tokenizer, "name_or_path", "")).rpartition("/")[2] or "tokenizer"
        # what it splits with is inside it, if it is a fast one; it renders by itself
        inside = getattr(tokenizer, "backend_tokenizer", None) or tokenizer
        found = _Found(inside, name, render=_Written(tokenizer, chat_template, variables or {}, name))
    elif hasattr(tokenizer, "get_added_tokens_decoder"):
        found = _Found(tokenizer, name or "tokenizer", chat_template)
    else:
        raise ConfigurationError(
            "counter_from_tokenizer takes a folder, a tokenizer.json, a tokenizers.Tokenizer or a tokenizer"
            f" of transformers, not {tokenizer!r:.80}; for a function over texts use counter_from_text"
        )
    render = found.render
    if render is None:
        if not found.template:
            raise ConfigurationError(f"{found.name} has no chat template: pass chat_template=")
        variables = {**found.tokens, **(variables or {})}
        render = template_renderer(found.template, name=found.name, variables=variables)
    count, special = _text_function(found.tokenizer)
    return TemplateCounter(render, count, name=found.name, special_tokens=special, media=media, format=format)


class _Found(NamedTuple):
    """A tokenizer, and how requests are written for it."""

    tokenizer: Any
    name: str
    template: Any = None
    tokens: Mapping[str, Any] = {}
    """Special tokens by the names that templates know them by."""
    render: Render | None = None
    """What renders requests, where the tokenizer does it itself."""


def _from_files(path: Path, chat_template: Any, name: str | None) -> _Found:
    file = path / "tokenizer.json" if path.is_dir() else path
    if not file.is_file():
        raise ConfigurationError(
            f"no tokenizer at {file}: pass a folder that holds a tokenizer.json, or the file (trimtab"
            " downloads nothing; `hf download MODEL` does)"
        )
    tokenizers = package_of("tokenizers", package="tokenizers", needed_by="counter_from_tokenizer()")
    try:
        tokenizer = tokenizers.Tokenizer.from_file(str(file))
    except Exception as error:  # that is what it raises
        raise ConfigurationError(f"{file} cannot be read as a tokenizer: {error!s:.200}") from error
    folder = file.parent
    config = _json(folder / "tokenizer_config.json")
    named = {**_json(folder / "special_tokens_map.json"), **config}
    tokens = {key: _content(value) for key, value in named.items() if key.endswith("_token") and value}
    template = chat_template or _templates(folder) or config.get("chat_template")
    return _Found(tokenizer, name or folder.name, template, tokens)


def _json(file: Path) -> dict[str, Any]:
    if not file.is_file():
        return {}
    try:
        read = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ConfigurationError(f"{file} is not JSON: {error}") from error
    return read if isinstance(read, dict) else {}


def _content(value: object) -> object:
    """Return the text of a token, which a configuration writes bare or with how it is matched."""
    return value.get("content") if isinstance(value, dict) else value


def _templates(folder: Path) -> dict[str, str]:
    files = {"default": folder / "chat_template.jinja"}
    files |= {file.stem: file for file in sorted((folder / "additional_chat_templates").glob("*.jinja"))}
    found = {key: _text_of(file) for key, file in files.items() if file.is_file()}
    in_json = _json(folder / "chat_template.json").get("chat_template")
    return found or ({"default": in_json} if isinstance(in_json, str) else {})


@dataclass(frozen=True, slots=True)
class _Written:
    tokenizer: Any
    chat_template: Any
    variables: Mapping[str, Any]
    name: str

    def __call__(self, entries: Entries, tools: list[object] | None, answer_begins: bool) -> str:
        try:
            written = self.tokenizer.apply_chat_template(
                entries,
                tools=tools,
                chat_template=self.chat_template,
                add_generation_prompt=answer_begins,
                tokenize=False,
                **self.variables,
            )
        except Exception as error:  # of jinja2 or of transformers
            raise refusal_of(self.name, error) from error
        return str(written)


def _text_function(tokenizer: Any) -> tuple[TextFunction, Iterable[str]]:
    special: Iterable[str]
    if hasattr(tokenizer, "get_added_tokens_decoder"):
        tokenizer = _whole(tokenizer)
        added = tokenizer.get_added_tokens_decoder().values()
        special = [token.content for token in added if token.special]
    else:
        special = getattr(tokenizer, "all_special_tokens", ())
    return _Split(tokenizer), special


@dataclass(frozen=True, slots=True)
class _Split:
    tokenizer: Any

    def __call__(self, text: str, /) -> int:
        encode = self.tokenizer.encode
        try:
            return len(encode(text, add_special_tokens=False))
        except (UnicodeEncodeError, TypeError):  # lone surrogates
            plain = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            return len(encode(plain, add_special_tokens=False))


def _whole(tokenizer: Any) -> Any:
    """Return a tokenizer that neither cuts nor fills up: itself, or a copy of the caller's."""
    if tokenizer.truncation is None and tokenizer.padding is None:
        return tokenizer
    copy = type(tokenizer).from_str(tokenizer.to_str())
    copy.no_truncation()
    copy.no_padding()
    return copy


def _text_of(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{file} cannot be read as a chat template: {error}") from error
