"""The report as a value, as JSON, and as text for a terminal."""

from __future__ import annotations

import json
import pickle
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import FrozenInstanceError, fields
from itertools import pairwise
from typing import Any, NamedTuple, NoReturn, overload

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.conversation import validate
from trimtab.errors import ConfigurationError
from trimtab.report import (
    ACTIONS,
    FATES,
    REASONS,
    SCHEMA,
    STATES,
    BlockReport,
    EvictedUnit,
    InsertedRow,
    MessageRow,
    Report,
    ResultRow,
    RunRow,
    Violation,
)


def row(index: int, fate: Any = "kept", **more: Any) -> MessageRow:
    """Make a row; a fate other than "kept" has the reason "over_limit" unless told otherwise."""
    more.setdefault("reason", None if fate == "kept" else "over_limit")
    more.setdefault("role", "user")
    more.setdefault("unit", index)
    if fate != "evicted":
        more.setdefault("tokens_after", 10)
    return MessageRow(index=index, fate=fate, **more)


def run(index: int, fate: Any = "kept", **more: Any) -> RunRow:
    """Make the row of a single message, as `row` makes it."""
    more.setdefault("reason", None if fate == "kept" else "over_limit")
    return RunRow(first=index, last=index, message_count=1, fate=fate, **more)


def report(**more: Any) -> Report:
    """Make a report of 900 of 1,000 tokens; `more` replaces what matters to the test."""
    values: dict[str, Any] = {
        "format": "openai_chat",
        "counter": "o200k_base",
        "exact": True,
        "window_tokens": 1_000,
        "input_tokens": 1_000,
        "tokens_after": 900,
        "fits": True,
        "kept_message_count": 1,
    }
    return Report(**{**values, **more})


class Unbuilt(Sequence[MessageRow]):
    """Rows that must not be read."""

    @overload
    def __getitem__(self, index: int) -> MessageRow: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[MessageRow]: ...
    def __getitem__(self, index: int | slice) -> NoReturn:
        """Fail."""
        raise AssertionError("a row was built")

    def __len__(self) -> NoReturn:
        """Fail."""
        raise AssertionError("the rows were measured")


class Built(Sequence[MessageRow]):
    """Rows that are made anew each time they are read."""

    def __init__(self, size: int) -> None:
        self.size = size

    @overload
    def __getitem__(self, index: int) -> MessageRow: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[MessageRow]: ...
    def __getitem__(self, index: int | slice) -> MessageRow | Sequence[MessageRow]:
        """Make one row, or those of a slice."""
        if isinstance(index, slice):
            return [row(place) for place in range(*index.indices(self.size))]
        if not 0 <= index < self.size:
            raise IndexError(index)
        return row(index)

    def __len__(self) -> int:
        """Give how many there would be."""
        return self.size


# -- any report at all ----------------------------------------------------------------------------

words = st.text(max_size=12)
tokens = st.integers(0, 10**7)
maybe_tokens = st.none() | tokens
message_rows = st.builds(
    MessageRow,
    results=st.lists(
        st.builds(ResultRow, call_id=words, tool_name=words, fate=st.sampled_from(FATES)), max_size=2
    ).map(tuple),
    index=st.integers(0, 10**5),
    role=st.sampled_from(["system", "user", "assistant", "tool"]) | words,
    fate=st.sampled_from(FATES),
    reason=st.none() | st.sampled_from(REASONS),
    block=words,
    unit=st.integers(0, 10**5),
    state=st.sampled_from(STATES),
    tokens_before=maybe_tokens,
    tokens_after=maybe_tokens,
    call_ids=st.lists(words, max_size=3).map(tuple),
    tool_names=st.lists(words, max_size=3).map(tuple),
    text=st.none() | words,
)
block_reports = st.builds(
    BlockReport,
    name=words,
    limit_tokens=tokens,
    tokens_before=maybe_tokens,
    tokens_after=tokens,
    actions=st.lists(st.sampled_from(ACTIONS) | words, max_size=3).map(tuple),
    kept_message_count=tokens,
    changed_message_count=tokens,
    evicted_message_count=tokens,
    floor_missed_tokens=tokens,
    freed_tokens=tokens,
)
violation_rows = st.builds(
    Violation,
    index=st.none() | st.integers(0, 10**5),
    rule=words,
    message=st.text(max_size=200),
    call_id=st.none() | words,
    fault=st.booleans(),
)
inserted_rows = st.builds(InsertedRow, position=st.integers(0, 10**5), role=words, tokens=tokens, why=words)
run_rows = st.builds(
    RunRow,
    first=st.integers(0, 10**5),
    last=st.integers(0, 10**5),
    message_count=st.integers(1, 10**5),
    fate=st.sampled_from(FATES),
    tokens_before=maybe_tokens,
    tokens_after=maybe_tokens,
    roles=st.lists(words, max_size=2).map(tuple),
    tools=st.dictionaries(words, st.integers(1, 9), max_size=2),
    answers=st.booleans(),
)
evicted_units = st.builds(
    EvictedUnit,
    block=words,
    first=st.integers(0, 10**5),
    last=st.integers(0, 10**5),
    message_count=st.integers(1, 10**5),
    tokens=tokens,
    counted=st.booleans(),
    heaviest=run_rows,
)
reports = st.builds(
    Report,
    heaviest=st.lists(run_rows, max_size=2).map(tuple),
    newest_evicted=st.lists(evicted_units, max_size=2).map(tuple),
    format=words,
    model=st.none() | words,
    counter=words,
    exact=st.booleans(),
    shares=st.booleans(),
    window_tokens=tokens,
    output_reserve_tokens=tokens,
    overhead_tokens=tokens,
    margin_tokens=tokens,
    input_tokens=tokens,
    fixed_tokens=tokens,
    system_tokens=maybe_tokens,
    tools_tokens=maybe_tokens,
    tokens_before=maybe_tokens,
    tokens_after=tokens,
    fits=st.booleans(),
    kept_message_count=tokens,
    changed_message_count=tokens,
    evicted_message_count=tokens,
    blocks=st.lists(block_reports, max_size=3).map(tuple),
    messages=st.lists(message_rows, max_size=40).map(tuple),
    inserted=st.lists(inserted_rows, max_size=3).map(tuple),
    blocks_dropped=st.lists(words, max_size=3).map(tuple),
    floors_ignored=st.booleans(),
    violations=st.lists(violation_rows, max_size=3).map(tuple),
    notes=st.lists(st.text(max_size=200), max_size=3).map(tuple),
)


