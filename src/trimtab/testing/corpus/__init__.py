"""Requests that break trimmers, as data: run them through trimtab or through a trimmer of your own.

`python -m trimtab.testing.corpus` fits every case and prints what was wrong; `--trimmer module:function`
calls a function `(case) -> messages` instead. From Python: `cases()` returns the cases, and `check(case,
messages)` lists what is wrong with an answer. Each case was found in an issue tracker or by fuzzing trimtab.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import takewhile
from operator import eq
from pathlib import Path
from typing import Any, Self

from trimtab._fit import fit
from trimtab._shared.checks import unknown_name
from trimtab._shared.lazy import public_dir
from trimtab.conversation.validity import validate
from trimtab.counting import AdditiveCounter, CharCounter, CountRequest, FixedCounter
from trimtab.errors import BudgetExceededError, ConfigurationError, ContextError
from trimtab.formats import Request, get_format, mapping_of
from trimtab.strategies import EvictionRequest, EvictionResult, Strategy, create_strategy
from trimtab.testing.word_counter import WordCounter

__all__ = ["COUNTERS", "Case", "cases", "check", "read_cases", "run", "strategy_of"]

__dir__ = public_dir(globals())


# `Case`: a request, a budget, and what is right about an answer to it.


COUNTERS: Mapping[str, Callable[[str], AdditiveCounter]] = {
    "words": lambda form: WordCounter(format=form),
    "chars": lambda form: CharCounter(format=form),
    "fixed": lambda form: FixedCounter(3, 2, 5, format=form),
}
"""Counters by their names in cases; each takes the name of the wire form."""


MENDED = ("orphan_result", "repeated_result", "unanswered_call", "late_result", "wrong_order")
"""Rules of `validate` about pairs and order, whose breaches `repair` takes away in every form."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A request that trimmers break, and its budget.

    Args:
        id: Its name in messages; unique in the corpus.
        form: Name of its wire form.
        request: The request body; never changed.
        budget_tokens: Room for messages, system text and tools, counted by `counter`.
        counter: What a token is: "words" (`WordCounter`), "chars" (`CharCounter`) or "fixed" (a sum per
            message).
        strategy: A strategy as data, for trimmers with strategies; None: the trimmer's own.
        pin: Positions of messages that must not be changed or evicted, if the trimmer supports this.
        pending_calls: Ids of calls whose results are still to come, if the trimmer supports this.
        repair: Whether to repair faults of the input as well.
        note: What is hard about it, and where it was found.

    Example:
        >>> case = Case(id="one", form="openai_chat", budget_tokens=2, request={"messages": [
        ...     {"role": "user", "content": "one two"}, {"role": "user", "content": "three"}]})
        >>> check(case, case.messages[-1:]), check(case, case.messages)
        ([], ['over budget: 3 of 2 tokens'])
    """

    id: str
    """Its name in messages; unique in the corpus."""
    form: str
    """Name of its wire form."""
    request: Mapping[str, Any]
    """The request body; never changed."""
    budget_tokens: int
    """Room for messages, system text and tools, counted by `counter`."""
    counter: str = "words"
    """What a token is: "words" (`WordCounter`), "chars" (`CharCounter`) or "fixed" (a sum per message)."""
    strategy: Mapping[str, Any] | str | None = None
    """A strategy as data, for trimmers with strategies; None: the trimmer's own."""
    pin: Sequence[int] = ()
    """Positions of messages that must not be changed or evicted, if the trimmer supports this."""
    pending_calls: Sequence[str] = ()
    """Ids of calls whose results are still to come, if the trimmer supports this."""
    repair: bool = False
    """Whether to repair faults of the input as well."""
    note: str = ""
    """What is hard about it, and where it was found."""

    @property
    def messages(self) -> list[Any]:
        """A copy of its messages, which may be changed."""
        return copy.deepcopy(list(self.parts.messages))

    @property
    def parts(self) -> Request:
        """The body taken apart: messages, system text, tools."""
        return get_format(self.form).read_request(self.request)

    def count_tokens(self, messages: Sequence[Any], /) -> int:
        """Count the request with these messages in place of its own.

        Args:
            messages: Messages in the form of the case.
        """
        parts = self.parts
        request = CountRequest(messages, system=parts.system, tools=parts.tools, extra=parts.extra)
        return _counter_of(self).count_request(request)

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data, without default values."""
        usual = {one.name: one.default for one in fields(self)}
        data = asdict(self)
        return {name: value for name, value in data.items() if value != usual[name] or name in _ALWAYS}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], /) -> Self:
        """Make a case from what `to_dict` returned.

        Args:
            data: A row of the corpus.

        Raises:
            ConfigurationError: A key is unknown or missing.
        """
        try:
            case = cls(**data)
        except TypeError as error:
            raise ConfigurationError(f"a case of the corpus: {error}") from error
        if case.counter not in COUNTERS:
            raise ConfigurationError(
                f"case {case.id}: counter must be one of {', '.join(COUNTERS)}, not {case.counter!r}"
            )
        return case


_ALWAYS = ("id", "form", "request", "budget_tokens")


def _counter_of(case: Case) -> AdditiveCounter:
    return COUNTERS[case.counter](case.form)


def check(case: Case, messages: Sequence[Any], /) -> list[str]:
    """List what is wrong with an answer to a case; `[]` if nothing is.

    The answer must be within the budget, keep the order of unchanged messages, and contain nothing that a
    provider refuses, except what it refuses in the input.

    Args:
        case: The case.
        messages: The answer of a trimmer.
    """
    found = []
    tokens = case.count_tokens(messages)
    if tokens > case.budget_tokens:
        found.append(f"over budget: {tokens} of {case.budget_tokens} tokens")
    if case.messages and not messages:
        found.append("empty: nothing came out")
    return [*found, *check_validity(case, messages)]


def check_validity(case: Case, messages: Sequence[Any], /) -> list[str]:
    """Say what is wrong with an answer but its size."""
    found = []
    if not case.repair and not _in_order(case.messages, [mapping_of(message) for message in messages]):
        found.append("out of order: messages of the input stand in another order")
    before = _violations(case, case.messages)
    for (rule, call_id), text in _violations(case, messages).items():
        if (rule, call_id) not in before or (case.repair and rule in MENDED):
            found.append(f"{rule}: {text}")
    return [*found, *_bound_to_others(case, messages)]


def _bound_to_others(case: Case, messages: Sequence[Any]) -> list[str]:
    """Say which thinking is bound to what no longer stands before it, where the model minds."""
    format, before = get_format(case.form), case.messages
    if not format.thinking_rules(case.parts.model, case.request).bound:
        return []
    same = sum(1 for _ in takewhile(bool, map(eq, messages, before)))
    return [
        f"bound_thinking: messages[{at}]: its thinking was made with other messages before it"
        for at, message in enumerate(messages)
        if at >= same and format.without_thinking(message) is not message
    ]


def run(case: Case, /) -> list[str]:
    """Fit a case with trimtab and check the result; `[]` if nothing is wrong.

    If what must be kept exceeds the budget, the best attempt is checked, except for its size.

    Args:
        case: The case.
    """
    strategy = None if case.strategy is None else strategy_of(case.strategy)
    try:
        fitted = fit(
            copy.deepcopy(dict(case.request)),
            case.budget_tokens,
            counter=_counter_of(case),
            format=case.form,
            strategy=strategy,
            pin=case.pin,
            pending_calls=case.pending_calls,
            repair=case.repair,
        )
    except BudgetExceededError as error:
        return check_validity(case, error.attempt.messages)
    except ContextError as error:
        return [f"raised {type(error).__name__}: {error}"]
    return check(case, fitted.messages)


def strategy_of(data: Mapping[str, Any] | str, /) -> Strategy:
    """Make a strategy from data, with the functions of `NAMES`.

    Args:
        data: A strategy as data; None: the default.
    """
    return create_strategy(data, names=NAMES)


def gist(messages: Sequence[Any], /) -> str:
    """Summarize in a few words, the same ones every time."""
    return f"{len(messages)} messages"


def wordy(messages: Sequence[Any], /) -> str:
    """Summarize in more words than most budgets hold."""
    return "and then " * (30 + len(messages))


class OldestFirst:
    """A strategy as one writes it first: drops free units from the oldest, and knows nothing else."""

    name = "oldest_first"

    def evict(self, request: EvictionRequest, /) -> EvictionResult:
        """Take one more until the rest fits."""
        kept = list(request.units)
        for unit in request.units:
            if request.fits(kept):
                break
            if not request.stays(unit):
                kept.remove(unit)
        return EvictionResult(kept=kept, fits=request.fits(kept))


NAMES: Mapping[str, Any] = {"gist": gist, "wordy": wordy, "oldest_first": OldestFirst()}
"""What the strategies of cases may name: two summarizers and a strategy of somebody's own."""


