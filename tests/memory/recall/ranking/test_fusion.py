"""Two wordings of one question: what both rankings together find, in small and with the real embedding model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from own_embedder import own_embedder

from memory.adapters.models.openai_embeddings import OpenAiEmbedder
from memory.evaluation.dataset import USER, RecallCase, read_recall
from memory.model import Candidate, Conversation, Memory, Message, Query, Question, Record, Scope
from memory.recall.query import build_query
from memory.recall.ranking.corpus import Corpus
from memory.recall.ranking.fusion import fused
from memory.recall.ranking.ranking import Ranked, rank

FOLLOW_UPS = Path(__file__).parents[3] / "data" / "follow_ups.jsonl"


def ranked(passing: str, failing: str = "") -> Ranked:
    """One letter a memory, best first; first those that pass."""
    letters = passing + failing
    memories = [Memory(letter, "u", letter, 0.0, 0.0, 0.0) for letter in letters]
    return Ranked(
        candidates=tuple(Candidate(memory, 1.0) for memory in memories),
        relevance=(0.9,) * len(passing) + (0.1,) * len(failing),
        is_relevant=(True,) * len(passing) + (False,) * len(failing),
        cosines=(0.5,) * len(letters),
    )


def order(found: Ranked) -> str:
    return "".join(candidate.memory.id for candidate in found.candidates)


def test_what_either_wording_finds_passes_and_the_rewritten_one_comes_first() -> None:
    both = fused(ranked("a", "bc"), ranked("b", "ac"))
    assert order(both) == "abc"  # "a" is first here and second there
    assert both.is_relevant == (True, True, False)
    assert order(fused(ranked("a"), ranked("b"))) == "ba"
    assert order(fused(ranked("a"), ranked("b"), weight=0.5)) == "ab"


def test_a_wording_that_lets_nothing_pass_has_no_say_in_the_order() -> None:
    assert order(fused(ranked("", "dcba"), ranked("ab", "cd"))) == "abcd"


def test_a_wording_that_finds_nothing_at_all_changes_nothing() -> None:
    assert fused(ranked("ab", "c"), Ranked()) == ranked("ab", "c")
    assert order(fused(Ranked(), ranked("ab", "c"))) == "abc"


@pytest.mark.parametrize("with_hypothesis", [False, True])
async def test_rewritten_follow_ups_find_also_what_the_plain_ones_miss_and_nearly_always_first(
    *, with_hypothesis: bool
) -> None:
    cases = read_recall(FOLLOW_UPS)
    records = [json.loads(line) for line in FOLLOW_UPS.read_text(encoding="utf-8").splitlines()]
    rewritten = [r["rewritten"] + (f" {r['hypothesis']}" if with_hypothesis else "") for r in records]
    async with own_embedder() as embedder:
        pairs = [await both_rankings(case, text, embedder) for case, text in zip(cases, rewritten, strict=True)]
    wanted = [f"{min(case.relevant):03d}" for case in cases]
    plainly = [passes(plain, one) for (plain, _), one in zip(pairs, wanted, strict=True)]
    together = [fused(*pair) for pair in pairs]
    assert sum(plainly) < len(wanted)
    assert all(passes(found, one) for found, one in zip(together, wanted, strict=True))
    first = [found.candidates[0].memory.id for found in together]
    assert sum(one == other for one, other in zip(first, wanted, strict=True)) >= len(wanted) - 1


async def both_rankings(case: RecallCase, rewritten: str, embedder: OpenAiEmbedder) -> tuple[Ranked, Ranked]:
    plain = build_query(Conversation((*case.history, Message("user", case.question))))
    texts = [plain.text, rewritten, *(memory.content for memory in case.memories)]
    first, second, *vectors = await embedder.embed(texts, is_urgent=False)
    corpus = Corpus(Record(memory, vector) for memory, vector in zip(case.memories, vectors, strict=True))
    one = rank(corpus, Question(plain, Scope(USER), case.now), first)
    other = rank(corpus, Question(Query(rewritten), Scope(USER), case.now), second)
    return one, other


def passes(found: Ranked, memory_id: str) -> bool:
    at = [candidate.memory.id for candidate in found.candidates].index(memory_id)
    return found.is_relevant[at]