# -- the value ------------------------------------------------------------------------------------


def test_making_a_report_reads_no_row() -> None:
    """Totals, repr, hash and counts come from what the maker gave."""
    made = report(
        messages=Unbuilt(), kept_message_count=3, changed_message_count=2, evicted_message_count=426
    )
    assert made.remaining_tokens == 100
    assert made.total_message_count == 431
    assert repr(made) == "<Report fits=True tokens=900/1000 kept=3 changed=2 evicted=426>"
    assert isinstance(hash(made), int)


def test_the_remainder_is_negative_when_over() -> None:
    """It says by how much the request is over."""
    assert report(tokens_after=1_250).remaining_tokens == -250


def test_reports_are_equal_by_value_whatever_holds_their_rows() -> None:
    """Rows built when read equal a tuple of the same rows; another row makes another report."""
    lazy, eager = report(messages=Built(3)), report(messages=(row(0), row(1), row(2)))
    assert lazy == eager
    assert hash(lazy) == hash(eager)
    assert lazy != report(messages=Built(2))
    assert lazy != "a report"


def test_a_report_cannot_be_changed() -> None:
    """It is a value."""
    with pytest.raises(FrozenInstanceError):
        report().fits = False  # type: ignore[misc]  # wrong on purpose


def test_a_report_survives_pickling() -> None:
    """It may go to another process."""
    made = report(messages=(row(0),), notes=("a note",))
    assert pickle.loads(pickle.dumps(made)) == made


def test_text_of_a_message_is_no_part_of_the_value() -> None:
    """Rows that differ in text alone are equal, and their repr shows none of it."""
    assert row(0, text="secret") == row(0, text="other")
    assert "secret" not in repr(row(0, text="secret"))


# -- JSON -----------------------------------------------------------------------------------------


@given(reports)
@settings(max_examples=60)
def test_a_report_comes_back_from_json_as_it_was(made: Report) -> None:
    """Every field survives, with and without text."""
    for include_text in (False, True):
        data = json.loads(json.dumps(made.to_dict(rows="messages", include_text=include_text)))
        back = Report.from_dict(data)
        assert back == made
        for entry in fields(Report):
            assert getattr(back, entry.name) == getattr(made, entry.name), entry.name
        if include_text:
            assert [line.text for line in back.messages] == [line.text for line in made.messages]


@given(reports)
@settings(max_examples=25)
def test_the_dict_has_a_version_and_the_remainder(made: Report) -> None:
    """A reader of the JSON need not subtract."""
    data = made.to_dict()
    assert data["schema"] == SCHEMA == 2
    assert data["remaining_tokens"] == data["input_tokens"] - data["tokens_after"]


def test_no_message_text_leaves_unless_asked_for() -> None:
    """Neither the dict, nor the text form, nor the repr has it; both have it when told."""
    made = report(messages=(row(0, text="my password"),))
    for said in (json.dumps(made.to_dict()), made.to_text(), str(made), repr(made)):
        assert "password" not in said
    assert made.to_dict(include_text=True)["messages"][0]["text"] == "my password"
    assert "| my password" in made.to_text(include_text=True)


def test_unknown_numbers_stay_none_in_the_dict() -> None:
    """What nobody counted is null, never 0."""
    evicted = row(0, "evicted")
    blocks = (
        BlockReport(name="history", limit_tokens=9, offered_tokens=9, tokens_after=0, kept_message_count=0),
    )
    data = report(messages=(evicted,), blocks=blocks).to_dict(rows="messages")
    assert data["tokens_before"] is None
    assert data["system_tokens"] is None
    assert data["messages"][0]["tokens_before"] is None
    assert data["messages"][0]["tokens_after"] is None
    assert data["blocks"][0]["tokens_before"] is None


