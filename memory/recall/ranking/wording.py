"""Recognises statements with the same wording: a number that is equal for them.

Function words that change nothing are left out; a "not", a name or a number makes a difference. Two different words
are never assumed to mean the same. Pure.
"""

from __future__ import annotations

import re
from hashlib import blake2b

from memory.recall.ranking.lexical import fold

_WORD = re.compile(r"[-+$€£¥#@]?\w+(?:[.,:/-]\w+)*[-+#%°]*")  # signs matter: O+ and O-, C and C#, $50 and €50
# Words that can be left out of a statement. Other people, times and negations are not among them.
_FILLERS = frozenset(
    "a an the really very just also so der die das ein eine el la un una 了 "
    "i m my am is are s user users ich bin mein meine ist nutzer nutzers yo soy mi mis es usuario del de".split()
)
_FILLERS_UNSPACED = re.compile("用户|我的?|的|了")


def wording(content: str) -> int:
    """A number of 64 bits, equal for texts that say the same in the same words."""
    folded = fold(content)
    words = [w for w in _WORD.findall(_FILLERS_UNSPACED.sub("", folded)) if w not in _FILLERS]
    said = "\x1f".join(words or (folded.strip(),)).encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(said, digest_size=8).digest(), "little")
