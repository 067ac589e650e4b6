"""The cost of an evaluation's model calls: their number, tokens and time, from the product's own metrics."""

from __future__ import annotations

from typing import Any

from prometheus_client import CollectorRegistry

ROLE = "memory_extraction"


def costs(registry: CollectorRegistry, *, turns: int, seconds: float) -> dict[str, Any]:
    """Figures per turn, and `seconds` of the whole run; empty if no model was called."""
    calls = sum(_count(registry, "memproxy_model_calls_total", outcome=one) for one in ("answered", "failed"))
    if not calls:
        return {}
    tokens = {
        kind: _count(registry, "memproxy_model_tokens_total", kind=kind) for kind in ("prompt", "cached", "answer")
    }
    per_turn = {f"{kind}_tokens_per_turn": round(count / max(1, turns), 1) for kind, count in tokens.items()}
    return {"model_calls": int(calls), **per_turn, "seconds": round(seconds, 1)}


def _count(registry: CollectorRegistry, name: str, **labels: str) -> float:
    return registry.get_sample_value(name, {"role": ROLE, **labels}) or 0.0
