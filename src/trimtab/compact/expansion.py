"""`expand`: what references stand for is put back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, overload

from trimtab._shared.checks import check_messages
from trimtab.compact.options import Compact
from trimtab.compact.repeats import Lines, lines_of, put_back
from trimtab.compact.results import Place, Reading, Result
from trimtab.formats import Format, Path, format_of, mapping_of

__all__ = ["expand"]

M = TypeVar("M")


@overload
def expand(messages: Mapping[str, Any], /, *, format: str | Format = "auto") -> dict[str, Any]: ...
@overload
def expand(messages: Sequence[M], /, *, format: str | Format = "auto") -> list[M]: ...


def expand(messages: Any, /, *, format: str | Format = "auto") -> Any:
    r"""Put back what references in results stand for.

    Every text that was written with `compact` is again what it was before repeats were looked for, byte for
    byte. JSON that was written tight stays so, and so does what a `Kind` wrote.

    A result that was sent as it is (pinned, of a tool in `exclude_tools` or of `read_result`, in a block
    without `compact`) has no references. But a line in it that the tool itself wrote as a reference to lines
    that are there is read as one, and one that the tool wrote with a backslash in front loses that.

    Args:
        messages: The messages of a fit with `compact`, or its request body.
        format: Name of the wire form; "auto": decided by the shapes that occur.

    Returns:
        The messages, or the body: the same objects, and shallow copies of those with a reference.

    Raises:
        FormatError: An entry is not a message.

    Example:
        >>> from trimtab import fit
        >>> text = "\n".join(f"def test_number_{n}(): assert parse({n}) == {n}" for n in range(9))
        >>> messages = [{"role": "user", "content": "Read it twice."}]
        >>> for name in ("a", "b"):
        ...     call = {"id": name, "type": "function", "function": {"name": "read", "arguments": "{}"}}
        ...     messages.append({"role": "assistant", "tool_calls": [call]})
        ...     messages.append({"role": "tool", "tool_call_id": name, "content": text})
        >>> fitted = fit(messages, 1_000, compact=True)
        >>> fitted.messages[4]["content"]
        '[lines 1-9 as in a from 1]'
        >>> expand(fitted.messages) == messages
        True
    """
    form = format_of(messages, format)
    if isinstance(messages, Mapping):
        request = form.read_request(messages)
        return form.write_request(request, _expand(form, request.messages))
    check_messages(messages)
    return _expand(form, messages)


def _expand(form: Format, messages: Sequence[Any]) -> list[Any]:
    reading = Reading(form, _AS_IT_IS)
    reading.add([*map(mapping_of, messages)])
    made, edits = [*messages], dict[int, dict[Path, str]]()
    earlier: list[Result] = []
    by_id: dict[str, Result] = {}
    known: dict[Place, Lines] = {}

    def lines_at(handle: str | int) -> Lines | None:
        if isinstance(handle, str):
            found = by_id.get(handle)
        else:
            found = earlier[-handle] if handle <= len(earlier) else None
        if found is None or not found.is_one_text:
            return None
        if found.place not in known:
            known[found.place] = lines_of(found.texts[0].text)
        return known[found.place]

    for result in reading.results:
        for text in result.texts:
            written = put_back(text.text, lines_at)
            if written != text.text:
                edits.setdefault(result.place[0], {})[text.path] = written
        earlier.append(result)
        if result.call_id:
            by_id[result.call_id] = result
    for index, texts in edits.items():
        made[index] = form.with_texts(messages[index], texts)
    return made


_AS_IT_IS = Compact(repeats=False, json=None)
