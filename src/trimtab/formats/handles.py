"""How a marker names an earlier result, and the tool that reads it: `read_result` of `trimtab.results`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from trimtab.formats.structure import UNNAMED
from trimtab.formats.tools import function_in, tools_in

if TYPE_CHECKING:
    from trimtab.formats.base import Rules

READ_RESULT = "read_result"
"""Name of the tool that reads earlier results.

Its answers are what the model has just asked for again. If they were cut or cleared in their turn, it would
ask for them without end: what makes results smaller spares those of a tool of this name.
"""

_SAFE_ID = re.compile(r"[A-Za-z0-9_.:-]{1,64}")


def is_safe_id(call_id: str, /) -> bool:
    """Tell whether an id may be written into a text: a model or a server chose it, and it brings in no words.

    Args:
        call_id: The id.
    """
    return _SAFE_ID.fullmatch(call_id) is not None


def is_made_up(call_id: str, rules: Rules, /) -> bool:
    """Tell whether the wire form made an id up for a call or result without one: it is never sent.

    Args:
        call_id: The id.
        rules: The rules of the form.
    """
    return call_id.startswith((UNNAMED, rules.unnamed_prefix or UNNAMED))


def is_handle(call_id: str, rules: Rules, /) -> bool:
    """Tell whether a text may name a result by the id of its call: it is sent, and it brings in no words.

    Args:
        call_id: The id.
        rules: The rules of the form.
    """
    return is_safe_id(call_id) and not is_made_up(call_id, rules)


def offers_reading(tools: object, /) -> bool:
    """Tell whether `read_result` is among the tools of a request; what is of no known shape is not.

    Args:
        tools: Tools in any of the usual shapes; None: none.
    """
    named = (function_in(tool) for _, tool in tools_in(tools))
    return any(tool is not None and tool.name == READ_RESULT for tool in named)


def call_text(call_id: str, /) -> str:
    """Write the call that reads a result.

    Args:
        call_id: Id of the call that the result answers; see `is_safe_id`.
    """
    return f'{READ_RESULT}("{call_id}")'
