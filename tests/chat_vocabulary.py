"""A tokenizer of the `tokenizers` package with a published vocabulary, templates, a counter for Mistral.

No package that we test with carries a tokenizer.json, so one is built: the ranks of cl100k_base say which
merges there are.
"""

from __future__ import annotations

import base64
import gzip
import json
from functools import lru_cache
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import tokenizers
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

from trimtab.counting import MistralCounter, counter_for
from trimtab.models import Framing

PATTERN = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
    r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)
"""Where cl100k_base cuts texts, as tiktoken_ext/openai_public.py of tiktoken 0.14.0 has it."""

SPECIAL = ("<|im_start|>", "<|im_end|>", "<|endoftext|>")

CHATML = """{%- if tools %}<|im_start|>system
{% if messages[0].role == 'system' %}{{ messages[0].content }}
{% endif %}Tools:
{% for tool in tools %}{{ tool | tojson }}
{% endfor %}<|im_end|>
{% elif messages[0].role == 'system' %}<|im_start|>system
{{ messages[0].content }}<|im_end|>
{% endif %}
{%- for message in messages %}
{%- if message.role == 'system' %}
{%- if not loop.first %}{{ raise_exception('System comes first') }}{% endif %}
{%- elif message.role == 'tool' %}
{%- if messages[loop.index0 - 1].role != 'tool' %}<|im_start|>user{% endif %}
<result>{{ message.content }}</result>
{%- if loop.last or messages[loop.index0 + 1].role != 'tool' %}<|im_end|>
{% endif %}
{%- else %}<|im_start|>{{ message.role }}
{{ message.content }}
{%- for call in message.tool_calls or [] %}
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
{%- endfor %}<|im_end|>
{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
"""Frames a message in special tokens, groups results, shows tools with the system text."""

THINKING = """{%- set last = namespace(user=-1) %}
{%- for message in messages %}
{%- if message.role == 'user' %}{% set last.user = loop.index0 %}{% endif %}
{%- endfor %}
{%- if last.user < 0 %}{{ raise_exception('No user query found') }}{% endif %}
{%- for message in messages %}<|im_start|>{{ message.role }}
{% if message.role == 'assistant' and loop.index0 > last.user %}
<think>{{ message.reasoning_content }}</think>
{% endif %}{{ message.content }}
{%- for call in message.tool_calls or [] %}
{{- call.function.name }}: {{ call.function.arguments | tojson }}
{%- endfor %}
{%- generation %}<|im_end|>{% endgeneration %}

{% endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
<think>
{% endif %}"""
"""Shows what was thought in the turn that goes on, and refuses a request without a user."""

TURNS = """{%- if tools %}{{ raise_exception('No tools here') }}{% endif %}{{ bos_token }}
{%- for message in messages %}
{%- if message.role not in ('user', 'assistant') %}
{{- raise_exception('Role ' + message.role + ' not supported') }}
{%- endif %}
{%- if (message.role == 'user') != (loop.index0 % 2 == 0) %}
{{- raise_exception('Roles must alternate') }}
{%- endif %}
{{- '[' + message.role + '] ' + message.content + '\\n' }}
{%- endfor %}"""
"""Takes users and answers in turns, and nothing else."""

TEXT_CALLS = """{% for message in messages %}<|im_start|>{{ message.role }}
{% if message.content is none %}
{% for call in message.tool_calls %}
{{ call.function.name + call.function.arguments }}{% endfor %}
{% else %}
{{ message.content }}
{% endif %}
<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
"""Takes arguments as text, and shows calls only where content is null."""

PARTS = """{% for message in messages %}<|im_start|>{{ message.role }}
{% if message.content is string %}{{ raise_exception('Content is a list') }}{% endif %}
{% for part in message.content %}{{ part['text'] }}{% endfor %}
{% for call in message.tool_calls or [] %}{{ call.function.arguments | tojson }}{% endfor %}
<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
"""Takes content as parts."""


TEMPLATES = {"chatml": CHATML, "thinking": THINKING, "text calls": TEXT_CALLS, "parts": PARTS}
"""Those that take tools, results and system text."""


def mistral_counter(*, shows_ids: bool = False) -> MistralCounter:
    """Make a counter for version 13 of Mistral's requests, or 11, which shows the model the ids of calls."""
    count_text = counter_for("mistral-large-latest").count_text
    framing = Framing(per_request_tokens=1, result_ids_counted=shows_ids)
    return MistralCounter(count_text, name="mistral", exact=True, framing=framing)


@lru_cache(maxsize=1)
def chat_tokenizer() -> Tokenizer:
    """Build the tokenizer, once: the vocabulary as bpe-openai carries it, and special tokens of a chat."""
    letters = _byte_letters()
    ranks = _ranks()
    vocabulary = {"".join(letters[byte] for byte in token): rank for token, rank in ranks.items()}
    merges = [
        ("".join(letters[byte] for byte in left), "".join(letters[byte] for byte in right))
        for token in sorted(ranks, key=ranks.__getitem__)
        if len(token) > 1
        for left, right in [_halves(token, ranks)]
    ]
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges, ignore_merges=True))
    pattern = PATTERN
    # the package's regular expressions write possessive repeats and the end of a text otherwise
    for theirs, written in (("++", "+"), ("?+", "?"), ("*+", "*"), ("{1,3}+", "{1,3}"), ("$", r"\z")):
        pattern = pattern.replace(theirs, written)
    split = pre_tokenizers.Split(tokenizers.Regex(pattern), "isolated")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(text, special=True) for text in SPECIAL])
    return tokenizer


def _ranks() -> dict[bytes, int]:
    spec = find_spec("bpe_openai")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    file = Path(next(iter(spec.submodule_search_locations)), "data", "cl100k_base.tiktoken.gz")
    lines = (line.split() for line in gzip.decompress(file.read_bytes()).splitlines())
    return {base64.b64decode(token): int(rank) for token, rank in lines}


def _halves(token: bytes, ranks: dict[bytes, int]) -> tuple[bytes, bytes]:
    """Merge a token's bytes by rank until the two are left that make it."""
    parts = [bytes([byte]) for byte in token]
    while len(parts) > 2:
        pairs = [ranks.get(left + right, len(ranks)) for left, right in pairwise(parts)]
        at = pairs.index(min(pairs))
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    return parts[0], parts[1]


def _byte_letters() -> dict[int, str]:
    """Map bytes to the letters the package writes them as: printable ones as they are, others above 255."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters = {byte: chr(byte) for byte in printable}
    others = [byte for byte in range(256) if byte not in letters]
    return letters | {byte: chr(256 + at) for at, byte in enumerate(others)}


@lru_cache(maxsize=1)
def small_tokenizer() -> Tokenizer:
    """Make a tokenizer of few words, which a worker reads in no time."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        special_tokens=list(SPECIAL), initial_alphabet=alphabet, show_progress=False
    )
    made.train_from_iterator(["the user and the assistant see a flight to the lake " * 2, "xxxx"], trainer)
    return made


def write_small_model(folder: Path) -> Path:
    """Write it and CHATML as Hugging Face keeps them; the template in a file of its own as well."""
    folder.mkdir()
    small_tokenizer().save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": CHATML}), "utf-8")
    (folder / "other.jinja").write_text(CHATML, "utf-8")
    return folder
