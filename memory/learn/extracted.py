"""What extraction returned, as it is stored in place of a plan until there is one.

A model is slow and may say something else the next time: a worker that dies between asking and planning must find what
was answered. Only proposals are stored; the gate looks at them again. What another release stored, or what is damaged,
is nothing that was applied: it is extracted anew.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from memory.errors import BadInput
from memory.learn.facts import Fact
from memory.model import Evidence, Scope, Trust

STAGE = "extracted"  # a plan has no stage
VERSION = 1


def encode(facts: Sequence[Fact]) -> bytes:
    """ASCII, so that lone surrogates, which some clients send, come back as they were."""
    stored = {"stage": STAGE, "version": VERSION, "facts": [asdict(fact) for fact in facts]}
    return json.dumps(stored, allow_nan=False).encode()


def is_extraction(stored: bytes | None) -> bool:
    """Whether nothing was planned yet. What cannot be read is taken for a plan, which says so itself."""
    if stored is None:
        return True
    try:
        read = json.loads(stored)
    except ValueError:
        return False
    return isinstance(read, dict) and read.get("stage") == STAGE


def decode(stored: bytes) -> list[Fact] | None:
    """The facts as they were extracted; None where they have to be extracted anew."""
    try:
        read = json.loads(stored)
        return [fact_of(fields) for fields in read["facts"]] if read["version"] == VERSION else None
    except (ValueError, KeyError, TypeError, BadInput):
        return None


def fact_of(fields: dict[str, Any]) -> Fact:
    """A fact as `asdict` took it apart."""
    trust = fields["trust"]
    built = {"evidence": Evidence(**fields["evidence"]), "scope": Scope(**fields["scope"])}
    return Fact(**{**fields, **built, "trust": None if trust is None else Trust(trust)})


__all__ = ["decode", "encode", "fact_of", "is_extraction"]
