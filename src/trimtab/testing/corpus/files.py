"""The cases that come with trimtab, and those of other files."""

from __future__ import annotations

import json
from pathlib import Path

from trimtab._shared.names import in_words, near_names
from trimtab.errors import ConfigurationError, UnknownNameError
from trimtab.testing.corpus.case import Case

_FOLDER = Path(__file__).parent


def cases(form: str | None = None, /) -> list[Case]:
    """List the cases that come with trimtab, those of one wire form or all.

    Raises:
        UnknownNameError: There are no cases in this form.

    Example:
        >>> {case.form for case in cases("gemini")}
        {'gemini'}
    """
    files = {path.stem: path for path in sorted(_FOLDER.glob("*.jsonl"))}
    if form is not None and form not in files:
        near = near_names(form, files)
        raise UnknownNameError(
            f"the corpus has no form {form!r}; there are: {', '.join(files)}{in_words(near)}",
            name=form,
            near=near,
        )
    return [case for stem, path in files.items() if form in (None, stem) for case in read_cases(path)]


def read_cases(path: str | Path, /) -> list[Case]:
    """Read the cases of a file, one JSON object a line.

    Raises:
        ConfigurationError: A line is no case; it is named.
    """
    found = []
    for number, line in enumerate(Path(path).read_text(encoding="utf-8").splitlines(), 1):
        if line.strip():
            try:
                found.append(Case.from_dict(json.loads(line)))
            except (ConfigurationError, TypeError, ValueError) as error:
                raise ConfigurationError(f"{path}, line {number}: {error}") from error
    return found
