"""The plan of a window, stored as versioned JSON before it is applied, so that a repeat does the same.

A plan that this release cannot read is reported and never replaced: a new plan could apply changes twice.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from memory.errors import BadInput, MemproxyError
from memory.learn.plan_inputs import PlanInputs
from memory.model import Change, Memory

VERSION = 5


class UnreadablePlan(MemproxyError):
    """Stored by another version, or damaged. Nothing of it was applied by us; an operator has to look."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The actions of a window, in this order: delete `forget`, write `changes` and `raw`, add `outcomes` to receipts.

    `outcomes`: by receipt id, the results of what the user asked of memory; ids and counts, never contents.
    `inputs`: what the changes were planned from; None for a plan without claims.
    `raw`: rows with the raw words of the window's turns.
    """

    changes: Sequence[Change] = ()
    forget: tuple[str, ...] = ()
    outcomes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    inputs: PlanInputs | None = None
    raw: tuple[Memory, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not (self.changes or self.forget or self.outcomes or self.raw)


def encode(plan: Plan) -> bytes:
    """ASCII JSON, which preserves lone surrogates that some clients send."""
    stored = msgspec.to_builtins(plan) | {"version": VERSION}
    stored["basis"] = stored.pop("inputs")  # as the stored format calls it
    return json.dumps(stored, allow_nan=False).encode()


def decode(plan: bytes) -> Plan:
    """The decoded plan. Raises `UnreadablePlan`."""
    try:
        stored = json.loads(plan)
        if stored["version"] != VERSION:
            raise UnreadablePlan(f"the stored plan has version {stored['version']!r:.20}, we read {VERSION}")
        return msgspec.convert({**stored, "inputs": stored["basis"]}, Plan)
    except (ValueError, KeyError, TypeError, BadInput, msgspec.ValidationError) as error:
        raise UnreadablePlan("the stored plan is not one of ours") from error
