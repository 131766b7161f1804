"""Tests of `trimtab.integrations.litellm`, with the list of models that LiteLLM brings along."""

from __future__ import annotations

import os

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else it asks the network when it is imported
