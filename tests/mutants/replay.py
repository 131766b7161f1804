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
        "replay/players.py",
        "session/test_cheapest_session.py",
        ("_Pauses.cold_at", "for call, idle in self.calls[1:]", "for call, idle in self.calls[:0]"),
        (
            "_Pauses.cold_at",
            "len(call.messages) - leading_count(call.messages, format)",
            "len(call.messages)",
        ),
        ("BySession.play", "self.session._runner.core.clock = lambda: time", "pass"),
    ),
    module(
        "replay/record.py",
        "test_replay.py",
        ("_borders", 'is_asked or before != "assistant"', "is_asked"),
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
        ("replay", "        meter.reset()  # of", "        pass  # of"),
    ),
    module(
        "replay/policies.py",
        "test_replay.py",
        ("_read_data", 'if data["kind"] != SESSION:', "if True:"),
        ("_session_for", 'if "summarizer" in options:', "if False:"),
    ),
    module(
        "replay/players.py",
        "test_replay.py",
        ("Keys.count_gone", "not in shown for", "in shown for"),
    ),
    module(
        "replay/evidence.py",
        "test_replay_evidence.py test_replay.py",
        ("Witness.look", "place + self._lead for", "place for"),
        ("Witness.look", "self._player.ask(given)", "self._player.play(given)"),
        ("Witness.look", "seen = None", "pass"),
        ("Witness._places", "if one not in found), None)", "), None)"),
        ("Witness._holds", ">= _QUOTE * weight", ">= 0.5 * weight"),
        ("Witness._holds", ">= _HALF * whole", ">= 0.9 * whole"),
        ("Witness._answers", "answer <= said and", ""),
        ("Witness._answers", "self._weight(asked & said) >= least", "True"),
        ("Witness._answers", "not answer or", ""),
        ("Witness._is_cut_from", "is_edge and 0 <", "0 <"),
        ("Witness._is_cut_from", "< len(short) < len(long)", "< len(short)"),
        ("_by_call", "+ (question.text is None)", ""),
        ("_lines", 'unescape(text) if "&" in text else text', "text"),
    ),
    module(
        "replay/datasets.py",
        "test_replay_evidence.py",
        ("_locomo", 'int(key.partition("_")[2])', "key"),
        ("_locomo", 'asked.get("category") == _ADVERSARIAL', "False"),
        ("_locomo", "if number == 0 else None", "if False else None"),
        ("_beam", "one[0] if len(one) == 1 else None", "one[0] if one else None"),
        ("_add", "elif None in found:", "elif False:"),
        ("_told_apart", "names.count(name) > 1", "False"),
    ),
)