def test_what_validate_lists_is_put_into_a_report_as_it_is() -> None:
    """There is one type of violation, whoever lists them."""
    (found,) = validate([{"role": "tool", "tool_call_id": "c1", "content": "no call"}], format="openai_chat")
    made = report(violations=(found,))
    assert type(found) is Violation
    assert Report.from_dict(made.to_dict()).violations == (found,)
    assert "message 0, orphan_result, call c1: " in made.to_text()


# -- runs -----------------------------------------------------------------------------------------


def test_neighbours_that_fared_alike_are_one_row() -> None:
    """A run ends where fate, reason, block or pin change; what is changed is alone."""
    made = report(
        messages=(
            row(0, state="pinned", tokens_before=4),
            row(1, "evicted", tokens_before=3, role="assistant", call_ids=("a",), tool_names=("look",)),
            row(2, "evicted", tokens_before=5, role="tool", unit=1, call_ids=("a",), tool_names=("look",)),
            row(3, "evicted", tokens_before=None),
            row(4, "changed", reason="truncation", tokens_before=9, tokens_after=2),
            row(5, "changed", reason="truncation", tokens_before=8, tokens_after=2),
            row(6, block="notes", label="a.md"),
            row(7, block="notes", label="b.md"),
        )
    )
    told = [(run.first, run.last, run.message_count, run.fate, run.block) for run in made.runs]
    assert told == [
        (0, 0, 1, "kept", "history"),
        (1, 3, 3, "evicted", "history"),
        (4, 4, 1, "changed", "history"),
        (5, 5, 1, "changed", "history"),
        (6, 7, 2, "kept", "notes"),
    ]
    assert [run.tokens_before for run in made.runs] == [4, None, 9, 8, None]
    assert [run.tokens_after for run in made.runs] == [10, None, 2, 2, 20]
    assert [dict(run.tools) for run in made.runs] == [{}, {"look": 1}, {}, {}, {}]
    assert (made.runs[0].state, made.runs[4].labels, made.runs[4].roles) == (
        "pinned",
        ("a.md", "b.md"),
        ("user", "user"),
    )


@given(reports)
@settings(max_examples=60)
def test_a_report_comes_back_from_its_runs(made: Report) -> None:
    """It reads the same; rows of messages were not written, and to read them says so."""
    data = json.loads(json.dumps(made.to_dict()))
    assert "messages" not in data
    back = Report.from_dict(data)
    assert back == made
    assert made == back
    assert (back.runs, len(back.messages)) == (made.runs, len(made.messages))
    assert back.to_text() == made.to_text()
    assert back.to_dict() == made.to_dict()
    assert "<!doctype html>" in back.to_html()
    assert pickle.loads(pickle.dumps(back)) == back
    with pytest.raises(ConfigurationError, match=r"report\.runs"):
        list(back.messages) if made.messages else back.messages[0]


def test_data_of_the_first_schema_is_read() -> None:
    """It has a row for each message."""
    made = report(messages=(row(0), row(1)))
    assert Report.from_dict(made.to_dict(rows="messages") | {"schema": 1}) == made


def test_what_a_row_is_of_is_one_of_two_words() -> None:
    """Anything else is refused, and data with both kinds of rows, too."""
    with pytest.raises(ConfigurationError, match="rows must be"):
        report().to_dict(rows="units")  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(ConfigurationError, match="'runs' or 'messages'"):
        Report.from_dict(report().to_dict() | {"messages": []})
    with pytest.raises(ConfigurationError, match="'runs' must be a list"):
        Report.from_dict(report().to_dict() | {"runs": {}})
    with pytest.raises(ConfigurationError, match=r"runs\[0\]\.tools"):
        Report.from_dict(
            report().to_dict()
            | {"runs": [{"first": 0, "last": 0, "message_count": 1, "fate": "kept", "tools": []}]}
        )


@pytest.mark.parametrize(
    ("path", "value", "named"),
    [
        pytest.param(("schema",), 3, "'schema'", id="newer-schema"),
        pytest.param(("schema",), True, "'schema'", id="true-is-not-1"),
        pytest.param(("schema",), None, "'schema'", id="no-schema"),
        pytest.param(("extra",), 1, "'extra'", id="unknown-key"),
        pytest.param(("messages", 0, "extra"), 1, "'messages[0].extra'", id="unknown-key-of-a-row"),
        pytest.param(("fits",), 1, "'fits'", id="number-for-a-flag"),
        pytest.param(("tokens_after",), True, "'tokens_after'", id="flag-for-a-number"),
        pytest.param(("tokens_after",), 1.5, "'tokens_after'", id="fraction"),
        pytest.param(("tokens_after",), None, "'tokens_after'", id="none-where-a-number-must-be"),
        pytest.param(("format",), None, "'format'", id="none-where-a-name-must-be"),
        pytest.param(("messages",), {}, "'messages'", id="mapping-for-a-list"),
        pytest.param(("messages", 0), 7, "'messages[0]'", id="number-for-a-row"),
        pytest.param(("messages", 0, "fate"), "lost", "'messages[0].fate'", id="unknown-fate"),
        pytest.param(("messages", 0, "reason"), "bored", "'messages[0].reason'", id="unknown-reason"),
        pytest.param(("messages", 0, "fate"), [], "'messages[0].fate'", id="list-for-a-word"),
        pytest.param(("messages", 0, "call_ids"), "abc", "'messages[0].call_ids'", id="string-for-strings"),
        pytest.param(("notes",), ["ok", 4], "'notes[1]'", id="number-among-strings"),
        pytest.param(("remaining_tokens",), 5, "'remaining_tokens'", id="contradiction"),
    ],
)
def test_a_malformed_dict_is_refused_by_the_key_that_is_wrong(
    path: tuple[str | int, ...], value: object, named: str
) -> None:
    """The error says which key, so that it can be mended."""
    data: Any = json.loads(json.dumps(report(messages=(row(0),)).to_dict(rows="messages")))
    place = data
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    with pytest.raises(ConfigurationError, match=re.escape(named)):
        Report.from_dict(data)


