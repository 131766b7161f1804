"""Where sessions are kept: in memory, in SQLite, PostgreSQL or Redis, behind one protocol."""

from __future__ import annotations

from trimtab.stores._base import Appended, AppendRequest, Event, LoadRequest, SearchRequest, Store

__all__ = ["AppendRequest", "Appended", "Event", "LoadRequest", "SearchRequest", "Store"]
