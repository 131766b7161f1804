"""Read, copy and write values inside a caller's message: mappings, lists, pydantic objects.

A copy is as shallow as it can be: only the containers on the way to a change are copied, each
into its own class, and the original is untouched.
"""

from __future__ import annotations

import copy
import reprlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache, reduce
from typing import Any, cast

from trimtab.errors import FormatError
from trimtab.formats.foreign import foreign_class

Dict = dict[str, Any]
"""One message (or part) read as a mapping; see `mapping_of`."""

Path = tuple[str | int, ...]
"""Keys and indices that lead from a message to a value inside it."""


class LateDict(Mapping[str, Any]):
    """A message that is read when it is looked at."""

    __slots__ = ()

    def read(self) -> Dict:
        """Return the message; the same dict each time."""
        raise NotImplementedError

    def __getitem__(self, key: str) -> Any:
        return self.read()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.read())

    def __len__(self) -> int:
        return len(self.read())

    def __repr__(self) -> str:
        """Show the message: some look at one as text."""
        return repr(self.read())


def mapping_of(message: Any) -> Dict:
    """Read a message as a plain dict.

    It is the message itself, a copy of a mapping, or its `model_dump()`. How to read
    the objects of a class is remembered. Their content is not remembered: it may change between two calls.

    Args:
        message: A mapping, or an object with `model_dump()`.

    Raises:
        FormatError: The argument is none of these.
    """
    kind: Any = type(message)
    return message if kind is dict else _reader(kind)(message)


@lru_cache(maxsize=256)  # a conversation has objects of a few classes, and thousands of each
def _reader(kind: type) -> Callable[[Any], Dict]:
    if issubclass(kind, LateDict):
        return kind.read
    if issubclass(kind, Mapping):
        return dict
    said = foreign_class(kind)
    if said is not None:
        raise FormatError(f"a message must be of a wire form; {said}")
    return _dump


def _dump(message: Any) -> Dict:
    dump = item_of(message, "model_dump")
    if callable(dump):
        try:
            dumped = dump(exclude_none=True)
        except TypeError:  # a model of its own kind, which takes no such option
            dumped = dump()
        if isinstance(dumped, dict):
            return dumped
    raise FormatError(
        f"a message must be a mapping or have model_dump(), not {type(message).__name__}:"
        f" {short_repr(message)}{_instead(message)}"
    )


def _instead(value: Any) -> str:
    """Say what to write for what is often given as a message."""
    if isinstance(value, str) or (isinstance(value, tuple) and all(isinstance(one, str) for one in value)):
        return "; write {'role': 'user', 'content': text}"
    if isinstance(value, (list, tuple)):
        return "; give the messages it holds one by one"
    return ""


_ANSWERS = {
    "choices": "append answer.choices[0].message",
    "output": "extend the list by answer.output",
    "candidates": "append answer.candidates[0].content",
    "message": "append choice.message",
}
"""Where the messages of a whole answer are: what SDKs return has them under one of these, and no role."""


def message_in(message: Any, /) -> Dict:
    """Read what stands where a message must as a plain dict; refuse the whole answer of an SDK.

    Raises:
        FormatError: It is no message.
    """
    made = mapping_of(message)
    if "role" not in made and "type" not in made and not isinstance(message, Mapping):
        held = next((key for key in _ANSWERS if isinstance(made.get(key), (list, dict))), None)
        if held is None and isinstance(made.get("content"), dict):
            raise FormatError(f"it is a whole {type(message).__name__}, not a message: append its content")
        if held is not None:
            raise FormatError(f"it is a whole {type(message).__name__}, not a message: {_ANSWERS[held]}")
    return made


def entry_of(messages: Sequence[Any], index: int, /) -> Dict:
    """Read an entry of a list as a plain dict, and leave it as it is.

    Raises:
        FormatError: It is no message; `.path` says which.
    """
    try:
        message = messages[index]
        return message if type(message) is dict else message_in(message)
    except FormatError as error:
        path = f"messages[{index}]"
        raise FormatError(f"{path}: {error}", path=path) from error


def short_repr(value: object, /) -> str:
    """Write a value of the caller's into an error: short, whatever its size and depth."""
    return reprlib.repr(value)[:80]


