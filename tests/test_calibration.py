"""What bills teach of a counter: factor, constant and spread, and the counter that goes by them."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest
from click.testing import CliRunner

from trimtab import EstimateCounter, cli, fit
from trimtab.counting import CalibratedCounter, CharCounter, UsageBaseline, counter_for, measure
from trimtab.errors import ConfigurationError, UnknownNameError
from trimtab.testing import check_counter
from trimtab.testing.hooks import Calibration, Point, calibration_of, learn, to_data

SIZES = (40, 90, 200, 700, 1_500, 3_000, 5_000, 8_000)
CHAT = [
    {"role": "system", "content": "You plan rides. " * 20},
    {"role": "user", "content": "Is the lake road open? " * 30},
    {"role": "assistant", "content": "It is closed until the end of June. " * 40},
    {"role": "user", "content": "And the forest track?"},
]


def points(factor: float, constant: float = 0, sizes: tuple[int, ...] = SIZES) -> list[Point]:
    """Make calls whose bills follow a rule."""
    return [Point(size, round(factor * size + constant)) for size in sizes]


def grown_by(calls: list[Point]) -> list[Point]:
    """Say what calls have more than the first, where that is 200 tokens or more."""
    counted, billed = calls[0]
    grown = [Point(one.counted_tokens - counted, one.billed_tokens - billed) for one in calls]
    return [one for one in grown if one.billed_tokens >= 200]


def a_calibration(**changes: Any) -> Calibration:
    """Make what is learned of gpt-4o, as it were."""
    data = learn(points(1.3), counter="gpt-4o").to_dict()
    return Calibration.from_dict({**data, **changes})


# -- learning


def test_counts_that_are_right_stay_as_they_are() -> None:
    """No factor, no constant, no spread."""
    found = learn(points(1), counter="c")
    assert (found.factor, found.constant_tokens) == (1, 0)
    assert (found.above_per_mille, found.below_per_mille) == (0, 0)
    assert (found.deviation_before, found.deviation_after) == (0, 0)


@pytest.mark.parametrize(
    ("factor", "constant"), [(1.3, 0), (0.8, 0), (1.0, 30), (1.0, -20), (1.25, 12), (0.9, 300)]
)
def test_a_factor_and_a_constant_are_found(factor: float, constant: int) -> None:
    """To a few percent of the bills that were learned from."""
    found = learn(points(factor, constant), counter="c")
    assert found.factor == pytest.approx(factor, abs=0.04)
    assert found.deviation_after < min(0.02, found.deviation_before)


def test_a_short_history_says_little_of_the_factor() -> None:
    """Bills of some tokens each may be twice the count for many reasons."""
    few = learn(points(2, sizes=(10, 11, 12, 13, 14)), counter="c")
    many = learn(points(2, sizes=(1_000, 1_100, 1_200, 1_300, 1_400)), counter="c")
    assert few.factor < 1.3
    assert many.factor == pytest.approx(2, abs=0.05)


def test_a_few_bills_of_something_else_teach_nothing() -> None:
    """One that is ten times the count is set aside; one that is three times moves no median."""
    usual = points(1.2)
    found = learn([*usual, Point(500, 5_000), Point(500, 1_600)], counter="c")
    assert found.calls == len(usual) + 1
    assert found.calls_apart == 1
    assert found.factor == pytest.approx(1.2, abs=0.03)


def test_a_correction_that_makes_the_median_worse_is_not_made() -> None:
    """Most counts are right and a few large ones are not: the median stays what it was."""
    found = learn(
        [*points(1, sizes=(100, 200, 300, 400)), *points(0.5, sizes=(9_000, 9_500, 9_900))], counter="c"
    )
    assert found.deviation_after <= found.deviation_before == 0
    assert found.factor == 1


def test_conversations_with_an_unknown_part_teach_the_factor_alone() -> None:
    """What is not recorded is another constant in each, and none of them is learned."""
    grown = [one for hidden in (20_000, 4_000) for one in grown_by(points(1.3, hidden))]
    found = learn([], grown, counter="c")
    assert found.factor == pytest.approx(1.3, abs=0.02)
    assert found.constant_tokens == 0
    assert found.calls == len(grown)


def test_a_constant_is_of_whole_calls_alone() -> None:
    """What a conversation grew by has none in it, however many calls it has."""
    found = learn(points(1, 60), grown_by(points(1, 20_000, tuple(range(100, 9_000, 300)))), counter="c")
    assert (found.factor, found.constant_tokens, found.deviation_after) == (1, 60, 0)


def test_the_spread_is_told_for_each_side_and_widened_where_calls_are_few() -> None:
    """Of nine calls the worst is taken by five quarters, of forty nearly all are: none more is left out."""
    few = learn([*points(1), Point(984, 1_084)], counter="c")
    assert (few.factor, few.above_per_mille, few.below_per_mille) == (1, 125, 0)
    many = learn([*points(1), *points(1), *points(1), *points(1), Point(984, 784)] * 2, counter="c")
    assert (many.factor, many.above_per_mille, many.below_per_mille) == (1, 0, 200)


def test_the_spread_holds_for_nearly_all_bills() -> None:
    """On each side: of 400 bills that scatter by a tenth, 97 % of as many others are within the margin."""
    random = Random(7)

    def scattered() -> list[Point]:
        sizes = [random.randrange(200, 8_000) for _ in range(400)]
        return [Point(size, round(1.2 * size * random.uniform(0.9, 1.15))) for size in sizes]

    counter = CalibratedCounter(EstimateCounter(), learn(scattered(), counter="estimate"))
    above = below = 0
    for counted, billed in scattered():
        tokens = counter._correct(counted)
        above += billed > tokens + (counter.margin_tokens(tokens) or 0)
        below += billed < tokens - (counter.over_margin_tokens(tokens) or 0)
    assert above <= 0.05 * 400
    assert below <= 0.05 * 400
    assert (counter.margin_tokens(4_000) or 0) < 0.2 * 4_000


@pytest.mark.parametrize("number", [0, 4])
def test_fewer_than_five_calls_are_refused(number: int) -> None:
    """With how many there were."""
    with pytest.raises(ConfigurationError, match=f"{number} calls teach nothing; 5 or more"):
        learn(points(1.3)[:number], counter="c")


# -- the counter


def test_counts_are_corrected_message_by_message() -> None:
    """Factor on each message and on what stands beside them, and the constant once a request."""
    inside = counter_for("gpt-4o")
    counter = CalibratedCounter(inside, a_calibration(factor=1.5, constant_tokens=7))
    sizes = [round(1.5 * inside.count_message(message) + 1e-9) for message in CHAT]
    fixed = round(1.5 * inside.fixed_tokens(None, None, has_system=True) + 1e-9) + 7
    assert [counter.count_message(message) for message in CHAT] == sizes
    assert counter.count(CHAT) == sum(sizes) + fixed
    assert counter.count_text("a token") == round(1.5 * inside.count_text("a token"))


def test_a_calibrated_counter_keeps_the_contract_and_says_what_it_is() -> None:
    """It is additive, never exact, and its name says by how many calls it was made."""
    counter = CalibratedCounter(counter_for("gpt-4o"), a_calibration())
    check_counter(counter)
    found = measure(CHAT, counter=counter)
    assert (counter.name, counter.exact, found.exact) == ("gpt-4o, calibrated by 8 calls", False, False)
    assert found.tokens == counter.count(CHAT)
    assert found.counter == counter.name
    assert fit(CHAT, 10_000, counter=counter).report.exact is False
    assert pickle.loads(pickle.dumps(counter)).count(CHAT) == counter.count(CHAT)


def test_margins_are_what_the_bills_leave_open() -> None:
    """Of five calls all of the counter's own is kept, of ten times as many a tenth."""
    inside = counter_for("claude-sonnet-4-5")
    own, own_over = inside.margin_tokens(10_000) or 0, inside.over_margin_tokens(10_000) or 0
    data = {"counter": "claude-sonnet-4-5", "above_per_mille": 10, "below_per_mille": 4, "factor": 1.0}
    few = CalibratedCounter(inside, a_calibration(**data, calls=5))
    many = CalibratedCounter(inside, a_calibration(**data, calls=50))
    most = CalibratedCounter(inside, a_calibration(**data, calls=5_000))
    assert (few.margin_tokens(10_000), few.over_margin_tokens(10_000)) == (own, own_over)
    assert (many.margin_tokens(10_000), many.over_margin_tokens(10_000)) == (101, own_over // 10)
    assert own // 10 < 101
    assert (most.margin_tokens(10_000), most.over_margin_tokens(10_000)) == (101, 41)
    assert most.over_margin_tokens(0) == 0


def test_counts_far_from_those_that_were_learned_from_keep_the_whole_margin() -> None:
    """Up to twice the largest, and down to half the smallest, the bills say how far off a count is."""
    inside = counter_for("claude-sonnet-4-5")
    learned = learn(points(1, 20, sizes=(1_000, 3_000, 4_000)) * 100, counter="claude-sonnet-4-5")
    assert (learned.smallest_tokens, learned.largest_tokens) == (1_000, 4_000)
    assert (learned.factor, learned.constant_tokens) == (1, 20)
    counter = CalibratedCounter(inside, learned)
    for tokens, is_near in ((509, False), (510, True), (8_040, True), (8_041, False), (100_000, False)):
        own, own_over = inside.margin_tokens(tokens) or 0, inside.over_margin_tokens(tokens) or 0
        shares = (own * 5 // 300, own_over * 5 // 300) if is_near else (own, own_over)
        assert (counter.margin_tokens(tokens), counter.over_margin_tokens(tokens)) == shares


@pytest.mark.parametrize(("calls", "tokens", "margin"), [(32, 200, None), (33, 200, 0), (33, 401, None)])
def test_where_the_counter_has_no_margin_few_bills_make_none(
    calls: int, tokens: int, margin: int | None
) -> None:
    """Nor do many, for sizes they are not of."""
    counter = CalibratedCounter(CharCounter(4), learn([Point(200, 200)] * calls, counter="chars/4"))
    assert (counter.margin_tokens(tokens), counter.over_margin_tokens(tokens)) == (margin, margin)


def test_thinking_of_ended_turns_is_charged_as_the_model_inside_does() -> None:
    """With a factor of one a request costs what it cost."""
    body: dict[str, Any] = {
        "model": "claude-sonnet-4-5",
        "messages": [
            {"role": "user", "content": "Hi"},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "Think. " * 50, "signature": "c2ln"},
                    {"type": "text", "text": "Hello."},
                ],
            },
            {"role": "user", "content": "And?"},
        ],
    }
    plain = measure(body)
    learned = a_calibration(counter="claude-sonnet-4-5", factor=1.0, constant_tokens=0)
    assert (
        measure(body, counter=CalibratedCounter(counter_for(body["model"]), learned)).tokens == plain.tokens
    )


