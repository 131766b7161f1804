"""Agent loops that a scripted model plays: what it answers at each call, and what its tools say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

IMAGE = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJ"
    "RU5ErkJggg=="
)
"""One pixel."""

SYSTEM = "You look things up. Say what you found, and nothing else."
WORDS = [
    "the",
    "quick",
    "brown",
    "fox",
    "jumps",
    "over",
    "the",
    "lazy",
    "dog",
    "while",
    "seven",
    "old",
    "wizards",
    "box",
    "under",
    "a",
    "pale",
    "moon",
]


class LookError(Exception):
    """What the tool raises at some places."""


class Calls(NamedTuple):
    """The model calls its tool at these places, side by side."""

    places: tuple[int, ...]


class Says(NamedTuple):
    """The model ends the turn."""

    text: str


@dataclass(frozen=True, slots=True)
class Question:
    """What a user asks, and what the model does for it."""

    label: str
    """The first words of the text; told from every other question's."""
    text: str
    steps: tuple[Calls | Says, ...]
    has_image: bool = False
    is_marked: bool = False
    """Whether its user marks it for a prompt cache, where the framework has a word for that."""


@dataclass(frozen=True, slots=True)
class Loop:
    """A conversation of more than two hundred calls of a model."""

    name: str
    questions: tuple[Question, ...]
    huge_every: int = 0
    """Each result of so many is larger than the whole budget; 0: none."""
    huge_words: int = 12_000
    charged_as: str | None = "gpt-4o"
    """The model whose tokens are counted; None: the one that each request names."""

    @property
    def model_calls(self) -> int:
        """Count what the model answers."""
        return sum(len(question.steps) for question in self.questions)

    def look(self, place: int) -> str:
        """Answer as the tool does; at some places it raises."""
        if place % 41 == 17:
            raise LookError(self.answer(place))
        return self.answer(place)

    def answer(self, place: int) -> str:
        """Write what the tool says, or raises."""
        if place % 41 == 17:
            return f"{label_of(place)} nobody is there"
        is_huge = self.huge_every and place % self.huge_every == 5
        words = self.huge_words if is_huge else 20 + place * 37 % 160
        return f"{label_of(place)} {' '.join(_words(place, words))}"


def label_of(place: int) -> str:
    """Name the result of a place; its text begins with it."""
    return f"[result {place}]"


def _words(seed: int, count: int) -> Iterator[str]:
    return (WORDS[(seed + at * at) % len(WORDS)] for at in range(count))


def _question(number: int, steps: Sequence[Calls | Says], **said: bool) -> Question:
    label = f"[question {number}]"
    text = f"{label} {' '.join(_words(number, 25))}?"
    return Question(label, text, tuple(steps), **said)


def _steps(places: Iterator[int], calls: int) -> list[Calls | Says]:
    """Make the steps of one turn: one call, two side by side, three, and again; then an answer."""
    steps: list[Calls | Says] = []
    for at in range(calls - 1):
        steps.append(Calls(tuple(next(places) for _ in range(1 + at % 3))))
    steps.append(Says(f"It is so: {' '.join(_words(calls, 30))}."))
    return steps


def chat() -> Loop:
    """Sixty-two questions of four calls each, a few with a picture."""
    places = iter(range(10_000))
    made = tuple(_question(n, _steps(places, 4), has_image=n % 9 == 4) for n in range(62))
    return Loop("chat", made)


def agent() -> Loop:
    """One question, and two hundred and thirty calls to answer it."""
    return Loop("agent", (_question(0, _steps(iter(range(10_000)), 230)),))


def huge() -> Loop:
    """Eleven questions of twenty-two calls, where one result of sixteen alone passes the budget."""
    places = iter(range(10_000))
    made = tuple(_question(n, _steps(places, 22), has_image=n == 3) for n in range(11))
    return Loop("huge", made, huge_every=16)


def short() -> Loop:
    """Five questions of three calls each, up to six places side by side; three marked, one with a picture."""
    places = iter(range(10_000))
    made = []
    for number in range(5):
        steps = [
            *(Calls(tuple(next(places) for _ in range(2 + (number + at) % 5))) for at in range(2)),
            Says(f"It is so: {' '.join(_words(number, 30))}."),
        ]
        made.append(_question(number, steps, has_image=number == 2, is_marked=number in (0, 2, 3)))
    return Loop("short", tuple(made), huge_every=16, huge_words=5_000, charged_as=None)


LOOPS = (chat(), agent(), huge())
