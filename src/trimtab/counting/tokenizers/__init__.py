"""The tokenizers behind exact counts; the only module that knows their packages.

Each has a function here from an encoding's name to a text function, or to None where the
package is missing or cannot do it offline. Nothing here ever opens a network connection.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from trimtab._shared.checks import unknown_name
from trimtab.counting.base import TextFunction
from trimtab.counting.cache import TextCache
from trimtab.errors import ConfigurationError, MissingExtraError
from trimtab.formats.values import item_of

_OPENAI = ("o200k_base", "cl100k_base", "o200k_harmony")

ENCODINGS = (*_OPENAI, "tekken", "qwen3.5")
"""Encodings that come with a package. o200k_harmony splits ordinary text as o200k_base does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokenizer:
    """One loaded encoding: how it counts a text, and the counts it remembers."""

    encoding: str
    package: str
    count: TextFunction
    cache: TextCache


def load_tokenizer(encoding: str, /, *, package: str | None = None) -> Tokenizer:
    """Load an encoding once for the whole process, from the first package that can.

    Args:
        encoding: One of `ENCODINGS`, or registered.
        package: One of `TOKENIZERS`; None tries them in that order.

    Raises:
        UnknownNameError: Nobody knows the encoding or the package.
        MissingExtraError: No package that was asked for is installed with its vocabulary.
    """
    if package is not None:
        _check_name("tokenizer", package, tuple(TOKENIZERS))
    with _LOCK:
        loaded = LOADED.get((encoding, package))
        if loaded is None:
            _check_name("encoding", encoding, (*ENCODINGS, *sorted(_REGISTERED)))
            if encoding in _REGISTERED:
                return _REGISTERED[encoding]
            loaded = LOADED[encoding, package] = _load(encoding, package)
        return loaded


def is_at_hand(encoding: str, /) -> bool:
    """Tell whether a package is installed that has an encoding in it; nothing is loaded."""
    return encoding in _REGISTERED or any(
        encoding in PACKAGES[name] and find_spec(module) is not None for name, module in _COMPLETE.items()
    )


def distributions() -> list[str]:
    """List what may be installed to count: where these differ, counts may."""
    return [distribution for _, distribution in _INSTALLED_BY.values()]


def register_encoding(name: str, count_text: TextFunction, /, *, replace: bool = False) -> None:
    """Register an encoding of your own by name, for this process.

    From then on, `ModelFacts(encoding=name)` counts with it; existing counters do not change.

    Args:
        name: The name that models use for it.
        count_text: Returns the tokens of a text. It must count special tokens in a text as text, and accept
            long texts.
        replace: Whether to replace an encoding of that name; otherwise the name must be new.

    Raises:
        ConfigurationError: The name is taken and `replace` is not given, or the encoding comes with a
            package.

    Example:
        >>> register_encoding("acme-words", lambda text: len(text.split()))
    """
    if not isinstance(name, str) or not callable(count_text):
        raise ConfigurationError(
            "register_encoding takes a name and a function of a text, not"
            f" {name!r:.80} and {count_text!r:.80}"
        )
    with _LOCK:
        if name in ENCODINGS or (name in _REGISTERED and not replace):
            raise ConfigurationError(
                f"encoding {name!r} exists already"
                + ("; it comes with a package" if name in ENCODINGS else "; pass replace=True to change it")
            )
        if name in _REGISTERED:
            _REPLACED.append(name)
        cache = TextCache(count_text, name=name, origin=(_find_registered, (name, count_text)))
        _REGISTERED[name] = Tokenizer(encoding=name, package="", count=count_text, cache=cache)


def replacements() -> int:
    """Return how often an encoding was replaced: counters made before that count are not to be shared."""
    return len(_REPLACED)


def _load(encoding: str, package: str | None) -> Tokenizer:
    able = [name for name, known in PACKAGES.items() if encoding in known]
    if package is not None:
        _check_name(f"tokenizer of {encoding}", package, tuple(able))
    for name in able if package is None else (package,):
        shared = LOADED.get((encoding, name))
        if shared is not None:
            return shared
        count = TOKENIZERS[name](encoding)
        if count is not None:
            return LOADED.setdefault(
                (encoding, name),
                Tokenizer(
                    encoding=encoding,
                    package=name,
                    count=count,
                    cache=TextCache(count, name=encoding, origin=(_find_loaded, (encoding, name))),
                ),
            )
    extra, distribution = _INSTALLED_BY[package or able[0]]
    wanted = f"'trimtab[{extra}]'" if extra else distribution
    hint = " (or tiktoken without its vocabulary: set TIKTOKEN_CACHE_DIR)" if "tiktoken" in able else ""
    raise MissingExtraError(
        f"there is no offline tokenizer for {encoding}: {package or ', '.join(able)} not installed{hint}."
        f" Install one with: pip install {wanted}",
        extra=extra,
        package=distribution,
    )


