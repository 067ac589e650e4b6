"""The words by which people say that something ended, changed, was wrong, or stays: English, Chinese, German, Spanish.

Only patterns, no decisions: those stand in `supersession`. Every pattern runs in time linear in its text.
"""

from __future__ import annotations

import re

IGNORE_CASE = re.IGNORECASE

# Something is over. What it was has to be named.
CANCELLED = re.compile(
    r"\b(?:cancel\w*|call(?:ed|ing)? (?:\w+ ){0,4}off|not going|won['’]t (?:be )?(?:go|make|attend)\w*|"
    r"scrapped|abgesagt|(?:is|are|was|were)(?: now| all)? off|f[ae]lls? through|not happening|storniert|"
    r"entfällt|entfallen|fällt aus|cancel[éóa]\w*)\b|"
    r"取消|不去了|去不了|不参加|退了|泡汤|黄了|不办了",
    IGNORE_CASE,
)
GONE = re.compile(
    r"\b(?:sold|gone|got rid of|gave (?:up|away)|dropped|stopped|quit|no longer|not \w+ any ?more|n['’]t \w+ any ?more|"
    r"(?<!getting )(?<!get )(?<!got )used to|broke up|divorced|lost my|"
    r"threw out|dead|died|passed away|verkauft|nicht mehr|aufgehört|gekündigt|vend[íi]\w*|ya no|dej[éó]\w*)\b|"
    r"卖了|卖掉|不再|戒掉?了|停了|扔了|丢了|没了|辞职|离职|离婚|分手|不[^，。；不]{1,6}了|不住",
    IGNORE_CASE,
)
PERSON_LEFT = re.compile(
    r"\b(?:left|went to|moved on|moved to|retired|resigned|quit|is leaving|was fired|ging in|hat .{0,20}verlassen|"
    r"jubil\w+|se fue)\b|"
    r"调走|离职|退休|辞职|走了|跳槽",
    IGNORE_CASE,
)
# Gone for good, whatever it was: naming it is enough.
GIVEN_AWAY = re.compile(
    r"\b(?:sold|got rid of|gave (?:away|back)|went back|handed (?:back|in)|threw (?:out|away)|lost|replaced|"
    r"traded in|swapped|verkauft|weggegeben|ersetzt|"
    r"vend\w+)\b|"
    r"卖了|卖掉|扔了|丢了|送人|换掉",
    IGNORE_CASE,
)
USED_TO = re.compile(
    r"(?<!getting )(?<!get )(?<!got )\bused to \w+ (?:(?:in|at|as|the|an?|my|to|with|"
    r"on) )*(?P<matter>[^,.;]+)",
    IGNORE_CASE,
)
NO_LONGER = re.compile(
    r"\b(?:no longer|not \w+ any ?more|n['’]t (?:\w+ ){1,4}any ?more|any ?more|nicht mehr|kein\w* .{1,20} mehr|"
    r"ya no)\b|不再|不[^，。；不]{1,6}了",
    IGNORE_CASE,
)
# Chinese "X换成Y了": what stands behind it is the new value.
BECOMES_ZH = re.compile("(?:改|换|变|升|降|加|减|涨|迁|搬|调|推迟|提前|转)[^，。；]{0,3}(?:成|为|到)")
IS_ONE = re.compile(r"\b(?:is|are|ist|sind|es|son) (?:an?|the|eine?n?|der|die|das|un|una|el|la)\b|是", IGNORE_CASE)
# Something is otherwise than before.
CHANGED = re.compile(
    r"\b(?:now|from now on|from today|from here on|going forward|as of|since|these days|lately|switched|changed|"
    r"moved|relocated|swapped|replaced|instead|"
    r"pushed|postponed|rescheduled|brought forward|down to|up to|raised|cut(?:ting)?|lowered|updated|became|turned|"
    r"currently|no longer|"
    r"any ?more|jetzt|nach \w+ gezogen|inzwischen|neuerdings|seit|künftig|umgezogen|gewechselt|verschoben|verlegt|nun|"
    r"ahora|desde|cambi\w+|mud[éóa]\w*|a partir de)\b|"
    r"现在|跳槽|换工作|改成|改为|改到|改在|换成|换到|换了|搬到|搬去|迁到|加到|减到|涨到|降到|提到|推迟|提前到|改期|延期|"
    r"以后|今后|最近|"
    r"目前|从现在|从今|变成",
    IGNORE_CASE,
)
CORRECTED = re.compile(
    r"\b(?:oops|sorry|actually|mixed (?:up|something)|(?:my )?mistake|wrong|i meant|correction|typo|i said|misspoke|"
    r"in fact|"
    r"falsch|korrektur|eigentlich|vertan|meinte|me equivoqué|perdón|en realidad|quise decir)\b|"
    r"说反|说错|不对|更正|纠正|记错|搞错|应该是|其实是?|弄错|写错",
    IGNORE_CASE,
)
STEADY = re.compile(
    r"\b(?:stays?|still|same as|unchanged|as ever|remains?|keeps? (?:the same|going|its|their)|no change|"
    r"wie gehabt|bleibt|bleiben|"
    r"weiterhin|wie immer|"
    r"igual|sigue|siguen|como siempre)\b|照旧|还是|没变|没动|不变|仍然|依然|照常|依旧",
    IGNORE_CASE,
)
NEGATED = re.compile(
    r"\b(?:no|not|never|without|none|zero|cut(?:ting)?|nicht|kein\w*|ohne|sin|nunca|n['’]t)\b|n['’]t\b|[不没无别]",
    IGNORE_CASE,
)

