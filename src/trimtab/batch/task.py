"""The kernel: a table of conversations in, the same rows with their results out, whichever engine runs it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from trimtab._shared.checks import error_name, unknown_name
from trimtab._shared.observers import silence
from trimtab._shared.once import once
from trimtab.batch.arrow import (
    RecordBatch,
    Schema,
    Table,
    cells,
    column_type,
    conversation_in,
    is_text,
    json_text,
    nested_cell,
    printable,
    pyarrow,
    text_of,
)
from trimtab.batch.rows import (
    COLUMNS,
    ERROR,
    OPTIONS,
    REPLAYED,
    Operation,
    Options,
    Purpose,
    Row,
    Work,
    columns_of,
)
from trimtab.batch.targets import make_work
from trimtab.budget import Budget, BudgetLike
from trimtab.compact import CompactLike
from trimtab.counting import CounterLike
from trimtab.errors import ConfigurationError, ContextError, FormatError, MissingExtraError, option, phrase
from trimtab.formats import Format, SystemLike, ToolSchema, detect, formats, get_format
from trimtab.formats.programs import said_of
from trimtab.formats.trainers import BESIDE, check_columns, is_shaped
from trimtab.replay import PolicyLike

ROWS_AT_ONCE = 1_024
"""Rows whose conversations are Python objects at one time."""
_TRIAL_TOKENS = 100_000
"""Room for a trial where the budget is not known before a row is."""


@dataclass(frozen=True, kw_only=True, repr=False)
class BatchTask(Options):
    """What to do with each row of a table; any engine of Arrow tables can run it.

    It is called with a table and returns the same rows in the same order, with all columns and, after them,
    the columns of results. A row that cannot be processed keeps its place: its results are null, and `error`
    gives the row (and the `file`, if files are read), the kind of error, the reason, and, as `input`, the
    original row if its place no longer has it. A function of your own can be pickled if it is in a module.

    Args:
        operation: "fit", "count", "validate" or "replay".
        policy: For "fit" and "replay": blocks or a strategy, as a file, data, a name or an object. None: the
            default of `fit`; for "replay", no trimming.
        budget: Room for each conversation in tokens, or a `Budget`. None: the policy's, or the window of
            its model.
        model: Name of the model. None: the model that a request body names, if it is known.
        counter: What counts tokens: a counter, or a string ("estimate", "chars:4"). None: the model's own, or
            an estimate that errs high.
        format: Name of the wire form; "auto" decides for each conversation.
        system: System text outside the messages.
        tools: Tool schemas; counted with the request.
        pending_calls: Ids of calls whose results are still to come.
        rules: For "fit": rules of the host: always shown, word for word, in one message behind the
            system text; see `fit`.
        compact: For "fit": how tool results are written: True, or a `trimtab.compact.Compact`; see `fit`.
        repair: Whether to repair orphaned results and unanswered calls first.
        strict: Whether to set aside a conversation with faults instead of fitting it.
        purpose: For "fit": "requests", or "training" for rows of training data. For training, whole turns are
            evicted, the oldest first, and no message is cut; see `docs/batch.md`.
        pricing: For "replay": prices, or the name of some.
        column: Name of the column of conversations: JSON text (a list of messages or a request body), or
            nested lists and structs. A row that is an object has its conversation under a key of this name,
            and nothing else of it is read, unless the object is itself a body with its messages there; the
            same applies to a line of JSON. For training, the object's `tools` and `system` are counted, too.
        prefix: Text before the name of each result column.
        columns: Names of the result columns to write, without the prefix. None: all columns of the operation.
            `error` and the columns of the table are always written. `("tokens_before", "tokens_after")`, or
            `()` for the messages alone, is several times faster than `fates`, `reasons` and `violations`.

    Raises:
        ConfigurationError: An option is invalid, or the operation does not have the option or the column. A
            policy, budget, model, counter, format or price is checked when the first table arrives, before
            its first row.

    Example:
        >>> import pyarrow
        >>> chat = '[{"role": "user", "content": "What is tea?"}]'
        >>> task = BatchTask(operation="count", counter="chars:4")
        >>> task(pyarrow.table({"id": ["a"], "messages": [chat]})).column_names[2:]
        ['tokens', 'exact', 'margin_tokens', 'over_margin_tokens', 'counter', 'unknown', 'error']
    """

    prefix: str = ""
    _work: list[Work] = field(default_factory=list[Work], init=False, compare=False)
    """Made once per process."""
    _tally: Counter[str] = field(default_factory=Counter[str], init=False, compare=False)
    """Counts of this process that no column has."""

    def __post_init__(self) -> None:
        """Refuse options that are none."""
        super().__post_init__()
        if not isinstance(self.column, str):
            raise ConfigurationError(
                f"column must be the name of a column, not {self.column!r:.80}", argument="column"
            )
        if not isinstance(self.prefix, str):
            raise ConfigurationError(
                f"prefix must be a text, '' for none, not {self.prefix!r:.80}", argument="prefix"
            )
        object.__setattr__(self, "columns", self._checked_columns())

    def _checked_columns(self) -> tuple[str, ...] | None:
        """Put the columns asked for in the order they are written in, so that equal ones are the same run.

        What is there anyway may be named, too.
        """
        if self.columns is None:
            return None
        known = (*COLUMNS[self.operation], ERROR, self.column)
        given: Any = self.columns
        if isinstance(given, str) or not isinstance(given, Collection):
            raise ConfigurationError(
                f"columns must be a list of names, such as columns=({known[0]!r},), not {given!r:.80}",
                argument="columns",
            )
        for name in given:
            if name not in known:
                there = ", ".join(COLUMNS[self.operation])
                raise unknown_name(
                    f"operation {self.operation!r} has no column {name!r:.80}; there are: {there}",
                    name,
                    known,
                )
        return tuple(name for name in COLUMNS[self.operation] if name in given)

    def __repr__(self) -> str:
        """Show what differs from the defaults."""
        defaults = {one.name: one.default for one in fields(self)}
        shown = [
            f"{name}={value!r}"
            for name, value in self.options().items()
            if name == "operation" or value != defaults[name]
        ]
        return f"BatchTask({', '.join(shown)})"

    def options(self) -> dict[str, Any]:
        """Return the arguments it was made with, by name."""
        return {one.name: vars(self)[one.name] for one in fields(self) if one.init}

    def __reduce__(self) -> tuple[Any, ...]:
        """Leave behind what was made for this process: a tokenizer is loaded in each."""
        return _task, (self.options(),)

    def __call__(self, table: Table, /) -> Table:
        """Do it with every row of a table, or of a record batch.

        Args:
            table: Of pyarrow; its rows are numbered from 1.

        Raises:
            ConfigurationError: It is no table, there is no column of conversations, or a column has the
                name of a result.
            MissingExtraError: pyarrow or a tokenizer is not installed.
        """
        pa = pyarrow()
        if isinstance(table, pa.RecordBatch):
            table = pa.Table.from_batches([table])
        if not isinstance(table, pa.Table):
            raise ConfigurationError(
                f"a task needs a pyarrow table, not {type(table).__name__}: pass reader.read_all(),"
                " pyarrow.Table.from_pandas(frame) or pyarrow.Table.from_pylist(rows); for map_batches of"
                " Ray, pass batch_format='pyarrow'"
            )
        return self.run(table, range(1, table.num_rows + 1))

    def batches(self, batches: Iterable[RecordBatch], /) -> Iterator[RecordBatch]:
        """Process record batches one by one, for Spark's `mapInArrow`.

        Args:
            batches: Rows are numbered across batches.
        """
        done = 0
        for batch in batches:
            table = pyarrow().Table.from_batches([batch])
            numbers = range(done + 1, done + 1 + batch.num_rows)
            done += batch.num_rows
            yield from self.run(table, numbers).to_batches()

    def schema(self, schema: Schema, /) -> Schema:
        """Return the schema of the output for a schema of the input.

        Args:
            schema: The schema of the table, with the column of conversations.

        Raises:
            ConfigurationError: As when it is called with a table.
        """
        column_type(schema, self.column)
        if self.purpose == "training":
            check_columns(schema.names, self.column)
        taken = [one.name for one in self.result_fields() if one.name in schema.names]
        if taken:
            raise ConfigurationError(
                f"the table already has a column {taken[0]!r}: pass a prefix for the names of results, or"
                " leave out the column"
            )
        if self.operation == "fit":  # a row that is set aside has null there
            at = schema.get_field_index(self.column)
            schema = schema.set(at, schema.field(at).with_nullable(True))
        for one in self.result_fields():
            schema = schema.append(one)
        return schema

    def result_fields(self) -> list[Any]:
        """List the fields of the results as Arrow types."""
        pa, types = pyarrow(), _result_types(self.operation)
        return [pa.field(f"{self.prefix}{name}", types[name]) for name in self._result_names()]

    def _result_names(self) -> tuple[str, ...]:
        return (*columns_of(self), ERROR)

    def prepare(self, *, load: bool = True) -> Work:
        """Read the policy, load the tokenizer and try one message, once per process.

        A fault that affects all rows is then reported before the first row.

        Args:
            load: Whether to load the tokenizer now, rather than when the first row needs it.

        Raises:
            ConfigurationError: The policy cannot be read or does not suit the operation, or some options
                contradict each other.
            FormatError: The policy has no block for a conversation.
            MissingExtraError: A tokenizer is not installed.
        """
        if not self._work:
            work = make_work(self, load=load)
            self._try_out()
            self._work.append(work)
        return self._work[0]

    def _try_out(self) -> None:
        """Do one short message.

        What only a conversation or a tokenizer says is stood in for: the counter of a model, its margin, the
        budget of a model that a request body names, or of a policy, and the form that system parts are in.
        """
        others: dict[str, Any] = {}
        if self.counter is None:
            others["counter"] = "estimate"
        if self.budget is None and (self.model is None or self.policy is not None):
            others["budget"] = Budget(_TRIAL_TOKENS)
        elif isinstance(self.budget, Budget) and self.budget.margin == "auto":
            others["budget"] = replace(self.budget, margin=0)
        if self.format == "auto" and not isinstance(self.system, str):
            others["system"] = None
        known = OPTIONS[self.operation]
        trial = replace(self, **{name: value for name, value in others.items() if name in known})
        form = detect([]) if self.format == "auto" else get_format(self.format)
        try:
            with silence():  # it is no row
                make_work(trial)([form.message("user", ["tea"]), form.message("assistant", ["Hot."])])
        except (ConfigurationError, FormatError, MissingExtraError):
            raise
        except Exception:
            # It does not fit, or something does not answer: rows are set aside for that. Or code of the
            # user's own cannot do with so short a one: rows say so.
            return

    def run(self, table: Table, numbers: Sequence[int], /, *, file: str | None = None) -> Table:
        """Process every row.

        Args:
            table: The rows.
            numbers: The number of each row in its file, from 1.
            file: Name of the file; None: there is no file.
        """
        pa = pyarrow()
        schema, work = self.schema(table.schema), self.prepare()
        kind = table.schema.field(self.column).type
        parts = []
        for start in range(0, max(1, table.num_rows), ROWS_AT_ONCE):  # without rows, too, it has columns
            piece = table.slice(start, ROWS_AT_ONCE)
            some = zip(
                cells(piece, self.column),
                numbers[start : start + ROWS_AT_ONCE],
                self._beside(piece),
                strict=True,
            )
            nested = None if is_text(kind) else kind
            done = [
                self._row(
                    cell, (file, number), partial(work, beside=beside) if beside else work, nested=nested
                )
                for cell, number, beside in some
            ]
            if self.operation == "fit":
                index = piece.schema.get_field_index(self.column)
                piece = piece.set_column(index, schema.field(index), _array([one.cell for one in done], kind))
            parts.append(self._with_results(piece, done).replace_schema_metadata(schema.metadata))
        return pa.concat_tables(parts)

    def _beside(self, table: Table) -> list[dict[str, Any]]:
        """Give what a trainer keeps in columns beside the conversations, and charges with them."""
        names = [name for name in BESIDE if name in table.column_names and name != self.column]
        if self.purpose != "training" or not names:
            return [{}] * table.num_rows
        columns = [cells(table, name) for name in names]
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]

    def run_lines(
        self, lines: Sequence[bytes], numbers: Sequence[int], /, *, file: str, into_lines: bool
    ) -> Table:
        """Process lines of JSON; returns a table with their ids and texts.

        The error of a line that is set aside has its id, if it could be read, and its text.

        Args:
            lines: The lines in UTF-8, one conversation each.
            numbers: The number of each line in its file, from 1.
            file: Name of the file.
            into_lines: Whether results are written into the lines, which then may not have keys of the same
                names.
        """
        work = self.prepare()
        names = {one.name for one in self.result_fields()} if into_lines else set[str]()
        parts = [self.lines_schema().empty_table()]
        for start in range(0, len(lines), ROWS_AT_ONCE):
            some = zip(
                lines[start : start + ROWS_AT_ONCE], numbers[start : start + ROWS_AT_ONCE], strict=True
            )
            done = [self._row(line, (file, number), work, names=names) for line, number in some]
            texts = [one.cell.decode("utf-8") if ERROR not in one.results else None for one in done]
            piece = pyarrow().table(
                {ID: [one.id for one in done], self.column: texts}, schema=_lines(self.column)
            )
            parts.append(self._with_results(piece, done))
        return pyarrow().concat_tables(parts)

    def lines_schema(self) -> Schema:
        """Return the schema of the table made from lines.

        Raises:
            ConfigurationError: The key of the conversations is the key of the ids.
        """
        if self.column == ID:
            raise ConfigurationError(
                phrase(
                    option("column", ID),
                    " is the key of the ids in JSON lines: name the key of the conversations",
                ),
                argument="column",
            )
        return self.schema(_lines(self.column))

    def _with_results(self, table: Table, done: Sequence[_Cells]) -> Table:
        for name, one in zip(self._result_names(), self.result_fields(), strict=True):
            table = table.append_column(one, _array([row.results.get(name) for row in done], one.type))
        return table

    def _row(
        self,
        cell: Any,
        place: _Place,
        work: Work,
        *,
        nested: Any = None,
        names: Collection[str] | None = None,
    ) -> _Cells:
        """Do it with one row; `names` are keys that a line may not have, as its results would hide them.

        They are None for a row that is no line.
        """
        id: str | None = None
        try:
            value = conversation_in(cell)
            if names is not None and isinstance(value, Mapping):
                id = _id_in(value)
                if taken := [key for key in value if key in names]:
                    raise FormatError(
                        f"the line already has a key {taken[0]!r}: pass a prefix for the names of results,"
                        " or write Parquet"
                    )
                if not self._has_conversation(value):
                    if (said := said_of(value)) is not None:
                        raise FormatError(f"{said}; a row must be a whole conversation")
                    keys = ", ".join([*value][:9]) or "none"
                    raise FormatError(
                        f"the line has no key {self.column!r} (its first keys: {keys}): name the key of its"
                        " conversation with column= (--column)"
                    )
            row = self._under_key(value, work)
            made = self._cell(cell, value, row, nested)
            self._tally["cut_targets"] += row.cut_targets  # not above: a row that is set aside has no cut
            return _Cells(made, row.results, id)
        except RecursionError:
            error: ContextError = FormatError("the row is nested too deep")
        except ContextError as raised:
            error = raised
        is_moved = names is not None or self.operation == "fit"
        return _error_cells(error, place, id, text_of(cell) if is_moved else None)

    def _under_key(self, value: Any, work: Work) -> Row:
        """Do it with a conversation, or with the one under the column's name.

        Where bodies have their messages under that name, a body may still stand there: a line that was
        written of a cell has it so.
        """
        key = self.column
        if not isinstance(value, Mapping) or key not in value or self._is_shaped(value):
            return work(value)
        if key in self._body_keys and not self._is_body(value[key]):
            return work(value)
        conversation = conversation_in(value[key])
        beside = {name: value[name] for name in BESIDE if name in value} if self.purpose == "training" else {}
        row = work(conversation, beside=beside) if beside else work(conversation)
        if row.value is None or row.value == conversation:
            return Row(row.results, None, row.cut_targets)
        made = json_text(row.value) if isinstance(value[key], str) else row.value
        return Row(row.results, {**value, key: made}, row.cut_targets)

    def _has_conversation(self, line: Mapping[str, Any]) -> bool:
        """Tell whether a line has a conversation under its key, or is one."""
        if self.column in line or self._is_shaped(line):
            return True
        return self.column in self._body_keys and self._is_body(line)

    def _is_shaped(self, value: object) -> bool:
        """Tell whether it is a row of a trainer's own shape."""
        return self.purpose == "training" and is_shaped(value, self.column)

    def take_tally(self) -> dict[str, int]:
        """Return how often something was done since the last call, and reset.

        It covers this process, and only counts that no column has: `cut_targets`, the number of assistant
        messages that were shortened.
        """
        found = dict(self._tally)
        self._tally.clear()
        return found

    def _is_body(self, value: Any) -> bool:
        """Tell whether it is an object with a key under which bodies have their messages."""
        return isinstance(value, Mapping) and not self._body_keys.isdisjoint(value)

    @once
    def _body_keys(self) -> frozenset[str]:
        """Keys under which bodies have their messages, in the forms that there are and in the one given."""
        own = () if self.format == "auto" else (self.format,)
        return frozenset(get_format(one).rules.body_key for one in (*formats(), *own))

    def _cell(self, cell: Any, value: Any, row: Row, kind: Any) -> Any:
        """Return what the column holds then: the same text where nothing was evicted."""
        if row.value is None or row.value == value:
            return cell
        if kind is not None:
            return nested_cell(row.value, kind)
        text = json_text(row.value)
        return text.encode("utf-8") if isinstance(cell, bytes) else text


