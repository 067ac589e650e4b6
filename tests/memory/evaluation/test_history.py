"""Questions after a history of chats: how the file is read, what each figure counts, and which note it is about."""

from __future__ import annotations

import gzip
import json
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import memory_rows
import pytest
from sandboxes import running_sandbox

from memory.errors import BadInput
from memory.evaluation.history import EvidenceTurn, History, evaluate_history, read_history, score_history
from memory.evaluation.records import seconds
from memory.evaluation.report import tables
from memory.evaluation.sandbox import NOTE_ATTEMPTS, LearningFailed, Learnt, Sandbox, SettableClock
from memory.model import Evidence, Memory, MemoryStatus, Message, Note, RecallStatus, Scope, Turn
from memory.recall.notes.injection import render_note
from memory.recall.stages import RecallOutcome

HISTORY = Path(__file__).parents[2] / "data" / "history.json"
NOW = seconds("2024-06-01T09:00:00Z")
QUESTION: dict[str, Any] = {
    "question_id": "q",
    "question_type": "made-up",
    "question": "What do I own?",
    "answer": "a kiln",
    "question_date": "2024/06/10 (Mon) 12:00",
    "haystack_dates": ["2024/06/01 (Sat) 09:00"],
    "haystack_sessions": [[{"role": "user", "content": "I own a kiln."}, {"role": "assistant", "content": "Fine."}]],
}


def words_in(text: str) -> int:
    return len(text.split())


def lines(*questions: object) -> bytes:
    """One question a line, after a line with the bracket."""
    return ("[\n" + ",\n".join(json.dumps(question) for question in questions) + "\n]").encode()


def written(folder: Path, *questions: object) -> Path:
    path = folder / "history.json"
    path.write_bytes(lines(*questions))
    return path


# Reading


def test_answerable_questions_are_read_with_their_sessions_and_evidence_in_order_of_date(tmp_path: Path) -> None:
    first, *_ = histories = read_history(HISTORY)
    assert [history.id for history in histories] == ["made-1", "made-2", "made-5"]
    assert [session["at"] for session in first.sessions] == ["2024-05-02T08:15:00+00:00", "2024-05-20T19:30:00+00:00"]
    assert first.evidence == (EvidenceTurn(0, 0, "My cat is called Biscuit."),)
    asked_at = [history.asked_at for history in histories]
    assert asked_at[0] == seconds("2024-05-30T18:00:00Z")
    assert asked_at[2] == seconds("2024-03-05T12:00:00Z")  # an hour after the session that its date lies before
    packed = tmp_path / "history.json.gz"
    packed.write_bytes(gzip.compress(HISTORY.read_bytes()))
    assert read_history(packed) == histories
    (history,) = read_history(written(tmp_path, {**QUESTION, "answer": 3}))
    assert history.answer == "3"


def test_evidence_is_the_turn_that_holds_a_marked_message_of_the_user(tmp_path: Path) -> None:
    turns = [
        {"role": "assistant", "content": "Hello!"},
        {"role": "user", "content": "Why?"},
        {"role": "assistant", "content": "Because.", "has_answer": True},
        {"role": "user", "content": " "},
        {"role": "user", "content": "I own a kiln.", "has_answer": False},
        {"role": "user", "content": "And a loom.", "has_answer": True},
        {"role": "assistant", "content": "Fine."},
        {"role": "user", "content": "And a harp.", "has_answer": True},
    ]
    (history,) = read_history(written(tmp_path, {**QUESTION, "haystack_sessions": [turns]}))
    assert history.evidence == (EvidenceTurn(0, 1, "I own a kiln.\nAnd a loom."), EvidenceTurn(0, 2, "And a harp."))


def test_a_limit_takes_questions_from_all_over_those_of_the_chosen_types(tmp_path: Path) -> None:
    given = [QUESTION | {"question_id": f"{kind}-{n}", "question_type": kind} for kind in "xyz" for n in range(4)]
    file = written(tmp_path, *given)
    assert [history.id for history in read_history(file, limit=3)] == ["x-0", "y-0", "z-0"]
    assert [history.id for history in read_history(file, limit=2, types={"y", "z"})] == ["y-0", "z-0"]
    assert len(read_history(file, limit=99)) == 12
    with pytest.raises(BadInput, match=r"no question of type 'w'; it has x, y, z"):
        read_history(file, types={"x", "w"})


