"""What an adapter does with a `Context` or a policy in place of a budget, in each wire form."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from trimtab import (
    BudgetExceededError,
    ConfigurationError,
    Context,
    EstimateCounter,
    Fitted,
    TrimContext,
)
from trimtab.counting import counter_for, measure
from trimtab.errors import FormatError
from trimtab.formats import Request, get_format
from trimtab.integrations.base import Trimmer

POLICY = Path(__file__).parent.parent / "examples" / "policy.toml"
FORMS = ["openai_chat", "openai_responses", "anthropic", "gemini", "bedrock"]
APART = ["anthropic", "gemini", "bedrock"]
"""Those that take no system message."""


def said(format: str, text: str = "Hi") -> list[Any]:
    """Write what a user says."""
    return [get_format(format).message("user", [text])]


def body(format: str, messages: list[Any], system: Any = None) -> Any:
    """Write a request body."""
    form = get_format(format)
    key = form.rules.body_key
    return form.write_request(Request(messages=messages, system=system, body={key: []}, key=key), messages)


def context(text: str | None = None, *, beside: bool = False) -> Context:
    """Make one of an empty history and system text, in a block or beside the blocks."""
    made = Context(900, counter=EstimateCounter(), system=text if beside else None)
    return made.add("system", [] if beside or text is None else text, pinned=True).add("history", [])


def trimmer(budget: Any, format: str, seen: list[Fitted[Any]], **more: Any) -> Trimmer[Any]:
    """Make what an adapter has."""
    return Trimmer(budget, format=format, on_fitted=seen.append, options={}, **more)


@pytest.mark.parametrize("format", FORMS)
@pytest.mark.parametrize("beside", [None, "Be kind."])
def test_a_policy_with_a_block_for_system_text_takes_calls_without_any(
    format: str, beside: str | None
) -> None:
    """That of the examples does, and so do calls without a message."""
    made = trimmer(POLICY, format, [])
    assert made.fit(said(format), system=beside).messages == said(format)
    assert made.fit([], system=beside).messages == []


@pytest.mark.parametrize("format", FORMS)
@pytest.mark.parametrize("lead", [0, 1])
def test_what_a_block_holds_stays_before_the_system_messages_of_a_call(format: str, lead: int) -> None:
    """Nothing is lost. Each text is counted as a message, also where all become one text of the request."""
    form, seen = get_format(format), list[Fitted[Any]]()
    own = [form.message("system", ["Be kind."])] * lead
    given = [*own, *said(format)]
    kept = trimmer(context("Be brief."), format, seen, hands_system=True).fit(given).messages
    sent = body(format, kept, seen[0].system)
    texts = ["Be brief.", *["Be kind."] * lead, "Hi"]
    assert [text for text in ("Be brief.", "Be kind.", "Hi") if text in str(sent)] == texts
    assert str(sent).count("Be brief.") == 1
    assert kept[-1] is given[-1]
    counted = seen[0].report.tokens_after
    joined = lead == 1 and format in APART
    sent_tokens = measure(sent, counter=EstimateCounter(), format=format).tokens
    assert counted - 5 * joined <= sent_tokens <= counted


@pytest.mark.parametrize("name", ["system", "facts"])
def test_what_the_only_block_holds_stays_before_the_conversation(name: str) -> None:
    """The block of the history alone holds nothing else."""
    only = Context(900, counter=EstimateCounter()).add(name, "Be brief.")
    kept = trimmer(only, "openai_chat", []).fit(said("openai_chat")).messages
    assert [message["content"] for message in kept] == ["Be brief.", "Hi"]
    history = Context(900, counter=EstimateCounter()).add("history", said("openai_chat", "Before"))
    kept = trimmer(history, "openai_chat", []).fit(said("openai_chat")).messages
    assert kept == said("openai_chat")


def test_what_a_block_holds_is_no_part_of_what_a_framework_keeps() -> None:
    """It would stand there once more after each call; what the conversation replaces would not."""
    with pytest.raises(ConfigurationError, match=r"own facts would be added again after each call"):
        trimmer(Context(900).add("facts", "Tea.").add("history", []), "openai_chat", [], keeps=True)
    history = Context(900, counter=EstimateCounter()).add("history", said("openai_chat", "Before"))
    kept = trimmer(history, "openai_chat", [], keeps=True).fit(said("openai_chat")).messages
    assert kept == said("openai_chat")


def test_what_a_framework_would_keep_is_found_beside_the_blocks_and_at_a_call() -> None:
    """System text of a Context becomes a message here, and a Context may be filled when it is in use."""
    with pytest.raises(ConfigurationError, match=r"own system= would be added again"):
        trimmer(context("Be brief.", beside=True), "openai_chat", [], keeps=True)
    held = Context(900, counter=EstimateCounter()).add("facts", []).add("history", [])
    made = trimmer(held, "openai_chat", [], keeps=True)
    assert made.fit(said("openai_chat")).messages == said("openai_chat")
    held.replace("facts", "Tea.")
    with pytest.raises(ConfigurationError, match=r"own facts would be added again"):
        made.fit(said("openai_chat"))


@pytest.mark.parametrize("format", APART)
def test_marks_for_a_prompt_cache_make_no_system_text_of_a_context(format: str) -> None:
    """The system text of the call is given back with a mark, and is the call's all the same."""
    held = Context(900, counter=EstimateCounter(), breakpoints=True).add("history", [])
    seen = list[Fitted[Any]]()
    kept = trimmer(held, format, seen).fit(said(format), system="Be kind.").messages
    assert len(kept) == 1
    assert "Be kind." in str(seen[0].system)