_Place: TypeAlias = tuple[str | None, int]
"""The file a row is of, and its number there."""


class _Cells(NamedTuple):
    """What one row has in the table that comes out."""

    cell: Any
    """In the column of conversations."""
    results: Mapping[str, Any]
    id: str | None
    """Of a line, its id."""


ID = "id"
"""Key and column of the id of a line."""


def _lines(column: str) -> Schema:
    pa = pyarrow()
    return pa.schema([(ID, pa.string()), (column, pa.string())])


def _id_in(line: Mapping[str, Any]) -> str | None:
    found = line.get(ID)
    return found if found is None else printable(found if isinstance(found, str) else json_text(found))


def _task(options: Mapping[str, Any]) -> BatchTask:
    return BatchTask(**options)


def _error_cells(error: ContextError, place: _Place, id: str | None, text: str | None) -> _Cells:
    """Make what a row has then; `text` is what it was, where its place does not hold that any more."""
    (file, row), message = place, printable(str(error))
    told = {"file": file, "row": row, "type": error_name(error), "message": message, "input": text}
    return _Cells(None, {ERROR: told}, id)


def _array(values: list[Any], kind: Any) -> Any:
    """Make an array; of a dictionary with more words than its index type can count in chunks."""
    pa = pyarrow()
    if pa.types.is_dictionary(kind):
        words = pa.array(values, type=kind.value_type).dictionary_encode()
        is_signed = pa.types.is_signed_integer(kind.index_type)
        most = 1 << (kind.index_type.bit_width - is_signed)
        if len(words.dictionary) <= most:
            return words.cast(kind)
        pieces = [
            pa.array(values[start : start + most], type=kind.value_type).dictionary_encode().cast(kind)
            for start in range(0, len(values), most)
        ]
        return pa.chunked_array(pieces, type=kind)
    try:
        return pa.array(values, type=kind)
    except UnicodeEncodeError:
        return pa.array(printable(values), type=kind)