def as_dict(value: Any) -> Dict | None:
    """Read a part or call as a dict; None if it is neither a mapping nor a model."""
    if type(value) is dict:
        return value
    if value is None or isinstance(value, (str, int)):
        return None
    try:
        return mapping_of(value)
    except FormatError:
        return None


def says_elsewhere(message: Dict, key: str) -> bool:
    """Tell whether a message has words, calls or results where its own wire form, by this key, has none."""
    return any(message.get(other) for other in _SAID_UNDER if other != key)


_SAID_UNDER = ("content", "parts", "tool_calls", "tool_call_id", "function_call", "refusal", "blocks")


def as_typed_part(value: Any) -> Dict | None:
    """Read a part of a content as a dict: a bare text, and one without a type, get that of a text."""
    part = {"type": "text", "text": value} if isinstance(value, str) else as_dict(value)
    if part is not None and "type" not in part and isinstance(part.get("text"), str):
        return {"type": "text", **part}
    return part


def as_list(value: Any) -> Sequence[Any] | None:
    """Return a list or tuple as it is, None for anything else."""
    return value if isinstance(value, (list, tuple)) else None


def as_text(value: Any) -> str | None:
    """Return a non-empty string as it is, None for anything else."""
    return value if isinstance(value, str) and value else None


def arguments_of(value: Any, /) -> Any:
    """Read the arguments of a call that stand as JSON in a text; nothing is none, and other texts stay."""
    if value is None or value == "":
        return {}
    if not isinstance(value, str):
        return value
    from json import loads  # not above: few arguments stand where an object must

    try:
        read = loads(value)
    except ValueError:
        return value
    return read if isinstance(read, dict) else value


def compact_json(value: Any) -> str:
    """Write a value as JSON without spaces or escapes.

    Objects JSON lacks are written by `str`.

    Args:
        value: Plain data.

    Raises:
        FormatError: It contains itself, or is nested too deep.
    """
    return _encode(value, _encoder(_plain))


def python_json(value: Any) -> str:
    """Write a value as `json.dumps(value, ensure_ascii=False)` does, with a space behind commas and colons.

    Frameworks write what they hold as an object so where a wire form takes a text.

    Raises:
        FormatError: It contains itself, or is nested too deep.
    """
    return _encode(value, _encoder(_plain, spaces=" "))


def ascii_json(value: Any) -> str:
    """Write a value as `json.dumps(value)` does: with spaces, and escapes for all that is not ASCII.

    Nobody's JSON is longer, but for line breaks.

    Raises:
        FormatError: It contains itself, or is nested too deep.
    """
    return _encode(value, _encoder(_plain, spaces=" ", ascii=True))


def _encode(value: Any, encode: Callable[[Any], str]) -> str:
    try:
        return encode(value)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"it cannot be written as JSON: {error}") from error


def to_ascii(written: str, /) -> str:
    """Write JSON that has no escapes for letters beyond ASCII with them."""
    import json  # not above, as below

    return written if written.isascii() else json.dumps(json.loads(written), separators=(",", ":"))


def plain_json(value: Any) -> str:
    """Write plain data as `compact_json` does.

    Raises:
        TypeError: It holds objects that JSON lacks, contains itself, or is nested too deep.
    """
    try:
        return _encoder(None)(value)
    except (ValueError, RecursionError) as error:
        raise TypeError(f"it cannot be written as JSON: {error}") from error


@cache
def _encoder(
    default: Callable[[Any], Any] | None, *, spaces: str = "", ascii: bool = False
) -> Callable[[Any], str]:
    """Make what `JSONEncoder.encode` makes anew in each call: most of what writing a short value takes."""
    import json  # not above: loaded where a message holds what is no text

    comma, colon = f",{spaces}", f":{spaces}"
    made = json.JSONEncoder(ensure_ascii=ascii, separators=(comma, colon), default=default, skipkeys=True)
    make = vars(json.encoder).get("c_make_encoder")  # as `iterencode` asks: not every Python has it
    if make is None:
        return made.encode
    # Without a table of what a value stands in, which threads could not share.
    write_text = json.encoder.encode_basestring_ascii if ascii else json.encoder.encode_basestring
    chunks = make(None, made.default, write_text, None, colon, comma, False, True, True)

    def encode(value: Any) -> str:
        try:
            return "".join(chunks(value, 0))
        except RecursionError:
            return made.encode(value)  # which says whether it stands in itself

    return encode


