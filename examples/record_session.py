"""Record the demo's conversation: real tool runs, scripted decisions.

No model was asked. What the user and the assistant say, and which tools are called, is written
down in this file. What the tools answer is real: each call lists, reads, searches or runs
something in this project's own tree at the moment of recording (`session_tools.py`). The
recorded file says the same in its `about`.

    python examples/record_session.py                 # rewrites examples/agent_session.json
    python examples/record_session.py --turns 3 --output short.json

The same tree gives the same messages; only `recorded` (commit, date) differs.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from session_tools import SCHEMAS, Toolbox

HERE = Path(__file__).resolve().parent

ABOUT = (
    "A scripted session: the words of the user and the assistant and the choice of tool calls were written "
    "by hand in examples/record_session.py, no model was asked. The tool outputs are real: every call was "
    "run on this project's own tree when the session was recorded. Durations, memory addresses and machine "
    "folders were taken out of them."
)

SYSTEM = (
    "You are a coding assistant working in the repository of trimtab, a Python library that fits a "
    "conversation into a token budget. You can list, read and search files, and run tests and snippets; you "
    "cannot change anything. Look before you answer, name the file and line you rely on, and say when a tool "
    "failed."
)

MODULE_LINES = 70
"""How much of a module one read shows; agents read in pages."""

REVIEWED_FILES = 34
"""Files the three long requests go through; keeps the recording near 400 messages as the tree grows."""

QUICK_TEST_BYTES = 12_000
"""Test files up to this size are run; a larger one may take minutes of generated cases."""

Call = tuple[str, dict[str, Any]]
Turn = Callable[["Recorder"], None]


class Recorder:
    """The conversation so far, in Chat Completions form, and the tools that answer its calls."""

    def __init__(self, root: Path) -> None:
        self.tools = Toolbox(root)
        self.messages: list[dict[str, Any]] = [{"role": "system", "content": SYSTEM}]
        self._calls_made = 0

    def user(self, text: str) -> None:
        """Say something as the user."""
        self.messages.append({"role": "user", "content": text})

    def say(self, text: str) -> None:
        """Answer as the assistant, without a call."""
        self.messages.append({"role": "assistant", "content": text})

    def call(self, words: str | None, *calls: Call) -> list[str]:
        """Make calls in one assistant message, run them, and give their outputs."""
        wire = [self._wire_call(name, arguments) for name, arguments in calls]
        self.messages.append({"role": "assistant", "content": words, "tool_calls": wire})
        outputs = [self.tools.run(name, arguments) for name, arguments in calls]
        for made, output in zip(wire, outputs, strict=True):
            self.messages.append({"role": "tool", "tool_call_id": made["id"], "content": output})
        return outputs

    def _wire_call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        self._calls_made += 1
        function = {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}
        return {"id": f"call_{self._calls_made:04d}", "type": "function", "function": function}


def read(path: str, **lines: int) -> Call:
    """Call read_file."""
    return ("read_file", {"path": path, **lines})


def search(pattern: str, folder: str = ".") -> Call:
    """Call search."""
    return ("search", {"pattern": pattern, "folder": folder})


def on(tool: str, path: str) -> Call:
    """Call a tool that takes one path."""
    return (tool, {"path": path})


def modules(recorder: Recorder) -> list[str]:
    """Give the package's modules with something in them, sorted."""
    paths = recorder.tools.files("src", pattern="*.py")
    return [path for path in paths if recorder.tools.run("outline", {"path": path}).startswith(" ")]


def suite_files(recorder: Recorder) -> list[str]:
    """Give the modules' tests: not guards, some of which time things, nor the test of this recording."""
    paths = recorder.tools.files("tests", pattern="test_*.py")
    return [path for path in paths if path.count("/") == 1 and not path.endswith("test_examples.py")]


def orientation(recorder: Recorder) -> None:
    """Look around: list, then three calls at once."""
    recorder.user("Hi! I have just cloned this. What is in here, and where should I start reading?")
    listing, _ = recorder.call(
        "I'll look at the tree first.",
        ("list_files", {"folder": "src"}),
        ("list_files", {"folder": "tests", "pattern": "*.py"}),
    )
    recorder.call(None, read("README.md"), on("word_count", "README.md"), ("list_files", {"folder": "docs"}))
    recorder.say(
        f"The package is `src/trimtab` ({len(listing.splitlines())} files). Start with `errors.py`: it is "
        "short, and its docstring draws every way a call can fail. Then read from the front door inwards: "
        "`context.py` has `fit`, `strategies/` decides what leaves, `units.py` keeps a tool call and its "
        "results together."
    )


def errors(recorder: Recorder) -> None:
    """Read one file, then check its claim against the code."""
    recorder.user("Which exceptions do I have to expect? I only want to catch what I can act on.")
    recorder.call(None, read("src/trimtab/errors.py"))
    recorder.call("That is the tree. Now where they are really raised:", search(r"\braise \w+Error", "src"))
    recorder.say(
        "One root, `ContextError`, catches everything of ours and nothing else. Act on two of them: "
        "`BudgetExceededError` (what must stay does not fit: it carries the numbers, so raise the budget or "
        "unpin something) and `MissingExtraError` (its text is the install line). The others are mistakes in "
        "the call."
    )


