"""An extension of griffe: docstrings as `help()` shows them, their `Example:` as code."""

from __future__ import annotations

import inspect
import re
from pkgutil import resolve_name
from typing import Any

from griffe import Extension, Function, Object, Parameter, ParameterKind, Parameters


class ExamplesOfDocstrings(Extension):
    """Griffe knows the plural only, and takes the other for a remark in prose."""

    def on_object(self, *, obj: Object, **kwargs: Any) -> None:
        """Read parameters and Args that are written elsewhere, and rename the section griffe knows not."""
        if isinstance(obj, Function) and any(str(one.value).startswith("takes(") for one in obj.decorators):
            obj.parameters = _parameters(resolve_name(obj.path))
        if not obj.docstring:
            return
        if any(str(one.value).startswith("args_of(") for one in getattr(obj, "decorators", ())):
            obj.docstring.value = inspect.getdoc(resolve_name(obj.path)) or ""
        obj.docstring.value = re.sub(r"^( *)Example:$", r"\1Examples:", obj.docstring.value, flags=re.M)


def _parameters(function: Any) -> Parameters:
    """Take the parameters that `help()` shows."""
    shown = inspect.signature(function).parameters.values()
    return Parameters(
        *(
            Parameter(
                one.name,
                annotation=None if one.annotation is one.empty else str(one.annotation),
                kind=ParameterKind(one.kind.description),
                default=None if one.default is one.empty else repr(one.default),
            )
            for one in shown
        )
    )
