"""The classifier: what it learns from, that it learns, and what it does without an embedding."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.model import Conversation, Message
from memory.recall.query import is_vague
from memory.recall.ranking.lexical import fold
from memory.recall.signals.classifier import Phrase, SignalClassifier, SignalLabel, features
from memory.recall.signals.cues import leans_on_history
from memory.recall.signals.phrases import parsed, training_phrases
from memory.recall.signals.search_decision import decide_early, decide_late
from memory.recall.signals.topics import topics

PHRASES = training_phrases()


@pytest.fixture(scope="module")
def by_words() -> SignalClassifier:
    return SignalClassifier.fit(PHRASES, None)


def asked(*said: str) -> Conversation:
    roles = ("user", "assistant", "user")[-len(said) :]
    return Conversation(messages=tuple(Message(role, text) for role, text in zip(roles, said, strict=True)))


def test_every_label_has_phrases_in_every_script() -> None:
    for label in SignalLabel:
        texts = [phrase.text for phrase in PHRASES if phrase.label == label]
        chinese = sum(any("\u4e00" <= c <= "\u9fff" for c in text) for text in texts)
        assert chinese >= 40
        assert len(texts) - chinese >= 80


def test_no_phrase_is_taught_under_two_labels() -> None:
    labels: dict[str, set[SignalLabel]] = {}
    for phrase in PHRASES:
        labels.setdefault(fold(phrase.text), set()).add(phrase.label)
    assert {text: found for text, found in labels.items() if len(found) > 1} == {}


def test_a_phrase_file_with_an_unknown_section_is_refused_by_line() -> None:
    with pytest.raises(ValueError, match=r"en.txt:2: a section must be one of general_fact.*got 'facts'"):
        parsed("en.txt", "# words\n[facts]\nwho")
    with pytest.raises(ValueError, match=r"en.txt:1: a phrase before the first"):
        parsed("en.txt", "who")


@pytest.mark.parametrize(
    ("text", "search"),
    [
        ("Which composer wrote the opera Fidelio?", False),
        ("什么是热力学定律", False),
        ("¿quién descubrió el planeta Urano?", False),
        ("Wer entdeckte den Planeten Uranus?", False),
        ("what did the roofer say about the gutters", True),
        ("which of the two tilers was cheaper", True),
        ("奶奶的降压药换成了哪种", True),
        ("¿qué dijo la doctora sobre el tobillo?", True),
        ("Was hat der Arzt zum Rücken gesagt?", True),
    ],
)
def test_words_alone_tell_the_world_from_a_life(by_words: SignalClassifier, text: str, *, search: bool) -> None:
    decision = decide_late(asked(text), vector=None, classifier=by_words)
    assert decision.search is search
    assert decision.label is not None
    assert decision.label.wants_memory is search


def test_scores_are_told_for_the_receipt(by_words: SignalClassifier) -> None:
    decision = decide_late(asked("Which composer wrote the opera Fidelio?"), vector=None, classifier=by_words)
    assert set(decision.scores) == {*SignalLabel, "search"}


def test_the_embedding_decides_where_words_are_unknown() -> None:
    phrases = [Phrase("alpha beta", SignalLabel.GENERAL_FACT), Phrase("gamma delta", SignalLabel.PERSONAL)]
    vectors = np.eye(2, 4, dtype=np.float32)
    classifier = SignalClassifier.fit(phrases, vectors)
    near_fact, near_personal = (classifier.scores("epsilon zeta", vector).search for vector in vectors)
    assert near_fact < near_personal


def test_the_embedding_counts_for_nothing_in_chinese() -> None:
    phrases = [Phrase("alpha beta", SignalLabel.GENERAL_FACT), Phrase("gamma delta", SignalLabel.PERSONAL)]
    vectors = np.eye(2, 4, dtype=np.float32)
    classifier = SignalClassifier.fit(phrases, vectors)
    assert classifier.scores("天地玄黄", vectors[0]).search == classifier.scores("天地玄黄", vectors[1]).search


def test_training_twice_gives_the_same_weights() -> None:
    some = PHRASES[::20]
    first, second = (SignalClassifier.fit(some, None) for _ in range(2))
    np.testing.assert_array_equal(first.term_weights, second.term_weights)


def test_phrases_get_back_the_labels_that_they_taught() -> None:
    some = PHRASES[::40]
    vectors = np.random.default_rng(7).normal(size=(len(some), 8)).astype(np.float32)
    classifier = SignalClassifier.fit(some, vectors)
    best = [classifier.scores(phrase.text, vector).best for phrase, vector in zip(some, vectors, strict=True)]
    assert np.mean([found == phrase.label for found, phrase in zip(best, some, strict=True)]) > 0.97


def test_a_question_right_after_one_about_the_world_needs_more_to_be_searched() -> None:
    """People ask such things in a row. Judged by the other phrases, some facts lie between the two lines."""
    unseen = [phrase.text for phrase in PHRASES[::5] if phrase.label == SignalLabel.GENERAL_FACT]
    classifier = SignalClassifier.fit([p for n, p in enumerate(PHRASES) if n % 5], None)
    between = [text for text in unseen if 0.39 < classifier.scores(text, None).search < 0.54]
    between = [text for text in between if decide_early(asked(text)) is None and not leans_on_history(text)]
    assert between
    for text in between:
        alone = decide_late(asked(text), vector=None, classifier=classifier)
        after = decide_late(
            asked("What is the capital of Mongolia?", "Ulan Bator.", text), vector=None, classifier=classifier
        )
        assert alone.search, text
        assert not after.search or is_vague(text), text


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("the landlord", "#the-life"), ("a dynasty", "#world"), ("right now", "#now"), ("房租", "#life"),
        ("朝代", "#world"),
        ("can Hannah come", "#somebody"), ("Hannah's cake", "#somebody"),
    ],
)  # fmt: skip
def test_kinds_of_words_are_seen(text: str, kind: str) -> None:
    assert kind in set(topics(text, fold(text)))


@pytest.mark.parametrize("text", ["who was Clara Schumann", "the name Clara", "King Edward", "clara"])
def test_a_name_that_the_world_knows_is_nobody_of_the_users(text: str) -> None:
    assert "#somebody" not in set(topics(text, fold(text)))


def test_what_is_quoted_teaches_nothing() -> None:
    assert set(features("who sang 'My Little Pony'")) == set(features("who sang 'Some Other Song'"))


@given(st.text(max_size=500))
def test_any_text_has_features_and_a_score(text: str) -> None:
    classifier = SignalClassifier.fit(PHRASES[::200], None)
    assert np.isfinite(classifier.scores(text, None).search)
