"""Whether what was said later changes what was said before: by subject, attribute and the user's own words of change.

Two statements that merely resemble each other stay two: different names, numbers or days keep facts apart, unless the
user says that something ended, changed or was wrong, or the attribute can have only one value. What goes wrong here is
not lost: a superseded memory keeps its history. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise

from memory.learn.clauses import Clause, clauses_of, remainder, without_pinned_dates
from memory.learn.lexicon import RELATIONS, RELATIONS_ZH
from memory.learn.terms import terms
from memory.learn.values import Values, differ_in_measure, differ_in_name, names_of, values_of

IGNORE_CASE = re.IGNORECASE

TOPIC_SHARE_MIN = 0.5  # of the older clause's topic words: below it, two shared words or a shared name are needed


@dataclass(frozen=True, slots=True)
class Verdict:
    """The older statement no longer holds. `remainder`: what of it still does, word for word, or ""."""

    remainder: str = ""


# Something is over. What it was has to be named.
_CANCELLED = re.compile(
    r"\b(?:cancel\w*|call(?:ed|ing)? off|not going|won['’]t (?:be )?(?:go|make|attend)\w*|scrapped|dropped|abgesagt|"
    r"storniert|cancel[éóa]\w*)\b|"
    r"取消|不去了|去不了|不参加|退了",
    IGNORE_CASE,
)
_GONE = re.compile(
    r"\b(?:sold|gone|got rid of|gave (?:up|away)|stopped|quit|no longer|not \w+ any ?more|n['’]t \w+ any ?more|"
    r"used to|broke up|divorced|lost my|"
    r"threw out|dead|died|passed away|verkauft|nicht mehr|aufgehört|gekündigt|vend[íi]\w*|ya no|dej[éó]\w*)\b|"
    r"卖了|卖掉|不再|戒了|停了|扔了|丢了|没了|辞职|离婚|分手|不用了|不喝了|不吃了|不住",
    IGNORE_CASE,
)
_PERSON_LEFT = re.compile(
    r"\b(?:left|went to|moved on|moved to|retired|resigned|quit|is leaving|was fired|ging in|hat .{0,20}verlassen|"
    r"jubil\w+|se fue)\b|"
    r"调走|离职|退休|辞职|走了|跳槽",
    IGNORE_CASE,
)
# Something is otherwise than before.
_CHANGED = re.compile(
    r"\b(?:now|from now on|from today|from here on|going forward|as of|since|these days|lately|switched|changed|"
    r"moved|swapped|replaced|instead|"
    r"pushed|postponed|rescheduled|brought forward|down to|up to|raised|cut(?:ting)?|lowered|updated|became|turned|"
    r"currently|no longer|"
    r"any ?more|jetzt|inzwischen|neuerdings|seit|künftig|umgezogen|gewechselt|verschoben|verlegt|nun|"
    r"ahora|desde|cambi\w+|mud[éóa]\w*|a partir de)\b|"
    r"现在|改成|改为|改到|改在|换成|换到|换了|搬到|搬去|迁到|加到|减到|涨到|降到|提到|推迟到|提前到|以后|今后|最近|"
    r"目前|从现在|从今|变成",
    IGNORE_CASE,
)
_CORRECTED = re.compile(
    r"\b(?:oops|sorry|actually|mixed (?:up|something)|(?:my )?mistake|wrong|i meant|correction|typo|i said|misspoke|"
    r"in fact|"
    r"falsch|korrektur|eigentlich|vertan|meinte|me equivoqué|perdón|en realidad|quise decir)\b|"
    r"说反|说错|不对|更正|纠正|记错|搞错|应该是|其实是?|弄错|写错",
    IGNORE_CASE,
)
_STEADY = re.compile(
    r"\b(?:stays?|still|same as|unchanged|as ever|remains?|keeps?(?! it)|no change|wie gehabt|bleibt|bleiben|"
    r"weiterhin|wie immer|"
    r"igual|sigue|siguen|como siempre)\b|照旧|还是|没变|没动|不变|仍然|依然|照常|依旧",
    IGNORE_CASE,
)
_NEGATED = re.compile(
    r"\b(?:no|not|never|without|none|zero|cut(?:ting)?|nicht|kein\w*|ohne|sin|nunca|n['’]t)\b|n['’]t\b|[不没无别]",
    IGNORE_CASE,
)

_ROLES = re.compile(
    r"\b(?:manager|boss|lead|supervisor|report(?:s|ing)? to|doctor|gp|dentist|therapist|teacher|coach|trainer|"
    r"landlord|landlady|"
    r"accountant|lawyer|cleaner|nanny|chefin?|hausarzt|hausärztin|ärztin|arzt|lehrer(?:in)?|"
    r"médic[oa]|doctora?|dentista|jef[ea]|profesora?|me lleva)\b|组长|经理|老板|领导|主管|医生|老师|教练|房东|"
    r"班主任|负责人",
    IGNORE_CASE,
)
_PLANS = re.compile(
    r"\b(?:trips?|going|go(?:es)? to|travel\w*|visit\w*|fly\w*|flight|booked|meeting|appointment|wedding|party|"
    r"dinner|concert|course|class|"
    r"training|plan\w*|reservation|reise|flug|termin|urlaub|viaje|cita|reserva)\b|去|订|约|会议|旅行|出差",
    IGNORE_CASE,
)
_POSSESSIONS = re.compile(
    r"\b(?:have|has|had|own|owns|drive|drives|ride|rides|got|bought|use|uses|using|play|plays|smoke|smokes|eat|eats|"
    r"drink|drinks|take|takes|"
    r"subscribe\w*|work|works|live|lives|deploy\w*|fahre|habe|hat|nutze|tengo|tiene|uso|conduzco)\b|有|开|用|养|喝|"
    r"吃|抽|住",
    IGNORE_CASE,
)

# Attributes that can have one value only: the class, and how it sounds.
_RESIDENCE = re.compile(
    r"\b(?:i|we)(?:['’](?:m|re|ve))? (?:(?:now |currently |just |finally |have |am |are )*(?:live|living|moved|"
    r"based|reside|relocated)) (?:in|to|at|near)\b|"
    r"\bmoved\b.{0,24}\b(?:i['’]m|we['’]re) in\b|"
    r"\b(?:wohne|wohnen|lebe) (?:ich|wir)\b|\b(?:ich|wir) (?:wohne|wohnen|lebe|leben|bin .{0,40}gezogen)\b|"
    r"\b(?:vivo|vivimos|me mud[ée]|nos mudamos)\b|(?:我|我们|我家|咱)[^，。；]{0,8}(?:住在?|搬到|搬去|搬家到)",
    IGNORE_CASE,
)
_DIET = re.compile(r"\b(?:vegetarian|vegan|pescatarian|omnivore|flexitarian|carnivore|keto)\b|吃素|素食", IGNORE_CASE)
_ANSWER_STYLE = re.compile(
    r"\b(?:answers?|replies|responses?|explanations?|keep (?:it|them)|write|respond|reply|antwort\w*|respuestas?)\b.*"
    r"\b(?:long|thorough|detailed|short|brief|concise|bullet|bullets|sentences?|words?|lines?|kurz|ausführlich|"
    r"knapp|cort\w+|larg\w+|breve\w*)\b|"
    r"(?:回答|回复).*(?:长|短|详细|简短|简洁|要点)",
    IGNORE_CASE,
)
_MANAGER = re.compile(
    r"\b(?:my|our) (?:manager|boss|line manager|supervisor|team lead)\b|\b(?:i|"
    r"we) (?:now )?report to\b",
    IGNORE_CASE,
)
_SINGLE_VALUED = re.compile(
    r"\s*(?P<attribute>(?:my|our|mein\w{0,2}|mi|nuestr[oa]|[A-ZÀ-Þ]\w+['’]s)\s+(?:new |neue[rs]? |"
    r"nuev[oa] )?(?:[\w-]+\s+){0,3}?"
    r"(?:name|budget|address|e-?mail(?: address)?|phone number|birthday|age|job|job title|employer|manager|boss|"
    r"hometown|time ?zone|weight|height|"
    r"shoe size|deadline|salary|rent|favou?rite [\w -]{2,30}?|geburtstag|adresse|chefin?|lieblings\w+|nombre|"
    r"cumpleaños|dirección|presupuesto)"
    r"(?:\s+(?:for|of)\s+[^.,;]{2,40}?)?)\s+(?:is|are|ist|es|was)\s+(?P<value>.+)",
    IGNORE_CASE,
)
_SINGLE_VALUED_ZH = re.compile(
    r"(?P<attribute>(?:我|我们|我家)的?[^，。；是]{0,8}(?:名字|预算|地址|邮箱|电话|生日|年龄|工作|职业|老板|领导|"
    r"上司|组长|经理|体重|身高|鞋码|老家|工资))是(?P<value>.+)"
)


def corrects(content: str) -> bool:
    """Whether the statement says that something said before was wrong."""
    return bool(_CORRECTED.search(content))


def may_change(content: str) -> bool:
    """Whether the statement could change an earlier one, so that the earlier ones have to be looked at."""
    signals = (_CANCELLED, _GONE, _PERSON_LEFT, _CHANGED, _CORRECTED, _NEGATED, _RESIDENCE, _ANSWER_STYLE)
    return any(s.search(content) for s in signals) or bool(_single_valued(content))


def compare(newer: str, older: str) -> Verdict | None:
    """How `newer` changes `older`, or None where both hold."""
    said, known = without_pinned_dates(newer), without_pinned_dates(older)
    changing = [clause.text for clause in clauses_of(said) if not _STEADY.search(clause.text)]
    steady = [clause.text for clause in clauses_of(said) if _STEADY.search(clause.text)]
    heading = known[: clauses_of(known)[0].start]
    fallen = [c for c in clauses_of(known) if _falls(c.text, heading, changing, steady)]
    if not fallen:
        return None
    return Verdict(remainder(known, fallen))


def covers(known: str, content: str) -> bool:
    """Whether `known` already says all that `content` says, order and small words aside."""
    wanted = terms(content)
    return bool(wanted) and wanted <= terms(known)


def _falls(clause: str, heading: str, changing: Sequence[str], steady: Sequence[str]) -> bool:
    if any(_has_one_value_only(clause, text) or _is_denied(clause, text) for text in (*changing, "; ".join(changing))):
        return True
    if _is_kept(clause, steady, changing):
        return False
    return any(_is_over(clause, text) for text in changing) or _is_otherwise(clause, heading, changing)


def _is_kept(clause: str, steady: Sequence[str], changing: Sequence[str]) -> bool:
    """ "The bathroom stays at 6k": what is said to stay as it is does not fall with the rest."""
    words = terms(clause)
    stays = max((len(words & terms(text)) for text in steady), default=0)
    changes = max((len(words & terms(text)) for text in changing), default=0)
    return stays > changes


def _is_over(clause: str, text: str) -> bool:
    """Whether `text` says that what `clause` tells of ended."""
    shared = terms(clause) & terms(text)
    if not shared or _speaks_of_others(clause, text):
        return False
    is_named = bool(names_of(clause) & names_of(text)) or any("\u3400" <= term[0] <= "\u9fff" for term in shared)
    if _CANCELLED.search(text):
        return bool(_PLANS.search(clause) or values_of(clause).days) and not _CANCELLED.search(clause)
    if _PERSON_LEFT.search(text) and _ROLES.search(clause):
        return is_named
    return bool(_GONE.search(text) and _POSSESSIONS.search(clause)) and not _GONE.search(clause)


def _is_otherwise(clause: str, heading: str, changing: Sequence[str]) -> bool:
    """Whether the user's words say that the same thing has another value now."""
    whole = "; ".join(changing)
    if not (_CHANGED.search(whole) or _CORRECTED.search(whole)):
        return False
    if _same_class(clause, whole):
        return True
    old, new = values_of(clause), values_of(whole)
    if _speaks_of_others(clause, whole) or not _same_topic(clause, heading, changing):
        return False
    if differ_in_measure(new, old):
        return not differ_in_name(new, old) or bool(old.names & new.names)
    return differ_in_name(new, old) or _is_undone(old, whole) or _is_named_anew(clause, changing)