@pytest.mark.parametrize("key", ["format", "counter", "exact", "input_tokens", "tokens_after", "fits"])
def test_a_dict_without_what_a_report_needs_is_refused(key: str) -> None:
    """The missing key is named; a key with a default may be absent."""
    data = report().to_dict()
    del data["notes"], data["remaining_tokens"]
    assert Report.from_dict(data) == report()
    del data[key]
    with pytest.raises(ConfigurationError, match=f"has no key '{key}', which is required"):
        Report.from_dict(data)


def test_something_that_is_no_dict_is_refused() -> None:
    """A list is not a report."""
    with pytest.raises(ConfigurationError, match="mapping"):
        Report.from_dict([])  # type: ignore[arg-type]  # wrong on purpose


# -- runs -----------------------------------------------------------------------------------------

LETTERS = {"k": "kept", "e": "evicted", "C": "changed", "p": "kept", "x": "evicted"}


def rows_of(letters: str) -> list[MessageRow]:
    """Make a row a letter: kept, evicted (x: for another reason), Changed, pinned."""
    made = []
    for index, letter in enumerate(letters):
        more: dict[str, Any] = {"p": {"state": "pinned"}, "x": {"reason": "callback"}}.get(letter, {})
        made.append(row(index, LETTERS[letter], **more))
    return made


class Shown(NamedTuple):
    """A line of the table of messages."""

    span: str
    fate: str
    tokens: str
    why: str
    what: str


TABLE_LINE = re.compile(
    rf"  +(?P<span>[\d–]+) +(?P<fate>{'|'.join(FATES)}) +(?P<tokens>(?:\S+ → )?\S+)"
    rf"(?: +(?P<why>{'|'.join((*REASONS, *STATES))}))? +(?P<what>.+)"
)


def table_of(rows: Sequence[MessageRow]) -> list[Shown]:
    """Write a report of these rows, and read the lines of its table."""
    lines = report(messages=tuple(rows)).to_text(width=200).splitlines()
    found = [TABLE_LINE.fullmatch(line) for line in lines]
    return [Shown(**{name: text or "" for name, text in one.groupdict().items()}) for one in found if one]


@pytest.mark.parametrize(
    ("letters", "spans"),
    [
        pytest.param("", [], id="nothing"),
        pytest.param("k", ["0"], id="one"),
        pytest.param("kkkk", ["0–3"], id="all-alike"),
        pytest.param("peeekk", ["0", "1–3", "4–5"], id="pinned-evicted-kept"),
        pytest.param("ppkk", ["0–1", "2–3"], id="pinned-ones-are-apart"),
        pytest.param("eexxe", ["0–1", "2–3", "4"], id="another-reason-is-another-run"),
        pytest.param("kCCk", ["0", "1", "2", "3"], id="changed-ones-stand-alone"),
        pytest.param("kekek", ["0", "1", "2", "3", "4"], id="nothing-to-join"),
    ],
)
def test_neighbours_that_fared_alike_are_one_run(letters: str, spans: list[str]) -> None:
    """A run ends where fate, reason or pinning changes."""
    assert [line.span for line in table_of(rows_of(letters))] == spans


@given(st.text("keCpx", max_size=24))
def test_runs_hold_every_row_once_in_order(letters: str) -> None:
    """Nothing is lost in joining, and no two neighbouring runs could be joined."""
    spans = [line.span.partition("–") for line in table_of(rows_of(letters))]
    found = [range(int(first), int(last or first) + 1) for first, _, last in spans]
    assert [index for span in found for index in span] == list(range(len(letters)))
    joinable = [pair for pair in pairwise(letters) if pair[0] == pair[1] != "C"]
    assert len(found) == len(letters) - len(joinable)


def test_blocks_are_not_joined() -> None:
    """A run lies within one block."""
    assert [line.span for line in table_of([row(0, block="facts"), row(1, block="history")])] == ["0", "1"]


