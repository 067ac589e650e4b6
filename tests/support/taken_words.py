"""What is learnt of a message: by the rules behind the gate, and whether its words are by any way of extraction."""

from __future__ import annotations

from turn_logs import a_turn

from memory.learn import gate
from memory.learn.llm import drafting
from memory.learn.statements import verbatim
from memory.learn.statements.candidates import proposals


def kept(message: str) -> list[str]:
    """The contents that the rules learn and the gate lets pass."""
    turn = a_turn("t", text=message)
    return [fact.content for fact in gate.judge(verbatim.extract([turn]), [turn]).kept]


def assert_learnt_by_nobody(message: str, words: str) -> None:
    for quotes in _taken(message, words):
        assert [quote for quote in quotes if words in quote or quote.rstrip(".!?。") in words] == []


def assert_learnt_by_all(message: str, words: str) -> None:
    for quotes in _taken(message, words):
        assert any(words in quote for quote in quotes), quotes


def _taken(message: str, words: str) -> tuple[list[str], list[str], list[str]]:
    """What the rules quote, what a small model is asked about, and what becomes of a draft that quotes the words."""
    assert words in message
    turn = a_turn("t", text=message)
    part = drafting.Part((turn,), ())
    drafted = drafting.facts_of([drafting.Drafted(words, words)], part, made_by="a model")
    return (
        [fact.evidence.quote for fact in verbatim.extract([turn])],
        [one.fact.evidence.quote for one in proposals([turn], context=())],
        [fact.evidence.quote for fact in drafted],
    )
