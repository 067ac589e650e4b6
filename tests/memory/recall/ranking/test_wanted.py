"""What kinds of facts a question wants: a fact of that kind comes first where no word is shared, in any language."""

from __future__ import annotations

import numpy as np
import pytest

from memory.model import Query, Question, Record, Scope, Vector
from memory.recall.ranking.corpus import Corpus
from memory.recall.ranking.ranking import rank
from memory.recall.ranking.wanted import WANTED_MIN, WantedKinds, fitted, wanted_kinds
from tests.support.own_embedder import embedding_model


def embedded(text: str, *, is_question: bool = False) -> Vector:
    model = embedding_model()
    return model.vector((model.prefixes.query if is_question else model.prefixes.document) + text)


def of_kind(question: str, fact: str) -> float:
    direction = wanted_kinds().direction(embedded(question, is_question=True))
    return 0.0 if direction is None else float(embedded(fact) @ direction.vector) + direction.offset


@pytest.mark.parametrize(
    ("question", "wanted", "other"),
    [
        ("What do I do for a living?", "I'm a beekeeper.", "I live above the harbour."),
        ("Was bin ich von Beruf?", "Ich bin Imker.", "Ich wohne über dem Hafen."),
        ("Che lavoro faccio?", "Sono apicoltore.", "Abito sopra il porto."),
        ("Чем я зарабатываю?", "Я пасечник.", "Я живу над гаванью."),
        ("我靠什么谋生？", "我是养蜂人。", "我住在港口边。"),
        ("ماذا أعمل؟", "أنا مربي نحل.", "أسكن فوق الميناء."),
        ("May I eat this walnut cake?", "Nuts make my throat swell.", "I have collected stamps since school."),
    ],
)
def test_a_fact_of_the_wanted_kind_is_more_of_it(question: str, wanted: str, other: str) -> None:
    assert of_kind(question, wanted) > of_kind(question, other) + 0.03


def test_a_memory_of_the_wanted_kind_is_ranked_higher(remember: object) -> None:
    facts = ["Nuts make my throat swell.", "Cakes of all kinds interest me as a photographer."]
    corpus = Corpus([Record(remember(fact).memory, embedded(fact)) for fact in facts])  # type: ignore[operator]
    question = "Is there anything that I must not eat?"
    found = rank(corpus, Question(Query(question), Scope("u"), 0.0), embedded(question, is_question=True))
    best = found.candidates[0]
    assert best.memory.content == facts[0]
    assert best.parts["wanted"] > 0


def test_vectors_of_another_model_want_nothing() -> None:
    assert wanted_kinds().direction(np.ones(1, dtype=np.float32)) is None


def test_what_is_wanted_a_little_is_noise() -> None:
    kinds = WantedKinds(np.full((3, 2), WANTED_MIN / 4, dtype=np.float32), np.ones((3, 2), dtype=np.float32))
    assert kinds.direction(np.zeros(2, dtype=np.float32)) is None


def test_the_fit_finds_a_line_and_its_bias() -> None:
    inputs = np.random.default_rng(1).normal(size=(50, 2))
    weights = fitted(inputs, inputs @ np.array([[2.0], [-1.0]]) + 0.5, ridge=1e-6)
    assert weights[:, 0] == pytest.approx([2.0, -1.0, 0.5], abs=1e-3)
