"""A statement cut into parts that could stand alone, so that one may fall and the others still hold.

"I drive an Octavia, my wife has the Yaris" has two; "I live in Leeds, near Hyde Park" has one. Every part is an exact
substring, and what is left after taking some away is put together from exact substrings. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise

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
_LEAD = re.compile(
    r"(?:I['’]m|We['’]re|I am|Ich bin)(?= (?:an?|eine?) )|"
    r"(?:I|We|Ich|Wir)(?:['’](?:ve|m|re))? [a-z]+(?: (?:got|been))?(?= )"
)
_SUBJECT = re.compile(r"(?:I|We|Ich|Wir)\b")
# "I'm vegan and allergic to nuts", "Mia is 5 and shy": what is said of one, or done by one, joined.
_AND = re.compile(r"\s{0,9},\s{1,9}(?:and |und |y )?|\s{1,9}(?:and|und|y)\s{1,9}")
_WHO = (
    r"(?:I|[Ww]e|[Hh]e|[Ss]he|[Tt]hey|[Ii]ch|[Ww]ir|(?:[Mm]y|[Oo]ur|[Mm]eine?|[Mm]i) [\w-]+(?: [A-ZÀ-Þ][\w-]+)?|"
    r"[A-ZÀ-Þ][\w-]+)"
)
_IS = re.compile(rf"{_WHO}(?:['’](?:m|re|s)| (?:am|is|are|bin|ist|sind|es))(?= )|(?:[Ss]oy|[Ee]stoy)(?= )")
_HOW = r"(?:(?:very|quite|severely|also|still|auch|sehr|muy|también) )?"
_IS_OF_ITS_OWN = re.compile(
    r"(?:an?|eine?|una?|\d{1,3})\b|"
    rf"{_HOW}(?:\w+ (?:to|of|with|in|at|from|by|gegen|a|al|con)\b|"
    r"(?:(?:\w+ )?\w+(?:ic|ed|ive|ant|ent|less|ful|ous|ing|able|ible|ally|ish|an|ese)|vegan[oa]|vegetarier(?:in)?|"
    r"veganer(?:in)?|single|shy|ill|sick|blind|deaf|tall|short)$)",
    re.IGNORECASE,
)
_PLACED = re.compile(r"(?P<lead>\S+ (?:to|of|with|in|at|from|by|gegen|a|con)) ", re.IGNORECASE)
_DOES = re.compile(
    r"(?:I|[Ww]e|[Ii]ch|[Ww]ir)(?:['’]ve got| have got| (?:also |still )?[a-z]+)(?= )|"
    "我(?:们|家)?(?:现在|平时)?(?:有|养了?|会弹?|喜欢|爱|弹|玩|学|在学|吃|喝|对)",
)
_WHICH = re.compile(
    r"(?P<lead>(?:[Mm]y|[Oo]ur) \w+) (?P<list>[A-Z][\w-]+(?:,? (?:and )?[A-Z][\w-]+)+) (?P<rest>[a-z].+)"
)
_DONE = re.compile(
    r"(?:also )?(?:work|live|play|sing|study|teach|run|swim|drive|smoke|drink|speak|cook|read|write|paint|dance|own|"
    r"have|like|love|hate|go|take|use|learn|ride|ski|hike|cycle|travel|collect|train|eat|keep|want|need|prefer|do|"
    r"make|am|arbeite|wohne|spiele|singe|lese|trinke|esse|habe|bin)\b"
)
_ONE = r"(?:an?|the|my|our|some|\d{1,3}|eine?n?|two|three|four|five)\s"
_ONE_OF_SORT = re.compile(rf"{_ONE}|(?-i:[A-ZÀ-Þ])|[一两三]?[只条个]?[\u3400-\u9fff]+$", re.IGNORECASE)
_THING = re.compile(
    rf"(?!(?:in|on|at|near|with|from|to|for|by|mit|bei|aus|für|con|en)\s)(?:{_ONE})?[\w-]+(?:\s[\w-]+){{0,2}}$|"
    "[一两三]?[只条个]?[\u3400-\u9fff]+$"
)
_LAST_AND = re.compile(r"\s(?:and|und|y)\s|[和跟与]")
PARTS_MAX = 12  # of one clause: more is no list that somebody tells of themselves
_THINGS_ZH = re.compile("[和跟与、]")
_VERB_FIRST = re.compile(r"(?:work|arbeite) (?:as|for|at|als|bei|für)\s")
_SOMEWHERE = re.compile(r"\s*(?:in|at|near|with|from|mit|bei|aus)\s", re.IGNORECASE)
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


def remainder(statement: str, fallen: Collection[Clause], left: Sequence[str] = ()) -> str:
    """What is left of the statement without some of its clauses, or "" where that says nothing.

    A heading ("Birthdays: …") stays, for it says what the rest is about. `left`: parts of fallen clauses that still
    hold, as `parts_of` gives them.
    """
    standing = [clause for clause in clauses_of(statement) if clause not in fallen]
    texts = _runs(statement, standing) if standing else []
    if not any(len(terms(clause.text)) >= 2 for clause in standing) and not any(_has_a_thing(text) for text in texts):
        texts = []
    heading = _HEADING.match(statement)
    text = "; ".join((*left, *texts))
    return (heading.group() if heading and text else "") + text


def _has_a_thing(text: str) -> bool:
    """ "I have a parrot": one word of matter is enough behind a subject and a verb."""
    lead = _LEAD.match(text)
    return lead is not None and bool(terms(text[lead.end() :]))


def parts_of(clause: str) -> list[str]:
    """What is joined in one clause, each part with the subject and the verb of the first; [] where that is unsure."""
    bare = clause.strip(" ,;，；.。!！")
    joints = len(_AND.findall(bare)) + len(_THINGS_ZH.findall(bare))
    if joints >= PARTS_MAX or not _LAST_AND.search(bare, max(bare.rfind(","), 0)):
        return []  # "I'm vegetarian, going on nine years"
    named = _WHICH.fullmatch(bare)
    if named:
        return [f"{named['lead']} {name} {named['rest']}" for name in re.split(r",? and |, ", named["list"])]
    is_ = _IS.match(bare)
    if is_:
        return _said_of_one(is_.group(), _AND.split(bare[is_.end() :].strip()))
    does = _DOES.match(bare)
    return _done_by_one(does.group(), bare[does.end() :]) if does else []


def _said_of_one(lead: str, parts: Sequence[str]) -> list[str]:
    """ "Allergic to nuts and eggs" is one allergy more, "allergic to nuts and vegan" something else."""
    found, borrowed = [f"{lead} {parts[0]}"], ""
    for before, part in pairwise(parts):
        placed = _PLACED.match(before)
        borrowed = f" {placed['lead']}" if placed else borrowed
        is_own = bool(_IS_OF_ITS_OWN.match(part))
        if not is_own and (not borrowed or _SUBJECT.match(part) or _NEW_SUBJECT.match(part)):
            return []
        found.append(f"{lead} {part}" if is_own or not borrowed else f"{lead}{borrowed} {part}")
    return found if len(found) > 1 else []


def _done_by_one(lead: str, rest: str) -> list[str]:
    """ "Play guitar and piano", "have a cat, a dog and a parrot"; "play guitar and sing" is done anew."""
    subject = lead.split()[0]
    is_zh = bool(_IDEOGRAPH.search(rest))
    parts = [part.strip() for part in (_THINGS_ZH if is_zh else _AND).split(rest)]
    things = [part for part in parts if part and not _DONE.match(part)]
    if len(parts) < 2 or not all(map(_THING.match, things)):
        return []
    if any(map(_ONE_OF_SORT.match, things)) and not all(map(_ONE_OF_SORT.match, things)):
        return []  # "I like my answers long and thorough"
    gap = "" if is_zh else " "
    return [f"{lead}{gap}{parts[0]}".strip(), *(f"{subject if _DONE.match(p) else lead}{gap}{p}" for p in parts[1:])]


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
    if lead and _SOMEWHERE.match(neighbours[0].text, lead.end()):
        lead = None  # "I live in Bergen with my wife and two kids": the verb is not theirs
    texts = [statement[start:end].strip(" ,;，；.。") for start, end in runs]
    subject = _SUBJECT.match(neighbours[0].text)
    return [
        f"{subject.group()} {text}"
        if subject and _VERB_FIRST.match(text)
        else f"{lead.group()} {text}"
        if lead and _GAPPED.match(_AND.split(text)[0])
        else text
        for text in texts
    ]
