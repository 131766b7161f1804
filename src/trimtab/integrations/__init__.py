"""Adapters for the frameworks people use, one module each.

`from trimtab.integrations.langchain import TrimMiddleware` needs `pip install 'trimtab[langchain]'`; a module
is imported only when it is used. Everywhere, the first argument is the budget, the others are options of
`trimtab.fit`, and `on_fitted=` is called with the result of each fit: an async function is awaited if the
call is async, and otherwise refused.

Modules that another package publishes (entry points `trimtab.integrations`) are imported in the same way.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

from trimtab._shared.checks import in_words, near_names
from trimtab._shared.lazy import public_dir
from trimtab._shared.plugins import load_plugin, plugin_names
from trimtab.errors import ConfigurationError

__all__: list[str] = []

_SHARED = {
    *("answers", "base", "bills", "bodies", "chats", "copies", "ledgers", "marks", "posts", "recovery"),
    "usages",
}
"""What adapters are made of: nobody imports it to use it."""


def _names() -> list[str]:
    """List the adapters: ours, and those that other packages publish."""
    from pkgutil import iter_modules  # not above: only a wrong name needs it

    ours = {module.name for module in iter_modules(__path__)} - _SHARED
    return sorted({*ours, *plugin_names("integrations")})


def __dir__() -> list[str]:
    return sorted({*public_dir(globals())(), *_names()})


class _Published(MetaPathFinder, Loader):
    """Finds the modules that other packages publish; it is asked last, so that ours win."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Look a module up in the entry points.

        Raises:
            ImportError: Nobody publishes one of that name, or it cannot be loaded.
        """
        package, _, name = fullname.rpartition(".")
        if package != __name__:
            return None
        try:
            found = load_plugin("integrations", name)
        except ConfigurationError as error:
            raise ImportError(str(error), name=fullname) from error
        if found is None:
            known = _names()
            near = in_words(near_names(name, known))
            # No ModuleNotFoundError: `from trimtab.integrations import name` would drop what it says.
            raise ImportError(
                f"no integration is called {name!r}; there are: {', '.join(known)}{near}", name=fullname
            )
        what, module = found
        if not isinstance(module, ModuleType):
            raise ImportError(f"{what} must be a module, not {module!r:.80}", name=fullname)
        return ModuleSpec(fullname, self)

    def exec_module(self, module: ModuleType) -> None:
        """Put what was published in the place of the module that was made for it."""
        found = load_plugin("integrations", module.__name__.rpartition(".")[2])
        assert found is not None
        sys.modules[module.__name__] = found[1]


sys.meta_path.append(_Published())
