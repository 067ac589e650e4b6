"""From a configuration file to what parts do: weights order a search, bounds bound, a bad value stops the start."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hashing_embedder import HashingEmbedder
from note_lookup import notes_of
from prometheus_client import CollectorRegistry

from memory.adapters.in_memory import InMemoryStore
from memory.adapters.retention import DEFAULT_NOTE_LIMITS, DEFAULT_RECEIPT_LIMITS, NoteLimits, ReceiptLimits
from memory.adapters.working_set.working_sets import WorkingSetLimits
from memory.errors import BadSetting
from memory.model import (
    Candidate,
    Change,
    ChangeKind,
    Memory,
    PastNote,
    RecallStatus,
    Receipt,
    RequestOptions,
    Scope,
    VectorOrigin,
)
from memory.model.arms import HoldoutRule
from memory.model.claim_filters import ClaimFilter
from memory.ports import LearnDue
from memory.processes import composition, from_settings
from memory.processes.kept_state import Process
from memory.processes.working_set_parts import opened_sets
from memory.recall.ranking.ranking import CANDIDATES_MAX
from memory.recall.ranking.weights import DEFAULT_RANKING, NAMES, PARTS
from memory.settings import Settings, every_setting, loader

DAY, MIB = 86_400.0, 1 << 20
KAYAK = "Where is my kayak stored?"
NOWHERE = "http://127.0.0.1:9"  # nothing answers there, and nothing has to
TURNS = ("How is the old kiln doing?", "It cracked on Monday", "We bought another one")


def settings_of(text: str, folder: Path) -> Settings:
    """The settings of that file, with servers that are not there."""
    file = folder / "memproxy.yaml"
    file.write_text(text, encoding="utf-8")
    told = {
        "memory.embedding.endpoint": NOWHERE,
        "milvus_uri": NOWHERE,
        "data_dir": str(folder),
        "run_dir": str(folder),
    }
    return loader.load(file, told, {})


@asynccontextmanager
async def parts_of(text: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[composition.Parts]:
    """The parts of a process that was given this file."""
    monkeypatch.setattr(composition, "REGISTRY", CollectorRegistry())  # the process's own takes one set of metrics only
    async with composition.open_parts(settings_of(text, folder)) as parts:
        yield parts


def remembered(content: str, *, days_ago: float = 1.0, minute: int = 0, **fields: object) -> Memory:
    said_at = composition.SYSTEM_CLOCK() - days_ago * DAY + minute * 60.0
    memory = Memory(content, "u", content, said_at, said_at, said_at)
    return replace(memory, **fields)  # type: ignore[arg-type]


def arms(settings: Settings) -> tuple[bool, bool, HoldoutRule]:
    """Whether arms are compared, whether notes are withheld from all, and from whom."""
    recall = from_settings.recall_settings(settings)
    return from_settings.worker_settings(settings).compares_arms, recall.is_shadow, recall.holdout


AS_CONFIGURED = RequestOptions()


class Desk:
    """A search as REST makes it, through everything that a file can change, over these memories."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.monkeypatch = folder, monkeypatch

    async def found(
        self,
        text: str,
        question: str,
        *memories: Memory,
        is_loaded: bool = True,
        options: RequestOptions = AS_CONFIGURED,
    ) -> list[Candidate]:
        """`is_loaded`: from the user's working set, else from the store alone."""
        embedder, store = HashingEmbedder(dimension=384), InMemoryStore()
        vectors = np.asarray(await embedder.embed([memory.content for memory in memories], is_urgent=False))
        await store.apply("u", [Change(ChangeKind.CREATE, memory) for memory in memories], vectors)
        limits = "" if is_loaded else "\n  working_set: {user_memories_max: 1}"
        async with (
            parts_of(f"memory:\n  ranking: {text}{limits}", self.folder, self.monkeypatch) as parts,
            AsyncExitStack() as stack,
        ):
            corpora, _ = await opened_sets(
                Process(parts.settings, parts.telemetry),
                stack,
                store=store,
                state=parts.state,
                origin=VectorOrigin("m", embedder.dimension),
                tokens=parts.tokens,
            )
            assert (await corpora.corpus("u", waits=True) is not None) is is_loaded
            recall = replace(parts, store=store, embedder=embedder, corpora=corpora).recall()
            return await recall.search(Scope("u"), query=question, history=(), options=options)


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    return Desk(tmp_path, monkeypatch)