def _same_class(clause: str, text: str) -> bool:
    """Both speak of an attribute of the user that has one value, however they word it."""
    return any(p.search(clause) and p.search(text) and covers(text, clause) is False for p in (_DIET, _MANAGER))


def _has_one_value_only(clause: str, text: str) -> bool:
    if _RESIDENCE.search(clause) and _RESIDENCE.search(text):
        return not (names_of(clause) & names_of(text)) and not covers(text, clause)
    if _ANSWER_STYLE.search(clause) and _ANSWER_STYLE.search(text):
        return True
    old, new = _single_valued(clause), _single_valued(text)
    if old is None or new is None:
        return False
    return terms(old[0]) == terms(new[0]) and terms(old[1]) != terms(new[1])


def _single_valued(text: str) -> tuple[str, str] | None:
    match = _SINGLE_VALUED.match(text) or _SINGLE_VALUED_ZH.search(text)
    return (match["attribute"], match["value"]) if match else None


def _is_denied(clause: str, said: str) -> bool:
    """The same words, once with and once without a "not"."""
    words = terms(clause)
    return len(words) >= 2 and words == terms(said) and bool(_NEGATED.search(clause)) != bool(_NEGATED.search(said))


def _speaks_of_others(clause: str, text: str) -> bool:
    """Whether the two are about different people: a relation or a name in the place of the subject tells."""
    if names_of(clause) & names_of(text):
        return False
    old, new = _relations(clause), _relations(text)
    if old != new and not _ROLES.search(clause):
        return True
    first_old, first_new = _subject_names(clause), _subject_names(text)
    return bool(first_old and (first_new or names_of(text)) and first_old.isdisjoint(first_new))