def _plain(value: Any) -> Any:
    entry = as_dict(value)
    return str(value) if entry is None else entry


def to_text(value: Any, write: Callable[[Any], str] = compact_json) -> str:
    """Return text as it is, nothing as "", anything else as JSON (arguments held as an object)."""
    if isinstance(value, str):
        return value
    return "" if value is None else write(value)


def type_name(value: Any) -> str:
    """Name the type of a value for an error: None is JSON's null."""
    return "null" if value is None else type(value).__name__


def item_of(owner: Any, key: str | int) -> Any:
    """Return what stands under a key, an index or an attribute; None if nothing does."""
    if type(owner) is dict:
        return owner.get(key)
    if owner is None:  # as often as not: whoever asks goes down a path that is not there
        return None
    if isinstance(owner, (list, tuple)):
        return owner[key] if isinstance(key, int) and -len(owner) <= key < len(owner) else None
    if isinstance(owner, Mapping):  # last: the abstract class takes ten times as long
        return owner.get(key)
    return getattr(owner, str(key), None)


def with_values(owner: Any, values: Mapping[Path, Any]) -> Any:
    """Return a copy of `owner` with the values put at their paths.

    Raises:
        FormatError: A container on the way cannot be copied with a change.
    """
    if () in values:
        return values[()]
    if len(values) == 1 and (type(owner) is dict or type(owner) is list):  # as nearly all are
        ((path, value),) = values.items()
        copied: Any = owner.copy()
        copied[path[0]] = with_values(item_of(owner, path[0]), {path[1:]: value})
        return copied
    inner: dict[str | int, dict[Path, Any]] = {}
    for path, value in values.items():
        inner.setdefault(path[0], {})[path[1:]] = value
    return _with_items(owner, {key: with_values(item_of(owner, key), rest) for key, rest in inner.items()})


def without_indices(items: Sequence[Any], indices: Collection[int]) -> Sequence[Any]:
    """Return a copy of a list or tuple without the items at those indices."""
    kept = [item for index, item in enumerate(items) if index not in indices]
    return tuple(kept) if isinstance(items, tuple) else kept


def without_emptied(changed: Any, texts: Mapping[Path, str], *, at: int, least: int = 0) -> Any:
    """Return a message without the parts whose texts an edit replaced by nothing.

    Args:
        changed: The message, its texts replaced.
        texts: The new texts, by path.
        at: Where in a path the place of the part stands; the key of its text follows.
        least: How many parts stay at least, the first ones.
    """
    if "" not in texts.values():
        return changed
    gone: dict[Path, set[int]] = {}
    for path, text in texts.items():
        if not text and path[at + 1 :] == ("text",):
            gone.setdefault(path[:at], set()).add(cast("int", path[at]))
    lists: dict[Path, Any] = {}
    for path, indices in gone.items():
        parts = reduce(item_of, path, changed)
        stay = set(range(min(least, len(parts)))) if len(indices) == len(parts) else ()
        lists[path] = without_indices(parts, indices.difference(stay))
    return with_values(changed, lists)


def without_keys(owner: Any, keys: Collection[str]) -> Any:
    """Return a copy without those keys; a model keeps the field, set to None."""
    if not isinstance(owner, Mapping):
        return _with_items(owner, dict.fromkeys(keys, None))
    rest = {key: value for key, value in owner.items() if key not in keys}
    return rest if type(owner) is dict else _like(owner, rest)


