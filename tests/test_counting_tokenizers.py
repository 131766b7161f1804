"""Exact tokenizers: they agree with each other, take any text, and are never fetched from the network."""

from __future__ import annotations

import base64
import hashlib
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.chat_vocabulary import SPECIAL, chat_tokenizer
from trimtab import Budget, EstimateCounter
from trimtab.counting import ENCODINGS, UsageBaseline, clear_counts, counter_for, measure, register_encoding
from trimtab.errors import ConfigurationError, MissingExtraError, UnknownNameError
from trimtab.models import ModelFacts, facts_for, register_model
from trimtab.testing.hooks import (
    PACKAGES,
    PIECE_CHARS,
    VOCABULARIES,
    Tokenizer,
    guard,
    load_tokenizer,
    nothing_loaded,
    pieces_of,
)

SHARED = tuple(name for name in ENCODINGS if sum(name in known for known in PACKAGES.values()) > 1)
"""Encodings that more than one package has."""

OF_OPENAI = [package for package, known in PACKAGES.items() if "o200k_base" in known]


def loaded(encoding: str = "o200k_base") -> list[Tokenizer]:
    """Load one encoding in every package that has it."""
    return [load_tokenizer(encoding, package=name) for name, known in PACKAGES.items() if encoding in known]


SAMPLES = [
    "",
    "Hello, world!",
    "don't we'll I'M",
    "  two  spaces\n\n\tand lines \r\n",
    '{"user_id": "mia_li_3668", "price": 1234567.89}',
    "今天天气很好，我们去公园散步吧。",
    "Привет, как дела?",
    "안녕하세요",
    "नमस्ते दुनिया",
    "👨‍👩‍👧‍👦🇩🇪é\u0301",
    "<|endoftext|><|im_start|>user<|fim_prefix|>",
    "a" * 300,
    "=" * 300,
    "\x00\x01\ufeff",
]


@pytest.mark.parametrize("encoding", SHARED)
@pytest.mark.parametrize("text", SAMPLES)
def test_the_packages_agree_on_a_text(text: str, encoding: str) -> None:
    """Two vendors and OpenAI's own count the same."""
    counts = {one.package: one.count(text) for one in loaded(encoding)}
    assert len(set(counts.values())) == 1, counts


LETTERS = st.characters(codec="utf-8", categories=["L", "N", "P", "S", "Zs"], max_codepoint=0x2FFF)


@given(st.text(LETTERS | st.sampled_from(" \n\t'_/"), max_size=60))
def test_the_packages_agree_on_any_text(text: str) -> None:
    """Over scripts, digits, marks and blanks that are assigned in every Unicode of the last years."""
    ours, *others = (one.count(text) for one in loaded())
    assert others == [ours] * len(others)


def strings_in(value: Any) -> Iterator[str]:
    """List every string in a JSON value, keys too."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from strings_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from strings_in(inner)


@pytest.fixture(scope="module")
def real_texts(data_dir: Path) -> list[str]:
    """Read every distinct string of the shared data: messages, calls, results, schemas, ids."""
    found: set[str] = set()
    for path in sorted(data_dir.glob("*.json*")):
        lines = path.read_text(encoding="utf-8").splitlines()
        for whole in lines if path.suffix == ".jsonl" else ["".join(lines)]:
            found.update(strings_in(json.loads(whole)))
    assert len(found) > 10_000
    assert sum(map(len, found)) > 3_000_000
    return sorted(found)


@pytest.mark.few(1)
@pytest.mark.parametrize("encoding", SHARED)
def test_the_packages_agree_on_all_real_text_there_is(real_texts: list[str], encoding: str) -> None:
    """Two vendors and OpenAI's own count every string of the shared data the same."""
    first, *others = loaded(encoding)
    assert len(others) == 2
    counts = [first.count(text) for text in real_texts]
    for one in others:
        found = zip(real_texts, counts, map(one.count, real_texts), strict=True)
        assert [(one.package, text, ours, theirs) for text, ours, theirs in found if ours != theirs] == []


