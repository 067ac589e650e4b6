"""The words by which people ask memory to forget something, or not to remember it: English, Chinese, German, Spanish.

Only patterns, no decisions: those stand in `intents`. Each is matched against one sentence.
"""

from __future__ import annotations

import re

IGNORE_CASE = re.IGNORECASE

_MANNERS = r"(?:(?:please|pls|plz|ok(?:ay)?|now|and|but|also|actually|hey|oh|so|just|kindly|sorry|no)[,!]?\s+){0,4}"
_ASKING = (
    r"(?:(?:can|could|would|will) you\s+|i(?:['’]d like| want| need| would like) you to\s+|"
    r"you (?:should|must|can|may)\s+(?:now\s+|also\s+)?)?"
)
END = (
    r"(?:\s*,?\s*(?:please|thanks|thank you|ok(?:ay)?|for good|forever|again|bitte|danke|por favor|"
    r"gracias))*\s*[.!?…]*$"
)
_STORED_IN = (
    r"(?:from|in|out of) (?:(?:your|the|my) (?:long-?term )?(?:memory|memories|notes|records?|storage|"
    r"profile)|memory)"
)
_TOLD = (
    r"(?:i|we)(?:['’]ve| have| had)?(?: just| ever| already)? (?:said|told you|mentioned|shared|gave you|"
    r"given you|wrote|"
    r"described)(?: to you| with you)?"
)
_KNOWN = (
    r"you(?:['’]ve| have)?(?: ever)? (?:know|knew|remember|remembered|stored|saved|noted|learn(?:ed|t)|recorded|have)"
)
_MINE = r"(?:my|our|mine|ours|me\b)"
FORGET_EN = re.compile(
    rf"{_MANNERS}{_ASKING}(?:please\s+)?(?P<verb>forget|delete|erase|remove|wipe|drop|clear)\s+(?P<object>.+)",
    IGNORE_CASE,
)
STOP_EN = re.compile(
    rf"{_MANNERS}{_ASKING}(?:please\s+)?(?:stop remembering|no longer remember)\s+"
    rf"(?P<object>[^?]+?)(?:\s+(?:any ?more|any longer|from now on))?{END}",
    IGNORE_CASE,
)
STOP_ZH = re.compile(
    "(?:请|麻烦)?(?:你|您)?(?:不要|别|不用|不必|不许)再(?:继续)?(?:记得|记住|记着|记录|保存|记)(?P<object>[^，。！？?]{2,30}?)"
    "(?:了|吧|啦)*[。！!\\s]*$"
)
# Said of what an assistant holds; with a place behind it ("from the disk") it is a job with files.
MY_DATA_EN = re.compile(
    rf"(?:all (?:of )?)?my (?:personal |private |user |stored )*(?:data|information)(?: (?:that )?{_KNOWN})?"
    rf"(?:\s+{_STORED_IN})?{END}",
    IGNORE_CASE,
)
FORGET_DE = re.compile(
    r"(?:(?:bitte|ok(?:ay)?|und|also|nun|jetzt)[,!]?\s+){0,3}(?P<verb>vergiss|vergessen sie|lösch\w*|entfern\w*),?\s+"
    r"(?:bitte\s+|jetzt\s+|mal\s+){0,3}(?P<object>.+)|"
    r"(?:(?:kannst|könntest|würdest) du|können sie)\s+(?:bitte\s+)?(?P<object_before>.+?)\s+(?:wieder\s+)?"
    r"(?P<verb_behind>vergessen|löschen)(?:\s*[.!?]*)$",
    IGNORE_CASE,
)
FORGET_ES = re.compile(
    r"(?:(?:por favor|porfa|vale|ok|y|ahora|oye)[,!]?\s+){0,3}¿?(?:(?:puedes|podrías|quiero que)\s+)?"
    r"(?P<verb>olvid(?:a(?:te|r)?|es|e)|olvídate|borra(?:r)?|"
    r"elimina(?:r)?)\s+(?:por favor,?\s+)?(?:de\s+)?(?P<object>.+)",
    IGNORE_CASE,
)
_POLITE_ZH = "(?:(?:请|麻烦|拜托|帮我|好的?|那|你|现在|能不能|能否|可以|可不可以|你能)[，,]?(?:你)?){0,4}"
_VERB_ZH = "(?:忘掉|忘记|忘了|忘却|删掉|删除|删了|清除|清空|抹掉|抹去)"
FORGET_ZH = re.compile(
    rf"{_POLITE_ZH}(?:把|将)(?P<object_before>[^，。！？]{{1,60}}?)(?:都|全部|全都|统统|全|彻底|给|"
    rf"从(?:你的)?记忆[里中]|一起)*"
    rf"{_VERB_ZH}(?:吧|了|掉|好吗|好不好|可以吗|吗|谢谢|[，。！!？?\s])*$|"
    rf"{_POLITE_ZH}(?P<about>关于[^，。！？]{{1,60}}?)[，,]?(?:请|你|都|全部|全都|统统|全|就|给我){{0,4}}{_VERB_ZH}"
    r"(?:吧|了|掉|好吗|谢谢|[，。！!\s])*$|"
    rf"(?P<polite>{_POLITE_ZH})(?P<verb>{_VERB_ZH})(?P<object>[^。！？?]{{1,60}})(?P<asks>[？?]?)[。！!\s]*$"
)
EVERYTHING_EN = re.compile(
    rf"(?:about\s+)?(?:me|us|myself)(?:\s+(?:completely|entirely))?{END}|"
    rf"(?:absolutely )?(?:everything|all|anything|whatever|all (?:of )?(?:the |my |your )?(?:memories|facts|things|"
    rf"information|data|notes|details)|what)\s+(?:that\s+)?(?:(?:{_KNOWN}|{_TOLD}|is known|there is)\s+)?"
    rf"(?:about|on|of) (?:me|us|myself)(?:\s+{_STORED_IN})?{END}|"
    rf"(?:all|everything|all (?:of )?(?:the |my |your )?(?:memories|facts|things|information|data|notes))\s+"
    rf"(?:that\s+)?{_KNOWN}{END}|"
    rf"(?:all )?(?:of )?(?:(?:my|your) memories|your (?:entire |whole |long-?term )?memory)(?: (?:about|of) (?:me|us))?"
    rf"(?:\s+(?:completely|entirely|now))?{END}|"
    r"(?:absolutely )?everything(?:\s+(?:that\s+)?(?:i|we)(?:['’]ve| have)?(?:"
    r"(?: ever| already)? (?:told|shared with) you| ever (?:told|said|shared|mentioned)(?: to you)?|"
    r" (?:said|shared|mentioned)(?: to you)?(?= (?:so far|until now|up to now)))"
    rf"(?:\s+(?:so far|until now|up to now))?)?{END}",
    IGNORE_CASE,
)
PREVIOUS_EN = re.compile(
    rf"(?:about\s+)?(?:what|that|the thing|everything|anything)\s+(?:that\s+)?(?:i|we)(?:['’]ve| have)?"
    rf"(?: (?:just|last))(?: now)? (?:said|told you|wrote|mentioned|shared)(?: (?:to you|now))?{END}|"
    rf"(?:the|my) (?:last|previous) (?:thing|message|sentence|statement|remark)(?: (?:that )?{_TOLD})?{END}|"
    rf"(?:that )?i (?:just )?(?:said|told you|mentioned|wrote) (?:that|this|it|anything|so){END}",
    IGNORE_CASE,
)
TOPIC_EN = re.compile(
    rf"(?:everything|anything|all|what|whatever|the things?|that|the details|the facts?|the information|"
    rf"the stuff)?\s*"
    rf"(?:that\s+)?(?:{_TOLD}|{_KNOWN})\s+(?:about|on|regarding|concerning|of)\s+(?P<told>.+)|"
    rf"(?:everything|anything|all|the memor(?:y|ies)|the facts?|the details|memories|"
    rf"all memories)\s+(?:about|on|of)\s+"
    rf"(?P<all_about>.+)|"
    rf"that\s+(?P<that>(?:i(?!\s+said\b)|i['’](?:m|ve|d)|we|we['’](?:re|ve)|my|our)\s+.+)|"
    rf"where\s+(?P<where>(?:i|we)\s+.+)|"
    rf"(?:about\s+)?(?P<mine>{_MINE}\s+.+)|"
    rf"(?:about\s+)?the\s+(?P<given>[^,;]{{2,60}}?)\s+(?:that\s+|which\s+)?{_TOLD}",
    IGNORE_CASE,
)
STORED_EN = re.compile(rf"\s*,?\s*{_STORED_IN}", IGNORE_CASE)
OBJECT_END = re.compile(
    r"\s*(?:[,;:(]|\s[-–—]\s|\s(?:and|but)\s(?=(?:tell|give|let|help|just|then|start|use|what|how|instead|focus|"
    r"please|do|write|show|explain)\b)|\s(?:for (?:now|a (?:moment|second|minute))|instead)\b).*$",
    IGNORE_CASE | re.DOTALL,
)
OF_THE_TALK = re.compile(
    r"(?:(?:my|our|mein\w*|unser\w*|mis?|nuestr\w+)\s+)?(?:(?:last|previous|earlier|first|other|original|"
    r"whole|letzte\w*|"
    r"vorige\w*|última|anterior)\s+)*(?:questions?|requests?|"
    r"ideas?|suggestions?|drafts?|prompts?|instructions?|code|commands?|problems?|task|point|comments?|joke|"
    r"conversation|chat|discussion|troubles?|worries|fragen?|idee|preguntas?|idea|petición)\b|"
    r"(?:所有|之前的?|上面的?|以上的?|前面的?|我的|我刚才的?|刚才的?)*(?:指令|问题|提示词?|要求|规则|设定|"
    r"想法|建议|对话)",
    IGNORE_CASE,
)
RULES = re.compile(
    r"\b(?:instructions?|rules?|prompts?|guidelines?|polic(?:y|ies)|restrictions?|system|above|anweisung\w*|regeln?|"
    r"instrucciones|reglas)\b|指令|规则|提示词|设定",
    IGNORE_CASE,
)
FROM_MEMORY_EN = re.compile(
    rf"\b{_STORED_IN}|\b{_KNOWN}\b|\babout (?:me|us|myself)\b|\bmemories\b|\byour (?:\w+ )?memory\b|\b{_TOLD}\b",
    IGNORE_CASE,
)
EVERYTHING_DE = re.compile(
    r"alles(?:,)?(?: was du)? (?:über|von) (?:mich|mir|uns)\b|alles(?:,)? was du (?:über mich |"
    r"von mir )?(?:weißt|gespeichert)|"
    r"mich(?:\s+bitte)?[.!]*$|alle (?:meine )?erinnerungen",
    IGNORE_CASE,
)
PREVIOUS_DE = re.compile(
    r"(?:das|bitte)?,?\s*was ich (?:gerade|eben|zuletzt) (?:gesagt|erzählt|geschrieben)|meine letzte nachricht",
    IGNORE_CASE,
)
TOPIC_DE = re.compile(
    r"(?:alles|das|bitte)?,?\s*was ich (?:dir |ihnen )?(?:über|von|zu) (?P<told>.+?) (?:gesagt|erzählt|"
    r"geschrieben|erwähnt)|"
    r"alles (?:über|zu) (?P<all_about>.+)|(?:bitte\s*)?,?\s*dass (?P<that>(?:ich|wir|mein\w*|unser\w*) .+)|"
    r"(?:bitte )?(?P<mine>(?:mein|unser)\w* .+)",
    IGNORE_CASE,
)
EVERYTHING_ES = re.compile(
    r"todo (?:lo que (?:sabes|recuerdas|tienes guardado) )?(?:sobre|de|acerca de) (?:mí|mi\b(?=\s*[.!]*$)|nosotr\w+)|"
    r"todo lo que (?:sabes|recuerdas)(?: de mí)?\s*[.!]*$",
    IGNORE_CASE,
)
PREVIOUS_ES = re.compile(
    r"lo que (?:te )?(?:acabo de (?:decir|contar)|dije (?:recién|ahora))|mi último mensaje", IGNORE_CASE
)
TOPIC_ES = re.compile(
    r"(?:todo )?lo que (?:te )?(?:dije|conté|he (?:dicho|contado)|mencioné) (?:sobre|de|acerca de) (?P<told>.+)|"
    r"todo (?:sobre|acerca de) (?P<all_about>.+)|que (?P<that>(?:yo |me |tengo|soy|vivo|trabajo|estoy|"
    r"mis? |nuestr).+)|"
    r"(?P<mine>(?:mis?|nuestr[oa]s?) .+)",
    IGNORE_CASE,
)
MEMORY_DE_ES = re.compile(
    r"\b(?:aus|in) (?:deinem|dem|ihrem) (?:gedächtnis|speicher)|\bde (?:tu|la|su) memoria|\büber mich\b|\bsobre mí\b",
    IGNORE_CASE,
)
OTHER_VERBS = re.compile(r"lösch|entfern|borra|elimina", IGNORE_CASE)
DENIED_ZH = re.compile("(?:别|不要|不能|没|不会|不|总是?|老是?|差点|勿|莫|千万)[^，。]{0,3}忘")
EVERYTHING_ZH = re.compile(
    "(?:你)?(?:知道的|记得的|记住的|存的)?(?:关于|有关)?(?:我|我们)(?:的|说过的|告诉(?:过)?你的)?"
    "(?:一切|所有(?:的)?(?:事情|事|信息|资料|记忆|内容|东西)?|全部(?:信息|资料|记忆|内容)?)$|"
    "(?:所有|一切|全部)(?:你知道的|你记得的)?(?:关于|有关)(?:我|我们)的?(?:一切|事情|事|信息|资料|记忆|内容|东西)?$|"
    "(?:我|有关我|关于我)$|(?:你)?(?:对我的|关于我的)(?:所有|全部)?记忆$|所有(?:的)?记忆$|"
    "(?:我的|我)(?:所有|全部|全部的|所有的)?(?:个人)?(?:数据|资料|信息|记忆)$"
)
PREVIOUS_ZH = re.compile(
    "我?(?:刚刚|刚才|刚|上一句|上一条)(?:我)?(?:说|讲|告诉你|发|提|写)?(?:的|过的)?(?:话|事|事情|内容|消息|那些|东西)?$"
)
TOPIC_ZH = re.compile(
    "(?:我|我们)?(?:之前|以前|上次|刚才)?(?:跟你|和你|对你)?(?:说|讲|提|告诉)(?:过|到)?(?:你)?的?(?:关于|"
    "有关)(?P<told>.+?)"
    "(?:的(?:事情?|一切|信息|内容|话|东西))?$|"
    "(?:所有|一切|全部)?(?:关于|有关)(?P<about>.+?)(?:的(?:事情?|一切|所有|信息|记忆|内容|话|东西))?$|"
    "(?P<mine>(?:我|我们|咱)(?:家|的|养|住|喜欢|对|在|有|叫|是|讨厌|过敏|不|爱|以前|之前|说过|告诉过你).+)"
)
_THIS = (
    r"(?:this|that|it|any of (?:this|that|it)|these|those|what i (?:just |am about to )?(?:say|said|"
    r"tell you|told you))"
)
WITHHOLD_EN = re.compile(
    rf"{_MANNERS}(?:(?:please|you) )?(?:don['’]?t|do not|never|no need to|you don['’]t (?:need|have) to)\s+"
    rf"(?:remember|save|store|record|memori[sz]e|log|keep|note|learn)\s+{_THIS}"
    rf"(?:\s+(?:down|(?:in|to|into|for) (?:your |the |my )?(?:memory|notes|records?|later|profile)))?"
    rf"(?P<told_en>\s*(?:[:,;–—-]|\b(?:but|and)\b).+)?{END}|"
    rf"{_MANNERS}i (?:don['’]t|do not) want (?:you to (?:remember|save|store|keep|record) {_THIS}|"
    rf"{_THIS} (?:to be )?(?:stored|saved|remembered|kept|recorded)){END}|"
    rf"{_MANNERS}(?:(?:this|that|it|what i (?:just )?said)(?:['’]s| is| was| stays|"
    rf" should stay)?\s+)?(?:all |strictly )?"
    rf"(?:off the record|(?:just )?between (?:us|you and me)|not for your memory)\s*(?P<told_off>[:,;–—-].+)?{END}|"
    rf"(?P<told_before>.+?)[,;(–—-]\s*(?:but )?(?:(?:this|that|it)(?:['’]s| is| stays)\s+)?(?:strictly )?"
    rf"(?:off the record|(?:just )?between (?:us|you and me)|"
    rf"(?:but )?(?:please )?(?:don['’]?t|do not) (?:remember|save|store|record) {_THIS})\)?{END}",
    IGNORE_CASE,
)
WITHHOLD_DE = re.compile(
    r"(?:bitte\s+)?merk(?:e)? dir (?:das|dies|es)(?: bitte)? nicht\b|(?:bitte\s+)?(?:das|dies) (?:bitte )?nicht "
    r"(?:merken|speichern|notieren)|(?:bitte\s+)?speicher\w* (?:das|dies|es)(?: bitte)? nicht|"
    r"(?:das )?(?:bleibt|ist) unter uns|(?:ganz )?unter uns\s*[:,]|inoffiziell\s*[:,]|"
    r".+[,;–-] (?:aber )?(?:das bleibt unter uns|merk dir das (?:bitte )?nicht|nicht speichern)\s*[.!]*$",
    IGNORE_CASE,
)
WITHHOLD_ES = re.compile(
    r"(?:por favor,?\s+)?no (?:recuerdes|guardes|memorices|apuntes|anotes|registres) (?:esto|eso|lo que)|"
    r"(?:por favor,?\s+)?no lo (?:recuerdes|guardes|apuntes|anotes|memorices)|(?:que )?(?:esto |"
    r"eso )?(?:quede|queda) entre "
    r"nosotr\w+|entre (?:nosotr\w+|tú y yo)\s*[:,]|extraoficialmente|"
    r".+[,;–-] (?:pero )?(?:que (?:esto |eso )?quede entre nosotr\w+|no lo guardes|no guardes esto)\s*[.!]*$",
    IGNORE_CASE,
)
WITHHOLD_ZH = re.compile(
    "(?:请|麻烦)?(?:你)?(?:别|不要|不用|不必|无需|不许|勿)(?:帮我)?(?:记住|记录|记下来?|保存|存储|存|"
    "记)(?:这个|这件事|这句话|这些|这条|这|"
    "它|那个|那件事|下来|到记忆里?)?(?:吧|了|哦|啊|好吗|[，,：:。！!\\s]|$)|"
    "(?:这个|这件事|这句话?|这些|这条|以下(?:内容)?|下面(?:的话)?|接下来的?(?:话|内容)?|刚才说的|"
    "那个)(?:内容|话)?[，,]?(?:请|你|就|都|千万)*"
    "(?:别|不要|不用|不必)(?:帮我)?(?:记|存|保存|记录|记住)|"
    ".+[，,；;（(](?:但|不过)?(?:这个|这件事|这|这句)?(?:请|你)?(?:别|不要|不用)(?:记住|记录|记下来|记|保存)"
    "(?:这个|它|下来)?(?:吧|了|哦|啊|[）)。！!\\s])*$|(?:这|这话|这事)?(?:是)?(?:私下|你我之间|咱俩之间|"
    "我们之间)说(?:的)?(?:话)?(?:[，,：:。！!]|$)"
)
# "For now", "for this recipe", "mal kurz": who says so sets something aside and wants nothing deleted. A stretch of the
# calendar or an occasion behind "for this" names the matter instead ("my plans for this summer").
LIMITED = re.compile(
    r"\b(?:(?:just|only) )?for (?:now|once|today|tonight|the moment|the time being|a change|"
    r"(?:a|one|two|five|ten|a few|the next) (?:moment|second|sec|minute|min|bit|while|hour)s?|"
    r"(?:this|that|the current|the present) (?!(?:year|month|week|weekend|spring|summer|autumn|fall|winter|term|season|"
    r"semester|christmas|easter|trip|journey|holiday|vacation|wedding|birthday|party)\b)\w+|(?:this|that)(?=\W*$|[,;]))\b|"
    r"\b(?:just |only )?this (?:once|(?:one )?time)\b|\b(?:just|only) (?:once|today|tonight)\b|\btemporarily\b|"
    r"\b(?:mal kurz|kurz mal|kurz(?= (?:mein|unser|dass|was))|vorerst|vorläufig|einstweilen|erst ?mal|fürs erste|"
    r"diesmal|ausnahmsweise|für (?:jetzt|heute|den moment|dieses (?:mal|rezept)|diesen fall|(?:einen|eine) "
    r"(?:moment|augenblick|minute|sekunde)))\b|"
    r"\b(?:por (?:ahora|hoy|el momento|esta vez|una vez|un (?:momento|segundo|minuto|rato))|de momento|"
    r"para est[ea] (?:receta|caso|pregunta|ejemplo))\b|"
    "(?:(?<![\u3400-\u9fff])|(?<=[请你把就]))(?:先(?![生前后])|暂时|暂且|姑且|这一?[次回])|"
    "(?:先(?![生前后])|暂时|暂且)(?=(?:都|给)?(?:忘|删|清))|(?<=忘[掉记了])(?:一会儿?|片刻|几分钟)|(?:一会儿|片刻)(?=[。！!]*$)",
    IGNORE_CASE,
)
# The order that is left without its limit, whatever it names of theirs.
SETS_ASIDE = re.compile(
    rf"{_MANNERS}{_ASKING}(?:please\s+)?forget\s+(?:about\s+|that\s+)?(?:my|our|i|i['’]\w+|we)\b|"
    r"(?:bitte\s+)?vergiss,?\s+(?:bitte\s+|mal\s+)?(?:dass\s+)?(?:mein|unser|ich|wir)|"
    r"(?:por favor,?\s+)?olvid\w+\s+(?:que\s+)?(?:mis?|nuestr\w+|soy|tengo|vivo|estoy|no)\b|"
    rf"{_POLITE_ZH}(?:{_VERB_ZH}(?:我|咱)|(?:把|将)(?:我|咱)[^，。]{{1,60}}?{_VERB_ZH})(?!.{{0,60}}[了吗？]$)",
    IGNORE_CASE,
)
FOR_GOOD = re.compile(
    r"\b(?:for good|forever|permanently|für immer|endgültig|para siempre)\b|永远|永久|彻底", IGNORE_CASE
)
# "Forget my cat; the dog is the problem here": the matter is dropped, not the memory.
BESIDE_THE_POINT = re.compile(
    r"(?:[,;:]|\s[-–—])\s*[^,;:]{1,60}?(?:\b(?:is|are|was)|['’]s|n['’]t)\s+(?:not\s+)?(?:the|my|our|what)\s+(?:\w+\s+)?"
    r"(?:problem|point|issue|question|matter|topic)\b",
    IGNORE_CASE,
)
_BUT_FOR = (
    r"(?:except(?:ing)?(?: for)?|besides|apart from|aside from|other than|save for|with the exception of|außer|bis auf|"
    r"mit ausnahme von|excepto|salvo|menos|aparte de|but (?:not|keep|remember)|aber nicht|pero no)"
)
EXCEPTED = re.compile(
    rf"^(?:{_BUT_FOR}\s+(?P<named_first>[^,;]{{2,80}}),\s*(?=\S))|"
    rf",?\s+{_BUT_FOR}[,:]?\s+(?P<named>\S.*)$|"
    r"(?:(?<=\bme)|(?<=\bus)|(?<=know))\s+but\s+(?P<named_but>\S.*)$|"
    "除了?(?P<named_zh>[^，。！？]{1,30}?)(?:(?:以|之)外|外)?(?:[，,]|(?=[。！!]*$)|(?<=外))",
    IGNORE_CASE,
)
SPARED_APART = re.compile(r"\s*(?:[,;，；、]|\b(?:and|or|und|oder|y|o)\b|和|跟|与)\s*")
# Where a clause of its own begins behind an order.
CLAUSE_BEHIND = re.compile(
    r"(?:[,;:，；：]|\s[-–—](?=\s)|\s(?=(?:and|but|und|aber|y|pero)\s))\s*"
    r"(?=(?:(?:and|but|because|since|as|und|aber|denn|y|pero)\s+)?(?:i|i['’]\w+|we|my|our|it|it['’]s|the|ich|wir|mein\w*|"
    r"unser\w*|es|yo|mis?|ahora|vivo|trabajo|es|jetzt|now)\b|我|现在|新)",
    IGNORE_CASE,
)
TELLS_ANEW = re.compile(
    r"\b(?:now|new|moved|changed|switched|instead|these days|jetzt|neu\w*|inzwischen|mittlerweile|umgezogen|ahora|"
    r"nuev[oa]s?)\b|现在|如今|新|改|换|搬",
    IGNORE_CASE,
)
TELLS = re.compile(
    r"\b(?:i|we|ich|wir|yo|is|are|was|has|have|will|ist|sind|lautet|heißt|es|son|tiene|vivo|trabajo)\b|['’](?:s|m|re|ve)\b|"
    "[是在住叫换搬改有]",
    IGNORE_CASE,
)
ORDER_WITH_CLAUSE = re.compile(r"\b(?:that|what|where|everything|dass|was|alles|que|todo)\b", IGNORE_CASE)
CLAUSES = re.compile(r"[,;:，；：（(]|\s[-–—]\s")
