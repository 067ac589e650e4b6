"""An answer is one row, which says itself what it is embedded by: its question and the beginnings of its lines."""

from __future__ import annotations

from dataclasses import replace

from memory.model import CONTENT_CHARACTERS_MAX, Evidence, Memory, Message, Role, Scope, Turn
from memory.model.raw_words import (
    ANSWER_IDS_MAX,
    ASKED_CHARACTERS_MAX,
    HEADS_CHARACTERS_MAX,
    PASSAGE_CHARACTERS_MAX,
    ROWS_PER_TURN_MAX,
    answer_rows_of,
    embedded_text,
    passages_of,
    raw_row_ids,
    rows_of,
)
from memory.secrets.redaction import RECORDED_CHARACTERS_MAX

TURN = Turn("t1", Scope("ann", session_id="s1"), 5.0, (Message("user", "Where can we eat?"),))
ANSWER = "Two places come to mind:\n\n- Trattoria Sole, near the station.\n- Osteria Luna, in the old town.\n---"


def answer_row(answer: str = ANSWER, question: str = "Where can we eat?") -> Memory:
    (row,) = answer_rows_of(TURN, answer, question=question)
    return row


def test_an_answer_is_one_row_as_said_and_its_evidence_is_the_question() -> None:
    row = answer_row(f" {ANSWER}\n")
    assert (row.content, row.evidence) == (ANSWER, (Evidence("Where can we eat?", "t1", Role.USER),))
    assert answer_rows_of(TURN, " \n") == []


def test_only_an_answer_that_is_longer_than_a_row_has_several() -> None:
    answer = "".join(chr(0x4E00 + number % 20_000) for number in range(RECORDED_CHARACTERS_MAX))
    rows = answer_rows_of(TURN, answer)
    assert "".join(row.content for row in rows) == answer
    assert len(answer_rows_of(TURN, answer[:CONTENT_CHARACTERS_MAX])) == 1
    assert len(answer_rows_of(TURN, "word " * 10 * RECORDED_CHARACTERS_MAX)) == ROWS_PER_TURN_MAX


def test_the_ids_of_a_turn_are_those_of_its_messages_its_answer_and_the_passages_of_the_release_before() -> None:
    ids = raw_row_ids("ann", "t1")
    assert [ids.index(row.id) for row in (*rows_of(TURN, ["Hi"]), answer_row())] == [0, ROWS_PER_TURN_MAX]
    assert len(ids) == ROWS_PER_TURN_MAX + ANSWER_IDS_MAX >= 2 * ROWS_PER_TURN_MAX


def test_an_answer_is_embedded_by_its_question_and_the_beginnings_of_its_lines() -> None:
    heads = "Two places come to mind: - Trattoria Sole, near the station. - Osteria Luna, in the old town."
    assert embedded_text(answer_row()) == f"Where can we eat? {heads}"
    assert embedded_text(answer_row("It is Sole.", question="")) == "It is Sole."
    items = "\n".join(f"{number}. an item with a name of some length" for number in range(50))
    text = embedded_text(answer_row(items, question="Which? " * 90))
    assert len(text) <= ASKED_CHARACTERS_MAX + 1 + HEADS_CHARACTERS_MAX
    assert all(f"{number}. an item" in text for number in range(9))  # evenly: each line has its share


def test_all_other_rows_are_embedded_by_their_content() -> None:
    (own,) = rows_of(TURN, ["Where can we eat?\nAnd when?"])
    passage = replace(answer_row(), evidence=(Evidence(ANSWER, "t1", Role.ASSISTANT),))  # of the release before
    for row in (own, passage):
        assert embedded_text(row) == row.content


def test_passages_hold_the_whole_answer_in_lines_and_sentences() -> None:
    items = "\n".join(f"{number}. " + "An item of the list. " * 5 for number in range(1, 9))
    answer = f"Here are some:\n\n{items}\n---\n{'One long line. ' * 60}{'x' * 900}"
    passages = passages_of(answer)
    assert "".join("".join(passages).split()) == "".join(answer.split())
    assert max(map(len, passages)) <= PASSAGE_CHARACTERS_MAX
    assert all(one[0] in "12345678HO-x" for one in passages)  # where a line or a sentence begins
    assert passages_of(" \n---\n") == []
    assert [two for one in passages for two in passages_of(one)] == passages