def contents(found: list[Candidate]) -> list[str]:
    return [candidate.memory.content for candidate in found]


async def test_a_claim_is_found_behind_more_memories_than_a_search_of_the_store_returns(desk: Desk) -> None:
    nearer = [remembered(f"What is there? There is number {number}") for number in range(CANDIDATES_MAX + 50)]
    cat = remembered("My cat Tom eats fish", subject="pet", name="Tom")
    options = RequestOptions(token_budget=500, claim=ClaimFilter(subject="pet"))
    found = await desk.found("{}", "What is there?", *nearer, cat, is_loaded=False, options=options)
    assert contents(found) == [cat.content]


@pytest.mark.parametrize("is_loaded", [True, False])
@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("{}", "Devon"),  # importance decides between equals that are two months apart
        ("{weights: {recency: 5}}", "Kent"),
        ("{half_lives: {semantic_days: 1}}", "Kent"),
        ("{half_lives: {episodic_days: 1}}", "Devon"),  # of another type than theirs
    ],
)
async def test_a_changed_weight_or_half_life_changes_the_order_of_a_search(
    desk: Desk, text: str, first: str, is_loaded: bool
) -> None:
    old = remembered("My kayak is stored in Devon", days_ago=60, importance=0.9)
    new = remembered("My kayak is stored in Kent", days_ago=0, importance=0.4)
    found = await desk.found(text, KAYAK, old, new, is_loaded=is_loaded)
    assert len(found) == 2
    assert found[0].memory.content.endswith(first)


async def test_a_higher_bar_lets_less_pass(desk: Desk) -> None:
    kayak = remembered("My kayak is stored in Devon")
    assert contents(await desk.found("{}", KAYAK, kayak)) == [kayak.content]
    assert contents(await desk.found("{bar: {even: 20}}", KAYAK, kayak)) == []


async def test_turns_around_a_memory_count_as_the_settings_say(desk: Desk) -> None:
    talk = [
        remembered(content, minute=minute, session_id="s", memory_type="episodic")
        for minute, content in enumerate(TURNS)
    ]
    question = "how is the old kiln doing?"
    assert TURNS[1] in contents(await desk.found("{}", question, *talk))  # which has no word of the question
    alone = await desk.found("{neighbours: {next: 0, next_but_one: 0}, bar: {near_tokens: 0}}", question, *talk)
    assert contents(alone) == [TURNS[0]]
    far = await desk.found("{neighbours: {next: 0, next_but_one: 5}, bar: {near_tokens: 0}}", question, *talk)
    assert set(contents(far)) == {TURNS[0], TURNS[2]}


async def test_scripts_without_spaces_count_as_the_settings_say(desk: Desk) -> None:
    tea = remembered("我喜欢喝绿茶")
    [usual] = await desk.found("{}", "我喝什么茶?", tea)
    [words] = await desk.found("{unspaced: {character: 1}}", "我喝什么茶?", tea)
    assert words.parts["lexical"] > usual.parts["lexical"]
    assert words.parts["dense"] == pytest.approx(usual.parts["dense"])


# What parts are handed


