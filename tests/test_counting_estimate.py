"""The estimate: how it compares with o200k on real messages, and what it costs."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.complexity.counting_machine import assert_linear
from trimtab.counting import EstimateCounter, clear_counts, counter_for

FILES = [
    "glaive_toolcall_en",
    "glaive_toolcall_zh",
    "pi_coding_sessions",
    "swe_agent_trajectories",
    "tau_airline_gpt4o",
]


def estimate_tokens(text: str) -> int:
    """Estimate a text that nobody asked about before."""
    clear_counts()
    return EstimateCounter().count_text(text)


@pytest.mark.parametrize("file", FILES)
def test_the_estimate_is_at_or_above_the_count_for_95_of_100_messages(data_dir: Path, file: str) -> None:
    """SPEC B0, for each set of conversations on its own, Chinese included; and not absurdly above."""
    exact, estimate = counter_for("gpt-4o"), EstimateCounter()
    ratios: list[float] = []
    for line in (data_dir / f"{file}.jsonl").read_text(encoding="utf-8").splitlines():
        for message in json.loads(line)["messages"]:
            ratios.append(estimate.count_message(message) / exact.count_message(message))
    assert sum(ratio >= 1 for ratio in ratios) >= 0.95 * len(ratios)
    assert min(ratios) > 0.75
    assert 1.0 <= median(ratios) <= 1.25


@pytest.mark.parametrize(
    "text",
    [
        "How many tokens is this?",
        "Не могли бы вы помочь мне забронировать билет на самолёт на следующую пятницу?",
        "هل يمكنك مساعدتي في حجز تذكرة طيران يوم الجمعة القادم؟",
        "האם תוכל לעזור לי להזמין כרטיס טיסה ביום שישי הבא?",
        "क्या आप मुझे अगले शुक्रवार को हवाई टिकट बुक करने में मदद कर सकते हैं?",
        "คุณช่วยผมจองตั๋วเครื่องบินในวันศุกร์หน้าได้ไหม",
        "다음 주 금요일에 비행기 표를 예약하는 것을 도와주실 수 있나요?",
        "来週の金曜日の飛行機のチケットを予約するのを手伝っていただけますか？カタカナ",
        "我想预订下周五的机票，你能帮我吗？",
        "Μπορείτε να με βοηθήσετε να κλείσω ένα εισιτήριο την επόμενη Παρασκευή;",
        "Könnten Sie mir bitte helfen, für nächsten Freitag einen Flug zu buchen?",
        "Je préférerais être côté fenêtre, et j’aimerais connaître le coût des bagages.",
        "ሰላም፣ በሚቀጥለው ዓርብ ትኬት ለመያዝ ሊረዱኝ ይችላሉ?",
        "😀🎉🚀❤️👍🏽👨‍👩‍👧‍👦🇩🇪🤖✨🔥",
        "┌──────────┐ → ← ✓ ✗ “quoted” … —",
        "a" * 1_000,
        " " * 1_000,
        "=" * 1_000,
        "1234567890" * 20,
    ],
)
def test_the_estimate_errs_high_in_every_script(text: str) -> None:
    """No script is cheap by accident; none costs thirty times too much."""
    exact = counter_for("gpt-4o").count_text(text)
    assert exact <= estimate_tokens(text) <= 30 * exact


def test_nothing_costs_nothing() -> None:
    """An empty text has no tokens, any other has one at least."""
    assert estimate_tokens("") == 0
    assert estimate_tokens(" ") == 1
    assert estimate_tokens("\x00") >= 1


@given(st.text(st.characters(), max_size=200))
def test_any_text_has_an_estimate(text: str) -> None:
    """Lone surrogates too; at least 1 and at most 7 tokens a character."""
    assert bool(text) <= estimate_tokens(text) <= 7 * len(text) + 1


@pytest.mark.parametrize("unit", ["a", " ", "= 1x", "的", "😀é"])
def test_the_estimate_takes_steps_in_proportion(unit: str) -> None:
    """Twice the text takes about twice the steps: nothing in it looks back."""
    assert_linear(lambda size: lambda _: estimate_tokens(unit * size), (1_000, 2_000, 4_000))


def test_a_model_without_a_tokenizer_gets_an_estimate() -> None:
    """And it says that it is one."""
    from trimtab.models import ModelFacts, register_model

    register_model(ModelFacts(name="test-estimate-only"), replace=True)
    counter = counter_for("test-estimate-only")
    assert isinstance(counter, EstimateCounter)
    assert (counter.name, counter.exact) == ("test-estimate-only", False)