@pytest.mark.parametrize(
    ("rows", "tokens_text"),
    [
        pytest.param([row(0, tokens_after=1_200), row(1, tokens_after=34)], "1,234", id="kept-sum"),
        pytest.param([row(0, "evicted", tokens_before=5)], "5", id="evicted-and-counted"),
        pytest.param([row(0, "evicted")], "?", id="evicted-and-not-counted"),
        pytest.param([row(0, "evicted", tokens_before=5), row(1, "evicted")], "?", id="counted-in-part"),
        pytest.param([row(0, "evicted", tokens_before=0)], "0", id="a-counted-zero-is-zero"),
        pytest.param(
            [row(0, "changed", tokens_before=9_812, tokens_after=2_001)], "9,812 → 2,001", id="changed"
        ),
        pytest.param([row(0, "changed", tokens_after=2_001)], "? → 2,001", id="changed-from-unknown"),
    ],
)
def test_tokens_of_a_run_are_a_sum_or_unknown(rows: list[MessageRow], tokens_text: str) -> None:
    """An unknown part makes the sum unknown: it is neither 0 nor a part of the sum."""
    assert [line.tokens for line in table_of(rows)] == [tokens_text]


def call(index: int, *names: str, ids: Sequence[str] = ("a", "b", "c", "d", "e")) -> MessageRow:
    """Make the row of an assistant message that calls tools."""
    return row(index, role="assistant", call_ids=tuple(ids[: len(names)]), tool_names=names)


def result(index: int, unit: int, name: str, call_id: str = "a") -> MessageRow:
    """Make the row of a tool message."""
    return row(index, role="tool", unit=unit, call_ids=(call_id,), tool_names=(name,))


@pytest.mark.parametrize(
    ("rows", "what"),
    [
        pytest.param([row(0)], "user", id="one-without-tools"),
        pytest.param([row(0, role="system"), row(1)], "system + user", id="two-roles"),
        pytest.param([row(0), row(1), row(2)], "3 messages", id="three"),
        pytest.param([call(0, "search")], "assistant, calls search", id="one-call"),
        pytest.param([result(1, 0, "search")], "tool, result of search", id="its-result-alone"),
        pytest.param(
            [call(0, "search"), result(1, 0, "search"), row(2)],
            "3 messages, calls search",
            id="call-and-result-are-one-call",
        ),
        pytest.param(
            [call(0, "read", "read"), call(1, "read"), row(2)],
            "3 messages, calls read×3",
            id="an-id-used-again-in-another-unit-is-another-call",
        ),
        pytest.param(
            [call(0, "a", "b", "b", "c", "d"), row(1)],
            "assistant + user, calls b×2, a, c, 1 more",
            id="many-tools",
        ),
        pytest.param([call(0, "x" * 50)], f"assistant, calls {'x' * 31}…", id="long-name"),
    ],
)
def test_a_run_says_who_and_which_tools(rows: list[MessageRow], what: str) -> None:
    """Tools are named by how often they are called, most often first, a few of them."""
    assert [line.what for line in table_of(rows)] == [what]


# -- the text form --------------------------------------------------------------------------------

SMALL = """\
fits: 900 of 1,000 tokens (90 %), 100 unused
  kept the message as it was
  counted   exactly, by o200k_base; format openai_chat
  room      1,000 tokens
  before    900 tokens
  after     900 tokens, all messages
  messages  1 in: 1 kept

  index  fate  tokens  why
  0      kept     900       user"""

AGENT = """\
fits: 7,912 of 8,192 tokens (96 %), 280 unused
  kept 4 of 431 messages, 1 of them changed; message 428 (user, 5,000 tokens)
    takes 61 % of the room; 280 tokens unused: the newest evicted unit needs
    more than 900 (message 427, result of read_file)
  counted   exactly, by o200k_base for gpt-4o; format openai_chat
  room      8,192 = window 12,288 - output reserve 4,096
  before    ? (not counted: fitted.count_all() or `trimtab count` does)
  after     7,912 = messages 7,369 + tools 540 + framing 3
  messages  431 in: 3 kept, 1 changed, 427 evicted

  block    before  after  limit
  history       ?  7,369  7,649   89 %  █████████████████████·┆·
           evicted, then shortened
  of the budget: █=after, ┆=offer

  index  fate            tokens  why
  0      kept               300  pinned      system
  1–427  evicted              ?  over_limit  427 messages, calls read_file×2
  428    kept             5,000  pinned      user
  429    kept                68  held        assistant, calls search
  430    changed  9,812 → 2,001  over_limit  tool, result of search

  the input has 1 open call (no fault)
  - message 429, open_call, call b: The call has no result yet.

  - The format was chosen because the model is of its provider."""

