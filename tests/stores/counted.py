"""What a store asks of its server or file: statements and commands, counted."""

from __future__ import annotations

from typing import Any

from trimtab.stores import EncryptedStore, SQLiteStore, Store


def count_requests(store: Store) -> list[str]:
    """Note every statement and command of a store from now on."""
    said: list[str] = []
    if isinstance(store, EncryptedStore):
        return count_requests(store.keeps_labels_in)
    if isinstance(store, SQLiteStore):
        store.sessions(limit=1)
        assert store._connection is not None
        # what a trigger does is shown as its statement once more
        store._connection.set_trace_callback(lambda sql: said.append(sql) if said[-1:] != [sql] else None)
    elif hasattr(store, "_connections"):
        calls = store._connections._calls

        def counted(mine: Any, steps: Any, *, alone: bool) -> Any:
            def noted() -> Any:
                try:
                    question = next(steps)
                    while True:
                        said.append(repr(question)[:80])
                        try:
                            answer = yield question
                        except Exception as error:  # a script that the server does not know yet
                            question = steps.throw(error)
                        else:
                            question = steps.send(answer)
                except StopIteration as done:
                    return done.value

            return (yield from calls(mine, noted(), alone=alone))

        store._connections._calls = counted
    return said


def rewrites_in(said: list[str]) -> list[str]:
    """List those requests by which files are written anew."""
    return [one for one in said if any(word in one for word in ("VACUUM", "BGREWRITEAOF", "BGSAVE"))]