@pytest.mark.parametrize(
    ("handed", "text", "expected"),
    [
        (from_settings.receipt_limits, "receipts: {}", DEFAULT_RECEIPT_LIMITS),
        (
            from_settings.receipt_limits,
            "receipts: {keep_days: 3, user_receipts_max: 2, total_mib: 1}",
            ReceiptLimits(3 * DAY, 2, MIB),
        ),
        (from_settings.note_limits, "notes: {}", DEFAULT_NOTE_LIMITS),
        (from_settings.note_limits, "notes: {total_mib: 3, user_mib: 1}", NoteLimits(3 * MIB, MIB)),
        (
            from_settings.working_set_limits,
            "working_set: {user_memories_max: 7, total_mib: 3, patience_ms: 40, search_patience_seconds: 2}",
            WorkingSetLimits(7, 3 * MIB, 0.04, 2.0),
        ),
        (lambda given: from_settings.recall_settings(given).rewritten_weight, "ranking: {rewritten: 0.5}", 0.5),
        (from_settings.learn_due, "learn: {}", LearnDue(10, 30.0, 10, 4_000)),
        (from_settings.learn_due, "extraction_batch_size: 3", LearnDue(3, 30.0, 3, 4_000)),
        (from_settings.learn_due, "learn: {buffer_tokens: 100}", LearnDue(10, 30.0, 10, 100)),
        (from_settings.learn_due, "learn: {idle_seconds: 5, session_end_seconds: 1800}", LearnDue(10, 5, 10, 4_000)),
        (from_settings.learn_due, "learn: {idle_seconds: 60, session_end_seconds: 1}", LearnDue(10, 1, 10, 4_000)),
        (from_settings.learn_due, "learn: {idle_seconds: 0}", LearnDue()),  # each turn is learnt at once
        (from_settings.is_recording, "shadow: {learns: false}", True),
        (from_settings.is_recording, "shadow: {enabled: true}", True),
        (from_settings.is_recording, "shadow: {enabled: true, learns: false}", False),
        (from_settings.is_recording, "shadow: {enabled: true}, auto_store: false", False),
        (from_settings.is_recording, "enabled: false", False),
        (arms, "holdout: {share: 0.1, salt: x}", (True, False, HoldoutRule(0.1, "x"))),
        (arms, "holdout: {share: 0.1, salt: x}, shadow: {enabled: true}", (False, True, HoldoutRule(0.1, "x"))),
        (arms, "holdout: {share: 0, salt: x}", (False, False, HoldoutRule(0, "x"))),
    ],
)
def test_each_part_is_handed_what_the_settings_say(
    tmp_path: Path, handed: Callable[[Settings], object], text: str, expected: object
) -> None:
    assert handed(settings_of(f"memory: {{{text}}}", tmp_path)) == expected


async def test_what_is_kept_keeps_to_the_bounds_of_the_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = composition.SYSTEM_CLOCK()
    text = "filters: 2\nmemory: {receipts: {user_receipts_max: 2}, notes: {user_mib: 1}}"
    async with parts_of(text, tmp_path, monkeypatch) as parts:
        for number in range(4):
            parts.state.receipts.keep(Receipt(f"r{number}", "u", now, RecallStatus.EMPTY, "nothing_relevant"))
        keys = [f"k{number}" for number in range(40)]
        for key in keys:
            await parts.state.notes.keep("u", key, PastNote("n" * (50 << 10), (), 1), made_at=now)
        await parts.state.opt_outs.clear("u")  # what was kept is written with it
        assert sorted(await notes_of(parts.state.notes, "u", keys), key=keys.index) == keys[-21:]
        kept = [await parts.state.receipts.get("u", f"r{number}") is not None for number in range(4)]
        assert kept == [False, False, True, True]


