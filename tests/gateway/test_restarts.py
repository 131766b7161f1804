"""A gateway that is killed under load, and started again at the same address."""

from __future__ import annotations

import json
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import openai

from tests.gateway.gateways import Reply, Running, Seen, recorder, run

PROGRAM = """
import sys
from trimtab.gateway import Upstream, make_app, serve
app = make_app([Upstream(api="openai", url=sys.argv[1])], budgets={"*": "8k"})
serve(app, port=int(sys.argv[2]), ready=lambda address: print(address, flush=True))
"""
CLIENTS, CALLS = 4, 8


def test_a_gateway_that_is_killed_loses_no_call_of_clients_that_ask_again() -> None:
    """SIGKILL while all clients wait for an answer; at the end each call has its own."""
    came = threading.Semaphore(0)
    go = threading.Event()

    def answer(one: Seen) -> Reply:
        came.release()
        go.wait(60)
        said = one.data["messages"][-1]["content"]
        message = {"role": "assistant", "content": said}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        made = {"id": "1", "object": "chat.completion", "created": 1, "model": "gpt-4o", "choices": [choice]}
        return 200, {}, json.dumps(made).encode()

    def ask(address: str, client: int) -> list[str | None]:
        with openai.OpenAI(api_key="k", base_url=f"{address}/v1", max_retries=60) as asked:
            made = []
            for call in range(CALLS):
                text = f"{client} {call}"
                found = asked.chat.completions.create(
                    model="gpt-4o", messages=[{"role": "user", "content": text}]
                )
                made.append(found.choices[0].message.content)
        return made

    with socket.create_server(("127.0.0.1", 0)) as place:
        port = place.getsockname()[1]
    with recorder(answer) as behind, ThreadPoolExecutor(CLIENTS) as pool:
        with _served(behind.address, port) as front:
            asked = [pool.submit(ask, front.address, client) for client in range(CLIENTS)]
            for _ in range(CLIENTS):
                came.acquire()
            front.process.send_signal(signal.SIGKILL)
            assert front.process.wait(60) == -signal.SIGKILL
        go.set()
        with _served(behind.address, port):
            found = [one.result() for one in asked]
    assert found == [[f"{client} {call}" for call in range(CALLS)] for client in range(CLIENTS)]
    assert len(behind.seen) >= CLIENTS * (CALLS + 1)


@contextmanager
def _served(address: str, port: int) -> Iterator[Running]:
    words = [sys.executable, "-c", PROGRAM, address, str(port)]
    with run(words, lambda process: process.stdout) as front:
        yield front