ROLES = re.compile(
    r"\b(?:manager|boss|lead|supervisor|report(?:s|ing)? to|doctor|gp|dentist|therapist|teacher|coach|trainer|"
    r"landlord|landlady|"
    r"accountant|lawyer|cleaner|nanny|chefin?|hausarzt|hausärztin|ärztin|arzt|lehrer(?:in)?|"
    r"médic[oa]|doctora?|dentista|jef[ea]|profesora?|me lleva)\b|组长|经理|老板|领导|主管|医生|老师|教练|房东|"
    r"班主任|负责人",
    IGNORE_CASE,
)
PLANS = re.compile(
    r"\b(?:trips?|going|go(?:es)? to|travel\w*|visit\w*|fly\w*|flight|booked|meeting|appointment|wedding|party|"
    r"dinner|concert|course|class|"
    r"training|plan\w*|reservation|reise|flug|termin|urlaub|viaje|cita|reserva)\b|去|订|约|会议|旅行|出差",
    IGNORE_CASE,
)
TRAVEL = re.compile(
    r"\b(?:trips?|going to|go to|travel\w*|visit\w*|fly\w*|flights?|holiday|vacation|reise\w*|flug|fliege\w*|viaj\w*|"
    r"vuelo|volamos)\b|去|飞|机票|航班|旅行|出差",
    IGNORE_CASE,
)
POSSESSIONS = re.compile(
    r"\b(?:have|has|had|own|owns|drive|drives|ride|rides|got|bought|use|uses|using|play|plays|smoke|smokes|study|"
    r"studies|studying|learn|learns|learning|teach|teaches|coach|eat|eats|"
    r"drink|drinks|take|takes|put me on|prescribed|(?:i am|i['’]m) on|nehme|tomo|"
    r"subscribe\w*|work|works|live|lives|deploy\w*|fahre|habe|hat|nutze|tengo|tiene|uso|conduzco)\b|有|开|用|养|喝|"
    r"吃|抽|住|学|教|在.{1,12}(?:上班|工作|上学|任职|做|当)",
    IGNORE_CASE,
)

