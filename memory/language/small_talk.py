"""Part of stage 6: recognises messages that only greet, thank or acknowledge, in English, Chinese, Spanish and German.

Nothing is searched for such a message. It has to consist entirely of known phrases, in any mix of languages: a message
with any other word ("thanks, and the address?") is not a pleasantry.
"""

from __future__ import annotations

import string

from memory.language import LANGUAGES, pleasantries
from memory.language.phrase_sets import PhraseSet, fill_slots
from memory.language.phrases import is_word, tokenize

PLEASANTRY_CHARACTERS_MAX = 80  # nothing longer is only a greeting

_OWN = tuple(pleasantries(language) for language in LANGUAGES)
_PLEASANTRIES = PhraseSet(tokens for own in _OWN for tokens in fill_slots(own.phrases.words, own.slots))
_CONSENT = PhraseSet(tokens for own in _OWN for tokens in fill_slots(own.consent.words, own.slots))
_OPENINGS = tuple(sorted((phrase for own in _OWN for phrase in own.openings.words), key=len, reverse=True))
_SEPARATORS = string.whitespace + "\u00a0\u3000,.!，。！、;；~-"


def is_pleasantry(text: str) -> bool:
    """Whether the text is only greetings, thanks and acknowledgements, or has no words at all ("👍")."""
    if len(text) > PLEASANTRY_CHARACTERS_MAX:
        return False
    return _PLEASANTRIES.covers(text) or not any(map(is_word, tokenize(text).tokens))


def is_consent(text: str) -> bool:
    """Whether the text only says yes, which after a question of the assistant means "do it"."""
    return len(text) <= PLEASANTRY_CHARACTERS_MAX and _CONSENT.covers(text)


def without_opening(text: str) -> str:
    """The text without a greeting or thanks at its beginning; unchanged if nothing else would be left."""
    rest = text.lstrip()
    while (behind := _behind_opening(rest)) is not None:
        rest = behind
    return rest or text


def _behind_opening(text: str) -> str | None:
    """What follows an opening and the punctuation after it; None if the text does not begin with one."""
    for opening in _OPENINGS:
        if text[: len(opening)].lower() == opening:
            last = opening[-1]
            spoken = text[len(opening) :].lstrip(last + last.upper())
            behind = spoken.lstrip(_SEPARATORS)
            if len(behind) < len(spoken):
                return behind
    return None
