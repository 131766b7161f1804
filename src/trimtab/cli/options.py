"""Options that commands share, and what they mean for one conversation: counter, budget, tools, strategy."""

from __future__ import annotations

import functools
import math
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from os.path import isfile
from pathlib import Path
from typing import Any, TypeVar, cast

import click
from click.shell_completion import CompletionItem

from trimtab._fitting.request import window_of, with_beside
from trimtab._shared.checks import in_words
from trimtab._shared.files import BYTE_ORDER_MARK
from trimtab._shared.strict_json import parse
from trimtab.budget import Budget, check_words, needs_model, tokens_in, window_budget
from trimtab.cli.input import INPUT_KINDS
from trimtab.counting import AdditiveCounter, counter_for
from trimtab.counting.door import counter_in_words
from trimtab.counting.measurement import near_words
from trimtab.errors import ConfigurationError, FormatError, MissingExtraError, UnknownNameError, phrase
from trimtab.formats import Format, Request, detect, formats, get_format
from trimtab.models import facts_for, known_model_in, model_names
from trimtab.strategies import Strategy, StrategyKind, create_strategy
from trimtab.strategies.data import KINDS_ALONE, NEEDS, PRESETS

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


class _Tokens(click.IntRange):
    """A number of tokens: 4000, 4_000, 4k, 1.5m."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Read it; k is a thousand, m a million, and a fraction of a token is rounded down (SPEC D1)."""
        tokens = tokens_in(str(value))
        if tokens is None:
            self.fail(f"{value!r} is no number of tokens, as 4000, 4k or 1.5m", param, ctx)
        return int(super().convert(tokens, param, ctx))


class _Room(click.ParamType[Any]):
    """Tokens, or so many of the model's: a share of its input limit, or what stays below its price tier."""

    name = "budget"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | str:
        """Take words that need a model as they are, anything else as a number."""
        if not needs_model(value):
            return _Tokens(min=1).convert(value, param, ctx)
        try:
            return check_words(value)
        except ConfigurationError as error:
            self.fail(str(error), param, ctx)


class _Margin(click.ParamType[Any]):
    """Tokens, or the word auto."""

    name = "margin"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | str:
        """Take the word as it is, anything else as a number."""
        return "auto" if value == "auto" else _Tokens(min=0).convert(value, param, ctx)


class Number(click.ParamType[float]):
    """A number in some range, which is said in words where another is given."""

    name = "number"

    def __init__(self, what: str, takes: Callable[[float], bool]) -> None:
        self.what, self.takes = what, takes

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Read it; what is no finite number is in no range."""
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not math.isfinite(number) or not self.takes(number):
            self.fail(f"{value} is not {self.what}", param, ctx)
        return number


def complete_from(
    words: Callable[[], Iterable[str]], *, files: bool = False
) -> Callable[..., list[CompletionItem]]:
    """Make a completion for shells that offers words; files where no word begins so, if they may be given."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        found = [CompletionItem(word) for word in words() if word.startswith(incomplete)]
        return found or ([CompletionItem(incomplete, type="file")] if files else [])

    return complete


def _policy_words() -> tuple[str, ...]:
    from trimtab.replay.policies import WORDS  # not above: most commands replay nothing

    return (*WORDS, *KINDS_ALONE)


complete_models = complete_from(model_names)
complete_policies = complete_from(_policy_words, files=True)