@pytest.mark.parametrize(
    ("content", "error"),
    [
        *(
            (lines(QUESTION, QUESTION | change), rf"history.json, line 3: not a question of LongMemEval: .*{field}")
            for change, field in (
                ({"question": None}, r"`\$\.question`"),
                ({"haystack_sessions": [[{"role": "robot", "content": "x"}]]}, r"role"),
                ({"haystack_sessions": []}, "got 0 and 1 dates"),
                ({"haystack_dates": []}, "got 1 and 0 dates"),
                ({"haystack_dates": ["1 June 2024"]}, r"got '1 June 2024' - at `\$\.haystack_dates\[0\]`"),
                ({"question_date": "now"}, r"got 'now' - at `\$\.question_date`"),
            )
        ),
        (b'[\n{"a": 1},\n{"b" 2}\n]', "history.json, line 3: not LongMemEval's JSON"),
        (b'[\n\n{"a": "\xff"}]', "history.json, line 3: "),
        (b'{"a": 1}', "history.json: not LongMemEval's JSON: .*array"),
        (b"", "line 1: not LongMemEval's JSON"),
        (b'[\n {\n  "question_id": "q"\n }]', "history.json, line 2: not a question"),
        (b"[]", "holds no question"),
        (json.dumps([{**QUESTION, "question_id": "q_abs"}]).encode(), "holds no question"),
    ],
)
def test_what_is_no_question_or_no_list_of_them_is_named(tmp_path: Path, content: bytes, error: str) -> None:
    file = tmp_path / "history.json"
    file.write_bytes(content)
    with pytest.raises(BadInput, match=error):
        read_history(file)


# Scoring


def asked(answer: str = "a kiln", *, evidence: Sequence[EvidenceTurn] = ()) -> History:
    return History("q", "made-up", "What do I own?", answer, NOW, (), tuple(evidence))


def memory(number: int, content: str, *, turn: str = "", superseded_by: str = "") -> Memory:
    status = MemoryStatus.SUPERSEDED if superseded_by else MemoryStatus.ACTIVE
    fields: dict[str, Any] = {"status": status, "superseded_by": superseded_by}
    evidence = (Evidence(content, turn),) if turn else ()
    return memory_rows.memory(f"m{number}", content, user_id="u", at=NOW, evidence=evidence, **fields)


def learnt(*memories: Memory, turns: int = 1) -> Learnt:
    said = (Message("user", "I own a kiln."),)
    return Learnt("u", memories, tuple(Turn(f"t{n}", Scope("u", session_id="s"), NOW, said) for n in range(turns)))


def scored(history: History, of: Learnt, *, noted: Sequence[Memory] = ()) -> dict[str, Any]:
    return score_history(history, of, found=(), note=render_note(noted, now=NOW), tokens=words_in)


def test_evidence_is_learnt_if_a_memory_of_any_status_stands_on_that_very_turn_and_found_or_noted_if_one_is() -> None:
    kiln = memory(1, "I own a kiln", turn="u/history/1/0", superseded_by="m2")
    loom = memory(2, "I own a loom", turn="u/history/1/1")
    places = [EvidenceTurn(session, turn, "") for session, turn in ((1, 0), (0, 0), (0, 1), (1, 1))]
    score = scored(asked(evidence=places), learnt(kiln, loom))
    assert [one["is_learnt"] for one in score["evidence"]] == [True, False, False, True]
    assert [one["memories"] for one in score["evidence"]] == [["I own a kiln"], [], [], ["I own a loom"]]
    blue, note = memory(2, "My kiln is blue", turn="u/history/1/0"), render_note([kiln], now=NOW)
    about = asked(evidence=[EvidenceTurn(1, 0, "")])
    (one,) = score_history(about, learnt(kiln, blue), found=[blue], note=note, tokens=words_in)["evidence"]
    assert (one["is_found"], one["is_noted"]) == (True, True)


@pytest.mark.parametrize(
    ("answer", "is_answered"),
    [
        ("a kiln", True),
        ("The Kiln!", True),
        ("a blue kiln", False),
        ("2,500", True),
        ("500", False),
        ("background", False),  # stands in the note's frame only
        ("the kiln that cost 2500 I own", None),  # seven words
        ("of the", None),  # no word that counts
        ("窯", None),
    ],
)
def test_a_short_answer_is_given_if_the_memories_noted_have_its_words(answer: str, *, is_answered: bool | None) -> None:
    kiln, price = memory(1, "I own a kiln"), memory(2, "It cost $2,500 or 2,500 €")
    assert scored(asked(answer), learnt(kiln, price), noted=[kiln, price])["is_answered"] is is_answered


class Asked:
    """In the sandbox's place: each history, by its first session, leaves what the test says, and finds and notes it."""

    def __init__(self, outcomes: dict[str, tuple[Learnt, Collection[str], Collection[str]]]) -> None:
        self._outcomes = outcomes
        self._outcome = next(iter(outcomes.values()))

    async def learn(self, record: dict[str, Any]) -> Learnt:
        self._outcome = self._outcomes[record["sessions"][0]["messages"][0]["content"]]
        return self._outcome[0]

    async def search(self, of: Learnt, question: str, at: float, options: Any) -> list[Memory]:
        assert (options.token_budget, options.retrieval_limit) == (800, 200)
        return [memory for memory in of.memories if memory.id in self._outcome[1]]

    async def note(self, of: Learnt, question: str, at: float) -> str:
        return render_note([memory for memory in of.memories if memory.id in self._outcome[2]], now=at)


