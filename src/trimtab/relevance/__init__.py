"""Which texts say something about a question? An index that grows text by text, and its terms."""

from __future__ import annotations

from trimtab.relevance.index import Index, relevance
from trimtab.relevance.terms import question_terms, text_terms

__all__ = ["Index", "question_terms", "relevance", "text_terms"]
