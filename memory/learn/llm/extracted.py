"""What extraction returned, as it is stored in place of a plan until there is one.

A model is slow and may say something else the next time: a worker that dies between asking and planning must find what
was answered, and while not all was asked, what was answered so far. Only proposals are stored; the gate looks at them
again. What another release stored, or what is damaged, is nothing that was applied: it is extracted anew.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from memory.errors import BadInput
from memory.learn.facts import Fact
from memory.model import Evidence, Scope, Trust

STAGE = "extracted"  # a plan has no stage
VERSION = 1  # of the facts; a release that knows no answers reads them all the same, and extracts anew without any


def encode(facts: Sequence[Fact] | None, answers: Mapping[str, str] | None = None) -> bytes:
    """`facts`: None while not all was asked. `answers` of the model so far, by question.

    ASCII, so that lone surrogates, which some clients send, come back as they were.
    """
    told = None if facts is None else [asdict(fact) for fact in facts]
    stored = {"stage": STAGE, "version": VERSION, "facts": told, "answers": dict(answers or {})}
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


def answers_of(stored: bytes) -> dict[str, str]:
    """By question; none in what is a plan, or cannot be read."""
    try:
        read = json.loads(stored)
    except ValueError:
        return {}
    answers = read.get("answers") if isinstance(read, dict) and read.get("stage") == STAGE else None
    if not isinstance(answers, dict):
        return {}
    return {asked: said for asked, said in answers.items() if isinstance(said, str)}


def fact_of(fields: dict[str, Any]) -> Fact:
    """A fact as `asdict` took it apart."""
    trust = fields["trust"]
    built = {"evidence": Evidence(**fields["evidence"]), "scope": Scope(**fields["scope"])}
    return Fact(**{**fields, **built, "trust": None if trust is None else Trust(trust)})


__all__ = ["answers_of", "decode", "encode", "fact_of", "is_extraction"]