def _result_types(operation: Operation) -> dict[str, Any]:
    """Say which columns an operation gives, in order, and their types."""
    pa = pyarrow()
    violation = {
        "index": pa.int32(),
        "rule": pa.string(),
        "message": pa.string(),
        "call_id": pa.string(),
        "fault": pa.bool_(),
    }
    violations = pa.list_(pa.struct(list(violation.items())))
    types: Mapping[Operation, dict[str, Any]] = {
        "fit": {
            "tokens_before": pa.int64(),
            "tokens_after": pa.int64(),
            "fates": pa.list_(pa.string()),
            "reasons": pa.map_(pa.string(), pa.int32()),
            "violations": violations,
        },
        "count": {
            "tokens": pa.int64(),
            "exact": pa.bool_(),
            "margin_tokens": pa.int64(),
            "over_margin_tokens": pa.int64(),
            "counter": pa.string(),
            "unknown": pa.list_(pa.string()),
        },
        "validate": {"valid": pa.bool_(), "violations": violations},
        "replay": {**dict.fromkeys(REPLAYED, pa.int64()), "price": pa.float64()},
    }
    texts = dict.fromkeys(("type", "message", "input"), pa.string())
    error = pa.struct([("file", pa.string()), ("row", pa.int64()), *texts.items()])
    return {**types[operation], ERROR: error}


