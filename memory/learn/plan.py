"""The plan of a window as it is stored before it is applied: versioned JSON, so that a repeat does exactly the same.

A plan that another release wrote and this one cannot read is reported as such, never guessed at: planning anew could
double what was applied.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from memory.errors import BadInput, MemproxyError
from memory.model import Change, ChangeKind, Evidence, Memory, MemoryStatus, Trust

VERSION = 2


class UnreadablePlan(MemproxyError):
    """Stored by another version, or damaged. Nothing of it was applied by us; a human has to look."""


def encode(changes: Sequence[Change]) -> bytes:
    """ASCII, so that lone surrogates, which some clients send, come back as they were."""
    rows = [{"kind": change.kind.value, "memory": asdict(change.memory)} for change in changes]
    return json.dumps({"version": VERSION, "changes": rows}, allow_nan=False).encode()


def decode(plan: bytes) -> list[Change]:
    """The changes as they were planned. Raises `UnreadablePlan`."""
    try:
        stored = json.loads(plan)
        if stored["version"] != VERSION:
            raise UnreadablePlan(f"the stored plan has version {stored['version']!r:.20}, we read {VERSION}")
        return [Change(ChangeKind(row["kind"]), _memory(row["memory"])) for row in stored["changes"]]
    except (ValueError, KeyError, TypeError, BadInput) as error:
        raise UnreadablePlan("the stored plan is not one of ours") from error


def _memory(fields: dict[str, Any]) -> Memory:
    evidence = tuple(Evidence(**quoted) for quoted in fields.pop("evidence"))
    fields |= {"status": MemoryStatus(fields["status"]), "trust": Trust(fields["trust"]), "evidence": evidence}
    return Memory(**fields)
