"""Splits text into the terms of lexical matching, and recognises statements with the same wording.

Words are folded (width, case, accents), stop words are dropped and endings are stripped lightly. Scripts without spaces
between words (Chinese, Japanese, Thai, and Korean, whose particles are attached to the word) yield single characters
and pairs of characters. Identifiers ("OPS-4412", "7.3.1", "petrel_stg") yield themselves as well as their parts, so
that 7.3.1 does not match 7.3.10.

Of a wording, only function words that change nothing are left out: a "not", a name or a number makes a difference, and
two different words are never assumed to mean the same. Stateless; knows nothing about memories or meaning.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from hashlib import blake2b

from memory.language import function_words

TERMS_PER_TEXT_MAX = 2_000  # the rest of a longer text is not indexed; a memory has at most 8,000 characters
STEM_CACHE_WORDS = 65_536  # cached words with their stems: the vocabulary of a few thousand memories

UNSPACED = (
    "\u0e00-\u0e7f"  # Thai
    "\u0e80-\u0eff"  # Lao
    "\u1000-\u109f"  # Burmese
    "\u1780-\u17ff"  # Khmer
    "\u3005-\u3007\u3041-\u30ff"  # Japanese kana
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"  # Han
    "\uac00-\ud7a3"  # Hangul
)
_UNSPACED_RUN = re.compile(f"[{UNSPACED}]+")
_TOKEN = re.compile(
    f"(?P<run>[{UNSPACED}]+)|(?P<word>[^\\W_{UNSPACED}]+(?:[._'’:/-][^\\W_{UNSPACED}]+|_+[^\\W_{UNSPACED}]+)*)"
)
_PART = re.compile(r"[^\W_]+")
_HAS_DIGIT = re.compile(r"\d")
_VOWEL = re.compile(r"[aeiouy]")
_WORD = re.compile(r"[-+$€£¥#@]?\w+(?:[.,:/-]\w+)*[-+#%°]*")  # signs matter: O+ and O-, C and C#, $50 and €50

# How extraction refers to the user: it occurs in all memories and distinguishes none.
_THE_USER = "user users nutzer nutzers nutzerin usuario usuaria"

# In addition to function words: words of asking and talking, which occur in most questions and carry no topic.
_STOP_ENGLISH = """
all any doing done get gets getting go goes going gonna got let lets like maybe more most much off oh okay only
other out please said say says under up well yet don didn doesn isn wasn aren couldn wouldn shouldn hasn haven hadn ain
mention mentioned describe described take takes took taken taking
"""
_STOP_GERMAN = "fur hat ja kein keine man nicht nun nur schon uber"
_STOP_SPANISH = "algo mas ni"
# Other languages occur mostly as names of things; their commonest articles would match everything.
_STOP_OTHER = "le la les des du une et est dans pour pas qui sur au aux ce il je ne se"
STOP_WORDS = function_words() | frozenset(
    " ".join((_THE_USER, _STOP_ENGLISH, _STOP_GERMAN, _STOP_SPANISH, _STOP_OTHER)).split()
)

# Chinese and Japanese characters with a grammatical role and no topic.
STOP_CHARACTERS = frozenset(
    "的了是在我你您他她它们这那吗呢吧啊呀哦嗯么什怎哪谁和与及或就都也还又很太最把被让给从到对于以而且但因为所如果要想"
    "会能可以请帮一个些有没不别再着过得地之其着来去说话下上里中个只该样何为几多少点好"
    "のにはをがでともからへやかなよねですますたりするいるあるこのそれ"
)
_STOP_PAIRS = frozenset(
    """用户 我的 你的 他的 她的 什么 怎么 怎样 如何 可以 一下 一个 一些 这个 那个 我们 他们 帮我
    给我 请问 需要 应该 有没 没有 是不 不是 还是 就是 现在 告诉 知道 来着 多少 哪些 哪个 哪里
    为什 时候 すか ます です した して""".split()
)

# Words that can be left out of a statement. Other people, times and negations are not among them.
_FILLERS = frozenset(
    "a an the really very just also so der die das ein eine el la un una 了 "
    "i m my am is are s user users ich bin mein meine ist nutzer nutzers yo soy mi mis es usuario del de".split()
)
_FILLERS_UNSPACED = re.compile("用户|我的?|的|了")


def terms(text: str) -> list[str]:
    """The terms of `text` in order, with repetition; at most `TERMS_PER_TEXT_MAX`."""
    found: list[str] = []
    for match in _TOKEN.finditer(fold(text)):
        found += _grams(match["run"]) if match["run"] else _words(match["word"])
        if len(found) >= TERMS_PER_TEXT_MAX:
            break
    return found[:TERMS_PER_TEXT_MAX]


def fold(text: str) -> str:
    """Lower case, one width, no accents; the length may change. Hangul and kana keep their marks."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    if folded.isascii():
        return folded
    return "".join(_unaccented(character) for character in folded)