@pytest.mark.long
def test_hugging_face_agrees_on_all_real_text_there_is(real_texts: list[str]) -> None:
    """The same vocabulary in a fourth implementation, except for the special tokens it lets act."""
    count, tokenizer = load_tokenizer("cl100k_base").count, chat_tokenizer()
    texts = [text for text in real_texts if not any(special in text for special in SPECIAL)]
    assert len(texts) > 0.99 * len(real_texts)
    found = ((text, count(text), len(tokenizer.encode(text, add_special_tokens=False))) for text in texts)
    assert [row for row in found if row[1] != row[2]] == []


def test_a_special_token_in_a_text_is_ordinary_text() -> None:
    """A user may write it; the provider does not let it act."""
    for one in loaded():
        assert one.count("<|endoftext|>") > 1
    content = {"role": "user", "content": "<|endoftext|>"}
    assert counter_for("gpt-4o").count_message(content) > 3 + 1 + 1


@pytest.mark.parametrize("package", OF_OPENAI)
@pytest.mark.parametrize(
    "text",
    [
        pytest.param(" " * 1_100_000, id="spaces"),
        pytest.param(" \t" * 550_000 + "x", id="blanks"),
        pytest.param("a" * 1_000_000, id="letters"),
        pytest.param("\n" * 1_000_000, id="lines"),
        pytest.param("的" * 333_000, id="chinese"),
    ],
)
def test_a_megabyte_without_a_break_is_counted(text: str, package: str) -> None:
    """A million spaces makes unguarded tiktoken panic; cut into pieces it is nearly exact."""
    exact = load_tokenizer("o200k_base", package="toktok").count(text)
    count = load_tokenizer("o200k_base", package=package).count(text)
    assert abs(count - exact) <= 2 * (len(text) // PIECE_CHARS)


@pytest.mark.parametrize("package", OF_OPENAI)
def test_lone_surrogates_are_counted(package: str) -> None:
    """JSON may hold half a character; tokenizers see it replaced."""
    counter = counter_for("gpt-4o", tokenizer=package)
    assert counter.count_text("half \ud83d of one") == counter.count_text("half \ufffd of one")


PROSE = st.text(st.sampled_from("ab Z9,.。，\n'的é_/"), min_size=40, max_size=400)


@given(PROSE, st.integers(0, 50))
def test_long_texts_are_cut_between_tokens(unit: str, more: int) -> None:
    """Pieces are short, add up to the text, and where there are words cost what it costs."""
    text = unit * ((PIECE_CHARS + 2_000) // len(unit)) + "a" * more
    pieces = list(pieces_of(text))
    assert "".join(pieces) == text
    assert all(0 < len(piece) <= PIECE_CHARS for piece in pieces)
    count = load_tokenizer("o200k_base", package="toktok").count
    if "a b" in unit:
        assert sum(map(count, pieces)) == count(text)
    else:
        assert abs(sum(map(count, pieces)) - count(text)) <= 2 * (len(pieces) - 1)


class PanicException(BaseException):
    """What pyo3 raises is called so, and is no Exception."""


def test_a_panic_is_halved_away() -> None:
    """A text that makes the encoder panic is counted in parts; one that cannot be parted raises."""

    def encode(text: str) -> list[int]:
        if len(text) > 10:
            raise PanicException
        return [0] * len(text)

    def hopeless(text: str) -> list[int]:
        raise PanicException

    assert guard(encode)("x" * 1_000) == 1_000
    with pytest.raises(PanicException):
        guard(hopeless)("x" * 4)


def test_an_interrupt_is_not_a_panic() -> None:
    """Ctrl-C during a long text stops it."""

    def encode(text: str) -> list[int]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        guard(encode)("x" * 100)


def test_the_vocabularies_are_the_published_ones() -> None:
    """Our URLs lead to the cache keys that packages ship: known names of known files."""
    keys = {name: hashlib.sha1(entry.url.encode()).hexdigest()[:8] for name, entry in VOCABULARIES.items()}
    assert keys == {"o200k_base": "fb374d41", "o200k_harmony": "fb374d41", "cl100k_base": "9b5ad71b"}


def test_our_patterns_are_those_of_tiktoken() -> None:
    """A release of tiktoken that splits otherwise is noticed here."""
    spec = find_spec("tiktoken_ext")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    source = Path(next(iter(spec.submodule_search_locations)), "openai_public.py").read_text(encoding="utf-8")
    for entry in (VOCABULARIES["o200k_base"], VOCABULARIES["cl100k_base"]):
        assert entry.sha256 in source
        assert entry.url in source
    for part in VOCABULARIES["o200k_base"].pattern.split("|[^"):
        assert part.removeprefix("[^").split(r"|\p{N}{1,3}|")[0] in source


@pytest.fixture
def fresh_tokenizers() -> Iterator[None]:
    """Let nothing be loaded yet, and forget what the test loads."""
    with nothing_loaded():
        yield


def lose_vocabularies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no file that is found be the right one."""
    for name, entry in VOCABULARIES.items():
        monkeypatch.setitem(VOCABULARIES, name, entry._replace(sha256=""))


@pytest.mark.usefixtures("fresh_tokenizers")
@pytest.mark.parametrize(
    ("package", "place"),
    [
        ("litellm", "litellm_core_utils/tokenizers"),
        ("llama_index", "core/_static/tiktoken_cache"),
    ],
)
def test_a_vocabulary_that_another_package_ships_is_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, package: str, place: str
) -> None:
    """By its folder: the package is not imported, which would take seconds."""
    ranks = b"".join(b"%b %d\n" % (base64.b64encode(bytes([i])), i) for i in range(256))
    entry = VOCABULARIES["cl100k_base"]
    file = tmp_path / package / place / hashlib.sha1(entry.url.encode()).hexdigest()
    file.parent.mkdir(parents=True)
    file.write_bytes(ranks)
    (tmp_path / package / "__init__.py").write_text("raise ImportError('imported')", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    own = entry._replace(sha256=hashlib.sha256(ranks).hexdigest())
    monkeypatch.setitem(VOCABULARIES, "cl100k_base", own)
    assert load_tokenizer("cl100k_base", package="tiktoken").count("hello") == 5


@pytest.mark.usefixtures("fresh_tokenizers")
def test_a_package_is_loaded_once_and_shared() -> None:
    """The first that is installed is taken, and asking for it by name gives the same one."""
    first = load_tokenizer("o200k_base")
    assert first.package == "toktok"
    assert load_tokenizer("o200k_base", package="toktok") is first
    assert load_tokenizer("o200k_base") is first
    assert load_tokenizer("o200k_base", package="tiktoken") is not first


@pytest.mark.usefixtures("fresh_tokenizers")
def test_without_any_package_the_install_line_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """No tokenizer is no guess: the error says what to install, and tiktoken's trap."""
    for name in ("toktok", "tiktoken", "bpe_openai"):
        monkeypatch.setitem(sys.modules, name, None)
    lose_vocabularies(monkeypatch)
    with pytest.raises(MissingExtraError) as caught:
        load_tokenizer("o200k_base")
    assert "pip install 'trimtab[exact]'" in str(caught.value)
    assert "TIKTOKEN_CACHE_DIR" in str(caught.value)
    assert (caught.value.extra, caught.value.package) == ("exact", "toktok-rs")


@pytest.mark.usefixtures("fresh_tokenizers")
def test_tiktoken_without_its_vocabulary_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would download it; we go without."""
    lose_vocabularies(monkeypatch)
    with pytest.raises(MissingExtraError, match=r"pip install 'trimtab\[tiktoken\]'"):
        load_tokenizer("o200k_base", package="tiktoken")


@pytest.mark.usefixtures("fresh_tokenizers")
def test_a_vocabulary_in_the_cache_folder_is_found_if_it_is_the_right_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """TIKTOKEN_CACHE_DIR is looked in; a file that was tampered with is passed over."""
    ranks = b"".join(b"%b %d\n" % (base64.b64encode(bytes([i])), i) for i in range(256))
    entry = VOCABULARIES["cl100k_base"]
    (tmp_path / hashlib.sha1(entry.url.encode()).hexdigest()).write_bytes(ranks)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    assert load_tokenizer("cl100k_base", package="tiktoken").count("hello") == 1
    own = entry._replace(sha256=hashlib.sha256(ranks).hexdigest())
    monkeypatch.setitem(VOCABULARIES, "cl100k_base", own)
    with nothing_loaded():
        assert load_tokenizer("cl100k_base", package="tiktoken").count("hello") == 5


def public_only(count: Callable[[str], int]) -> ModuleType:
    """Make a toktok without its private encoder objects."""
    package = ModuleType("toktok")
    package.__dict__["batch_count"] = lambda texts, encoding, threads: [count(text) for text in texts]
    return package


@pytest.mark.usefixtures("fresh_tokenizers")
def test_when_the_private_encoder_moves_the_public_function_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """A newer toktok is slower at worst."""
    monkeypatch.setitem(sys.modules, "toktok", public_only(len))
    assert load_tokenizer("o200k_base", package="toktok").count("four") == 4


def test_the_private_encoder_is_where_we_use_it() -> None:
    """Fails when the pinned toktok moves it; then look at speed again and raise the pin."""
    import toktok

    private = toktok._encoding("o200k_base").count
    for text in SAMPLES:
        assert private(text) == toktok.batch_count([text], "o200k_base", threads=1)[0]
    assert type(load_tokenizer("o200k_base", package="toktok").count) is type(private)


@pytest.mark.parametrize(
    ("encoding", "package"),
    [("o200k", None), ("p50k_base", None), ("o200k_base", "toktoken"), ("", "toktok")],
)
def test_an_unknown_name_is_an_error_with_the_known_ones(encoding: str, package: str | None) -> None:
    """Nothing is guessed from a name."""
    with pytest.raises(UnknownNameError, match="known: "):
        load_tokenizer(encoding, package=package)


@pytest.mark.usefixtures("fresh_tokenizers")
def test_without_its_package_a_mistral_encoding_says_the_install_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And nothing of packages that do not have it."""
    monkeypatch.setitem(sys.modules, "mistral_common.tokens.tokenizers.tekken", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'trimtab\[mistral\]'") as caught:
        load_tokenizer("tekken")
    assert "tiktoken" not in str(caught.value)


@pytest.mark.usefixtures("fresh_tokenizers")
@pytest.mark.parametrize("exact", [True, False])
def test_a_model_with_an_exact_counter_is_not_estimated_without_its_extra(
    monkeypatch: pytest.MonkeyPatch, exact: bool
) -> None:
    """A count that is silently no count is worse than none; one that is not exact anyway falls back."""
    monkeypatch.setitem(sys.modules, "mistral_common.tokens.tokenizers.tekken", None)
    name = f"acme-tekken-{exact}"
    facts = facts_for("mistral-large-latest")
    register_model(replace(facts, name=name, exact=exact), replace=True)
    if exact:
        with pytest.raises(MissingExtraError, match=r"pip install 'trimtab\[mistral\]'"):
            counter_for(name)
    else:
        assert counter_for(name).exact is False


def test_a_package_without_the_encoding_is_an_error_that_names_those_with_it() -> None:
    """It is not taken from another package in silence."""
    with pytest.raises(UnknownNameError, match="of tekken 'tiktoken'; known: mistral-common"):
        load_tokenizer("tekken", package="tiktoken")


def test_the_vocabulary_of_qwen_takes_special_tokens_as_text() -> None:
    """The other encoding toktok carries; `<think>` is a token there, and text where a user writes it."""
    qwen = load_tokenizer("qwen3.5").count
    assert qwen("<think>") > 1
    assert qwen("What is a token?") == 5


def test_a_tekken_count_is_that_of_its_package() -> None:
    """Every id of mistral-common's own tokenizer is one token."""
    from mistral_common.tokens.tokenizers.mistral import MistralTokenizer

    tokenizer = MistralTokenizer.v3(is_tekken=True).instruct_tokenizer.tokenizer
    count = load_tokenizer("tekken").count
    for text in SAMPLES:
        assert count(text) == len(tokenizer.encode(text, bos=False, eos=False))
    assert count(" " * 1_100_000) > 0


def test_an_encoding_of_ones_own_counts_for_models() -> None:
    """Registered once, its name works in the facts of a model; built-in names are not taken over."""
    register_encoding("words", lambda text: len(text.split()))
    register_model(ModelFacts(name="acme-words", encoding="words"))
    assert counter_for("acme-words").count_text("four words are here") == 4
    clear_counts()
    with pytest.raises(ConfigurationError, match="replace=True"):
        register_encoding("words", len)
    register_encoding("words", len, replace=True)
    assert load_tokenizer("words").count("four") == 4
    with pytest.raises(ConfigurationError, match="comes with a package"):
        register_encoding("o200k_base", len, replace=True)


def test_models_of_one_encoding_share_what_they_remember() -> None:
    """A text counted for gpt-4o is not counted again for gpt-5."""
    clear_counts()
    counter_for("gpt-4o").count([{"role": "user", "content": "remember me"}])
    cache = load_tokenizer("o200k_base").cache
    before = len(cache)
    assert before > 0
    counter_for("gpt-5").count([{"role": "user", "content": "remember me"}])
    assert len(cache) == before
    clear_counts()
    assert len(cache) == 0


def test_a_model_has_one_counter() -> None:
    """However its name is written."""
    assert counter_for("gpt-4o") is counter_for("openai/gpt-4o-2024-08-06")
    assert counter_for("gpt-4o") is not counter_for("gpt-4o", tokenizer="tiktoken")
    assert counter_for("gpt-4o").exact


def test_a_replaced_encoding_counts_from_then_on() -> None:
    """For models of it, and for those it is near to; what was made before stays as it is."""
    register_encoding("acme-replaced", lambda text: len(text.split()), replace=True)
    register_model(ModelFacts(name="acme-own", encoding="acme-replaced"), replace=True)
    register_model(ModelFacts(name="acme-near", near_encoding="acme-replaced", text_factor=2.0), replace=True)
    before = counter_for("acme-own")
    assert (before.count_text("a b c"), counter_for("acme-near").count_text("a b c")) == (3, 6)
    register_encoding("acme-replaced", len, replace=True)
    assert counter_for("acme-own").count_text("a b c") == 5
    assert counter_for("acme-near").count_text("a b c") == 10
    assert before.count_text("a b c d") == 4
    assert counter_for("acme-own") is counter_for("acme-own")


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: counter_for([]),  # type: ignore[arg-type]
        lambda: counter_for("gpt-4o", tokenizer=5),  # type: ignore[arg-type]
        lambda: counter_for("gpt-4o", tokenizer=[]),  # type: ignore[arg-type]
        lambda: facts_for(None),  # type: ignore[arg-type]
        lambda: facts_for(5),  # type: ignore[arg-type]
        lambda: register_encoding("acme-none", 5),  # type: ignore[arg-type]
        lambda: register_encoding(5, len),  # type: ignore[arg-type]
        lambda: measure([{"role": "user", "content": "hi"}], counter=EstimateCounter),
        lambda: Budget(100, margin="auto").resolved(EstimateCounter),
        lambda: UsageBaseline(EstimateCounter()).record([], 10, model=5),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_name_and_no_counter_is_refused(wrong: Any) -> None:
    """By an error of ours that says what to pass."""
    with pytest.raises(ConfigurationError, match=r"not|class"):
        wrong()
