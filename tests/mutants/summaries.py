"""Mutants of the ready-made summarizers: what is shown to a model, and which sentences are picked."""

from __future__ import annotations

from tests.mutants.mutants import module

SUMMARIES = (
    module(
        "summaries/prompt.py",
        "test_summaries_openai.py",
        ("if count(lines) > self.budget.input_tokens:", "if False:"),
        ("if count(lines) > self.budget.input_tokens:", "if True:"),
        ("LONGEST_SHARE = 4", "LONGEST_SHARE = 1"),
        ("left_out=len(entries) - len(texts)", "left_out=0"),
        ("min(limit, request.max_tokens)", "request.max_tokens"),
        ("return escape(text, quote=False)", "return text"),
        ('return "\\n ".join(line', 'return "\\n".join(line'),
        ("for line in text.splitlines())", 'for line in text.split("\\n"))'),
        ("if pieces.calls and any(pieces.texts):", "if False:"),
        ("for medium in pieces.media", "for medium in ()"),
        ("if request.existing:", "if False:"),
    ),
    module(
        "summaries/openai.py",
        "test_summaries_openai.py",
        ('if reason == "length":', "if False:"),
        ("if message.refusal:", "if False:"),
        ("if not text:", "if False:"),
        ("if not choices:", "if False:"),
        ('.endswith(".openai.com")', '.endswith("openai.com")'),
        ("limit_parameter or _limit", "_limit"),
        ("or not budget.output_reserve:", "or False:"),
        ("not 0 < timeout_seconds", "not 0 <= timeout_seconds"),
        ("max_retries < 0", "max_retries < -1"),
        (".with_options(**options)", ""),
    ),
    module(
        "summaries/extractive.py",
        "test_summaries_extractive.py",
        ('choice.of("request"), limit // 2', 'choice.of("request"), limit'),
        ("        if not choice.taken:\n", "        if False:\n"),
        ("(choice.tokens + limit) // 2", "0"),
        ('choice.of("summary", "speech", "request"), limit', 'choice.of("summary", "speech"), limit'),
        ('choice.of("summary", "speech", "request")', 'choice.of("summary", "speech", "request", "result")'),
        ('choice.take_most_telling(choice.of("result"), limit)', "pass"),
        ("if self._count(text) <= limit:", "if True:"),
        ("sorted(choice.taken[:count])", "choice.taken[:count]"),
        (
            "self.tokens + self.sentences[index].tokens > limit:\n                break",
            "False:\n                break",
        ),
        ("if ranks and now > ranks[0]:", "if False:"),
        ("if term not in self._said", "if True"),
        ("return -new / one.tokens, -index", "return -new, -index"),
        ("return -new / one.tokens, -index", "return 0.0, -index"),
        ("log(count) * log(1 + len", "log(1 + len"),
        ("* log(1 + len(passages) / count)", "* 1"),
        ("if _UNSPACED.search(word):", "if False:"),
        ("if any(map(str.isalnum, sentence)):", "if True:"),
        ("yield inner[0]", "yield word"),
        ("text.casefold().split()", "text.split()"),
    ),
)