@pytest.mark.parametrize(
    ("section", "text", "named"),
    [
        ("ranking", "{weights: {dense: 1.0e+9}}", "memory.ranking.weights.dense"),
        ("ranking", "{weights: {dense: .nan}}", "memory.ranking.weights.dense"),
        ("ranking", "{weights: {question: -.inf}}", "memory.ranking.weights.question"),
        ("ranking", "{weights: {recency: often}}", "memory.ranking.weights.recency"),
        ("ranking", "{bar: {slope: 0}}", "memory.ranking.bar.slope"),
        ("ranking", "{half_lives: {semantic_days: 0}}", "memory.ranking.half_lives.semantic_days"),
        ("ranking", "{neighbours: {next: -1}}", "memory.ranking.neighbours.next"),
        ("ranking", "{unspaced: {character: 1.5}}", "memory.ranking.unspaced.character"),
        ("ranking", "{weights: {densee: 1}}", "did you mean memory.ranking.weights.dense"),
        ("receipts", "{keep_days: 0}", "memory.receipts.keep_days"),
        ("receipts", "{user_receipts_max: 0}", "memory.receipts.user_receipts_max"),
        ("notes", "{user_mib: 0.5}", "memory.notes.user_mib"),
        ("working_set", "{patience_ms: 10000}", "memory.working_set.patience_ms"),
    ],
)
def test_a_value_that_cannot_be_is_refused_by_its_name(tmp_path: Path, section: str, text: str, named: str) -> None:
    with pytest.raises(BadSetting, match=re.escape(named)):
        settings_of(f"memory: {{{section}: {text}}}", tmp_path)


def test_a_part_does_not_start_with_one(tmp_path: Path) -> None:
    file = tmp_path / "memproxy.yaml"
    file.write_text("memory: {ranking: {weights: {lexical: much}}}")
    command = [sys.executable, "-m", "extproc", "filter", "--socket", str(tmp_path / "f.sock"), "--config", str(file)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "memory.ranking.weights.lexical" in done.stderr
    assert "a number from -20 to 20, got 'much'" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_weight_may_come_from_the_environment() -> None:
    settings = loader.load(None, {}, {"MEMPROXY_MEMORY_RANKING_WEIGHTS_DENSE": "0.7"})
    assert settings.memory.ranking.weights.dense == 0.7
    usual = DEFAULT_RANKING.weights
    assert msgspec.structs.replace(settings.memory.ranking.weights, dense=usual.dense) == usual


def test_without_a_word_the_ranking_is_what_its_fit_left() -> None:
    assert loader.load(None, {}, {}).memory.ranking == DEFAULT_RANKING


def meanings() -> Mapping[str, tuple[float, str]]:
    """Default and description of each weight."""
    prefix = "memory.ranking.weights."
    found = {doc.path.removeprefix(prefix): doc for doc in every_setting() if doc.path.startswith(prefix)}
    return {name: (float(str(doc.default)), doc.meaning) for name, doc in found.items()}


def test_each_default_is_the_rounded_result_of_the_fits_that_its_reason_names() -> None:
    fitted = {}
    for name, (default, meaning) in meanings().items():
        range_found = re.search(r"fitted (-?[\d.]+) to (-?[\d.]+\d)", meaning)
        if range_found:
            low, high = sorted(map(float, range_found.groups()))
            fitted[name] = low - 0.1 <= default <= high + 0.1
    assert len(fitted) == 14
    assert [name for name, is_near in fitted.items() if not is_near] == ["dense", "wanted"]  # their reasons say why


def test_every_weight_is_shown_in_one_part_of_a_receipt() -> None:
    assert sorted(name for kinds in PARTS.values() for name in kinds) == sorted(NAMES) == sorted(meanings())


@pytest.mark.parametrize(("file", "is_known"), [("{}", True), ("memory: {embedding: {model: another}}", False)])
def test_what_a_question_wants_counts_with_the_model_that_it_was_trained_on(
    tmp_path: Path, file: str, is_known: bool
) -> None:
    (tmp_path / "memproxy.yaml").write_text(file)
    settings = loader.load(tmp_path / "memproxy.yaml", {}, {})
    assert bool(from_settings.ranking_settings(settings).weights.wanted) is is_known
    assert from_settings.ranking_settings(settings).weights.dense == settings.memory.ranking.weights.dense
