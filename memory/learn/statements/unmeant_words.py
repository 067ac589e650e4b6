"""The words by which people say that what they say is not so: examples, suppositions, play, fiction, jokes.

And those by which they ask for somebody else. Only patterns, no decisions: those stand in `unmeant`. Every pattern runs
in time linear in its text.
"""

from __future__ import annotations

import re

from memory.learn.statements.presented_words import LANGUAGE_NAMES

IGNORE_CASE = re.IGNORECASE

# What would be: the sentence that opens so tells nothing, but what follows it may.
HYPOTHETICAL = re.compile(
    r"\s*(?:(?:and|but|ok|so|hm+|well|lol|haha),? )*(?:if (?:i|we|my \w+) (?:were|was|had|could|would|ever)\b|"
    r"if (?:i|we) (?:\w+ed|won|got|knew|went|owned|spoke|became)\b[^.!?]{0,80}(?:['’]d| would| could| might) |"
    r"what if\b|if you\b|when i ask\b|hypothetical|(?:interesting, )?(?:purely|just) (?:theoretical|hypothetical)|"
    r"imagine\b|imagina\b|stell dir vor|wenn ich .{0,40}(?:wäre|hätte|würde)|si (?:yo )?(?:fuera|tuviera|pudiera))|"
    r"\s*(?:纯属假设|只是假设|如果我(?:是|有|问)|要是我(?:是|有)|想象)",
    IGNORE_CASE,
)
# A case is put: it goes on until it has been asked about.
PUTS_A_CASE = re.compile(
    r"\s*(?:(?:and|but|ok(?:ay)?|so|hm+|well|now|then|please|und|also|y|pues),? )*"
    r"(?:suppos(?:e|ing)\b(?! so\b| not\b)|assume\b|assuming (?:that )?(?:i|we|my|our)\b|"
    r"(?:let['’]s|let us|we(?:['’]ll| could)?) (?:just )?(?:say|assume|suppose|imagine|pretend)\b|"
    r"say (?:that )?(?:i(?:['’](?:m|ve|d|ll))?|we|our|you|my(?! names?\b))\b|"
    r"(?:imagine|pretend|picture)(?: for a (?:moment|second))?(?:,| that)? (?:i(?:['’](?:m|ve|d))?|my|we)\b"
    r"(?! (?:joy|surprise|horror|shock))|(?:picture|imagine) this\b|imagine:|"
    r"(?:just )?(?:take|consider|picture) (?:this|the following|an?|the|another) (?:\w+ )?"
    r"(?:case|example|scenario|situation)\b|hypothetically\b|(?:in (?:an?|this|some) |purely |a )?hypothetical\b|"
    r"for the sake of (?:the )?argument\b|in theory,|(?:(?:an?|another|my|the) )?(?:example|hypothetical|"
    r"scenario)\s*:|"
    r"angenommen|nehmen wir an|nimm an|gesetzt den fall|mal angenommen|tun wir so|"
    r"sup[oó]n(?:gamos|ga|te)?\b|digamos que|imagin(?:a|emos) que|pongamos)|"
    r"\s*(?:那|好|如果)?(?:假如|假设|假使|假定|设想|打个比方|想象一下|想象我|就当我|就说我|如果说我|假装我)",
    IGNORE_CASE,
)
# The same inside of a sentence: from here to its end.
PUTS_A_CASE_WITHIN = re.compile(
    r"(?:,|\b(?:if|when|that),?)\s+(?:let['’]s )?say,\s+(?=(?:i|my|we)\b)|,?\s+(?:assuming|supposing)\s+(?:that\s+)?"
    r"(?=(?:i|my|we)\b)|[,;:–-]\s*(?:suppose|assume|pretend|let['’]s (?:say|assume)|say)\s+(?:that\s+)?"
    r"(?=(?:i|my|we)\b)|,\s*(?:angenommen|supongamos que),?\s|[，,：:](?:假如|假设|假使|假定|设想|打个比方|就当)",
    IGNORE_CASE,
)
# An instance of what stands before it, which may be the user's own.
EXAMPLE = re.compile(
    r"(?:^\s*(?:(?:and|so|or|as|like|take|here is|here['’]s|(?:to|let me|i(?:['’]ll| will)?) give(?: you)?),? )?|"
    r"(?<=[,;:–-])\s*|(?<=[,;:–-] if)\s*)"
    r"(?:for (?:example|instance)\b|e\.g\.|by way of example\b|as an example\b|an example\b|zum beispiel\b|z\. ?b\.|"
    r"beispielsweise\b|por ejemplo\b|p\. ?ej\.)|(?:^\s*|[，,；;：:])(?:比如说?|例如|譬如|好比|举个例子|举例来?说|"
    r"打比方)",
    IGNORE_CASE,
)
WANTS_TO_KNOW = re.compile(
    r"\b(?:i|we) (?:want|need|would like|['’]d like|wish|am trying|was trying|['’]m trying)(?: you)? to (?:know|"
    r"understand|learn how|find out|calculate|see how)\b|\bi wonder\b|my question\b|想知道|想了解|想问|请问|"
    r"ich möchte wissen|ich will wissen|quiero saber",
    IGNORE_CASE,
)
# From here on it is real again.
IN_REALITY = re.compile(
    r"\s*(?:(?:but|and|ok|now|aber|pero),? )*(?:in (?:reality|fact|real life|truth)|in my (?:own|actual|real) \w+|"
    r"actually|really|for real|"
    r"seriously|as for me|about me|me,|i myself|i personally|personally|myself|my own|back to me|by the way|btw|"
    r"ps\b|p\.s\.|no wait|i do\b|i really\b|i actually\b|in wirklichkeit|tatsächlich|ich selbst|was mich betrifft|"
    r"übrigens|en realidad|de verdad|en cuanto a mí|yo mismo|yo misma|por cierto)|"
    r"\s*(?:不过|但是?|那)?(?:其实|实际上|事实上|现实中|说真的|真实情况|我自己|我本人|至于我|顺便说|对了|另外我)",
    IGNORE_CASE,
)
FICTION = re.compile(
    r"\b(?:in my (?:novel|story|book|screenplay|script|poem|game)(?! about| of| (?:club|room|shelf|shop|store|"
    r"group|case|bag|night|collection|series)\b)|in (?:this|the|my) (?:novel|story|game|play|scene),? i(?:['’]m|"
    r" am) (?:an?|the)\b|"
    r"role[- ]?play\b[^.!?\n]{0,30}[:,] (?:and )?(?:i|you)\b|"
    r"the (?:narrator|protagonist|hero|heroine|main character)"
    r"(?! (?:in|of) (?:our|my|the) (?:[\w'’-]+ ){0,3}(?:musical|play|show|film|opera))\b(?!['’]s)|"
    r"my (?:main |player )?character\b(?! (?:traits?|flaws?|defects?|arc|is (?!an?\b|called\b|named\b))\b)|"
    r"(?:he|she|they) said verbatim)\b|"
    r"角色扮演|小说里|故事里|剧本里|主人公|主角|台词",
    IGNORE_CASE,
)
PRETENDS = re.compile(
    r"\s*(?:(?:please|now|ok),? )*(?:pretend|make believe|act (?:as|like) (?:if|though|i\b)|write (?:me )?(?:an?|"
    r"the) "
    r"(?:[\w-]+ ){0,3}(?:as if|as though|where|in which) i\b)|\s*(?:tu so,? als|haz como (?:si|que))|\s*[请你]?假装",
    IGNORE_CASE,
)
# A sentence is only the matter of a lesson in language.
EXERCISE = re.compile(
    r"\bhow (?:do|does|would|can|could|should|to)\b(?: (?:you|i|we|one|people))? (?:say|write|spell|pronounce|"
    r"translate|phrase|express)\b|"
    rf"\btranslate [^.!?]{{0,200}}\bi(?:['’]\w+)?\b[^.!?]{{1,200}}\b(?:in)?to {LANGUAGE_NAMES}\b|"
    rf"\bwhat (?:does|do|is)\b[^.!?]{{1,200}}\bmeans?\b(?! to me)|\bwhat(?:['’]s|"
    rf" is) [^.!?]{{1,200}} in {LANGUAGE_NAMES}\b|"
    r"\bwie (?:sagt|schreibt|übersetzt) man\b|\bwas (?:heißt|bedeutet)\b|\bcómo se (?:dice|escribe|traduce)\b|"
    r"\bqué significa\b|用.{1,5}[语文话](?:怎么|该怎么|如何)(?:说|写|讲|表达)|怎么(?:翻译|翻成|译)|是什么意思",
    IGNORE_CASE,
)
_PERSON = (
    r"(?:friend|mate|buddy|colleague|co-?worker|relative|cousin|neighbou?r|roommate|flatmate|acquaintance|someone|"
    r"somebody|"
    r"mother|mom|mum|father|dad|sister|brother|aunt|uncle|boss|client|patient|customer|student)"
)
_PERSON_ZH = "(?:朋友|同事|同学|亲戚|邻居|室友|别人|人|老板|客户)"
ASKS_FOR_ANOTHER = re.compile(
    rf"(?<!not )\b(?:asking|ask|asked|inquiring) (?:this |it )?(?:for|4|on behalf of) (?:an?|my|our|some) "
    rf"(?:\w+ )?{_PERSON}\b(?!['’]s| who i)|"
    r"\b(?:asking|ask|asked) for (?:someone|somebody) else\b|\bon behalf of (?:a|my|our|the) \w+|"
    rf"\b(?:this|it|that|the question)(?:['’]s| is) (?:for|from) (?:an?|my|our) (?:\w+ )?{_PERSON}\b[^.!?:]{{0,40}}"
    r"(?:\basks?\b|wants? to know|wonders|question|:)|"
    rf"\bquestion (?:for|from) (?:an?|my|our) (?:\w+ )?{_PERSON}\b|"
    r"\b(?:this|it)(?: is|['’]s)(?: not|n['’]t) (?:about|for) me\b|"
    r"\b(?:ich )?frage?n? (?:das |nur )?(?:für|im namen) (?:eine[nrs]?|meine[nrs]?) |\bes geht nicht um mich\b|"
    r"\b(?:pregunto|pregunta|preguntando|es|esto es) (?:por|para) (?:un[ao]?|mi) "
    r"(?:amig[oa]|colega|vecin[oa]|prim[oa]|compañer[oa])\b|\bno (?:es para|se trata de) mí\b|"
    rf"(?:帮|替|代)(?:我的?)?(?:一个|个)?(?:{_PERSON_ZH}|[^，。问我]{{1,3}})(?:来)?(?:问|咨询|打听)|"
    rf"{_PERSON_ZH}(?:让|托|叫)我(?:帮忙?)?(?:来)?(?:问|咨询|打听)|^\s*不是我[，,](?=[是帮替])",
    IGNORE_CASE,
)
_LAUGHTER = r"(?:(?:a?ha){2,}h?|haha\w*|hehe\w*|lol|lmao|rofl|xd)"
# "…, haha just kidding": what stands before it was no statement. "not kidding", "joking aside" say the contrary.
_EMOJI = "[\U0001f600-\U0001f64f\U0001f923]"
_END = rf"(?=\s*(?:[.,!;:)…~–—]|$|{_EMOJI}))"
TAKEN_BACK = re.compile(
    rf"(?:^|(?<=[,;.!…(–—-])|(?<=lol)|(?<={_EMOJI}))\s*"
    rf"(?:{_LAUGHTER}[,.!]*\s+|(?:ok|nah|no|wait|but|well|and),?\s+)*(?:i(?:['’]m| am| was)\s+)?"
    r"(?:(?:(?:just|only|totally|obviously|of course)\s+)+(?:kidding|joking|messing with you|pulling your leg|"
    r"a joke)|"
    r"kidding|joking|jk|j/k|(?:that|it)(?:['’]s| was| is) (?:just |only )?a joke)\b"
    rf"(?:\s+(?:of course|obviously|though|around|{_LAUGHTER}))*{_END}|"
    rf"\s{_LAUGHTER}[,.!]*\s+not really\b{_END}|"
    r"(?:^|[,;.!–—-]\s*)(?:(?:das )?war (?:nur |bloß )?(?:ein )?(?:scherz|witz|spaß)|"
    rf"(?:nur|bloß) (?:ein )?(?:spaß|scherz|witz)|(?:era|es|fue) (?:una )?broma){_END}|"
    r"(?:^|[，,。！!；;\s])(?:哈+|嘻+|呵+)?[，,]?我?是?"
    r"(?:开个?玩笑(?:的|啦|哈)?|逗你玩?(?:的|呢|啦)|骗你(?:的|啦)|说着玩[的呢]?|瞎说(?:的|"
    r"啦))(?=\s*(?:[，,。！!~～）)哈]|$))",
    IGNORE_CASE,
)

__all__ = [
    "ASKS_FOR_ANOTHER",
    "EXAMPLE",
    "EXERCISE",
    "FICTION",
    "HYPOTHETICAL",
    "IN_REALITY",
    "PRETENDS",
    "PUTS_A_CASE",
    "PUTS_A_CASE_WITHIN",
    "TAKEN_BACK",
    "WANTS_TO_KNOW",
]
