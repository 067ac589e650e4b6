"""All metrics of the product; names and labels are a contract with dashboards and alerts.

No label ever contains a user, a session, a project, or anything that a client chose. Units are part of the name.
docs/reference_pages makes a page of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

# What happens within a request: 1 to 15 ms where all is well, a deadline of 120 ms by default and of 400 at most.
FAST_SECONDS = (0.0005, 0.001, 0.002, 0.004, 0.008, 0.015, 0.03, 0.06, 0.09, 0.12, 0.15, 0.25, 0.4, 1.0, 5.0)
# A call of the API: reads take milliseconds, writes embed their text, a flush waits up to 2 minutes.
CALL_SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 3.0, 10.0, 30.0, 120.0)
# Reading and storing: tenths with the trained reader, seconds with a chat model.
SLOW_SECONDS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
# Learning after a chat: within a second, or after the debounce of a chat model, or after an outage.
LAG_SECONDS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 60.0, 120.0, 300.0, 1_800.0, 7_200.0)
COUNTS = (0, 1, 2, 3, 5, 8, 13, 21, 34, 55)
TOKENS = (50, 100, 200, 400, 800, 1200, 1600, 2000)
ANSWER_TOKENS = (10, 20, 50, 100, 200, 400, 800, 1600, 3200)


class Metrics:
    """One set per process. Several processes share one endpoint through prometheus_client's multiprocess files."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        self._counter = partial(Counter, registry=registry)
        self._gauge = partial(Gauge, registry=registry)
        self._histogram = partial(Histogram, registry=registry)
        self._in_the_request()
        self._of_summaries()
        self._after_the_reply()
        self._of_arms()
        self._of_models()
        self._of_the_parts()

    def _in_the_request(self) -> None:
        self.requests = self._counter(
            "memproxy_requests", "Chat requests by what memory did for them.", ["status", "reason"]
        )
        self.bodies_passed = self._counter("memproxy_bodies_passed", "Bodies passed on untouched, by why.", ["reason"])
        self.identity_refused = self._counter(
            "memproxy_identity_refused", "Requests whose identity was refused, by why.", ["reason"]
        )
        self.recall_seconds = self._histogram(
            "memproxy_recall_seconds", "Time in recall, by stage.", ["stage"], buckets=FAST_SECONDS
        )
        self.recall_in_flight = self._gauge(
            "memproxy_recall_in_flight", "Recalls under way.", multiprocess_mode="livesum"
        )
        self.recall_shed = self._counter(
            "memproxy_recall_shed", "Requests passed on without memory: too many in flight."
        )
        self.recall_late = self._counter("memproxy_recall_late", "Recalls cut off by the deadline.")
        self.memories_injected = self._histogram("memproxy_memories_injected", "Memories in a note.", buckets=COUNTS)
        self.note_tokens = self._histogram("memproxy_note_tokens", "Tokens of a note.", buckets=TOKENS)

        self.compactions = self._counter(
            "memproxy_compactions",
            "States of long conversations by what became of their preparation (made, known, not_due, refused, failed).",
            ["outcome"],
        )
        self.compaction_writings = self._counter(
            "memproxy_compaction_writings",
            "Stretches of long conversations put to a model, by outcome (written, refused, failed).",
            ["outcome"],
        )
        self.compacted_tokens_saved = self._counter(
            "memproxy_compacted_tokens_saved",
            "Estimated tokens that requests had less because a state replaced their history.",
        )

        self.holdout_questions = self._counter(
            "memproxy_holdout_questions",
            "Questions for which a new note was found while conversations are held out, by arm (noted, held_out).",
            ["arm"],
        )
        self.placement_switched = self._counter(
            "memproxy_placement_switched",
            "Models whose notes stand elsewhere from now on, by where and by why (asked, refused).",
            ["placement", "source"],
        )

    def _of_summaries(self) -> None:
        self.summaries = self._counter(
            "memproxy_summaries",
            "Sessions that were over, by what became of their summary (quoted, written, no_substance, overtaken, "
            "failed).",
            ["outcome"],
        )
        self.summaries_recalled = self._counter(
            "memproxy_summaries_recalled", "Summaries of sessions that were put into a new note."
        )
        self.answers_recalled = self._counter(
            "memproxy_answers_recalled", "Earlier answers of the assistant of which passages were put into a new note."
        )
        self.erasures_waiting_seconds = self._gauge(
            "memproxy_erasures_waiting_seconds",
            "Age of the oldest erasure of a user whose files are not rewritten yet.",
            multiprocess_mode="livemax",
        )
        self.answers_without_turn = self._counter(
            "memproxy_answers_without_turn", "Final answers of tool loops whose turn is unknown."
        )

    def _after_the_reply(self) -> None:
        self.turns = self._counter("memproxy_turns", "Turns observed, by how the reply ended.", ["status"])
        self.turns_lost = self._counter(
            "memproxy_turns_lost", "Turns that could not be written to the turn log.", ["reason"]
        )
        self.turns_waiting = self._gauge(
            "memproxy_turns_waiting",
            "Writes of turns that wait in the filters' memory for the turn log.",
            multiprocess_mode="livesum",
        )
        self.replies_over_cap = self._counter(
            "memproxy_replies_over_cap", "Replies too large to keep: forwarded, answer not recorded."
        )
        self.queue_turns = self._gauge(
            "memproxy_queue_turns", "Turns in the log by state.", ["state"], multiprocess_mode="livemax"
        )
        self.queue_oldest_seconds = self._gauge(
            "memproxy_queue_oldest_seconds",
            "Age of the oldest finished turn that is not learnt.",
            multiprocess_mode="livemax",
        )
        self.windows = self._counter(
            "memproxy_windows", "Windows of turns that a worker handled, by outcome.", ["outcome"]
        )
        self.learn_seconds = self._histogram(
            "memproxy_learn_seconds", "Time to learn one window.", buckets=SLOW_SECONDS
        )
        self.learn_lag_seconds = self._histogram(
            "memproxy_learn_lag_seconds",
            "From the end of a window's first turn until the window was learnt.",
            buckets=LAG_SECONDS,
        )
        self.turns_shed = self._counter(
            "memproxy_turns_shed", "Turns given up unlearnt because too many were waiting, the least valuable first."
        )
        self.facts = self._counter("memproxy_facts", "Facts by what became of them.", ["outcome"])
        self.facts_dropped = self._counter(
            "memproxy_facts_dropped", "Facts that the gate refused, by reason.", ["reason"]
        )

        self.upkeep_changes = self._counter("memproxy_upkeep_changes", "Memories that upkeep changed, by why.", ["why"])
        self.upkeep_rounds = self._counter(
            "memproxy_upkeep_rounds", "Scheduled rounds over one user's memories, by outcome.", ["outcome"]
        )
        self.upkeep_seconds = self._histogram(
            "memproxy_upkeep_seconds", "Time of one round over one user's memories.", buckets=SLOW_SECONDS
        )

    def _of_arms(self) -> None:
        """Counted by the worker, of turns at or after the first question of a conversation with an arm."""
        self.holdout_turns = self._counter("memproxy_holdout_turns", "Turns of conversations with an arm.", ["arm"])
        self.holdout_signs = self._counter(
            "memproxy_holdout_signs",
            "What users said in such conversations after their first question with an arm, by sign (follow_up, "
            "correction, repeated_fact).",
            ["arm", "sign"],
        )
        self.holdout_answer_tokens = self._histogram(
            "memproxy_holdout_answer_tokens",
            "Estimated tokens of an answer in such a conversation.",
            ["arm"],
            buckets=ANSWER_TOKENS,
        )

    def _of_models(self) -> None:
        self.embed_seconds = self._histogram(
            "memproxy_embed_seconds", "One text through the model.", ["lane"], buckets=FAST_SECONDS
        )
        self.embed_shed = self._counter("memproxy_embed_shed", "Texts refused because the queue was full.")
        self.model_calls = self._counter(
            "memproxy_model_calls",
            "Calls to chat models that memory asks, by role and outcome (answered, unusable, late, failed, spared).",
            ["role", "outcome"],
        )
        self.model_shortfalls = self._counter(
            "memproxy_model_shortfalls",
            "What an extraction model did not answer as it was asked to, by what was done instead.",
            ["of"],
        )
        self.model_tokens = self._counter(
            "memproxy_model_tokens",
            "Tokens of those calls as the server counts them (prompt, cached among the prompt's, answer), by role.",
            ["role", "kind"],
        )

    def _of_the_parts(self) -> None:
        self.store_seconds = self._histogram(
            "memproxy_store_seconds", "Calls to Milvus.", ["call"], buckets=FAST_SECONDS
        )
        self.store_errors = self._counter("memproxy_store_errors", "Failed calls to Milvus.", ["call"])
        self.snapshots = self._counter(
            "memproxy_snapshots",
            "Snapshots of working sets by what was done or met (read, missing, torn, foreign, outdated, read_failed, "
            "written, write_failed, erased, erase_failed).",
            ["outcome"],
        )
        self.unknown_timezones = self._counter(
            "memproxy_unknown_timezones", "Chats that named a time zone which nobody knows."
        )
        self.profiles = self._counter("memproxy_profiles", "Profiles of users built, by outcome.", ["outcome"])
        self.reader_exam_score = self._gauge(
            "memproxy_reader_exam_score",
            "What the chat model that may read messages reached in its exam, 0..1; 0 while it has not sat it.",
            multiprocess_mode="livemax",
        )
        self.part_up = self._gauge("memproxy_part_up", "1 while a part works.", ["part"], multiprocess_mode="livemin")
        self.part_start_seconds = self._gauge(
            "memproxy_part_start_seconds",
            "Time from the start of `memproxy up` until the part worked for the first time.",
            ["part"],
            multiprocess_mode="livemin",
        )
        self.part_restarts = self._counter("memproxy_part_restarts", "Restarts.", ["part"])
        self.service_token_calls = self._counter(
            "memproxy_service_token_calls", "Calls with service tokens.", ["token", "outcome"]
        )
        self.api_seconds = self._histogram(
            "memproxy_api_seconds", "REST calls.", ["route", "code"], buckets=CALL_SECONDS
        )


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
        *"no_evidence too_short too_long unsure echo secret planted framed rate withheld repeated".split()
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
"""Values that are known before anything happens, by attribute of `Metrics`, in the order of its labels: each is
exported from the start, as 0. Without that, a counter of failures does not exist until the first failure, which then
shows as no increase: an alert on it stays silent. Values that come from settings are not here.
"""


def announce(metrics: Metrics) -> None:
    for name, values in ANNOUNCED.items():
        for labels in values:
            getattr(metrics, name).labels(*labels)
