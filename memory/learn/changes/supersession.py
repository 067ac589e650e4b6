"""Whether what was said later changes what was said before: by subject, attribute and the user's own words of change.

Two statements that merely resemble each other stay two: different names, numbers or days keep facts apart, unless the
user says that something ended, changed or was wrong, or the attribute can have only one value. What goes wrong here is
not lost: a superseded memory keeps its history. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from memory.learn.changes.amending import is_amendment
from memory.learn.changes.cancellation import (
    is_called_off,
    is_of_plan,
    is_trip_moved,
    names_called_off,
    names_no_plan,
    without_reason,
)
from memory.learn.changes.contradiction import (
    contradicts,
    gives_value,
    is_past,
    matter_of,
    may_be_contradicted,
    may_contradict,
    purpose_of,
)
from memory.learn.changes.others import said_of_it, speaks_of_others
from memory.learn.changes.renaming import tells_name, without_renaming, wrong_name
from memory.learn.changes.single_valued import tell_one_attribute
from memory.learn.changes.topics import is_same_topic
from memory.learn.words import change_words as words
from memory.learn.words.clauses import Clause, clauses_of, parts_of, remainder, without_pinned_dates
from memory.learn.words.persons import relations_of, without_relations
from memory.learn.words.terms import terms
from memory.learn.words.values import Values, differ_in_measure, differ_in_name, differ_in_side, names_of, values_of

IGNORE_CASE = re.IGNORECASE

_IDEOGRAPH = re.compile("[\u3400-\u9fff]")
_VERB_OBJECT_ZH = re.compile("(用|坐|开|学|住|喝|吃|养|穿|练)(?:的是|的|在|着)?([\u3400-\u9fff]{2})")
_WHEN = terms(  # when something ended does not say what did: "he died in the night", "I work night shifts"
    "morning noon afternoon evening night midnight day week weekend month year hour last next spring summer autumn "
    "winter suddenly morgen abend nacht tag woche noche tarde mañana día semana"
)
_DOING = terms("take taking use using have having do doing go going eat eating drink drinking play playing get getting")


@dataclass(frozen=True, slots=True)
class Verdict:
    """The older statement no longer holds. `remainder`: what of it still does, word for word, or ""."""

    remainder: str = ""


_SAY_CHANGE = (
    words.GIVEN_AWAY,
    words.NO_LONGER,
    words.BECOMES_ZH,
    words.CANCELLED,
    words.GONE,
    words.PERSON_LEFT,
    words.CHANGED,
    words.CORRECTED,
)
_MAY_SAY_CHANGE = (words.NEGATED, words.RESIDENCE, words.ANSWER_STYLE, words.LIVES, words.AGAIN)


def corrects(content: str) -> bool:
    """Whether the statement says that something said before was wrong."""
    return bool(words.CORRECTED.search(content))


def says_change(content: str) -> bool:
    """Whether the user's own words say that something changed, ended or was wrong; a bare new value does not."""
    return any(signal.search(content) for signal in _SAY_CHANGE)


def may_change(content: str) -> bool:
    """Whether the statement could change an earlier one, so that the earlier ones have to be looked at."""
    return (
        says_change(content)
        or any(s.search(content) for s in _MAY_SAY_CHANGE)
        or any(_single_valued(clause.text) for clause in clauses_of(content))
        or may_contradict(content)
        or bool(wrong_name(content) or names_called_off(content))
        or is_amendment(content)
    )


