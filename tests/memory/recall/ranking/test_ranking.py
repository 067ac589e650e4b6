"""What is found, what is left out, how the budget is filled, and how two rankings become one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from memory.model import Candidate, Memory, MemoryStatus, Query, Question, Record, Scope, Selection, Vector
from memory.recall.ranking.combining import fused, merged, only
from memory.recall.ranking.corpus import Corpus
from memory.recall.ranking.ranking import Budget, Ranked, rank, rank_found, select
from memory.recall.ranking.weights import DEFAULT_RANKING, PARTS, Bar, RankingWeights, Weights

NOW = 1_765_800_000.0  # 15 December 2025, noon UTC
DIMENSION = 8
Remember = Callable[..., Record]
AMPLE = Budget(10_000)
USER = Scope("u")


def leaning(cosine: float, *, axis: int = 1) -> Vector:
    """A unit vector with this cosine to the question's, which is `leaning(1.0)`."""
    vector = np.zeros(DIMENSION, dtype=np.float32)
    vector[0], vector[axis] = cosine, np.sqrt(1 - cosine**2)
    return vector


def ranked(records: Sequence[Record], question: str, scope: Scope = USER, **options: Any) -> Ranked:
    return rank(Corpus(records, dimension=DIMENSION), Question(Query(question), scope, NOW), leaning(1.0), **options)


def contents(found: Ranked | Selection) -> list[str]:
    return [candidate.memory.content for candidate in found.candidates]


def chosen(found: Ranked, budget: Budget = AMPLE, *, similarity_threshold: float | None = None) -> Selection:
    """A token a letter."""
    return select(found, budget, tokens=lambda one: len(one.memory.content), similarity_threshold=similarity_threshold)


@pytest.mark.parametrize(
    ("question", "in_order"),
    [
        (
            "who repairs a harpsichord?",  # words and cosine count together
            [("User plays the harpsichord", 0.3, {}), ("User sings in a choir", 0.34, {}), ("I keep bees", 0.3, {})],
        ),
        (
            "我的车是什么颜色的？",
            [("用户的车是白色的", 0.3, {}), ("用户喜欢看电影", 0.34, {}), ("用户在学游泳", 0.2, {})],
        ),
        (
            "what went wrong in 7.3.1",  # which the embedding cannot tell from its lookalike
            [("Build 7.3.1 broke the export", 0.5, {}), ("Build 7.3.10 fixed the login loop", 0.55, {})],
        ),
        ("Where did Melanie go hiking?", [("Melanie: I went hiking", 0.3, {}), ("Caroline: I went hiking", 0.3, {})]),
        (
            "what did I decide last week?",  # the time that it names is looked at first
            [("I decided against the fair", 0.4, {"days_ago": 5}), ("I decided to buy a tent", 0.4, {"days_ago": 40})],
        ),
        (
            "oolong",  # no standing lifts what is off the topic
            [
                ("User drinks oolong tea", 0.4, {"days_ago": 900, "importance": 0.1}),
                ("User likes jazz", 0.1, {"days_ago": 0, "importance": 1.0, "category": "correction"}),
            ],
        ),
    ],
)
def test_evidence_of_every_kind_decides_the_order(remember: Remember, question: str, in_order: Any) -> None:
    records = [remember(text, vector=leaning(cosine), **fields) for text, cosine, fields in reversed(in_order)]
    found = ranked(records, question)
    assert contents(found) == [text for text, _, _ in in_order]
    for candidate in found.candidates:
        assert set(candidate.parts) == set(PARTS)
        assert sum(candidate.parts.values()) == pytest.approx(candidate.score, abs=1e-4)


def test_a_turn_is_found_by_what_stands_around_it_but_a_fact_is_not(remember: Remember) -> None:
    second = 1 / 86_400
    asks, says = "Ann: did the pottery class start?", "Bea: yes, on Tuesday"
    other = remember("Bea: yes, on Sunday", days_ago=4, session_id="else", vector=leaning(0.2, axis=3))
    question = "pottery class"
    talk = [
        remember(asks, days_ago=9, session_id="s", vector=leaning(0.6)),
        remember(says, days_ago=9 - 30 * second, session_id="s", vector=leaning(0.2, axis=2)),
    ]
    assert contents(ranked([*talk, other], question))[1] == says
    apart = [remember(r.memory.content, days_ago=d, vector=r.vector) for d, r in zip((9, 5), talk, strict=True)]
    scores = {c.memory.content: c.parts["neighbours"] for c in ranked([*apart, other], question).candidates}
    assert scores[says] == pytest.approx(scores["Bea: yes, on Sunday"], abs=1e-3)


