"""Replies to a question of the assistant: with the question, a few words or a bare "yes" become a statement. Pure."""

from __future__ import annotations

from dataclasses import replace

from memory.language import bare_reply, is_asked
from memory.language.phrases import is_dense
from memory.learn.reading.units import units_of
from memory.model import STORED_ACTS, Act, Claim, Evidence, Role

QUESTION_SIZE_MIN = 12  # of a question that makes a bare "yes" a statement; shorter ones only refer back
QUESTION_CHARACTERS_MAX = 300
CLAUSE_ENDS = ",;，；"


def question_of(answer: str) -> str:
    """The last sentence of an answer if it is a question, else ""."""
    units = units_of(answer[-QUESTION_CHARACTERS_MAX:])
    is_question = bool(units) and units[-1].is_own and is_asked(units[-1].text)
    return units[-1].text if is_question else ""


def answered(claim: Claim, question: str, asked_in: str, *, leans: bool) -> Claim:
    """The claim of a whole message that replies to `question`, which the assistant asked in turn `asked_in`.

    For a bare yes or no the question becomes the evidence, beside the reply, which alone proves nothing; a no negates
    it. Any other reply is stored with the question only if it leans on it: the assistant's words are not a statement of
    the author.
    """
    if not question or claim.act not in STORED_ACTS | {Act.CONFIRM}:
        return claim
    if reply := bare_reply(claim.text):
        if size_of(question) < QUESTION_SIZE_MIN:
            return claim  # "Is that right?" has no content without the sentence before it
        act = Act.STATE if claim.act is Act.CONFIRM else claim.act
        evidence, is_affirmed = Evidence(question, asked_in, Role.ASSISTANT), claim.is_affirmed and reply == "yes"
        text, said = f"{question} {claim.text}", claim.evidence
        return replace(claim, act=act, text=text, evidence=evidence, is_affirmed=is_affirmed, reply=said)
    if not leans:
        return claim
    asked = asking_clause(question)
    return replace(claim, text=f"{asked} {claim.text}", question=asked)


def asking_clause(question: str) -> str:
    """Without the part before the question: "since you are vegan, what do you cook?" """
    clause = question[max(question.rfind(mark) for mark in CLAUSE_ENDS) + 1 :].strip()
    return clause if size_of(clause) >= QUESTION_SIZE_MIN else question


def size_of(text: str) -> int:
    """Letters and digits; a Chinese, Japanese or Korean character counts as three."""
    return sum(3 if is_dense(character) else 1 for character in text if character.isalnum())