def key_of_lost(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Key what stands in a mapping, or in a list of it, and not in a copy any more."""
    from hashlib import blake2b  # not above: few programs have thinking that was refused

    lost: list[Any] = []
    for key, value in before.items():
        left, items = after.get(key), as_list(value)
        if items is not None:
            rest = as_list(left) or ()
            lost += [as_dict(item) or item for item in items if item not in rest]
        elif value != left:
            lost.append(value)
    return blake2b(repr(lost).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def content_of(parts: Sequence[Any], text_part: Callable[[str], Any], /) -> Any:
    """Make the content of a message: a text of nothing or of one text, else parts."""
    if not parts:
        return ""
    if len(parts) == 1 and isinstance(parts[0], str):
        return parts[0]
    return [text_part(part) if isinstance(part, str) else part for part in parts]


def text_part(text: str, /) -> Dict:
    """Write a text as most forms do where content is a list."""
    return {"type": "text", "text": text}


def _with_items(owner: Any, items: Mapping[Any, Any]) -> Any:
    if isinstance(owner, Mapping):
        changed = {**owner, **items}
        return changed if type(owner) is dict else _like(owner, changed)
    if isinstance(owner, (list, tuple)):
        copied = list(owner)
        for index, value in items.items():
            copied[index] = value
        return tuple(copied) if isinstance(owner, tuple) else copied
    model_copy = item_of(owner, "model_copy")
    if callable(model_copy):
        return model_copy(update=dict(items))
    raise FormatError(f"cannot copy a {type(owner).__name__} with changed {', '.join(map(str, items))}")


def _like(owner: Mapping[str, Any], content: Dict) -> Any:
    """Return `content` as the class of `owner`; as a dict where that class cannot be refilled."""
    try:
        twin: Any = copy.copy(owner)
        twin.clear()
        twin.update(content)
    except (TypeError, AttributeError):
        return content
    return twin


_MAX_DEPTH = 16
"""Levels of what a tool returned in which texts are looked for; what is deeper stays whole."""

_MOST_TEXTS = 64
"""Texts of one result that may be shortened, the longest: a thousand short ones take long and free little."""


def longest_strings_in(value: Any, /) -> list[tuple[Path, str]]:
    """List the longest strings that plain data holds and that say anything, in order, with their paths."""
    texts = list(_strings_in(value, 0))
    if len(texts) > _MOST_TEXTS:
        longest = sorted(range(len(texts)), key=lambda at: -len(texts[at][1]))
        texts = [texts[at] for at in sorted(longest[:_MOST_TEXTS])]
    return texts


def _strings_in(value: Any, depth: int) -> Iterator[tuple[Path, str]]:
    if isinstance(value, str):
        if value:
            yield (), value
    elif depth < _MAX_DEPTH:
        for key, inner in _items_in(value):
            for path, found in _strings_in(inner, depth + 1):
                yield (key, *path), found


def _items_in(value: Any) -> list[tuple[str | int, Any]]:
    if type(value) is dict or isinstance(value, Mapping):
        return [(key, inner) for key, inner in value.items() if isinstance(key, str)]
    return list(enumerate(as_list(value) or ()))


REDACTED = "[redacted]"
"""What redaction writes in the place of what was said, in every wire form."""

REDACTED_NAME = "redacted"
"""In the place of a name: providers take letters, digits and underscores."""


def blank(value: Any) -> Any:
    """Return a value of the same kind that says nothing."""
    if value is None:
        return None
    if isinstance(value, str):
        return REDACTED
    return {} if isinstance(value, Mapping) else type(value)()


def texts_of_ids(owner: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    """Return what of an item says which it is: those of the keys that are there and hold text."""
    return {key: owner[key] for key in keys if isinstance(owner.get(key), str)}


def marks_in(value: Any, keys: Collection[str], /, *, levels: int = 3) -> Iterator[Any]:
    """Yield marks for a prompt cache, by their keys, in what a request holds: an entry, or a list of some.

    They stand at parts of its content or output, at parts of those, and at the entry; never in arguments.
    """
    if not keys or not levels or isinstance(value, (str, bytes)):
        return
    entry = as_dict(value)
    if entry is None:
        for one in as_list(value) or ():
            if as_list(one) is None:
                yield from marks_in(one, keys, levels=levels)
        return
    for key in ("content", "output"):
        yield from marks_in(entry.get(key), keys, levels=levels - 1)
    yield from (entry[key] for key in keys if entry.get(key) is not None)


def has_no_key(entries: list[Any], keys: Iterable[str]) -> bool:
    """Tell whether surely none of some dicts, their parts, and the parts of these has one of some keys.

    All at once, as to look into each message would take as long as fitting thousands of them ten times.
    """
    for _ in range(_LEVELS if keys else 0):
        if not set(map(type, entries)) <= {dict}:
            return False
        there = set[str]().union(*entries)
        if not there.isdisjoint(keys):
            return False
        lists = [entry.get(key) for key in ("content", "output") if key in there for entry in entries]
        entries = [part for parts in lists if type(parts) is list for part in parts]
    return True


_LEVELS = 3
"""A message, its parts, and what these hold: none that is deeper can have a mark."""
