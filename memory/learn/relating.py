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

from memory.learn.consolidation import NAME, Ids, Pair, may_be_of_one, row_of, stood_until
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
    """A memory, or, with a `place`, a claim as the memory that it would be. `key`: equal for the same statement."""

    row: Memory
    key: str
    place: int = -1
    is_news: bool = True  # it does more than repeat another statement

    @property
    def moment(self) -> tuple[float, int]:
        return self.row.said_at, self.place

    @property
    def corrects(self) -> bool:
        """Only of a claim: what a memory corrected was compared with it when it was learnt."""
        return self.place >= 0 and self.row.category == "correction"

    @property
    def breath(self) -> str:
        """The turn of a claim, whose claims all hold together; "" for a correction, and for a memory."""
        return self.row.evidence[0].turn_id if self.place >= 0 and not self.corrects else ""

    def context(self, facts: Iterable[tuple[str, str]]) -> FactContext:
        """`facts`: ids of sentences, each with one that stands."""
        own = self.row.sentence_id
        if not own:
            return FactContext()
        sentence = self.row.evidence[0].quote
        others = [text for sentence_id, text in facts if sentence_id == own and text != self.row.content]
        return FactContext(sentence, tuple(sorted(others, key=lambda text: (sentence.find(without_days(text)), text))))


def pairs_to_ask(
    claims: Sequence[Claim], memories: Sequence[Memory], *, vectors: Mapping[str, Vector], ids: Ids
) -> dict[Pair, StatementPair]:
    """Pairs by a claim's index and the id of a memory, or of the row of another claim (`ids` of its index).

    Of two claims the index is that of the later one. `vectors`: by text; texts without one are not compared. `older` of
    a pair was said first, whichever of the two is the claim.
    """
    stored = [_Statement(memory, statement_key(memory.content)) for memory in memories]
    said = {(one.row.project_id, one.key) for one in stored if one.row.status is MemoryStatus.ACTIVE}
    stated = [*stored, *_of_claims(claims, said, ids)]
    facts = {(one.row.sentence_id, one.row.content): None for one in stated if stood_until(one.row) == inf}
    known = [one for one in stated if one.row.content in vectors]
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
                contexts = older.context(facts), newer.context(facts)
                pair = StatementPair(older.row.content, newer.row.content, *contexts, likeness)
                found.setdefault((later.place, other.row.id), pair)
    return dict(list(found.items())[:PAIRS_MAX])


def _of_claims(claims: Sequence[Claim], known: set[tuple[str, str]], ids: Ids) -> Iterator[_Statement]:
    """Claims that repeat a known statement or an earlier claim are compared, but nothing is paired with them.

    `known`: projects and keys of active statements. The claims' are added.
    """
    for place, claim in enumerate(claims):
        stated = claim.scope.project_id, statement_key(claim.text)
        yield _Statement(row_of(claim, ids(str(place)), claim.said_at), stated[1], place, stated not in known)
        known.add(stated)


def _likeness(
    late: Sequence[_Statement], known: Sequence[_Statement], vectors: Mapping[str, Vector]
) -> list[list[float]]:
    """Cosines, a list of `known` for each of `late`; rounded, since the last digits depend on the matrix's size."""
    if not late:
        return []
    rows, columns = (np.stack([vectors[one.row.content] for one in some]) for some in (late, known))
    found: list[list[float]] = (rows @ columns.T).astype(np.float64).round(LIKENESS_DIGITS).tolist()
    return found


def _is_near(newer: _Statement, older: _Statement, likeness: float) -> bool:
    """Whether `older` was valid when `newer` was said, and may be changed by it."""
    row, other = newer.row, older.row
    if not (older.is_news and older.moment < newer.moment and row.said_at < stood_until(other)):
        return False
    corrects_name = newer.corrects and row.attribute == other.attribute == NAME
    if row.project_id != other.project_id or not may_be_of_one(row, other, corrects_name=corrects_name):
        return False
    if newer.breath and newer.breath == older.breath:
        return False
    is_asked = likeness >= NEAR_MIN or any(_questions(newer, older))
    return is_asked and newer.key != older.key


def _questions(newer: _Statement, older: _Statement) -> tuple[bool, bool]:
    """Whether their fields alone would let one supersede the other unless a reader objects; and whether `newer`
    corrects something that its session said: "No, Tuesday" resembles nothing.
    """
    row, other = newer.row, older.row
    is_one_field = (row.subject, row.attribute) == (other.subject, other.attribute)
    is_here = newer.corrects and bool(row.session_id) and row.session_id == other.session_id
    return is_one_field and is_single_valued(row.attribute), is_here


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
