"""An inspector: pages that show what is sent of a conversation, what is not, and why.

`trimtab inspect` runs it on this machine, for those with its token. It needs the extra `inspect`.
"""
# What is missing is said before it is imported.
# ruff: noqa: E402

from __future__ import annotations

from trimtab._shared.lazy import package_of, public_dir

package_of("inspect", package="starlette", needed_by="trimtab inspect")
package_of("inspect", package="jinja2", needed_by="trimtab inspect")
package_of("inspect", package="uvicorn", needed_by="trimtab inspect")

from trimtab.inspector.app import make_app
from trimtab.inspector.serve import serve
from trimtab.inspector.subject import Collection, Item, Subject

__all__ = ["Collection", "Item", "Subject", "make_app", "serve"]

__dir__ = public_dir(globals())