def _relations(text: str) -> frozenset[str]:
    found = {m.group().casefold() for m in RELATIONS.finditer(text)} | {m.group() for m in RELATIONS_ZH.finditer(text)}
    return frozenset(found)


_VERB = re.compile(
    r"\b(?:is|are|was|has|have|gets?|lives?|works?|likes?|loves?|goes|plays?|deploys?|uses?|drives?|ist|hat|wohnt|"
    r"mag|es|tiene|vive|in|at|with|to|for)\b",
    IGNORE_CASE,
)


def _subject_names(text: str) -> frozenset[str]:
    """The names before the verb, or the one that owns what follows: "Magnus's the 30th"."""
    verb = _VERB.search(text)
    owner = re.match(r"\s*(\S+)['’]s\s", text)
    return names_of(text[: verb.start()] if verb else "") | names_of(owner.group(1) if owner else "")


def _same_topic(clause: str, heading: str, changing: Sequence[str]) -> bool:
    """Whether both speak of one thing: by two words, by most words, or by the word that a clause opens with."""
    whole = "; ".join(changing)
    old, new = values_of(clause), values_of(whole)
    topic = (old.topic | terms(heading)) - {_folded(name) for name in old.names ^ new.names}
    shared = topic & new.topic
    if not shared or _are_of_two_sorts(clause, whole, shared):
        return False
    if len(shared) >= 2 or len(shared) >= TOPIC_SHARE_MIN * len(topic):
        return True
    return any(_opening(text) & shared for text in changing) and (
        differ_in_measure(new, old) or bool(_opening(clause) & shared)
    )


