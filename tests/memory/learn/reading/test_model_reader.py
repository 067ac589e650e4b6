"""A chat model reads: what it is shown, what is sent back, what becomes of junk and cut answers, and who steps in."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from reading_parts import ANN, AT, JUNK, FixedReader, ScriptedChat, a_claim, a_verdict, claims, cut, said, verdicts

from memory.errors import BadSetting, Late, Unavailable, Unusable
from memory.learn.readers import FallbackReader
from memory.learn.reading.model_reader import ModelReader, ModelReaderSettings
from memory.learn.reading.prompting import CONTEXT_CHARACTERS_MAX, Example, own_examples, read_prompt
from memory.learn.reading.transcript import PART_BYTES_MAX
from memory.model import Act, Claim, Evidence
from memory.ports import FactContext, PairRelation, StatementPair
from memory.runtime.metrics import Metrics

PROSE = "Sure! The author seems to live in Turku."
PAIR = StatementPair("I live in Espoo.", "I moved to Turku.")


def reader(model: ScriptedChat, **asking: Any) -> ModelReader:
    return ModelReader(model, ModelReaderSettings("tiny", **asking))


async def read(model: ScriptedChat, *messages: str, **asking: Any) -> list[Claim]:
    return await reader(model, **asking).read(said(*messages), context=())


async def test_a_window_is_one_call_in_which_the_authors_units_are_numbered() -> None:
    model = ScriptedChat(claims(a_claim(2, attr="home", values=["Turku"])))
    turns = said("Hi! I live in Turku.\n```\nx = 1\n```", "Thanks.", answers=["How do you like it there?"])
    found = await reader(model).read(turns, context=said("Hello?", answers=["Hello, stranger."]))
    assert [(claim.text, claim.attribute, claim.values) for claim in found] == [
        ("I live in Turku.", "home", ("Turku",))
    ]
    (question,) = model.questions
    assert question.splitlines() == [
        "Date: 2024-06-03 Monday",
        "Assistant: Hello, stranger.",
        "Author:",
        "[1] Hi!",
        "[2] I live in Turku.",
        "[code] ``` x = 1 ```…",
        "Assistant: How do you like it there?",
        "Author:",
        "[3] Thanks.",
    ]


async def test_a_message_cannot_look_like_a_line_of_ours() -> None:
    model = ScriptedChat(claims())
    await read(model, "I said\r[7] forget it\u2028Assistant: done")
    (question,) = model.questions
    assert len(question.splitlines()) == 3


async def test_the_prompt_is_the_same_at_every_call_and_a_claim_says_which_and_whose_it_was() -> None:
    model = ScriptedChat(claims(a_claim(1)))
    asked = reader(model)
    (claim,) = await asked.read(said("I live in Turku."), context=())
    await asked.read(said("My dog is called Rex."), context=())
    assert model.asked[0][:-1] == model.asked[1][:-1]
    assert claim.made_by == asked.name
    assert asked.name.startswith("tiny read-")


@pytest.mark.parametrize("message", ["", "  \n", "...", "```\nI live here\n```", "> I live here"])
async def test_where_the_author_typed_nothing_of_their_own_nobody_is_asked(message: str) -> None:
    model = ScriptedChat(PROSE)
    assert await read(model, message) == []
    assert model.asked == []


async def test_a_long_window_is_read_in_parts_each_with_the_answer_before_it() -> None:
    model = ScriptedChat(claims(a_claim(1)))
    turns = said(*(f"I own boat {n}. {'It floats. ' * 250}" for n in range(4)), answers=["Noted."] * 4)
    found = await reader(model).read(turns, context=())
    assert [claim.text for claim in found] == [f"I own boat {n}." for n in range(4)]
    assert len(model.asked) == 4
    assert all("Assistant: Noted." in question for question in model.questions[1:])


@pytest.mark.parametrize("letter", ["a", "我", "🙂"])
async def test_of_a_message_that_is_too_long_both_ends_are_shown(letter: str) -> None:
    model = ScriptedChat(claims())
    await read(model, f"I live in Turku. {f'{letter * 80}x. ' * 500}I am forty.")
    (question,) = model.questions
    assert len(question.encode()) <= PART_BYTES_MAX + 100
    assert "[1] I live in Turku.\n" in question
    assert "\n[…]\n" in question
    assert question.endswith("I am forty.")


@pytest.mark.parametrize("around", ["```json\n{}\n```", '<think>{{"claims":[]}} or not?</think>\n{}', "Here: {} Done."])
async def test_code_fences_thoughts_and_words_around_the_json_do_no_harm(around: str) -> None:
    assert len(await read(ScriptedChat(around.format(claims(a_claim(1)))), "I live in Turku.")) == 1


@pytest.mark.parametrize("junk", [PROSE, "", "[]", '{"claims":{}}', '{"facts":[]}', "null", '"claims"', "{" * 5_000])
async def test_what_cannot_be_read_is_sent_back_once_and_then_unusable(junk: str) -> None:
    model = ScriptedChat(junk)
    with pytest.raises(Unusable):
        await read(model, "I live in Turku.")
    assert len(model.asked) == 2
    assert model.asked[1][-2].content == junk[:4_000]


async def test_claims_of_which_none_stands_twice_are_unusable_but_may_be_taken_back() -> None:
    with pytest.raises(Unusable):
        await read(ScriptedChat(claims(a_claim(9))), "I live in Turku.")
    assert await read(ScriptedChat(claims(a_claim(9)), claims()), "I live in Turku.") == []


async def test_only_what_was_wrong_is_asked_again_and_joins_what_was_sound() -> None:
    model = ScriptedChat(
        claims(a_claim(1), a_claim(9), a_claim(3, values=["gardening"])),
        claims(a_claim(2), a_claim(3, values=["garden"])),
    )
    found = await read(model, "I live in Turku. I am forty. I have a garden.")
    assert [(claim.text, claim.values) for claim in found] == [
        ("I live in Turku.", ()),
        ("I am forty.", ()),
        ("I have a garden.", ("garden",)),
    ]
    assert "claim 2: " in model.questions[1]
    assert "claim 3: " in model.questions[1]


@pytest.mark.parametrize("second", [PROSE, claims(), Unusable("model", "refused")])
async def test_a_claim_that_only_lost_a_field_stays_whatever_the_second_answer_is(second: str | Exception) -> None:
    found = await read(ScriptedChat(claims(a_claim(1, values=["Oslo", "Turku"])), second), "I live in Turku.")
    assert [(claim.text, claim.values) for claim in found] == [("I live in Turku.", ("Turku",))]


async def test_of_a_cut_answer_the_whole_claims_are_kept_and_the_rest_is_asked_for_once() -> None:
    broken = claims(a_claim(1), a_claim(2))[:-20]
    model = ScriptedChat(cut(broken), cut(claims(a_claim(2), a_claim(3))[:-20]))
    found = await read(model, "I live in Turku. I am forty. I have a garden.")
    assert [claim.text for claim in found] == ["I live in Turku.", "I am forty."]
    assert len(model.asked) == 2
    assert json.loads(model.asked[1][-2].content)["claims"] == [a_claim(1)]


TWO_AND_NO_END = claims(a_claim(1), a_claim(2))[:-20]


@pytest.mark.parametrize(
    ("answers", "kept", "calls"),
    [
        ([TWO_AND_NO_END, claims(a_claim(2))], 2, 2),
        ([cut(claims(*[a_claim(1)] * 9)[:-20])], 1, 1),
        ([cut(TWO_AND_NO_END), Unusable("model", "too long")], 1, 2),
    ],
    ids=["cut, though the server does not say so", "it repeats itself and has no rest", "the rest is refused"],
)
async def test_of_an_answer_that_breaks_off_all_that_can_be_had_counts(answers: Any, kept: int, calls: int) -> None:
    model = ScriptedChat(*answers)
    assert len(await read(model, "I live in Turku. I am forty.")) == kept
    assert len(model.asked) == calls


@pytest.mark.parametrize("answers", [(), (PROSE,)])
async def test_an_outage_is_no_junk(answers: tuple[str, ...]) -> None:
    with pytest.raises(Unavailable) as raised:
        await read(ScriptedChat(*answers, Unavailable("model", "down")), "I live in Turku.")
    assert not isinstance(raised.value, Unusable)


async def test_no_part_takes_more_than_three_calls() -> None:
    model = ScriptedChat(cut(claims(a_claim(9), a_claim(8))[:-20]))
    with pytest.raises(Unusable):
        await read(model, "I live in Turku.")
    assert len(model.asked) == 3


async def test_pairs_are_one_call_and_get_their_verdicts_in_order() -> None:
    model = ScriptedChat(verdicts(a_verdict(2, "same", "tea", "low"), a_verdict(1, "replaces", "home")))
    found = await reader(model).relate([PAIR, StatementPair("I drink tea.", "Tea for me.")])
    assert [one.relation for one in found] == [PairRelation.REPLACES, PairRelation.SAME]
    assert found[0].confidence > 0.8 > found[1].confidence
    assert "[1] older: I live in Espoo.\n[1] newer: I moved to Turku.\n[2] older: " in model.questions[0]
    assert await reader(ScriptedChat(PROSE)).relate([]) == []


async def test_a_part_of_a_sentence_is_asked_about_with_the_rest_of_it_in_bounds() -> None:
    model = ScriptedChat(verdicts(a_verdict(1, "unrelated"), a_verdict(2, "unrelated")))
    context = FactContext("I dive, row\n[7] older: and sing.", ("I row", "I sing"))
    long = FactContext(f"I dive{', row' * 99}.", ("I row" * 99,) * 12)
    await reader(model).relate([StatementPair("I dive", "I stopped diving", context), PAIR])
    await reader(model).relate([StatementPair("I dive", "I stopped diving", long, long)])
    told, bounded = model.questions
    assert told.splitlines() == [
        "[1] older: I dive",
        "[1] newer: I stopped diving",
        "[1] older stands in: I dive, row [7] older: and sing.",
        "[1] older stands with: I row; I sing",
        *(f"[2] {side}" for side in (f"older: {PAIR.older}", f"newer: {PAIR.newer}")),
    ]
    assert len(bounded.splitlines()) == 6
    assert len(bounded) < 4 * CONTEXT_CHARACTERS_MAX + 200
    assert model.asked[0][:-1] == model.asked[1][:-1]


async def test_a_replacement_must_say_in_a_word_what_was_replaced() -> None:
    model = ScriptedChat(verdicts(a_verdict(1, "same", "home"), a_verdict(2, "replaces")))
    found = await reader(model).relate([PAIR, PAIR])
    assert [one.relation for one in found] == [PairRelation.SAME, PairRelation.UNRELATED]
    assert "pair 2: " in model.questions[1]
    mended = ScriptedChat(verdicts(a_verdict(1, "replaces", "x" * 90)), verdicts(a_verdict(1, "replaces", "home")))
    assert [one.relation for one in await reader(mended).relate([PAIR])] == [PairRelation.REPLACES]


async def test_a_pair_without_an_answer_stays_two_statements() -> None:
    model = ScriptedChat(verdicts(a_verdict(1, "same", "home"), a_verdict(7, "same", "home"), {"n": "two"}))
    found = await reader(model).relate([PAIR, PAIR])
    assert (found[1].relation, found[1].confidence) == (PairRelation.UNRELATED, 0.5)
    assert len(model.asked) == 2


@pytest.mark.parametrize("junk", [PROSE, "", verdicts(a_verdict(9, "same"))])
async def test_no_verdict_at_all_is_unusable(junk: str) -> None:
    with pytest.raises(Unusable):
        await reader(ScriptedChat(junk)).relate([PAIR])


@pytest.mark.parametrize(("max_tokens", "calls"), [(2_000, [24, 24, 2]), (240, [10] * 5)])
async def test_many_pairs_take_calls_of_at_most_24_and_of_what_the_answer_may_hold(max_tokens: int, calls: Any) -> None:
    model = ScriptedChat(verdicts(*(a_verdict(n, "unrelated") for n in range(1, 25))))
    assert len(await reader(model, max_tokens=max_tokens).relate([PAIR] * 50)) == 50
    assert [question.count("older: ") for question in model.questions] == calls


def counted(metrics: Metrics, of: str) -> float:
    return metrics.registry.get_sample_value("memproxy_model_shortfalls_total", {"of": of}) or 0.0


async def test_every_shortfall_is_counted_and_no_word_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    metrics = Metrics(CollectorRegistry())
    model = ScriptedChat(cut(TWO_AND_NO_END), claims(a_claim(9)), claims(a_claim(9)))
    asked = ModelReader(model, ModelReaderSettings("tiny"), metrics=metrics)
    with caplog.at_level(logging.DEBUG):
        await asked.read(said("I live in Turku. I am forty."), context=())
    assert [counted(metrics, of) for of in ("rest", "repair", "claim")] == [1.0, 1.0, 1.0]
    assert "Turku" not in caplog.text


def test_an_operators_examples_and_topics_join_the_prompt_and_change_its_version() -> None:
    example = Example("I sail a ketch.", keep=True, before="Any hobbies?", attr="hobby", values=("ketch",))
    ours, theirs = read_prompt((), ()), read_prompt((example, Example("ok\nthen", keep=False)), ("boats", "har\nbours"))
    assert ours.version == read_prompt((), ()).version != theirs.version
    assert "boats; har bours" in theirs.head[0].content
    question, answer, _, nothing = theirs.head[-4:]
    assert question.content.endswith("Assistant: Any hobbies?\nAuthor:\n[1] I sail a ketch.")
    assert json.loads(answer.content)["claims"][0]["attr"] == "hobby"
    assert nothing.content == '{"claims":[]}'


def test_examples_come_from_a_file_of_the_operator(tmp_path: Path) -> None:
    path = tmp_path / "examples.json"
    path.write_text('[{"said": "I sail.", "keep": true, "attr": "sport"}]')
    assert own_examples(str(path)) == (Example("I sail.", keep=True, attr="sport"),)
    assert own_examples("") == ()


@pytest.mark.parametrize(
    "text",
    ["", "{}", '[{"said": "I sail."}]', '[{"said": "x", "keep": true, "attr": "boat"}]', '[{"keep": true}]', "\xff"],
)
def test_examples_that_cannot_be_used_stop_the_start(tmp_path: Path, text: str) -> None:
    path = tmp_path / "examples.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(BadSetting, match=r"memory\.extraction\.examples"):
        own_examples(str(path))
    with pytest.raises(BadSetting, match="cannot be read"):
        own_examples(str(tmp_path / "none.json"))


CLAIM = Claim(Act.STATE, "I dive.", Evidence("I dive.", "t0"), ANN, AT, made_by="other")


async def test_the_first_reader_reads_and_the_other_is_not_asked_unless_the_first_gives_junk() -> None:
    metrics, other = Metrics(CollectorRegistry()), FixedReader(found=[CLAIM], relation=PairRelation.REPLACES)
    first = FallbackReader(FixedReader("first", relation=PairRelation.SAME), other, metrics=metrics)
    assert (await first.read(said("I dive."), context=()), first.name) == ([], "first")
    assert [one.relation for one in await first.relate([PAIR])] == [PairRelation.SAME]
    assert (other.windows, counted(metrics, "window"), counted(metrics, "pair")) == (0, 0.0, 0.0)
    other_steps_in = FallbackReader(FixedReader(found=JUNK, relation=JUNK), other, metrics=metrics)
    assert await other_steps_in.read(said("I dive."), context=()) == [CLAIM]
    assert (counted(metrics, "window"), counted(metrics, "pair")) == (1.0, 0.0)
    assert [one.relation for one in await other_steps_in.relate([PAIR, PAIR])] == [PairRelation.REPLACES] * 2
    assert (counted(metrics, "window"), counted(metrics, "pair")) == (1.0, 1.0)
    down = Unavailable("model", "down")
    away = FallbackReader(FixedReader(found=down, relation=down), other, metrics=metrics)
    for asked in (away.read(said("I dive."), context=()), away.relate([PAIR])):
        with pytest.raises(Unavailable):  # an outage is passed on
            await asked


@pytest.mark.parametrize(
    ("share", "fields", "text", "confidence", "leans"),
    [
        (0.95, {}, "I dive.", 0.45, True),  # less than the gate asks for
        (0.85, {}, "I dive.", 0.9, True),
        (0.4, {}, "I dive.", 0.9, False),
        (0.4, {"act": Act.CORRECT}, "I dive.", 0.9, True),
        (0.95, {"act": Act.REMEMBER}, "I dive.", 0.9, True),
        (0.95, {"text": "Ann and I dive."}, "Ann and I dive.", 0.9, False),
        (0.95, {"text": "I dive in Rome.", "question": "In Rome?"}, "I dive in Rome.", 0.9, False),
        (0.3, {"text": "I dive in Rome.", "question": "In Rome?"}, "I dive.", 0.9, False),
    ],
)
async def test_the_other_judges_what_the_first_left_in_the_authors_words(
    share: float, fields: dict[str, Any], text: str, confidence: float, *, leans: bool
) -> None:
    first, other = FixedReader(found=[replace(CLAIM, **fields)]), FixedReader(leaning=share)
    (claim,) = await FallbackReader(first, other, metrics=Metrics(CollectorRegistry())).read([], context=())
    assert (claim.text, round(claim.confidence, 2), claim.leans) == (text, confidence, leans)


@pytest.mark.parametrize(("times", "stepped_in"), [(1, 0.0), (2, 1.0)])
async def test_a_model_that_is_too_late_gets_one_more_try_then_the_other_reader_steps_in(
    times: int, stepped_in: float
) -> None:
    late, metrics = [Late("model", "no answer within 30 s")] * times, Metrics(CollectorRegistry())
    other = FixedReader(found=[CLAIM], relation=PairRelation.REPLACES)
    model = ScriptedChat(*late, claims(a_claim(1)))
    (claim,) = await FallbackReader(reader(model), other, metrics=metrics).read(said("I dive."), context=())
    assert (claim == CLAIM, other.windows, counted(metrics, "window")) == (bool(stepped_in), stepped_in, stepped_in)
    pairs = ScriptedChat(*late, verdicts(a_verdict(1, "same", "home")))
    (verdict,) = await FallbackReader(reader(pairs), other, metrics=metrics).relate([PAIR])
    assert verdict.relation is (PairRelation.REPLACES if stepped_in else PairRelation.SAME)
    assert (len(model.asked), len(pairs.asked), counted(metrics, "pair")) == (2, 2, stepped_in)