OVER = """\
DOES NOT FIT, by estimate: 1,300 of 1,000 tokens (130 %), 300 over
  kept 1 of 3 messages
  counted   as an estimate, by mine, as one total (sizes of parts are shares of
            it); format anthropic
  room      1,000 = window 1,100 - overhead 60 - margin 40
  before    2,000 tokens
  after     1,300 = messages 700 + tools 200 + system and framing 400
  messages  3 in: 1 kept, 2 evicted; 1 inserted

  block  before  after  limit
  facts     500    500    400   50 %  █████████┆██············
         kept; messages: 1 kept; 1 token under its floor
  docs    1,500    200    600   20 %  ████░░░░░░░░░░┆░░░░░░░░░+
         dropped; messages: 2 evicted; 20 tokens freed by another block
  of the budget: █=after, ░=before, +=more, ┆=offer
  - blocks dropped: old, older
  - the floors of the blocks pass the room and were ignored

  index  fate     tokens  why
  0      kept        500            facts: user
  1–2    evicted   1,500  over_cap  docs: user + user

  inserted by trimtab, at its place in the output
  - 1, user, 200 tokens: summary of 2 messages

  the input has 2 faults
  - message 1, orphan_result, call x: No call.
  - request, empty: There is nothing."""


def agent_report() -> Report:
    """Make the report of an agent session of 431 messages."""
    cut = [row(index, "evicted") for index in range(1, 428)]
    for index in (4, 9):
        cut[index - 1] = row(index, "evicted", role="assistant", call_ids=("a",), tool_names=("read_file",))
    tail = [
        row(428, state="pinned", tokens_after=5_000),
        row(429, role="assistant", state="held", tokens_after=68, call_ids=("a",), tool_names=("search",)),
        row(430, "changed", role="tool", unit=429, state="held", tokens_before=9_812, tokens_after=2_001,
            call_ids=("a",), tool_names=("search",)),
    ]  # fmt: skip
    block = BlockReport(
        name="history", limit_tokens=7_649, offered_tokens=7_649, tokens_after=7_369,
        actions=("evicted", "shortened"),
        kept_message_count=3, changed_message_count=1, evicted_message_count=427,
    )  # fmt: skip
    return report(
        model="gpt-4o", window_tokens=12_288, output_reserve_tokens=4_096, input_tokens=8_192,
        fixed_tokens=543, system_tokens=0, tools_tokens=540, tokens_after=7_912,
        kept_message_count=3, changed_message_count=1, evicted_message_count=427, blocks=(block,),
        messages=[row(0, role="system", state="pinned", tokens_after=300), *cut, *tail],
        heaviest=(run(428, roles=("user",), tokens_after=5_000, tokens_before=5_000),),
        newest_evicted=(
            EvictedUnit(
                block="history", first=426, last=427, message_count=2, tokens=900, counted=False,
                heaviest=run(427, "evicted", roles=("tool",), tokens_before=900, tools={"read_file": 1},
                    answers=True),
            ),
        ),
        violations=(Violation(index=429, rule="open_call", call_id="b",
                                 message="The call has no result yet.", fault=False),),
        notes=("The format was chosen because the model is of its provider.",),
    )  # fmt: skip


def over_report() -> Report:
    """Make a report of two blocks in which everything that can be said is said."""
    facts = BlockReport(
        name="facts",
        limit_tokens=400,
        offered_tokens=400,
        tokens_before=500,
        tokens_after=500,
        kept_message_count=1,
        floor_missed_tokens=1,
    )
    docs = BlockReport(
        name="docs", limit_tokens=600, offered_tokens=600, tokens_before=1_500, tokens_after=200,
        actions=("dropped",),
        kept_message_count=0, evicted_message_count=2, freed_tokens=20,
    )  # fmt: skip
    cut = [row(place, "evicted", reason="over_cap", block="docs", tokens_before=750) for place in (1, 2)]
    return report(
        format="anthropic", counter="mine", exact=False, shares=True, window_tokens=1_100, overhead_tokens=60,
        margin_tokens=40, fixed_tokens=600, tools_tokens=200, tokens_before=2_000, tokens_after=1_300,
        fits=False, evicted_message_count=2, blocks=(facts, docs),
        messages=(row(0, block="facts", tokens_after=500), *cut),
        inserted=(InsertedRow(position=1, role="user", tokens=200, why="summary of 2 messages"),),
        blocks_dropped=("old", "older"), floors_ignored=True,
        violations=(
            Violation(index=1, rule="orphan_result", call_id="x", message="No call."),
            Violation(index=None, rule="empty", message="There is nothing."),
        ),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("made", "text"),
    [
        pytest.param(report(tokens_before=900, messages=(row(0, tokens_after=900),)), SMALL, id="small"),
        pytest.param(agent_report(), AGENT, id="agent"),
        pytest.param(over_report(), OVER, id="over"),
    ],
)
def test_the_text_form_reads_as_written_here(made: Report, text: str) -> None:
    """Golden texts, written by hand; `str` gives the same."""
    assert str(made).splitlines() == text.splitlines()
    assert made.to_text(width=80) == str(made)


