"""What an error of the library says, in words of the command line: `--strict` for `strict=True`."""

from __future__ import annotations

import re

__all__ = ["said"]

_OPTIONS = "budget|model|counter|format|system|tools|strategy|margin|output_reserve|pin|repair|strict"
"""Parameters of front doors that are options of a command under the same name."""

_PHRASES = {
    "counter=EstimateCounter()": "--counter estimate",
    "budget= (tokens, or a Budget)": "--budget N",
    "repair(messages)": "`trimtab repair`",
    " (register_format)": "",
    " (it needs margin_tokens(tokens))": "",
    " in names=": " that a program gives",
    "names= has": "declared are",
}
"""What is no name of an option; as it stands in the library, and what takes its place."""

_PYTHON = re.compile(
    r"(?P<quoted>(?<!\w)'(?:[^'\\]|\\.)*'|(?<!\w)\"(?:[^\"\\]|\\.)*\")"
    rf"|(?P<phrase>{'|'.join(map(re.escape, _PHRASES))})"
    r"|(?P<row>register_model\(ModelFacts\(.*?\)\))"
    rf"|(?<![\w./-])(?P<option>{_OPTIONS})=(?:True\b|'(?P<value>[^']*)')?"
)


def said(error: Exception) -> str:
    """Return the text of an error for somebody at a shell; what it quotes stays as it was given."""
    return _PYTHON.sub(_word, str(error))


def _word(found: re.Match[str]) -> str:
    if found["phrase"]:
        return _PHRASES[found["phrase"]]
    if found["row"]:
        return "a row in the file that TRIMTAB_MODELS names"
    if found["option"]:
        value = f" {found['value']}" if found["value"] else ""
        return f"--{found['option'].replace('_', '-')}{value}"
    return found[0]
