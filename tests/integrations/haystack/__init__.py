"""Tests of `trimtab.integrations.haystack`; Haystack reads when it is imported whether to report its use."""

from __future__ import annotations

import os

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"
