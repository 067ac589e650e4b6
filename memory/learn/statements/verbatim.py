"""Extraction without a model: the user's salient statements, sentence by sentence, as they were said.

A statement is never reworded. Two things may be put beside it so that it stands alone later: the meaning of a relative
date, after it, and the question that it answers, before it. Only a short answer to a question of well-known form makes
one sentence with it ("I live in Leeds"), and its evidence is the answer alone. What the assistant said is never a fact,
except a question about the user that the user barely confirms; that fact quotes the question and says so. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from memory.learn.facts import Fact
from memory.learn.statements import labels, salience
from memory.learn.statements.answering import as_statement
from memory.learn.statements.asides import asides
from memory.learn.statements.intents import explicit_intent
from memory.learn.statements.own_words import meant_sentences, meant_text, own_sentences, taken_back_by
from memory.learn.statements.pronouns import points_back
from memory.learn.statements.remembering import asks_to_remember
from memory.learn.statements.replies import NO, YES, answers, lead_in, question_asked
from memory.learn.statements.salience import Statement, Voice
from memory.learn.words.dates import pinned
from memory.learn.words.lexicon import ABOUT_THE_TALK, FIRST_PERSON, language_of
from memory.learn.words.sentences import Sentence
from memory.model import Evidence, Message, Role, Turn

EARLIER_TURNS_MAX = 4  # in which somebody may have been named whom a pronoun means
SHORT_WORDS_MAX = 3  # of a sentence that says little alone
SHORT_IDEOGRAPHS_MAX = 5
CONFIDENCE_CONFIRMED = 0.75
CONFIDENCE_BESIDE = 0.8
FACTS_OF_ONE_TURN_MAX = 40  # nobody tells more in one breath; the rest was pasted


def extract(turns: Sequence[Turn], *, context: Sequence[Turn] = ()) -> list[Fact]:
    """The facts of `turns`, in the order said. `context`: earlier turns of the same session, oldest first.

    Context teaches nothing by itself; it tells what a bare "yes" answers and whether a part is being played.
    """
    facts: list[Fact] = []
    is_playing = any(opens_role_play(turn) for turn in context)
    earlier = list(context)
    for turn in turns:
        is_playing = is_playing or opens_role_play(turn)
        if not is_playing:
            facts.extend(_facts_of(turn, earlier[-EARLIER_TURNS_MAX:]))
        earlier.append(turn)
    return without_jests(facts, turns)


def without_jests(facts: Sequence[Fact], turns: Sequence[Turn]) -> list[Fact]:
    """Those that the user does not take back in their next message ("haha, just kidding")."""
    said = [(turn.id, message.content) for turn in turns for message in user_messages(turn)]
    jests = [(turn_id, taken_back_by(message, earlier)) for (turn_id, earlier), (_, message) in pairwise(said)]
    return [
        fact
        for fact in facts
        if not any(
            jest and fact.evidence.turn_id == turn_id and (fact.evidence.quote in jest or jest in fact.evidence.quote)
            for turn_id, jest in jests
        )
    ]


def opens_role_play(turn: Turn) -> bool:
    """Whether the user begins to play a part: from then on the session tells nothing about them."""
    return any(salience.opens_role_play(s) for m in user_messages(turn) for s in own_sentences(m.content))


def user_messages(turn: Turn) -> list[Message]:
    """What a person typed; tools speak in the same turn, too."""
    return [m for m in turn.messages if m.role == Role.USER and not m.is_tool_traffic]


def _facts_of(turn: Turn, earlier: Sequence[Turn]) -> list[Fact]:
    facts: list[Fact] = []
    previous = earlier[-1] if earlier else None
    said_before = [meant_text(message.content) for one in earlier for message in user_messages(one)]
    question = question_asked(previous)
    for index, message in enumerate(user_messages(turn)):
        asked = question if index == 0 else ""
        confirmed = _confirmation(message.content, asked, turn, previous)
        if confirmed:
            facts.append(confirmed)
        if confirmed or YES.match(message.content) or NO.match(message.content):
            continue
        facts.extend(_told(message.content, asked, turn, said_before))
    return facts[:FACTS_OF_ONE_TURN_MAX]


def _confirmation(reply: str, question: str, turn: Turn, previous: Turn | None) -> Fact | None:
    """A question of the assistant that the user's whole message confirms or denies."""
    if not question or previous is None or not (YES.match(reply) or NO.match(reply)):
        return None
    if re.match(
        r"\s*(?:how|what|why|where|when|which|who|怎么|什么|为什么|wie|was|qué|cómo)\b", question, re.IGNORECASE
    ):
        return None
    statement = Statement(f"{question} {reply.strip()}", language_of(question), Voice.THIRD_PERSON)
    category = labels.category_of(statement)
    return Fact(
        content=statement.text,
        evidence=Evidence(question, previous.id, Role.ASSISTANT),
        scope=turn.scope,
        said_at=turn.at,
        memory_type=labels.type_of(statement),
        category=category,
        confidence=CONFIDENCE_CONFIRMED,
        importance=labels.importance_of(statement, category),
    )


