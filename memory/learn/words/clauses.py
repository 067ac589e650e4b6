"""A statement cut into parts that could stand alone, so that one may fall and the others still hold.

"I drive an Octavia, my wife has the Yaris" has two; "I live in Leeds, near Hyde Park" has one. Every part is an exact
substring, and what is left after taking some away is put together from exact substrings. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from memory.learn.words.terms import terms

_PINNED_DATES = re.compile(r"\s*\([^()]{1,60}: (?:week of )?\d{4}(?:-\d\d){0,2}(?:; [^()]{1,60}: [^()]{4,20}){0,2}\)$")
_HEADING = re.compile(r"[^,;:，；：]{2,40}[:：]\s+(?=\S)")
_JOINT = re.compile(
    r"\s{0,9}[;；]\s{0,9}|\s{0,9}，\s{0,9}|,(?=[\u3400-\u9fff])|"
    r"\s{0,9},\s{1,9}(?:and |but |though |y |und |aber |pero )?|\s{1,9}(?:and|but|y|und|aber)\s{1,9}|"
    r"(?<=[.!?])(?<!\d\.)(?<!\bst\.)(?<!\bdr\.)(?<!\bmr\.)(?<!\bms\.)(?<!\bmrs\.)(?<!\bno\.)(?<!\bprof\.)\s{1,9}|"
    r"(?<=[。！？])",
    re.IGNORECASE,
)
_ON_A_DAY = r"(?:on|am|el)\s+\d{1,2}(?:st|nd|rd|th|\.)?\s+(?:of\s+|de\s+)?[a-zà-ÿ]+\s+"
_NEW_SUBJECT = re.compile(
    r"(?:my|our|his|her|their|the|an?|i|we|he|she|it|they|this|that|"
    r"mein\w{0,2}|unser\w{0,2}|der|die|das|ich|wir|er|sie|für|mis?|nuestr[oa]s?|el|la|los|las|al|a la|"
    r"yo)(?:['’]\w+)?\s+\S|"
    r"(?:work|arbeite) (?:as|for|at|als|bei|für)\s|trabajo (?:de|como|para)\s|soy (?!de\b|del\b)|"
    r"(?-i:[A-ZÀ-Þ][\wÀ-ÿ-]+)(?:['’]s)?\s+(?:in|on|at|with|the|is|has|gets|will|from|to|for|mit|bei|en|con)\b|"
    rf"(?:{_ON_A_DAY})?(?:to|nach|a)\s+(?-i:[A-ZÀ-Þ])|"
    r"(?:\d{1,3}|two|three|four|five|six|seven|eight|nine|ten)\s+(?!days|weeks|months|years|hours|minutes|times|"
    r"euros|dollars|"
    r"pounds|percent)[a-z]{3,}s\b|"
    r"\S+(?:\s\S+){0,3}\s(?:is|are|was|has|gets|stays|goes|ist|hat|es|tiene)\s",
    re.IGNORECASE,
)
# "I have a Golf and a van": the second part borrows the subject and the verb of the first.
_LEAD = re.compile(r"(?:I|We|Ich|Wir)(?:['’](?:ve|m|re))? [a-z]+(?: (?:got|been))?(?= )")
_SUBJECT = re.compile(r"(?:I|We|Ich|Wir)\b")
_VERB_FIRST = re.compile(r"(?:work|arbeite) (?:as|for|at|als|bei|für)\s")
_GAPPED = re.compile(
    rf"(?:{_ON_A_DAY})?(?:to|nach) (?-i:[A-ZÀ-Þ]).*$|"
    r"(?:an?|the|eine?n?|\d{1,3}|two|three|four|five|six|seven|eight|nine|ten|"
    r"(?-i:[A-ZÀ-Þ])[\wÀ-ÿ-]+(?: (?-i:[A-ZÀ-Þ])[\wÀ-ÿ-]+)*)"
    r"(?! (?:\w+ )?(?:is|are|has|gets?|stays?|goes|lives?|works?)\b)(?:\s+(?:for|with|in|on|at|to)\b.*|"
    r"(?:\s+[\wÀ-ÿ-]+){0,3})$",
    re.IGNORECASE,
)
_SUBORDINATE = re.compile(
    r"\s*(?:when|if|while|after|before|until|as|although|als|wenn|bevor|cuando|si)\b", re.IGNORECASE
)
_DEPENDENT_ZH = re.compile(r"(?:但是?|所以|因为|就|都|也|还(?!是)|才|不是|而且|然后|最后|再|要|没|不)")
_IDEOGRAPH = re.compile(r"[\u3400-\u9fff]")


@dataclass(frozen=True, slots=True)
class Clause:
    text: str
    start: int
    end: int


def without_pinned_dates(content: str) -> str:
    """The statement as it was said, without the dates that extraction put behind it."""
    return _PINNED_DATES.sub("", content)


def clauses_of(statement: str) -> list[Clause]:
    """The parts that could stand alone, in order; at least one."""
    heading = _HEADING.match(statement)
    start = heading.end() if heading else 0
    found: list[Clause] = []
    for joint in _JOINT.finditer(statement, start):
        if _starts_anew(statement, joint) and not _SUBORDINATE.match(statement, start):
            found.append(Clause(statement[start : joint.start()], start, joint.start()))
            start = joint.end()
    found.append(Clause(statement[start:], start, len(statement)))
    return [clause for clause in found if clause.text.strip()] or [Clause(statement, 0, len(statement))]


def _starts_anew(statement: str, joint: re.Match[str]) -> bool:
    rest = statement[joint.end() :]
    mark = joint.group().strip()
    if not rest.strip():
        return False
    if mark[:1] in (";", "；") or not mark:
        return True
    if _IDEOGRAPH.match(rest):
        return len(rest) >= 4 and not _DEPENDENT_ZH.match(rest)
    return bool(_NEW_SUBJECT.match(rest))


def remainder(statement: str, fallen: Collection[Clause]) -> str:
    """What is left of the statement without some of its clauses, or "" where that says nothing.

    A heading ("Birthdays: …") stays, for it says what the rest is about.
    """
    standing = [clause for clause in clauses_of(statement) if clause not in fallen]
    if not standing:
        return ""
    heading = _HEADING.match(statement)
    text = (heading.group() if heading else "") + "; ".join(_runs(statement, standing))
    return text if any(len(terms(clause.text)) >= 2 for clause in standing) else ""


def _runs(statement: str, standing: Sequence[Clause]) -> list[str]:
    """Neighbouring clauses as they stood, with what stood between them."""
    neighbours = clauses_of(statement)
    runs: list[tuple[int, int]] = []
    for clause in standing:
        index = neighbours.index(clause)
        if runs and index and neighbours[index - 1] in standing:
            runs[-1] = (runs[-1][0], clause.end)
        else:
            runs.append((clause.start, clause.end))
    lead = _LEAD.match(neighbours[0].text)
    texts = [statement[start:end].strip(" ,;，；.。") for start, end in runs]
    subject = _SUBJECT.match(neighbours[0].text)
    return [
        f"{subject.group()} {text}"
        if subject and _VERB_FIRST.match(text)
        else f"{lead.group()} {text}"
        if lead and _GAPPED.match(text)
        else text
        for text in texts
    ]
