"""From a configuration file to what parts do: bounds bound, a bad value stops the start."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from note_lookup import notes_of
from prometheus_client import CollectorRegistry

from memory.adapters.sql.notes import NoteLimits
from memory.adapters.sql.receipts import ReceiptLimits
from memory.errors import BadSetting
from memory.model import PastNote, RecallStatus, Receipt
from memory.model.arms import HoldoutRule
from memory.ports import LearnDue
from memory.processes import composition, from_settings
from memory.recall.ranking import needed
from memory.recall.ranking.weights import NAMES, PARTS
from memory.recall.working_set.working_sets import WorkingSetLimits
from memory.settings import Settings, loader

DAY, MIB = 86_400.0, 1 << 20
NOWHERE = "http://127.0.0.1:9"  # nothing answers there, and nothing has to


def settings_of(text: str, folder: Path) -> Settings:
    """The settings of that file, with servers that are not there."""
    file = folder / "memproxy.yaml"
    file.write_text(text, encoding="utf-8")
    folders = dict.fromkeys(("data_dir", "run_dir"), str(folder))
    return loader.load(file, {"memory.embedding.endpoint": NOWHERE, "milvus_uri": NOWHERE, **folders}, {})


def arms(settings: Settings) -> tuple[bool, bool, HoldoutRule]:
    """Whether arms are compared, whether notes are withheld from all, and from whom."""
    recall = from_settings.recall_settings(settings)
    return from_settings.worker_settings(settings).compares_arms, recall.is_shadow, recall.holdout


@pytest.mark.parametrize(
    ("handed", "text", "expected"),
    [
        (from_settings.receipt_limits, "receipts: {}", ReceiptLimits()),
        (from_settings.receipt_limits, "receipts: {keep_days: 3, total_mib: 1}", ReceiptLimits(3 * DAY, 1_000, MIB)),
        (from_settings.note_limits, "notes: {}", NoteLimits()),
        (from_settings.note_limits, "notes: {total_mib: 3}", NoteLimits(3 * MIB, 4 * MIB)),
        (
            from_settings.working_set_limits,
            "working_set: {user_memories_max: 7, total_mib: 3, patience_ms: 40}",
            WorkingSetLimits(7, 3 * MIB, 0.04),
        ),
        (from_settings.learn_due, "learn: {}", LearnDue(10, 30.0, 10, 4_000)),
        (from_settings.learn_due, "extraction_batch_size: 3", LearnDue(3, 30.0, 3, 4_000)),
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


async def test_what_is_kept_keeps_to_the_bounds_that_are_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(composition, "REGISTRY", CollectorRegistry())  # the process's own takes one set of metrics only
    now = composition.SYSTEM_CLOCK()
    text = "filters: 2\nmemory: {receipts: {keep_days: 1}, notes: {total_mib: 1}}"
    async with composition.open_parts(settings_of(text, tmp_path)) as parts:
        for number, days in enumerate((3, 2, 0, 0)):
            made_at = now - days * DAY
            parts.stores.receipts.keep(Receipt(f"r{number}", "u", made_at, RecallStatus.EMPTY, "nothing_relevant"))
        keys = [f"k{number}" for number in range(40)]
        for key in keys:
            await parts.stores.notes.keep("u", key, PastNote("n" * (50 << 10), (), 1), made_at=now)
        await parts.stores.opt_outs.clear("u")  # what was kept is written with it
        assert sorted(await notes_of(parts.stores.notes, "u", keys), key=keys.index) == keys[-21:]
        kept = [await parts.stores.receipts.get("u", f"r{number}") is not None for number in range(4)]
        assert kept == [False, False, True, True]


def test_a_part_does_not_start_with_one(tmp_path: Path) -> None:
    file = tmp_path / "memproxy.yaml"
    file.write_text("memory: {working_set: {patience_ms: much}}")
    command = [sys.executable, "-m", "extproc", "filter", "--socket", str(tmp_path / "f.sock"), "--config", str(file)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "memory.working_set.patience_ms" in done.stderr
    assert "got 'much'" in done.stderr
    assert "Traceback" not in done.stderr


def test_every_weight_is_shown_in_one_part_of_a_receipt() -> None:
    assert sorted(name for kinds in PARTS.values() for name in kinds) == sorted(NAMES)


def test_what_a_message_needs_is_known_for_the_model_that_it_was_trained_on(tmp_path: Path) -> None:
    (tmp_path / "memproxy.yaml").write_text(f"models_dir: {tmp_path}")
    packaged = loader.load(tmp_path / "memproxy.yaml", {}, {})
    assert from_settings.ranking_weights(packaged).needs is not None
    assert from_settings.needs_file(packaged) is None
    another = loader.load(tmp_path / "memproxy.yaml", {"memory.embedding.model": "another"}, {})
    assert from_settings.ranking_weights(another).needs is None
    trained = from_settings.needs_file(another)
    assert trained is not None
    needed.write(needed.packaged(), trained)
    assert from_settings.ranking_weights(another).needs is not None
    np.savez(trained, of_question=np.zeros(3))
    of_a_version_before = trained.read_bytes()
    for content in (b"", b"PK", b"\x93NUMPY", of_a_version_before):
        trained.write_bytes(content)
        with pytest.raises(BadSetting, match=r"train_needed.py --config` again"):
            from_settings.ranking_weights(another)