def compare(newer: str, older: str) -> Verdict | None:
    """How `newer` changes `older`, or None where both hold."""
    said, known = without_pinned_dates(newer), without_pinned_dates(older)
    if not (
        _have_anything_in_common(said, known) or tell_one_attribute(said, known) or may_be_contradicted(known, said)
    ):
        return None
    misnamed = wrong_name(said)
    said = without_renaming(said)
    lead = said[: clauses_of(said)[0].start]
    changing = [clause.text for clause in clauses_of(said) if not words.STEADY.search(clause.text)]
    steady = [clause.text for clause in clauses_of(said) if words.STEADY.search(clause.text)]
    heading = known[: clauses_of(known)[0].start]
    fallen = [
        c
        for c in clauses_of(known)
        if (misnamed and tells_name(c.text, misnamed))
        or is_called_off(c.text, known, said)
        or _falls(c.text, heading, changing, steady, lead)
    ]
    if not fallen:
        return None
    left = [part for c in fallen for part in _parts_left(c.text, heading, changing, steady, lead)]
    return Verdict(remainder(known, fallen, left))


def _parts_left(clause: str, heading: str, changing: Sequence[str], steady: Sequence[str], lead: str) -> list[str]:
    """ "I'm allergic to nuts" of "I'm vegan and allergic to nuts", which falls as a whole for its diet only."""
    parts = parts_of(clause)
    left = [part for part in parts if not _falls(part, heading, changing, steady, lead)]
    if parts and not left:  # "I stopped learning French": what they share names none of them
        shared, said = frozenset.intersection(*map(terms, parts)), terms("; ".join(changing))
        left = [part for part in parts if not (terms(part) - shared) & said]
    return left if len(left) < len(parts) else []


def rests_on_an_unnamed_plan(newer: str, older: str) -> bool:
    """Whether `newer` changes `older` only by calling off a plan without saying which: "my trip is cancelled"."""
    clauses = [clause.text for clause in clauses_of(without_pinned_dates(newer))]
    certain = [text for text in clauses if not names_no_plan(text)]
    if len(certain) == len(clauses) or compare(newer, older) is None:
        return False
    return not certain or compare("; ".join(certain), older) is None


def _have_anything_in_common(said: str, known: str) -> bool:
    """The quick look that spares most pairs the long one."""
    classes = (words.RESIDENCE, words.DIET, words.MANAGER, words.ANSWER_STYLE)
    return bool(terms(said) & terms(known)) or any(p.search(said) and p.search(known) for p in classes)


def covers(known: str, content: str) -> bool:
    """Whether `known` already says all that `content` says, order and small words aside."""
    wanted = terms(content)
    return bool(wanted) and wanted <= terms(known)


def _falls(clause: str, heading: str, changing: Sequence[str], steady: Sequence[str], lead: str) -> bool:
    changing, steady = said_of_it(clause, changing), said_of_it(clause, steady)
    if not words.CORRECTED.search("; ".join(changing)):
        changing = [text for text in changing if not differ_in_side(text, clause)]
    if words.HISTORY.search(clause) and not words.CORRECTED.search("; ".join(changing)):
        return False  # what was once stays true, whatever holds now
    texts = (*changing, "; ".join(changing))
    if any(_has_one_value_only(clause, text) or _is_denied(clause, text) for text in texts):
        return True
    told = (*changing, *steady)  # "still unpacking" says nothing of what is told beside it
    if any(contradicts(text, clause) or (lead and contradicts(lead + text, clause)) for text in told) or is_past(
        "; ".join(changing), clause
    ):
        return True
    if _is_kept(clause, steady, changing):
        return False
    return any(_is_over(clause, text) for text in changing) or _is_otherwise(clause, heading, changing)


def _is_kept(clause: str, steady: Sequence[str], changing: Sequence[str]) -> bool:
    """ "The bathroom stays at 6k": what is said to stay as it is does not fall with the rest."""
    matter = terms(clause)
    stays = max((len(matter & terms(text)) for text in steady), default=0)
    changes = max((len(matter & terms(text)) for text in changing), default=0)
    return stays > changes