def together(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Make one decorator of several options, the last of which stands first in the help."""
    return lambda command: functools.reduce(lambda made, option: option(made), options, command)


def choice(name: str, words: Sequence[str], help: str, *, param: str | None = None) -> Callable[[F], F]:
    """Make an option that takes one of a few words, the first by default."""
    names = (name,) if param is None else (name, param)
    return click.option(*names, type=click.Choice(words), default=words[0], show_default=True, help=help)


output_option = choice("--output", ["json", "text"], "JSON for programs, or text for people.")
page_option = choice(
    "--output", ["json", "text", "html"], "JSON for programs, text or an HTML page for people."
)
format_option = choice("--format", ["auto", *formats()], "Wire form of the messages.")
bare_option = click.option(
    "--messages-only",
    "bare",
    is_flag=True,
    help="Write only the messages, or the request body; nothing for refused conversations.",
)
taker_option = click.option(
    "--model",
    metavar="NAME",
    shell_complete=complete_models,
    help="Target model, which decides what is refused. Default: the one a body names.",
)
pending_option = click.option(
    "--pending-call",
    "pending_calls",
    metavar="ID",
    multiple=True,
    help="Id of a call whose result is still to come. Repeatable.",
)
rule_options = together(
    click.option(
        "--rule",
        "rule_texts",
        metavar="TEXT",
        multiple=True,
        help='Rule that is always shown, word for word, in front of the conversation. Repeatable; "" removes'
        " all.",
    ),
    click.option(
        "--rules",
        "rules_file",
        metavar="FILE",
        type=click.Path(),
        help="File with such rules, one per line.",
    ),
)
compact_option = click.option(
    "--compact/--no-compact",
    default=None,
    help="Write tool results once: lines of earlier results as references, and JSON without spaces."
    " A block of a policy that says it itself goes by that.",
)
_input_options = together(
    format_option,
    choice(
        "--input",
        INPUT_KINDS,
        "What each FILE is: one JSON document, one conversation per line, or one message per line.",
        param="kind",
    ),
    click.argument("files", metavar="[FILE]...", type=click.Path(allow_dash=True), nargs=-1),
)
jobs_option = click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    metavar="N",
    help="Number of parallel processes; the output is the same.",
)
input_options = together(output_option, _input_options)
"""The files, and how they are read and answered."""
page_options = together(page_option, _input_options)
"""The same for a command that writes pages, too."""
_counter_option = click.option(
    "--counter",
    metavar="estimate|chars:N",
    help="Count without the model's tokenizer: by estimate, or one token per N characters.",
)
request_options = together(
    click.option("--system", metavar="TEXT|@FILE", help="System text beside the messages."),
    click.option(
        "--tools",
        metavar="FILE",
        type=click.Path(),
        help="JSON list of tool schemas, counted with the request.",
    ),
    _counter_option,
    click.option("--model", metavar="NAME", shell_complete=complete_models, help="Model to count for."),
)
"""What is counted, and how."""
calibration_option = click.option(
    "--calibration",
    metavar="FILE",
    type=click.Path(),
    help="Correct counts by what `trimtab count --bills --learn FILE` learned of the model.",
)
"""Of commands that count for one request; a session is calibrated by its own bills."""
room_options = together(
    request_options,
    click.option(
        "--margin",
        type=_Margin(),
        metavar="N|auto",
        help="Tokens kept free because counts may be too low; auto: as many as the counter may be off by.",
    ),
    click.option(
        "--output-reserve",
        type=_Tokens(min=0),
        metavar="N",
        help=("Tokens of the budget kept free for the answer."),
    ),
    click.option(
        "--budget",
        type=_Room(),
        metavar="N",
        help="Room in tokens, such as 8000 or 8k; a share of the model's input limit, such as 80%; or tier,"
        " below its next price tier. Default: by --model.",
    ),
)
"""How much room there is, what is counted in it, and how."""
switch_options = together(
    _counter_option,
    click.option(
        "--budget",
        type=_Room(),
        metavar="N",
        help="Room in tokens, such as 8000 or 8k, or a share of the model's input limit, such as 80%."
        " Default: the current one, at most what the model takes.",
    ),
    click.option(
        "--model",
        metavar="NAME",
        shell_complete=complete_models,
        help="Model to go on with. Default: the same.",
    ),
)
"""What a session goes on with."""
budgets_option = click.option(
    "--budget",
    "budgets",
    type=_Room(),
    metavar="N",
    multiple=True,
    help="Room in tokens, such as 8000 or 8k; a share of the model's input limit, such as 80%; or tier,"
    " below its next price tier. Repeatable.",
)
"""Several rooms, for a command that compares them."""
ROOM = ("budget", "output_reserve", "margin")
"""What options of room are called as parameters."""


class _Pin(click.ParamType[int | slice]):
    """An index, negative from the end, or a range as Python writes it."""

    name = "index"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | slice:
        """Read `3`, `-1`, `0:4` or `-2:`."""
        start, colon, stop = str(value).partition(":")
        try:
            if not colon:
                return int(start)
            return slice(int(start) if start else None, int(stop) if stop else None)
        except ValueError:
            self.fail(f"{value!r} is not an index (3, -1) or a range (0:4, -2:)", param, ctx)


pin_option = click.option(
    "--pin",
    type=_Pin(),
    multiple=True,
    help="Message that must be kept unchanged: 3, -1; or a range: 0:4, -2:. Repeatable.",
)


def pins_in(pins: tuple[int | slice, ...], count: int) -> list[int]:
    """List the indices that pins mean among so many messages; single ones are not checked."""
    return [
        index for pin in pins for index in (range(*pin.indices(count)) if isinstance(pin, slice) else (pin,))
    ]


# What options mean, for all conversations and for each.


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """One conversation of the input taken apart, and what it is counted for and by."""

    format: Format
    request: Request
    model: str | None
    """The model that was asked for, or the one its body names, if it is known."""
    counter: AdditiveCounter | None
    """None: nothing says how; an estimate."""


class RequestOptions:
    """What `--model`, `--counter`, `--format`, `--system` and `--tools` ask for.

    What is wrong with them is refused before anything is read.
    """

    def __init__(
        self,
        given: Mapping[str, Any],
        *,
        format: str | None = None,
        model: str | None = None,
        counter: AdditiveCounter | None = None,
    ) -> None:
        """Read the options; format, model and counter are a policy's, for where no option says another."""
        self._given = given
        self.model: str | None = model if given["model"] is None else given["model"]
        self.system = None if given["system"] is None else text_of("--system", given["system"])
        self.tools = _tools_of(given["tools"])
        self.format: str = given["format"] if format is None else format
        self._counter = counter
        self._calibration = _calibration_in(given.get("calibration"))
        self._counters: dict[str | None, AdditiveCounter | None] = {}
        self._budgets: dict[str | None, Budget] = {}
        if self._calibration is None or self.model is not None:
            self.counter(self.model)

    def counter(self, model: str | None, /) -> AdditiveCounter | None:
        """Make the counter for a model; None: nothing says how to count.

        Raises:
            UnknownNameError: Nobody knows the model.
            MissingExtraError: Its tokenizer is not installed.
        """
        if model not in self._counters:
            if self._calibration is not None and model is None:
                raise ConfigurationError("--calibration needs a model: pass --model NAME")
            self._counters[model] = self._make_counter(model)
        return self._counters[model]

    def _make_counter(self, model: str | None) -> AdditiveCounter | None:
        words: str | None = self._given["counter"]
        if words is not None:
            return self._calibrate(counter_of(words), model)
        if self._counter is not None or model is None:
            return self._calibrate(self._counter, model)
        try:
            return counter_for(model, calibration=self._calibration)
        except UnknownNameError as error:
            raise self._unknown_model(error) from error
        except MissingExtraError as error:
            hint = f"{error}, or pass --counter estimate"
            raise MissingExtraError(hint, extra=error.extra, package=error.package) from error

    def _calibrate(self, counter: AdditiveCounter | None, model: str | None) -> AdditiveCounter | None:
        """Correct the counts of a counter that is not the model's own by the file of `--calibration`."""
        if self._calibration is None or counter is None or model is None:
            return counter
        from trimtab.counting.calibration import CalibratedCounter, calibration_of

        return CalibratedCounter(counter, calibration_of(model, self._calibration))

    def check_budget(self) -> None:
        """Refuse at once what is wrong with the budget, whatever the conversations are.

        Raises:
            ConfigurationError: It is no budget of the model that was asked for.
        """
        asked = self._given["budget"]
        if self.model is not None or (asked is not None and not needs_model(asked)):
            self.budget(self.model)

    def budget(self, model: str | None, /) -> Budget:
        """Make the budget for a model; without `--budget` from its window.

        Raises:
            ConfigurationError: Neither is known.
        """
        if model not in self._budgets:
            self._budgets[model] = self._make_budget(model)
        return self._budgets[model]

    def _make_budget(self, model: str | None) -> Budget:
        asked, reserve, margin = (self._given[key] for key in ROOM)
        given = {"output_reserve": reserve, "margin": margin}
        beside: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        if asked is not None:
            window_tokens = window_of(model)
            if isinstance(asked, int) and window_tokens is not None and asked > window_tokens:
                raise ConfigurationError(
                    f"--budget {asked:,} exceeds the window of {model!r}, {window_tokens:,} tokens for input"
                    " and output together; if it is larger, say so in the file that TRIMTAB_MODELS names"
                )
            room = Budget.of(asked, model=model if needs_model(asked) else None)
            return Budget.of(replace(room, **beside), model=model)
        if model is None:
            raise ConfigurationError("the budget is missing. Pass --budget N (tokens), or --model NAME")
        try:
            facts = facts_for(model)
        except UnknownNameError as error:
            raise self._unknown_model(error) from error
        found = window_budget(facts, output_reserve=reserve)
        if found is None:
            raise ConfigurationError(
                f"the window of {model!r} is unknown: pass --budget N (tokens){near_words(model)}"
            )
        return replace(found, margin=margin or 0)

    def _unknown_model(self, error: UnknownNameError) -> UnknownNameError:
        """Say in words of the command line what to do about a model nobody knows."""
        room = " and --budget N" if "budget" in self._given else ""  # not every command has rooms
        instead = f"--counter estimate{room} instead of --model"
        message = f"unknown model {error.name!r}: pass {instead}{in_words(error.near)}"
        return UnknownNameError(message, name=error.name, near=error.near)

    def model_of(self, value: Any, /) -> str | None:
        """Name the model of one conversation: the one asked for, or the one its body names, if known."""
        return known_model_in(value) if self.model is None else self.model

    def of(self, value: Any, /) -> Conversation:
        """Take one conversation apart.

        Raises:
            FormatError: A mapping without a list of messages.
            ConfigurationError: Its body brings what an option gives, too.
        """
        model = self.model_of(value)
        format = detect(value, model=model) if self.format == "auto" else get_format(self.format)
        request = format.read_request(value) if isinstance(value, Mapping) else Request(messages=value)
        request = with_beside(request, system=self.system, tools=self.tools)
        return Conversation(format=format, request=request, model=model, counter=self.counter(model))


def strategy_of(value: str | None) -> Strategy | None:
    """Make the strategy of a kind, of JSON, or of a JSON or TOML file.

    Raises:
        ConfigurationError: No such kind, JSON or a file that cannot be read, or an option it does not have.
    """
    if value is None:
        return None
    if value.startswith("{"):
        return _strategy_in(value.encode("utf-8", "replace"), value)
    path = Path(value)
    if path.suffix.lower() not in (".json", ".toml") and (
        value in (*StrategyKind, *PRESETS) or not isfile(path)
    ):
        if value in NEEDS:
            others = ", ".join(KINDS_ALONE)
            raise ConfigurationError(
                f"--strategy {value} needs {NEEDS[StrategyKind(value)]}; these need nothing: {others}"
            )
        return create_strategy(value)
    return _strategy_in(_read("--strategy", value, value), value, is_toml=path.suffix.lower() == ".toml")


def _strategy_in(raw: bytes, value: str, *, is_toml: bool = False) -> Strategy:
    """Make the strategy of data, as it stands in a file or on the command line."""
    try:
        return create_strategy(tomllib.loads(raw.decode("utf-8")) if is_toml else parse(raw, whole=True))
    except (FormatError, ConfigurationError, ValueError) as error:
        raise ConfigurationError(phrase(f"--strategy {value}: ", error)) from error


def _tools_of(value: str | None) -> list[Any] | None:
    if value is None:
        return None
    where, tools = f"--tools {value}", _json_of("--tools", value)
    if not isinstance(tools, list):
        raise ConfigurationError(f"{where}: a list of tool schemas is expected, not {tools!r:.40}")
    for index, tool in enumerate(tools):
        if not isinstance(tool, Mapping) or "role" in tool:
            what = "a message" if isinstance(tool, Mapping) else f"{tool!r:.40}"
            raise ConfigurationError(f"{where}: [{index}] is {what}, not a tool schema")
    return tools


def _calibration_in(value: str | None) -> Mapping[str, Any] | None:
    if value is None:
        return None
    data = _json_of("--calibration", value)
    if not isinstance(data, Mapping):
        raise ConfigurationError(f"--calibration {value}: a mapping is expected, not {data!r:.40}")
    return data


def _json_of(option: str, path: str) -> Any:
    try:
        return parse(_read(option, path, path), whole=True)
    except FormatError as error:
        raise ConfigurationError(f"{option} {path}: {error}") from error


class Source(str):
    """What an option says that may name a file.

    The file is read once, as a pipe can be, and goes along to another process.
    """

    _found: Any = None

    def read(self, read: Callable[[], T]) -> T:
        """Return what was in the file, in the form in which `read` gives it."""
        if self._found is None:
            self._found = read()
        return cast(T, self._found)


def with_sources(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return options of a command so that each file they name is read once."""
    named = {name for name in _FILES if given.get(name) is not None}
    return {name: Source(value) if name in named else value for name, value in given.items()}


_FILES = ("system", "tools", "strategy", "policy", "calibration")
"""Options that may name a file, as parameters are called."""


def text_of(option: str, value: str) -> str:
    """Return the text of an option, read from a file if it begins with `@`."""
    if not value.startswith("@"):
        return value
    try:
        return _read(option, value, value[1:]).decode("utf-8").removesuffix("\n")
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{option} {value}: not UTF-8 (byte {error.start + 1})") from error


def counter_of(words: str) -> AdditiveCounter:
    """Make the counter that `--counter` names.

    Raises:
        ConfigurationError: It names none.
    """
    try:
        made = counter_in_words(words)
    except ConfigurationError as error:
        raise ConfigurationError(f"--counter {error}") from error
    if made is None:
        raise ConfigurationError(f"--counter must be estimate or chars:N (such as chars:4), not {words!r}")
    return made


def rules_in(given: Mapping[str, Any]) -> list[str] | None:
    """List the rules that options name: first those of the file, a line each; None: there are no options.

    An empty text is an option and no rule.

    Raises:
        ConfigurationError: The file cannot be read.
    """
    texts, file = list(given["rule_texts"]), given["rules_file"]
    if file is None:
        return [*filter(None, texts)] if texts else None
    try:
        lines = _read("--rules", file, file).decode().splitlines()
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"--rules {file}: not UTF-8 (byte {error.start})") from None
    return [*filter(str.strip, lines), *filter(None, texts)]


def _read(option: str, value: str, path: str) -> bytes:
    source = value if isinstance(value, Source) else Source(value)
    try:
        return source.read(Path(path).read_bytes).removeprefix(BYTE_ORDER_MARK)
    except OSError as error:
        raise ConfigurationError(f"{option} {path}: {error.strerror or error}") from error


_KEYS = "trimtab.keys"
"""Where the context of a command has the place of the keys of its store."""


def _note_keys(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    ctx.meta[_KEYS] = value


keys_option = click.option(
    "--keys",
    metavar="PLACE",
    envvar="TRIMTAB_KEYS",
    show_envvar=True,
    expose_value=False,
    callback=_note_keys,
    help="The key ring of an encrypted store: env:VARIABLE or file:PATH. Empty: the store is not encrypted.",
)


def keys_given() -> str | None:
    """Return the place of keys that the running command was given; empty: it was told that there are none."""
    context = click.get_current_context(silent=True)
    given: str | None = context.meta.get(_KEYS) if context else None
    return given
