"""Mutants of the ready-made summarizers: what is shown to a model, and which sentences are picked."""

from __future__ import annotations

from tests.mutants.mutants import module

SUMMARIES = (
    module(
        "summaries/prompt.py",
        "test_summaries_openai.py",
        ("Prompt.messages", "if count(lines) > self.budget.input_tokens:", "if False:"),
        ("Prompt.messages", "if count(lines) > self.budget.input_tokens:", "if True:"),
        ("", "LONGEST_SHARE = 4", "LONGEST_SHARE = 1"),
        ("Prompt.messages", "left_out=len(entries) - len(texts)", "left_out=0"),
        ("SummaryPrompt.question", "min(limit, request.max_tokens)", "request.max_tokens"),
        ("_escape", "return escape(text, quote=False)", "return text"),
        ("_entry", 'return "\\n ".join(line', 'return "\\n".join(line'),
        ("_entry", "for line in text.splitlines())", 'for line in text.split("\\n"))'),
        ("_entry", "if pieces.calls and any(pieces.texts):", "if False:"),
        ("_entry", "for medium in pieces.media", "for medium in ()"),
        ("SummaryPrompt.question", "if request.existing:", "if False:"),
    ),
    module(
        "summaries/openai.py",
        "test_summaries_openai.py",
        ("ChatEndpoint._text_of", 'if reason == "length":', "if False:"),
        ("ChatEndpoint._text_of", "if message.refusal:", "if False:"),
        ("ChatEndpoint._text_of", "if not text:", "if False:"),
        ("ChatEndpoint._text_of", "if not choices:", "if False:"),
        ("ChatEndpoint.__init__", '.endswith(".openai.com")', '.endswith("openai.com")'),
        ("ChatEndpoint.__init__", "limit_parameter or (", "("),
        ("_budget_of", "or not budget.output_reserve:", "or False:"),
        ("ChatEndpoint.__init__", "seconds <= 0", "seconds < 0"),
        ("ChatEndpoint.__init__", "max_retries, least=0", "max_retries, least=-1"),
        ("ChatEndpoint._client_of", ".with_options(**options)", ""),
    ),
    module(
        "summaries/extractive.py",
        "test_summaries_extractive.py",
        ("ExtractiveSummarizer.summarize", 'choice.of("request"), limit // 2', 'choice.of("request"), limit'),
        ("ExtractiveSummarizer.summarize", "        if not choice.taken:\n", "        if False:\n"),
        ("ExtractiveSummarizer.summarize", "(choice.tokens + limit) // 2", "0"),
        (
            "ExtractiveSummarizer.summarize",
            'choice.of("summary", "speech", "request"), limit',
            'choice.of("summary", "speech"), limit',
        ),
        (
            "ExtractiveSummarizer.summarize",
            'choice.of("summary", "speech", "request")',
            'choice.of("summary", "speech", "request", "result")',
        ),
        ("ExtractiveSummarizer.summarize", 'choice.take_most_telling(choice.of("result"), limit)', "pass"),
        ("ExtractiveSummarizer._write", "if self._count(text) <= limit:", "if True:"),
        ("ExtractiveSummarizer._write", "sorted(choice.taken[:count])", "choice.taken[:count]"),
        (
            "_Choice.take_first",
            "self.tokens + self.sentences[index].tokens > limit:\n                break",
            "False:\n                break",
        ),
        ("_Choice.take_most_telling", "if ranks and now > ranks[0]:", "if False:"),
        ("_Choice._rank", "if term not in self._said", "if True"),
        ("_Choice._rank", "return -new / one.tokens, -index", "return -new, -index"),
        ("_Choice._rank", "return -new / one.tokens, -index", "return 0.0, -index"),
        ("_values", "log(count) * log(1 + len", "log(1 + len"),
        ("_values", "* log(1 + len(passages) / count)", "* 1"),
        ("_terms", "if _UNSPACED.search(word):", "if False:"),
        ("ExtractiveSummarizer._sentences", "if any(map(str.isalnum, sentence)):", "if True:"),
        ("_terms", "yield inner[0]", "yield word"),
        ("_terms", "text.casefold().split()", "text.split()"),
    ),
)
