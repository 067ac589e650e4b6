"""One value of an attribute that has a single one at a time, as a clause tells it, and whether two can both hold.

"I live in Oslo" tells the user's home, "the loft conversion starts on 4 May" when that very thing starts. What may be
had several times over (children, pets, trips, hobbies) is never told this way, so that nothing of it falls without the
user's word. Where it is unsure whether two clauses speak of one thing, both stay. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass

AGE_STEP_MAX = 3  # years from one statement to the next: a child ages by as many, a leap is another child
AGE, AGE_OF, GRADE_OF, SCHOOL_OF, OCCUPATION = "age", "age of", "grade of", "school of", "occupation"
_OF_PERSONS = (AGE_OF, GRADE_OF, SCHOOL_OF)


@dataclass(frozen=True, slots=True)
class Told:
    """`of`: the words of what has the attribute, or none for the user. `value`: the words of it, at least one."""

    attribute: str
    value: frozenset[str]
    of: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()  # those of the words that name a person or a thing
    is_owned: bool = False  # "my test" is nobody else's; "the test" may be any that was spoken of
    is_somebodys: bool = False  # "my brother's test"


def cannot_both_hold(new: Told, old: Told) -> bool:
    """Whether both tell one attribute of one thing, and values of which only one can hold."""
    if new.attribute != old.attribute or not _is_of_one(new, old):
        return False
    if new.attribute in (AGE_OF, GRADE_OF):
        return 0 < int(min(new.value)) - int(min(old.value)) <= AGE_STEP_MAX
    if new.attribute == OCCUPATION:
        return not (new.value <= old.value or old.value <= new.value)  # "nurse" and "night nurse" are one
    return new.value.isdisjoint(old.value)


def _is_of_one(new: Told, old: Told) -> bool:
    if new.attribute in _OF_PERSONS:
        return _is_one_person(new, old)
    if new.of == old.of:
        return new.is_somebodys == old.is_somebodys
    shorter, longer = sorted((new, old), key=lambda told: len(told.of))
    if not shorter.of or not shorter.of < longer.of or (new.is_owned and old.is_owned):
        return False
    return not longer.is_somebodys and not longer.names - shorter.of  # "the report" need not be the Heron report


def _is_one_person(new: Told, old: Told) -> bool:
    """One name, or one relation where not both are named: two daughters have two names."""
    if new.names and old.names:
        return bool(new.names & old.names)
    return new.of == old.of


__all__ = ["AGE", "AGE_OF", "GRADE_OF", "OCCUPATION", "SCHOOL_OF", "Told", "cannot_both_hold"]
