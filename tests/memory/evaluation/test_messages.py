"""What single messages leave behind: how the files are read, what each figure counts, and what the command writes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from eval_command import evaluated
from sandboxes import running_sandbox
from svg_pictures import texts_of

from memory.errors import BadInput
from memory.evaluation.messages import (
    LabelledFact,
    LabelledMessage,
    evaluate_messages,
    read_messages,
    score_message,
    words_of,
)
from memory.evaluation.pictures import shares_by_language
from memory.evaluation.report import tables
from memory.evaluation.sandbox import Data, Learnt
from memory.model import Evidence, Memory, MemoryStatus, Message, Scope, Turn

DATA = Path(__file__).parents[2] / "data"
MESSAGES, LABELS, HISTORY = DATA / "messages.jsonl", DATA / "messages_labels.jsonl", DATA / "history.json"
NOW = 1_750_000_000.0


def written(path: Path, *lines: object) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def labelled(text: str, *spans: str, **fields: str) -> LabelledMessage:
    return LabelledMessage(fields.pop("id", "m"), text, tuple(map(LabelledFact, spans)), **fields)


def memory(content: str, *quotes: str, number: int = 0, status: MemoryStatus = MemoryStatus.ACTIVE) -> Memory:
    evidence = tuple(Evidence(quote, "t") for quote in quotes)
    return Memory(f"m{number}", "u", content, NOW, NOW, NOW, status=status, evidence=evidence)


def learnt(recorded: str, *memories: Memory) -> Learnt:
    turn = Turn("t", Scope("u", session_id="s"), NOW, (Message("user", recorded),), answer="OK.")
    return Learnt("u", memories, (turn,))


class Kept:
    """In the sandbox's place: of each message, by its text, these memories are left."""

    def __init__(self, memories: dict[str, Sequence[Memory]]) -> None:
        self._memories = memories

    async def learn(self, record: Data) -> Learnt:
        text = record["sessions"][0]["messages"][0]["content"]
        return learnt(text, *self._memories.get(text, ()))


async def figures_of(*pairs: tuple[LabelledMessage, Sequence[Memory]]) -> dict[str, Any]:
    sandbox: Any = Kept({message.text: memories for message, memories in pairs})
    return await evaluate_messages([message for message, _ in pairs], sandbox)


def test_facts_stand_in_the_line_or_in_a_second_file_which_replaces_those_of_the_first(tmp_path: Path) -> None:
    file = written(
        tmp_path / "messages.jsonl",
        {"id": "a", "text": "I own a kiln.", "source": "s", "lang": "en", "kind": "k", "facts": [{"span": "a kiln"}]},
        {"id": "b", "text": "Why?"},
        {"id": "c", "text": "I own a loom.", "facts": None},
    )
    a, b, c = read_messages(file)
    assert a == LabelledMessage("a", "I own a kiln.", (LabelledFact("a kiln"),), "s", "en", "k")
    assert (b.facts, c.facts) == ((), None)

    labels = written(
        tmp_path / "labels.jsonl",
        {"id": "c", "kind": "chat", "facts": [{"span": "I own a loom", "type": "possession"}]},
        {"id": "a", "kind": "chat", "facts": []},
        {"id": "of a longer file", "facts": [{"span": "a harp"}]},
    )
    a, b, c = read_messages(file, labels=labels)
    assert (a.facts, b.facts, c.facts) == ((), (), (LabelledFact("I own a loom", "possession"),))
    assert [message.kind for message in (a, b, c)] == ["k", "", "chat"]


X = [{"id": "a", "text": "x"}]


