"""Users as digests of their ids: what is kept of a user who erased everything, or opted out."""

from __future__ import annotations

import hashlib


def user_hash(user_id: str) -> str:
    """SHA-256, in hexadecimal digits."""
    return hashlib.sha256(user_id.encode("utf-8", "surrogatepass")).hexdigest()