def missing_file(recorder: Recorder) -> None:
    """Run into a missing file and recover."""
    recorder.user("A blog post talks about trimmer.py. Walk me through it please.")
    recorder.call(None, read("src/trimtab/trimmer.py"))
    recorder.call(
        "There is no such file; perhaps it was renamed. I'll search by name and by word.",
        ("list_files", {"folder": "src", "pattern": "*trim*"}),
        search("trimmer"),
    )
    recorder.call(None, search(r"on_trim|TrimContext", "src"))
    recorder.say(
        "The post is wrong or about another version: `src/trimtab/trimmer.py` does not exist. What comes "
        "nearest is the `on_trim` callback, which is called with a `TrimContext` before anything is decided."
    )


def huge_output(recorder: Recorder) -> None:
    """Search for a word that is everywhere: one output of tens of kilobytes."""
    recorder.user("Where do tokens get counted? Show me every place the word appears.")
    (hits,) = recorder.call("That will be long, but you asked for every place.", search("[Tt]oken|[Cc]ount"))
    recorder.call("Too much to be useful. Definitions only:", search(r"def \w*(count|tokens)\w*\(", "src"))
    recorder.say(
        f"The word is on more lines than one can read (the output alone has {len(hits):,} characters). The "
        "second search is the useful one: counting lives in `src/trimtab/counting/`, and everything else "
        "asks a counter."
    )


def run_tests(recorder: Recorder) -> None:
    """Run test files, two at once where there are two."""
    recorder.user("Do the tests pass on this machine? A few files are enough.")
    chosen = sorted(suite_files(recorder), key=lambda path: _size(recorder, path))[:4]
    if not chosen:
        recorder.say("There are no test files here.")
        return
    outputs = recorder.call("The smallest ones, at once.", *(on("run_tests", path) for path in chosen))
    passed = sum(output.startswith("exit code 0") for output in outputs)
    recorder.say(f"{passed} of the {len(outputs)} files I ran ended with exit code 0.")


def failing_snippet(recorder: Recorder) -> None:
    """Assume something wrong, see it fail, look closer."""
    recorder.user("If a text gets cut, can it cut a family emoji in half? 👩‍👩‍👧 is one character, right?")
    claim = "text = '👩‍👩‍👧'\nassert len(text) == 1, f'{len(text)} code points'"
    recorder.call("I'd think so. Let me check it rather than believe it.", ("run_python", {"code": claim}))
    closer = "import unicodedata\nfor c in '👩‍👩‍👧':\n    print(f'U+{ord(c):04X}', unicodedata.name(c))"
    recorder.call("It is not: the assertion failed.", ("run_python", {"code": closer}), search("grapheme"))
    recorder.say(
        "I was wrong. For Python 👩‍👩‍👧 is five code points: three people held together by two ZERO WIDTH "
        "JOINERs. A cut by code points could leave 👩 alone, so the place that shortens text has to know "
        "grapheme clusters; the search shows where it does."
    )


def other_language(recorder: Recorder) -> None:
    """Switch language for a turn, and search for a character outside ASCII."""
    recorder.user("我同事只看中文: 请用两句话说明这个库做什么, 再找一下哪里画了箭头 (→)。")
    recorder.call(None, search("→|─▶"))
    recorder.say(
        "trimtab 把一段很长的对话裁剪到规定的 token 预算之内, 并且不会把一次工具调用和它的结果拆开。"
        "每一条被移除或缩短的消息都会写进报告, 并说明原因。带箭头的行见上面的搜索结果。"
    )
    recorder.user("Perfekt, danke schön! Back to English: what is the largest module?")
    paths = modules(recorder)
    largest = max(paths, key=lambda path: _size(recorder, path))
    recorder.call(None, ("list_files", {"folder": "src", "pattern": "*.py"}))
    counts = recorder.call(None, on("word_count", largest), on("outline", largest))
    recorder.say(
        f"`{largest}`: {counts[0]}. The outline shows that it is many small functions, not one big one."
    )


def untested(recorder: Recorder) -> None:
    """Compare two listings."""
    recorder.user("Which modules have no test file of their own name?")
    recorder.call(None, *(("list_files", {"folder": name, "pattern": "*.py"}) for name in ("src", "tests")))
    names = " ".join(suite_files(recorder))
    alone = [path for path in modules(recorder) if f"test_{_stem(path)}" not in names]
    listed = ", ".join(f"`{path}`" for path in alone) or "none"
    recorder.say(f"By name alone: {listed}. A test elsewhere may still cover them; a name proves nothing.")
    recorder.user("OK, that's what I expected. Thanks.")
    recorder.say("You're welcome.")


def review(paths: Sequence[str], request: str) -> Turn:
    """Make a turn that goes through modules one by one, as long agent runs do."""

    def turn(recorder: Recorder) -> None:
        recorder.user(request)
        for number, path in enumerate(paths, 1):
            review_one(recorder, path, words=f"{number} of {len(paths)}: `{path}`.")
        recorder.say(f"I went through {len(paths)} files; each one's outline, pages and uses are above.")

    return turn


