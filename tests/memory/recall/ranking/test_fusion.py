"""Two rankings of one question become one: of two wordings, and of a user's own memories and a project's."""

from __future__ import annotations

from memory.model import Candidate, Memory
from memory.recall.ranking.combining import fused, merged, only
from memory.recall.ranking.ranking import Ranked
from memory.recall.ranking.weights import DEFAULT_RANKING


def lettered(passing: str, failing: str = "") -> Ranked:
    """One letter a memory, best first; first those that pass."""
    letters = passing + failing
    memories = [Memory(letter, "u", letter, 0.0, 0.0, 0.0) for letter in letters]
    return Ranked(
        candidates=tuple(Candidate(memory, 1.0) for memory in memories),
        odds=(2.0,) * len(passing) + (-2.0,) * len(failing),
        is_relevant=(True,) * len(passing) + (False,) * len(failing),
        cosines=(0.5,) * len(letters),
    )


def order(found: Ranked) -> str:
    return "".join(candidate.memory.id for candidate in found.candidates)


def test_what_either_wording_finds_passes_and_the_rewritten_one_comes_first() -> None:
    both = fused(lettered("a", "bc"), lettered("b", "ac"))
    assert order(both) == "abc"  # "a" is first here and second there
    assert both.is_relevant == (True, True, False)
    assert order(fused(lettered("a"), lettered("b"))) == "ba"


def test_a_wording_that_lets_nothing_pass_has_no_say_in_the_order() -> None:
    assert order(fused(lettered("", "dcba"), lettered("ab", "cd"))) == "abcd"


def test_a_wording_that_finds_nothing_at_all_changes_nothing() -> None:
    assert fused(lettered("ab", "c"), Ranked()) == lettered("ab", "c")
    assert order(fused(Ranked(), lettered("ab", "c"))) == "abc"


BAR = DEFAULT_RANKING.bar


def ranked(*rows: tuple[str, float, float, bool], corrections: tuple[str, ...] = (), near: bool = False) -> Ranked:
    """Rows of id, score, odds, and whether it passed."""
    return Ranked(
        candidates=tuple(
            Candidate(Memory(one, "ann", f"about {one}", 0.0, 0.0, 0.0), score) for one, score, _, _ in rows
        ),
        odds=tuple(odds for _, _, odds, _ in rows),
        is_relevant=tuple(passes for *_, passes in rows),
        cosines=tuple(score for _, score, _, _ in rows),
        is_near=tuple(near and not passes for *_, passes in rows),
        corrections=corrections,
    )


def test_the_better_score_comes_first_and_each_ranking_keeps_its_own_order() -> None:
    own = ranked(("a", 0.5, 1.0, True), ("b", 0.9, 1.0, True), ("c", 0.2, 1.0, True))  # a corrects b
    shared = ranked(("x", 0.7, 1.0, True), ("y", 0.1, 1.0, True))
    found = merged(own, shared, bar=BAR)
    order = found.ids
    assert order.index("a") < order.index("b") < order.index("c") < order.index("y")
    assert order.index("x") < order.index("c")
    assert found.cosines == tuple(candidate.score for candidate in found.candidates)
    assert all(found.is_relevant)


def test_what_passes_only_among_its_own_is_irrelevant_beside_something_better() -> None:
    far, unsure = BAR.margin + 1.0, BAR.sure - 1.0
    own, shared = ranked(("a", 0.9, unsure + far, True)), ranked(("x", 0.5, unsure, True), ("y", 0.1, -1.1, False))
    for found in (merged(own, shared, bar=BAR), merged(shared, own, bar=BAR)):
        assert dict(zip(found.ids, found.is_relevant, strict=True)) == {"a": True, "x": False, "y": False}
    close = ranked(("x", 0.5, unsure + far - BAR.margin / 2, True))
    assert all(merged(own, close, bar=BAR).is_relevant)


def test_what_is_needed_rather_than_not_is_relevant_beside_anything() -> None:
    own, shared = ranked(("a", 0.9, BAR.sure + 9.0, True)), ranked(("x", 0.5, BAR.sure + 0.1, True))
    assert all(merged(own, shared, bar=BAR).is_relevant)


def test_what_passed_in_spite_of_its_topic_still_does() -> None:
    """Such as how the user wants to be answered."""
    own = ranked(("a", 0.9, 5.0 + BAR.margin, True), ("manner", 0.1, -1.0, True))
    found = merged(own, ranked(("x", 0.8, 5.0, True)), bar=BAR)
    assert dict(zip(found.ids, found.is_relevant, strict=True))["manner"]


def test_an_empty_side_leaves_the_other_as_it_is() -> None:
    own, nothing = ranked(("a", 0.9, 1.0, True)), Ranked()
    assert merged(own, nothing, bar=BAR) is own
    assert merged(nothing, own, bar=BAR) is own


def test_only_the_best_stay_and_corrections_in_any_case() -> None:
    own = ranked(("a", 0.9, 1.0, True), ("b", 0.1, 1.0, True), corrections=("b",))
    found = merged(own, ranked(("x", 0.8, 1.0, True), ("y", 0.7, 1.0, True)), bar=BAR, limit=2)
    assert found.ids == ("a", "x", "b")
    assert found.corrections == ("b",)


def test_what_is_not_kept_leaves_no_trace() -> None:
    found = ranked(("a", 0.9, 1.0, True), ("b", 0.8, 0.5, False), ("c", 0.7, 0.2, True), corrections=("b", "c"))
    other = Candidate(Memory("c", "bob", "another", 0.0, 0.0, 0.0), 0.7)
    left = only(found, {"c": other})
    assert (left.candidates, left.is_relevant, left.corrections) == ((other,), (True,), ("c",))
    assert (left.odds, left.cosines) == ((found.odds[2],), (found.cosines[2],))