# The operations as functions of a table.


def fit_table(
    table: Table,
    /,
    policy: PolicyLike = None,
    *,
    budget: BudgetLike | None = None,
    model: str | None = None,
    counter: CounterLike | None = None,
    format: str | Format = "auto",
    system: SystemLike | None = None,
    tools: Sequence[ToolSchema] | None = None,
    pending_calls: Collection[str] = (),
    rules: Sequence[str] | None = None,
    compact: CompactLike = None,
    repair: bool = False,
    strict: bool = False,
    purpose: Purpose = "requests",
    column: str = "messages",
    prefix: str = "",
    columns: Collection[str] | None = None,
) -> Table:
    """Fit the conversation of each row of an Arrow table into a budget.

    The column of conversations then has the fitted conversations, in its original type: the identical text if
    nothing was evicted, and null in a row that is set aside. The new columns are `tokens_before` (null if the
    fit did not need to know it), `tokens_after`, `fates` (one word for each message of the input), `reasons`
    (how many messages were changed or evicted for each reason), `violations` (what a provider would have
    refused in the input) and `error`.

    Args:
        table: A `pyarrow.Table`.
        policy: Blocks or a strategy, as a file, data, a name or an object. None: the default of `fit`.
        budget: Room for each conversation in tokens, or a `Budget`. None: the policy's, or the window of its
            model.
        model: Name of the model. None: the model that a request body names, if it is known.
        counter: What counts tokens: a counter, or a string ("estimate", "chars:4"). None: the model's own, or
            an estimate that errs high.
        format: Name of the wire form; "auto" decides for each conversation.
        system: System text outside the messages.
        tools: Tool schemas; counted with the request.
        pending_calls: Ids of calls whose results are still to come.
        rules: Rules of the host: always shown, word for word, in one message behind the system
            text; see `fit`.
        compact: How tool results are written: True, or a `trimtab.compact.Compact`; see `fit`.
        repair: Whether to repair orphaned results and unanswered calls first.
        strict: Whether to set aside a conversation with faults instead of fitting it.
        purpose: "requests": conversations that are sent. "training": rows that a model is trained on. For
            training, whole turns are evicted, the oldest first, no message is cut, and everything after the
            last assistant message to train on is removed. A row whose last such message does not fit is set
            aside.
        column: Name of the column of conversations: JSON text (a list of messages or a request body), or
            nested lists and structs.
        prefix: Text before the name of each result column.
        columns: Names of the result columns to write, without the prefix. None: all of these; `error` is
            always written.

    Raises:
        ConfigurationError: An option is invalid, there is no column of conversations, or a column has the
            name of a result.
        UnknownNameError: A model, format or policy is unknown.
        MissingExtraError: The extra of `pip install 'trimtab[batch]'` or the model's tokenizer is not
            installed.

    Example:
        >>> import json, pyarrow
        >>> chat = [{"role": "user", "content": f"question {n}"} for n in range(9)]
        >>> table = pyarrow.table({"id": [7, 8], "messages": [json.dumps(chat), "nothing"]})
        >>> for row in fit_table(table, budget=20, counter="chars:4").to_pylist():
        ...     print(row["id"], row["tokens_after"], row["error"] and row["error"]["message"])
        7 18 None
        8 None not JSON: Expecting value (column 1)
    """
    return BatchTask(
        operation="fit",
        policy=policy,
        budget=budget,
        model=model,
        counter=counter,
        format=format,
        system=system,
        tools=tools,
        pending_calls=pending_calls,
        rules=rules,
        compact=compact,
        repair=repair,
        strict=strict,
        purpose=purpose,
        column=column,
        prefix=prefix,
        columns=columns,
    )(table)


