"""What the functions over the word lists promise beyond the examples of the files, for words, greetings and dates."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.language import asked_words, bare_reply, content_words, function_words, is_denied, language_of, month_names
from memory.language.calendar_items import ItemKind, calendar_items, numeric_date
from memory.language.dates import period
from memory.language.loader import LANGUAGES, calendar
from memory.language.phrases import TEXT_CHARACTERS_MAX, PhraseTable, cached_by_text, tokenize
from memory.language.restating import adds_nothing, as_typed, has_code_of, says_any, whole_word_positions, wording_of
from memory.language.small_talk import PLEASANTRY_CHARACTERS_MAX, fill_slots, is_pleasantry


def test_month_names_are_the_german_ones_that_follow_an_ordinal() -> None:
    assert "juni".startswith(month_names())
    assert "may" not in month_names()


def test_a_reply_that_says_both_is_none_in_any_language() -> None:
    assert {bare_reply(text) for text in ("No, okay.", "ok, no", "No, no, ok", "ja, nein")} == {""}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hola", "es"), ("Ich lebe in New York", "de"), ("I live in München", "en"), ("Me llamo Tom", "es"),
        ("我的 girlfriend 叫 Amy", "zh"), ("小明 likes tea and I like coffee", "en"),
        ("今日はいい天気です", "ja"), ("Привет", "ru"), ("부산에 살아요", "ko"), ("أسكن في عمان", "ar"),
        ("我住在東京", "zh"), ("Tシャツ", "ja"), ("React를 공부해요", "ko"), ("Mieszkam w Łodzi", "pl"),
        ("Ik woon in Gent", "nl"), ("Vivo a Roma con mia moglie", "it"), ("J'habite à Lyon", "fr"),
        ("return w", "en"), ("no", "en"), ("", "en"), ("123", "en"), ("我有3只猫", "zh"),
    ],
)  # fmt: skip
def test_language_by_script_then_by_words_and_english_when_unsure(text: str, expected: str) -> None:
    assert language_of(text) == expected


def test_umlauts_and_accents_may_be_left_out_or_written_out_unless_that_makes_another_word() -> None:
    table = PhraseTable([("frühstück", "meal"), ("él", "he")])
    for text in ("fruehstueck", "frühstück", "fruhstuck"):
        assert table.labels(tokenize(text).tokens) == {"meal"}
    assert table.labels(tokenize("Él vive en Lima.").tokens) == {"he"}
    assert table.labels(tokenize("El coche vive en Lima.").tokens) == set()


def test_the_longest_phrase_counts_and_reaches_over_no_mark() -> None:
    table = PhraseTable([("sister", "sibling"), ("sister-in-law", "relative")], unmeant=["sister company"])
    assert table.labels(tokenize("my sister in law").tokens) == {"relative"}
    assert table.labels(tokenize("our sister company").tokens) == set()
    assert PhraseTable([("last one", "x")]).labels(tokenize("at last, one left").tokens) == set()


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("少ない", False), ("行かない？", True), ("いいんじゃない？", False), ("잘못 알았어요", False),
        ("Moro no Porto", False), ("A minha filha anda no ballet", False), ("Não moro no Porto", True),
        ("Non c'è problema", False), ("J'habite pas à Lyon", True), ("N’oublie pas", False), ("我沒有孩子", True),
        ("No, that's wrong, I live in Leeds.", False), ("No, I don't live in Leeds.", True), ("No.", True),
    ],
)  # fmt: skip
def test_a_negation_is_found_where_it_is_an_ending_and_not_within_other_words(text: str, *, is_one: bool) -> None:
    """What the files' own examples do not say. An opening "no" denies what was said before and not what follows."""
    assert is_denied(text) is is_one


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I live in Berlin-Mitte", {"liv", "berlin", "mitt"}),
        ("Plan A costs $50.20", {"a", "plan", "cost", "$50.20"}),
        ("Anna's cats don't eat 7.3.1", {"anna", "cat", "eat", "7.3.1"}), ("My son may die", {"son", "may", "die"}),
        ("Meine Tochter hat die Grippe", {"tocht", "gripp"}), ("我住在上海，北京", {"住", "上海", "北京"}),
        ("O'Brien’s car", {"o'brien", "car"}), ("Dell’ufficio ho l'indirizzo", {"ufficio", "indirizzo"}), ("", set()),
    ],
)  # fmt: skip
def test_content_words_are_what_carries_the_matter(text: str, expected: set[str]) -> None:
    assert content_words(text) == expected