@pytest.mark.parametrize(
    ("used", "room", "verdict"),
    [
        (0, 1, "0 of 1 token (0 %), 1 unused"),
        (999, 1_000, "999 of 1,000 tokens (99 %), 1 unused"),
        (9_999, 10_000, "9,999 of 10,000 tokens (99 %), 1 unused"),
        (1_000, 1_000, "1,000 of 1,000 tokens (100 %), 0 unused"),
        (1_001, 1_000, "1,001 of 1,000 tokens (101 %), 1 over"),
        (0, 0, "0 of 0 tokens, 0 unused"),
        (5, 0, "5 of 0 tokens, 5 over"),
    ],
)
def test_the_verdict_says_full_only_when_full(used: int, room: int, verdict: str) -> None:
    """Shares are rounded away from 100 %, and no room is no share."""
    made = report(tokens_after=used, input_tokens=room, fits=used <= room)
    assert str(made).splitlines()[0].endswith(f": {verdict}")


def test_one_of_anything_is_singular() -> None:
    """A token, a message, a line: one is not several."""
    one = report(tokens_before=1, tokens_after=1, window_tokens=1, input_tokens=1)
    assert "  room      1 token\n  before    1 token\n  after     1 token, all messages\n" in f"{one}\n"
    assert "1 tokens" not in f"{one}\n{over_report()}"


WIDTHS = (60, 80, 120)


def taken(text: str) -> int:
    """Give the columns of a line by Unicode's East Asian Width."""
    return sum(1 + (unicodedata.east_asian_width(char) in {"W", "F"}) for char in text)


@given(reports, st.booleans())
@settings(max_examples=60)
def test_no_line_is_wider_than_asked_and_none_can_steer_a_terminal(made: Report, include_text: bool) -> None:
    """Whatever the names and texts hold, lines are printable and as wide as asked at most."""
    for width in WIDTHS:
        for line in made.to_text(width=width, include_text=include_text).split("\n"):
            assert taken(line) <= width
            assert line.isprintable()
            assert line == line.rstrip()


@pytest.mark.parametrize("width", WIDTHS)
def test_our_own_words_are_one_column_a_character(width: int) -> None:
    """ASCII, box characters and a few signs: no font or locale makes lines ragged."""
    for made in (agent_report(), over_report()):
        assert set(made.to_text(width=width)) - set(map(chr, range(32, 127))) <= set("\n–→×…█░│╷┆·")


def test_a_narrow_terminal_still_gets_every_number() -> None:
    """At 60 columns what a run is stands beneath its numbers, unclipped."""
    text = agent_report().to_text(width=60)
    assert "9,812 → 2,001" in text
    assert "      427 messages, calls read_file×2" in text
    assert "…" not in text


def test_less_than_sixty_columns_are_taken_as_sixty() -> None:
    """Narrower, numbers would be cut; a cut number is a wrong one."""
    assert agent_report().to_text(width=1) == agent_report().to_text(width=60)


def test_colour_changes_nothing_but_colour() -> None:
    """Without the escape codes it is the same text; without `colour` there are none."""
    for made in (agent_report(), over_report()):
        coloured = made.to_text(colour=True)
        assert "\x1b[" in coloured
        assert re.sub(r"\x1b\[\d*m", "", coloured) == made.to_text()
        assert "\x1b" not in made.to_text()


def test_a_long_list_is_elided_in_the_middle_with_a_count() -> None:
    """Of 100 lines the first 12 and the last 12 are shown; the rest is counted by fate."""
    rows = [row(index, "kept" if index % 2 else "evicted") for index in range(100)]
    lines = str(report(messages=rows)).splitlines()
    shown = [line.split()[0] for line in lines if re.match(r"  \d", line)]
    assert shown == [str(index) for index in (*range(12), *range(88, 100))]
    assert "  … 76 more lines: 76 messages, 38 kept, 38 evicted" in lines


@pytest.mark.parametrize(("count", "elided"), [(24, False), (25, True)])
def test_a_list_is_elided_from_25_lines_on(count: int, elided: bool) -> None:
    """24 lines are shown; of 25 one is elided, in the singular."""
    rows = [row(index, "changed", tokens_before=20) for index in range(count)]
    assert ("… 1 more line: 1 message, 1 changed" in str(report(messages=rows))) is elided


def test_unknown_numbers_are_never_shown_as_zero() -> None:
    """A block, a run and a total that nobody counted read as "?"."""
    block = BlockReport(
        name="history",
        limit_tokens=90,
        offered_tokens=90,
        tokens_after=45,
        kept_message_count=0,
        evicted_message_count=1,
    )
    lines = str(report(messages=(row(0, "evicted"),), blocks=(block,))).splitlines()
    assert any(line.startswith("  history       ?     45     90") for line in lines)
    assert any(line.startswith("  0      evicted       ?  over_limit") for line in lines)
    assert any(line.startswith("  before    ? (not counted") for line in lines)


def test_a_block_without_room_has_no_bar() -> None:
    """There is no share of nothing."""
    block = BlockReport(
        name="docs", limit_tokens=0, offered_tokens=0, tokens_before=0, tokens_after=0, kept_message_count=0
    )
    assert "  docs        0      0      0" in str(report(blocks=(block,))).splitlines()