def history(name: str, kind: str, answer: str, *places: int) -> History:
    session = {"at": "2024-06-01T09:00:00Z", "messages": [{"role": "user", "content": name}]}
    return History(name, kind, "?", answer, NOW, (session,), tuple(EvidenceTurn(0, place, "") for place in places))


async def test_figures_are_shares_of_all_evidence_questions_and_memories_and_come_by_type() -> None:
    kiln = memory(1, "I own a kiln", turn="u/history/0/0", superseded_by="m2")
    blue = memory(2, "I own a blue kiln", turn="u/history/0/1")
    gone = memory(3, "I own a harp", turn="u/history/0/2", superseded_by="erased")
    loom = memory(4, "I own a loom", turn="u/history/0/0")
    sandbox: Any = Asked(
        {
            "one": (learnt(kiln, blue, gone, turns=4), {"m1", "m2"}, {"m2"}),
            "two": (learnt(loom, turns=6), {"m4"}, {"m4"}),
            "three": (learnt(turns=2), (), ()),
        }
    )
    histories = [
        history("one", "update", "a lute", 0, 1, 2, 3),
        history("two", "plain", "a loom", 0),
        history("three", "plain", "a word or two too many for this"),
    ]
    figures = await evaluate_history(histories, sandbox, tokens=words_in)
    note_tokens = sum(words_in(render_note([one], now=NOW)) for one in (blue, loom)) / 3
    counts = {"records": 3, "turns": 12, "memories": 4, "evidence": 5, "note_tokens": round(note_tokens, 4)}
    shares = {"learnt": 0.8, "found": 0.6, "noted": 0.4, "answer": 0.5, "superseded_share": 0.5}
    flat = {name: value for name, value in figures.items() if not isinstance(value, dict | list)}
    assert flat == counts | shares | {"memories_per_turn": 0.3333}
    assert {name: (row["records"], row["noted"], row["answer"]) for name, row in figures["by_type"].items()} == {
        "plain": (2, 1.0, 1.0),
        "update": (1, 0.25, 0.0),
    }
    assert figures["superseded"] == [
        {"id": "one", "old": "I own a kiln", "new": "I own a blue kiln"},
        {"id": "one", "old": "I own a harp", "new": None},
    ]
    (_, _), (head, rows) = tables(figures)
    assert (head[0], [row[0] for row in rows]) == ("type", ["plain", "update"])


# In the sandbox


async def test_what_a_history_holds_is_learnt_found_and_noted() -> None:
    seen: list[tuple[int, int]] = []
    async with running_sandbox() as sandbox:
        cat, _town, trade = read_history(HISTORY)
        figures = await evaluate_history(
            [cat, trade], sandbox, tokens=words_in, progress=lambda done, of: seen.append((done, of))
        )
    assert (figures["learnt"], figures["found"], figures["noted"], figures["answer"]) == (1.0, 1.0, 1.0, 1.0)
    assert [one["turns"] for one in figures["per_record"]] == [4, 1]
    assert "- [2024-05-02] My cat is called Biscuit." in figures["per_record"][0]["note"]
    assert seen == [(1, 2), (2, 2)]


class Late:
    """A recall that misses its deadline so often before it finds something; a search has to load the memories first."""

    def __init__(self, times: int) -> None:
        self._times = times
        self._loaded: set[str] = set()

    async def search(self, scope: Scope, **_: Any) -> list[Any]:
        self._loaded.add(scope.user_id)
        return []

    async def recall(self, scope: Scope, request: Any) -> RecallOutcome:
        assert scope.user_id in self._loaded
        self._times -= 1
        if self._times >= 0:
            return RecallOutcome(RecallStatus.UNAVAILABLE, "deadline")
        return RecallOutcome(RecallStatus.USED, "found", notes=(Note("what was found"),))


def searching_with(searcher: Any) -> Sandbox:
    none: Any = None
    return Sandbox(turn_log=none, store=none, worker=none, searcher=searcher, clock=SettableClock(), redact=str)


async def test_a_missed_deadline_is_no_figure_it_is_tried_again_and_then_given_up() -> None:
    found = await searching_with(Late(NOTE_ATTEMPTS - 1)).note(learnt(), "What do I own?", NOW)
    assert found == "what was found"
    with pytest.raises(LearningFailed, match="deadline"):
        await searching_with(Late(NOTE_ATTEMPTS)).note(learnt(), "What do I own?", NOW)