def _is_over(clause: str, text: str) -> bool:
    """Whether `text` says that what `clause` tells of ended."""
    shared = terms(clause) & terms(text)
    if not shared or speaks_of_others(clause, text):
        return False
    if any(ending.search(clause) for ending in (words.CANCELLED, words.GONE)):
        return False  # it told of an end itself
    is_named = bool(names_of(clause) & names_of(text)) or any(_IDEOGRAPH.match(term) for term in shared)
    is_plan = bool(words.PLANS.search(clause) or values_of(clause).days)
    return (
        (is_plan and bool(words.CANCELLED.search(text)) and is_of_plan(clause, text))
        or (is_named and bool(words.PERSON_LEFT.search(text) and words.ROLES.search(clause)))
        or (is_named and bool(words.GIVEN_AWAY.search(text) and _is_about_having(clause)))
        or _is_given_up(clause, text)
        or (terms(clause) <= terms(text) and bool(words.NO_LONGER.search(text)))
    )


def _is_given_up(clause: str, text: str) -> bool:
    """ "I stopped taking iron" ends what is said of iron, not of all that is taken."""
    if not words.GONE.search(text) or not _is_had(clause, text):
        return False
    matter = terms(without_reason(text)) - _WHEN
    is_named = terms(words.GONE.sub(" ", without_reason(text))) - _WHEN - _DOING
    return bool((matter - _DOING if is_named else matter) & terms(clause))


def _is_had(clause: str, text: str) -> bool:
    """Whether `clause` tells of having or doing, and not of another one than `text`: "I used to live in Rome"."""
    once = words.USED_TO.search(text)
    ended, known = terms(once["matter"]) if once else frozenset(), terms(clause)
    return bool(words.POSSESSIONS.search(clause)) and (not ended or bool(ended & known))


def _is_about_having(clause: str) -> bool:
    """Such as "my car is a Seat" and "I drive a Seat", but not "the Seat's papers are in the drawer"."""
    return bool(words.POSSESSIONS.search(clause) or words.IS_ONE.search(clause))


def _is_otherwise(clause: str, heading: str, changing: Sequence[str]) -> bool:
    """Whether the user's words say that the same thing has another value now."""
    whole = "; ".join(changing)
    if not (words.CHANGED.search(whole) or words.CORRECTED.search(whole)):
        return False
    if _same_class(clause, whole):
        return True
    old, new = values_of(clause), values_of(whole)
    if speaks_of_others(clause, whole):
        return False
    is_home_kept = _moves_elsewhere(whole) and bool(words.RESIDENCE.search(clause) or words.LIVES.search(clause))
    if is_home_kept:
        return False
    if any(tell_one_attribute(text, clause) and not covers(text, clause) for text in (whole, *changing)):
        return True
    if is_trip_moved(clause, whole):
        return True
    if not is_same_topic(clause, heading, changing):
        return False
    if differ_in_measure(new, old):
        return not differ_in_name(new, old) or bool(old.names & new.names)
    return (
        differ_in_name(new, old)
        or _is_left_behind(old, whole)
        or _is_undone(old, whole)
        or _is_named_anew(clause, changing)
    )


def _same_class(clause: str, text: str) -> bool:
    """Both speak of an attribute of the user that has one value, however they word it."""
    is_diet = words.DIET.search(clause) and words.DIET.search(text)
    is_manager = words.MANAGER.search(clause) and words.MANAGER.search(text) and names_of(text) - names_of(clause)
    return bool(is_diet or is_manager) and not covers(text, clause)


def _has_one_value_only(clause: str, text: str) -> bool:
    if _live_elsewhere(clause, text):
        return True
    if _resides(clause) and _resides(text) and _is_new_home(clause, text):
        return not (names_of(clause) & names_of(text)) and not covers(text, clause)
    if words.ANSWER_STYLE.search(clause) and words.ANSWER_STYLE.search(text):
        return True
    old, new = _single_valued(clause), _single_valued(text)
    if old is None or new is None:
        return False
    if not (gives_value(*new) and gives_value(*old)) or purpose_of(new[1]) != purpose_of(old[1]):
        return False
    return terms(old[0]) == terms(new[0]) and terms(old[1]) != terms(new[1])