def _find_loaded(encoding: str, package: str) -> TextCache:
    """Return the counts of an encoding in this process, for a counter that comes from another."""
    return load_tokenizer(encoding, package=package).cache


def _find_registered(name: str, count_text: TextFunction) -> TextCache:
    """Return the same of an encoding that a user registered; counts of its own where nobody did here."""
    with _LOCK:
        known = _REGISTERED.get(name)
    return (
        known.cache if known is not None and known.count is count_text else TextCache(count_text, name=name)
    )


def forget_counts() -> None:
    """Forget the counts remembered for texts, in every encoding loaded so far."""
    with _LOCK:
        for loaded in (*LOADED.values(), *_REGISTERED.values()):
            loaded.cache.clear()


def _check_name(what: str, name: object, known: tuple[str, ...]) -> None:
    if not isinstance(name, str):  # callers pass what users gave
        raise ConfigurationError(f"{what} must be a name, not {name!r:.80}; known: {', '.join(known)}")
    if name not in known:
        raise unknown_name(f"unknown {what} {name!r}; known: {', '.join(known)}", name, known)


def _module(name: str) -> ModuleType | None:
    try:
        return import_module(name)
    except ImportError:
        return None


def _toktok(encoding: str) -> TextFunction | None:
    """Count with toktok-rs, through its private encoder object where that is still in place.

    The public `batch_count` costs 8.7 µs for a single text, the private `count` 0.3 µs.
    """
    toktok = _module("toktok")
    if toktok is None:
        return None
    try:
        count: Any = toktok._encoding(encoding).count
        if count("a b") == 2:
            fast: TextFunction = count
            return fast
    except (AttributeError, KeyError, TypeError):
        pass
    batch_count: Any = item_of(toktok, "batch_count")
    if batch_count is None:
        return None

    def count_in_batch(text: str) -> int:
        return int(batch_count([text], encoding, threads=1)[0])

    return count_in_batch


def _tiktoken(encoding: str) -> TextFunction | None:
    from trimtab.counting.tokenizers.tiktoken import load_tiktoken

    return load_tiktoken(encoding)


def _bpe_openai(encoding: str) -> TextFunction | None:
    from trimtab.counting.tokenizers.tiktoken import guard

    with warnings.catch_warnings():
        # 0.1.4 reads its vocabulary through a function of importlib that is deprecated
        warnings.simplefilter("ignore", DeprecationWarning)
        package = _module("bpe_openai")
        if package is None:
            return None
        known = package.get_encoding(_RANKS_OF.get(encoding, encoding))
    return guard(known.encode_ordinary)


def _mistral_common(encoding: str) -> TextFunction | None:
    """Count with the vocabulary mistral-common carries; its two tekken files hold the same."""
    from pathlib import Path

    from trimtab.counting.tokenizers.tiktoken import guard

    package = _module("mistral_common.tokens.tokenizers.tekken")
    if package is None:
        return None
    folder = Path(str(package.__file__)).parents[2]
    tokenizer: Any = package.Tekkenizer.from_file(folder / "data" / "tekken_240718.json")

    def encode(text: str) -> list[int]:
        ids: list[int] = tokenizer.encode(text, bos=False, eos=False)
        return ids

    return guard(encode)


_RANKS_OF = {"o200k_harmony": "o200k_base"}
"""Encodings that differ from another in special tokens only, which user text never is."""

TOKENIZERS: dict[str, Callable[[str], TextFunction | None]] = {
    "toktok": _toktok,
    "tiktoken": _tiktoken,
    "bpe-openai": _bpe_openai,
    "mistral-common": _mistral_common,
}
"""The loader of each package, in the order they are tried."""

PACKAGES = {
    "toktok": (*_OPENAI, "qwen3.5"),
    "tiktoken": _OPENAI,
    "bpe-openai": _OPENAI,
    "mistral-common": ("tekken",),
}
"""What each package has, in the same order."""

_COMPLETE = {"toktok": "toktok", "bpe-openai": "bpe_openai", "mistral-common": "mistral_common"}
"""Modules of the packages that bring their vocabulary along."""

_INSTALLED_BY = {
    "toktok": ("exact", "toktok-rs"),
    "tiktoken": ("tiktoken", "tiktoken"),
    "bpe-openai": ("", "bpe-openai"),
    "mistral-common": ("mistral", "mistral-common"),
}
"""Our extra, if any, and the distribution that brings a package."""

LOADED: dict[tuple[str, str | None], Tokenizer] = {}
_REGISTERED: dict[str, Tokenizer] = {}
_REPLACED: list[str] = []
_LOCK = threading.RLock()