def test_bars_are_parts_of_the_budget_with_floor_offer_and_cap() -> None:
    """Each bar is as long as the budget: 24 columns stand for 240 tokens, so ten tokens are one."""
    blocks = (
        BlockReport(
            name="docs", limit_tokens=100, cap_tokens=100, floor_tokens=30, offered_tokens=80,
            tokens_before=150, tokens_after=60, kept_message_count=1,
        ),
        BlockReport(
            name="history", limit_tokens=180, offered_tokens=180, tokens_before=400, tokens_after=170,
            kept_message_count=1,
        ),
    )  # fmt: skip
    made = report(input_tokens=240, window_tokens=240, tokens_after=230, blocks=blocks)
    text = made.to_text(width=120)
    assert "  25 %  ███╷██░░┆░│░░░░·········" in text
    assert "  70 %  █████████████████░┆░░░░░+" in text
    legend = "of the budget: █=after, ░=before, +=more, ╷=floor, ┆=offer, │=cap"
    assert text.splitlines()[13] == f"  {legend}"
    assert "limit is its cap; floor 30; offered 80" in text
    narrow = made.to_text(width=70).splitlines()
    assert f"  {legend}" in narrow
    assert max(map(taken, narrow)) <= 70


@pytest.mark.parametrize(
    ("count", "places"),
    [
        (2, "0, 3"),
        (6, "0, 3, 6, 9, 12, 15"),
        (7, "0, 3, 6, 9, 12, 15 and 1 more"),
        (1_025, "12, 15 and 1,019 more"),
    ],
)
def test_violations_of_one_rule_are_one_line(count: int, places: str) -> None:
    """With their number and the first places; the dict has them all, and another rule its own line."""
    violations = [
        Violation(index=place * 3, rule="empty", message=f"messages[{place * 3}].id: Not so.")
        for place in range(count)
    ]
    violations.append(Violation(index=2, rule="twice", message="messages[2]: There already.", call_id="c"))
    violations.append(Violation(index=None, rule="empty", message="Open.", fault=False))
    made = report(violations=tuple(violations))
    text = made.to_text(width=200)
    assert f"  the input has {count + 1:,} faults and 1 open call (no fault)" in text
    (line,) = (one for one in text.splitlines() if " times" in one)
    assert line.startswith(f"  - empty, {count:,} times in messages 0, 3")
    assert line.endswith(f"{places}: Not so.")
    assert "  - message 2, twice, call c: There already." in text
    assert "  - request, empty: Open." in text
    assert len(made.to_dict()["violations"]) == count + 2
    assert f"empty, {count:,} times" in made.to_html()


@pytest.mark.parametrize("fate", ["evicted", "changed"])
def test_every_reason_has_words(fate: Any) -> None:
    """A page says them of a message that left, and of one that changed."""
    for reason in REASONS:
        page = report(messages=(row(0, fate, reason=reason, tokens_before=9, tokens_after=None),)).to_html()
        assert f"<td>{reason}</td>" not in page


@pytest.mark.parametrize(
    ("name", "shown"),
    [("x" * 16, "x" * 16), ("x" * 17, "x" * 15 + "…"), ("日" * 8, "日" * 8), ("日" * 9, "日" * 7 + "…")],
)
def test_a_block_name_is_cut_at_sixteen_columns(name: str, shown: str) -> None:
    """Wide characters take two columns; an ellipsis shows the cut."""
    block = BlockReport(name=name, limit_tokens=9, offered_tokens=9, tokens_after=0, kept_message_count=0)
    assert any(line.startswith(f"  {shown} ") for line in str(report(blocks=(block,))).splitlines())


def test_what_tools_call_themselves_cannot_steer_a_terminal() -> None:
    """Escape codes, line ends and bidirectional marks of others are shown, not obeyed."""
    evil = "rm\x1b[2J\r\n\u202eok"
    text = str(report(messages=(call(0, evil),), notes=(evil,), model=evil))
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "\\u001b[2J" in text


def test_a_huge_name_is_cut_short() -> None:
    """A megabyte of name costs one line."""
    huge = "x" * 1_000_000
    text = str(report(messages=(call(0, huge), row(1, role=huge, block=huge, text=huge)), notes=(huge,)))
    assert len(text) < 2_000


def test_reasons_fates_and_actions_are_those_of_the_rules() -> None:
    """The closed lists of SPEC D11, and reasons for other rules (issue 36) and compact results (37)."""
    reasons = (
        "over_limit over_cap unit_of_removed min_messages block_dropped callback truncation"
        " superseded_by_summary repair cannot_lead cannot_end bound_thinking cache_mark rules compacted"
    )
    actions = "kept evicted shortened cleared summarized dropped removed_by_callback compacted"
    assert " ".join(REASONS) == reasons
    assert " ".join(FATES) == "kept changed evicted"
    assert " ".join(ACTIONS) == actions


def test_labels_stand_beside_the_rows_that_have_them() -> None:
    """Three at most in a line, as with tools."""
    labelled = [row(at, "evicted", label=f"page {at}") for at in range(5)]
    text = report(messages=[*labelled, row(5, label="the rest"), row(6)]).to_text()
    assert "5 messages, page 0, page 1, page 2, 2 more" in text
    assert "user + user, the rest" in text
    three = report(messages=labelled[:3]).to_text()
    assert "3 messages, page 0, page 1, page 2\n" in three + "\n"