def test_superseded_memories_stay_out_unless_the_past_is_asked_for(remember: Remember) -> None:
    records = [
        remember("Shop rent is 900 euros", status=MemoryStatus.SUPERSEDED, days_ago=300, vector=leaning(0.6)),
        remember("Shop rent is 950 euros", days_ago=60, vector=leaning(0.6, axis=2)),
    ]
    assert contents(ranked(records, "how much is the shop rent?")) == ["Shop rent is 950 euros"]
    assert contents(ranked(records, "how much was the shop rent before October 2025?"))[0] == "Shop rent is 900 euros"


def test_another_project_and_type_stay_invisible_and_the_own_project_comes_first(remember: Remember) -> None:
    records = [
        remember("deploy with script one", project_id="other", vector=leaning(0.9)),
        remember("deploy with script two", vector=leaning(0.5)),
        remember("deploy with script three", project_id="mine", vector=leaning(0.5, axis=2), memory_type="procedural"),
    ]
    found = ranked(records, "how do I deploy?", scope=Scope("u", project_id="mine"))
    assert contents(found) == ["deploy with script three", "deploy with script two"]
    assert len(ranked(records, "how do I deploy?").candidates) == 3
    typed = Question(Query("how do I deploy?"), USER, NOW, ("procedural",))
    found = rank(Corpus(records, dimension=DIMENSION), typed, leaning(1.0))
    assert contents(found) == ["deploy with script three"]


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ({"days_ago": 1}, {"days_ago": 700}), ({"importance": 0.9}, {"importance": 0.1}),
        ({"confidence": 1.0}, {"confidence": 0.4}), ({"category": "correction"}, {"category": "fact"}),
        ({}, {"invalid_at": NOW - 1}), ({"expires_at": NOW + 1}, {"expires_at": NOW - 1}),
    ],
)  # fmt: skip
def test_among_equals_standing_wins(remember: Remember, better: dict[str, object], worse: dict[str, object]) -> None:
    first = remember("User drinks oolong tea", **worse)
    second = remember("User drinks oolong tea!", **better)
    assert contents(ranked([first, second], "oolong"))[0] == "User drinks oolong tea!"


@pytest.mark.parametrize(
    ("said", "category", "days_ago", "is_first"),
    [
        ("No, landlord Moreau, not Baptiste: Bastien", "correction", 10, True),
        ("No, landlord Moreau, not Baptiste: Bastien", "fact", 10, False),
        ("No, the ferry sails at nine", "correction", 10, False),  # of something else
        ("No, landlord Moreau, not Baptiste", "correction", 30, False),  # of before
    ],
)
def test_a_correction_precedes_what_it_corrects_even_where_that_has_more_evidence(
    remember: Remember, said: str, category: str, days_ago: int, *, is_first: bool
) -> None:
    told = remember("My landlord is called Baptiste Moreau", days_ago=20, vector=leaning(0.8))
    later = remember(said, category=category, days_ago=days_ago, vector=leaning(0.4))
    first, _ = contents(ranked([told, later], "what is my landlord called"))
    assert first == (said if is_first else told.memory.content)


@pytest.mark.parametrize(("successor", "found"), [("new", ["We finally made it to Bristol"]), ("", [])])
def test_what_took_a_memory_s_place_answers_for_it(remember: Remember, successor: str, found: list[str]) -> None:
    gone = {"status": MemoryStatus.SUPERSEDED, "superseded_by": successor}
    home = remember("I live in Leeds", vector=leaning(0.7), **gone)
    records = [home, remember("We finally made it to Bristol", id="new", vector=leaning(0.0, axis=2))]
    assert contents(chosen(ranked(records, "who fixes pipes in my street"))) == found


def test_how_to_answer_goes_along_wherever_something_is_to_be_explained_or_written(remember: Remember) -> None:
    records = [
        remember("keep it to three bullet points from now on", vector=leaning(-0.2)),
        remember("User likes jazz", vector=leaning(0.0, axis=2)),
    ]
    assert contents(chosen(ranked(records, "explain how heat pumps work"))) == [records[0].memory.content]
    assert contents(chosen(ranked(records, "who invented the heat pump?"))) == []
    chinese = [remember("用户希望回答要简短", vector=leaning(0.0))]
    assert len(chosen(ranked(chinese, "讲讲热泵的原理")).candidates) == 1
    assert chosen(ranked(chinese, "莎士比亚写过哪些悲剧？")).candidates == ()


