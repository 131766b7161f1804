"""`read_result`: earlier results again, part by part, from a list of messages or by whoever else has them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeAlias

from trimtab._shared.checks import check_whole, list_messages
from trimtab.counting.estimate import estimate_tokens
from trimtab.errors import ConfigurationError
from trimtab.formats import Format, format_of, get_format
from trimtab.formats.handles import READ_RESULT
from trimtab.results.excerpt import LEAST_TOKENS, CountText, LineRange, excerpt
from trimtab.results.lookup import check_call_id, find_result, id_label

MessagesLike: TypeAlias = Sequence[Any] | Mapping[str, Any] | Callable[[], Sequence[Any] | Mapping[str, Any]]
"""Messages, a request body, or a function that returns one of them as it is now."""


def read_result(
    messages: MessagesLike,
    call_id: str,
    /,
    *,
    lines: LineRange = None,
    around: str | None = None,
    max_tokens: int = 1_000,
    format: str | Format = "auto",
) -> str:
    r"""Read part of a tool result from messages that have all of it.

    The first line of the answer says which part it is; if there is more, the last line says how to go on.
    What stands between is word for word as in the result. Of several results for one id the newest is read,
    and the first line says so.

    Args:
        messages: The whole list, a request body, or a function that returns one of them.
        call_id: Id of the call that the result answers; a cut result names it in its marker.
        lines: The lines to read: "120-188", "120-", 120 or (120, 188). "1+4000" is line 1 behind its first
            4,000 characters. None: all, as far as they have room.
        around: A word or a few that stand in the result: their places with what stands around them, among
            `lines`. If they do not occur as written, capital and small letters are not told apart.
        max_tokens: Maximum number of tokens of the answer, as trimtab estimates them; at least 100.
        format: Wire form of the messages, or "auto".

    Raises:
        UnknownNameError: No result answers a call with that id; the error lists similar ids.
        ConfigurationError: `lines` or `around` cannot be read, there are no such lines, or `max_tokens` is
            too small.
        FormatError: An entry is not a message; `.path` names it.

    Example:
        >>> history = [
        ...     {"role": "assistant", "tool_calls": [
        ...         {"id": "a", "type": "function", "function": {"name": "log", "arguments": "{}"}},
        ...     ]},
        ...     {"role": "tool", "tool_call_id": "a", "content": "make\ncc main.c\nerror: no rule\n"},
        ... ]
        >>> print(read_result(history, "a", lines="2-3"))
        [result of a: lines 2-3 of 3]
        cc main.c
        error: no rule
    """
    max_tokens = check_most(max_tokens)
    call_id = check_call_id(call_id)
    given = messages() if callable(messages) else messages
    form = format_of(given, format)
    listed = form.read_request(given).messages if isinstance(given, Mapping) else list_messages(given)
    text, count = find_result(form, listed, call_id)
    return answer(text, call_id, count, lines=lines, around=around, max_tokens=max_tokens)


def check_most(max_tokens: object, /) -> int:
    """Return how many tokens an answer may have.

    Raises:
        ConfigurationError: It is not a whole number of at least 100.
    """
    return check_whole("max_tokens", max_tokens, least=LEAST_TOKENS)


def answer(
    text: str,
    call_id: str,
    count: int,
    /,
    *,
    lines: LineRange,
    around: str | None,
    max_tokens: int,
    count_text: CountText = estimate_tokens,
) -> str:
    """Write what was asked for of a result.

    Args:
        text: All of it.
        call_id: The id it was found by.
        count: How many results have that id; this one is the newest.
        lines: As `read_result` has it.
        around: As `read_result` has it.
        max_tokens: The most tokens of the answer.
        count_text: Tokens of a text.
    """
    title = f"result of {id_label(call_id)}" + (f", the newest of {count}" if count > 1 else "")
    return excerpt(text, title, lines=lines, around=around, max_tokens=max_tokens, count=count_text)


class ResultTool:
    """Reads earlier results to an agent, part by part.

    `result_tool` makes one, and `Session.result_tool`. Pass `schema` to the model, and answer its calls with
    the object itself.

    Args:
        read: Reads by an id, `lines` and `around`, as `read_result` does.
        form: Returns the wire form in which the tool is written.
        aread: The same as `read`, for asyncio; None: `read` never waits.
    """

    def __init__(
        self,
        read: Callable[..., str],
        /,
        *,
        form: Callable[[], Format],
        aread: Callable[..., Awaitable[str]] | None = None,
    ) -> None:
        self._read, self._aread, self._form = read, aread, form
        # Frameworks make a tool of a function, and read these.
        self.__name__ = READ_RESULT
        self.__doc__ = ABOUT

    @property
    def schema(self) -> dict[str, Any]:
        """The tool in the wire form of the messages, for the tools of a request."""
        return self._form().tool_schema(READ_RESULT, description=ABOUT, parameters=_parameters())

    def __call__(self, call_id: str, *, lines: LineRange = None, around: str | None = None) -> str:
        """Answer a call of the tool; what the model got wrong is told to it as the answer.

        Args:
            call_id: Id of the call that the result answers.
            lines: The lines to read, as "120-188".
            around: A word that stands in the result.
        """
        try:
            return self._read(call_id, lines=lines, around=around)
        except ConfigurationError as error:
            return _as_answer(error)

    async def acall(self, call_id: str, *, lines: LineRange = None, around: str | None = None) -> str:
        """Answer a call of the tool, for asyncio.

        Args:
            call_id: Id of the call that the result answers.
            lines: The lines to read, as "120-188".
            around: A word that stands in the result.
        """
        if self._aread is None:
            return self(call_id, lines=lines, around=around)
        try:
            return await self._aread(call_id, lines=lines, around=around)
        except ConfigurationError as error:
            return _as_answer(error)


def _as_answer(error: ConfigurationError) -> str:
    """Say to the model what it asked for and cannot have."""
    if error.argument not in ("call_id", "lines", "around"):
        raise error  # that is the program's
    return f"[{error}]"


def result_tool(
    messages: MessagesLike, /, *, max_tokens: int = 1_000, format: str | Format = "auto"
) -> ResultTool:
    """Make a tool by which a model reads results that a fit cut or cleared.

    Nothing is stored: your own list has every result. Pass a function, so that each call reads the list as it
    is by then. While a request offers the tool, the markers of `ClampResults` and `ClearToolResults` say how
    to call it, and its own answers are neither cut nor cleared.

    Args:
        messages: A function that returns the whole list of messages, or a request body; or the list itself,
            if you only append to it.
        max_tokens: Maximum number of tokens of an answer, as trimtab estimates them; at least 100.
        format: Wire form of the messages, or "auto".

    Raises:
        ConfigurationError: `max_tokens` is too small.
        UnknownNameError: There is no such format.

    Example:
        >>> history = [{"role": "user", "content": "Why does the build fail?"}]
        >>> tool = result_tool(lambda: history)
        >>> tool.schema["function"]["name"], tool("call_1", around="error")
        ('read_result', '[no result in this conversation answers a call call_1]')
    """
    max_tokens = check_most(max_tokens)
    if format != "auto":
        format = get_format(format)

    def read(call_id: str, *, lines: LineRange, around: str | None) -> str:
        return read_result(
            messages, call_id, lines=lines, around=around, max_tokens=max_tokens, format=format
        )

    return ResultTool(read, form=lambda: format_of(messages() if callable(messages) else messages, format))


ABOUT = (
    "Read an earlier tool result again, or a part of it. Where a result was cut or cleared, its marker has"
    " the call id."
)
"""What a model is told of the tool."""

CALL_ID_ABOUT = "Id of the call whose result to read, as a marker names it."
LINES_ABOUT = 'First and last line to read, as "120-188". Without it: from the beginning.'
AROUND_ABOUT = "A word or name in the result: its places are shown with the lines around them."


def _parameters() -> dict[str, Any]:
    told = {"call_id": CALL_ID_ABOUT, "lines": LINES_ABOUT, "around": AROUND_ABOUT}
    return {
        "type": "object",
        "properties": {name: {"type": "string", "description": about} for name, about in told.items()},
        "required": ["call_id"],
        "additionalProperties": False,
    }
