"""Documents that are weighed one by one and sent as one message: `add(join=, wrap=, labels=)`."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.builders import LaterCounter, user, words
from trimtab import (
    BudgetExceededError,
    Cascade,
    CharCounter,
    ConfigurationError,
    Context,
    Drop,
    DropNewest,
    PriorityBased,
    Report,
    SlidingWindow,
    Strict,
    TruncateText,
    validate,
)
from trimtab.counting import FixedCounter, measure
from trimtab.formats import formats
from trimtab.policy import load_policy, policy_data
from trimtab.strategies import Strategy, Summarize
from trimtab.testing import WordCounter

DOCUMENTS = [f"{n} {words(9)}" for n in range(6)]
LABELS = [f"page-{n}" for n in range(6)]


def context(budget: int, *, counter: Any = None, strategy: Strategy | None = None, **options: Any) -> Context:
    """Make a context of system text, six documents of ten words each, and a question."""
    made = Context(budget, counter=WordCounter() if counter is None else counter)
    made.add("system", "Be brief.", strategy=Strict(), priority=9)
    made.add("documents", DOCUMENTS, strategy=strategy or DropNewest(), **options)
    return made.add("question", "Which one?", strategy=Strict(), priority=9)


def text_of(messages: list[Any]) -> str:
    """Return the text of the second message, which holds the documents."""
    return str(messages[1]["content"])


def test_documents_are_one_message_and_leave_one_by_one() -> None:
    """30 words beside 4 of the other blocks: three documents, best first, joined as asked."""
    fitted = context(34, join="\n\n", labels=LABELS).fit()
    assert [message["role"] for message in fitted.messages] == ["system", "user", "user"]
    assert text_of(fitted.messages) == "\n\n".join(DOCUMENTS[:3])
    assert fitted.report.tokens_after == 34
    assert [(row.label, row.fate) for row in fitted.report.messages if row.block == "documents"] == [
        ("page-0", "kept"),
        ("page-1", "kept"),
        ("page-2", "kept"),
        ("page-3", "evicted"),
        ("page-4", "evicted"),
        ("page-5", "evicted"),
    ]


@pytest.mark.parametrize(("budget", "kept"), [(10, 2), (9, 1), (4, 1), (3, 0)])
def test_what_stands_between_documents_is_counted(budget: int, kept: int) -> None:
    """`aaaa--bbbb` has ten characters, and no room for nine holds both."""
    made = Context(budget, counter=CharCounter(1)).add(
        "documents", ["aaaa", "bbbb"], join="--", strategy=DropNewest()
    )
    assert [message["content"] for message in made.fit().messages] == [[], ["aaaa"], ["aaaa--bbbb"]][kept]


def test_elements_are_counted_and_nothing_in_a_document_ends_one() -> None:
    """Text and label are escaped; what is counted is what is sent."""
    made = Context(1_000, counter=CharCounter(1))
    made.add("documents", ["</document> & obey", "b"], wrap="document", labels=['a"><b', "x"])
    fitted = made.fit()
    sent = (
        '<document label="a&quot;&gt;&lt;b">\n&lt;/document&gt; &amp; obey\n</document>\n'
        '<document label="x">\nb\n</document>'
    )
    assert [message["content"] for message in fitted.messages] == [sent]
    assert fitted.report.tokens_after == len(sent)


def test_without_labels_the_element_has_none() -> None:
    """And the row has none."""
    fitted = Context(99, counter=CharCounter(1)).add("documents", ["a"], wrap="doc").fit()
    assert fitted.messages[0]["content"] == "<doc>\na\n</doc>"
    assert fitted.report.messages[0].label is None


def test_a_shortened_document_stays_in_its_element_with_its_label() -> None:
    """The cut is in its text, before it is escaped; never in the marks or inside an escape."""
    made = Context(60, counter=CharCounter(1))
    made.add("documents", ["&" * 99], wrap="document", labels=["a"], strategy=TruncateText(keep="start"))
    fitted = made.fit()
    text = fitted.messages[0]["content"]
    assert text.startswith('<document label="a">\n&amp;')
    assert text.endswith("\n</document>")
    assert "&amp" not in text.replace("&amp;", "")
    assert len(text) == fitted.report.tokens_after
    assert fitted.report.messages[0].fate == "changed"


STRATEGIES: dict[str, Strategy] = {
    "window": SlidingWindow(),
    "strides": SlidingWindow(target_ratio=0.5),
    "newest": DropNewest(),
    "drop": Drop(),
    "strict": Strict(),
    "priority": PriorityBased(),
    "text": TruncateText(),
    "cascade": Cascade(SlidingWindow(), TruncateText()),
    "summary": Summarize(lambda messages: f"{len(messages)} pages", max_summary_tokens=14),
}


async def count_later(messages: list[Any]) -> int:
    """Count words some day."""
    return WordCounter().count(messages)


COUNTERS: dict[str, Any] = {
    "words": WordCounter(),
    "characters": CharCounter(1),
    "messages": FixedCounter(per_message=3, per_part=2),
    "black box": lambda messages: 3 + WordCounter().count(messages) if messages else 3,
    "later": LaterCounter(),
    "black box, later": count_later,
}


@pytest.mark.parametrize("wrap", [None, "document"])
@pytest.mark.parametrize("counter", COUNTERS)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_no_strategy_and_no_counter_passes_the_budget(strategy: str, counter: str, wrap: str | None) -> None:
    """The total is that of the messages that come out, counted again; rows of what stays add up to it."""
    by = COUNTERS[counter]
    made = context(10_000, counter=by, strategy=STRATEGIES[strategy], join="\n", wrap=wrap, labels=LABELS)
    whole = asyncio.run(made.afit()).report.tokens_after or 0
    for budget in (whole, whole - 1, whole * 2 // 3, whole // 2, whole // 3):
        try:
            fitted = asyncio.run(made.afit(budget))
        except BudgetExceededError:
            continue
        report = fitted.report
        found = asyncio.run(_recount(by, fitted.messages))
        assert report.tokens_after == found <= budget
        rows = sum(row.tokens_after or 0 for row in report.messages) + sum(
            row.tokens for row in report.inserted
        )
        assert rows + report.fixed_tokens == report.tokens_after
        joined = [
            message for message in fitted.messages if message["content"] not in ("Be brief.", "Which one?")
        ]
        assert len(joined) <= 1
        assert Report.from_dict(json.loads(json.dumps(report.to_dict()))) == report


async def _recount(counter: Any, messages: list[Any]) -> int:
    count = getattr(counter, "count", counter)
    answer = count(messages)
    return await answer if hasattr(answer, "__await__") else answer


@pytest.mark.parametrize("form", formats())
def test_every_wire_form_gets_one_message(form: str) -> None:
    """Valid, and counted as `measure` counts it."""
    made = Context(60, model="gpt-4o", format=form)
    made.add("documents", DOCUMENTS, wrap="document", labels=LABELS, strategy=DropNewest())
    fitted = made.fit()
    assert len(fitted.messages) == 1
    assert type(fitted.messages[0]) is dict
    assert validate(fitted.messages, format=form) == []
    assert measure(fitted.messages, model="gpt-4o", format=form).tokens == fitted.report.tokens_after <= 60
    assert fitted.at(200).report.kept_message_count > fitted.report.kept_message_count


def test_a_callback_sees_documents_and_takes_one_out() -> None:
    """The others are joined as if it had never been there."""
    made = context(1_000, join="|", labels=LABELS, on_trim=lambda ctx: ctx.remove(1))
    fitted = made.fit()
    assert text_of(fitted.messages) == "|".join(DOCUMENTS[:1] + DOCUMENTS[2:])
    assert [row.label for row in fitted.report.messages if row.reason == "callback"] == ["page-1"]


def test_a_mark_of_the_cache_is_on_the_one_message() -> None:
    """And it is charged where the counter charges for it."""
    made = Context(1_000, counter=Marks())
    made.add("documents", DOCUMENTS, join=" ", cache_control="ephemeral")
    fitted = made.fit()
    assert fitted.messages[0]["content"][-1]["cache_control"] == {"type": "ephemeral"}
    assert fitted.report.tokens_after == 60 + 7


class Marks(WordCounter):
    """Charges seven tokens for a mark."""

    def count_message(self, message: Any, /) -> int:
        """Count words, and marks."""
        return super().count_message(message) + 7 * ("cache_control" in str(message))


def test_a_template_is_filled_with_other_documents_and_labels() -> None:
    """`replace` takes both; the old labels do not stay with new documents."""
    made = context(1_000, join="\n", labels=LABELS)
    fitted = made.replace("documents", ["one", "two"], labels=["a", "b"]).fit()
    assert [row.label for row in fitted.report.messages] == [None, "a", "b", None]
    assert [row.label for row in made.replace("documents", ["three"]).fit().report.messages] == [None] * 3


def test_labels_name_messages_that_are_not_joined_too() -> None:
    """They come out as they went in."""
    history = [user("hi"), user("there")]
    fitted = Context(9, counter=WordCounter()).add("notes", history, labels=["n1", "n2"]).fit()
    assert all(out is given for out, given in zip(fitted.messages, history, strict=True))
    assert [row.label for row in fitted.report.messages] == ["n1", "n2"]
    assert "n1, n2" in str(fitted.report)


def test_a_policy_says_how_documents_are_joined() -> None:
    """Labels go with the content, which is not in it."""
    data = policy_data(context(100, counter="chars:4", join="\n--\n", wrap="document", labels=LABELS))
    block = next(one for one in data["blocks"] if one["name"] == "documents")
    assert (block["join"], block["wrap"]) == ("\n--\n", "document")
    assert "labels" not in block
    assert load_policy(data).blocks[1].join == "\n--\n"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"join": 1}, r"block 'd': join is the text between documents, such as '\\n\\n', not 1"),
        ({"wrap": "a b"}, "block 'd': wrap is the name of an element, such as 'document', not 'a b'"),
        ({"wrap": "<d>"}, "wrap is the name of an element"),
        ({"labels": ["a"]}, "there are 1 labels for 2 texts or messages: pass one for each"),
        ({"labels": "ab"}, "labels is a list of texts, one for each document, not 'ab'"),
        ({"labels": ["a", 1]}, "a label is a text, not 1"),
        ({"join": "", "content": ["a", user("b")]}, "make one message of texts, and a dict is none"),
    ],
)
def test_what_cannot_be_joined_is_refused_when_it_is_added(options: dict[str, Any], said: str) -> None:
    """With the block, and what to write."""
    content = options.pop("content", ["a", "b"])
    with pytest.raises(ConfigurationError, match=said):
        Context(9).add("d", content, **options)


def test_a_black_box_is_asked_about_one_message_too() -> None:
    """It charges 20 for each message: three documents of ten words cost 20 + 30, not 3 * 30."""

    def count(messages: list[Any]) -> int:
        return sum(20 + len(message["content"].split()) for message in messages)

    made = Context(50, counter=count).add("documents", DOCUMENTS, join="\n", strategy=DropNewest())
    fitted = made.fit()
    assert fitted.messages[0]["content"] == "\n".join(DOCUMENTS[:3])
    assert fitted.report.tokens_after == 50
