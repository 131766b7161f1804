"""Relevance of texts to a question: an index that grows text by text, its terms, and rankers."""

from __future__ import annotations

from trimtab._shared.lazy import public_dir
from trimtab.relevance.index import Index, relevance
from trimtab.relevance.ranker import RankerLike
from trimtab.relevance.terms import question_terms, text_terms

__all__ = ["Index", "RankerLike", "question_terms", "relevance", "text_terms"]

__dir__ = public_dir(globals())
