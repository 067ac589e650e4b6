"""What is stored with a window, as versioned JSON: the claims that were read until there is a plan, then the plan.

A plan is stored before it is applied, so that a repeat does the same. One that this release cannot read is reported and
never replaced: a new plan could apply changes twice. Claims are stored because a model is slow and its next answer may
differ, also those of a request to forget, with its turn; the gate checks them again. If they are damaged or of another
release, the window is read again, which is safe because nothing was applied.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from memory.errors import BadInput, MemproxyError
from memory.learn.plan_inputs import PlanInputs
from memory.model import Change, Claim, Memory
from memory.typed import converted

VERSION = 5
READING_VERSION = 1
STAGE = "read"  # marks claims that were read; plans have no stage


class UnreadablePlan(MemproxyError):
    """Stored by another version, or damaged. Nothing of it was applied by us; an operator has to look."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The actions of a window, in this order: delete `forget`, write `changes` and `raw`, add `outcomes` to receipts.

    `outcomes`: by receipt id, what became of orders; ids and counts, never contents. What is kept is counted last.
    `inputs`: what the changes were planned from; None for a plan without claims.
    `raw`: rows with the raw words of the window's turns.
    """

    changes: Sequence[Change] = ()
    forget: tuple[str, ...] = ()
    outcomes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    inputs: PlanInputs | None = None
    raw: tuple[Memory, ...] = ()


def encode(plan: Plan) -> bytes:
    stored = msgspec.to_builtins(plan) | {"version": VERSION}
    stored["basis"] = stored.pop("inputs")  # as the stored format calls it
    return _ascii_json(stored)


def decode(plan: bytes) -> Plan:
    """The decoded plan. Raises `UnreadablePlan`."""
    try:
        stored = json.loads(plan)
        if stored["version"] != VERSION:
            raise UnreadablePlan(f"the stored plan has version {stored['version']!r:.20}, we read {VERSION}")
        return converted({**stored, "inputs": stored["basis"]}, Plan)
    except (ValueError, KeyError, TypeError, BadInput, msgspec.ValidationError) as error:
        raise UnreadablePlan("the stored plan is not one of ours") from error


def encode_claims(claims: Sequence[Claim]) -> bytes:
    return _ascii_json({"stage": STAGE, "version": READING_VERSION, "claims": msgspec.to_builtins(claims)})


def decode_claims(stored: bytes | None) -> list[Claim] | None:
    """The stored claims; None if the window has to be read again."""
    try:
        read = json.loads(stored or b"null")
        is_ours = read is not None and (read["stage"], read["version"]) == (STAGE, READING_VERSION)
        return converted(read["claims"], list[Claim]) if is_ours else None
    except (ValueError, KeyError, TypeError, BadInput, msgspec.ValidationError):
        return None


def is_reading(stored: bytes | None) -> bool:
    """Whether nothing was planned yet. Undecodable bytes count as a plan, whose decoder reports the error."""
    if stored is None:
        return True
    try:
        read = json.loads(stored)
    except ValueError:
        return False
    return isinstance(read, dict) and "stage" in read


def _ascii_json(stored: Mapping[str, Any]) -> bytes:
    """It preserves lone surrogates that some clients send."""
    return json.dumps(stored, allow_nan=False).encode()
