"""What an imported memory says of turns: by the ids that these get here."""

from __future__ import annotations

from dataclasses import replace

from claims import NOW, turn

from memory.model import Evidence, Memory
from memory.model.raw_words import raw_row_ids, rows_of
from memory.model.turn_copies import copied_turn_id
from memory.model.withdrawn import Withdrawn, with_withdrawn, withdrawn_of
from memory.service.imported_ids import turn_ids, with_turns


def quote(turn_id: str) -> Evidence:
    return Evidence("my door is red", turn_id, "user")


def test_all_turns_of_a_memory_are_called_as_they_are_here() -> None:
    memory = Memory("m", "ann", "Has a red door", NOW, NOW, NOW, evidence=(quote("t1"), quote("own"), quote("")))
    memory = with_withdrawn(memory, Withdrawn((quote("t2"),), status="active", turns=("t3", "own")))
    assert turn_ids(memory) == {"t1", "t2", "t3", "own"}
    here = with_turns("ann", memory, own={"own"})
    t1, t2, t3 = (copied_turn_id("ann", one) for one in ("t1", "t2", "t3"))
    assert [one.turn_id for one in here.evidence] == [t1, "own", ""]
    assert withdrawn_of(here).evidence == (quote(t2),)
    assert withdrawn_of(here).turns == (t3, "own")
    assert replace(here, evidence=(), metadata={}) == replace(memory, evidence=(), metadata={})


def test_a_row_of_raw_words_is_found_by_its_turn_under_its_id_here() -> None:
    said = turn("My door is red")
    rows = rows_of(said, ["My door is red", "My cat is old"])
    user = said.scope.user_id
    here = [with_turns(user, row, own=()) for row in rows]
    assert [row.id for row in here] == raw_row_ids(user, copied_turn_id(user, said.id))[:2]
    assert [with_turns(user, row, own={said.id}) for row in rows] == rows
