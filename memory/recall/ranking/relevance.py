"""The relevance cut: a calibrated decision from all topical features, instead of a cosine threshold.

The kind of question shifts the threshold: a request to write something benefits from preferences, a question about
general knowledge rarely needs memory. It does not depend on the user, and does not apply to searches with a token
budget, which are filled.
"""

from __future__ import annotations

import re
from math import log2

from memory.recall.ranking.lexical import fold
from memory.recall.ranking.weights import Bar

CROWD_MAX = 16  # as many memories as the fit has seen

_PERSONAL = re.compile(
    r"\b(?:i|i'[dm]|i've|my|me|mine|we|our|ours|us|ich|mein\w*|mir|mich|wir|uns|unser\w*|yo|mi|mis|nos|nuestr\w*"
    r"|tengo|puedo|quiero|debo|hago|podemos|tenemos|queremos|debemos)\b|我|咱"
    r"|爸|妈|父亲|母亲|老公|老婆|丈夫|妻子|孩子|儿子|女儿"  # Chinese omits "my" before one's own family
)
_TASK = re.compile(
    r"^\W*(?:please |could you |can you |help me |kannst du |bitte |puedes )?"
    r"(?:write|draft|plan|suggest|design|compose|cook|recommend|review|critique|format|continue|give me|make|create"
    r"|find|book|edit|rewrite|refactor|implement|prepare|organi[sz]e|translate|summari[sz]e"
    r"|schreib\w*|plane|empfiehl|schlag|entwirf|erstell\w*|verfass\w*|such\w*|finde|buche?"
    r"|escribe\w*|redacta|planea|recomienda|sugiere|disena|prepara|busca\w*|encuentra\w*|reserva\w*)\b"
    r"|^(?:请|麻烦)?(?:帮|给|替|为|写|找|订|推荐|设计|安排|计划|规划|起草|改|润色|翻译|讲讲)"
)
_GENERAL = re.compile(
    r"^\W*(?:what(?:'s| is| are| was) (?:the|an?|\d)\b|who (?:is|was|won|wrote|invented|painted|discovered|composed)\b"
    r"|how (?:do|does|far|tall|high|deep|fast|many)\b|why (?:do|does|is|are)\b|explain\b|define\b|what year\b"
    r"|wie (?:hoch|weit|viele|funktioniert|spat)\b|wer (?:war|ist|hat)\b|warum\b|was ist\b"
    r"|cual es (?:el|la)\b|por que\b|quien (?:es|fue)\b|que (?:es|hora)\b)"
    r"|什么是|为什么|哪一年|有多[远长高深大]|是怎么回事|的原理|几点了|天气"
)
_COURTESY = re.compile(
    r"\b(?:thanks?|thank you|thx|ok|okay|cool|great|nice|bye|goodbye|hello|hi|hey"
    r"|good (?:morning|evening|night|afternoon)|got it|sure|so|very|much|all|that's|that is|everything|a lot"
    r"|danke|das|reicht|mir|hallo|guten (?:tag|morgen|abend)|gute nacht|tschuss|alles klar"
    r"|gracias|hola|adios|hasta luego|buen[oa]s (?:dias|tardes|noches)|vale|muchas)\b"
    r"|你好|您好|谢谢|多谢|感谢|辛苦|好的|明白|知道了|收到|再见|晚安|早安|早上好|晚上好|[好行嗯你您啦了呀吧哦]"
)
_ANYTHING = re.compile(r"\w")


def doublings(memories: int) -> float:
    """How often their number doubles from one, as far as that matters: the more memories, the likelier that one of
    them resembles any question.
    """
    return log2(max(1, min(memories, CROWD_MAX)))


def bar_for(text: str, bar: Bar, *, is_unspaced: bool, memories: int, kind: str = "") -> float:
    """The topical evidence at which the probability of relevance is one half for this question, of so many memories."""
    folded = fold(text)
    is_task = kind == "task" or bool(_TASK.search(folded))
    is_personal = kind == "personal" or bool(_PERSONAL.search(folded))
    is_general = bool(_GENERAL.search(folded)) and not is_personal and not is_task
    is_personal = is_personal or (is_unspaced and not is_general)  # Chinese and Japanese omit "I" and "my"
    is_courtesy = not _ANYTHING.search(_COURTESY.sub("", folded))
    return (
        bar.even
        + bar.doubling * doublings(memories)
        + bar.task * is_task
        + bar.personal * is_personal
        + bar.general * is_general
        + bar.courtesy * is_courtesy
    )