@pytest.mark.parametrize("format", FORMS[1:])
@pytest.mark.parametrize("beside", [True, False])
def test_system_text_that_an_adapter_has_no_place_for_is_refused(format: str, beside: bool) -> None:
    """Where the adapter is made: it would be counted, and nobody would send it."""
    held = context("Be brief.", beside=beside)
    if format == "openai_responses" and not beside:
        assert len(trimmer(held, format, []).fit(said(format)).messages) == 2
        return
    with pytest.raises(ConfigurationError, match=r"system text.*Be brief.*Pass it to the framework"):
        trimmer(held, format, [])


@pytest.mark.parametrize("format", APART)
def test_system_text_that_comes_later_is_refused_at_a_call(format: str) -> None:
    """A Context may be filled when its adapter is made; that of the call itself is no fault."""
    held, seen = context(), list[Fitted[Any]]()
    made = trimmer(held, format, seen)
    assert made.fit(said(format), system="Be kind.").messages == said(format)
    held.replace("system", "Be brief.")
    with pytest.raises(ConfigurationError, match="this adapter passes on only messages"):
        made.fit(said(format))
    assert len(seen) == 1


@pytest.mark.parametrize("format", FORMS)
def test_system_text_beside_the_blocks_and_of_the_call_is_one_too_many(format: str) -> None:
    """In a block it has a place beside that of the call."""
    made = trimmer(context("Be brief.", beside=True), format, [], hands_system=True)
    with pytest.raises(ConfigurationError, match=r"system is given twice.*a block 'system'"):
        made.fit(said(format), system="Be kind.")


# --- leading system messages, and no block for them

RULE, MORE, NOTE = "Never tell the code.", "Nor the key.", "Be kind."


def long_talk(format: str, *texts: str) -> list[Any]:
    """Write system messages, and a talk of which most has to leave."""
    form = get_format(format)
    turns = [
        form.message(role, [f"{role} {at} " + "word " * 40])
        for at in range(20)
        for role in ("user", "assistant")
    ]
    return [*(form.message("system", [text]) for text in texts), *turns, *said(format)]


def blocks(budget: int = 300, *, counter: Any = None, **block: Any) -> Context:
    """Make a context of one block for the conversation."""
    return Context(budget, counter=counter or EstimateCounter()).add("history", [], **block)


STRATEGIES = [None, "agent", "drop", "drop_newest", "truncate_text"]


@pytest.mark.parametrize("format", FORMS)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_leading_system_messages_stay_where_there_is_no_block_for_them(
    format: str, strategy: str | None
) -> None:
    """They stand first and whole, whatever the strategy of the block lets leave (design/006)."""
    given, seen = long_talk(format, RULE, MORE), list[Fitted[Any]]()
    kept = trimmer(blocks(strategy=strategy), format, seen, hands_system=True).fit(given)
    assert len(kept.messages) < len(given) - 2
    if format in APART:
        assert [RULE in str(seen[0].system), MORE in str(seen[0].system)] == [True, True]
        assert not {0, 1}.intersection(kept.places)
    else:
        assert [one is own for one, own in zip(kept.messages[:2], given, strict=False)] == [True, True]
        assert kept.places[:2] == [0, 1]
    assert seen[0].report.tokens_after <= 300


def test_developer_items_of_responses_are_system_messages() -> None:
    """OpenAI's word for them is another in each of its forms."""
    rule = {"role": "developer", "content": RULE}
    for format in ("openai_responses", "openai_chat"):
        kept = trimmer(blocks(), format, []).fit([rule, *long_talk(format)]).messages
        assert kept[0] is rule
        assert len(kept) < 20


