"""Replay: what a policy costs and loses, measured on recorded conversations.

A recording is played call by call: what is sent, how much of it a prompt cache serves, what that costs, what
is evicted, whether the evidence for the next answer is in view, which rules and exact values are not, and
what the recorded answers took from messages and results that are not.
"""

from __future__ import annotations

from trimtab._shared.lazy import public_dir
from trimtab.models import CachePricing, pricing_for, pricings
from trimtab.replay.canaries import find_canaries, plant_canaries
from trimtab.replay.chart import chart_page
from trimtab.replay.play import replay
from trimtab.replay.policies import PolicyLike
from trimtab.replay.record import Canary, ModelCall, Question, Recording, read_recording, read_recordings
from trimtab.replay.results import CallRow, Evidence, Replayed, Survival, Tally, Totals, Use, Uses
from trimtab.replay.table import replay_table

__all__ = [
    "CachePricing",
    "CallRow",
    "Canary",
    "Evidence",
    "ModelCall",
    "PolicyLike",
    "Question",
    "Recording",
    "Replayed",
    "Survival",
    "Tally",
    "Totals",
    "Use",
    "Uses",
    "chart_page",
    "find_canaries",
    "plant_canaries",
    "pricing_for",
    "pricings",
    "read_recording",
    "read_recordings",
    "replay",
    "replay_table",
]

__dir__ = public_dir(globals())
