"""Hosts as requests and listeners name them: without a port, and whether only this machine reaches them."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit


def host_name(host: str, /) -> str:
    """Return a Host without its port; "" of one that is none."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def is_loopback_address(name: str, /) -> bool:
    """Tell whether a name is an address that no other machine reaches."""
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def is_loopback(name: str, /) -> bool:
    """Tell whether a name is such an address, or this machine's own name for it."""
    return name.lower() == "localhost" or is_loopback_address(name)