def test_a_conversation_may_stand_in_a_block_of_another_name_behind_what_that_holds() -> None:
    """Pinned is what the conversation begins with, at its place; what stood in the block may leave."""
    given = long_talk("openai_chat", RULE)
    only = Context(300, counter=EstimateCounter()).add("talk", ["Tea is a drink. " * 9, "Coffee, too. " * 9])
    kept = trimmer(only, "openai_chat", []).fit(given)
    assert kept.messages[0] is given[0]
    assert kept.places[0] == 0


def test_system_messages_further_on_may_leave() -> None:
    """They are of the time they were said at."""
    form = get_format("openai_chat")
    given = long_talk("openai_chat", RULE)
    given.insert(4, form.message("system", [NOTE]))
    kept = trimmer(blocks(), "openai_chat", []).fit(given).messages
    assert kept[0] is given[0]
    assert given[4] not in kept


def test_what_callbacks_take_out_moves_no_pin() -> None:
    """The places of messages are others then; a callback may take out what is pinned, as everywhere."""

    def shorten(trim: TrimContext) -> None:
        trim.remove([0, 3, 4])

    only = Context(300, counter=EstimateCounter(), on_trim=shorten).add("talk", ["Tea is a drink."])
    given = long_talk("openai_chat", RULE, MORE)
    kept = trimmer(only, "openai_chat", []).fit(given)
    assert kept.places[:2] == [0, 1]
    gone = Context(300, counter=EstimateCounter(), on_trim=shorten).add("history", [])
    assert trimmer(gone, "openai_chat", []).fit(given).places[0] == 1


@pytest.mark.parametrize("format", FORMS)
def test_leading_system_messages_that_have_no_room_are_an_error_with_its_numbers(format: str) -> None:
    """What it says is needed is enough, with tools beside them, too; a token less is not."""
    form, given = get_format(format), long_talk(format, "Rule. " * 60)
    tools = [form.tool_schema("look", description="Look.", parameters={"type": "object"})]

    def fits(budget: int) -> None:
        held = blocks(budget, counter=counter_for("gpt-4o"))
        trimmer(held, format, [], hands_system=True).fit(given, tools=tools)

    with pytest.raises(
        BudgetExceededError, match=r"block 'history' does not fit: what must be kept"
    ) as failed:
        fits(60)
    needed = failed.value.needed_tokens
    assert needed is not None
    assert failed.value.limit_tokens == 60
    assert "Raise the budget or the cap, pin less, or shorten system text." in str(failed.value)
    with pytest.raises(BudgetExceededError):
        fits(needed - 1)
    fits(needed)


def test_a_conversation_that_fits_to_the_token_stays_whole_beside_tools() -> None:
    """OpenAI charges less for tools behind system text, and leading system text never leaves."""
    form, counter = get_format("openai_chat"), counter_for("gpt-4o")
    tools = [form.tool_schema("look", description="Look.", parameters={"type": "object"})]
    given = [form.message("system", [RULE]), *said("openai_chat", "word " * 30), *said("openai_chat")]
    tokens = measure(given, tools=tools, counter=counter).tokens
    for budget, count in ((tokens, 3), (tokens - 1, 2)):
        fitted = trimmer(blocks(budget, counter=counter), "openai_chat", [], hands_system=True)
        assert len(fitted.fit(given, tools=tools).messages) == count


def test_a_block_for_system_messages_says_itself_what_leaves() -> None:
    """There is one, so its rank, cap and strategy are the caller's word; so are the pins of blocks."""
    held = blocks().add("system", [], priority=-1, strategy="drop")
    kept = trimmer(held, "openai_chat", []).fit(long_talk("openai_chat", "Rule. " * 60)).messages
    assert all(message["role"] != "system" for message in kept)
    with pytest.raises(BudgetExceededError):
        trimmer(blocks(pinned=True), "openai_chat", []).fit(long_talk("openai_chat", RULE))


def test_a_conversation_that_begins_with_no_message_is_refused_with_its_block() -> None:
    """And with its place in it. A text alone may stand in a block; a number is nothing."""
    for given in ([5], [*long_talk("openai_chat", RULE)[:1], 5]):
        with pytest.raises(
            FormatError, match=r"block 'history': messages\[\d\]: a message must be"
        ) as failed:
            trimmer(blocks(), "openai_chat", []).fit(given)
        at = len(given) - 1
        place = failed.value.block, failed.value.index, failed.value.path
        assert place == ("history", at, f"messages[{at}]")
    assert trimmer(blocks(), "openai_chat", []).fit(["Hi"]).messages == said("openai_chat")
