"""What the page on many gateways shows of balancers is read by these without a fault."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.servers import NoServer, find_program

PAGE = Path(__file__).resolve().parents[2] / "docs/guides/many-gateways.md"


def example(heading: str) -> str:
    """Read the example below a heading of the page."""
    found = re.search(rf"^## {heading}\n+```text\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    assert found is not None
    return found[1]


def program(name: str) -> Path:
    """Find a balancer, or say why the test is skipped."""
    try:
        return find_program(name, package=name, folders="usr/sbin")
    except NoServer as error:
        pytest.skip(str(error))


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """Make a certificate and its key; the first file has both."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    both, key = tmp_path / "gate.pem", tmp_path / "gate.key"
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=gate"]
    subprocess.run([*words, "-keyout", str(key), "-out", str(both)], check=True, capture_output=True)
    both.write_text(both.read_text() + key.read_text())
    return both, key


def test_nginx_reads_its_example(tmp_path: Path, certificate: tuple[Path, Path]) -> None:
    """Within a file that has what each has; a socket in the place of the port of all machines."""
    both, key = certificate
    nginx = program("nginx")
    text = example("nginx").replace("listen 443", f"listen unix:{tmp_path}/socket")
    text = text.replace("/etc/nginx/gate.pem", str(both)).replace("/etc/nginx/gate.key", str(key))
    folders = "".join(
        f"{name}_temp_path {tmp_path};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    file = tmp_path / "nginx.conf"
    file.write_text(f"pid {tmp_path}/pid;\nevents {{}}\nhttp {{\naccess_log off;\n{folders}\n{text}}}\n")
    done = subprocess.run(
        [nginx, "-t", "-e", tmp_path / "log", "-c", file], capture_output=True, text=True, timeout=120
    )
    assert "test is successful" in done.stderr, done.stderr
    assert "warn" not in done.stderr


def test_haproxy_reads_its_example(tmp_path: Path, certificate: tuple[Path, Path]) -> None:
    """As it is, with a certificate of the test."""
    haproxy = program("haproxy")
    file = tmp_path / "haproxy.cfg"
    file.write_text(example("HAProxy").replace("/etc/haproxy/gate.pem", str(certificate[0])))
    done = subprocess.run([haproxy, "-c", "-f", file], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("heading", "pattern"),
    [("nginx", r"large_client_header_buffers \d+ (\d+)k;"), ("HAProxy", r"tune\.bufsize (\d+)")],
)
def test_balancers_take_heads_of_64_kib(heading: str, pattern: str) -> None:
    """As long as the gateway does; by themselves they take 8 and 16 KiB."""
    found = re.search(pattern, example(heading))
    assert found is not None
    assert int(found[1]) * (1024 if heading == "nginx" else 1) >= 64 * 1024
