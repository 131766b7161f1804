"""Sessions encrypted at rest: `encrypted(store, keys)` is a store whose rows only its keys can read."""

from __future__ import annotations

from trimtab.stores.encryption.keys import KeyRing, Keys, KmsKeys
from trimtab.stores.encryption.rotation import RotationReceipt
from trimtab.stores.encryption.store import EncryptedStore, encrypted

__all__ = ["EncryptedStore", "KeyRing", "Keys", "KmsKeys", "RotationReceipt", "encrypted"]