def test_a_usage_baseline_may_have_one_inside() -> None:
    """A calibration is where a conversation begins; its own bills go on from there."""
    baseline = UsageBaseline(CalibratedCounter(counter_for("gpt-4o"), a_calibration()))
    assert baseline.count(CHAT) == CalibratedCounter(counter_for("gpt-4o"), a_calibration()).count(CHAT)
    baseline.record(CHAT, 999)
    assert baseline.count(CHAT) == 999


# -- files, and `counter_for`


def a_file(**changes: Any) -> dict[str, Any]:
    """Write the data of a file."""
    return to_data({"gpt-4o": a_calibration(**changes)})


def test_a_calibration_is_the_same_after_it_was_written(tmp_path: Path) -> None:
    """As data, as JSON and as a file; by the path or by what stands in it."""
    made = a_calibration()
    path = tmp_path / "learned.json"
    path.write_text(json.dumps(to_data({"gpt-4o": made})), encoding="utf-8")
    assert Calibration.from_dict(json.loads(json.dumps(made.to_dict()))) == made
    for given in (path, str(path), json.loads(path.read_text())):
        counter = counter_for("gpt-4o-2024-08-06", calibration=given)
        assert isinstance(counter, CalibratedCounter)
        assert counter.learned == made
        assert counter.count(CHAT) == CalibratedCounter(counter_for("gpt-4o"), made).count(CHAT)


