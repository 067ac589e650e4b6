"""The classifiers: what they learn from, that they learn, and what their scores decide.

How good the shipped ones are, `tests/memory/evaluation/test_learning_scores.py` says.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.evaluation.signals import read_signals
from memory.model import Conversation, Message, Vector
from memory.model.memories import statement_key
from memory.recall.ranking.lexical import fold
from memory.recall.signals.classifier import SignalClassifier, SignalLabel
from memory.recall.signals.linear_model import Phrase, features
from memory.recall.signals.phrases import parsed, question_phrases, training_phrases
from memory.recall.signals.question_kinds import QuestionClassifier, QuestionKind
from memory.recall.signals.search_decision import decide_late

PHRASES = training_phrases()
DATA = Path(__file__).resolve().parents[3] / "data"


def asked(*said: str) -> Conversation:
    roles = ("user", "assistant", "user")[-len(said) :]
    return Conversation(messages=tuple(Message(role, text) for role, text in zip(roles, said, strict=True)))


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


class Table:
    """In the classifier's place: labels by text; all other texts are about the world."""

    def __init__(self, known: Mapping[str, SignalLabel]) -> None:
        self._known = known

    def scores(self, text: str, vector: Vector | None) -> dict[SignalLabel, float]:
        best = self._known.get(text, SignalLabel.GENERAL_FACT)
        return {label: float(label is best) for label in SignalLabel}


FACT, LIFE = "Which composer wrote the opera Fidelio?", "what did the roofer say about the gutters"


def test_a_score_decides_and_is_told_for_the_receipt() -> None:
    table: Any = Table({LIFE: SignalLabel.PERSONAL})
    for text, search in ((FACT, False), (LIFE, True)):
        decision = decide_late(asked(text), vector=None, classifier=table)
        assert (decision.search, decision.label and decision.label.wants_memory) == (search, search)
        assert set(decision.scores) == {*SignalLabel, "search"}


def test_the_embedding_decides_where_words_are_unknown_in_every_script() -> None:
    phrases = [Phrase("alpha beta", SignalLabel.GENERAL_FACT), Phrase("gamma delta", SignalLabel.PERSONAL)]
    vectors = np.eye(2, 4, dtype=np.float32)
    classifier = SignalClassifier.fit(phrases, vectors)
    for unknown in ("epsilon zeta", "天地玄黄"):
        near_fact, near_personal = (classifier.scores(unknown, vector)[SignalLabel.PERSONAL] for vector in vectors)
        assert near_fact < near_personal


def test_phrases_get_back_the_labels_that_they_taught_each_time() -> None:
    some = PHRASES[::40]
    vectors = np.random.default_rng(7).normal(size=(len(some), 8)).astype(np.float32)
    classifier, again = (SignalClassifier.fit(some, vectors) for _ in range(2))
    scores = [classifier.scores(phrase.text, vector) for phrase, vector in zip(some, vectors, strict=True)]
    best = [max(each, key=each.__getitem__) for each in scores]
    assert np.mean([found == phrase.label for found, phrase in zip(best, some, strict=True)]) > 0.8
    np.testing.assert_array_equal(classifier.term_weights, again.term_weights)


def test_what_is_quoted_teaches_nothing() -> None:
    assert set(features("who sang 'My Little Pony'")) == set(features("who sang 'Some Other Song'"))


FEW = SignalClassifier.fit(PHRASES[::200], None)


@given(st.text(max_size=500))
def test_any_text_has_features_and_a_score(text: str) -> None:
    assert np.isfinite(list(FEW.scores(text, None).values())).all()


# Kinds of questions


def test_a_question_about_a_past_conversation_is_told_from_others_by_what_was_taught() -> None:
    kind = QuestionKind.PAST_TALK
    taught = [Phrase("What did we talk about?", kind), Phrase("Where do I live?", None)]
    classifier = QuestionClassifier.fit([*taught, Phrase("我们聊了什么", kind)], None)
    asked = ("what did we TALK about", "where I live", "聊了什么")
    yes, no, chinese = (classifier.scores(text, None)[kind] for text in asked)
    assert no < min(yes, chinese)


def test_each_phrase_is_taught_once_every_kind_is_and_no_blind_record_is() -> None:
    taught = question_phrases()
    keys = {statement_key(phrase.text) for phrase in taught}
    assert len(keys) == len(taught)
    assert {phrase.label for phrase in taught} == {None, *QuestionKind}
    for name in ("past_talk_blind", "whole_blind"):
        lines = (DATA / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
        blind = {statement_key(json.loads(line)["text"]) for line in lines}
        assert len(blind) == len(lines)
        assert not blind & keys


@pytest.mark.parametrize("file", ["signals.jsonl", "signals_fresh.jsonl"])
def test_no_record_of_signals_is_a_training_phrase(file: str) -> None:
    taught = {phrase.text.casefold() for phrase in PHRASES}
    cases = read_signals(DATA / file)
    assert [case.id for case in cases if case.conversation.last_user_text().casefold() in taught] == []
