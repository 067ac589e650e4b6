"""What a model is asked about, one thing at a time: statements that the rules are not sure of, kept or left out.

Rules propose with more reach than they would store: what they keep for certain is not asked about, for a small model
judges worse than they do; what they keep without a name, number, person or wish in it is; so is what they left out
although it tells something. Everything proposed stands word for word in a message of the user. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from memory.learn.facts import Fact
from memory.learn.statements import verbatim
from memory.learn.statements.labels import category_of
from memory.learn.statements.salience import Statement, Voice, is_courtesy, is_question, is_request
from memory.learn.words.clauses import without_pinned_dates
from memory.learn.words.lexicon import (
    EXPLICIT_LEAD,
    FIRST_PERSON,
    RELATIONS,
    RELATIONS_ZH,
    language_of,
)
from memory.learn.words.sentences import Sentence, sentences_of
from memory.learn.words.values import values_of
from memory.model import Role, Turn

BEFORE_CHARACTERS = 160  # of the assistant's answer, its end: what the user replied to
WORDS_MIN = 4  # of what the rules left out; less says nothing alone
IDEOGRAPHS_MIN = 6
CHARACTERS_MAX = 400  # of what the rules left out; longer ones are not talk
EARLIER_MAX = 4  # messages that a word may point back to
POINTED_WORDS_MAX = 5
LEAD_WORDS_MAX = (
    3  # before a "she" that may mean somebody spoken of before; further on it means one of its own sentence
)
LEAD_IDEOGRAPHS_MAX = 3

_LABELLED = frozenset({"preference", "constraint", "habit", "goal", "decision", "correction"})
_POINTS_BACK = {
    "en": re.compile(
        r"\b(?:there|it|its|he|she|him|they|them|that one)\b(?! (?:is|was|['’]s) (?:a|an|the)\b)", re.IGNORECASE
    ),
    "de": re.compile(r"\b(?:dort|sie|er|ihn|ihm)\b"),
    "es": re.compile(r"\b(?:allí|ahí|ella|él)\b", re.IGNORECASE),
    "zh": re.compile("那儿|那里|她|他|它|这趟|那家"),
}
_PLACES = frozenset(("there", "dort", "allí", "ahí", "那儿", "那里"))
_IN_A_PLACE = re.compile(r"\b(?:in|at|to|near|from|nach|bei|en|a) (?:the )?[A-ZÀ-Þ]\w+|[在去到]")
_IMPERSONAL = re.compile(
    r"\b(?:it|there)(?:['’]s| is| was| are| were| rains| takes| seems| turns| depends)\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Proposal:
    """A fact in the user's words. `before`: the end of what the assistant said before it.

    `is_sure`: rules alone decide. `is_kept`: without a model they would store it. `points`: a word in it that points
    back, or "". `earlier`: what the user said before, oldest first.
    """

    fact: Fact
    before: str
    is_sure: bool
    is_kept: bool
    points: str = ""
    earlier: tuple[str, ...] = ()


def proposals(turns: Sequence[Turn], *, context: Sequence[Turn]) -> list[Proposal]:
    """In the order said. `context`: turns of the session before them."""
    facts = verbatim.extract(turns, context=context)
    is_playing = any(verbatim.opens_role_play(turn) for turn in context)
    earlier: list[str] = [message.content for turn in context for message in verbatim.user_messages(turn)]
    previous = context[-1] if context else None
    found: list[Proposal] = []
    for turn in turns:
        is_playing = is_playing or verbatim.opens_role_play(turn)
        kept = [fact for fact in facts if fact.said_at == turn.at and _is_of(fact, turn, previous)]
        left_out = [] if is_playing else verbatim.without_jests(list(_left_out(turn, kept)), turns)
        before = previous.answer[-BEFORE_CHARACTERS:].strip() if previous else ""
        found += [_proposal(fact, before, earlier, turn, is_kept=True) for fact in kept]
        found += [_proposal(fact, before, earlier, turn, is_kept=False) for fact in left_out]
        earlier += [message.content for message in verbatim.user_messages(turn)]
        previous = turn
    return found


def _is_of(fact: Fact, turn: Turn, previous: Turn | None) -> bool:
    quoted = fact.evidence.turn_id
    return quoted == turn.id or (
        fact.evidence.role == Role.ASSISTANT and previous is not None and quoted == previous.id
    )


def is_sure(fact: Fact) -> bool:
    """Whether the rules alone decide: it names or measures something, is about somebody, or is a wish or a habit."""
    if fact.is_explicit or fact.evidence.role == Role.ASSISTANT or fact.category in _LABELLED:
        return True
    text = fact.evidence.quote
    return has_details(text) or bool(RELATIONS.search(text) or RELATIONS_ZH.search(text))


def has_details(text: str) -> bool:
    """Whether it names or measures anything."""
    values = values_of(text)
    return bool(values.names or values.days or values.weekdays or values.times or values.amounts)


def _left_out(turn: Turn, kept: Sequence[Fact]) -> Iterator[Fact]:
    """What the rules did not keep, although it tells something, as facts."""
    quotes = [fact.evidence.quote for fact in kept]
    for message in verbatim.user_messages(turn):
        is_about_a_text = _is_about_a_text(message.content)
        for sentence in verbatim.told_sentences(message.content):
            if any(quote in sentence.text or sentence.text in quote for quote in quotes):
                continue
            language = language_of(sentence.text)
            if is_about_a_text and not FIRST_PERSON[language].search(sentence.text):
                continue
            if _may_tell(sentence):
                yield verbatim.fact_of(Statement(sentence.text, language, Voice.THIRD_PERSON), turn)


def _is_about_a_text(message: str) -> bool:
    """Whether it asks or wants something in one line and has others: what these say of others was hardly told."""
    sentences = sentences_of(message, message)
    asks = any(is_question(s.text, language_of(s.text)) or is_request(s.text, language_of(s.text)) for s in sentences)
    return asks and "\n" in message.strip()


def _may_tell(sentence: Sentence) -> bool:
    text, language = sentence.text, language_of(sentence.text)
    if not _is_of_size(text, is_chinese=language == "zh") or sentence.is_marked_question or sentence.precedes_foreign:
        return False
    if is_question(text, language) or is_request(text, language) or is_courtesy(text) or EXPLICIT_LEAD.match(text):
        return False
    return (
        has_details(text)
        or bool(FIRST_PERSON[language].search(text))
        or category_of(Statement(text, language, Voice.THIRD_PERSON)) in (_LABELLED)
    )


def _is_of_size(text: str, *, is_chinese: bool) -> bool:
    if len(text) > CHARACTERS_MAX:
        return False
    return len(text) >= IDEOGRAPHS_MIN if is_chinese else len(text.split()) >= WORDS_MIN


def _proposal(fact: Fact, before: str, earlier: Sequence[str], turn: Turn, *, is_kept: bool) -> Proposal:
    said_before = [*earlier, *_before_in_turn(fact, turn)]
    points = _pointing_word(fact) if said_before else ""
    return Proposal(fact, before, is_kept and is_sure(fact), is_kept, points, tuple(said_before[-EARLIER_MAX:]))


def _before_in_turn(fact: Fact, turn: Turn) -> list[str]:
    """What stands before the quote in its own turn."""
    found: list[str] = []
    for message in verbatim.user_messages(turn):
        head, quote, _ = message.content.partition(fact.evidence.quote)
        if quote:
            return [*found, head.strip()] if head.strip() else found
        found.append(message.content)
    return found


def _pointing_word(fact: Fact) -> str:
    """The first word that points back out of the quote; none where words before it in the quote can be meant."""
    text = fact.evidence.quote
    language = language_of(text)
    pattern = _POINTS_BACK.get(language)
    match = pattern.search(text) if pattern and fact.evidence.role == Role.USER else None
    if match is None or (_IMPERSONAL.match(text, match.start()) and not has_details(text)):
        return ""
    lead = text[: match.start()]
    if match.group().casefold() in _PLACES:
        return "" if _IN_A_PLACE.search(lead) else match.group()
    if f" ({match.group()}: " in fact.content:
        return ""  # the rules were sure whom it means
    is_told = has_details(lead) or bool(RELATIONS.search(lead) or RELATIONS_ZH.search(lead))
    is_early = len(lead) <= LEAD_IDEOGRAPHS_MAX if language == "zh" else len(lead.split()) <= LEAD_WORDS_MAX
    return match.group() if is_early and not is_told else ""


def with_meaning(proposal: Proposal, meaning: str) -> Fact | None:
    """The fact with what its word points to put behind it, in the user's own words; None where that cannot be.

    `meaning` has to stand, word for word, in what the user said before.
    """
    plain = meaning.strip(" .,;:!?。，！？\"'“”")
    is_short = 0 < len(plain) <= 40 and len(plain.split()) <= POINTED_WORDS_MAX
    is_said = any(plain in text for text in proposal.earlier)
    if not is_short or not is_said or plain in proposal.fact.content or plain.casefold() == proposal.points.casefold():
        return None
    if has_pointer_only(plain):
        return None
    words = without_pinned_dates(proposal.fact.content)
    dates = proposal.fact.content[len(words) :]
    return replace(proposal.fact, content=f"{words} ({proposal.points}: {plain}){dates}")


def has_pointer_only(text: str) -> bool:
    """Whether the words point back themselves ("he", "there") and so explain nothing."""
    pattern = _POINTS_BACK.get(language_of(text))
    return bool(pattern and pattern.fullmatch(text))


__all__ = ["Proposal", "has_details", "is_sure", "proposals", "with_meaning"]
