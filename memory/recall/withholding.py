"""Decides whether the note that was found goes along: not in shadow mode, and not in a conversation that is held out.

A conversation that already carries notes keeps them: it was begun before it was held out, and belongs to no arm. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from memory.chat.completions import ChatRequest
from memory.model import CandidateVerdict, Placement, Role, Scope
from memory.model.arms import ARM, NOTE_TOKENS, WITHHELD, Arm, Withholding
from memory.recall.notes.past_notes import NotePlan
from memory.recall.stages import AskedChat, RecallSettings


@dataclass(frozen=True, slots=True)
class NoteVerdict:
    placement: Placement  # where the planned notes go; OFF if they stay behind
    withheld: Withholding | None = None  # why they do, although they could go along
    arm: Arm | None = None  # of a question for which a new note was found, if conversations are held out

    def cuts(self, cuts: Mapping[str, CandidateVerdict], planned: NotePlan) -> Mapping[str, CandidateVerdict]:
        """The verdicts of a receipt; memories of a note that did not go along count as withheld."""
        if self.withheld is None:
            return cuts
        return {**cuts, **dict.fromkeys(planned.memory_ids(), CandidateVerdict.WITHHELD)}

    def signals(self, planned: NotePlan) -> dict[str, object]:
        """What a receipt says of it."""
        said: dict[str, object] = {} if self.arm is None else {ARM: self.arm.value}
        if self.withheld is not None:
            said[WITHHELD] = self.withheld.value
        if said and planned.fresh is not None:
            said[NOTE_TOKENS] = planned.fresh.tokens
        return said


def verdict_on(planned: NotePlan, placement: Placement, asked: AskedChat, settings: RecallSettings) -> NoteVerdict:
    """Whether the planned notes go where they could stand, and the arm of the question."""
    if not planned.placed(placement):
        return NoteVerdict(placement)
    if settings.is_shadow:
        return NoteVerdict(Placement.OFF, Withholding.SHADOW)
    arm = settings.holdout.arm_of(unit_of(asked.scope, asked.request)) if planned.fresh is not None else None
    is_begun = len(planned.notes) + len(planned.at_server) > 1
    if arm is not Arm.HELD_OUT:
        return NoteVerdict(placement, arm=arm)
    return NoteVerdict(placement) if is_begun else NoteVerdict(Placement.OFF, Withholding.HELD_OUT, arm)


def unit_of(scope: Scope, request: ChatRequest) -> str:
    """What is held out as a whole: the conversation, by its session, its id at the server, or the user's first message
    where clients send all of it again; the user for chains, which cannot be recognised from their first request on.
    """
    named = [("session", scope.session_id), ("conversation", request.chain.conversation_id)]
    if request.conversation is not None and not request.shape.has_chains:
        said = (message.content for message in request.conversation.messages if message.role == Role.USER)
        named.append(("opening", next(said, "")))
    kind, name = next(((kind, name) for kind, name in named if name), ("user", ""))
    return "\x1f".join((scope.user_id, scope.project_id, scope.agent_id, kind, name))
