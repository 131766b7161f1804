"""Mutants of prices, of what a prompt cache serves, of what a call is, and of what a replay says of it."""

from __future__ import annotations

from tests.mutants.mutants import module

REPLAY = (
    module(
        "models/prices.py",
        "test_cache_pricing.py",
        ("CachePricing.charge", "read < self.min_prefix_tokens", "read <= self.min_prefix_tokens"),
        (
            "CachePricing.charge",
            "sent_tokens >= self.min_prefix_tokens",
            "sent_tokens > self.min_prefix_tokens",
        ),
        ("CachePricing.charge", "read - read % self.granularity_tokens", "read"),
        ("CachePricing.charge", "min(sent_tokens, reusable_tokens)", "reusable_tokens"),
        (
            "CachePricing.is_cold",
            "idle_seconds > self.lifetime_seconds",
            "idle_seconds >= self.lifetime_seconds",
        ),
    ),
    module(
        "replay/cache.py",
        "test_replay.py",
        ("PromptCache.serve", "if shared is None or cold else", "if shared is None else"),
        ("PromptCache.serve", "marks is None and not cold", "marks is None"),
        ("PromptCache.serve", "if end <= shared]", "]"),
        ("PromptCache.serve", "marks > 2", "marks > 1"),
        ("PromptCache.serve", "marks > 1", "marks > 0"),
        ("PromptCache.serve", "if sent.cold is None else sent.cold", "if True else sent.cold"),
        ("count_shared", "if before.beside != after.beside:", "if False:"),
    ),
    module(
        "replay/record.py",
        "test_replay.py",
        ("_borders", 'if messages and before != "assistant":', "if False:"),
        ("_borders", "and form.rules.binds_messages)", ")"),
        ("_with_check", "- recording.lead", ""),
        ("goes_on", "len(after) >= len(before) and", "True and"),
    ),
    module(
        "replay/play.py",
        "test_replay.py",
        ("_Stage.row", "and cut < self.cut and", "and"),
        ("cut_of", "cut, left = cut - 1, left - 1", "cut, left = cut - 1, left"),
        ("_new_faults", "not in known))", "))"),
        ("_evidence", "place + recording.lead", "place"),
    ),
)
