"""Why an option of a session cannot be set as an attribute, and what to write instead."""

from __future__ import annotations

from trimtab.errors import ConfigurationError
from trimtab.session.options import SessionOptions

__all__ = ["refuse_set"]

_INSTEAD = {
    "budget": "set_budget(tokens) changes it",
    "budget_tokens": "set_budget(tokens) changes it",
    "anchors": "set_anchors(messages) replaces them",
    "context": "change the blocks of session.context, or open the session again with another one",
    "id": "fork(id=…) copies the session under another",
    "store": "fork(store=…) copies the session into another",
}
_OPTIONS = {*SessionOptions.__annotations__, "id", "store", "retry", "allow_missing"}


def refuse_set(base: type, cls: type, name: str, /) -> None:
    """Refuse to set what would be without effect: an option or a property of `base`.

    A name that a class derived from it declares, by a value or an annotation, is that class's own.

    Raises:
        ConfigurationError: It is one.
    """
    for one in cls.__mro__[: cls.__mro__.index(base)]:
        if name in vars(one) or name in one.__annotations__:
            return
    if name in _OPTIONS:
        again = f"open the session again, Session({name}=…, store=session.store, id=session.id)"
        instead = _INSTEAD.get(name, again)
    elif isinstance(getattr(base, name, None), property):
        instead = _INSTEAD.get(name, "it only tells")
    else:
        return
    raise ConfigurationError(f"{name} of a Session cannot be set: {instead}")
