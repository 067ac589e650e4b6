"""A reader without a model, for tests of what comes after reading: plain sentences of a fixed form become claims.

It passes the contract suite of `StatementReader`. A sentence that begins with "I", "My" or "Our" states; "Remember",
"Forget", "No," and "Exactly" do what they say. "… is X" gives the value X of the attribute that the first of
`ATTRIBUTE_WORDS` names. A bare "yes" to a question is made as our own readers make it: the question becomes the
statement, and its evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from memory.language import asked_words, bare_reply, content_words
from memory.language.restating import says_all
from memory.learn.reading.units import own_messages, units_of
from memory.model import (
    EXPLICIT_ACTS,
    NO_ATTRIBUTE,
    STORED_ACTS,
    Act,
    Claim,
    Evidence,
    Relation,
    Role,
    Turn,
    statement_key,
)
from memory.ports import FrameKind, FrameMark, OrderReach, PairRelation, PairVerdict, StatementPair

OPENINGS: tuple[tuple[tuple[str, ...], Act], ...] = (
    (("ignore all", "from now on recommend"), Act.INSTRUCT),
    (("do not remember", "don't remember", "do not store", "off the record"), Act.WITHHOLD),
    (("remember", "note:", "记住"), Act.REMEMBER),
    (("forget", "delete", "忘掉", "请忘掉", "vergiss", "olvida"), Act.FORGET),
    (("no,", "that's wrong"), Act.CORRECT),
    (("exactly", "that's right", "correct."), Act.CONFIRM),
    (("always answer",), Act.WISH),
    (("i ", "i'm ", "i've ", "my ", "our ", "we ", "我", "meine ", "mi "), Act.STATE),
)
ATTRIBUTE_WORDS = {
    "live": "home",
    "address": "home",
    "home": "home",
    "work": "employer",
    "job": "occupation",
    "budget": "budget",
    "allergic": "allergy",
    "cat": "pet",
    "dog": "pet",
    "phone": "contact",
    "appointment": "appointment",
    "locker": "number",
}
VALUE_WORDS = frozenset("is are in at on to called".split())
RELATION_WORDS = {"sister": Relation.SIBLING, "brother": Relation.SIBLING, "mother": Relation.PARENT}
CHARACTERS_MIN = 3
IMPORTANCE_ASKED = 0.9
REACHES = {  # by what an order ends with
    "everything about me": OrderReach.EVERYTHING,
    "everything you know about me": OrderReach.EVERYTHING,
    "what i just said": OrderReach.PREVIOUS,
    "that": OrderReach.PREVIOUS,
    "remember anything again": OrderReach.STOP,
    "store this conversation": OrderReach.CONVERSATION,
}
NEVER = PairVerdict(PairRelation.UNRELATED, 0.5)  # nothing is known of the two


def by_words(pair: StatementPair) -> PairVerdict:
    """The same words say the same, and what an order to forget repeats, or asks for by all its words, is over with it;
    of all else nothing is known.
    """
    asked, known = asked_words(pair.newer), content_words(pair.older)
    if act_of(pair.newer) is Act.FORGET and (
        (asked and says_all(asked, known)) or says_all(known, content_words(pair.newer))
    ):
        return PairVerdict(PairRelation.REPLACES, 0.95, over=3.0)
    if statement_key(pair.older) == statement_key(pair.newer):
        return PairVerdict(PairRelation.SAME, 1.0)
    return NEVER


def moves(*replaced: tuple[str, str]) -> Callable[[StatementPair], PairVerdict]:
    """Of these pairs the newer statement replaces the older one, which no field says; all else is by words."""

    def verdict(pair: StatementPair) -> PairVerdict:
        is_moved = (pair.older, pair.newer) in replaced
        return PairVerdict(PairRelation.REPLACES, 0.9) if is_moved else by_words(pair)

    return verdict


class PlainReader:
    """`memory.ports.ReadyReader`, which finds no frames. `verdict` says how a pair is related."""

    name = "plain 1"

    def __init__(self, verdict: Callable[[StatementPair], PairVerdict] = by_words) -> None:
        self._verdict = verdict

    async def read(self, turns: Sequence[Turn], *, context: Sequence[Turn]) -> list[Claim]:
        found: list[Claim] = []
        for place, turn in enumerate(turns):
            previous = turns[place - 1] if place else context[-1] if context else None
            for message in own_messages(turn):
                found += self._claims(message, turn, previous)
                previous = None  # only the first message of a turn replies to the answer before it
        return found

    async def relate(self, pairs: Sequence[StatementPair]) -> list[PairVerdict]:
        return [self._verdict(pair) for pair in pairs]

    async def frames(self, turns: Sequence[Turn]) -> list[FrameMark]:
        return []

    async def reaches(self, orders: Sequence[str]) -> list[OrderReach]:
        folded = [one.lower().rstrip(".!") for one in orders]
        known = REACHES.items()
        return [next((reach for end, reach in known if one.endswith(end)), OrderReach.TOPIC) for one in folded]

    async def leaning(self, texts: Sequence[str]) -> list[float]:
        return [0.0 for _ in texts]

    def _claims(self, message: str, turn: Turn, previous: Turn | None) -> list[Claim]:
        if reply := bare_reply(message):
            answered = self._answered(message.strip(), turn, previous, is_affirmed=reply == "yes")
            return [answered] if answered is not None else []
        units = [unit.text for unit in units_of(message) if unit.is_own]
        return [claim for text in units if (claim := claim_of(text, turn, made_by=self.name))]

    def _answered(self, reply: str, turn: Turn, previous: Turn | None, *, is_affirmed: bool) -> Claim | None:
        question = question_of(previous.answer) if previous is not None else ""
        if previous is not None and question:
            text, evidence = f"{question} {reply}", Evidence(question, previous.id, Role.ASSISTANT)
            claim = Claim(Act.STATE, text, evidence, turn.scope, turn.at, is_affirmed=is_affirmed, made_by=self.name)
            return replace(claim, reply=Evidence(reply, turn.id))
        if not is_affirmed:
            return None
        return Claim(Act.CONFIRM, reply, Evidence(reply, turn.id), turn.scope, turn.at, made_by=self.name)


def claim_of(text: str, turn: Turn, *, made_by: str) -> Claim | None:
    """What one sentence claims, None for nothing."""
    act = act_of(text)
    if act is None:
        return None
    plain = text.rstrip(".!")
    words = plain.lower().split()
    return Claim(
        act=act,
        text=text,
        evidence=Evidence(text, turn.id),
        scope=turn.scope,
        said_at=turn.at,
        relation=next((RELATION_WORDS[word] for word in words if word in RELATION_WORDS), Relation.USER),
        attribute=next((ATTRIBUTE_WORDS[word] for word in words if word in ATTRIBUTE_WORDS), NO_ATTRIBUTE),
        values=(plain.split()[-1],) if VALUE_WORDS & set(words) else (),
        is_affirmed=not {"not", "no", "never"} & set(words),
        category="correction" if act is Act.CORRECT else "fact",
        importance=IMPORTANCE_ASKED if act in EXPLICIT_ACTS else 0.5,
        made_by=made_by,
    )


def act_of(text: str) -> Act | None:
    folded = text.lower().removeprefix("please ")
    if folded.endswith(("?", "？")) or len(folded) < CHARACTERS_MIN:
        return None
    return next((act for openings, act in OPENINGS if folded.startswith(openings)), None)


def question_of(answer: str) -> str:
    """Its last sentence, where that asks something."""
    units = units_of(answer)
    return units[-1].text if units and units[-1].text.endswith(("?", "？")) else ""


class FramingReader(PlainReader):
    """A plain reader that knows that what follows "Hark." is somebody else's text."""

    async def frames(self, turns: Sequence[Turn]) -> list[FrameMark]:
        texts = [(turn.id, turn.messages[0].content) for turn in turns]
        starts = [(turn_id, text.find("Hark.")) for turn_id, text in texts if "Hark." in text]
        return [FrameMark(FrameKind.PRESENTS, turn_id, 0, start, start + 5) for turn_id, start in starts]


class FactReader(PlainReader):
    """A plain reader that cuts a statement at "and", with the subject of the first part before the others."""

    async def read(self, turns: Sequence[Turn], *, context: Sequence[Turn]) -> list[Claim]:
        found: list[Claim] = []
        for claim in await super().read(turns, context=context):
            parts = claim.text.rstrip(".").split(" and ") if claim.act in STORED_ACTS else []
            facts = [
                replace(claim, text=part, evidence=Evidence(claim.text, claim.evidence.turn_id, clause=part))
                for part in parts
            ]
            found += facts if len(facts) > 1 else [claim]
        return found