def review_one(recorder: Recorder, path: str, *, words: str) -> None:
    """Outline, page through, look for uses, and run the test of the same name."""
    outline, _ = recorder.call(words, on("outline", path), on("word_count", path))
    recorder.call(None, read(path, first_line=1, last_line=MODULE_LINES))
    name = next((row.split()[2] for row in outline.splitlines() if len(row.split()) > 2), _stem(path))
    folder = "tests" if path.startswith("src") else "src"
    recorder.call(None, search(rf"\b{name}\b", folder))
    tests = [found for found in suite_files(recorder) if found.endswith(f"/test_{_stem(path)}.py")]
    if tests and _size(recorder, tests[0]) <= QUICK_TEST_BYTES:
        (output,) = recorder.call(f"`{name}` is what others use of it. Its tests:", on("run_tests", tests[0]))
        recorder.say(f"`{path}` done: {output.splitlines()[-1]}.")


def reviews(recorder: Recorder) -> list[Turn]:
    """Share the tree's files among three long requests."""
    paths = modules(recorder)
    top = [path for path in paths if path.count("/") == 2][: REVIEWED_FILES // 2]
    inner = [path for path in paths if path.count("/") > 2][: REVIEWED_FILES // 2 - 3]
    tests = suite_files(recorder)[: REVIEWED_FILES - len(top) - len(inner)]
    return [
        review(top, "Now review the top-level modules, one at a time. Don't stop to ask, I'm at lunch."),
        review(inner, "Same for the packages below it: formats, counting, strategies and the rest."),
        review(tests, "And the first few test files, in the same way."),
    ]


def open_end(recorder: Recorder) -> None:
    """Ask the last question and stop where the model would be called again."""
    recorder.user(
        "Last one: I want to write my own strategy. Find out what I have to implement, and what checks me "
        "if I get it wrong."
    )
    paths = modules(recorder)
    recorder.call("First who defines it.", search(r"class \w*(Strategy|Eviction|Contract)\w*", "src"))
    strategies = [path for path in paths if "strateg" in path][:4] or paths[:2]
    recorder.call(None, *(on("outline", path) for path in strategies))
    recorder.call(None, search(r"StrategyContractError"), ("list_files", {"folder": "docs"}))
    recorder.call("Now the file most of it hangs on, whole.", read(_page_sized(recorder, strategies)))


def _page_sized(recorder: Recorder, paths: Sequence[str]) -> str:
    """Choose the file nearest to 9 kB: too long for a 2,000-token budget, easy for 8,000."""
    return min(paths, key=lambda path: abs(_size(recorder, path) - 9_000))


def _size(recorder: Recorder, path: str) -> int:
    return (recorder.tools.root / path).stat().st_size


def _stem(path: str) -> str:
    return Path(path).stem.lstrip("_")


def record(root: Path, *, turns: int | None = None) -> dict[str, Any]:
    """Play the script over a tree; `turns` stops after so many of its scenes."""
    recorder = Recorder(root)
    scenes: list[Turn] = [orientation, failing_snippet, missing_file, errors, huge_output, run_tests]
    scenes += [other_language, untested, *reviews(recorder), open_end]
    for scene in scenes[:turns]:
        scene(recorder)
    return {"about": ABOUT, "recorded": _circumstances(root), "tools": SCHEMAS, "messages": recorder.messages}


def _circumstances(root: Path) -> dict[str, str | None]:
    return {
        "commit_before": _commit(root),
        "date": datetime.now(UTC).date().isoformat(),
        "command": "python examples/record_session.py",
    }


def _commit(root: Path) -> str | None:
    """Give the commit the tree is at or has changed from; None where git cannot say."""
    ask = ["git", "rev-parse", "--short", "HEAD"]
    try:
        done = subprocess.run(ask, cwd=root, capture_output=True, encoding="utf-8", check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def as_text(session: dict[str, Any]) -> str:
    """Write a session as JSON, one message a line, so that a diff shows which messages changed."""
    parts = []
    for key, value in session.items():
        if isinstance(value, list):
            rows = ",\n".join(json.dumps(row, ensure_ascii=False) for row in value)
            parts.append(f"{json.dumps(key)}: [\n{rows}\n]")
        else:
            parts.append(f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def main() -> None:
    """Record, write, and say how much it became."""
    parser = argparse.ArgumentParser(
        description="Record the demo's conversation: scripted words, real tools."
    )
    parser.add_argument("--root", type=Path, default=HERE.parent, help="project whose tree the tools work on")
    parser.add_argument("--output", type=Path, default=HERE / "agent_session.json")
    parser.add_argument("--turns", type=int, help="stop after so many scenes (all by default)")
    options = parser.parse_args()
    session = record(options.root, turns=options.turns)
    text = as_text(session)
    options.output.write_text(text, encoding="utf-8")
    said = f"{len(session['messages'])} messages, {len(text.encode()):,} bytes: {options.output}"
    print(said, file=sys.stderr)


if __name__ == "__main__":
    main()
