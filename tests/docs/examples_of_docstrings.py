"""An extension of griffe: docstrings as `help()` shows them, their `Example:` as code."""

from __future__ import annotations

import inspect
import re
from pkgutil import resolve_name
from typing import Any

from griffe import Extension, Object


class ExamplesOfDocstrings(Extension):
    """Griffe knows the plural only, and takes the other for a remark in prose."""

    def on_object(self, *, obj: Object, **kwargs: Any) -> None:
        """Read the Args that are written elsewhere, and rename the section where a docstring has one."""
        if not obj.docstring:
            return
        if any(str(one.value).startswith("args_of(") for one in getattr(obj, "decorators", ())):
            obj.docstring.value = inspect.getdoc(resolve_name(obj.path)) or ""
        obj.docstring.value = re.sub(r"^( *)Example:$", r"\1Examples:", obj.docstring.value, flags=re.M)