def test_nothing_relevant_means_nothing_and_a_named_budget_is_filled_all_the_same(remember: Remember) -> None:
    records = [
        remember("User lives on a barge", vector=leaning(0.05)),
        remember("User likes jazz", vector=leaning(0.1)),
    ]
    found = ranked(records, "how do volcanoes form?")
    assert chosen(found).candidates == ()
    assert len(chosen(found, Budget(10_000, is_filled=True)).candidates) == 2


def test_the_budget_buys_several_short_memories_before_a_long_one_that_is_barely_better(remember: Remember) -> None:
    records = [
        remember("tea " + "and more tea " * 10, vector=leaning(0.7)),
        remember("tea at five", vector=leaning(0.5)),
        remember("green tea", vector=leaning(0.4)),
    ]
    selection = chosen(ranked(records, "tea"), Budget(25, is_filled=True))
    assert contents(selection) == ["tea at five", "green tea"], "what does not fit is passed over"
    assert selection.tokens == len("tea at five") + len("green tea")
    long = remember("harbour " + "word " * 20, vector=leaning(0.5))
    short = [remember(f"harbour note {i}", vector=leaning(0.45, axis=2 + i)) for i in range(4)]
    assert len(chosen(ranked([long, *short], "harbour"), Budget(110, is_filled=True)).candidates) == 4


def test_limit_and_threshold_cut_only_where_they_are_named(remember: Remember) -> None:
    records = [remember(f"tea number {i}", vector=leaning(0.8 - i / 100)) for i in range(5)]
    found = ranked(records, "tea")
    assert len(chosen(found).candidates) == 5
    assert contents(ranked(records, "tea", limit=2)) == ["tea number 0", "tea number 1"]
    assert contents(chosen(found, Budget(10_000, memories=2))) == ["tea number 0", "tea number 1"]
    assert contents(chosen(found, Budget(10_000, memories=2, is_filled=True))) == ["tea number 0", "tea number 1"]
    assert contents(chosen(found, similarity_threshold=0.785)) == ["tea number 0", "tea number 1"]
    assert chosen(found, Budget(10_000, memories=0)).candidates == ()


def test_a_vector_search_is_ranked_by_the_same_evidence(remember: Remember) -> None:
    records = [remember("User collects stamps", vector=leaning(0.3)), remember("User keeps bees", vector=leaning(0.35))]
    searched = [Candidate(r.memory, float(r.vector[0]), {"dense": float(r.vector[0])}) for r in records]
    found = rank_found(searched, Question(Query("which stamps"), USER, NOW))
    whole = ranked(records, "which stamps")
    assert contents(found) == contents(whole)
    assert [c.score for c in found.candidates] == pytest.approx([c.score for c in whole.candidates], abs=1e-3)


@pytest.mark.parametrize("question", ["", "   ", "?", "的", "\ud83d\ude00"])
def test_a_question_without_words_breaks_nothing(remember: Remember, question: str) -> None:
    chosen(ranked([remember("User keeps bees")], question))
    assert ranked([], question).candidates == ()


def test_weights_decide(remember: Remember) -> None:
    records = [remember("oolong", vector=leaning(0.2)), remember("a barge", vector=leaning(0.9))]
    assert contents(ranked(records, "oolong"))[0] == "a barge"
    words = Weights(dense=0.0, window_dense=0.0, session_dense=0.0)
    assert contents(ranked(records, "oolong", ranking=RankingWeights(weights=words)))[0] == "oolong"
    assert not any(ranked(records, "oolong", ranking=RankingWeights(bar=Bar(unjudged=99))).is_relevant)


@pytest.mark.parametrize(("count", "is_less"), [(1, False), (8, True)])
def test_the_more_memories_there_are_the_less_sure_is_one(remember: Remember, count: int, *, is_less: bool) -> None:
    near = remember("kayak", vector=leaning(0.3))
    some = [near, *(remember(f"pottery {i}", vector=leaning(0.0, axis=2 + i % 6)) for i in range(count - 1))]
    alike = RankingWeights(bar=Bar(doubling=0.0))
    usual, without = ranked(some, "harbour").odds[0], ranked(some, "harbour", ranking=alike).odds[0]
    assert (usual < without) is is_less


def test_a_question_that_counts_lets_more_of_what_is_near_fill_its_note(remember: Remember) -> None:
    records = [remember("I ride to work", vector=leaning(0.45))]
    records += [remember(f"I {i}", vector=leaning(i / 100, axis=2 + i % 6)) for i in range(-60, 40, 2)]
    one, several = ranked(records, "What about my bike?"), ranked(records, "How many times did I ride my bike?")
    assert (one.asks_several, several.asks_several) == (False, True)
    assert sum(one.is_near) == 0 < sum(several.is_near)
    assert several.is_relevant[0]


