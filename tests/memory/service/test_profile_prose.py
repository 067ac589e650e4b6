"""When prose may take the place of a profile's lines: it says what they say, in fewer words, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.adapters.models.wordpiece import WordPieceTokens
from memory.language.specific_words import plain_words, specific_words
from memory.model import Profile, ProfileLine, ProfileProse, ProfileSentence
from memory.ports.writing import GroundedSentence
from memory.service.profile_layout import FOOT, HEAD, PROFILE_TOKENS_MAX, PROSE_HEAD, profile_text
from memory.service.profile_prose import TASK, material, prose_faults, prose_of

TOKENS = WordPieceTokens()


def line(said: str, memory_id: str, month: str = "2025-06") -> ProfileLine:
    text = f"- [{month}] {said}"
    return ProfileLine(text, TOKENS(text), memory_id)


LINES = (
    line("My name is Dana", "m1", "2024-03"),
    line("I live in Leeds", "m2"),
    line("I work as a nurse at St. Mary's since 2019", "m3"),
    line("I do not eat meat", "m4"),
)
GOOD = (
    GroundedSentence("My name is Dana and I live in Leeds.", (1, 2)),
    GroundedSentence("I work as a nurse at St. Mary's since 2019 and do not eat meat.", (3, 4)),
)


def faults(*sentences: GroundedSentence, lines: tuple[ProfileLine, ...] = LINES) -> str:
    return "; ".join(prose_faults(sentences, lines, tokens=TOKENS))


def test_the_writer_gets_the_statements_with_their_months() -> None:
    assert material(LINES)[:2] == ["(2024-03) My name is Dana", "(2025-06) I live in Leeds"]
    assert "{" not in TASK.instruction, "the form of the answer is the adapter's"


def test_prose_that_says_what_the_lines_say_is_used_with_the_evidence_of_each_sentence() -> None:
    assert faults(*GOOD) == ""
    assert [(one.text, one.memory_ids) for one in prose_of(GOOD, LINES, tokens=TOKENS)] == [
        ("My name is Dana and I live in Leeds. (2024-03 to 2025-06)", ("m1", "m2")),
        ("I work as a nurse at St. Mary's since 2019 and do not eat meat. (2025-06)", ("m3", "m4")),
    ]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("My name is Dana and I live in York.", "do not say: york"),
        ("My name is Dana and I live in Leeds since 2020.", "do not say: 2020"),
        ("Miu and my name is Dana and I live in Leeds.", "do not say: miu"),
        ("My name is Dana and I live somewhere.", "line 2 loses"),
        ("I am Dana and I live in Leeds.", "line 1 loses: name"),
        ("My name is Dana, in Leeds.", "line 2 loses: live"),
        ("My name is Dana and I do not live in Leeds.", "say yes where it says no"),
        ("Dana adores sunny Leeds, strolling happily through countless charming museums.", "keep to the words"),
        ("My name is Dana and I live in Leeds. </profile>", "without < and >"),
        ("My name is Dana [INST] and I live in Leeds.", "without < and >"),
        ("My name is Dana and I live in Leeds. " * 20, "plain sentences"),
    ],
)
def test_prose_that_says_anything_else_is_not(text: str, fault: str) -> None:
    assert fault in faults(GroundedSentence(text, (1, 2)), GOOD[1])


def test_a_denial_must_not_be_lost() -> None:
    eats = GroundedSentence("I work as a nurse at St. Mary's since 2019 and eat meat.", (3, 4))
    assert "the other way round" in faults(GOOD[0], eats)


def test_every_line_is_in_it() -> None:
    assert faults(GOOD[0]) == "line 3 is left out; line 4 is left out"
    assert faults() == "there is no sentence"
    uncited = GroundedSentence("I work as a nurse at St. Mary's since 2019 and do not eat meat.", (3,))
    assert "line 4 is left out" in faults(GOOD[0], uncited)


def test_a_number_is_not_part_of_another_one() -> None:
    lines = (line("My locker is 17", "a"), line("I own 117 records", "b"))
    assert "do not say: 17" in faults(GroundedSentence("I own 17 records", (2,)), lines=lines)


def test_prose_that_is_longer_than_the_lines_is_not_used() -> None:
    lines = (line("I sew", "a"), line("I row", "b"))
    long = (GroundedSentence("I sew, I sew, I sew, I sew and I sew.", (1,)), GroundedSentence("I row, row, row.", (2,)))
    assert "longer than the lines" in faults(*long, lines=lines)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("I'm Dana. We moved to Leeds-North in 2019.", {"dana", "leeds-north", "2019"}),
        ("Rex is Sam's dog", {"rex", "sam"}),
        ("my rent is $1,130.50", {"1,130.50"}),
        ("I like tea", set()),
        ("我住在北京，房租3000元", {"3000"}),
        ("", set()),
    ],
)
def test_names_and_numbers_are_found(text: str, words: set[str]) -> None:
    assert specific_words(text) == words


@settings(deadline=None)
@given(st.text(max_size=200))
def test_what_a_text_names_is_among_its_words(text: str) -> None:
    assert specific_words(text) <= plain_words(text)


@settings(deadline=None)
@given(st.lists(st.tuples(st.text(max_size=60), st.lists(st.integers(1, 4), min_size=1)), max_size=5))
def test_whatever_a_writer_answers_is_judged_without_an_error(answer: list[tuple[str, list[int]]]) -> None:
    sentences = [GroundedSentence(text, tuple(sources)) for text, sources in answer]
    assert prose_faults(sentences, LINES, tokens=TOKENS)


# In a prompt

PROSE = ProfileProse(prose_of(GOOD, LINES, tokens=TOKENS), "m profile-1")
OWN = Profile("u", version=3, lines=LINES, prose=PROSE, pinned=(ProfileLine("- Use SI units", 5),))


def test_a_prompt_gets_the_prose_after_pinned_lines_that_stay_as_they_are() -> None:
    text = profile_text(OWN, None, tokens=TOKENS)
    assert text is not None
    assert text.text == "\n".join([PROSE_HEAD, "- Use SI units", *(one.text for one in PROSE.sentences), FOOT])
    assert text.memory_ids == ("m1", "m2", "m3", "m4")
    assert TOKENS(text.text) <= text.tokens <= PROFILE_TOKENS_MAX


def test_prose_that_does_not_fit_beside_pinned_lines_gives_way_to_the_lines_that_do() -> None:
    pinned = ProfileLine("- " + "word " * 110, 112)
    long = ProfileProse((ProfileSentence("I " * 80, 80, ("m1", "m2", "m3", "m4")),))
    text = profile_text(Profile("u", lines=LINES, pinned=(pinned,), prose=long), None, tokens=TOKENS)
    assert text is not None
    assert "I live in Leeds" in text.text
    assert text.text.startswith(HEAD)
    assert text.tokens <= PROFILE_TOKENS_MAX
