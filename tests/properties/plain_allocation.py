"""SPEC D5 said again as plainly as it can be, to hold the fold against. No shares."""

from __future__ import annotations

from trimtab.context import Claim


def plain_limits(claims: list[Claim], room: int, *, ties: str) -> dict[str, int]:
    """Return what each block is offered if it uses all of it.

    Token by token: first what must stay, then floors if all of them fit, then the rest to the highest
    rank that can still take one.
    """
    most = {
        c.name: max(c.need_tokens if c.cap_tokens is None else min(c.need_tokens, c.cap_tokens), 0)
        for c in claims
    }
    given = {c.name: c.must_tokens for c in claims}
    floors = {c.name: max(c.must_tokens, min(c.floor_tokens, most[c.name])) for c in claims}
    if sum(floors.values()) <= room:
        given = floors
    served = sorted(
        (c for c in (reversed(claims) if ties == "newest" else claims)), key=lambda c: c.rank, reverse=True
    )
    for _ in range(room - sum(given.values())):
        hungry = [c.name for c in served if given[c.name] < most[c.name]]
        if not hungry:
            break
        given[hungry[0]] += 1
    return given
