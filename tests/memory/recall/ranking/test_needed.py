"""How much a message needs each memory: what helps comes first and what does not stays away, in any language."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pytest

from memory.model import Query, Question, Record, Scope, Vector
from memory.recall.ranking import needed
from memory.recall.ranking.corpus import Corpus
from memory.recall.ranking.ranking import Ranked, rank
from memory.recall.ranking.weights import DEFAULT_RANKING, Bar, RankingWeights
from tests.support.own_embedder import embedding_model

Remember: TypeAlias = Callable[..., Record]
WITH_NEEDS = replace(DEFAULT_RANKING, needs=needed.packaged())


def embedded(text: str, *, is_question: bool = False) -> Vector:
    model = embedding_model()
    return model.vector((model.prefixes.query if is_question else model.prefixes.document) + text)


def ranked(remember: Remember, question: str, facts: Sequence[str], ranking: RankingWeights = WITH_NEEDS) -> Ranked:
    corpus = Corpus([Record(remember(fact).memory, embedded(fact)) for fact in facts])
    asked = Question(Query(question), Scope("u"), 0.0)
    return rank(corpus, asked, embedded(question, is_question=True), ranking=ranking)


def odds(remember: Remember, question: str, fact: str) -> float:
    return ranked(remember, question, [fact]).odds[0]


@pytest.mark.parametrize(
    ("question", "helps", "other"),
    [
        ("What should I cook tonight?", "I can't eat gluten.", "I have collected stamps since school."),
        ("Was bin ich von Beruf?", "Ich bin Imker.", "Ich wohne über dem Hafen."),
        ("Cosa cucino stasera?", "Non mangio glutine.", "Colleziono francobolli."),
        ("Чем я зарабатываю?", "Я пасечник.", "Я живу над гаванью."),
        ("今晚我该做什么菜？", "我不能吃麸质。", "我从小就集邮。"),
        ("ماذا أطبخ الليلة؟", "لا آكل الغلوتين.", "أجمع الطوابع منذ المدرسة."),
        ("May I eat this walnut cake?", "Nuts make my throat swell.", "I have collected stamps since school."),
    ],
)
def test_a_fact_that_helps_is_needed_more(remember: Remember, question: str, helps: str, other: str) -> None:
    assert odds(remember, question, helps) > odds(remember, question, other)


@pytest.mark.parametrize(
    ("personal", "general"),
    [
        ("What should I cook tonight?", "Who invented the tin opener?"),
        ("Was soll ich heute kochen?", "Wer hat den Dosenöffner erfunden?"),
        ("Que puis-je cuisiner ce soir ?", "Qui a inventé l'ouvre-boîte ?"),
        ("今晚我该做什么菜？", "开罐器是谁发明的？"),
    ],
)
def test_a_question_of_general_knowledge_needs_less(remember: Remember, personal: str, general: str) -> None:
    fact = "I am allergic to tinned fish."
    assert odds(remember, personal, fact) > odds(remember, general, fact)


def test_what_is_needed_passes_though_it_shares_no_topic_and_what_is_not_stays_away(remember: Remember) -> None:
    facts = ["I have coeliac disease.", "I have collected stamps since school.", "My kayak is stored in Devon."]

    def passing(ranking: RankingWeights) -> list[str]:
        found = ranked(remember, "What can I bring to the picnic?", facts, ranking)
        return [one.memory.content for one, passes in zip(found.candidates, found.is_relevant, strict=True) if passes]

    assert (passing(WITH_NEEDS), passing(DEFAULT_RANKING)) == (facts[:1], [])


@pytest.mark.parametrize(
    ("question", "facts"),
    [
        ("What did Emil paint?", ["her husband Emil painted the walls", "My kayak is stored in Devon."]),
        ("Was hat Opa verkauft?", ["Opa hat seinen Traktor verkauft", "Mein Kajak liegt in Husum."]),
        ("小林去哪儿出差了？", ["小林上周去西安出差了", "我的皮划艇放在青岛。"]),
    ],
)
def test_a_question_about_others_gets_what_is_told_of_them(remember: Remember, question: str, facts: list[str]) -> None:
    assert ranked(remember, question, facts).is_relevant == (True, False)


def test_what_is_surely_needed_passes_however_far_it_is_from_the_best(remember: Remember) -> None:
    facts = ["Nuts make my throat swell.", "I have collected stamps since school.", "My kayak is stored in Devon."]

    def passing(sure: float) -> int:
        ranking = replace(WITH_NEEDS, bar=Bar(best=-99.0, each=-99.0, margin=0.0, sure=sure))
        return sum(ranked(remember, "May I eat this walnut cake?", facts, ranking).is_relevant)

    assert (passing(99.0), passing(-99.0)) == (1, len(facts))


def test_vectors_of_another_model_are_judged_by_their_topic_alone(remember: Remember) -> None:
    assert needed.packaged().direction(np.ones(1, dtype=np.float32)) is None
    facts, asks = ["My kayak is stored in Devon."], ("Where is my kayak stored?", "Who wrote the Iliad?")
    found, other = (ranked(remember, question, facts, DEFAULT_RANKING) for question in asks)
    assert (found.is_relevant, other.is_relevant) == ((True,), (False,))
    assert found.candidates[0].parts["needed"] == 0.0


def test_weights_are_read_as_they_were_written(tmp_path: Path) -> None:
    shipped = needed.packaged()
    needed.write(shipped, tmp_path / "needed.npz")
    again = needed.read(tmp_path / "needed.npz")
    assert all(np.array_equal(getattr(again, name), getattr(shipped, name)) for name in needed.ARRAYS)
    assert (again.constant, again.topic) == (shipped.constant, shipped.topic)