@pytest.mark.parametrize(
    ("lines", "labels", "error"),
    [
        ([{"id": "a"}], None, r"messages.jsonl, line 1: not a record of messages: .*`text`"),
        ([*X, {"id": "b", "text": 5}], None, r"line 2: .*`\$.text`"),
        ([*X, {"id": "a", "text": "y"}], None, r"line 2: .*an earlier line has the id 'a'"),
        ([{"id": "a", "text": "x", "facts": [{"type": "t"}]}], None, r"line 1: .*`span`"),
        ([{"id": "a", "text": "x", "facts": [{"span": "?!"}]}], None, r"line 1: .*a span needs"),
        ([], None, "holds no record of messages"),
        (X, [{"id": "a", "facts": []}, {"id": "b"}], r"labels.jsonl, line 2: not a record of labels: .*`facts`"),
        (X, [{"id": "a", "facts": []}] * 2, r"labels.jsonl, line 2: .*an earlier line"),
        (X, [{"id": "elsewhere", "facts": []}], "labels.jsonl labels no message of messages.jsonl"),
    ],
)
def test_a_line_that_is_no_message_or_no_label_is_named(
    tmp_path: Path, lines: list[object], labels: list[object] | None, error: str
) -> None:
    messages = written(tmp_path / "messages.jsonl", *lines)
    named = None if labels is None else written(tmp_path / "labels.jsonl", *labels)
    with pytest.raises(BadInput, match=error):
        read_messages(messages, labels=named)


def test_words_are_runs_of_latin_letters_and_digits_and_single_chinese_characters() -> None:
    assert words_of("It's $5, it's 我家!") == {"it's", "$5", "我", "家"}


@pytest.mark.parametrize(
    ("memories", "is_covered"),
    [
        ([memory("a blue kiln")], True),  # three words of five
        ([memory("a kiln")], False),
        ([memory("a blue"), memory("own kiln", number=1)], False),  # together, but neither does alone
        ([memory("pottery", "I own a thing")], True),  # in the quote
        ([memory("I own", "a thing")], True),  # in both
        ([memory("I own a blue kiln", status=MemoryStatus.SUPERSEDED)], False),
        ([memory("KILN, BLUE: OWN")], True),
        ([], False),
    ],
)
async def test_a_fact_is_covered_by_one_active_memory_with_three_fifths_of_its_words(
    memories: list[Memory], *, is_covered: bool
) -> None:
    figures = await figures_of((labelled("I own a blue kiln.", "I own a blue kiln"), memories))
    assert figures["coverage"] == float(is_covered)
    assert figures["per_record"][0]["facts"][0]["is_covered"] is is_covered


async def test_figures_count_facts_memories_beside_them_and_those_in_the_user_s_own_words() -> None:
    """Extra memories touch no fact of their message, and are counted per message that has some."""
    figures = await figures_of(
        (labelled("kiln, loom", "kiln", "loom"), [memory("kiln loom", "kiln, loom"), memory("harp", number=1)]),
        (labelled("drum", "drum"), [memory("fife")]),
        (labelled("lute", "lute"), []),
        (labelled("nothing"), [memory("junk", "nothing")]),
    )
    assert (figures["facts"], figures["coverage"]) == (4, 0.5)
    assert figures["extra_per_message"] == round(2 / 3, 4)
    assert [one["is_extra"] for one in figures["per_record"][0]["memories"]] == [False, True]
    assert (figures["verbatim"], figures["memories"], figures["memories_per_message"]) == (0.5, 4, 1.0)


@pytest.mark.parametrize(
    ("one", "is_verbatim"),
    [
        (memory("I own a kiln", "I own a kiln"), True),
        (memory("Owns a kiln", "own a kiln."), True),
        (memory("I own a kiln", "I own a Kiln"), False),
        (memory("I own a kiln", "I own a kiln", "I own two"), False),
        (memory("I own a kiln"), False),
    ],
)
def test_a_memory_is_verbatim_if_the_recorded_message_holds_its_quotes(one: Memory, *, is_verbatim: bool) -> None:
    score = score_message(labelled("what was typed"), learnt("Yes, I own a kiln.", one))
    assert score["memories"][0]["is_verbatim"] is is_verbatim


