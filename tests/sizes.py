"""How many cases a test tries: few in `make test`, many in `make test-long`."""

from __future__ import annotations

import pytest


def sizes(few: int, many: int) -> pytest.MarkDecorator:
    """Give a test its `size`."""
    return pytest.mark.parametrize("size", [few, pytest.param(many, marks=pytest.mark.long)])
