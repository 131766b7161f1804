"""Observers of trimtab: they see every fit, every decision of a session, and its requests to a store.

`trimtab.integrations.otel` sends the same to OpenTelemetry.
"""

from __future__ import annotations

from trimtab._fitting.observation import (
    FIT_SOURCES,
    SESSION_EVENTS,
    FitEvent,
    FitSource,
    Observer,
    SessionEvent,
    SessionEventKind,
    StoreEvent,
    TelemetryEvent,
    observe,
)

__all__ = [
    "FIT_SOURCES",
    "SESSION_EVENTS",
    "FitEvent",
    "FitSource",
    "Observer",
    "SessionEvent",
    "SessionEventKind",
    "StoreEvent",
    "TelemetryEvent",
    "observe",
]
