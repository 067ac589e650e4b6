"""Decides whether the note that was found goes along: not in shadow mode, and not in a conversation that is held out.

A conversation that already carries notes keeps them: it was begun before it was held out, and belongs to no arm.
"""

from __future__ import annotations

from collections.abc import Mapping

from memory.chat.completions import ChatRequest
from memory.model import CandidateVerdict, Placement, Role, Scope
from memory.model.arms import ARM, NOTE_TOKENS, WITHHELD, Arm, Withholding
from memory.recall.notes.past_notes import NotePlan
from memory.recall.trace import RecallSettings, Trace
from memory.runtime.metrics import Metrics


def withhold(
    settings: RecallSettings, scope: Scope, request: ChatRequest, trace: Trace, planned: NotePlan, *, metrics: Metrics
) -> None:
    """Note in the trace whether and why the planned notes stay behind, and the arm of the question."""
    if settings.is_shadow:
        trace.compacted = trace.resent = None  # nothing but our own fields is changed
    if not planned.placed(trace.placement):
        return
    if settings.is_shadow:
        trace.withheld = Withholding.SHADOW
        return
    arm = settings.holdout.arm_of(unit_of(scope, request)) if planned.fresh is not None else None
    is_begun = len(planned.notes) + len(planned.at_server) > 1
    if arm is None or (arm is Arm.HELD_OUT and is_begun):
        return
    trace.arm = arm
    metrics.holdout_questions.labels(arm).inc()
    if arm is Arm.HELD_OUT:
        trace.withheld = Withholding.HELD_OUT


def unit_of(scope: Scope, request: ChatRequest) -> str:
    """What is held out as a whole: the conversation, by its session, by its id at the server, or by the user's first
    message where clients send all of it again. A chain of responses cannot be recognised from its first request on, so
    the unit is the user there.
    """
    named = [("session", scope.session_id), ("conversation", request.chain.conversation_id)]
    if request.conversation is not None and not request.shape.has_chains:
        said = (message.content for message in request.conversation.messages if message.role == Role.USER)
        named.append(("opening", next(said, "")))
    kind, name = next(((kind, name) for kind, name in named if name), ("user", ""))
    return "\x1f".join((scope.user_id, scope.project_id, scope.agent_id, kind, name))


def withheld_verdicts(trace: Trace, planned: NotePlan) -> Mapping[str, CandidateVerdict]:
    """The verdicts of a receipt; memories of a note that did not go along count as withheld."""
    if trace.withheld is None:
        return trace.selection.cuts
    return {**trace.selection.cuts, **dict.fromkeys(planned.memory_ids(), CandidateVerdict.WITHHELD)}


def placement_of(trace: Trace) -> Placement:
    """Where the notes of this request stand, for its receipt."""
    return Placement.OFF if trace.withheld is not None else trace.placement


def arm_signals(trace: Trace, planned: NotePlan) -> dict[str, object]:
    """What a receipt says of it."""
    said: dict[str, object] = {} if trace.arm is None else {ARM: trace.arm.value}
    if trace.withheld is not None:
        said[WITHHELD] = trace.withheld.value
    if said and planned.fresh is not None:
        said[NOTE_TOKENS] = planned.fresh.tokens
    return said
