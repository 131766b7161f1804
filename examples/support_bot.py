"""A support bot: facts about the customer, documents a search finds, the talk, and the question.

    python examples/support_bot.py
    python examples/support_bot.py --budget 600

Everything is offline. The customer's words and the bot's answers are written in this file, and no model
is asked; what is real is the search, and that each request is fitted into the budget before the model
would be called. After the last turn the whole report is printed, and every request was checked.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from trimtab import BudgetExceededError, Context, DropNewest, Fitted, Strict, validate

SYSTEM = (
    "You answer for a bicycle shop. Use the documents, and name the one you rely on. If they do not tell, "
    "say so and offer a person."
)

FACTS = (
    "The customer is called Ada Brandt and writes from Bremen.",
    "Order 7741: a city bicycle with belt drive, delivered on 3 May.",
    "She prefers short answers.",
)

DOCUMENTS = {
    "belt drive": (
        "A belt needs no oil, and oil harms it. Wash belt and sprockets with water and a soft brush. If "
        "it squeaks while pedalling, it is dry dust: rinse it. If it still squeaks, the belt tension must "
        "be checked."
    ),
    "chain care": (
        "Oil the chain every 300 km and after each ride in heavy rain. Clean it first, let it dry, then "
        "put one drop on each link. Take a wet lube for winter and a dry lube for summer."
    ),
    "belt tension": (
        "A belt that is too loose can skip under load, and one that is too tight wears the bearings. The "
        "shop measures the tension free of charge within the first year. Bring the bicycle, no "
        "appointment needed."
    ),
    "guarantee": (
        "The frame has a guarantee of ten years, belt and bearings of two years, wear of tyres and brake "
        "pads is not covered. Bring the order number. A repair under guarantee takes about one week."
    ),
    "returns": (
        "A bicycle that was ridden less than 30 km can be returned within 30 days of delivery. We collect "
        "it free of charge. The money comes back within one week after the bicycle has arrived."
    ),
    "opening hours": (
        "The workshop in Bremen is open from Monday to Friday from 9 to 18, and on Saturday from 10 to "
        "14. In winter it closes at 17. On Sunday a machine at the door takes bicycles for repair."
    ),
    "tyres": (
        "Pump city tyres to 4 bar once a month. Look at the rubber before each season and after 3,000 km, "
        "and change it if you see threads or cracks."
    ),
}

TALK = (
    (
        "Hello! My new bicycle squeaks when I am pedalling.",
        "Hello Ada! Dry dust on the belt: rinse it [belt drive].",
    ),
    (
        "I have done that, and it still squeaks. Should I oil the belt?",
        "No, oil harms it. Let us check the tension.",
    ),
    ("What does it cost to measure the belt tension?", "Nothing in the first year [belt tension]."),
    ("Is the workshop in Bremen open on Saturday?", "Yes, from 10 to 14 [opening hours]."),
    (
        "If the bearings are worn, is that under guarantee?",
        "Yes, for two years. Bring the order number [guarantee].",
    ),
    ("And if it takes too long, can I return the bicycle for my money?", ""),
)
"""What the customer writes, and what the bot answered; the last question is still to be answered."""

MOST_FOUND = 4
"""Documents a search gives; the budget decides how many of them the model sees."""

_COMMON = re.compile(
    r"\b(?:an?|and|are|can|do|for|from|i|if|in|is|it|my|of|on|or|that|the|too?|was|what|when|with)\b"
)
"""Words that every text has; none is worth a search."""


class Found(NamedTuple):
    """A document the search found."""

    name: str
    text: str


def main() -> None:
    """Go through the talk, fit each request, and print the report of the last one."""
    parser = argparse.ArgumentParser(description="A support bot with facts and documents, offline.")
    parser.add_argument("--budget", type=int, default=420, help="tokens a request may have (420)")
    budget_tokens = parser.parse_args().budget
    print(f"A scripted talk: no model is asked. Each request is fitted into {budget_tokens:,} tokens.\n")
    template = make_template(budget_tokens)
    history: list[dict[str, Any]] = []
    fitted: Fitted[Any] | None = None
    for question, answer in TALK:
        found = search(question)
        try:
            fitted = make_request(template, found, history, question).fit()
        except BudgetExceededError as error:
            parser.exit(1, f"The request does not fit: {error}\n")
        show_turn(fitted, question, found)
        check(fitted, budget_tokens)
        history += [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
    assert fitted is not None
    print(f"\nThe last request:\n\n{fitted.report}")
    print("\nAll requests are within the budget and valid.")


def make_template(budget_tokens: int) -> Context:
    """Say once what may leave and what may not; texts come with each request.

    No model is named, so tokens are estimated, and nothing has to be installed.
    """
    return (
        Context(budget_tokens)
        .add("system", SYSTEM, priority=100, strategy=Strict())
        .add("facts", [f"Known of the customer: {fact}" for fact in FACTS], priority=90, role="system")
        .add("documents", None, priority=60, min_ratio=0.2, max_ratio=0.4, strategy=DropNewest())
        .add("history", None, priority=50)
        .add("question", None, priority=95, strategy=Strict())
    )


def make_request(
    template: Context, found: Sequence[Found], history: Sequence[dict[str, Any]], question: str
) -> Context:
    """Fill a copy of the template."""
    request = template.clone().replace("history", history).replace("question", question)
    return request.replace("documents", [f"Document '{name}': {text}" for name, text in found])


def search(question: str) -> list[Found]:
    """Rank documents by the words they share with the question, rare words first.

    A real bot would ask an index.
    """
    wanted = _words(question)
    known = {name: _words(f"{name} {text}") for name, text in DOCUMENTS.items()}
    counts = {word: sum(word in words for words in known.values()) for word in wanted}
    scores = {name: sum(1 / counts[word] for word in wanted & words) for name, words in known.items()}
    ranked = sorted((name for name in scores if scores[name]), key=lambda name: -scores[name])
    return [Found(name, DOCUMENTS[name]) for name in ranked[:MOST_FOUND]]


def _words(text: str) -> set[str]:
    return set(re.findall(r"[a-z]+", _COMMON.sub("", text.lower())))


def show_turn(fitted: Fitted[Any], question: str, found: Sequence[Found]) -> None:
    """Say which of the documents the model would see, and what else was evicted."""
    rows = [row for row in fitted.report.messages if row.block == "documents"]
    seen = [one.name for one, row in zip(found, rows, strict=True) if row.fate != "evicted"]
    without = [one.name for one in found if one.name not in seen]
    old = sum(row.fate == "evicted" for row in fitted.report.messages if row.block == "history")
    print(f"> {question}")
    print(f"  {fitted.report.tokens_after:,} tokens; documents: {', '.join(seen) or 'none'}", end="")
    print(f"; without {', '.join(without)}" if without else "", end="")
    print(f"; {old} old messages evicted" if old else "")


def check(fitted: Fitted[Any], budget_tokens: int) -> None:
    """Trust nothing: the numbers are within the budget, and a provider would take the request."""
    assert fitted.report.tokens_after <= budget_tokens
    assert validate(fitted.messages) == []


if __name__ == "__main__":
    main()
