"""Who comes from another library finds each of its words on the page for it.

The words are written out by hand from the reference documents and signatures, so that a page that loses
a row fails here.
"""

from __future__ import annotations

import re

import pytest

from tests.docs.documents import FENCE, ROOT, blocks

PAGES: dict[str, tuple[str, ...]] = {
    "ctx-slots": (
        *("ctx.slots", "Slots", "onContextBuild", "add(name, content, options?)", "render()"),
        *("{ messages: Message[] }", "ctx.budget.remainingInputTokens", "ctx.history.recent", "ctx.input"),
        *("string", "Message", "Message[]", "Input", "null"),
        *("priority", "maxRatio", "minRatio", "minTokens", "position", "role", "trimBehavior"),
        *("'system'", "'user'", "'assistant'", "'tool'", "'char'", "'message'"),
    ),
    "contexty": (
        *("AllocatorConfig", "MaxTokens", "TokenCounter", "NewBuilder", "Builder", "AddBlock", "Compile"),
        *("MemoryBlock", "MemoryBlock.ID", "MemoryBlock.Messages", "MemoryBlock.Tier"),
        *("MemoryBlock.Strategy", "MemoryBlock.MaxTokens", "MemoryBlock.CacheControl"),
        *("Message", "Role", "Content", "Name", "ToolCalls", "ToolCallID", "Metadata"),
        *("ContentPart", "Type", "Text", "ImageURL", "URL", "Detail"),
        *("ToolCall", "ID", "Function", "FunctionCall", "Arguments"),
        *("TextMessage", "MultipartMessage", "InjectIntoSystem"),
        *("TierSystem", "TierCore", "TierRAG", "TierHistory", "TierScratchpad", "Tier(10)"),
        *("EvictionStrategy", "Apply", "originalTokens", "NewStrictStrategy", "NewDropStrategy"),
        *("NewTruncateOldestStrategy", "NewSummarizeStrategy", "Summarizer", "FactExtractor"),
        *("TruncateOption", "KeepUserAssistantPairs", "MinMessages", "ProtectRole"),
        *("CharFallbackCounter", "CharsPerToken", "TokensPerNonTextPart", "EstimateTool"),
        *("ToolCallEstimator", "DefaultTokensPerNonTextPart", "Count(ctx, msgs)"),
        *("FixedCounter", "TokensPerMessage", "TokensPerContentPart", "TokensPerToolCall"),
        *("CompileReport", "TotalTokensUsed", "OriginalTokens", "RemainingTokens"),
        *("OriginalTokensPerBlock", "TokensPerBlock", "Evictions", "BlocksDropped"),
        *('"rejected"', '"dropped"', '"truncated"', '"summarized"'),
        *("ErrBudgetExceeded", "ErrInvalidConfig", "ErrTokenCountFailed", "ErrInvalidCharsPerToken"),
        *("ErrNilStrategy", "ErrStrategyExceededBudget"),
    ),
    "context-strategy": (
        *("ContextStrategy", "apply", "name", "ContextBudget", "available_for_history", "serde_json::Value"),
        *("SlidingWindow", "PriorityBased", "SlidingWindowWithSummary", "ContextStrategyKind"),
        *("create_strategy", "Summarizer", "HistoryManager"),
    ),
    "trimcontext": (
        *("Phronomy::Context::TrimContext", "on_trim", "initialize", "message_elements", "messages"),
        *("budget", "TokenBudget", "total_tokens", "remove", "available(used: 0)"),
        *(":seq", ":tokens", ":role", "e[:seq]", "e[:message]", "e[:tokens]", "e[:role]"),
    ),
    "sliding-context": (
        *("createSlidingContext", "SlidingContext", "addMessage", "getMessages", "getSummary"),
        *("getTokenCount", "getTokenBreakdown", "getRecentMessageCount", "getTotalMessageCount"),
        *("setAnchor", "setTokenBudget", "clear", "serialize", "serializeContext", "restoreSlidingContext"),
        *("deserialize", "approximateTokenCounter", "countMessageTokens", "DEFAULT_MESSAGE_OVERHEAD"),
        *("evictMessages", "evicted", "remaining", "allocateBudget", "BudgetAllocation", "systemTokens"),
        *("summaryTokens", "recentTokens", "runSummarizer", "null", "undefined"),
        *("defaultSummarizationPrompt", "system", "anchor", "summary", "recent", "total"),
        *("tokenBudget", "systemPrompt", "summarizer", "strategy", "maxSummaryTokens", "minRecentTokens"),
        *("summarizeThresholdTokens", "summarizeThresholdMessages", "tokenCounter", "messageOverhead"),
        *("summaryRole", "maxSummaryRounds", "maxAnchorTokens", "hooks"),
        *("EventHooks", "onEvict", "onSummarize", "onBudgetExceeded", "onSummaryCompressed"),
        *("'budget'", "'truncation'", "inputMessages", "existingSummary", "newSummary", "durationMs"),
        *("totalTokens", "oldSummary", "'incremental'", "'rolling'", "'anchored'"),
        *("Message", "role", "content", "tool_calls", "tool_call_id", "name", "ToolCall", "TokenCounter"),
        *("Summarizer", "SummarizationStrategy", "SummaryRole", "SlidingContextOptions", "ContextState"),
        *("version", "options", "messages", "pendingBuffer", "summaryRounds", "tokenCounts"),
        *("'system'", "'user'", "'assistant'", "'tool'", "RangeError", "Error", "85"),
    ),
    "langchain": (
        *("trim_messages", "messages", "max_tokens", "token_counter", '"approximate"', "strategy"),
        *('"first"', '"last"', "allow_partial", "end_on", "start_on", "include_system", "text_splitter"),
        *("PromptValue", "ValueError", "Runnable"),
    ),
    "litellm": (
        *("trim_messages", "messages", "model", "trim_ratio", "DEFAULT_TRIM_RATIO"),
        *("return_response_tokens", "max_tokens", "token_counter"),
    ),
}
"""Every function, type, field, option, value and error of the page's library, as that library spells it."""

