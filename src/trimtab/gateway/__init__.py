"""A gateway: one base URL through which programs in any language ask, and their requests fit.

`trimtab serve` runs it. It needs the extra `serve`.
"""
# What is missing is said before it is imported.
# ruff: noqa: E402

from __future__ import annotations

from trimtab._shared.lazy import package_of, public_dir

package_of("serve", package="anyio", needed_by="trimtab serve")
package_of("serve", package="httpcore2", needed_by="trimtab serve")
package_of("serve", package="uvicorn", needed_by="trimtab serve")

from trimtab.gateway.app import make_app
from trimtab.gateway.serve import serve
from trimtab.gateway.settings import Limits, Upstream, public_upstreams

__all__ = ["Limits", "Upstream", "make_app", "public_upstreams", "serve"]

__dir__ = public_dir(globals())
