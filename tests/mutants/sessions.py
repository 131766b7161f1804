"""Mutants of what a session decides: what stays, what waits, what is summarized, what is taken back."""

from __future__ import annotations

from tests.mutants.mutants import module

PLAIN = "session/test_against_plain.py"

SESSIONS = (
    module(
        "session/_scene.py",
        f"session/test_modes.py session/test_hooks.py {PLAIN}",
        ("if tokens <= target:", "if tokens < target:"),
        ("self.total_tokens > self.state.budget_tokens", "self.total_tokens >= self.state.budget_tokens"),
        (
            "            if not self.exempt(unit):\n                leaving",
            "            if True:\n                leaving",
        ),
        ("cut = max(state.cut, leaving[-1].first + 1)", "cut = leaving[-1].first + 1"),
        ("if unit.first == self.hidden:", "if False:"),
        ("full = full or unit.tokens > room", "full = unit.tokens > room"),
        ("if first not in here and", "if"),
    ),
    module(
        "session/_covering.py",
        f"session/test_summarizers.py session/test_background.py {PLAIN}",
        ("2 * waiting)", "waiting)"),
        ("2 ** min(failures - 1, 40)", "1"),
        ("failures = state.failures + 1", "failures = 1"),
        ("or scene.exempt(unit):", "or False:"),
        ("if (state.summary, state.epoch) != (job.base, job.epoch):", "if False:"),
        ("border = max(covered) + 1", "border = max(covered)"),
    ),
    module(
        "session/_jobs.py",
        f"session/test_modes.py session/test_summarizers.py {PLAIN}",
        ("state.pending_tokens < max(1, state.retry_tokens)", "state.pending_tokens < 1"),
        ("    if state.pending_tokens >= limits.threshold", "    if state.pending_tokens > limits.threshold"),
        ("state.pending_messages >= limits", "state.pending_messages > limits"),
        ("2 * state.pending_tokens >= limits", "state.pending_tokens >= limits"),
        ("if units and tokens + unit.tokens > state.budget_tokens:", "if False:"),
        ("cap -= scene.anchor_tokens", "pass"),
        ("cap = min(cap, limits.max_anchor_tokens)", "pass"),
    ),
    module(
        "session/_summarizing.py",
        "session/test_summarizers.py session/test_modes.py",
        ("_AIM = (3, 4)", "_AIM = (1, 1)"),
        ("job.existing_tokens + sum(job.unit_tokens) - 1", "job.cap_tokens"),
        ("if room < 1:", "if room < 0:"),
        ("len(compressions) < options.max_summary_rounds", "len(compressions) <= options.max_summary_rounds"),
        ("return [sizer.format.with_role(previous", "return messages or [sizer.format.with_role(previous"),
        ("answer.strip() if isinstance", "answer if isinstance"),
        ("for at in range(fitting - 1, -1, -1):", "for at in ():"),
    ),
    module(
        "session/_taking_back.py",
        f"session/test_writers.py session/test_recall.py {PLAIN}",
        ("event.version < undone and", ""),
        ("    if done:\n", "    if False:\n"),
        ("epoch=state.epoch + 1,\n    )\n    return (", "epoch=state.epoch,\n    )\n    return ("),
        ('event.data["previous"] in found or', ""),
        ("for members in (*pinned, *came_back):", "for members in pinned:"),
        ("for members in (*pinned, *came_back):", "for members in came_back:"),
    ),
    module(
        "session/_zones.py",
        f"session/test_modes.py {PLAIN}",
        ("_SUMMARY = (3, 10)", "_SUMMARY = (2, 10)"),
        ("_RECENT = (3, 10)", "_RECENT = (2, 10)"),
        ("_THRESHOLD = (1, 10)", "_THRESHOLD = (2, 10)"),
        ("_ANCHORS = (4, 10)", "_ANCHORS = (5, 10)"),
        ("after - max(summary_tokens, zones.summary_tokens)", "after - zones.summary_tokens"),
    ),
    module(
        "session/_adding.py",
        f"session/test_writers.py {PLAIN}",
        ('            kind = "tool"\n', "            pass\n"),
        ("if not plain:", "if False:"),
        ("found[one].message == message", "True"),
        ("    scene.truncate()\n", "    pass\n"),
    ),
    module(
        "session/_orders.py",
        f"session/test_background.py session/test_modes.py {PLAIN}",
        ("budget_tokens=tokens, epoch=scene.state.epoch + 1", "budget_tokens=tokens"),
        ("    scene.require_anchor_room()\n", ""),
        ("if first not in scene.recent:\n        scene.bring_back", "if True:\n        scene.bring_back"),
    ),
    module(
        "session/_marks.py",
        "session/test_trust.py",
        ('unescape("".join(texts)).casefold()', '"".join(texts).casefold()'),
        ('unescape("".join(texts)).casefold()', 'unescape("".join(texts))'),
        (", re.IGNORECASE)", ")"),
        ('escape(", ".join(call_ids), quote=True)', '", ".join(call_ids)'),
        (
            'body = escape("\\n".join(slot.text for slot in format.texts(message)), quote=False)',
            'body = "\\n".join(slot.text for slot in format.texts(message))',
        ),
    ),
    module(
        "session/_plain.py",
        "session/test_recall.py session/test_writers.py",
        ("else type(value)()", "else value"),
        ('"arguments": "{}"', '"arguments": REDACTED'),
        ('value if message.get("role") == "function" else "redacted"', '"redacted"'),
        ('if "audio" in message and', "if False and"),
        ('if key != "audio"', "if True"),
        ("math.isfinite(value)", "True"),
        ("return [copied(one) for one in value]", "return value"),
    ),
    module(
        "session/_reading.py",
        f"{PLAIN}",
        ("if scene.over:\n", "if False:\n"),
        (
            "elif first not in self.units:\n            return",
            "elif first not in self.units:\n            pass",
        ),
        ("if first >= state.cut:", "if first > state.cut:"),
        ("after=stop - 1, before=state.cut", "after=stop - 1, before=stop"),
    ),
)
