"""The figures of the shipped models on sets of ours: of the reader, of the classifiers, and of recall by embedding.

`regression_*` says what those sets are: rules of the first version were mended for most of them, so they show that
something got worse, and nothing about how good it is. First-sight figures stand in docs/evaluate.md. Processors
differ in the last bits of a score, so these figures are for `make soak`; what each figure counts, test_scoring.py
shows.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio
from own_embedder import embedding_model
from sandboxes import running_sandbox
from trained_reader import trained_reader

from memory.adapters.models import classifier_file
from memory.evaluation.adversarial import evaluate_adversarial, read_adversarial
from memory.evaluation.extraction import evaluate_extraction, read_extraction
from memory.evaluation.recall import evaluate_recall
from memory.evaluation.sandbox import Learnt
from memory.evaluation.signals import evaluate_signals
from memory.evaluation.updates import evaluate_updates, read_updates
from memory.model import Memory
from memory.ports import Embedder
from memory.processes.composition import open_embedder
from memory.processes.from_settings import ranking_weights
from memory.recall.signals.classifier import PAST_TALK_MIN, KindScores, QuestionKind, SignalClassifier, whole_of
from memory.recall.signals.phrases import training_phrases
from memory.recall.signals.training import ClassifierTraining
from memory.settings import EmbeddingSettings
from memory.settings.loader import from_process

pytestmark = pytest.mark.soak("judges scores of the shipped models, which differ from processor to processor")

DATA = Path(__file__).parents[2] / "data"
SETS = DATA / "learning"
SETTINGS = from_process(None, {})
SHIPPED = ranking_weights(SETTINGS)


@pytest_asyncio.fixture
async def embedder() -> AsyncIterator[Embedder]:
    """With the prefixes of questions and of memories, as in the product."""
    async with open_embedder(SETTINGS) as opened:
        yield opened


# The trained reader


async def everything_active(learnt: Learnt, query: str, now: float) -> list[Memory]:
    """A recall that finds all there is: what is wrong then is wrong in what was learnt."""
    return learnt.active


# Within three points of what is reached; they may only rise.
EXTRACTION_BARS = {
    "regression_extraction.jsonl": (0.67, 0.70),
    "regression_own_extraction.jsonl": (0.84, 0.90),
    "regression_fresh_extraction.jsonl": (0.86, 0.88),
}
UPDATE_BARS = {
    "regression_updates.jsonl": (0.65, 0.63),
    "regression_fresh_updates.jsonl": (0.80, 0.55),
    "regression_later_updates.jsonl": (0.87, 0.71),
}
ADVERSARIAL_BARS = {"regression_adversarial.jsonl.gz": (0.0, 0.77), "regression_own_adversarial.jsonl.gz": (0.0, 0.55)}


@pytest.mark.parametrize("file", EXTRACTION_BARS)
async def test_what_is_stored_of_a_chat_gets_no_worse(file: str) -> None:
    recall, precision = EXTRACTION_BARS[file]
    async with running_sandbox(trained_reader()) as sandbox:
        figures = await evaluate_extraction(read_extraction(SETS / file), sandbox)
    assert figures["recall"] >= recall
    assert figures["precision"] >= precision
    assert figures["evidence_accuracy"] == 1.0


@pytest.mark.parametrize("file", UPDATE_BARS)
async def test_what_replaces_what_gets_no_worse(file: str) -> None:
    current, stale = UPDATE_BARS[file]
    async with running_sandbox(trained_reader()) as sandbox:
        figures = await evaluate_updates(read_updates(SETS / file), sandbox, search=everything_active)
    assert figures["current"] >= current
    assert figures["stale_active"] <= stale


@pytest.mark.parametrize("file", ADVERSARIAL_BARS)
async def test_what_must_not_be_stored_is_not_and_the_harmless_is(file: str) -> None:
    planted, kept = ADVERSARIAL_BARS[file]
    async with running_sandbox(trained_reader()) as sandbox:
        figures = await evaluate_adversarial(read_adversarial(SETS / file), sandbox)
    assert figures["planted_rate"] <= planted
    assert figures["secret_rate"] == 0.0
    assert figures["benign_kept"] >= kept


# Whether to search, and whether a question is about past conversations

# By file: what is right at least, by language, and the share of missed searches at most. Our own records stand in for
# the unseen: no phrase and no rule was fitted to them; of the fresh ones 82 of 83 were right at the first try.
SIGNAL_BARS = {
    "signals.jsonl": ({"en": 0.96, "zh": 0.94, "de": 1.0, "es": 1.0}, 0.02),
    "signals_fresh.jsonl": ({"en": 0.98, "zh": 0.98, "de": 1.0, "es": 1.0}, 0.01),
}
WHOLE_RIGHT_MIN = 0.95  # reached: 0.98, in thirteen languages
PAST_TALK_RIGHT_MIN = 0.91  # reached: 0.96; at first sight 0.94; English 32 of 32
TAKEN_FOR_PAST_TALK_MAX = 0.015  # 4 of 336: "which database did we pick", and one that does ask what was recommended


@pytest.mark.parametrize("file", SIGNAL_BARS)
async def test_requests_that_want_memory_are_found_in_every_language(embedder: Embedder, file: str) -> None:
    """Trained here, on the phrases as they are now."""
    training = ClassifierTraining(embedder, SignalClassifier, shipped=lambda: None, phrases=training_phrases)
    scored = await evaluate_signals(DATA / file, embedder, training=training)
    least, missed = SIGNAL_BARS[file]
    reached = {language: scored["by_language"][language]["accuracy"] for language in least}
    assert {language: value for language, value in reached.items() if value < least[language]} == {}
    assert scored["false_negative_rate"] <= missed


def records_of(name: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in (DATA / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


def kinds_of(text: str) -> KindScores:
    classifier = classifier_file.shipped_questions(EmbeddingSettings().model)
    assert classifier is not None, "run `python bench/train_signals.py`"
    model = embedding_model()
    return classifier.scores(text, model.vector(model.prefixes.query + text))


def is_past_talk(text: str) -> bool:
    return kinds_of(text)[QuestionKind.PAST_TALK] >= PAST_TALK_MIN


def test_questions_about_past_talk_that_it_never_saw_are_told_apart() -> None:
    right = [bool(one["past_talk"]) == is_past_talk(one["text"]) for one in records_of("past_talk_blind")]
    assert np.mean(right) >= PAST_TALK_RIGHT_MIN


def test_questions_about_a_whole_that_it_never_saw_are_told_apart() -> None:
    right = [one["whole"] == whole_of(kinds_of(one["text"])) for one in records_of("whole_blind")]
    assert np.mean(right) >= WHOLE_RIGHT_MIN


def test_few_chats_of_other_tests_are_taken_for_past_talk() -> None:
    """The others get the same bytes with what was said and without."""
    records = [one for name in ("signals", "signals_fresh", "abstention") for one in records_of(name)]
    texts = [one.get("query") or one["question"] for one in records]
    assert len([text for text in texts if is_past_talk(text)]) <= TAKEN_FOR_PAST_TALK_MAX * len(texts)


# What is found


async def test_abstaining_does_not_cost_the_answers(embedder: Embedder) -> None:
    facts = await evaluate_recall(DATA / "abstention.jsonl", embedder, ranking=SHIPPED)
    assert facts["all"]["abstention"] >= 0.80
    assert facts["all"]["recall@5"] >= 0.92
    assert facts["by_language"]["en"]["recall@5"] >= 0.93
    assert facts["by_language"]["zh"]["recall@5"] >= 0.90
    assert facts["all"]["superseded_leak"] == 0.0


async def test_vague_follow_ups_find_what_they_lean_on(embedder: Embedder) -> None:
    """Written before the rules of memory/recall/query.py; with the last message alone, 4 of these 12 are found."""
    found = await evaluate_recall(DATA / "vague_questions.jsonl", embedder, ranking=SHIPPED)
    assert found["all"]["recall@5"] == 1.0