# It held once, and tells nothing of now.
HISTORY = re.compile(
    r"\b(?:when i was|as a (?:child|kid|student|teenager)|growing up|grew up|(?<!getting )(?<!get )(?<!got )used to|"
    r"years ago|back then|in those days|"
    r"früher|damals|als kind|de niñ[oa]|antes)\b|以前|小时候|曾经?|那时|当年",
    IGNORE_CASE,
)
LONG_AGO = re.compile(rf"{HISTORY.pattern}|\bin (?:19|20)\d\d\b", IGNORE_CASE)
# It is not said for certain.
HEDGED = re.compile(
    r"\b(?:might|may(?= \w+ )|maybe|perhaps|possibly|probably|considering|thinking (?:of|about)|not sure|wonder\w*|"
    r"vielleicht|eventuell|überlege\w*|quizás?|tal vez|a lo mejor|pensando en)\b|可能|也许|大概|或许|考虑|说不定",
    IGNORE_CASE,
)
# It does not hold yet, and may never.
WEIGHED = re.compile(
    rf"{HEDGED.pattern}|\b(?:would (?:like|love)|interview\w*|offer(?:ed)?|if|dream(?:ed|t|ing)? of|möchte|würde|"
    r"(?:want|hope|plan|hoping|planning|wish|applied|applying|going) (?:to|for|at)|quiero|me gustaría)\b|"
    r"想要?去|打算|计划|希望|面试|如果|要是|万一",
    IGNORE_CASE,
)
# It comes beside what there was.
ADDED = re.compile(
    r"\b(?:also|too|as well|besides|additionally|another|second|part[- ]time|freelance|on the side|side (?:job|gig)|"
    r"(?:on|at) weekends|some(?:times| days)|temporar\w+|for (?:the|this|a) (?:week|weekend|day|night|summer|month|"
    r"while)|"
    r"auch|außerdem|zusätzlich|nebenbei|zweite[nrs]?|manchmal|también|además|otr[oa]|segund[oa]|a veces)\b|"
    r"也|还(?![是单没未住在不])|另外|另一|第二|兼职|业余|副业|有时|偶尔|暂时|临时|同时",
    IGNORE_CASE,
)
# It was not for a while, and is as it was before.
AGAIN = re.compile(
    r"\b(?:again|once more|wieder|otra vez|de nuevo|volví a|vuelvo a)\b|又(?:开始)?|重新|恢复", IGNORE_CASE
)
# Two who were together, and no longer are.
TOGETHER = re.compile(
    r"\b(?:seeing|dating|going out|engaged|married|girlfriend|boyfriend|partner|wife|husband|fianc[ée]e?|freundin|"
    r"freund|frau|"
    r"mann|novi[oa]|espos[oa]|marido)\b|女朋友|男朋友|女友|男友|对象|老婆|老公|在一起|交往",
    IGNORE_CASE,
)
PARTED = re.compile(
    r"\b(?:split up|broke up|(?:have |has |['’]ve )?separated|got divorced|are over|dumped|getrennt|schluss gemacht|"
    r"rompí|rompimos|terminamos)\b|分手|离婚|分开了",
    IGNORE_CASE,
)
# A trouble of the body, and its end.
AILING = re.compile(
    r"\b(?:sprain\w*|broken?|broke|hurt\w*|injur\w*|fractur\w*|sick|flu|infect\w*|sore|aching|pain\w*|torn|in a cast|"
    r"crutches|verstaucht|gebrochen|krank|erkältet|roto|rota|enferm[oa]|esguince)\b|扭伤|骨折|受伤|感冒|发烧|生病|疼|发炎",
    IGNORE_CASE,
)
RECOVERED = re.compile(
    r"\b(?:healed|recovered|cured|(?:is|am|are|['’]m|['’]s) (?:all |much |fully )?(?:better|fine|well) (?:again|now)|"
    r"back to normal|"
    r"pain[- ]free|"
    r"verheilt|ausgeheilt|wieder gesund|geheilt|curad[oa]|recuperad[oa]|recuperé)\b|好了|痊愈|康复|恢复了|不疼了",
    IGNORE_CASE,
)

