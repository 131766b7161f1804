"""The walk over Bedrock's Converse messages that counts while it reads: Anthropic's, with blocks by key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trimtab.formats.anthropic.walk import NOTHING, Read, said_text
from trimtab.formats.anthropic.walk import Walk as AnthropicWalk
from trimtab.formats.bedrock.read import kind_of, view_of
from trimtab.formats.structure import Kind
from trimtab.formats.values import Dict

_CALL_KEYS = frozenset({"toolUseId", "name", "input"})
_RESULT_KEYS = frozenset({"toolUseId", "content", "status"})
_THOUGHT_KEYS = frozenset({"text", "signature"})


class Walk(AnthropicWalk):
    """One way back over messages."""

    __slots__ = ()

    def _blocks(self, message: Dict) -> Sequence[object]:
        return view_of(message)["content"] if isinstance(message.get("content"), list | tuple) else ()

    def _kind(self, message: Dict) -> Kind:
        return kind_of(message)

    # One branch a kind of block, in one loop: a call a block would cost a third of it.
    def _plain_blocks(self, role: str, blocks: Any) -> tuple[Read, int]:  # noqa: C901
        """Read and count blocks that are plain.

        Raises:
            KeyError: They are not, or are not the role's.
            TypeError: The same.
        """
        if blocks.__class__ is not list:
            raise KeyError
        prices = self._prices
        counts = prices.counts
        tokens = 0
        calls: list[str] = []
        results: list[str] = []
        last = ""
        for block in blocks:
            if block.__class__ is not dict or len(block) != 1:
                raise KeyError
            (key,) = block
            if key == "cachePoint":
                continue
            last, data = key, block[key]
            if key == "text":
                tokens += counts[data]
            elif key == "toolUse":
                name, given = data["name"], data["input"]
                if name.__class__ is not str or data.keys() != _CALL_KEYS:
                    raise KeyError
                if given.__class__ is not str:
                    if given.__class__ is not dict:
                        raise KeyError
                    given = prices.write_json(given)
                tokens += prices.per_call_tokens + counts[given] + prices.name_factor * counts[name]
                calls.append(said_text(data["toolUseId"]))
            elif key == "toolResult":
                held, answered = data["content"], data["toolUseId"]
                if not data.keys() <= _RESULT_KEYS:
                    raise KeyError
                tokens += prices.per_result_tokens + _result_tokens(held, counts)
                results.append(said_text(answered))
            elif key == "reasoningContent":
                tokens += self._thought_tokens(data)
            else:
                raise KeyError
        if results:
            if role != "user" or len(results) != _count_said(blocks):
                raise KeyError
            return ([], results, False), tokens
        if role != "assistant":
            if calls or last == "reasoningContent":
                raise KeyError
            return NOTHING, tokens
        if len(calls) > 1:
            tokens += prices.parallel_tokens + prices.further_call_tokens * (len(calls) - 1)
        return (calls, [], last == "reasoningContent"), tokens

    def _thought_tokens(self, data: Dict) -> int:
        """Count reasoning that can be read.

        Raises:
            KeyError: It cannot, or is counted in full.
            TypeError: The same.
        """
        thought = data["reasoningText"]
        said, prices = said_text(thought["text"]), self._prices
        if len(data) != 1 or not thought.keys() <= _THOUGHT_KEYS:
            raise KeyError
        if prices.thoughts_counted is None:
            raise KeyError
        return prices.counts[said] if prices.thoughts_counted else 0


def _count_said(blocks: list[Dict]) -> int:
    return sum(1 for block in blocks if "cachePoint" not in block)


def _result_tokens(content: Any, counts: dict[object, int]) -> int:
    """Count what a result holds: plain texts.

    Raises:
        KeyError: It holds something else.
        TypeError: The same.
    """
    if content.__class__ is not list:
        raise KeyError
    tokens = 0
    for block in content:
        if len(block) != 1 or block.__class__ is not dict:
            raise KeyError
        tokens += counts[block["text"]]
    return tokens
