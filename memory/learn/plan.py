"""The plan of a window, stored as versioned JSON before it is applied, so that a repeat does the same.

A plan that this release cannot read is reported and never replaced: a new plan could apply changes twice.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from memory.errors import BadInput, MemproxyError
from memory.learn import plan_inputs
from memory.learn.plan_inputs import PlanInputs
from memory.model import Change, ChangeKind, Evidence, Memory, MemoryStatus, Trust

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
    forget: Sequence[str] = ()
    outcomes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    inputs: PlanInputs | None = None
    raw: Sequence[Memory] = ()

    @property
    def is_empty(self) -> bool:
        return not (self.changes or self.forget or self.outcomes or self.raw)


def encode(plan: Plan) -> bytes:
    """ASCII JSON, which preserves lone surrogates that some clients send."""
    rows = [{"kind": change.kind.value, "memory": asdict(change.memory)} for change in plan.changes]
    inputs = None if plan.inputs is None else plan_inputs.to_json(plan.inputs)
    stored: dict[str, Any] = {
        "version": VERSION,
        "forget": list(plan.forget),
        "changes": rows,
        "outcomes": plan.outcomes,
        "basis": inputs,
    }
    if plan.raw:
        stored["raw"] = [asdict(row) for row in plan.raw]
    return json.dumps(stored, allow_nan=False).encode()


def decode(plan: bytes) -> Plan:
    """The decoded plan. Raises `UnreadablePlan`."""
    try:
        stored = json.loads(plan)
        if stored["version"] != VERSION:
            raise UnreadablePlan(f"the stored plan has version {stored['version']!r:.20}, we read {VERSION}")
        changes = [Change(ChangeKind(row["kind"]), _memory(row["memory"])) for row in stored["changes"]]
        inputs = None if stored.get("basis") is None else plan_inputs.from_json(stored["basis"])
        raw = tuple(_memory(row) for row in stored.get("raw", ()))
        return Plan(changes, tuple(stored["forget"]), dict(stored["outcomes"]), inputs, raw)
    except (ValueError, KeyError, TypeError, BadInput) as error:
        raise UnreadablePlan("the stored plan is not one of ours") from error


def _memory(fields: dict[str, Any]) -> Memory:
    evidence = tuple(Evidence(**quoted) for quoted in fields.pop("evidence"))
    fields |= {"status": MemoryStatus(fields["status"]), "trust": Trust(fields["trust"]), "evidence": evidence}
    fields["values"] = tuple(fields["values"])
    return Memory(**fields)
