"""All metrics of the product; names and labels are a contract with dashboards and alerts.

No label ever contains a user, a session, a project, or anything that a client chose. Units are part of the name.
docs/reference_pages makes a page of them.
"""

from __future__ import annotations

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
        self._in_the_request(registry)
        self._of_summaries(registry)
        self._of_answers(registry)
        self._after_the_reply(registry)
        self._of_arms(registry)
        self._of_models(registry)
        self._of_the_parts(registry)

    def _in_the_request(self, registry: CollectorRegistry) -> None:
        self.requests = Counter(
            "memproxy_requests", "Chat requests by what memory did for them.", ["status", "reason"], registry=registry
        )
        self.bodies_passed = Counter(
            "memproxy_bodies_passed", "Bodies passed on untouched, by why.", ["reason"], registry=registry
        )
        self.identity_refused = Counter(
            "memproxy_identity_refused", "Requests whose identity was refused, by why.", ["reason"], registry=registry
        )
        self.recall_seconds = Histogram(
            "memproxy_recall_seconds", "Time in recall, by stage.", ["stage"], registry=registry, buckets=FAST_SECONDS
        )
        self.recall_in_flight = Gauge(
            "memproxy_recall_in_flight", "Recalls under way.", registry=registry, multiprocess_mode="livesum"
        )
        self.recall_shed = Counter(
            "memproxy_recall_shed",
            "Requests passed on without memory: too many in flight.",
            registry=registry,
        )
        self.recall_late = Counter("memproxy_recall_late", "Recalls cut off by the deadline.", registry=registry)
        self.memories_injected = Histogram(
            "memproxy_memories_injected", "Memories in a note.", registry=registry, buckets=COUNTS
        )
        self.note_tokens = Histogram("memproxy_note_tokens", "Tokens of a note.", registry=registry, buckets=TOKENS)

        self.compactions = Counter(
            "memproxy_compactions",
            "States of long conversations by what became of their preparation (made, known, not_due, refused, failed).",
            ["outcome"],
            registry=registry,
        )
        self.compaction_writings = Counter(
            "memproxy_compaction_writings",
            "Stretches of long conversations put to a model, by outcome (written, refused, failed).",
            ["outcome"],
            registry=registry,
        )
        self.compacted_tokens_saved = Counter(
            "memproxy_compacted_tokens_saved",
            "Estimated tokens that requests had less because a state replaced their history.",
            registry=registry,
        )

        self.holdout_questions = Counter(
            "memproxy_holdout_questions",
            "Questions for which a new note was found while conversations are held out, by arm (noted, held_out).",
            ["arm"],
            registry=registry,
        )
        self.placement_switched = Counter(
            "memproxy_placement_switched",
            "Models whose notes stand elsewhere from now on, by where and by why (asked, refused).",
            ["placement", "source"],
            registry=registry,
        )

    def _of_summaries(self, registry: CollectorRegistry) -> None:
        self.summaries = Counter(
            "memproxy_summaries",
            "Sessions that were over, by what became of their summary (quoted, written, no_substance, overtaken, "
            "failed).",
            ["outcome"],
            registry=registry,
        )
        self.summaries_recalled = Counter(
            "memproxy_summaries_recalled", "Summaries of sessions that were put into a new note.", registry=registry
        )
        self.answers_recalled = Counter(
            "memproxy_answers_recalled",
            "Earlier answers of the assistant of which passages were put into a new note.",
            registry=registry,
        )
        self.erasures_waiting_seconds = Gauge(
            "memproxy_erasures_waiting_seconds",
            "Age of the oldest erasure of a user whose files are not rewritten yet.",
            registry=registry,
            multiprocess_mode="livemax",
        )

    def _of_answers(self, registry: CollectorRegistry) -> None:
        self.answers_without_turn = Counter(
            "memproxy_answers_without_turn", "Final answers of tool loops whose turn is unknown.", registry=registry
        )

    def _after_the_reply(self, registry: CollectorRegistry) -> None:
        self.turns = Counter("memproxy_turns", "Turns observed, by how the reply ended.", ["status"], registry=registry)
        self.turns_lost = Counter(
            "memproxy_turns_lost", "Turns that could not be written to the turn log.", ["reason"], registry=registry
        )
        self.replies_over_cap = Counter(
            "memproxy_replies_over_cap", "Replies too large to keep: forwarded, answer not recorded.", registry=registry
        )
        self.queue_turns = Gauge(
            "memproxy_queue_turns",
            "Turns in the log by state.",
            ["state"],
            registry=registry,
            multiprocess_mode="livemax",
        )
        self.queue_oldest_seconds = Gauge(
            "memproxy_queue_oldest_seconds",
            "Age of the oldest finished turn that is not learnt.",
            registry=registry,
            multiprocess_mode="livemax",
        )
        self.windows = Counter(
            "memproxy_windows", "Windows of turns that a worker handled, by outcome.", ["outcome"], registry=registry
        )
        self.learn_seconds = Histogram(
            "memproxy_learn_seconds", "Time to learn one window.", registry=registry, buckets=SLOW_SECONDS
        )
        self.learn_lag_seconds = Histogram(
            "memproxy_learn_lag_seconds",
            "From the end of a window's first turn until the window was learnt.",
            registry=registry,
            buckets=LAG_SECONDS,
        )
        self.turns_shed = Counter(
            "memproxy_turns_shed",
            "Turns given up unlearnt because too many were waiting, the least valuable first.",
            registry=registry,
        )
        self.facts = Counter("memproxy_facts", "Facts by what became of them.", ["outcome"], registry=registry)
        self.facts_dropped = Counter(
            "memproxy_facts_dropped", "Facts that the gate refused, by reason.", ["reason"], registry=registry
        )

        self.upkeep_changes = Counter(
            "memproxy_upkeep_changes", "Memories that upkeep changed, by why.", ["why"], registry=registry
        )
        self.upkeep_rounds = Counter(
            "memproxy_upkeep_rounds",
            "Scheduled rounds over one user's memories, by outcome.",
            ["outcome"],
            registry=registry,
        )
        self.upkeep_seconds = Histogram(
            "memproxy_upkeep_seconds",
            "Time of one round over one user's memories.",
            registry=registry,
            buckets=SLOW_SECONDS,
        )

    def _of_arms(self, registry: CollectorRegistry) -> None:
        """Counted by the worker, of turns at or after the first question of a conversation with an arm."""
        self.holdout_turns = Counter(
            "memproxy_holdout_turns", "Turns of conversations with an arm.", ["arm"], registry=registry
        )
        self.holdout_signs = Counter(
            "memproxy_holdout_signs",
            "What users said in such conversations after their first question with an arm, by sign (follow_up, "
            "correction, repeated_fact).",
            ["arm", "sign"],
            registry=registry,
        )
        self.holdout_answer_tokens = Histogram(
            "memproxy_holdout_answer_tokens",
            "Estimated tokens of an answer in such a conversation.",
            ["arm"],
            registry=registry,
            buckets=ANSWER_TOKENS,
        )

    def _of_models(self, registry: CollectorRegistry) -> None:
        self.embed_seconds = Histogram(
            "memproxy_embed_seconds", "One text through the model.", ["lane"], registry=registry, buckets=FAST_SECONDS
        )
        self.embed_shed = Counter("memproxy_embed_shed", "Texts refused because the queue was full.", registry=registry)
        self.model_calls = Counter(
            "memproxy_model_calls",
            "Calls to chat models that memory asks, by role and outcome (answered, unusable, late, failed, spared).",
            ["role", "outcome"],
            registry=registry,
        )
        self.model_shortfalls = Counter(
            "memproxy_model_shortfalls",
            "What an extraction model did not answer as it was asked to, by what was done instead.",
            ["of"],
            registry=registry,
        )
        self.model_tokens = Counter(
            "memproxy_model_tokens",
            "Tokens of those calls as the server counts them (prompt, cached among the prompt's, answer), by role.",
            ["role", "kind"],
            registry=registry,
        )

    def _of_the_parts(self, registry: CollectorRegistry) -> None:
        self.store_seconds = Histogram(
            "memproxy_store_seconds", "Calls to Milvus.", ["call"], registry=registry, buckets=FAST_SECONDS
        )
        self.store_errors = Counter("memproxy_store_errors", "Failed calls to Milvus.", ["call"], registry=registry)
        self.snapshots = Counter(
            "memproxy_snapshots",
            "Snapshots of working sets by what was done or met (read, missing, torn, foreign, outdated, read_failed, "
            "written, write_failed, erased, erase_failed).",
            ["outcome"],
            registry=registry,
        )
        self.unknown_timezones = Counter(
            "memproxy_unknown_timezones", "Chats that named a time zone which nobody knows.", registry=registry
        )
        self.profiles = Counter(
            "memproxy_profiles", "Profiles of users built, by outcome.", ["outcome"], registry=registry
        )
        self.reader_exam_score = Gauge(
            "memproxy_reader_exam_score",
            "What the chat model that may read messages reached in its exam, 0..1; 0 while it has not sat it.",
            registry=registry,
            multiprocess_mode="livemax",
        )
        self.part_up = Gauge(
            "memproxy_part_up", "1 while a part works.", ["part"], registry=registry, multiprocess_mode="livemin"
        )
        self.part_start_seconds = Gauge(
            "memproxy_part_start_seconds",
            "Time from the start of `memproxy up` until the part worked for the first time.",
            ["part"],
            registry=registry,
            multiprocess_mode="livemin",
        )
        self.part_restarts = Counter("memproxy_part_restarts", "Restarts.", ["part"], registry=registry)
        self.service_token_calls = Counter(
            "memproxy_service_token_calls", "Calls with service tokens.", ["token", "outcome"], registry=registry
        )
        self.api_seconds = Histogram(
            "memproxy_api_seconds", "REST calls.", ["route", "code"], registry=registry, buckets=CALL_SECONDS
        )