DEFAULTS: dict[str, tuple[tuple[str, str], ...]] = {
    "ctx-slots": (
        ("`priority`", "0"),
        ("`maxRatio`", "1.0"),
        ("`minRatio`", "0"),
        ("`minTokens`", "0"),
        ("`position`", "order of `add`"),
        ("`role`", "`user` for text"),
        ("`trimBehavior`", "`message`"),
    ),
    "sliding-context": (
        ("`tokenBudget`", "required"),
        ("`systemPrompt`", "none"),
        ("`summarizer`", "none"),
        ("`strategy`", "`'incremental'`"),
        ("`maxSummaryTokens`", "0.3 of the budget"),
        ("`minRecentTokens`", "0.3 of the budget"),
        ("`summarizeThresholdTokens`", "0.1 of the budget"),
        ("`summarizeThresholdMessages`", "6"),
        ("`tokenCounter`", "`approximateTokenCounter`"),
        ("`messageOverhead`", "4"),
        ("`summaryRole`", "`'system'`"),
        ("`maxSummaryRounds`", "5"),
        ("`anchor`", "none"),
        ("`maxAnchorTokens`", "0.4 of `maxSummaryTokens`"),
        ("`hooks`", "none"),
    ),
    "langchain": (
        ("`messages`", "required"),
        ("`max_tokens`", "required"),
        ("`token_counter`", "required"),
        ("`allow_partial`", "False"),
        ("`text_splitter`", "by lines"),
        ("`start_on`", "None"),
        ("`end_on`", "None"),
        ("`include_system`", "False"),
    ),
    "litellm": (
        ("`messages`", "required"),
        ("`model`", "None"),
        ("`trim_ratio`", "0.75"),
        ("`return_response_tokens`", "False"),
        ("`max_tokens`", "None"),
    ),
}
"""The first two cells of a row: an option and its default there."""


def _page(name: str) -> str:
    return (ROOT / "docs" / "guides" / f"coming-from-{name}.md").read_text(encoding="utf-8")


def _old_words(page: str) -> str:
    """Join what a page says in prose and tables; its examples explain nothing."""
    return FENCE.sub("", page)


def _holds(text: str, word: str) -> bool:
    """Tell whether a word stands in a text as a whole one."""
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) is not None


def _rows(page: str) -> list[list[str]]:
    lines = [line for line in _old_words(page).splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


@pytest.mark.parametrize("name", PAGES)
def test_every_word_of_the_other_library_is_on_its_page(name: str) -> None:
    """Outside the examples, as a whole word: it is said what to use instead, or why it is not there."""
    text = _old_words(_page(name))
    assert [word for word in PAGES[name] if not _holds(text, word)] == []


@pytest.mark.parametrize("name", DEFAULTS)
def test_every_default_of_the_other_library_is_on_its_page(name: str) -> None:
    """A table has the option and its default in its first two cells."""
    starts = {(row[0], row[1]) for row in _rows(_page(name)) if len(row) > 2}
    assert [pair for pair in DEFAULTS[name] if pair not in starts] == []


@pytest.mark.parametrize("name", PAGES)
def test_a_page_begins_with_one_program_before_and_after(name: str) -> None:
    """First as the other library writes it, then as it is written here, with what that prints."""
    first = [block.kind for block in blocks(_page(name))][:3]
    assert first[0] in {"go", "py", "ruby", "rust", "ts"}
    assert first[1:] == ["python", "text"]


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("contexty", "`FactExtractor` (reserved there)", "Session(fact_extractor="),
        ("context-strategy", "`HistoryManager`", "Session(summarizer=…, recall_ratio=…)"),
        ("sliding-context", "`tokenCounter`", "a function of a text"),
        ("sliding-context", "`tokenBudget`", "100.5 is 100"),
        ("ctx-slots", "`ctx.input`", "strategy=Strict()"),
        ("trimcontext", "`#budget` (TokenBudget, or nil if the model is unknown)", "UnknownNameError"),
    ],
)
def test_a_row_says_what_takes_the_place_of_a_word(name: str, old: str, new: str) -> None:
    """What the pages once said was not there, or was otherwise."""
    (row,) = [row for row in _rows(_page(name)) if row[0] == old]
    assert new in row[-1]


def test_every_coming_from_page_is_checked() -> None:
    """A new page comes with its words."""
    files = (ROOT / "docs" / "guides").glob("coming-from-*.md")
    assert {path.stem.removeprefix("coming-from-") for path in files} == set(PAGES)


def test_a_missing_word_would_be_found() -> None:
    """Part of a longer word, or a word in an example only, does not count."""
    page = "# A page\n\n```go\nAddBlock\n```\n\n| old | new |\n| --- | --- |\n| `minTokens` | `a \\| b` |\n"
    text = _old_words(page)
    assert not _holds(text, "AddBlock")
    assert not _holds(text, "Tokens")
    assert _holds(text, "minTokens")
    assert _rows(page)[-1] == ["`minTokens`", "`a \\| b`"]