def _live_elsewhere(clause: str, text: str) -> bool:
    """ "My brother Leo lives in Turin" and "Leo moved to Vienna": one person, two towns."""
    lived, lives = words.LIVES.search(clause), words.LIVES.search(text)
    if not lived or not lives or words.LONG_AGO.search(text):
        return False
    before, now = clause[: lived.start()], text[: lives.start()]
    named_before, named_now = without_relations(names_of(before)), without_relations(names_of(now))
    if named_before and named_now and named_before.isdisjoint(named_now):
        return False  # "my friend Bob" and "my friend Al"
    is_same_person = bool(named_before & named_now or relations_of(before) & relations_of(now))
    old, new = names_of(clause[lived.end() :]), names_of(text[lives.end() :])
    return is_same_person and bool(old and new) and old.isdisjoint(new)


def _is_new_home(clause: str, text: str) -> bool:
    """Whether the user's words say so, or each names a town; "near the mill" and "third floor" may be one."""
    if words.CHANGED.search(text):
        return True
    return bool(words.LIVES_IN_TOWN.search(clause) and words.LIVES_IN_TOWN.search(text))


def _resides(text: str) -> bool:
    """Whether it says where the user lives now, not where somebody else does, nor where it was long ago."""
    match = words.RESIDENCE.search(text)
    if _moves_elsewhere(text):
        return False
    is_for_good = not (words.LONG_AGO.search(text) or words.ADDED.search(text))
    return match is not None and not relations_of(match.group()) and is_for_good


def _moves_elsewhere(text: str) -> bool:
    """ "I moved to another office"."""
    match = words.RESIDENCE.search(text)
    if match is None:
        return False
    return bool(words.NO_HOME.match(text, match.end()) or words.NO_HOME_MOVE.search(text))


def _single_valued(text: str) -> tuple[str, str] | None:
    match = words.SINGLE_VALUED.match(text) or words.SINGLE_VALUED_ZH.search(text)
    return (match["attribute"], match["value"].partition("; ")[0]) if match else None


def _is_denied(clause: str, said: str) -> bool:
    """The same words, once with and once without a "not"; "again" may be said with more."""
    matter, told = matter_of(clause), matter_of(said)
    is_one = matter == told or (matter < told and words.AGAIN.search(said))
    return len(matter) >= 2 and bool(is_one) and _is_negated(clause) != _is_negated(said)


def _is_negated(text: str) -> bool:
    return bool(words.NEGATED.search(text))


def _is_left_behind(old: Values, text: str) -> bool:
    """Whether the old value is the name that is left: "from Trello to Linear"."""
    left = r"\b(?:from|instead of|replac\w+|von|statt|de) (?:the |der |dem |el |la )?"
    return any(re.search(rf"{left}{re.escape(name)}\b", text, re.IGNORECASE) for name in old.names)


def _is_undone(old: Values, text: str) -> bool:
    """ "Two sugars" and "without any": an amount that is none by now."""
    return bool(old.amounts) and bool(words.NEGATED.search(text))


def _is_named_anew(clause: str, changing: Sequence[str]) -> bool:
    """Chinese "组长是老贺" and "组长是晓冬": the same before 是, something else behind it."""
    head, is_, value = clause.rpartition("是")
    for text in changing:
        new_head, new_is, new_value = text.rpartition("是")
        if is_ and new_is and terms(head) & terms(new_head) and value.strip("的了") != new_value.strip("的了"):
            return True
        if _IDEOGRAPH.search(clause) and (words.BECOMES_ZH.search(text) or _has_another_object(clause, text)):
            return True
    return False


def _has_another_object(clause: str, text: str) -> bool:
    """Chinese "用飞书" and "用钉钉": the same verb, another object."""
    old, new = dict(_VERB_OBJECT_ZH.findall(clause)), dict(_VERB_OBJECT_ZH.findall(text))
    return any(old[verb] != new[verb] for verb in old.keys() & new.keys())


__all__ = [
    "Clause",
    "Verdict",
    "compare",
    "corrects",
    "covers",
    "may_change",
    "rests_on_an_unnamed_plan",
]
