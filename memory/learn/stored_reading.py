"""What was read, as it is stored: all of a window in place of a plan until there is one, a request with its turn.

A model is slow and may say something else the next time: a worker that dies between asking and planning must find what
was read. Only claims are stored; the gate looks at them again. What another release stored, or what is damaged, is
nothing that was applied: the window is read again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from memory.errors import BadInput
from memory.model import Act, Claim, Evidence, Relation, Scope

STAGE = "read"  # a plan has no stage
VERSION = 1


def encode(claims: Sequence[Claim]) -> bytes:
    """ASCII, so that lone surrogates, which some clients send, come back as they were."""
    stored = {"stage": STAGE, "version": VERSION, "claims": [asdict(claim) for claim in claims]}
    return json.dumps(stored, allow_nan=False).encode()


def is_reading(stored: bytes | None) -> bool:
    """Whether nothing was planned yet. What cannot be read is taken for a plan, which says so itself."""
    if stored is None:
        return True
    try:
        read = json.loads(stored)
    except ValueError:
        return False
    return isinstance(read, dict) and "stage" in read


def decode(stored: bytes | None) -> list[Claim] | None:
    """The claims as they were read; None where the window has to be read again."""
    try:
        read = json.loads(stored or b"null")
        is_ours = read is not None and (read["stage"], read["version"]) == (STAGE, VERSION)
        return [claim_of(fields) for fields in read["claims"]] if is_ours else None
    except (ValueError, KeyError, TypeError, BadInput):
        return None


def claim_of(fields: dict[str, Any]) -> Claim:
    """A claim as `asdict` took it apart, also after JSON."""
    built = {
        "act": Act(fields["act"]),
        "relation": Relation(fields["relation"]),
        "evidence": Evidence(**fields["evidence"]),
        "scope": Scope(**fields["scope"]),
        "values": tuple(fields["values"]),
    }
    return Claim(**{**fields, **built})