# Two rankings become one: of two wordings, and of a user's own memories and a project's


def rated(*rows: tuple[str, float, float, bool], corrections: tuple[str, ...] = ()) -> Ranked:
    """Rows of id, score, odds, and whether it passed."""
    return Ranked(
        candidates=tuple(Candidate(Memory(one, "ann", one, 0.0, 0.0, 0.0), score) for one, score, _, _ in rows),
        odds=tuple(odds for _, _, odds, _ in rows),
        is_relevant=tuple(passes for *_, passes in rows),
        cosines=tuple(score for _, score, _, _ in rows),
        corrections=corrections,
    )


def lettered(passing: str, failing: str = "") -> Ranked:
    """One letter a memory, best first; first those that pass."""
    return rated(*((one, 0.5, 2.0, True) for one in passing), *((one, 0.5, -2.0, False) for one in failing))


def test_what_either_wording_finds_passes_and_the_rewritten_one_comes_first_if_it_lets_something_pass() -> None:
    both = fused(lettered("a", "bc"), lettered("b", "ac"))
    assert both.ids == tuple("abc")  # "a" is first here and second there
    assert both.is_relevant == (True, True, False)
    assert fused(lettered("a"), lettered("b")).ids == tuple("ba")
    assert fused(lettered("", "dcba"), lettered("ab", "cd")).ids == tuple("abcd")
    assert fused(lettered("ab", "c"), Ranked()) == lettered("ab", "c")
    assert fused(Ranked(), lettered("ab", "c")).ids == tuple("abc")


BAR = DEFAULT_RANKING.bar


def test_the_better_score_comes_first_and_each_ranking_keeps_its_own_order() -> None:
    own = rated(("a", 0.5, 1.0, True), ("b", 0.9, 1.0, True), ("c", 0.2, 1.0, True))  # a corrects b
    shared = rated(("x", 0.7, 1.0, True), ("y", 0.1, 1.0, True))
    found = merged(own, shared, bar=BAR)
    place = found.ids.index
    assert place("a") < place("b") < place("c") < place("y")
    assert place("x") < place("c")
    assert found.cosines == tuple(candidate.score for candidate in found.candidates)
    assert all(found.is_relevant)


def test_what_passes_only_among_its_own_is_irrelevant_beside_something_better() -> None:
    far, unsure = BAR.margin + 1.0, BAR.sure - 1.0
    own, shared = rated(("a", 0.9, unsure + far, True)), rated(("x", 0.5, unsure, True), ("y", 0.1, -1.1, False))
    for found in (merged(own, shared, bar=BAR), merged(shared, own, bar=BAR)):
        assert dict(zip(found.ids, found.is_relevant, strict=True)) == {"a": True, "x": False, "y": False}


@pytest.mark.parametrize(
    ("own", "shared"),
    [
        ([("a", 0.9, BAR.sure + BAR.margin, True)], ("x", 0.5, BAR.sure + BAR.margin / 2, True)),  # it is close
        ([("a", 0.9, BAR.sure + 9.0, True)], ("x", 0.5, BAR.sure + 0.1, True)),  # needed rather than not
        # What passed in spite of its topic, such as how the user wants to be answered
        ([("a", 0.9, 5.0 + BAR.margin, True), ("manner", 0.1, -1.0, True)], ("x", 0.8, 5.0, True)),
    ],
)
def test_what_is_near_needed_or_passed_anyway_is_relevant_beside_something_better(own: Any, shared: Any) -> None:
    assert all(merged(rated(*own), rated(shared), bar=BAR).is_relevant)


def test_only_the_best_stay_and_corrections_in_any_case() -> None:
    own = rated(("a", 0.9, 1.0, True), ("b", 0.1, 1.0, True), corrections=("b",))
    found = merged(own, rated(("x", 0.8, 1.0, True), ("y", 0.7, 1.0, True)), bar=BAR, limit=2)
    assert found.ids == ("a", "x", "b")
    assert found.corrections == ("b",)


def test_what_is_not_kept_leaves_no_trace() -> None:
    found = rated(("a", 0.9, 1.0, True), ("b", 0.8, 0.5, False), ("c", 0.7, 0.2, True), corrections=("b", "c"))
    other = Candidate(Memory("c", "bob", "another", 0.0, 0.0, 0.0), 0.7)
    left = only(found, {"c": other})
    assert (left.candidates, left.is_relevant, left.corrections) == ((other,), (True,), ("c",))
    assert (left.odds, left.cosines) == ((found.odds[2],), (found.cosines[2],))