async def test_figures_come_by_source_and_by_language_where_these_are_named() -> None:
    """Junk is the share of messages without facts that left an active memory."""
    figures = await figures_of(
        (labelled("one", source="forum", language="en"), [memory("kept")]),
        (labelled("two", source="mail", language="en"), []),
        (labelled("three"), [memory("replaced", status=MemoryStatus.SUPERSEDED)]),
        (labelled("four"), []),
        (labelled("five", "five"), [memory("five"), memory("more", number=1)]),
    )
    assert figures["junk"] == 0.25
    assert {name: group["junk"] for name, group in figures["by_source"].items()} == {"": 0.0, "forum": 1.0, "mail": 0.0}
    assert {name: group["junk"] for name, group in figures["by_language"].items()} == {"": 0.0, "en": 0.5}
    assert (await figures_of((labelled("one"), [])))["by_source"] == {}


async def test_each_message_is_learnt_as_the_only_one_of_a_user() -> None:
    text = "My cat is called Tom."
    messages = [labelled(text, text, id="a"), labelled(text, text, id="b"), labelled("What is a cat?", id="c")]
    seen: list[tuple[int, int]] = []
    async with running_sandbox() as sandbox:
        figures = await evaluate_messages(messages, sandbox, progress=lambda done, of: seen.append((done, of)))
    assert [len(one["memories"]) for one in figures["per_record"]] == [1, 1, 0]
    assert (figures["coverage"], figures["junk"], figures["verbatim"], figures["turns"]) == (1.0, 0.0, 1.0, 3)
    assert seen == [(1, 3), (2, 3), (3, 3)]


async def test_sources_have_a_table_of_their_own_and_only_shares_are_drawn() -> None:
    figures = await figures_of((labelled("one", "one", source="en", language="en"), [memory("one", "one")]))
    (group, rows), (source, source_rows) = tables(figures)
    assert (group[0], [row[0] for row in rows]) == ("group", ["all", "en"])
    assert (source[0], [row[0] for row in source_rows]) == ("source", ["en"])
    shown = texts_of(shares_by_language("messages", figures))
    assert "coverage" in shown
    assert not any("per message" in words for words in shown)


@pytest.mark.full("a process that loads the models")
@pytest.mark.parametrize(
    ("words", "counted", "figures", "shown"),
    [
        (
            ("messages", MESSAGES, "--labels", LABELS),
            {"records": 10, "facts": 9, "turns": 10, "by_language": ["en", "zh"], "by_source": ["chat", "form"]},
            {"junk", "coverage", "extra_per_message", "verbatim", "memories_per_message"},
            {"coverage", "en", "zh"},
        ),
        (
            ("history", HISTORY, "--types", "single-session-user, knowledge-update", "--limit", 2),
            {"records": 2, "turns": 6, "evidence": 3, "by_type": ["knowledge-update", "single-session-user"]},
            {"learnt", "found", "noted", "answer", "superseded_share", "memories_per_turn", "note_tokens"},
            None,
        ),
    ],
    ids=["messages", "history"],
)
def test_the_command_prints_tables_and_writes_every_case(
    tmp_path: Path, words: Sequence[object], counted: dict[str, Any], figures: set[str], shown: set[str] | None
) -> None:
    out, drawn = tmp_path / "out.json", tmp_path / "out.svg"
    done = evaluated(tmp_path, *words, "--json", out, *(() if shown is None else ("--picture", drawn)))
    assert done.returncode == 0, done.stderr
    found = json.loads(out.read_text())
    assert {name: sorted(found[name]) if name.startswith("by_") else found[name] for name in counted} == counted
    assert (found["evaluation"], len(found["per_record"])) == (words[0], counted["records"])
    assert figures <= found.keys()
    assert [line.split()[0] for line in done.stdout.splitlines() if line][:2] == ["group", "all"]
    assert f"{counted['records']}/{counted['records']}" in done.stderr
    assert shown is None or shown <= set(texts_of(drawn.read_text()))