def _violations(case: Case, messages: Sequence[Any]) -> dict[tuple[str, str | None], str]:
    body = {**case.request, case.parts.key: list(messages)}
    found = validate(body, format=case.form, pending_calls=case.pending_calls)
    return {(one.rule, one.call_id): one.message for one in found if one.fault}


def _in_order(before: Sequence[Any], after: Sequence[Any]) -> bool:
    """Tell whether what is equal to messages of the input is a part of it in its order."""
    rest = iter(before)
    return all(message in rest for message in after if message in before)


# The cases that come with trimtab, and those of other files.


_FOLDER = Path(__file__).parent


def cases(form: str | None = None, /) -> list[Case]:
    """List the built-in cases, those of one wire form or all.

    Args:
        form: Name of a wire form; None: all.

    Raises:
        UnknownNameError: There are no cases in this form.

    Example:
        >>> {case.form for case in cases("gemini")}
        {'gemini'}
    """
    files = {path.stem: path for path in sorted(_FOLDER.glob("*.jsonl"))}
    if form is not None and form not in files:
        raise unknown_name(f"the corpus has no form {form!r}; there are: {', '.join(files)}", form, files)
    return [case for stem, path in files.items() if form in (None, stem) for case in read_cases(path)]


def read_cases(path: str | Path, /) -> list[Case]:
    """Read the cases of a file, one JSON object per line.

    Args:
        path: File of JSONL.

    Raises:
        ConfigurationError: A line is not a case; the error names the line.
    """
    found = []
    for number, line in enumerate(Path(path).read_text(encoding="utf-8").splitlines(), 1):
        if line.strip():
            try:
                found.append(Case.from_dict(json.loads(line)))
            except (ConfigurationError, TypeError, ValueError) as error:
                raise ConfigurationError(f"{path}, line {number}: {error}") from error
    return found