def told_sentences(message: str) -> list[Sentence]:
    """What the user said themselves and meant, cut so that each part says something."""
    return _joined(message, meant_sentences(message))


def _told(message: str, question: str, turn: Turn, said_before: Sequence[str]) -> Iterator[Fact]:
    """`said_before`: in the last turns, oldest first: whom a "she" may mean."""
    sentences = told_sentences(message)
    is_telling = _is_telling(message, sentences)
    own = meant_text(message)
    for index, sentence in enumerate(sentences):
        before = [*said_before, own[: sentence.start]]
        found = salience.statements(sentence, is_telling=is_telling, before=before)
        asked = question if index == 0 else ""
        for statement in found:
            yield fact_of(statement, turn, question=lead_in(asked, statement))
        yield from _told_beside(sentence, found, turn)
        if asked and not found:
            yield from _replied(asked, sentence, turn)


def _replied(question: str, sentence: Sentence, turn: Turn) -> Iterator[Fact]:
    """What a sentence that is no statement by itself says in reply to a question."""
    answer = as_statement(question, sentence.text)
    if answer:
        yield _answered(answer, sentence, turn)
    elif answers(sentence, question):
        said = Statement(sentence.text, language_of(sentence.text), Voice.THIRD_PERSON)
        yield fact_of(said, turn, question=question)


def _told_beside(sentence: Sentence, found: Sequence[Statement], turn: Turn) -> Iterator[Fact]:
    """What a question or a request tells of the user's own people, beyond the statements `found` in it."""
    for aside in asides(sentence.text):
        if any(aside.quote in one.text for one in found) or sentence.precedes_foreign:
            continue
        fact = fact_of(Statement(aside.text, language_of(aside.text), Voice.FIRST_PERSON), turn)
        yield replace(fact, evidence=Evidence(aside.quote, turn.id, Role.USER), confidence=CONFIDENCE_BESIDE)


def _answered(answer: str, sentence: Sentence, turn: Turn) -> Fact:
    """`answer`: what the sentence says together with the question; the words of the user alone are its evidence."""
    fact = fact_of(Statement(answer, language_of(answer), Voice.FIRST_PERSON), turn)
    evidence = Evidence(sentence.text, turn.id, Role.USER)
    return replace(fact, evidence=evidence, confidence=CONFIDENCE_CONFIRMED)


def _joined(message: str, sentences: Sequence[Sentence]) -> list[Sentence]:
    """Sentences of a few words go with the one beside them: "We moved! I'm in Bristol now" is one statement."""
    joined: list[Sentence] = []
    for sentence in sentences:
        last = joined[-1] if joined else None
        if last and _belong_together(message, last, sentence):
            text = message[last.start : sentence.end]
            joined[-1] = Sentence(text, last.start, sentence.end, sentence.precedes_foreign)
        else:
            joined.append(sentence)
    return joined


def _belong_together(message: str, first: Sentence, second: Sentence) -> bool:
    is_close = "\n" not in message[first.end : second.start] and not first.precedes_foreign
    if not is_close or not (_is_short(first) or _is_short(second)):
        return False
    if points_back(second.text) and not _is_short(second):
        return False  # whom it means is found by itself, and stands behind it
    return all(
        salience.is_own_matter(s)
        and not salience.is_courtesy(s.text)
        and not asks_to_remember(s.text)
        and explicit_intent(s.text) is None
        and not ABOUT_THE_TALK.match(s.text)
        for s in (first, second)
    )


def _is_short(sentence: Sentence) -> bool:
    if language_of(sentence.text) == "zh":
        return len(sentence.text) <= SHORT_IDEOGRAPHS_MAX
    return len(sentence.text.split()) <= SHORT_WORDS_MAX


def _is_telling(message: str, sentences: Sequence[Sentence]) -> bool:
    """Whether others' names and numbers in the message are told on purpose: it says something in the first person, or
    asks and wants nothing at all."""
    if all(salience.is_own_matter(s) for s in sentences) and not any(s.precedes_foreign for s in sentences):
        return True
    return any(
        FIRST_PERSON[language_of(s.text)].search(s.text) and salience.statements(s, is_telling=False) for s in sentences
    )


def fact_of(statement: Statement, turn: Turn, *, question: str = "") -> Fact:
    """The statement in the user's words, with its labels, its dates pinned, and the question that it answers."""
    category = labels.category_of(statement)
    dates = "; ".join(f"{phrase}: {meaning}" for phrase, meaning in pinned(statement.text, turn.at))
    content = f"{question} {statement.text}" if question else statement.text
    for antecedent in filter(None, (statement.antecedent, statement.place)):
        content += f" ({antecedent.word}: {antecedent.stands_for})"
    return Fact(
        content=f"{content} ({dates})" if dates else content,
        evidence=Evidence(statement.text, turn.id, Role.USER),
        scope=turn.scope,
        said_at=turn.at,
        memory_type=labels.type_of(statement),
        category=category,
        confidence=labels.confidence_of(statement),
        importance=labels.importance_of(statement, category),
        subject=labels.subject_of(statement),
        is_explicit=statement.is_explicit,
    )