def test_a_byte_order_mark_is_no_part_of_a_calibration(tmp_path: Path) -> None:
    """An editor may have put it there; the command line passes it over, and so does the library."""
    path, chat = tmp_path / "learned.json", tmp_path / "chat.json"
    path.write_text(json.dumps(a_file(factor=1.5)), encoding="utf-8-sig")
    chat.write_text(json.dumps(CHAT), encoding="utf-8")
    tokens = counter_for("gpt-4o", calibration=path).count(CHAT)
    told = run("count", chat, "--model", "gpt-4o", "--calibration", path)
    assert (json.loads(told.stdout)["tokens"], path.read_bytes()[:3]) == (tokens, b"\xef\xbb\xbf")


def test_one_of_estimates_estimates_and_one_of_an_unknown_model_is_enough() -> None:
    """The file says who counted; a model nobody knows is known by it."""
    estimates = a_file(counter="estimate")
    assert counter_for("gpt-4o", calibration=estimates).name == "estimate, calibrated by 8 calls"
    mine = {**estimates, "models": {"mine": estimates["models"]["gpt-4o"]}}
    made = counter_for("mine", calibration=mine)
    assert made.count(CHAT) == CalibratedCounter(EstimateCounter(), a_calibration(counter="estimate")).count(
        CHAT
    )
    with pytest.raises(UnknownNameError):
        counter_for("mine")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (to_data({"gpt-4": a_calibration()}), "is for gpt-4, not for 'gpt-4o'"),
        (to_data({}), "is for no model, not for 'gpt-4o'"),
        (a_file(counter="gpt-4"), "was learned for the counter 'gpt-4', not for 'gpt-4o'"),
        ({**a_file(), "version": 2}, "is not a trimtab.calibration of version 1"),
        ({**a_file(), "schema": "x"}, "is not a trimtab.calibration of version 1"),
        ({**a_file(), "models": [1]}, "has no models"),
        ({**a_file(), "models": {"gpt-4o": {"calls": 9}}}, "gpt-4o: a calibration needs counter, calls"),
        ("no/such/file.json", "no/such/file.json: No such file"),
        (__file__, "not JSON"),
    ],
)
def test_what_is_no_calibration_of_the_model_is_refused(given: str | Mapping[str, Any], told: str) -> None:
    """Typed, and with what is wrong."""
    with pytest.raises(ConfigurationError, match=told) as caught:
        counter_for("gpt-4o", calibration=given)
    assert caught.value.argument == "calibration"


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("calls", 4, "is of 4 calls; 5 or more"),
        ("calls", "9", "calls must be a whole number from"),
        ("calls_apart", -1, "calls_apart must be a whole number from"),
        ("factor", 0, "factor must be a number from"),
        ("factor", float("nan"), "factor must be a number from"),
        ("constant_tokens", 1.5, "constant_tokens must be a whole number from"),
        ("above_per_mille", -1, "above_per_mille must be a whole number from"),
        ("below_per_mille", None, "below_per_mille must be a whole number from"),
        ("deviation_after", "x", "deviation_after must be a number from"),
        ("factor", 1e308, "factor must be a number from 0.01 to 100, not 1e"),
        ("constant_tokens", -(10**9), "from -10,000,000 to 10,000,000, not -1000000000"),
        ("constant_tokens", 10**30, "constant_tokens must be"),
        ("calls", 10**30, "calls must be a whole number from 0 to 1,000,000,000"),
        ("deviation_before", -3, "deviation_before must be a number from 0"),
        ("smallest_tokens", 9_000, "smallest_tokens is 9,000, above largest_tokens, 8,000"),
        ("counter", 1, "counter must be the name"),
    ],
)
def test_numbers_of_a_file_are_checked(name: str, value: object, told: str) -> None:
    """Somebody may have written them."""
    data = {**a_calibration().to_dict(), name: value}
    with pytest.raises(ConfigurationError, match=told):
        calibration_of("gpt-4o", {**a_file(), "models": {"gpt-4o": data}})


