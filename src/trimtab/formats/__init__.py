"""Wire forms by name: reading, editing and checking the messages of one provider's API."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from trimtab._shared.checks import move, unknown_name
from trimtab._shared.lazy import later
from trimtab._shared.plugins import make_plugin, plugin_names
from trimtab.errors import ConfigurationError, FormatError
from trimtab.formats.anthropic import Anthropic
from trimtab.formats.base import (
    REGISTRY,
    Format,
    Media,
    Pieces,
    Prices,
    Request,
    Rules,
    SystemLike,
    TextSlot,
    ToolSchema,
)
from trimtab.formats.bedrock import Bedrock
from trimtab.formats.foreign import ROLES, check_message
from trimtab.formats.gemini import Gemini
from trimtab.formats.openai_chat import OpenAIChat
from trimtab.formats.openai_responses import OpenAIResponses
from trimtab.formats.origin import OriginName
from trimtab.formats.refusal import Fault
from trimtab.formats.structure import Kind, Step, Structure, Thinking
from trimtab.formats.tools import Tool, read_tools
from trimtab.formats.values import Dict, Path, as_list, entry_of, item_of, mapping_of

if TYPE_CHECKING:
    from trimtab.formats.api_errors import Refusal, read_refusal
    from trimtab.formats.recordings import Bill, ForeignCall, ForeignConversation, read_foreign
else:
    __getattr__ = later(
        globals(),
        {
            # What is asked for when a provider has refused a request.
            **dict.fromkeys(("Refusal", "read_refusal"), "trimtab.formats.api_errors"),
            **dict.fromkeys(
                ("Bill", "ForeignCall", "ForeignConversation", "read_foreign"), "trimtab.formats.recordings"
            ),
        },
    )

__all__ = [
    "Anthropic",
    "Bedrock",
    "Bill",
    "Dict",
    "Fault",
    "ForeignCall",
    "ForeignConversation",
    "Format",
    "Gemini",
    "Kind",
    "Media",
    "OpenAIChat",
    "OpenAIResponses",
    "OriginName",
    "Path",
    "Pieces",
    "Prices",
    "Refusal",
    "Request",
    "Rules",
    "Step",
    "Structure",
    "SystemLike",
    "TextSlot",
    "Thinking",
    "Tool",
    "ToolSchema",
    "detect",
    "formats",
    "get_format",
    "mapping_of",
    "read_foreign",
    "read_refusal",
    "read_tools",
    "register_format",
]


DEFAULT = "openai_chat"
"""The form assumed where nothing tells another: most providers take it."""

REGISTRY.update(
    (form.name, form) for form in (Anthropic(), OpenAIChat(), OpenAIResponses(), Gemini(), Bedrock())
)


class _NoCounts(dict[Any, int]):
    """Counts of texts that nobody reads: 0 each. As where texts are counted, other keys raise TypeError."""

    def __missing__(self, text: Any) -> int:
        if text is not None and not isinstance(text, str):
            raise TypeError(f"{type(text).__name__} is not a text")
        return 0


FREE = Prices(
    bases=dict.fromkeys(("system", "developer", "user", "assistant", "model", "tool", "reasoning"), 0),
    counts=_NoCounts(),
    in_full=lambda message: 0,
    per_call_tokens=0,
    name_factor=0,
    parallel_tokens=0,
    thoughts_counted=False,
)
"""What messages cost that are read for their structure alone, or that the provider does not read."""


def formats() -> list[str]:
    """List the names of the wire forms, sorted.

    Example:
        >>> formats()
        ['anthropic', 'bedrock', 'gemini', 'openai_chat', 'openai_responses']
    """
    return sorted(REGISTRY)


def get_format(name: str | Format, /) -> Format:
    """Return the wire form of a name; a form is returned unchanged.

    Other names are looked up in the entry points `trimtab.formats`.

    Args:
        name: Name of a wire form, such as "anthropic"; or the form.

    Raises:
        UnknownNameError: No form has this name; `.near` lists similar ones.
        ConfigurationError: It is neither a name nor a `Format`.
    """
    if isinstance(name, Format):
        return name
    if not isinstance(name, str):
        return _as_format(name)
    if name in REGISTRY:
        return REGISTRY[name]
    if (made := make_plugin("formats", name)) is not None:
        REGISTRY[name] = form = _as_format(made)
        return form
    known = [*formats(), *plugin_names("formats")]
    there = ", ".join(known)
    raise unknown_name(
        f"no format is called {name!r}; there are: {there}, and 'auto'", name, known, argument="format"
    )


def wire_form(read: Format, sent: str | Format | None, /) -> Format:
    """Return a wire form as messages read in it are sent in another; the same one each time it is asked.

    What is remembered of a chat from call to call goes by the form it was read in.

    Args:
        read: The form that messages are read in.
        sent: Name of the other, or the form; None: they are sent as they are read.
    """
    if sent is None:
        return read
    form = get_format(sent)
    try:
        hash((read, form))
    except TypeError:  # one of a caller's
        return read._sent_as(form)
    return _sent_as(read, form)


@lru_cache(maxsize=64)
def _sent_as(read: Format, sent: Format) -> Format:
    return read._sent_as(sent)


def register_format(format: Format, /, *, replace: bool = False) -> None:
    """Register a wire form by its name, also for `detect`, for this process.

    `trimtab.testing.check_format` checks whether it meets the contract.

    Args:
        format: The wire form, with its `name`.
        replace: Whether to replace a form of that name; otherwise the name must be new.

    Raises:
        ConfigurationError: The argument is not a `Format` or has no name, or the name is taken and `replace`
            is not given.
    """
    form = _as_format(format)
    if form.name in REGISTRY and not replace:
        raise ConfigurationError(f"format {form.name!r} exists already; pass replace=True to replace it")
    REGISTRY[form.name] = form


def _as_format(value: Any) -> Format:
    """Take what somebody gives as a wire form; behind this door it is a `Format`."""
    name = getattr(value, "name", None)
    if not isinstance(name, str) or not name or name == "auto":
        known = ", ".join(formats())
        raise ConfigurationError(
            f"a format must be 'auto', a name ({known}), or an object with a name and the methods of Format,"
            f" not {reprlib.repr(value)}",
            argument="format",
        )
    if isinstance(value, Format):
        return value
    missing = sorted(one for one in Format.__abstractmethods__ if not callable(getattr(value, one, None)))
    if missing or not isinstance(getattr(value, "rules", None), Rules):
        raise ConfigurationError(
            f"format {name!r} lacks {', '.join(missing or ['rules'])}: derive it from trimtab.formats.Format"
        )
    return _Adapted(value)


_OF_THE_OBJECT: Any = None


class _Adapted(Format):
    """A wire form whose class does not derive from `Format`: what it lacks has the default."""

    kind = texts = pieces = matches = redact = message = _OF_THE_OBJECT

    def __init__(self, form: Any) -> None:
        for name in vars(Format):
            if not name.startswith("_") and hasattr(form, name):
                setattr(self, name, getattr(form, name))
        self.name = form.name


def leading_system(system: str | list[Any] | None, format: Format, /) -> list[Any]:
    """Write system text as a message, where the wire form keeps it among them."""
    if system is None or not format.rules.system_in_messages:
        return []
    return [format.message("system", [system] if isinstance(system, str) else list(system))]


def leading_count(messages: Sequence[Any], format: Format, /) -> int:
    """Count the system messages that stand first."""
    places = range(len(messages))
    return sum(1 for _ in takewhile(lambda at: format.kind(entry_of(messages, at)) == "system", places))


_CALLS = frozenset({"role", "content", "tool_calls"})
_PLAIN = frozenset({"role", "content", "name", "tool_call_id"})


def refuse_foreign(
    messages: Sequence[Any], form: str, *, start: int = 0, listed: bool = False, counted: bool = False
) -> None:
    """Refuse the first message of which no wire form knows what it is, or whom it is from.

    Args:
        messages: Messages, as they came in or as dicts.
        form: Name of the wire form they are read in.
        start: Position of the first of them in the list that an error is to name.
        listed: The caller lists roles and untyped blocks as violations, or mends them: they pass.
        counted: The caller counts: roles and untyped blocks cost what they hold.

    Raises:
        FormatError: With what it looks like; `.path` says which.
    """
    for at, message in enumerate(messages):
        if message.__class__ is dict:
            try:
                # A role and a text, or calls: nearly every message, and there is nothing to mistake.
                content = message["content"]
                if content.__class__ is str and message["role"] in ROLES and message.keys() <= _PLAIN:
                    continue
                if content is None and message["role"] == "assistant" and message.keys() == _CALLS:
                    continue
            except (KeyError, TypeError):
                pass  # no such key, or a role that nothing can be looked up by
        try:
            check_message(
                message if message.__class__ is dict else entry_of(messages, at),
                form,
                listed=listed,
                counted=counted,
            )
        except FormatError as error:
            if error.path:
                move(error, start)
                raise
            path = f"messages[{start + at}]"
            raise FormatError(f"{path}: {error}", path=path) from None


def format_of(messages: Any, format: str | Format, model: str | None = None) -> Format:
    """Return the wire form asked for; "auto" goes by the shapes that occur, then by the model.

    Raises:
        ConfigurationError: It is neither a name nor a `Format`.
        UnknownNameError: No wire form has that name.
    """
    if format == "auto":
        return detect(messages, model=model)
    return get_format(format)


def detect(messages: Any, /, *, model: str | None = None) -> Format:
    """Return the wire form of messages or a request body.

    A body is recognized by the key of its messages and by keys that occur only in one form; messages by the
    newest one that has a shape of only one form or is an object of that provider's SDK. Otherwise it is the
    form of the model's provider, if the model is known and the messages may be of that form; else
    `openai_chat`, which reads the shapes that all forms share; else the first form that is possible. Entries
    that are not messages are skipped.

    Args:
        messages: A list of messages, or a request body.
        model: Name of the model; None: no model decides.

    Complexity: O(1) if the newest or oldest messages decide; otherwise O(n).

    Example:
        >>> detect([{"role": "user", "content": "hi"}]).name
        'openai_chat'
    """
    known = list(REGISTRY.values())
    entries: Any = messages
    if isinstance(messages, Mapping):
        known = _by_body(messages, known)
        if len(known) == 1:
            return known[0]
        entries = messages.get(known[0].rules.body_key) if known else ()
    entries = entries if isinstance(entries, list | tuple) else ()
    found = _by_shape(entries, known)
    if found is not None and found.rules.parts_listed and _has_text(entries, found.rules.parts_key):
        found = None
    if found is None and model is not None:
        named = REGISTRY.get(form_of(model))
        found = named if named is not None and named in known and _may_be(named, entries) else None
    return found or next((one for one in known if one.name == DEFAULT), (*known, REGISTRY[DEFAULT])[0])


def _has_text(entries: Sequence[Any], key: str) -> bool:
    """Tell whether a message holds a text where it would hold parts: then it is of another form."""
    return any(item_of(entry, key).__class__ is str for entry in _near(entries))


def _near(entries: Sequence[Any]) -> Sequence[Any]:
    return entries if len(entries) <= 2 * _NEAR else [*entries[:_NEAR], *entries[-_NEAR:]]


def _may_be(format: Format, entries: Sequence[Any]) -> bool:
    """Tell whether messages without a shape of their own may be of this form: by their content and roles."""
    rules, leads = format.rules, True
    for entry in _near(entries):
        try:
            message = mapping_of(entry)
        except FormatError:
            continue
        if leads and rules.lifts_system and message.get("role") in ("system", "developer"):
            return False
        leads = False
        if rules.parts_key not in message:
            return False
    return True


_NEAR = 64
"""Messages at either end whose shapes tell the wire form, before all others are looked at."""

_PARTS = (slice(None, -_NEAR - 1, -1), slice(_NEAR), slice(_NEAR, -_NEAR))


def _by_body(body: Mapping[str, Any], known: list[Format]) -> list[Format]:
    """Return the forms whose bodies hold their messages under a key that is there."""
    fitting = [format for format in known if format.rules.body_key in body]
    marked = _not_derived([format for format in fitting if not format.rules.body_marks.isdisjoint(body)])
    marks = [format.rules.body_marks.intersection(body) for format in marked]
    # Converse has system text beside the messages as Anthropic does, and keys that nobody else has
    most = [one for one, own in zip(marked, marks, strict=True) if not any(own < other for other in marks)]
    if len(most) == 1 or (most and len(set(marks)) == 1):
        return most
    chat = [format for format in fitting if format.name == DEFAULT]
    # tools are written so in Chat alone: each function under a key of that name
    functions = [item_of(tool, "function") for tool in as_list(body.get("tools")) or ()]
    return chat if chat and any(isinstance(one, Mapping) for one in functions) else fitting


def _by_shape(entries: Sequence[Any], known: list[Format]) -> Format | None:
    """Return the form of the first message that tells one: of the newest, the oldest, then those between."""
    for part in _PARTS:
        for entry in entries[part]:
            if entry.__class__ is dict and len(entry) == 2 and entry.get("content").__class__ is str:
                continue  # a role and a text: the same everywhere
            forms = _shapes_of(entry, known)
            if len(forms) > 1:
                forms = _not_derived(forms)
            if len(forms) == 1:
                return forms[0]
    return None


def _not_derived(found: list[Format]) -> list[Format]:
    """Leave out forms derived from another one found, which has all of their keys and shapes."""
    return [
        format
        for format in found
        if not any(type(format) is not type(other) and isinstance(format, type(other)) for other in found)
    ]


def _shapes_of(entry: Any, known: list[Format]) -> list[Format]:
    """Return the forms that have such a message and no other form has."""
    kind: Any = type(entry)
    named = None if kind is dict else REGISTRY.get(_sdk_form(kind))
    if named is not None and named in known:
        return [named]
    try:
        message = entry if kind is dict else mapping_of(entry)
    except FormatError:
        return []
    if message.get("content").__class__ in _NO_PARTS and "parts" not in message:
        known = [
            format
            for format in known
            if (keys := getattr(format.matches, "keys", None)) is None or not keys.isdisjoint(message)
        ]
    return [format for format in known if format.matches(message)]


_NO_PARTS = (str, type(None))


_SDKS = {
    "openai.types.chat.": "openai_chat",
    "openai.types.responses.": "openai_responses",
    "anthropic.types.": "anthropic",
    "google.genai.types.": "gemini",
}
"""Where providers' own SDKs define the classes of their messages, and the wire form these are of."""


@lru_cache(maxsize=256)
def _sdk_form(kind: Any) -> str:
    """Return the name of the wire form that a class of an SDK belongs to; "" for any other class."""
    modules = [f"{base.__module__}." for base in kind.__mro__]
    return next((name for module in modules for start, name in _SDKS.items() if module.startswith(start)), "")


def form_of(model: str) -> str:
    """Return the wire form of a model's provider; "" if the model is not known."""
    from trimtab.models import find_facts

    facts = find_facts(model)
    return "" if facts is None else facts.format
