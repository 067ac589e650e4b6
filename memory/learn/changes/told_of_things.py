"""What a clause tells of a named thing: when and where it is, what it measures, its version, how many there are.

Only of a thing that is named: "my trip is in June" may be one of several, "the loft conversion starts on 4 May" is one.
A passing state ("on holiday until Monday") is no time, a town that may lie within another no place. Patterns, each
linear in its text; English and Chinese, German and Spanish for the commonest. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from memory.learn.changes.told import Told
from memory.learn.words.lexicon import MONTH_NAMES, NATIONALITY, RELATIONS, RELATIONS_ZH, WEEKDAYS
from memory.learn.words.persons import relations_of
from memory.learn.words.terms import terms
from memory.learn.words.values import as_number, named_in, names_of, values_of

IGNORE_CASE = re.IGNORECASE

_IDEOGRAPH = re.compile("[\u3400-\u9fff]")
_ADVERBS = r"(?:(?:now|also|only|jetzt|nun|ahora|due|scheduled|planned|geplant) )*"
_HEAD = r"\s*(?P<head>\S.{1,60}?)"
# What is said of when a thing is, by what of it: its start is not its end.
_WHEN_VERBS = {
    "": "(?:is|was|got|has been|gets|been)(?: being)? (?:postponed|moved|rescheduled|pushed(?: back)?|delayed|"
    "brought forward)|"
        "(?:ist|wird|wurde) (?:verschoben|verlegt)|takes place|happens|meets?|comes? out|airs|rehearses?|trains?|"
        "falls|goes out|"
        "go out|findet|"
        "ist|sind|es|son|será|se aplaza|se pospone|se celebra|is|are",
    "start": "starts?|begins?|kicks off|beginnt|startet|empieza|comienza",
    "end": "ends?|finishes|endet|termina|closes|is over",
    "leave": "leaves?|departs?|takes off|fährt ab|sale",
    "arrive": "arrives?|lands|kommt an|llega",
    "due": "is due|are due|due date is|deadline is",
}  # fmt: skip
_WHEN = tuple(
    (of, re.compile(rf"{_HEAD}\s+(?:{verbs})[: ]+{_ADVERBS}(?P<value>.+)", IGNORE_CASE))
    for of, verbs in _WHEN_VERBS.items()
)
_DATED = re.compile(
    r"(?:(?:at|in) (?:the )?[\w'’]+(?: [\w'’]+)? on )?(?:(?:on|in|at|to|for|by|until|every|each|the|from|am|im|um|"
    r"auf|den|der|dem|jeden|statt|el|los|las|al|en|a las|"
    rf"early|late|mid|anfang|ende)[ -])*(?:(?:(?:the )?\d{{1,2}}(?:st|nd|rd|th|\.)?(?: of|"
    rf" de)? )?{MONTH_NAMES.pattern}|"
    rf"{WEEKDAYS.pattern}|\d{{4}}-\d\d|(?<=at )\d{{1,2}}(?=\s*(?:[,.;]|$| in | on ))|(?<=um )\d{{1,2}}\b|"
    rf"(?<=las )\d{{1,2}}\b|\d{{1,2}}(?::\d\d)? ?(?:am|pm|uhr|h)\b|\d{{1,2}}:\d\d)",
    IGNORE_CASE,
)
_CLOCK = re.compile(
    rf"(?:(?<=at )|(?<=um )|(?<=las )|\b(?=\d{{1,2}}(?::\d\d)? ?(?:am|pm|uhr|h)\b)|"
    rf"\b(?=\d\d?:\d\d))(\d{{1,2}}(?::\d\d)?)"
    rf"(?! ?(?:st|nd|rd|th|\.)?(?: of| de)? {MONTH_NAMES.pattern})",
    IGNORE_CASE,
)
_DUE = re.compile(r"\b(?:deadline|due date)\b", IGNORE_CASE)
_WHEN_ZH = re.compile(
    r"(?P<head>[^，,。；\d]{2,14}?)(?:的?(?:日期|时间))?(?:延期到|推迟到|提前到|改到|改在|定在|订在|安排在|是|在|：)?"
    r"(?P<value>(?:每?(?:周|星期|礼拜)[一二三四五六日天]|[一二三四五六七八九十\d]{1,3}月[一二三四五六七八九十\d]{0,3}[号日]?)"
    r"(?:(?:早上|上午|中午|下午|晚上)?[一二三四五六七八九十两\d]{1,3}点半?)?)"
    r"(?=(?:在[^，,。；]{1,8})?(?:开|举行|开始|进行|举办|办)?(?:了|的)?(?:[，,。；]|$))"
)
_FILLERS_ZH = re.compile("^(?:我们?|咱们?)?(?:家|公司|组)?的?|(?:延期|推迟|提前|改|定|订|安排)?[到在是]?$")
# Of these somebody has several; without a word that tells which they name nothing.
_SORTS = terms(
    "trip flight meeting appointment exam test interview call class course lesson visit holiday vacation session shift "
    "concert date party event training match game plan deadline thing one time workshop talk service app project team "
    "rehearsal practice slot task report ticket order termin reise flug kurs prüfung reunión cita viaje vuelo clase "
    "examen curso rest half day first second"
)
_SORTS_ZH = re.compile(
    "^(?:会议|开会|预约|考试|面试|旅行|出差|航班|飞机|课|活动|聚会|它|这|那|时间|日期|下次|第.{1,2})+$"
)
_WHERE = re.compile(
    rf"{_HEAD}\s+(?P<verb>is|are|sits?|stands?|lies|hangs?|lives|meets|is kept|ist|liegt|steht|hängt|está|están)\s+"
    rf"{_ADVERBS}(?P<how>in|on|at|under|behind|inside|beneath|im|in der|auf|unter|hinter|en|bajo|with)\s+"
    r"(?P<place>(?:the|our|my|der|dem|den|la|el|room|hall|studio|level|floor|bay|(?-i:[A-ZÀ-Þ]))(?:(?! on )[\w'’ -])*)",
    IGNORE_CASE,
)
_WHERE_ZH = re.compile(
    "(?:^|[，,。])(?:我)?(?:把|将)?(?P<head>[^，,。；我他她把]{1,10}?)(?:现在)?(?:放|停|挂|藏|存|搁)(?:在|到)了?(?P<place>[^，,。；了]{1,15})"
)
_NO_PLACE = re.compile(
    rf"(?:the|our|my) (?:way|move|works|red|black|mood|middle|end|air|run|side|same|list|agenda|menu|market|dark|"
    rf"loop|know|"
    rf"\d|morning|evening|afternoon|weekend|{MONTH_NAMES.pattern})|{MONTH_NAMES.pattern}|{WEEKDAYS.pattern}",
    IGNORE_CASE,
)
_ROOM = re.compile(r"(?:room|hall|studio|bay)\b", IGNORE_CASE)
_STREET = re.compile(r"\b(?:street|road|lane|avenue|\w*stra(?:ß|ss)e|\w+platz|calle|plaza|avenida)\b", IGNORE_CASE)
_LEVEL = re.compile(r"\b(?:floor|level|storey|stock|etage|piso|planta)\b", IGNORE_CASE)
_AMOUNT = re.compile(
    rf"(?:.*[:,] )?{_HEAD}\s+(?:is|are|costs?|weighs?|ist|kostet|wiegt|es|cuesta|pesa)\s+"
    rf"{_ADVERBS}(?:about |around |at most |only |max\.? )?(?P<value>[$€£¥]?\d[\d.,]*\s?(?:k\b)?[a-zà-ÿ€%]*)"
    r"(?: (?:a|per|pro) (?P<per>month|week|year|day|head|person|night|monat))?(?: now)?\s*"
    r"(?:[,.;!(]|$|because\b|since\b|(?:for|für|para) (?P<purpose>[^,.;]+))",
    IGNORE_CASE,
)
_AMOUNT_ZH = re.compile(
    r"(?P<head>[^，,。；\d]{0,8}?(?:预算|房租|租金|工资|月薪|年薪|学费|月供|房贷|押金|身高|体重|价格|费用))(?:现在|大概|大约)?"
    r"(?:是|为|有|：|:)?(?:每月|一个月|一年)?(?P<value>(?<!\d)\d[\d.,]{0,8}|[一二三四五六七八九十百千万两]+)(?P<unit>万|千|百|块|元|公斤|斤|厘米|米|k|"
    r"(?<=\d{3})(?=[，,。；了]|$))"
    r"(?![\d一二三四五六七八九十以]|[左右]?到)"
)
_VERSION = re.compile(
    r"\s*(?P<head>\S.{0,50}?)\s*(?:\b(?:runs? on|runs?|is on|are on|is using|are using|uses?|['’](?:re|m|s) on|"
    r"['’](?:re|m|s) using|"
    r"am on|(?:upgraded|updated|migrated|bumped)(?: (?P<upgraded>[^,.;]{2,40}?))? to|is(?= (?-i:[A-Z]))|"
    r"läuft auf|nutzt|nutzen|usa|usamos|funciona con)\b|用的?是?|跑的?是|是|升级?到了?)\s*"
    rf"(?:now |jetzt )?(?P<tool>(?!{MONTH_NAMES.pattern})[A-Za-z][\w.+#-]*?)[ -]?v?(?P<version>\d+(?:\.\d+)*)\b"
    r"(?!\s?(?:%|am|pm|km|kg|:))"
    r"(?:.{0,30}?\b(?:for|on|in|für|para) (?:the |our |my )?(?P<purpose>[^,.;]{2,30}))?",
    IGNORE_CASE,
)
_COUNT = re.compile(
    r"\b(?:i|we)(?:['’]ve)? (?:now |only |still )?(?:have|keep|own|got|have got) (?:now |only |about )?"
    r"(?P<count>\d{1,3}|two|three|four|five|six|seven|eight|nine|ten|one) (?P<thing>[a-z]{3,}s?)"
    r"(?= (?:left|now|in (?:the|our|my)|at home|altogether|total)\b|\s*[,.;!]|\s*$)",
    IGNORE_CASE,
)
_COUNT_ZH = re.compile(
    r"(?:我们?|家里?|我家)(?:里|现在|一共|总共)*(?:有|养了?)(?P<count>\d{1,2}|[一二两三四五六七八九十]{1,2})[只条个头匹]"
    r"(?P<thing>[猫狗兔鸡鸭鱼鸟龟羊牛马]|孩子|儿子|女儿)(?=[，,。；了]|$)"
)
# Of these somebody may have several, each with a name of its own.
_MANY = re.compile(
    r"\b(?:projects?|trip|hobby|language|allergy|song|book|film|movie|band|game|app|site|website|company|course|"
    r"class|goal|"
    r"dream|plan|idea|question|problem|answer|point|issue|name|hero|idol|team ?mate|class ?mate|students?|pupils?|"
    r"clients?|"
    r"customers?|teachers?|guests?|pets?|child|plant|street|room ?mate|house ?mate|day|night|month|choice|order|"
    r"example|"
    r"doctor|nurse|tutor|mentor|player|character|person|one|type|sprache|projekt|freund\w*|idioma|proyecto|amig\w+)$",
    IGNORE_CASE,
)
_WHAT = re.compile(
    r"\s*(?P<head>(?:(?:my|our|mein\w*|unser\w*|mis?|nuestr[oa]s?|the|der|die|das|el|"
    r"la) )(?:[a-zà-ÿ-]+ ){0,2}[a-zà-ÿ-]+)\s+"
    rf"(?:is|ist|es)\s+{_ADVERBS}(?:(?:called|named)\s+)?"
    r"(?:(?:an?|the|eine?n?|der|die|das|un|una|el|la) (?:[a-zà-ÿ]+ )?)?"
    r"(?:(?:Dr|Mr|Mrs|Ms|Prof|Herr|Frau)\.? )*(?P<value>(?-i:[A-ZÀ-Þ])\w+(?: (?-i:[A-ZÀ-Þ\d])\w*)*)(?!['’]s|\w)",
    IGNORE_CASE,
)
_NO_NAMES = (NATIONALITY, MONTH_NAMES, WEEKDAYS)
_DRIVEN = re.compile(
    r"\b(?:i|we)(?:['’]m| am)? (?:now )?(?:drive|driving) an? (?:[a-z]+ )?(?P<value>(?-i:[A-ZÀ-Þ])\w+)|"
    r"\b(?:ich|wir) fahren? (?:jetzt )?eine?n? (?:[a-zäöü]+ )?(?P<value_2>(?-i:[A-ZÀ-Þ])\w+)|"
    r"\bconduzco un (?:[a-z]+ )?(?P<value_3>(?-i:[A-ZÀ-Þ])\w+)",
    IGNORE_CASE,
)
_WHAT_ZH = re.compile(
    "(?:我(?:现在)?(?:[用开骑]?的|家的))(?P<thing>[^，,。；是的]{1,8}?)(?:现在)?(?:是|叫)"
    "(?P<value>(?![很太最不没有在要想把从个一这那])[^，,。；]{1,10}?)(?<![的色了])(?=[，,。；]|$)"
)
_IS_RELATION_ZH = re.compile(f"(?:{RELATIONS_ZH.pattern})$")
_MANY_ZH = re.compile(
    "(?:问题|意思|目标|优点|缺点|想法|爱好|朋友|同学|同事|项目|计划|建议|习惯|原则|感觉|理想|梦想|愿望|学生|客户|宠物|名字|答案|"
    "选择|航班|机票|行程|会议|预约|观点|看法|情况|经验|方法|理由|原因|需求|要求|重点|任务|作业|闺蜜|邻居|室友|老师)$"
)
_HABIT = re.compile(
    r"\bi(?:['’]m)? (?:\w+ )??(?P<verb>drink|smoke|eat|take|run|walk|cycle|swim|read|work|train|sleep|drinking|"
    r"smoking)s? "
    r"(?:only |just |about )?(?P<count>\d[\d.,]{0,6}|one|two|three|four|five|six|seven|eight|nine|"
    r"ten) ?(?P<thing>[\w ]{0,25}?) ?"
    r"(?:\ba|per|each|every) (?P<per>day|night|week|month|morning|evening)\b",
    IGNORE_CASE,
)
_FREQUENCY = re.compile(
    r"\bi(?:['’]m)? (?:\w+ )??(?P<verb>run|go|swim|train|cook|visit|see|call|play|exercise|practi[sc]e|work out|"
    r"travel|fly|commute)"
    r"(?P<thing>(?: [a-z]+){0,4}?) (?P<count>\d{1,2}|once|twice|three|four|five|six|seven)(?: times)? "
    r"(?:a|per|each|every) (?P<per>day|week|month|year)\b",
    IGNORE_CASE,
)
_HABIT_ZH = re.compile(
    "我(?:现在)?(?P<per>每[天周月晚])(?:只|要|都|能|大概)?(?P<verb>喝|抽|吃|跑|走|睡|读|工作)(?P<count>\\d+|[一二两三四五六七八九十半]+)"
    "(?P<unit>杯|瓶|包|根|支|片|粒|碗|顿|公里|个?小时|步|页|听|罐)(?P<thing>[^，,。；了]{0,6})(?=[，,。；了]|$)"
)
_DOSE = re.compile(
    r"\b(?P<drug_before>[a-z]{4,}) (?P<dose>\d[\d.,]{0,6} ?(?:mg|mcg|µg|ml|ie))\b|"
    r"(?<!\d)(?P<dose_2>\d[\d.,]{0,6} ?(?:mg|mcg|µg|ml|ie)) (?:of )?(?P<drug>[a-z]{4,})\b",
    IGNORE_CASE,
)
_DAYTIME = re.compile(r"\b(?:morning|evening|noon|night|bedtime|breakfast|dinner|morgens|abends)\b", IGNORE_CASE)
_TIMED = re.compile(
    r"^(?:days?|weeks?|months?|years?|hours?|minutes?|seconds?|meetings?|exams?|class(?:es)?|calls?|deadlines?|"
    r"questions?|"
    r"problems?|ideas?|tickets?|interviews?|appointments?|things?|options?|tasks?|points?|reasons?|words?|trips?|"
    r"flights?|"
    r"tests?|issues?|errors?|pages?|people|guests?|friends?)$",
    IGNORE_CASE,
)
_OWNED = re.compile(r"\s*(?:my|our|mein\w*|unser\w*|mis?|nuestr[oa]s?)\b|我|咱", IGNORE_CASE)
_SOMEBODY_ZH = re.compile("我(?:姐|哥|弟|妹|姑|叔|舅|姨|堂|表)|[他她]")
_PRONOUN = re.compile(
    r"\s*(?:i|we|he|she|it|they|this|that|there|these|those|what|which|who|everything|ich|wir|er|sie|es|das(?= *$)|yo|"
    r"esto)\b(?!['’]s \w)",
    IGNORE_CASE,
)


def told_of_things(clause: str) -> Iterator[Told]:
    """Each value that `clause` tells of something named."""
    if _IDEOGRAPH.search(clause):
        yield from _when_zh(clause)
        yield from _amount_zh(clause)
        where = _WHERE_ZH.search(clause)
        if where:
            yield from _of_thing("where", terms(where["place"]), where["head"])
        what = _WHAT_ZH.search(clause)
        if what and not (_MANY_ZH.search(what["thing"]) or _IS_RELATION_ZH.search(what["thing"])):
            yield Told("what", terms(what["value"]), terms(what["thing"]))
    else:
        yield from _when(clause)
        yield from _where(clause)
        yield from _what(clause)
        yield from _dose(clause)
        yield from _amount(clause)
    yield from _version(clause)
    yield from _count(clause)
    yield from _habit(clause)


def _when(clause: str) -> Iterator[Told]:
    for of, pattern in reversed(_WHEN):
        match = pattern.match(clause)
        if match is None or not _DATED.match(match["value"]):
            continue
        values = values_of(match["value"])
        times = frozenset(m.group(1).removesuffix(":00") for m in _CLOCK.finditer(match["value"]))
        kinds = {"day": values.days, "weekday": values.weekdays, "time": times, "month": values.months}
        for kind, value in kinds.items():
            if value:
                yield from _of_thing(
                    f"{'due' if _DUE.search(match['head']) else of or 'when'} {kind}", value, match["head"]
                )
        return


def _when_zh(clause: str) -> Iterator[Told]:
    match = _WHEN_ZH.search(clause)
    if match is None:
        return
    head = _FILLERS_ZH.sub("", _FILLERS_ZH.sub("", match["head"]))
    values = values_of(match["value"])
    for kind, value in {"day": values.days, "weekday": values.weekdays, "month": values.months}.items():
        if value:
            yield from _of_thing(f"when {kind}", value, head, owned_by=match["head"])


def _where(clause: str) -> Iterator[Told]:
    match = _WHERE.match(clause)
    if match is None or _NO_PLACE.match(match["place"]) or _is_a_person(match["head"]):
        return
    place, how, kind = match["place"], match["how"].casefold(), "where"
    if _LEVEL.search(place):
        kind = "where level"
    elif _STREET.search(place):
        kind = "where street"
    elif how != "with" and names_of(place) and not _ROOM.match(place):
        kind = "where venue" if how == "at" else f"where {how}"
        if how in ("in", "en", "im"):
            return  # a town may lie within another: "in Germany", "in Berlin"
    if terms(place):
        yield from _of_thing(kind, terms(place), match["head"])


def _what(clause: str) -> Iterator[Told]:
    match = _WHAT.match(clause)
    if match and not _MANY.search(match["head"]) and not any(p.match(match["value"]) for p in _NO_NAMES):
        yield from _of_thing("what", terms(match["value"]), match["head"])
    driven = _DRIVEN.search(clause)
    if driven:
        yield Told("driven", frozenset(name.casefold() for name in driven.groups() if name))


def _dose(clause: str) -> Iterator[Told]:
    doses = list(_DOSE.finditer(clause))
    if len(doses) != 1 or relations_of(clause):
        return
    dose, drug = doses[0]["dose"] or doses[0]["dose_2"], doses[0]["drug"] or doses[0]["drug_before"]
    when = frozenset(m.group().casefold() for m in _DAYTIME.finditer(clause))
    if drug.casefold() not in ("take", "take", "with", "have", "need"):
        yield Told("dose", frozenset((dose.replace(" ", "").casefold(),)), terms(drug) | when)


def _habit(clause: str) -> Iterator[Told]:
    match = _FREQUENCY.search(clause) or _HABIT.search(clause) or _HABIT_ZH.search(clause)
    if match:
        unit = match.groupdict().get("unit") or ""
        thing = terms(f"{match['verb']} {match['thing']}") | {match["per"].casefold(), unit}
        yield Told("habit", frozenset((as_number(match["count"]),)), thing)


def _amount(clause: str) -> Iterator[Told]:
    match = _AMOUNT.match(clause)
    if match is None or _is_a_person(match["head"]):
        return
    for unit, amounts in values_of(match["value"]).amounts.items():
        if unit not in ("number", "year", "hour", "minute", "day", "week", "month", "st", "nd", "rd", "th"):
            yield from _of_thing(
                f"amount {unit} {match['per'] or ''}", amounts, f"{match['head']} {match['purpose'] or ''}"
            )


def _amount_zh(clause: str) -> Iterator[Told]:
    match = _AMOUNT_ZH.search(clause)
    if match:
        head = _FILLERS_ZH.sub("", match["head"])
        yield from _of_thing(
            "amount",
            frozenset((as_number(match["value"]) + match["unit"].strip("元块"),)),
            head,
            owned_by=match["head"],
        )


def _version(clause: str) -> Iterator[Told]:
    match = _VERSION.match(clause)
    if match is None or not match["tool"][:1].isalpha() or len(match["tool"]) < 2:
        return
    if not (match["tool"][0].isupper() or "." in match["version"]):
        return  # "the bus runs every 20 minutes" names no tool
    head = _FILLERS_ZH.sub("", match["head"])
    of = (terms(head) | terms(match["purpose"] or "") | terms(match["upgraded"] or "")) - _SORTS
    yield Told(
        f"version of {match['tool'].casefold()}",
        frozenset((match["version"],)),
        of,
        named_in(head) - terms(match["tool"]),
    )


def _count(clause: str) -> Iterator[Told]:
    match = _COUNT.search(clause) or _COUNT_ZH.search(clause)
    if match is None or _TIMED.match(match["thing"]):
        return
    if WEEKDAYS.search(clause) or MONTH_NAMES.search(clause):
        return
    yield Told("count", frozenset((as_number(match["count"]),)), terms(match["thing"]))


def _of_thing(attribute: str, value: frozenset[str], head: str, *, owned_by: str = "") -> Iterator[Told]:
    """The value, unless nothing is named that has it."""
    owner = owned_by or head
    of = terms(re.sub(r"^.*[:,] ", "", head))
    named = of - _SORTS
    is_sort_only = not named or bool(_SORTS_ZH.match(head))
    if is_sort_only or _PRONOUN.match(head) or RELATIONS.fullmatch(head.split()[-1]) or RELATIONS_ZH.fullmatch(head):
        return
    is_somebodys = bool(relations_of(owner)) or bool(_SOMEBODY_ZH.search(owner))
    names = named_in(head) - _SORTS
    yield Told(attribute, value, named, names, bool(_OWNED.match(owner)), is_somebodys)


def _is_a_person(head: str) -> bool:
    return bool(RELATIONS.fullmatch(head.split()[-1].strip(",")))


__all__ = ["told_of_things"]
