"""Stores what was read: the claims of a window until there is a plan, or of a request to forget, with its turn.

A model is slow and its next answer may differ, so a worker that dies between reading and planning must find the claims
again. Only claims are stored; the gate checks them again. If they are damaged or of another release, the window is read
again, which is safe because nothing was applied.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import msgspec

from memory.errors import BadInput
from memory.model import Claim

STAGE = "read"  # marks a reading; plans have no stage
VERSION = 1


def encode(claims: Sequence[Claim]) -> bytes:
    """ASCII JSON, which preserves lone surrogates that some clients send."""
    stored = {"stage": STAGE, "version": VERSION, "claims": msgspec.to_builtins(claims)}
    return json.dumps(stored, allow_nan=False).encode()


def is_reading(stored: bytes | None) -> bool:
    """Whether nothing was planned yet. Undecodable bytes count as a plan, whose decoder reports the error."""
    if stored is None:
        return True
    try:
        read = json.loads(stored)
    except ValueError:
        return False
    return isinstance(read, dict) and "stage" in read


def decode(stored: bytes | None) -> list[Claim] | None:
    """The stored claims; None if the window has to be read again."""
    try:
        read = json.loads(stored or b"null")
        is_ours = read is not None and (read["stage"], read["version"]) == (STAGE, VERSION)
        return msgspec.convert(read["claims"], list[Claim]) if is_ours else None
    except (ValueError, KeyError, TypeError, BadInput, msgspec.ValidationError):
        return None
