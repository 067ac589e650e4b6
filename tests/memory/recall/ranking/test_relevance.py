"""From which evidence a memory counts as relevant: by the kind of question, and by how many memories there are."""

from __future__ import annotations

import pytest

from memory.recall.ranking.relevance import CROWD_MAX, bar_for
from memory.recall.ranking.weights import DEFAULT_RANKING

BAR = DEFAULT_RANKING.bar


def bar(text: str = "Che lavoro faccio?", *, memories: int = 1, kind: str = "") -> float:
    return bar_for(text, BAR, is_unspaced=False, memories=memories, kind=kind)


@pytest.mark.parametrize("kind", ["personal", "task"])
def test_what_the_signals_say_of_a_question_counts_where_its_words_are_not_known(kind: str) -> None:
    assert bar(kind=kind) == bar() + getattr(BAR, kind) < bar()


def test_the_bar_rises_whenever_the_number_of_memories_doubles_as_far_as_it_was_fitted() -> None:
    assert bar(memories=4) == pytest.approx(bar() + 2 * BAR.doubling)
    assert bar(memories=50 * CROWD_MAX) == bar(memories=CROWD_MAX) > bar(memories=CROWD_MAX // 2)
