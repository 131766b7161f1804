"""The usage baseline: what was billed is shared out exactly, what is newer is estimated by what it taught."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import assistant, call, result, system, user, without_address
from trimtab import Budget, ConfigurationError, Context, EstimateCounter, Session, counter_for, fit
from trimtab.counting import CountRequest, FixedCounter, UsageBaseline
from trimtab.errors import UsageError
from trimtab.testing import WordCounter, check_counter, conversations

TOOLS = [{"type": "function", "function": {"name": "search", "parameters": {"type": "object"}}}]


def text(count: int, word: str = "word") -> str:
    """Write so many words, all different."""
    return " ".join(f"{word}{n}" for n in range(count))


class Dumped:
    """What an SDK returns: attributes, and a way to write them as a dict."""

    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)

    def model_dump(self, **_: Any) -> dict[str, Any]:
        """Write it."""
        return {key: value for key, value in self.__dict__.items() if value is not None}


def usage_of(reported: Any) -> tuple[int, int | None]:
    """Record a report, and return the input it told of and what the answer costs when it is sent back."""
    baseline = UsageBaseline(EstimateCounter())
    baseline.record([], reported)
    input_tokens = baseline.to_dict()["total_tokens"]
    baseline.record([], reported, answer=assistant("bye"))
    return input_tokens, (baseline.to_dict()["total_tokens"] - input_tokens) or None


def off_by(baseline: UsageBaseline, messages: list[Any], part_tokens: int, off_tokens: int) -> None:
    """Go on by so many words and have them billed with so much more than was counted."""
    messages.append(user(text(part_tokens, f"n{len(messages)}w")))
    baseline.record(messages, baseline.count(messages) + off_tokens)


def margin_of(baseline: UsageBaseline, part_tokens: int) -> int:
    """Return how far off a new part of that size may be."""
    return baseline.margin_tokens(baseline.to_dict()["total_tokens"] + part_tokens) or 0


# -- what a provider reports

SHAPES = {
    "chat": ({"prompt_tokens": 90, "completion_tokens": 9, "total_tokens": 99}, (90, 9)),
    "chat that reasoned": (
        {
            "prompt_tokens": 90,
            "completion_tokens": 50,
            "completion_tokens_details": {"reasoning_tokens": 41},
            "prompt_tokens_details": {"cached_tokens": 64},
        },
        (90, 9),
    ),
    "responses": (
        {
            "input_tokens": 90,
            "input_tokens_details": {"cached_tokens": 64},
            "output_tokens": 50,
            "output_tokens_details": {"reasoning_tokens": 41},
        },
        (90, 9),
    ),
    "anthropic": (
        {
            "input_tokens": 3,
            "cache_read_input_tokens": 80,
            "cache_creation_input_tokens": 7,
            "output_tokens": 9,
        },
        (90, 9),
    ),
    "anthropic that thought": (
        {"input_tokens": 90, "output_tokens": 50, "output_tokens_details": {"thinking_tokens": 41}},
        (90, 50),  # which later models and tool loops send back
    ),
    "gemini": (
        {
            "promptTokenCount": 90,
            "cachedContentTokenCount": 64,
            "candidatesTokenCount": 9,
            "toolUsePromptTokenCount": 12,
        },
        (90, 9),
    ),
    "gemini that thought": (
        {"promptTokenCount": 90, "candidatesTokenCount": 9, "thoughtsTokenCount": 41},
        (90, None),  # the signature of a thought is billed, and nobody says how much
    ),
    "gemini's own objects": (
        Dumped(prompt_token_count=90, candidates_token_count=9, cached_content_token_count=None),
        (90, 9),
    ),
    "converse": (
        {
            "inputTokens": 3,
            "outputTokens": 9,
            "totalTokens": 99,
            "cacheReadInputTokens": 80,
            "cacheWriteInputTokens": 7,
        },
        (90, 9),
    ),
    "a response of converse": ({"output": {}, "usage": {"inputTokens": 90, "outputTokens": 9}}, (90, 9)),
    "ollama": (
        {"model": "gemma3:4b", "prompt_eval_count": 90, "eval_count": 9, "prompt_eval_duration": 13_000},
        (90, 9),
    ),
    "cohere v2": (
        {
            "usage": {
                "billed_units": {"input_tokens": 17, "output_tokens": 9},
                "tokens": {"input_tokens": 90, "output_tokens": 9},
            }
        },
        (90, 9),  # the model read what Cohere writes around it, which is not charged
    ),
    "cohere v1": (
        {"text": "ok", "meta": {"billed_units": {"input_tokens": 90, "output_tokens": 9}}},
        (90, 9),
    ),
    "cohere's own objects": (
        Dumped(usage=Dumped(tokens={"input_tokens": 90.0, "output_tokens": 9.0}, cached_tokens=None)),
        (90, 9),
    ),
    "anthropic that called its own tools": (
        {
            "input_tokens": 300,
            "cache_read_input_tokens": 80,
            "output_tokens": 9,
            "iterations": [
                {"type": "message", "input_tokens": 10, "cache_read_input_tokens": 80, "output_tokens": 4},
                {"type": "message", "input_tokens": 290, "cache_read_input_tokens": 0, "output_tokens": 5},
            ],
        },
        (90, 9),  # the first step is what was sent; the whole is the sum of all
    ),
    "anthropic that cleared results": (
        {
            "usage": {"input_tokens": 30, "output_tokens": 9},
            "context_management": {
                "applied_edits": [{"type": "clear_tool_uses_20250919", "cleared_input_tokens": 60}]
            },
        },
        (90, 9),
    ),
    "a number": (90, (90, None)),
    "a response": ({"id": "r", "usage": {"input_tokens": 90, "output_tokens": 9}}, (90, 9)),
    "a response object": (Dumped(usage=Dumped(prompt_tokens=90, completion_tokens=None)), (90, None)),
    "a gemini response": (Dumped(usage_metadata=Dumped(prompt_token_count=90)), (90, None)),
}


@pytest.mark.parametrize(("reported", "read"), SHAPES.values(), ids=SHAPES.keys())
def test_usage_is_read_from_every_shape(reported: Any, read: tuple[int, int | None]) -> None:
    """Cached input is input; what is not sent back is no part of the answer."""
    assert usage_of(reported) == read


@pytest.mark.parametrize(
    "reported",
    [
        True,
        0,
        -1,
        1.5,
        "90",
        None,
        {},
        {"output_tokens": 9},
        {"input_tokens": -1},
        {"input_tokens": True},
        {"prompt_tokens": "90"},
        {"prompt_tokens": 90, "completion_tokens": -9},
        {"input_tokens": 0, "output_tokens": 9},
        {"usage": None},
    ],
    ids=repr,
)
def test_what_is_no_usage_is_refused(reported: Any) -> None:
    """A streamed event without input, a sign, a bool: nothing is guessed."""
    with pytest.raises(ConfigurationError, match="tokens"):
        usage_of(reported)


COMPACTED: dict[str, Any] = {
    "input_tokens": 40,
    "output_tokens": 5,
    "iterations": [
        {"type": "compaction", "input_tokens": 61_000, "output_tokens": 700},
        {"type": "message", "input_tokens": 40, "output_tokens": 5},
    ],
}


@pytest.mark.parametrize(
    "reported",
    [
        COMPACTED,
        {"usage": COMPACTED},
        Dumped(usage=Dumped(**COMPACTED)),
        {
            "content": [{"type": "compaction", "content": "…"}, {"type": "text", "text": "ok"}],
            "usage": {"input_tokens": 40, "output_tokens": 5},
        },
        {
            "output": [{"type": "compaction", "encrypted_content": "…"}],
            "usage": {"input_tokens": 40, "output_tokens": 5},
        },
    ],
    ids=["usage", "response", "objects", "content", "responses"],
)
def test_a_bill_of_what_the_server_put_in_is_refused(reported: Any) -> None:
    """A compaction replaced 60,000 tokens that were sent: it taught that they are 23 (pydantic-ai#5065)."""
    baseline = UsageBaseline(EstimateCounter())
    messages = [user(text(500)), assistant("ok"), user("go on")]
    before = baseline.count(messages)
    with pytest.raises(UsageError, match="Record no usage for this request"):
        baseline.record(messages, reported)
    assert baseline.count(messages) == before
    session = Session(budget=10_000, counter=EstimateCounter())
    for message in messages:
        session.add(message)
    session.messages()
    with pytest.raises(UsageError):
        session.record_usage(reported)
    baseline.record(messages, before + 100)  # the next is read as ever
    assert baseline.count(messages) == before + 100


def test_real_objects_of_three_sdks_are_read() -> None:
    """Usage as openai, anthropic and google-genai return it."""
    anthropic, openai = pytest.importorskip("anthropic.types"), pytest.importorskip("openai.types")
    google = pytest.importorskip("google.genai.types")
    assert usage_of(anthropic.Usage(input_tokens=3, output_tokens=9, cache_read_input_tokens=87)) == (90, 9)
    assert usage_of(openai.CompletionUsage(prompt_tokens=90, completion_tokens=9, total_tokens=99)) == (90, 9)
    metadata = google.GenerateContentResponseUsageMetadata(prompt_token_count=90, candidates_token_count=9)
    assert usage_of(metadata) == (90, 9)
    assert usage_of(google.GenerateContentResponse(usage_metadata=metadata)) == (90, 9)


# -- sharing out


def test_without_a_report_it_counts_as_the_counter_inside() -> None:
    """Nothing is learned from nothing."""
    inside = EstimateCounter()
    baseline = UsageBaseline(inside)
    for sample in conversations(12):
        assert baseline.count_request(
            CountRequest(sample, system="Be brief.", tools=TOOLS)
        ) == inside.count_request(CountRequest(sample, system="Be brief.", tools=TOOLS))
    assert baseline.name == inside.name


@pytest.mark.parametrize("factor", [0.3, 0.9, 1.0, 1.3, 7.0])
def test_a_recorded_request_counts_as_it_was_billed(factor: float) -> None:
    """To the token, whatever the bill; with repeated messages, tools and system text."""
    for sample in conversations(24):
        messages = [*sample, *sample[-1:]]
        baseline = UsageBaseline(EstimateCounter())
        billed = max(1, round(factor * baseline.count_request(CountRequest(messages, tools=TOOLS))))
        baseline.record(messages, billed, tools=TOOLS)
        assert baseline.count_request(CountRequest(messages, tools=TOOLS)) == billed


@given(st.lists(st.tuples(st.integers(1, 40), st.integers(-30, 400)), min_size=1, max_size=8))
def test_every_later_report_holds_to_the_token_too(steps: list[tuple[int, int]]) -> None:
    """However the bills grow, shrink and contradict each other; no size is below zero."""
    baseline = UsageBaseline(WordCounter())
    messages: list[dict[str, Any]] = [user("begin")]
    billed = 1
    for length, more in steps:
        messages = [*messages, user(text(length, "n")), assistant(text(2, "a"))]
        billed = max(1, billed + more)
        baseline.record(messages, billed)
        assert baseline.count(messages) == billed
        assert all(baseline.count_message(message) >= 0 for message in messages)
        assert baseline.count([]) >= 0


def test_older_messages_keep_their_share_and_the_new_ones_take_the_rest() -> None:
    """A second report says something of what is new, and of nothing else."""
    baseline = UsageBaseline(WordCounter())
    old, new = [user(text(100))], [assistant(text(40, "a")), user(text(60, "b"))]
    baseline.record(old, 130)
    share, fixed = baseline.count_message(old[0]), baseline.count([])
    baseline.record([*old, *new], 130 + 150)
    assert baseline.count_message(old[0]) == share
    assert (baseline.count_message(new[0]), baseline.count_message(new[1])) == (60, 90)
    assert baseline.count([]) == fixed


def test_what_no_message_can_be_behind_is_of_the_fixed_part() -> None:
    """A system prompt the counter never saw does not leave with the oldest message."""
    baseline = UsageBaseline(WordCounter())
    messages = [user("two words"), assistant("two more")]
    baseline.record(messages, 2_704)
    assert baseline.count(messages) == 2_704
    assert baseline.count(messages[1:]) >= 2_690


def test_the_answer_has_its_reported_size() -> None:
    """Output tokens are known, so nobody estimates them."""
    baseline = UsageBaseline(EstimateCounter())
    asked, answer = [user("Tell me a story.")], assistant(text(80))
    baseline.record(asked, {"prompt_tokens": 12, "completion_tokens": 111}, answer=answer)
    assert baseline.count([*asked, answer]) == 12 + 111


def test_an_exact_counter_sizes_the_answer_itself() -> None:
    """Output is reported without the framing that it has when it is sent back."""
    inside = counter_for("gpt-4o")
    baseline = UsageBaseline(inside)
    asked, answer = [user("Tell me a story.")], assistant(text(80))
    billed = inside.count(asked)
    baseline.record(asked, {"prompt_tokens": billed, "completion_tokens": 5}, answer=answer)
    assert baseline.count([*asked, answer]) == inside.count([*asked, answer])


def test_a_moved_cache_mark_and_an_object_change_no_share() -> None:
    """Shares go by what is charged, not by the object."""
    plain = {"role": "user", "content": [{"type": "text", "text": text(9)}]}
    marked = {"role": "user", "content": [{**plain["content"][0], "cache_control": {"type": "ephemeral"}}]}  # type: ignore[dict-item]
    baseline = UsageBaseline(EstimateCounter())
    baseline.record([marked], 55)
    assert baseline.count([Dumped(**plain, name=None)]) == 55


def test_the_factor_is_learned_and_tiny_samples_do_not_make_it() -> None:
    """Three words that were billed nine say little; a hundred reports say it all."""
    baseline = UsageBaseline(WordCounter())
    messages = [user("one two three")]
    baseline.record(messages, 9)
    fresh = user(text(1_000, "z"))
    baseline.record([*messages, user("four")], 12)
    assert 1_000 <= baseline.count_message(fresh) <= 1_050
    billed = 12
    for turn in range(100):
        messages = [*messages, user(text(100, f"t{turn}"))]
        billed += 150
        baseline.record(messages, billed)
    assert 1_400 <= baseline.count_message(fresh) <= 1_510


def test_one_wild_report_does_not_spoil_the_factor() -> None:
    """Something else came in (a file the provider read): that is no factor."""
    baseline = UsageBaseline(WordCounter())
    messages = [user(text(100))]
    baseline.record(messages, 100)
    messages = [*messages, user("one more")]
    baseline.record(messages, 50_102)
    assert baseline.count(messages) == 50_102
    assert baseline.count_message(user(text(1_000, "z"))) == 1_000


def test_changed_tools_are_estimated_on_top_of_what_was_billed() -> None:
    """The bill's fixed part stays, the difference is estimated."""
    inside = EstimateCounter()
    baseline = UsageBaseline(inside)
    messages = [user(text(50))]
    baseline.record(messages, inside.count(messages) + 900)
    more = inside.count_request(CountRequest(messages, tools=TOOLS)) - inside.count(messages)
    grown = baseline.count_request(CountRequest(messages, tools=TOOLS)) - baseline.count(messages)
    assert 0 < more <= grown <= 5 * more


def test_another_model_begins_anew_and_the_first_is_not_forgotten() -> None:
    """Bills of one model say nothing of another's tokens; what was learned is kept by model."""
    baseline = UsageBaseline(WordCounter())
    messages = [user(text(400))]
    baseline.record(messages, 200, model="a")
    fresh = user(text(100, "z"))
    learned = baseline.count_message(fresh)
    assert learned < 80
    baseline.record(messages, 400, model="b")
    assert (baseline.count(messages), baseline.count_message(fresh)) == (400, 100)
    baseline.record(messages, 200, model="a")
    assert baseline.count_message(fresh) < learned  # a second report, on top of the first


# -- evictions


def test_what_is_left_after_an_eviction_counts_its_shares() -> None:
    """The sum of what stays; a report of the shorter request then holds to the token."""
    baseline = UsageBaseline(WordCounter())
    messages = [system("be brief"), *(user(text(20, f"m{n}")) for n in range(10))]
    baseline.record(messages, 300)
    shares = [baseline.count_message(message) for message in messages]
    fixed = baseline.fixed_tokens(None, None, has_system=True)
    fitted = fit(messages, 200, counter=baseline)
    kept = [index for index, message in enumerate(messages) if message in fitted.messages]
    assert 2 < len(kept) < len(messages)
    assert fitted.report.tokens_after == fixed + sum(shares[index] for index in kept) <= 200
    baseline.record(fitted.messages, 190)
    assert baseline.count(fitted.messages) == 190


def test_a_bill_of_other_messages_moves_shares_a_little_and_teaches_no_factor() -> None:
    """What left may be behind the difference: shares move by a quarter up at most, by a fifth down."""
    baseline = UsageBaseline(WordCounter())
    messages = [user(text(100, f"m{n}")) for n in range(4)]
    baseline.record(messages, 400)
    learned = baseline.count_text(text(1_000))
    baseline.record(messages[1:], 600)
    assert baseline.count(messages[1:]) == 600
    assert baseline.count_message(messages[1]) == 125
    assert baseline.count_text(text(1_000)) == learned
    baseline = UsageBaseline(WordCounter())
    baseline.record(messages, 2_000)
    baseline.record(messages[1:], 1_700)
    assert baseline.count_message(messages[1]) == 80


# -- the margin


def test_the_margin_is_of_what_is_new() -> None:
    """A request as long as the bill has a small one, and it grows with what comes."""
    baseline = UsageBaseline(EstimateCounter())
    messages = [user(text(5_000))]
    baseline.record(messages, 6_000)
    near, far = baseline.margin_tokens(6_000), baseline.margin_tokens(8_000)
    assert near < 60
    assert near < far < 2_000


def test_a_margin_grows_with_what_was_seen_to_be_wrong_and_shrinks_again() -> None:
    """The worst of the latest sixteen, and a quarter more."""
    baseline, messages = UsageBaseline(WordCounter()), [user(text(100))]
    baseline.record(messages, 100)
    off_by(baseline, messages, 1_000, 400)
    assert margin_of(baseline, 1_000) >= 400
    off_by(baseline, messages, 1_000, 10)
    assert margin_of(baseline, 1_000) >= 400
    for _ in range(16):
        off_by(baseline, messages, 1_000, 10)
    assert 100 < margin_of(baseline, 1_000) < 200


def test_a_surprise_that_stands_alone_is_no_rule() -> None:
    """A picture billed for a hundred times its count is believed by twice the worst of the others."""
    baseline, messages = UsageBaseline(WordCounter()), [user(text(100))]
    baseline.record(messages, 100)
    for _ in range(4):
        off_by(baseline, messages, 1_000, 10)
    off_by(baseline, messages, 10, 1_000_000)
    assert 200 < margin_of(baseline, 1_000) < 350  # twice and a quarter of what is usual of 1,000: 116
    off_by(baseline, messages, 10, 1_000_000)
    assert margin_of(baseline, 1_000) > 1_000


def test_a_margin_takes_a_fifth_of_a_budget_at_most() -> None:
    """However far off the bills were: what was billed once is known."""
    baseline, messages = UsageBaseline(WordCounter()), [user(text(900))]
    baseline.record(messages, 900)
    off_by(baseline, messages, 10, 400)
    total = baseline.to_dict()["total_tokens"]
    budget = Budget(total - 100, margin="auto").resolved(baseline)
    assert budget.input_tokens >= 0.78 * total - 100


def test_tokens_do_not_wander_from_messages_to_what_stands_beside_them() -> None:
    """A chat whose oldest message leaves at each call: roundings do not add up, call after call."""
    baseline = UsageBaseline(WordCounter())
    for turn in range(200):
        messages = [user(f"{turn + at} {text(20 + (turn + at) * 7 % 31)}") for at in range(20)]
        billed = sum(len(message["content"].split()) * 13 // 10 for message in messages)
        baseline.record(
            messages, 100 + billed
        )  # 100 tokens that nobody sees; shares that move err by as many
    assert baseline.to_dict()["fixed_tokens"] <= 250


def test_a_margin_grows_slower_than_what_it_is_of() -> None:
    """Or a budget with margin="auto" had no largest count."""
    baseline, messages = UsageBaseline(WordCounter()), [user(text(100))]
    baseline.record(messages, 100)
    off_by(baseline, messages, 10, 1_000_000)
    assert 10_000 < margin_of(baseline, 100_000) < 100_000


def test_before_a_bill_the_margin_is_that_of_the_counter_inside() -> None:
    """It knows no better."""

    class Careful(WordCounter):
        """Says how far off it may be."""

        def margin_tokens(self, tokens: int, /) -> int:
            """A tenth."""
            return tokens // 10

    assert UsageBaseline(WordCounter()).margin_tokens(1_000) is None
    careful = UsageBaseline(Careful())
    assert careful.margin_tokens(1_000) == 100
    careful.record([user(text(90))], 90)
    assert careful.margin_tokens(100) == 10  # a bill makes nobody less sure
    assert careful.margin_tokens(1_000) == 100


def test_a_counted_answer_is_part_of_what_was_billed() -> None:
    """The margin of a request that ends with it is that of nothing new."""
    baseline = UsageBaseline(EstimateCounter())
    baseline.record([user("hi")], {"input_tokens": 10, "output_tokens": 700}, answer=assistant("long"))
    assert baseline.margin_tokens(710) < 50


# -- as a counter


def test_it_keeps_the_contract_of_counters_after_reports() -> None:
    """Additive, deterministic, at ease with threads and odd text."""
    baseline = UsageBaseline(EstimateCounter())
    sample = conversations(24)[-1]
    baseline.record(sample, 2 * baseline.count(sample))
    check_counter(baseline)


def test_a_body_is_recorded_and_fitted_as_a_body() -> None:
    """The same request, the same count, however it is given."""
    body = {"model": "m", "messages": [system("be brief"), user(text(20))], "tools": TOOLS}
    baseline = UsageBaseline(EstimateCounter())
    baseline.record(body, 77)
    assert fit(body, 1_000, counter=baseline).report.tokens_after == 77
    assert fit(body["messages"], 1_000, counter=baseline, tools=TOOLS).report.tokens_after == 77
    baseline.record(body["messages"][1:], 78, system="be brief", tools=TOOLS)
    assert fit(body, 1_000, counter=baseline).report.tokens_after == 78


def test_its_state_is_plain_data() -> None:
    """JSON there and back; another counter's data and nonsense are refused."""
    baseline = UsageBaseline(EstimateCounter())
    messages = [user("hi"), call("A"), result("A", text(30))]
    baseline.record(messages[:1], 20)
    baseline.record(messages, {"input_tokens": 90, "output_tokens": 4}, answer=assistant("bye"), model=None)
    data = json.loads(json.dumps(baseline.to_dict()))
    again = UsageBaseline.from_dict(data, counter=EstimateCounter())
    fresh = [*messages, assistant("bye"), user(text(50, "new"))]
    assert again.count(fresh) == baseline.count(fresh)
    assert again.margin_tokens(500) == baseline.margin_tokens(500)
    assert again.to_dict() == data
    assert text(30) not in json.dumps(data)
    for broken in (
        {},
        {**data, "version": 9},
        {**data, "sizes": {"a": -1}},
        {**data, "total_tokens": True},
        {**data, "learned": {"": {"counted_tokens": 1}}},
        [],
    ):
        with pytest.raises(ConfigurationError):
            UsageBaseline.from_dict(broken, counter=EstimateCounter())  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="fixed"):
        UsageBaseline.from_dict(data, counter=FixedCounter())


@pytest.mark.parametrize("counter", [len, WordCounter().count, WordCounter, object()], ids=without_address)
def test_a_counter_of_whole_lists_is_refused(counter: Any) -> None:
    """Its answers are never split."""
    with pytest.raises(ConfigurationError, match="counter"):
        UsageBaseline(counter)


def test_a_request_that_is_none_is_refused() -> None:
    """Nothing is recorded of it."""
    baseline = UsageBaseline(WordCounter())
    for request in ("hi", 5, None):
        with pytest.raises(ConfigurationError, match="messages"):
            baseline.record(request, 5)
    body = {"messages": [user("hi")], "tools": TOOLS}
    with pytest.raises(ConfigurationError, match="twice"):
        baseline.record(body, 5, tools=TOOLS)
    assert baseline.count([user("a b c")]) == 3
    assert pickle.loads(pickle.dumps(ConfigurationError("x"))).args == ("x",)


def test_a_fit_goes_by_the_bills_there_were_when_it_began() -> None:
    """A report that comes in between changes no further budget of the same fit, and every new one."""
    messages = [user(text(40)), *(make(text(40, f"n{n}")) for n in range(9) for make in (assistant, user))]
    baseline = UsageBaseline(EstimateCounter())
    before = fit(messages, 2_000, counter=baseline)
    assert before.report.tokens_after == baseline.count(before.messages)
    untouched = fit(messages, 2_000, counter=EstimateCounter())
    baseline.record(before.messages, before.report.tokens_after * 4 // 3)
    for budget in (1_500, 900, 300):
        again = before.at(budget)
        assert again.messages == untouched.at(budget).messages
        assert again.report.tokens_after == untouched.at(budget).report.tokens_after
        assert again.report.counter == "estimate"
    assert baseline.count(before.messages) == before.report.tokens_after * 4 // 3
    context = Context(900, counter=baseline).add("history", messages)
    once = context.fit()
    baseline.record(once.messages, once.report.tokens_after * 5 // 4)
    assert once.at(900).report.tokens_after == once.report.tokens_after
    assert context.fit().report.tokens_after == baseline.count(context.fit().messages)


def test_without_a_form_it_takes_the_one_of_what_is_recorded() -> None:
    """Asked without a fit it reads the messages as they were billed; also after it was written and read."""
    messages = [
        user("look it up"),
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "a", "name": "find", "input": {"q": 1}}],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": text(30)}]},
    ]
    baseline = UsageBaseline(EstimateCounter())
    baseline.record(messages, 500)
    assert baseline.count(messages) == 500
    assert baseline.format.name == "anthropic"
    again = UsageBaseline.from_dict(baseline.to_dict(), counter=EstimateCounter())
    assert again.count(messages) == 500
    given = UsageBaseline(EstimateCounter(), format="openai_chat")
    given.record([user("hi")], 9)
    assert given.format.name == "openai_chat"


class Reads(WordCounter):
    """Knows what it was asked to count."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[Any] = []

    def count_message(self, message: Any, /) -> int:
        """Count and remember."""
        self.asked.append(message)
        return super().count_message(message)


def test_a_record_reads_what_is_new_and_what_was_edited_in_place() -> None:
    """Whatever left in front of it, and whether its objects are the same or equal ones."""
    counter = Reads()
    baseline = UsageBaseline(counter, format="openai_chat")
    reads = baseline._counter  # the twin of that form
    messages = [user(text(9)), assistant(text(7, "b")), user([{"type": "text", "text": "k"}])]
    baseline.record(messages, 90)
    reads.asked.clear()
    messages += [assistant(text(5, "d"))]
    baseline.record(messages, 99)
    assert reads.asked == messages[-1:]
    reads.asked.clear()
    baseline.record(json.loads(json.dumps(messages)), 99)
    baseline.record(messages, 99)
    baseline.record(messages[1:], 80)
    assert reads.asked == []
    messages[-2]["content"][0]["text"] = text(4, "e")  # the caller's own list, deep inside
    baseline.record(messages[1:], 84)
    assert reads.asked == [messages[-2]]
    assert baseline.count(messages[1:]) == 84


def test_what_cannot_be_compared_is_read_each_time() -> None:
    """An object may have changed without being unequal to itself."""
    part = Dumped(type="text", text="one two")
    messages = [{"role": "user", "content": [part]}, user("b")]
    baseline = UsageBaseline(WordCounter())
    baseline.record(messages, 20)
    first = baseline.count(messages[:1])
    part.text = text(30)
    baseline.record(messages, 60)
    assert baseline.count(messages) == 60
    assert baseline.count(messages[:1]) > first


class Index:
    """A whole number as numpy writes them."""

    def __index__(self) -> int:
        """Be 90."""
        return 90


def test_input_tokens_are_a_whole_number_of_any_make() -> None:
    """What has `__index__` is one."""
    assert usage_of(Index()) == usage_of(90)


@pytest.mark.parametrize("tokens", [10**9 + 1, 10**400, 1e308])
def test_a_bill_that_cannot_be_is_refused(tokens: float) -> None:
    """A sum with such a number would be of nothing else, and infinite as a float."""
    assert usage_of({"prompt_tokens": 10**9, "completion_tokens": 1}) == (10**9, 1)
    for usage in ({"prompt_tokens": tokens}, {"prompt_tokens": 5, "completion_tokens": tokens}):
        with pytest.raises(ConfigurationError, match=r"1,000,000,000 at the most"):
            usage_of(usage)