# Attributes that can have one value only: the class, and how it sounds.
LIVES_IN_TOWN = re.compile(r"\b(?:live|living|based|wohnen?|leben?|viv(?:o|imos)) (?:ich |wir )?(?:in|en) [A-ZÀ-Þ]\w+")
RESIDENCE = re.compile(
    r"\b(?:i|we)(?:['’](?:m|re|ve))? (?:(?:now |currently |just |finally |have |am |are )*(?:live|living|moved|"
    r"based|reside|relocated)) (?:in|to|at|near)\b|"
    r"\bmoved\b.{0,24}\b(?:i['’]m|we['’]re) in\b|"
    r"\b(?:wohne|wohnen|lebe) (?:ich|wir)\b|\b(?:ich|wir) (?:wohne|wohnen|lebe|leben|bin .{0,40}gezogen)\b|"
    r"\b(?:vivo|vivimos|me mud[ée]|nos mudamos|(?:me he|nos hemos) mudado)\b|"
    r"(?:我|我们|我家|咱)[^，。；]{0,8}(?:住在?|搬到|搬去|搬家到)",
    IGNORE_CASE,
)
# Behind words of moving: where nobody lives.
NO_HOME = re.compile(
    r"\s*(?:(?:an?|the|another|my|our|new|different|bigger|smaller|other)\s+)*(?:[\w-]+\s+)?"
    r"(?:office|desk|team|department|position|role|job|project|seat|lane|branch)s?\b|"
    r"(?:了|去了?)?[^，。；]{0,4}(?:办公室|办公楼|工位|部门|小组|项目组|团队|座位|会议室)",
    re.IGNORECASE,
)
# Of moving, in words that stand before it: "ich bin in ein neues Büro gezogen".
NO_HOME_MOVE = re.compile(
    r"\b(?:büros?|abteilung|team|zimmer|raum|oficina|departamento|equipo|despacho|puesto|mesa)\b", IGNORE_CASE
)
# Where somebody lives: what stands before it says who.
LIVES = re.compile(
    r"\b(?:lives?|living|(?:is |are )?based|moved|relocated|wohnt|wohnen|lebt|zog|gezogen|vive|viven|se mudó) "
    r"(?:back |over )?(?:in|to|near|nach|en|a)\b",
    IGNORE_CASE,
)
# "They gave me another locker": the thing that took the place of the one there was.
ANOTHER = re.compile(
    r"\b(?:another|a different|a new|the new|eine?n? ander\w+|eine?n? neue\w*|otr[oa]) (?P<thing>[\w-]+)", IGNORE_CASE
)
DIET = re.compile(r"\b(?:vegetarian|vegan|pescatarian|omnivore|flexitarian|carnivore|keto)\b|吃素|素食", IGNORE_CASE)
ANSWER_STYLE = re.compile(
    r"\b(?:answers?|replies|responses?|explanations?|keep (?:it|them)|write|respond|reply|antwort\w*|respuestas?)\b.*"
    r"\b(?:long|thorough|detailed|short|brief|concise|bullet|bullets|sentences?|words?|lines?|kurz|ausführlich|"
    r"knapp|cort\w+|larg\w+|breve\w*)\b|"
    r"(?:回答|回复).*(?:长|短|详细|简短|简洁|要点)",
    IGNORE_CASE,
)
MANAGER = re.compile(
    r"\b(?:my|our) (?:manager|boss|line manager|supervisor|team lead)\b|\b(?:i|"
    r"we) (?:now )?report to\b",
    IGNORE_CASE,
)
SINGLE_VALUED = re.compile(
    r"\s*(?P<attribute>(?:my|our|mein\w{0,2}|mi|nuestr[oa]|[A-ZÀ-Þ]\w+['’]s)\s+(?:new |neue[rs]? |"
    r"nuev[oa] )?(?:[\w-]+\s+){0,3}?"
    r"(?:name|budget|address|e-?mail(?: address)?|phone number|birthday|age|job|job title|employer|manager|boss|"
    r"hometown|time ?zone|weight|height|"
    r"shoe size|blood type|deadline|salary|rent|favou?rite [\w -]{2,30}?|geburtstag|adresse|chefin?|lieblings\w+|"
    r"nombre|"
    r"cumpleaños|dirección|presupuesto)"
    r"(?:\s+(?:for|of)\s+[^.,;]{2,40}?)?)\s+(?:is|are|ist|es|was)\s+(?P<value>.+)",
    IGNORE_CASE,
)
SINGLE_VALUED_ZH = re.compile(
    r"(?P<attribute>(?:我|我们|我家)的?[^，。；是]{0,8}(?:名字|预算|地址|邮箱|电话|生日|年龄|工作|职业|老板|领导|"
    r"上司|组长|经理|体重|身高|鞋码|老家|工资|血型)|我最(?:喜欢|爱)的[^，。；是]{1,8})是(?P<value>.+)"
)
