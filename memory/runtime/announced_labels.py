"""Label values that are known before anything happens: each is exported from the start, as 0.

Without that, a counter of failures does not exist until the first failure, which then shows as no increase: an alert on
it stays silent, and a panel says "no data" where it should say 0. Values that come from settings are not here.
"""

from __future__ import annotations

from collections.abc import Mapping

from memory.runtime.metrics import Metrics

_ROLES = ("memory_extraction", "memory_rewrite")
_ARMS = ("noted", "held_out")


def _alone(*values: str) -> tuple[tuple[str, ...], ...]:
    """Of a metric with one label."""
    return tuple((value,) for value in values)


ANNOUNCED: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "requests": (
        ("used", "found"),
        ("used", "put_back"),
        ("empty", "nothing_relevant"),
        ("disabled", "disabled"),
        ("unavailable", "deadline"),
        ("unavailable", "busy"),
        ("unavailable", "milvus"),
        ("unavailable", "embedder"),
    ),
    "bodies_passed": _alone(
        "too_large", "content_encoding", "no_conversation", "no_memory_api", "slow_upload", "busy", "busy_unlearnt"
    ),
    "identity_refused": _alone(
        "several_headers", "invalid_header", "invalid_user", "disagreement", "unproven_user", "foreign_project"
    ),
    "compactions": _alone("made", "known", "not_due", "refused", "failed"),
    "compaction_writings": _alone("written", "refused", "failed"),
    "summaries": _alone("quoted", "written", "no_substance", "overtaken", "failed"),
    "placement_switched": tuple((place, source) for place in ("system", "off") for source in ("asked", "refused")),
    "turns": _alone("closed", "failed", "aborted"),
    "turns_lost": _alone("backlog", "failed", "unavailable"),
    "windows": _alone("learnt", "retried", "sat_out", "buried", "lost"),
    "facts": _alone("created", "updated", "superseded", "forgotten", "withdrawn", "restored"),
    "facts_dropped": _alone(
        "no_evidence", "too_short", "too_long", "unsure", "echo", "secret", "planted", "framed", "rate", "withheld"
    ),
    "upkeep_changes": _alone("duplicate", "united", "quota", "unused", "stale", "dated", "reflected", "erased"),
    "upkeep_rounds": _alone("done", "broken_off"),
    "model_calls": tuple(
        (role, outcome) for role in _ROLES for outcome in ("answered", "unusable", "late", "failed", "spared")
    ),
    "model_shortfalls": _alone("window", "pair", "rest", "repair", "claim", "verdict"),
    "model_tokens": tuple((role, kind) for role in _ROLES for kind in ("prompt", "cached", "answer")),
    "store_errors": _alone("search", "get", "apply", "page", "delete"),
    "snapshots": _alone("read", "missing", "written", "read_failed", "write_failed", "erase_failed"),
    "profiles": _alone("built", "overtaken"),
    "holdout_questions": _alone(*_ARMS),
    "holdout_turns": _alone(*_ARMS),
    "holdout_signs": tuple((arm, sign) for arm in _ARMS for sign in ("follow_up", "correction", "repeated_fact")),
    "holdout_answer_tokens": _alone(*_ARMS),
}
"""By attribute of `Metrics`, in the order of the metric's labels."""


def announce(metrics: Metrics) -> None:
    for name, values in ANNOUNCED.items():
        for labels in values:
            getattr(metrics, name).labels(*labels)
