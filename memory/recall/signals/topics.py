"""Part of stage 6: three word lists that separate questions about general knowledge from personal ones.

"capital", "dynasty" and "formula" belong to general knowledge; "landlord", "deposit" and "kickoff" to somebody's life;
"nearby" and "latest" to the present moment. The classifier learns a weight for each list, so that words count that
occur in no training phrase. Written from general knowledge, in English, Chinese, Spanish and German. A list never
decides on its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_WORLD = """
capital population inhabitants currency planet planets moon moons galaxy universe solar orbit star stars comet gravity
element elements atomic atom atoms molecule molecules chemical symbol boiling melting freezing formula theorem theory
theories equation axiom law laws dynasty empire kingdom emperor pharaoh king queen president monarch pope war wars
battle revolution treaty century centuries ancient medieval colony independence constitution parliament senate
philosopher philosophy religion mythology god goddess myth saint bible novel novelist author poet playwright composer
symphony opera painter painting sculptor protagonist villain wrote written painted composed invented inventor
discovered discoverer directed founded built species mammal mammals reptile reptiles bird birds insect insects fish
dinosaur dinosaurs bacteria bacterium virus viruses cell cells dna protein enzyme vitamin hormone organ organs bone
bones muscle muscles continent continents country countries river rivers mountain mountains ocean oceans sea desert
volcano island islands border hemisphere equator climate language languages meaning mean means define definition
difference synonym antonym plural etymology idiom grammar noun verb adjective pronoun prefix suffix abbreviation
acronym stand stands spelled pronounce derived algorithm complexity protocol compiler recursion polymorphism
inheritance binary hexadecimal boolean encryption physics chemistry biology astronomy geology economics inflation
capitalism socialism communism democracy republic monarchy tallest longest largest smallest biggest deepest fastest
oldest highest evolution photosynthesis electricity magnetism energy temperature pressure velocity speed light sound
wavelength earth mars jupiter saturn venus mercury pluto sun radius circumference diameter triangle circle prime
theorem pi calculus derivative integral olympic olympics nobel unesco nato capital poblacion habitantes moneda planeta
planetas guerra rey reina imperio siglo escribio invento descubrio pinto compuso significa significado diferencia
formula ley teoria pais paises rio montana oceano desierto idioma mamifero ave galaxia atomo celula quimico revolucion
novela autor pintor inventor historia funciona gravedad energia hauptstadt einwohner wahrung planet planeten krieg
konig kaiser reich jahrhundert schrieb geschrieben erfand erfunden entdeckt entdeckte malte komponierte bedeutet
bedeutung unterschied formel gesetz theorie land lander fluss berg ozean wuste sprache saugetier galaxie atom zelle
chemisch chemisches revolution roman autor maler erfinder geschichte funktioniert entsteht schwerkraft energie
gegrundet
"""
_LIFE = """
mum mom mommy dad daddy grandma grandpa granny grandmother grandfather mother father parents sister brother siblings
son daughter wife husband spouse girlfriend boyfriend fiance kid kids child children toddler baby twins aunt uncle
cousin nephew niece inlaws boss manager supervisor colleague colleagues coworker landlord landlady tenant roommate
flatmate neighbour neighbours neighbor neighbors babysitter nanny plumber electrician contractor builder builders
carpenter painter accountant lawyer solicitor notary dentist doctor physio physiotherapist vet therapist trainer coach
tutor teacher mechanic hairdresser gardener cleaner guests guest friend friends dog cat puppy kitten hamster rent
lease mortgage deposit invoice invoices quote estimate bill refund appointment checkup prescription pills tablets
medication dose allergy allergies surgery operation injection passport visa booking reservation itinerary luggage
suitcase flight ferry hotel hostel airbnb trip holiday vacation weekend wedding birthday party anniversary picnic
barbecue recital reunion move renovation kitchen bathroom bedroom hallway nursery sofa couch curtains wardrobe
mattress garden shed boiler fence car van bike scooter caravan flat apartment house cottage cabin wifi password
passcode passphrase gate locker key keys spare project client clients customer deadline sprint release deploy staging
repo codebase roadmap kickoff standup retro milestone launch vendor supplier budget thesis chapter draft manuscript
presentation slides report interview offer salary shift homework school daycare exam course class membership gym
subscription insurance warranty parcel package present gift recipe dinner lunch menu list plan meeting team office
warehouse shop store madre padre mama papa abuela abuelo hermana hermano hijo hija hijos mujer marido novia novio jefe
jefa companero vecino vecina casero casera medico medica dentista fontanero electricista abogado gestor entrenador
profesora profesor veterinario cita alquiler contrato mudanza boda cumpleanos viaje vuelo hotel reserva maleta reunion
piso casa coche moto perro gato perra gata proyecto cliente contrasena llaves pastillas pastilla medicina factura
entrega presupuesto reforma cocina bano sofa restaurante cena regalo invitados colegio guarderia examen proveedor
mutter vater eltern oma opa schwester bruder sohn tochter kind kinder frau mann freundin freund chef chefin kollege
kollegin kollegen nachbar nachbarn vermieter vermieterin arzt arztin zahnarzt klempner elektriker handwerker anwalt
steuerberater trainer lehrerin lehrer tierarzt termin miete mietvertrag kaution umzug hochzeit geburtstag feier reise
urlaub flug hotel buchung koffer besprechung wohnung haus auto fahrrad hund katze projekt kunde kunden passwort
schlussel tabletten tablette medikament rechnung abgabe abgabetermin frist angebot kuche bad gastezimmer wohnzimmer
schlafzimmer sofa restaurant lokal geschenk gaste schule kita prufung anbieter inspektion versicherung
"""
_NOW = """
now today tonight currently current latest live nearby nearest closest outside online random screenshot downloads
ahora hoy actual ultimas internet jetzt heute gerade aktuell aktuelle neuesten internet
"""
# Given names: alone, they mean a person whom only the user knows ("can Jonas have nuts?").
_GIVEN_NAMES = """
aaron abigail adam adrian agnes ahmed aisha alan albert alejandro alex alexa ali alice alina amanda amelia amir amy
ana anders andre andrea andreas andrew angela anita anja anna anne annika anton antonio ari arjun arthur asha astrid
ava barbara beatriz ben benjamin bernd beth bianca bill bob boris brian bruno camila carla carlos carmen caroline
catherine cecilia charlotte chen chloe chris christian christina claire clara claudia colin daniel daniela david deepa
denise diana diego dmitri dora eduardo elena eli elif elisa ella ellen elsa emil emily emma enrique erik erika esther
eva eve ewa fabian fatima felipe felix fiona florian frank franz fred frida gabriel george georg gerda gloria grace
greta hana hanna hannah hans harry hassan heather heidi heike helen helena henrik ibrahim ida ines ingrid irene iris
isabel isabella ivan jack jacob jakob james jan jana jane janek jasmine javier jean jenny jens jessica jim joan joanna
joe johan john jonas jorge jose josef joseph josh juan julia julian julie jun jana juliette kai karen karim karin karl
kasia kate katharina kathy katja katrin keiko kenji kevin kim klaus kurt lars laura lea leah leila lena leo leon
leonie liam lily lin linda lisa lotte louis louise lucas lucia lucy luis luisa lukas luke magda maja manuel marc marco
marcos maria marie mario mark markus marta martha martin mary mateo matt matthias max maya mei mehmet mia michael
miguel mike mila mina miriam mirka mohamed monika nadia nadine naomi natalia natalie nathan nick nico nicole nikolai
nils nina noah noor nora oksana ola oleg oliver olivia omar oscar otto pablo pat patricia paul paula pavel pedro peter
petra philip pia pierre priya rachel raj ralf ravi rebecca renate ricardo richard rita rob robert roberto robin rosa
rosie ruth ryan sabine sam samira samuel sandra sara sarah sasha sebastian sergio sigrid silke simon sofia sophie
stefan stella steve sue susanne sven tanja tara tariq theo thomas tim tina tobias tom tomas tony ulla uma ursula uwe
valentina vera veronica victor vikram vincent viola walter wanda werner will xavier yara yasmin yolanda yuki yusuf
zara zoe zofia
"""

_WORLD_CHINESE = re.compile(
    r"首都|人口|货币|行星|月球|地球|太阳系?|宇宙|银河|恒星|引力|元素|化学|分子|原子|符号|沸点|熔点|公式|定理|定律|理论"
    r"|方程|朝代?|王朝|皇帝|总统|国王|战争|战役|革命|条约|世纪"
    r"|古代|近代|文明|小说|作者|诗人|作家|作曲|画家|名著|主角|主人公|出自|诗句|发明|发现|物种|动物|植物|哺乳|鸟类|昆虫"
    r"|恐龙|大洲|哪个洲|国家|河流|山脉|山峰|海洋|海拔|沙漠|火山"
    r"|岛屿|气候|语言|意思|定义|含义|区别|不同|差别|同义词|反义词|近义词|由来|起源|来历|典故|成语|谚语|词语|原理|细胞"
    r"|基因|蛋白|病毒|细菌|维生素|激素|器官|骨头|血管|算法|复杂度"
    r"|协议|编译|递归|多态|继承|二进制|加密|物理|生物|天文|地理|经济学|资本主义|民主|哲学|宗教|神话|佛教|世界|历史"
    r"|什么是|什么叫|指什么|是什么意思|为什么会|怎么形成|如何形成|谁写|写的"
    r"|谁发明|谁提出|提出的|第一[个位人]|哪一?年|哪个朝代|面积|周长|半径|直径|质数|三角|圆周|导数|积分|奥运|诺贝尔"
    r"|联合国|欧盟|最[高长大小深快早古]的|光年|光速|音速|温度|能量|电流|磁|概念|用途"
)
_LIFE_CHINESE = re.compile(
    r"妈|爸|爷爷|奶奶|外公|外婆|姥|哥|姐|弟|妹|儿子|女儿|闺女|孩子|宝宝|娃|老婆|老公|媳妇|丈夫|妻子|女朋友|男朋友|对象"
    r"|岳|婆婆|公公|姑|舅|叔叔?|阿姨|小[\u4e00-\u9fff](?=[的说要在去来])"
    r"|老师|班主任|同学|室友|邻居|房东|房客|领导|老板|同事|经理|客户|甲方|供应商|师傅|律师|会计|医生|大夫|教练|导师"
    r"|保姆|中介|快递员|猫|狗|宠物|房租|租约|押金|合同|发票|报价|账单|物业|水电"
    r"|预约|复查|体检|挂号|吃药|药|疫苗|手术|过敏|护照|签证|机票|航班|酒店|民宿|行李|行程|婚礼|生日|聚会|聚餐|家长会"
    r"|搬家|装修|厨房|卧室|客厅|沙发|窗帘|车位|车险|年检|保险|驾照|密码|钥匙|门禁"
    r"|项目|需求|截止|上线|发布|部署|接口|测试环境|服务器|仓库|排期|方案|论文|章|稿|汇报|报告|面试|工资|加班|作业|学校"
    r"|放学|幼儿园|考试|课|健身房|会员|快递|包裹|礼物|菜单|预算|会议|开会|团队|公司"
)
_NOW_CHINESE = re.compile(r"现在|今天|今日|今晚|当前|目前|实时|最新|附近|最近的|外面|网上|联网|随机")

_NAME_ALONE = re.compile(r"\b([A-Z][a-z]{1,11})(?:['’]s)?\b(?! (?:[A-Z]|I{1,3}\b|the Great))")
_NAMED = re.compile(r"(?:[A-Z][a-z]+|[Nn]ame|[Kk]ing|[Qq]ueen|[Pp]rince(?:ss)?|[Ss]aint|[Pp]ope) $")
_WORD = re.compile(r"[^\W_]+")
_DEFINITE = frozenset("the that this those der das den dem beim zum zur el la los las del al".split())
_NAMES = frozenset(_GIVEN_NAMES.split())
_KINDS = {
    **dict.fromkeys(_NOW.split(), "#now"),
    **dict.fromkeys(_LIFE.split(), "#life"),
    **dict.fromkeys(_WORLD.split(), "#world"),
}


def topics(text: str, folded: str) -> Iterator[str]:
    """The lists whose words occur in a text, which is also given in the form of `lexical.fold`.

    The tags are `#world`, `#life`, `#now` (`#the-life` etc. after an article), and `#somebody` for a lone given name.
    """
    for name in _NAME_ALONE.finditer(text):
        if name[1].casefold() in _NAMES and not _NAMED.search(text, 0, name.start()):
            yield "#somebody"
    yield from _spaced_topics(_WORD.findall(folded))
    if not folded.isascii():
        if _WORLD_CHINESE.search(folded):
            yield "#world"
        if _LIFE_CHINESE.search(folded):
            yield "#life"
        if _NOW_CHINESE.search(folded):
            yield "#now"


def _spaced_topics(words: Sequence[str]) -> Iterator[str]:
    for position, word in enumerate(words):
        kind = _KINDS.get(word)
        if kind is None:
            continue
        yield kind
        if not _DEFINITE.isdisjoint(words[max(0, position - 2) : position]):
            yield f"#the-{kind[1:]}"
