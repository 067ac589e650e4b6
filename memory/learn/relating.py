"""Selects the pairs of statements that a reader compares, and finds claims that only restate a memory.

Each statement is paired with the nearest few that were said before it and were still valid then, provided that both may
be about the same subject and at least one is a claim; pairs with different values of one attribute come first. The
pairs depend only on when things were said: not on whether two statements are learnt in one window or two, or in which
order. Nothing is decided here. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from memory.learn.consolidation import NAME, Ids, Pair, may_be_of_one, stood_until
from memory.learn.feedback import is_restated
from memory.model import Claim, Memory, MemoryStatus, Role, Turn, Vector, is_single_valued, statement_key
from memory.model.days import without_days
from memory.ports import FactContext, PairVerdict, StatementPair

PAIRS_OF_ONE_MAX = 4
PAIRS_MAX = 240  # for a window of 20 turns with 3 statements each
RESTATED_WORDS_MIN = 2  # of a memory in a question that asks for more: "what is your cat called?" repeats one
NEAR_MIN = 0.15  # cosine; a change told in passing is seldom nearer, and most unrelated statements are below
LIKENESS_DIGITS = 4


@dataclass(frozen=True, slots=True)
class _Statement:
    """A memory, or, with a `place`, a claim. `id`: of its row; `until`: when it stopped being valid."""

    id: str
    text: str
    key: str  # equal for the same statement
    project_id: str
    subject: str
    name: str
    attribute: str
    said_at: float
    until: float = inf
    place: int = -1
    session_id: str = ""
    corrects: bool = False
    breath: str = ""  # the turn, whose statements all hold together; "" for a correction
    is_news: bool = True  # it does more than repeat another statement
    sentence: str = ""  # of which it is a part
    sentence_id: str = ""

    @property
    def moment(self) -> tuple[float, int]:
        return self.said_at, self.place

    def context(self, facts: Iterable[tuple[str, str]]) -> FactContext:
        """`facts`: ids of sentences, each with one that stands."""
        if not self.sentence_id:
            return FactContext()
        others = [text for sentence_id, text in facts if sentence_id == self.sentence_id and text != self.text]
        return FactContext(
            self.sentence, tuple(sorted(others, key=lambda text: (self.sentence.find(without_days(text)), text)))
        )


def pairs_to_ask(
    claims: Sequence[Claim], memories: Sequence[Memory], *, vectors: Mapping[str, Vector], ids: Ids
) -> dict[Pair, StatementPair]:
    """Pairs by a claim's index and the id of a memory, or of the row of another claim (`ids` of its index).

    Of two claims the index is that of the later one. `vectors`: by text; texts without one are not compared. `older` of
    a pair was said first, whichever of the two is the claim.
    """
    stored = list(map(_of_memory, memories))
    active = {one.id for one in memories if one.status is MemoryStatus.ACTIVE}
    said = {(one.project_id, one.key) for one in stored if one.id in active}
    stated = [*stored, *_of_claims(claims, said, ids)]
    facts = {(one.sentence_id, one.text): None for one in stated if one.until == inf}  # those that stand
    known = [one for one in stated if one.text in vectors]
    first = min((one.moment for one in known if one.place >= 0), default=(inf, 0))
    # what was said before was compared with everything before it when it was learnt
    late = [one for one in known if one.moment >= first]
    found: dict[Pair, StatementPair] = {}
    for newer, row in zip(late, _likeness(late, known, vectors), strict=True):
        near = [one for one, like in enumerate(row) if _is_near(newer, known[one], like)]
        rank = [(*_questions(newer, known[one]), row[one], known[one].moment, one) for one in near]
        for older, likeness in [(known[one], row[one]) for *_, one in sorted(rank, reverse=True)[:PAIRS_OF_ONE_MAX]]:
            later, other = (newer, older) if newer.place > older.place else (older, newer)
            if later.place >= 0:  # of two claims, the later one is compared with the row of the other
                pair = StatementPair(older.text, newer.text, older.context(facts), newer.context(facts), likeness)
                found.setdefault((later.place, other.id), pair)
    return dict(list(found.items())[:PAIRS_MAX])


def _of_memory(memory: Memory) -> _Statement:
    return _Statement(
        memory.id,
        memory.content,
        statement_key(memory.content),
        memory.project_id,
        memory.subject,
        memory.name,
        memory.attribute,
        memory.said_at,
        stood_until(memory),
        session_id=memory.session_id,
        sentence=memory.evidence[0].quote if memory.evidence else "",
        sentence_id=memory.sentence_id,
    )


def _of_claims(claims: Sequence[Claim], known: set[tuple[str, str]], ids: Ids) -> Iterator[_Statement]:
    """Claims that repeat a known statement or an earlier claim are compared, but nothing is paired with them.

    `known`: projects and keys of active statements. The claims' are added.
    """
    for place, claim in enumerate(claims):
        key = statement_key(claim.text)
        yield _Statement(
            ids(str(place)),
            claim.text,
            key,
            claim.scope.project_id,
            claim.relation.value,
            claim.name,
            claim.attribute,
            claim.said_at,
            place=place,
            session_id=claim.scope.session_id,
            corrects=claim.category == "correction",
            breath="" if claim.category == "correction" else claim.evidence.turn_id,
            is_news=(claim.scope.project_id, key) not in known,
            sentence=claim.evidence.quote,
            sentence_id=claim.evidence.sentence_id,
        )
        known.add((claim.scope.project_id, key))


def _likeness(
    late: Sequence[_Statement], known: Sequence[_Statement], vectors: Mapping[str, Vector]
) -> list[list[float]]:
    """Cosines, a list of `known` for each of `late`; rounded, since the last digits depend on the matrix's size."""
    if not late:
        return []
    rows, columns = (np.stack([vectors[one.text] for one in some]) for some in (late, known))
    found: list[list[float]] = (rows @ columns.T).astype(np.float64).round(LIKENESS_DIGITS).tolist()
    return found


