"""What all requests of a gateway came to, in a few words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trimtab.report.text import in_dollars, plural


class Totals:
    """Adds up lines of the log."""

    def __init__(self) -> None:
        self.requests = 0
        """All of them, also those that passed through."""
        self.sized_requests = 0
        """Those whose tokens are known, as they went through a fit; not those that only count."""
        self.before_tokens = 0
        """Their tokens as they came."""
        self.after_tokens = 0
        """Their tokens as they were sent."""
        self.evicted_messages = 0
        """Of all requests: what a conversation sends ten times may be evicted ten times."""
        self.changed_messages = 0
        """Shortened or cleared, of all requests."""
        self.dollars = 0.0
        """What was billed, as far as that is known."""
        self.priced_requests = 0
        """Those of which it is known."""
        self.unpriced_requests = 0
        """Those that were answered and of which it is not."""
        self.refused_requests = 0
        """Not sent, as what must be kept does not fit."""
        self.failed_requests = 0
        """Without a whole answer of the provider, for another reason."""

    def add(self, line: Mapping[str, Any], /) -> None:
        """Take in a line of the log."""
        self.requests += 1
        end = line["end"]
        self.refused_requests += end == "too_long"
        self.failed_requests += end not in ("done", "too_long", "client_gone")
        if "before" in line and "after" in line and not line.get("counts"):
            self.sized_requests += 1
            self.before_tokens += line["before"]
            self.after_tokens += line["after"]
            self.evicted_messages += line["evicted"]
            self.changed_messages += line.get("changed", 0)
        self.dollars += line.get("dollars", 0.0)
        self.priced_requests += "dollars" in line
        self.unpriced_requests += line.get("unpriced", False)

    def text(self) -> str:
        """Write what they came to, a line or two."""
        if not self.requests:
            return "no request came through the gateway"
        lines = [f"{plural(self.requests, 'request')} came through the gateway"]
        if self.sized_requests:
            before, after = self.before_tokens, self.after_tokens
            saved = round(100 * (before - after) / before) if before else 0
            lines[0] += (
                f": {plural(self.sized_requests, 'conversation')} of {before:,} tokens, sent as {after:,}"
                f" ({saved}% saved)"
            )
            evicted, changed = self.evicted_messages, self.changed_messages
            lines.append(f"{plural(evicted, 'message')} evicted, {changed:,} shortened or cleared")
        if self.priced_requests:
            rest = f", {plural(self.unpriced_requests, 'request')} unknown" if self.unpriced_requests else ""
            lines.append(f"billed {in_dollars(self.dollars)} by list prices{rest}")
        if self.refused_requests:
            lines.append(f"{plural(self.refused_requests, 'request')} not sent: too long for the budget")
        if self.failed_requests:
            lines.append(f"{plural(self.failed_requests, 'request')} failed")
        return "\n".join(lines)