def test_function_words_are_those_of_all_languages_but_not_names_of_things() -> None:
    assert {"the", "und", "también", "tambien", "的"} <= function_words()
    assert not {"may", "die", "son", "hat", "dos"} & function_words()
    assert not {"het", "jest", "это", "です", "저는", "من"} & function_words(), "those that recall was tuned with"
    assert content_words("Ik woon in het huis met mijn hond") == {"woon", "hui", "hond"}
    assert content_words("The het gene") == {"het", "gen"}


@given(st.text(max_size=60))
def test_any_text_is_read(text: str) -> None:
    assert language_of(text) in LANGUAGES
    assert bare_reply(text) in ("yes", "no", "")
    assert asked_words(text) is not None
    assert content_words(text) == content_words(text)
    is_denied(text)


@pytest.mark.parametrize(
    ("words", "text", "places"),
    [
        ("11", "on 1 May at 11, room 11", [12, 21]), ("1", "on 1 May at 11", [3]), ("nan", "bananas", []),
        ("kg", "12kg", [2]), ("周一", "预约在周一上午", [3]), ("Öl", "Möl, Öl", [5]), ("", "anything", []),
    ],
)  # fmt: skip
def test_a_word_is_found_whole(words: str, text: str, places: list[int]) -> None:
    assert whole_word_positions(words, text) == places


@pytest.mark.parametrize(
    ("words", "quote", "typed"),
    [
        ("levi", "My brother Levi", "Levi"), ("12 kg", "I weigh 12kg", "12kg"), ("5", "I have 15 hens", ""),
        ("15", "I have 15 hens", "15"), ("Al", "I really like bananas.", ""), ("Al", "I really like Al.", "Al"),
        ("Ann", "Ann\u2019s cat", "Ann"), ("米粒", "我的猫叫米粒呢", "米粒"),
        ("don't", "I don\u2019t dive", "don\u2019t"), ("STRASSE", "meine Straße", "Straße"), ("１２", "房间12号", "12"),
        ("", "anything", ""), ("  ", "anything", ""),
    ],
)  # fmt: skip
def test_words_are_found_as_typed_case_width_and_space_aside(words: str, quote: str, typed: str) -> None:
    assert as_typed(words, quote) == typed


@pytest.mark.parametrize(
    ("statement", "text"),
    [
        ("My locker code is 9876.", "So, my locker code is 9876, isn't it?"),
        ("My locker code is 9876.", "9876 still does not open it"),
        ("The user's locker code is B-204", "b-204 again"), ("I live in Leeds.", "Leeds is where I live now"),
        ("My brother Nils likes green tea.", "Nils, my brother, loves tea"),
        ("Meine Katze heißt Mia.", "Mia ist meine Katze"),
        ("Mi hermana vive en Sevilla.", "¿Conoces a mi hermana de Sevilla?"), ("我住在上海", "我现在住上海"),
        ("My sister owes me money", "that money my sister owes"), ("Leeds", "leeds."),
    ],
)  # fmt: skip
def test_it_is_said_in_the_same_or_similar_words(statement: str, text: str) -> None:
    assert says_any(text, [wording_of("Something else entirely"), wording_of(statement)])


@pytest.mark.parametrize(
    ("statement", "text"),
    [
        ("I live in Leeds.", "I live in York."), ("My boat is old.", "My boat is t2."),
        ("My locker number is 42.", "Room 42 is cold"), ("I moved to Bristol in 2024.", "What happened in 2024?"),
        ("Leeds", "Leeds won again"), ("Hi", "History is fun"), ("Exactly.", "Exactly, and the boat?"),
        ("我住在上海", "我喜欢北京"), ("My sister owes me money", "My sister is a doctor"),
    ],
)  # fmt: skip
def test_something_else_is_not_taken_for_it(statement: str, text: str) -> None:
    assert not says_any(text, [wording_of(statement)])


def test_codes_of_a_request_are_found_wherever_they_stand() -> None:
    assert has_code_of("Forget my locker code 9876", "Is 9876 right?")
    assert not has_code_of("Forget my locker code", "Is 9876 right?")
    assert not has_code_of("Forget what I said in 2024", "In 2024 we moved")


def test_a_short_text_is_read_once_and_a_long_one_is_never_kept() -> None:
    asked: list[str] = []

    @cached_by_text
    def length(text: str) -> int:
        asked.append(text)
        return len(text)

    short, long = "a" * TEXT_CHARACTERS_MAX, "b" * (TEXT_CHARACTERS_MAX + 1)
    assert [length(short), length(short), length(long), length(long)] == [500, 500, 501, 501]
    assert asked == [short, long, long]


