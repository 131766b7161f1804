"""Earlier tool results again, part by part: `result_tool` and `read_result`.

A fit may cut results or clear them. Your own list still has them, so no store is needed to read one again.
"""

from __future__ import annotations

from trimtab._shared.lazy import public_dir
from trimtab.results.excerpt import LineRange
from trimtab.results.tool import MessagesLike, ResultTool, read_result, result_tool

__all__ = ["LineRange", "MessagesLike", "ResultTool", "read_result", "result_tool"]

__dir__ = public_dir(globals())
