"""How many exact values of users are in view at a fifth of a conversation, with `must_keep` and without.

    python -m bench.exact_values DATA

DATA is a folder with tau_airline_gpt4o.jsonl and glaive_toolcall_en.jsonl, one conversation a line. Beside
them are conversations made here: 200 messages of small talk each, in which one user message of five says a
value.
The summarizer is a bad one, on purpose: it keeps three of ten sentences and half of the numbers, and asks no
model. What counts as a value here is written for this bench and knows nothing of trimtab's own finder.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

from trimtab import BudgetExceededError, Session, fit
from trimtab.counting import counter_for, measure
from trimtab.formats import get_format
from trimtab.strategies import Summarize
from trimtab.summaries import SummaryRequest

Message = dict[str, Any]

SHARES = (0.2, 0.5)
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_NUMBER = re.compile(r"\d+")

VALUES = re.compile(
    r"[\w.+-]+@[\w-]+\.\w+"  # mail addresses
    r"|https?://\S+[\w/]"
    r"|\b(?=\w*\d)(?=\w*[A-Za-z_])\w{3,}\b"  # ids: letters or underscores and digits
    r"|[$€£]\d[\d,.]*\d|[$€£]\d"
    r"|\b\d[\d,.:/-]*\d\b"  # numbers and dates of two digits and more
    r"|\b[A-Z]{3,}\b"  # codes of airports, currencies
)
"""What this bench takes for a user's value: strict kinds, of which nobody can say that they are none."""


class Lossy:
    """Keeps three of ten sentences, and half of the numbers in these, as far as its limit goes."""

    name = "lossy"

    def __init__(self, counter: Any) -> None:
        self._count = counter.count_text

    def summarize(self, request: SummaryRequest, /) -> str:
        """Summarize messages behind the summary so far."""
        format = get_format("openai_chat")
        said = [request.existing or ""]
        said += [slot.text for message in request.messages for slot in format.texts(message)]
        sentences = [one.strip() for text in said for one in _SENTENCE.split(text) if one.strip()]
        kept = list[str]()
        for sentence in (one for at, one in enumerate(sentences) if at % 10 in (0, 4, 7)):
            if request.max_tokens and self._count(" ".join([*kept, sentence])) > request.max_tokens:
                break
            kept.append(sentence)
        seen = iter(range(10**6))
        halved = _NUMBER.sub(lambda number: "" if next(seen) % 2 else number[0], " ".join(kept))
        return halved if halved.strip() else "They talked."


def users_values(messages: Sequence[Message]) -> set[str]:
    """List what users said that has to be said as it was."""
    texts = [str(message["content"]) for message in messages if message["role"] == "user"]
    return {match[0] for text in texts for match in VALUES.finditer(text)}


def share_in(view: Sequence[Message], values: set[str]) -> tuple[int, int]:
    """Count the values that a view says, and all."""
    # Arguments of calls and results say them, too: the model sees them.
    said = (
        json.dumps(view, ensure_ascii=False).replace("&amp;", "&").replace("&lt;", "<").replace("&gt;", ">")
    )
    found = sum(1 for value in values if re.search(rf"(?<!\w){re.escape(value)}(?!\w)", said))
    return found, len(values)


def conversations(path: Path) -> Iterator[list[Message]]:
    """Read conversations in which users say values, without their system text."""
    for line in path.read_text(encoding="utf-8").splitlines():
        messages = [one for one in json.loads(line)["messages"] if one["role"] != "system"]
        if len(messages) >= 6 and users_values(messages):
            yield messages


def made(count: int = 15) -> Iterator[list[Message]]:
    """Make long conversations of two who chat; values are told at random places, each once."""
    for seed in range(count):
        random = Random(seed)
        messages = list[Message]()
        for turn in range(100):
            said = [" ".join(random.choices(_TALK, k=random.randint(6, 14))) for _ in range(6)]
            if random.random() < 0.2:
                value = random.choice(_KINDS).format(1_000 + turn)
                said[random.randrange(3)] += f", and it is {value}"
            sentences = [f"{one.capitalize()}." for one in said]
            messages += [
                {"role": "user", "content": " ".join(sentences[:3])},
                {"role": "assistant", "content": " ".join(sentences[3:])},
            ]
        yield messages


_TALK = (
    "we",
    "talk",
    "about",
    "the",
    "garden",
    "and",
    "weather",
    "while",
    "friends",
    "come",
    "over",
    "with",
    "bread",
)
_KINDS = ("order_{}", "a{}@x.org", "${}", "HAT{}", "{}")


def joined(talks: Sequence[list[Message]], count: int) -> list[list[Message]]:
    """Put short conversations together, so that there is something to summarize more than once."""
    return [[one for talk in talks[at : at + count] for one in talk] for at in range(0, len(talks), count)]


def views(messages: list[Message], budget: int, counter: Any) -> Iterator[tuple[str, list[Message], int]]:
    """Yield the view of each way at the end of a conversation, and how many summaries were written."""
    ways: dict[str, dict[str, Any]] = {
        "values": {"must_keep": "values"},
        "values, half of the room": {"must_keep": "values", "max_kept_ratio": 0.5},
        "None": {"must_keep": None},
    }
    for name, options in ways.items():
        session = Session(
            budget, counter=counter, summarizer=Lossy(counter), summarize_threshold_messages=4, **options
        )
        for message in messages:
            session.add(message)
        written = len(list(session.history(kinds=("summary",))))
        yield f"session, must_keep={name}", session.messages(), written
    for keep in ("values", None):
        strategy = Summarize(Lossy(counter), must_keep=keep)
        yield f"fit, must_keep={keep}", fit(messages, budget, counter=counter, strategy=strategy).messages, 1
    yield "fit, no summary", fit(messages, budget, counter=counter).messages, 0


def main(folder: Path) -> None:
    """Print a row for each file, share and way."""
    counter = counter_for("gpt-4o")
    sets = {
        "tau": list(conversations(folder / "tau_airline_gpt4o.jsonl")),
        "glaive": joined(list(conversations(folder / "glaive_toolcall_en.jsonl")), 8),
        "made": list(made()),
    }
    for name, talks in sets.items():
        for share in SHARES:
            totals: dict[str, list[int]] = {}
            fitting = 0
            for messages in talks:
                budget = max(100, int(share * measure(messages, counter=counter).tokens))
                try:
                    found = list(views(messages, budget, counter))
                except BudgetExceededError:  # its latest message alone is larger than that
                    continue
                fitting += 1
                values = users_values(messages)
                for way, view, written in found:
                    in_view, count = share_in(view, values)
                    row = totals.setdefault(way, [0, 0, 0])
                    row[0] += in_view
                    row[1] += count
                    row[2] += written
            print(f"{name}, {share:.0%}: {fitting} of {len(talks)} conversations")
            for way, (in_view, count, written) in totals.items():
                each = written / fitting
                print(f"  {way:44}{in_view / count:.2f}  {in_view} of {count}; {each:.1f} summaries each")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