PLEASANTRIES = (
    *("Good morning!", "good, ok 👍", "好的好的", "ok好的", "GOOD", "哈哈哈"),
    *("good morning all set", "ok good good morning all all"),  # the longest phrase first leads nowhere
    *("", "  ", "👍👍", "?!", "…"),  # without a word
    *("ok danke, genial, 谢谢", "谢謝", "muchisimas gracias", "ＯＫ", "that’s great"),  # mixed, or spelled otherwise
    "ha " * (PLEASANTRY_CHARACTERS_MAX // 3),
)
OTHER_TEXTS = (
    *("of", "good moon", "ok?x", "$50", "supper", "66", "6", "gok"),  # with a word of their own
    "ha " * (PLEASANTRY_CHARACTERS_MAX // 3) + " ha",  # nothing long is only a greeting
)


@pytest.mark.parametrize(
    ("text", "is_one"), [*((one, True) for one in PLEASANTRIES), *((one, False) for one in OTHER_TEXTS)]
)
def test_a_text_of_known_phrases_alone_is_a_pleasantry(text: str, *, is_one: bool) -> None:
    assert is_pleasantry(text) is is_one


def test_slots_are_filled_with_each_of_their_phrases_and_optional_ones_left_out() -> None:
    slots = {"so": ("so", "very"), "nice": ("nice", "schön")}
    found = fill_slots(("it is {so?} {nice}",), slots)
    ends = {"nice", "schön", "schoen", "schon"}
    assert {" ".join(tokens) for tokens in found} == {f"it is {so}{end}" for so in ("", "so ", "very ") for end in ends}


@pytest.mark.parametrize(
    "text", ["ok " * 26 + "x", "ha " * 26 + "x", "hi " * 20 + " 好的" * 6, "太谢谢你了" * 15 + "x"]
)
def test_no_message_takes_more_than_one_look_at_each_word(text: str) -> None:
    """The patterns that stood here before went through every way to cut such a message: seconds, or no end at all."""
    assert is_pleasantry(text) is not text.endswith("x")


# The world time of a statement's own date words


def meant(text: str, said: str = "2025-03-12") -> tuple[str, str]:
    """Said at noon; unless told otherwise, on a Wednesday."""
    said_at = datetime.fromisoformat(said).replace(hour=12, tzinfo=UTC).timestamp()
    holds_from, holds_until = period(text, said_at)
    return day_of(holds_from), day_of(holds_until)


def day_of(seconds: float | None) -> str:
    if seconds is None:
        return ""
    assert seconds % 86_400 == 0
    return datetime.fromtimestamp(seconds, UTC).date().isoformat()


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_calendar_keeps_its_own_examples(language: str) -> None:
    for said, text, begin, end in calendar(language).examples:
        assert (meant(text, said), language_of(text)) == ((begin, end), language), text


@pytest.mark.parametrize(
    ("text", "begin"),
    [
        ("We leave on Friday, 14 March.", "2025-03-14"),
        ("We leave on Saturday, March 14.", "2026-03-14"),
        ("Am Freitag, den 14.3., fahren wir.", "2025-03-14"),
        ("3月14号周五我们出发", "2025-03-14"),
        ("3月14日金曜に出発", "2025-03-14"),
        ("3월 14일 금요일부터", "2025-03-14"),
        ("Tomorrow, 13 March, I fly.", "2025-03-13"),
        ("I was promoted on 29 February.", "2024-02-29"),
    ],
)
def test_words_beside_a_date_settle_it_and_without_any_the_nearest_counts(text: str, begin: str) -> None:
    assert meant(text) == (begin, "")


NO_DATES = {
    "an ordinary word or number": (
        "you may say so", "we march on", "I paid 5 march fees", "may 5 of us come", "I last sat down", "room 2025",
        "I work 2015-2019 cases", "version 2.3.10 broke", "I ran 3/4 of a mile", "call 555-1234",
        "in the second week I cried", "I bought 3 last month and 2 yesterday", "Ich mag den Mai", "le doy un 7/10",
        "月饼好吃", "我工作了3年",
    ),
    "what is left open": (
        "tomorrow or on 14 March", "around 14 March", "in early March", "14 March or so", "大概下周三",
        "a mediados de mayo",
    ),
    "a day that does not exist": ("We leave on Monday, 14 March 2025.", "on 31 February 2025", "on 2025-02-30"),
}  # fmt: skip


@pytest.mark.parametrize("text", [text for texts in NO_DATES.values() for text in texts])
def test_what_is_not_certainly_a_day_is_no_date(text: str) -> None:
    assert meant(text) == ("", "")


@pytest.mark.parametrize(
    ("text", "order", "day"),
    [
        ("2025-03-14", "either", (2025, 3, 14)), ("2025-03-14T", "either", (2025, 3, 14)),
        ("2025/3/14", "either", (2025, 3, 14)), ("2025-03", "either", (2025, 3, 0)),
        ("3/22", "either", (0, 3, 22)), ("22/3", "either", (0, 3, 22)), ("4/4", "either", (0, 4, 4)),
        ("3/4", "either", None), ("3/4", "day first", (0, 4, 3)), ("3/4", "month first", (0, 3, 4)),
        ("14.6", "day first", (0, 6, 14)), ("3.14", "either", None), ("14.06.90", "either", (1990, 6, 14)),
        ("14.06.25", "either", (2025, 6, 14)), ("32/1", "day first", None), ("1/2/3/4", "day first", None),
        ("12-05-2025", "either", None),
    ],
)  # fmt: skip
def test_a_date_in_digits_counts_if_it_means_one_day(text: str, order: str, day: tuple[int, int, int] | None) -> None:
    item = numeric_date(text.lower(), order)
    assert (item.day if item else None) == day


@pytest.mark.parametrize(
    ("text", "number"), [("twenty one days", 21), ("二十三天", 23), ("十二天", 12), ("三十天", 30)]
)
def test_number_words_side_by_side_are_one_number(text: str, number: int) -> None:
    language = language_of(text)
    assert [item.number for item in calendar_items(text, language) if item.kind is ItemKind.COUNT] == [number]


WORDS = [phrase for one in LANGUAGES for phrases in calendar(one).preceding.values() for phrase in phrases]
WORDS += [phrase for one in LANGUAGES for names in calendar(one).relative.values() for phrase in names]
WORDS += [name for one in LANGUAGES for names in calendar(one).months + calendar(one).weekdays for name in names]
WORDS += ["next", "last", "14", "31", "2025", "9999", "3/22", "14.6.", "5-3", "0", "days", "ago", "月", "号", ",", "."]


@given(st.lists(st.sampled_from(WORDS), max_size=8), st.floats(-2e9, 4e9))
def test_any_row_of_calendar_words_is_read_and_ends_after_it_begins(row: list[str], said_at: float) -> None:
    holds_from, holds_until = period(" ".join(row), said_at)
    assert holds_from is None or holds_until is None or holds_from < holds_until


@pytest.mark.parametrize("said_at", [253402214400.0, 253402300799.0, 1e15, -62135596800.0, -1e15, float("inf")])
@pytest.mark.parametrize("text", ["until 31 December", "until next year", "since yesterday", "from 3 May until 10 May"])
def test_at_the_ends_of_the_calendar_nothing_is_certain_and_nothing_fails(text: str, said_at: float) -> None:
    assert all(end is None or end < 253402300800.0 for end in period(text, said_at))


@pytest.mark.parametrize(
    ("text", "content", "is_kept"),
    [
        ("妹がいます。アナは看護師です。病院で働いています。", "妹のアナは看護師として働いています", True),
        ("妹がいます。アナは看護師です。病院で働いています。", "妹のアナは医師として働いています", False),
        ("땅콩하고 새우 알레르기가 있어요.", "저는 땅콩 알레르기가 있어요", True),
        ("땅콩하고 새우 알레르기가 있어요.", "저는 고양이를 키워요", False),
        ("Мой сын Пётр пошёл в школу. Ему шесть.", "Петру шесть", True),
        ("Мой сын Пётр пошёл в школу. Ему шесть.", "Мария врач", False),
        ("Byłem z Janem w parku. Ma już sześć lat.", "Jan ma sześć lat", True),
        ("Végétarien et intolérant au lactose.", "Je suis intolérant au lactose", True),
        ("Végétarien et intolérant au lactose.", "Leo est intolérant au lactose", False),
        ("I moved to Australia with 15 hens.", "I moved to Austria", False),
        ("I moved to Australia with 15 hens.", "I have 5 hens", False),
    ],
)
def test_forms_of_words_in_many_languages_are_not_new(text: str, content: str, *, is_kept: bool) -> None:
    assert adds_nothing(content, [text], new_words_max=0.0) is is_kept
