"""The languages in which rules are found, a table each."""

from __future__ import annotations

from trimtab.rules.languages.chinese import CHINESE
from trimtab.rules.languages.english import ENGLISH
from trimtab.rules.languages.french import FRENCH
from trimtab.rules.languages.german import GERMAN
from trimtab.rules.languages.spanish import SPANISH

__all__ = ["LANGUAGES"]

LANGUAGES = (ENGLISH, GERMAN, SPANISH, FRENCH, CHINESE)
"""In this order where a sentence has as many words of one as of another."""
