"""The page of a gateway: what its last requests were, by conversation, in the look of a report."""

from __future__ import annotations

from base64 import b64encode
from collections import Counter
from collections.abc import Collection, Container, Iterable, Sequence
from hashlib import sha256

from trimtab.gateway.recent import Call, Conversation, Recent
from trimtab.report.html import document, safe, scroll_region, sentence
from trimtab.report.text import in_dollars, plural

_STYLE = """
main.trimtab { max-width: 80rem }
.trimtab a { color: var(--accent); text-underline-offset: 2px }
.trimtab :focus-visible { outline: 3px solid var(--accent); outline-offset: 1px }
.trimtab td.name { font-family: var(--mono); white-space: nowrap } .trimtab td.words { min-width: 9em }
"""

_HEADS = (
    "tokens came",
    "sent",
    "saved",
    "evicted",
    "changed",
    "prefix reused",
    "added",
    "first byte",
    "billed, $",
)


def overview(recent: Recent, *, kept: Container[str] = ()) -> str:
    """Write the page of all conversations.

    Args:
        recent: What is remembered.
        kept: Ids of requests whose texts are kept.
    """
    found = [*recent]
    calls = [call for one in found for call in one.calls]
    if not calls:
        nothing = "<p>No conversation came through this gateway yet.</p>"
        return document("Last requests", nothing + _others(recent), style=_STYLE)
    rows = [
        (
            f'<a href="{safe(one.id)}">{safe(one.id)}</a>',
            safe(one.model),
            f"{one.requests:,}",
            *_numbers(one.calls, one.reuse),
            _link(one.calls[-1], f"{one.calls[-1].time:%H:%M:%S}", kept),
        )
        for one in found
    ]
    heads = ("conversation", "model", "requests", *_HEADS, "last, UTC")
    before, after = sum(call.before for call in calls), sum(call.after for call in calls)
    said = (
        f"{before:,} tokens came in {plural(len(calls), 'request')} of"
        f" {plural(len(found), 'conversation')}, and {after:,} were sent: {_savings(before, after)} saved"
    )
    content = [
        sentence("verdict", said),
        sentence("outcome", f"billed, by list prices: {_dollars(calls) or 'nothing'}"),
        _others(recent),
        _reasons(calls),
        _table("Conversations", heads, rows, words=(1,)),
        _notes(),
    ]
    return document("Last requests", "\n".join(content), style=_STYLE)


def _others(recent: Recent) -> str:
    """Say what was billed for requests that no row has."""
    if not recent.others:
        return ""
    found = plural(len(recent.others), "request")
    said = f"{found} of no conversation that is known here, billed: {_dollars(recent.others)}"
    return sentence("outcome", said)


def page_of(one: Conversation, *, kept: Container[str] = ()) -> str:
    """Write the page of a conversation.

    Args:
        one: What is remembered of it.
        kept: Ids of requests whose texts are kept.
    """
    rows = [
        (
            _link(call, f"{call.time:%H:%M:%S}", kept),
            safe(_words(Counter(call.reasons))),
            *_numbers([call], call.reuse),
            f"{call.limit:,}",
            "" if call.billed is None else f"{call.billed:,}",
            safe(f"{call.status} {call.end}"),
        )
        for call in reversed(one.calls)
    ]
    heads = ("time, UTC", "reasons", *_HEADS, "limit", "billed", "end")
    content = [
        '<p><a href="./">All conversations</a></p>',
        _reasons(one.calls),
        _table("Requests, the last one first", heads, rows, words=(1,)),
        _notes(),
    ]
    about = (one.model, plural(one.requests, "request"))
    return document(f"Conversation {one.id}", "\n".join(content), about=about, style=_STYLE)


def _link(call: Call, text: str, kept: Container[str]) -> str:
    """Lead from a request to its texts, where they are kept."""
    return f'<a href="inspect/named/{safe(call.id)}">{text}</a>' if call.id in kept else text


def policy_of(page: str) -> bytes:
    """Write the content security policy of a page: its own style, and nothing else at all."""
    style = page.partition("<style>")[2].partition("</style>")[0]
    digest = b64encode(sha256(style.encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none';"
        " frame-ancestors 'none'"
    ).encode()


def _numbers(calls: Iterable[Call], reuse: float | None) -> Sequence[str]:
    calls = [*calls]
    before, after = sum(call.before for call in calls), sum(call.after for call in calls)
    return (
        f"{before:,}",
        f"{after:,}",
        _savings(before, after),
        f"{sum(call.evicted for call in calls):,}",
        f"{sum(call.changed for call in calls):,}",
        "" if reuse is None else f"{reuse:.0%}",
        _milliseconds([call.fit_ms for call in calls]),
        _milliseconds([call.first_ms for call in calls]),
        _dollars(calls),
    )


def _dollars(calls: Collection[Call]) -> str:
    """Write what was billed, and of how many requests nobody knows."""
    known = [call.dollars for call in calls if call.dollars is not None]
    unknown = sum(call.is_unpriced for call in calls)
    told = [in_dollars(sum(known))] if known else []
    return " + ".join([*told, f"{unknown:,} unknown"] if unknown else told)


def _milliseconds(times: Iterable[float | None]) -> str:
    """Write the mean; nothing where nobody took the time."""
    known = [one for one in times if one is not None]
    return f"{sum(known) / len(known):,.1f} ms" if known else ""


def _savings(before: int, after: int) -> str:
    return f"{(before - after) / before:.0%}"


def _words(reasons: Counter[str]) -> str:
    return ", ".join(f"{count:,} {reason.replace('_', ' ')}" for reason, count in reasons.most_common())


def _reasons(calls: Iterable[Call]) -> str:
    reasons: Counter[str] = Counter()
    for call in calls:
        reasons.update(call.reasons)
    return sentence("outcome", f"evicted or changed: {_words(reasons) or 'nothing'}")


def _notes() -> str:
    return sentence(
        "note",
        "Numbers of the last requests in the memory of this process. A message counts in each request that"
        " goes without it. Prefix reused: how much of what was sent begins as the request before it did."
        " Added: reading and fitting, a part of the time to the first byte. Billed: what answers say, by"
        " list prices and with what a cache served; unknown where they do not say, or a price is not known.",
    )


def _table(title: str, heads: Sequence[str], rows: Iterable[Sequence[str]], *, words: Sequence[int]) -> str:
    """Write a table; cells are HTML, in the first column names, in others numbers or words."""

    def kind(at: int) -> str:
        return "name" if at == 0 else "words" if at in words else "n"

    head = "".join(f'<th scope="col" class="{kind(at)}">{safe(text)}</th>' for at, text in enumerate(heads))
    body = "".join(
        "<tr>" + "".join(f'<td class="{kind(at)}">{cell}</td>' for at, cell in enumerate(row)) + "</tr>"
        for row in rows
    )
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f"<h2>{safe(title)}</h2>\n{scroll_region(table, title)}"
