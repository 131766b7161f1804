"""Key rings of the tests of encrypted stores: one key, the next beside it, the next alone, and a third."""

from __future__ import annotations

from trimtab.stores import KeyRing

FIRST, SECOND, THIRD = (word * 6 for word in (b"first ", b"second ", b"third "))
OLD = KeyRing({"one": FIRST})
BOTH = KeyRing({"one": FIRST, "two": SECOND}, current="two")
NEW = KeyRing({"two": SECOND})
ALL = KeyRing({"one": FIRST, "two": SECOND, "three": THIRD}, current="three")