def _is_near(newer: _Statement, older: _Statement, likeness: float) -> bool:
    """Whether `older` was valid when `newer` was said, and may be changed by it."""
    if not (older.is_news and older.moment < newer.moment and newer.said_at < older.until):
        return False
    corrects_name = newer.corrects and newer.attribute == older.attribute == NAME
    if older.project_id != newer.project_id or not may_be_of_one(
        newer.subject, newer.name, older.subject, older.name, corrects_name=corrects_name
    ):
        return False
    if newer.breath and older.place >= 0 and newer.breath == older.breath:
        return False
    is_asked = likeness >= NEAR_MIN or any(_questions(newer, older))
    return is_asked and newer.key != older.key


def _questions(newer: _Statement, older: _Statement) -> tuple[bool, bool]:
    """Whether their fields alone would let one supersede the other unless a reader objects; and whether `newer`
    corrects something that its session said: "No, Tuesday" resembles nothing.
    """
    is_one_field = (newer.subject, newer.attribute) == (older.subject, older.attribute)
    is_here = newer.corrects and bool(newer.session_id) and newer.session_id == older.session_id
    return is_one_field and is_single_valued(newer.attribute), is_here


def renumbered(
    verdicts: Mapping[Pair, PairVerdict], places: Sequence[int], *, count: int, ids: Ids
) -> dict[Pair, PairVerdict]:
    """The verdicts on the claims at `places` (out of `count`), keyed by index and row among these claims alone."""
    new = {place: str(index) for index, place in enumerate(places)}
    rows = {ids(str(place)): new.get(place) for place in range(count)}
    found: dict[Pair, PairVerdict] = {}
    for (place, other), verdict in verdicts.items():
        row = rows.get(other, "")
        if place in new and row is not None:
            found[int(new[place]), ids(row) if row else other] = verdict
    return found


def new_claim_indexes(claims: Sequence[Claim], memories: Sequence[Memory], turns: Sequence[Turn]) -> list[int]:
    """Indexes of the claims, without those that come from an assistant's question which restates what is known.

    Known are `memories` and the user's earlier claims; otherwise an assistant that repeats its note would have it
    stored again as an answer. `turns`: those that the claims quote.
    """
    known = [(one.project_id, one.content, one.values) for one in memories if one.status is MemoryStatus.ACTIVE]
    kept: list[int] = []
    for index, claim in enumerate(claims):
        of_project = [one for one in known if one[0] == claim.scope.project_id]
        asked = ((confirmed_line(claim, turns), 1), (claim.question, RESTATED_WORDS_MIN))
        said = [(line, least) for line, least in asked if line]
        if not any(is_restated(one[1], one[2], line, words_min=least) for line, least in said for one in of_project):
            kept.append(index)
            known.append((claim.scope.project_id, claim.text, claim.values))
    return kept


def confirmed_line(claim: Claim, turns: Sequence[Turn]) -> str:
    """The line of the assistant's answer with the question that a bare "yes" confirmed; "" for any other claim."""
    if claim.evidence.role != Role.ASSISTANT or not claim.is_affirmed:
        return ""
    question = claim.evidence.quote
    answer = next((turn.answer for turn in turns if turn.id == claim.evidence.turn_id), "")
    return next((line for line in answer.splitlines() if question in line), question)
