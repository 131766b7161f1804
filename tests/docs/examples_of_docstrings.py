"""An extension of griffe: the section `Example:` of a docstring is read as its `Examples:`, shown as code."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object


class ExamplesOfDocstrings(Extension):
    """Griffe knows the plural only, and takes the other for a remark in prose."""

    def on_object(self, *, obj: Object, **kwargs: Any) -> None:
        """Rename the section where a docstring has one."""
        if obj.docstring:
            obj.docstring.value = re.sub(r"^( *)Example:$", r"\1Examples:", obj.docstring.value, flags=re.M)
