"""trimtab in the framework people use, a module for each.

`from trimtab.integrations.langchain import TrimMiddleware` needs `pip install 'trimtab[langchain]'`; nothing
is imported before it is asked for. The first argument is the budget everywhere, the rest are options of
`trimtab.fit`, and `on_fitted=` is called with what each fit gave.
"""

from __future__ import annotations

__all__: list[str] = []
