"""Recordings of programs that are told and refused, with the line that converts."""

from __future__ import annotations

from trimtab.formats.programs import said_of

__all__ = ["said_of"]