def unspaced_share(text: str) -> float:
    """The share of letters in scripts without spaces, 0..1, which the embedding model does not know."""
    if text.isascii():
        return 0.0
    letters = sum(character.isalpha() for character in text)
    if not letters:
        return 0.0
    return min(1.0, sum(len(run) for run in _UNSPACED_RUN.findall(text)) / letters)


def is_gram(term: str) -> bool:
    """Whether the term is one or two characters of a script without spaces."""
    return len(term) <= 2 and bool(_UNSPACED_RUN.fullmatch(term))


def wording(content: str) -> int:
    """A number of 64 bits, equal for texts that say the same in the same words."""
    folded = fold(content)
    words = [w for w in _WORD.findall(_FILLERS_UNSPACED.sub("", folded)) if w not in _FILLERS]
    said = "\x1f".join(words or (folded.strip(),)).encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(said, digest_size=8).digest(), "little")


@lru_cache(maxsize=STEM_CACHE_WORDS)
def stem(word: str) -> str:
    """Without the commonest endings of English; harmless for German and Spanish (Katze, Katzen; gato, gatos)."""
    if len(word) <= 3 or _HAS_DIGIT.search(word) or not word.isascii():
        return word
    word = _without_verb_ending(_singular(word))
    if word.endswith("ly") and len(word) > 5:
        word = word[:-2]
    if word.endswith("y") and len(word) > 3:
        return word[:-1] + "i"
    if word[-1] in "aeo" and len(word) > 3:
        return word[:-1]
    return word


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("ches", "shes", "sses", "xes", "zes")):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def _without_verb_ending(word: str) -> str:
    for ending in ("ing", "ed", "en"):
        root = word.removesuffix(ending)
        if root == word or len(root) < 3 or not _VOWEL.search(root):
            continue
        if ending != "en" and root[-1] == root[-2] and root[-1] not in "lsz" and len(root) > 3:
            return root[:-1]
        return root
    return word


@lru_cache(maxsize=STEM_CACHE_WORDS)
def _words(token: str) -> tuple[str, ...]:
    """The parts of a token that are not stop words, and the whole token if it looks like an identifier."""
    token = token.replace("’", "'")
    if "'" in token:
        token = token.split("'")[0]  # possessives and contractions: Anna's, don't, we'll
    if token.isalnum():
        return () if token in STOP_WORDS else (stem(token),)
    parts = tuple(stem(part) for part in _PART.findall(token) if part not in STOP_WORDS)
    is_identifier = bool(_HAS_DIGIT.search(token)) or "_" in token
    return (*parts, token) if is_identifier and len(parts) != 1 else parts


def _grams(run: str) -> list[str]:
    singles = [character for character in run if character not in STOP_CHARACTERS]
    pairs = [run[i : i + 2] for i in range(len(run) - 1)]
    return singles + [
        pair
        for pair in pairs
        if pair not in _STOP_PAIRS and not (pair[0] in STOP_CHARACTERS and pair[1] in STOP_CHARACTERS)
    ]


@lru_cache(maxsize=4_096)
def _unaccented(character: str) -> str:
    if character.isascii() or _UNSPACED_RUN.match(character):
        return character
    kept = "".join(c for c in unicodedata.normalize("NFD", character) if not unicodedata.combining(c))
    return kept or character