# -- the command line


def run(*arguments: str | Path) -> Any:
    """Run `trimtab`."""
    return CliRunner().invoke(cli.command(), [*map(str, arguments)])


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Write a conversation, and a calibration of gpt-4o."""
    chat, learned = tmp_path / "chat.jsonl", tmp_path / "learned.json"
    chat.write_text(json.dumps({"model": "gpt-4o", "messages": CHAT}) + "\n", encoding="utf-8")
    learned.write_text(json.dumps(a_file(factor=1.5)), encoding="utf-8")
    return chat, learned


@contextmanager
def a_pipe(said: bytes) -> Iterator[str]:
    """Give a pipe, as a shell does by `<(…)`: it says something once."""
    reads, writes = os.pipe()
    os.write(writes, said)
    os.close(writes)
    yield f"/dev/fd/{reads}"
    os.close(reads)


def test_commands_count_by_a_calibration(files: tuple[Path, Path]) -> None:
    """`count`, `stats` and `fit` come to the same number."""
    chat, learned = files
    tokens = CalibratedCounter(counter_for("gpt-4o"), a_calibration(factor=1.5)).count(CHAT)
    option = ("--calibration", learned)
    assert json.loads(run("count", chat, *option).stdout)["tokens"] == tokens
    assert json.loads(run("stats", chat, *option).stdout)["tokens"] == tokens
    told = json.loads(run("fit", chat, "--budget", "8k", *option).stdout)
    assert told["report"]["tokens_after"] == tokens
    assert told["report"]["counter"] == "gpt-4o, calibrated by 8 calls"


@pytest.mark.parametrize(
    "command",
    [
        ("stats", "--budget", "8k", "--budget", "9k"),
        ("replay", "--budget", "8k", "--policy", "none"),
        ("replay", "--budget", "8k", "--policy", "none", "--jobs", "2"),
    ],
)
def test_a_calibration_is_read_once(files: tuple[Path, Path], command: tuple[str, ...]) -> None:
    """Also for several budgets, conversations and processes: a pipe cannot be read again."""
    chat, learned = files
    chat.write_text(chat.read_text(encoding="utf-8") * 3, encoding="utf-8")
    expected = run(*command, "--model", "gpt-4o", "--calibration", learned, chat)
    assert expected.exit_code == 0
    with a_pipe(learned.read_bytes()) as path:
        found = run(*command, "--model", "gpt-4o", "--calibration", path, chat)
    assert (found.exit_code, found.stdout) == (0, expected.stdout)


def test_a_page_reads_a_calibration_once(files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """However often its policies fit the conversation."""
    chat, learned = files
    counts = list[int]()

    def serve(subject: Any, **_: Any) -> None:
        counts.extend(subject.fit(word, None).report.tokens_after for word in ("default", "steady"))

    monkeypatch.setattr("trimtab.inspector.serve", serve)
    with a_pipe(learned.read_bytes()) as path:
        found = run("inspect", "--budget", "8k", "--calibration", path, chat)
    assert found.exit_code == 0, found.output
    assert counts == [CalibratedCounter(counter_for("gpt-4o"), a_calibration(factor=1.5)).count(CHAT)] * 2


def test_the_command_line_refuses_a_calibration_of_something_else(files: tuple[Path, Path]) -> None:
    """Before anything is read where the model is given; else with the conversation."""
    chat, learned = files
    option = ("--calibration", learned)
    for arguments, told in (
        (("--model", "gpt-4"), "--calibration is for gpt-4o, not for 'gpt-4'"),
        (("--model", "gpt-4o", "--counter", "estimate"), "was learned for the counter 'gpt-4o'"),
    ):
        result = run("count", chat, *option, *arguments)
        assert result.exit_code == 2
        assert told in result.output
    chat.write_text(json.dumps({"messages": CHAT}) + "\n", encoding="utf-8")
    result = run("count", chat, *option)
    assert result.exit_code == 1
    assert "--calibration needs a model: pass --model NAME" in result.output
    learned.write_text("[1]", encoding="utf-8")
    assert "a mapping is expected, not [1]" in run("count", chat, *option).output
