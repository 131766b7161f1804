"""Exact tokenizers: they agree with each other, take any text, and are never fetched from the network."""

from __future__ import annotations

import base64
import hashlib
import json
import random
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.counting import TOKENIZERS, clear_counts, counter_for
from trimtab.counting._tiktoken import PIECE_CHARS, VOCABULARIES, guarded, pieces_of
from trimtab.counting._tokenizers import ENCODINGS, Tokenizer, load_tokenizer
from trimtab.errors import MissingExtraError, UnknownNameError

PACKAGES = sorted(TOKENIZERS)


def loaded(encoding: str = "o200k_base") -> list[Tokenizer]:
    """Load one encoding in every package."""
    return [load_tokenizer(encoding, package=package) for package in PACKAGES]


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


@pytest.mark.parametrize("encoding", ENCODINGS)
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


@pytest.mark.parametrize("encoding", ["o200k_base", "cl100k_base"])
def test_the_packages_agree_on_real_conversations(data_dir: Path, encoding: str) -> None:
    """A sample of all shared texts, one in nine."""
    texts = []
    for path in sorted(data_dir.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            for message in json.loads(line).get("messages", ()):
                texts.append(json.dumps(message.get("content"), ensure_ascii=False))
    sample = random.Random(0).sample(texts, len(texts) // 9)
    assert len(sample) > 500
    first, *others = loaded(encoding)
    for text in sample:
        assert [one.count(text) for one in others] == [first.count(text)] * len(others)


def test_a_special_token_in_a_text_is_ordinary_text() -> None:
    """A user may write it; the provider does not let it act."""
    for one in loaded():
        assert one.count("<|endoftext|>") > 1
    content = {"role": "user", "content": "<|endoftext|>"}
    assert counter_for("gpt-4o").count_message(content) > 3 + 1 + 1


@pytest.mark.parametrize("package", PACKAGES)
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


@pytest.mark.parametrize("package", PACKAGES)
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

    assert guarded(encode)("x" * 1_000) == 1_000
    with pytest.raises(PanicException):
        guarded(hopeless)("x" * 4)


def test_an_interrupt_is_not_a_panic() -> None:
    """Ctrl-C during a long text stops it."""

    def encode(text: str) -> list[int]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        guarded(encode)("x" * 100)


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
def fresh_tokenizers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nothing be loaded yet, and forget what the test loads."""
    monkeypatch.setattr("trimtab.counting._tokenizers._LOADED", {})


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
    monkeypatch.setattr("trimtab.counting._tiktoken.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError) as caught:
        load_tokenizer("o200k_base")
    assert "pip install 'trimtab[exact]'" in str(caught.value)
    assert "TIKTOKEN_CACHE_DIR" in str(caught.value)
    assert (caught.value.extra, caught.value.package) == ("exact", "toktok-rs")


@pytest.mark.usefixtures("fresh_tokenizers")
def test_tiktoken_without_its_vocabulary_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would download it; we go without."""
    monkeypatch.setattr("trimtab.counting._tiktoken._places", lambda vocabulary: iter(()))
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
    monkeypatch.setattr("trimtab.counting._tokenizers._LOADED", {})
    own = entry._replace(sha256=hashlib.sha256(ranks).hexdigest())
    monkeypatch.setitem(VOCABULARIES, "cl100k_base", own)
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
