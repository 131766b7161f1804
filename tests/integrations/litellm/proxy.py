"""LiteLLM's proxy, started as its users start it."""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

CONFIG = """\
model_list:
  - model_name: gpt
    litellm_params: {{model: openai/gpt-4o, api_base: "{address}/v1", api_key: none}}
  - model_name: claude
    litellm_params: {{model: anthropic/claude-opus-4-5, api_base: "{address}", api_key: none}}
litellm_settings:
  drop_params: true
  callbacks: trim.handler
  num_retries: 0
router_settings:
  num_retries: 0
"""
TRIM = """\
from trimtab.integrations.litellm import TrimHandler

handler = TrimHandler({budget_tokens}, model="gpt-4o")
"""


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy that runs."""

    address: str
    key: str
    """It serves nobody without; made for this run."""


@contextmanager
def proxy(address: str, *, budget_tokens: int) -> Iterator[Proxy]:
    """Run the proxy before a provider for as long as the block lasts."""
    key = f"sk-{secrets.token_hex(32)}"
    with socket.create_server(("127.0.0.1", 0)) as one:
        port = one.getsockname()[1]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "config.yaml").write_text(CONFIG.format(address=address), encoding="utf-8")
        (folder / "trim.py").write_text(TRIM.format(budget_tokens=budget_tokens), encoding="utf-8")
        program = Path(sys.executable).with_name("litellm")
        settings = {
            **os.environ,
            "DISABLE_ADMIN_UI": "True",
            "LITELLM_MASTER_KEY": key,
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            "LITELLM_TELEMETRY": "False",
        }
        command = [program, "--config", folder / "config.yaml", "--host", "127.0.0.1", "--port", str(port)]
        # After its usual 5 seconds it closes a connection just when a client's pool takes it again.
        command += ["--keepalive_timeout", "75"]
        with subprocess.Popen(
            command, cwd=folder, env=settings, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as running:
            try:
                _read_until_ready(running)
                yield Proxy(f"http://127.0.0.1:{port}", key)
            finally:
                running.terminate()


def _read_until_ready(running: subprocess.Popen[str]) -> None:
    """Read what the proxy says until it listens; the rest is read beside the tests, lest it stops to wait."""
    assert running.stdout is not None
    said: list[str] = []
    for line in running.stdout:
        said.append(line)
        if "Uvicorn running on" in line:
            threading.Thread(target=running.stdout.read, daemon=True).start()
            return
    raise RuntimeError(f"the proxy did not start:\n{''.join(said)[-3_000:]}")