def count_table(
    table: Table,
    /,
    *,
    model: str | None = None,
    counter: CounterLike | None = None,
    format: str | Format = "auto",
    system: SystemLike | None = None,
    tools: Sequence[ToolSchema] | None = None,
    column: str = "messages",
    prefix: str = "",
    columns: Collection[str] | None = None,
) -> Table:
    """Count the tokens of each row's conversation, as a provider would charge them.

    The new columns are `tokens`, `exact`, `margin_tokens` (how far the bill may be above the count),
    `over_margin_tokens` (how far it may be below), `counter`, `unknown` (parts whose cost is unknown) and
    `error`. Errors are those of `fit_table`.

    Args:
        table: A `pyarrow.Table`.
        model: Name of the model. None: the model that a request body names, if it is known.
        counter: What counts tokens: a counter, or a string ("estimate", "chars:4"). None: the model's own, or
            an estimate that errs high.
        format: Name of the wire form; "auto" decides for each conversation.
        system: System text outside the messages.
        tools: Tool schemas; counted with the request.
        column: Name of the column of conversations: JSON text (a list of messages or a request body), or
            nested lists and structs.
        prefix: Text before the name of each result column.
        columns: Names of the result columns to write, without the prefix. None: all of these; `error` is
            always written.
    """
    return BatchTask(
        operation="count",
        model=model,
        counter=counter,
        format=format,
        system=system,
        tools=tools,
        column=column,
        prefix=prefix,
        columns=columns,
    )(table)


def validate_table(
    table: Table,
    /,
    *,
    format: str | Format = "auto",
    model: str | None = None,
    pending_calls: Collection[str] = (),
    column: str = "messages",
    prefix: str = "",
    columns: Collection[str] | None = None,
) -> Table:
    """List what a provider would refuse in the conversation of each row.

    The new columns are `valid`, `violations` and `error`, which is for rows that cannot be read.
    Errors are those of `fit_table`.

    Args:
        table: A `pyarrow.Table`.
        format: Name of the wire form; "auto" decides for each conversation.
        model: Name of the target model, which decides what is refused. None: the model that a body names.
        pending_calls: Ids of calls whose results are still to come.
        column: Name of the column of conversations: JSON text (a list of messages or a request body), or
            nested lists and structs.
        prefix: Text before the name of each result column.
        columns: Names of the result columns to write, without the prefix. None: all of these; `error` is
            always written.
    """
    return BatchTask(
        operation="validate",
        format=format,
        model=model,
        pending_calls=pending_calls,
        column=column,
        prefix=prefix,
        columns=columns,
    )(table)