def _folded(name: str) -> str:
    return next(iter(terms(name)), name)


def _opening(text: str) -> frozenset[str]:
    """The first word of matter."""
    for piece in re.findall(r"[\u3400-\u9fff]+|[^\s\u3400-\u9fff]+", text):
        ideographs = "\u3400" <= piece[0] <= "\u9fff"
        found = terms(piece.lstrip("我们咱的")[:2] if ideographs else piece)
        if found:
            return found
    return frozenset()


def _are_of_two_sorts(clause: str, text: str, shared: Collection[str]) -> bool:
    """ "Yoga class" and "salsa class": each shared word is told apart by the word before it."""
    for word in shared:
        before_old, before_new = _word_before(clause, word), _word_before(text, word)
        if not before_old or not before_new or before_old == before_new or {before_old, before_new} & set(shared):
            return False
    return True


def _word_before(text: str, word: str) -> str:
    """The word of matter right before `word`, or ""."""
    words = [found for found in map(terms, re.findall(r"[A-Za-zÀ-ÿ'’-]+", text)) if found]
    for previous, current in pairwise(words):
        if word in current:
            return next(iter(previous))
    return ""


def _is_undone(old: Values, text: str) -> bool:
    """ "Two sugars" and "without any": an amount that is none by now."""
    return bool(old.amounts) and bool(_NEGATED.search(text))


def _is_named_anew(clause: str, changing: Sequence[str]) -> bool:
    """Chinese "组长是老贺" and "组长是晓冬": the same before 是, something else behind it."""
    head, is_, value = clause.rpartition("是")
    for text in changing:
        new_head, new_is, new_value = text.rpartition("是")
        if is_ and new_is and terms(head) & terms(new_head) and value.strip("的了") != new_value.strip("的了"):
            return True
    return False


__all__ = ["Clause", "Verdict", "compare", "covers", "may_change"]
