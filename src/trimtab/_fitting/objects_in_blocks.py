"""Messages of a framework in the blocks of a `Context`."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import Any

from trimtab._fitting.blocks import Block, is_text
from trimtab._fitting.layout import Policy, blocks_in_order, items_of
from trimtab._fitting.objects import Objects
from trimtab._fitting.portion import name_block
from trimtab.errors import CountingError, FormatError

__all__ = ["ObjectsInBlocks"]


class ObjectsInBlocks(Objects):
    """The objects in the blocks of a `Context`, all of which are read; texts are not."""

    def __init__(self, policy: Policy) -> None:
        blocks = blocks_in_order(policy)
        super().__init__([*chain.from_iterable(map(items_of, blocks))], policy.read, policy.write)
        self.texts = {at for at, one in enumerate(self.given) if is_text(one)}
        self._several = several = list[list[Any]]()
        content: dict[str, Block] = {}
        for block in blocks:
            start = len(several)
            try:
                several += [self._in_block(start, at, one) for at, one in enumerate(items_of(block))]
            except (CountingError, FormatError) as error:
                name_block(error, block.name)
                raise
            self._spans[block.name] = range(start, len(several))
            own = several[start:]
            labels = block.labels and [
                word for word, made in zip(block.labels, own, strict=True) for _ in made
            ]
            content[block.name] = replace(block, content=[*chain.from_iterable(own)], labels=labels)
        self.lay_out()
        blocks_now = tuple(content.get(one.name, one) for one in policy.blocks)
        self.policy = replace(policy, blocks=blocks_now, owner_of=self.owner_of)
        """The same with wire messages in its blocks."""

    def _in_block(self, start: int, at: int, item: object) -> list[Any]:
        """Return what an entry of a block is on the wire; a text is none yet."""
        if start + at in self.texts:
            return [item]
        made = self.as_messages(self.answer(item, at), at)
        return made if type(made) is list else [made]
