"""From settings to what shadow mode and holdouts do."""

from __future__ import annotations

import pytest

from memory.model.arms import HoldoutRule
from memory.processes.from_settings import is_recording, recall_settings, worker_settings
from memory.settings import HoldoutSettings, MemorySettings, Settings, ShadowSettings


@pytest.mark.parametrize(
    ("memory", "records"),
    [
        (MemorySettings(), True),
        (MemorySettings(shadow=ShadowSettings(enabled=True)), True),
        (MemorySettings(shadow=ShadowSettings(enabled=True, learns=False)), False),
        (MemorySettings(shadow=ShadowSettings(learns=False)), True),
        (MemorySettings(shadow=ShadowSettings(enabled=True), auto_store=False), False),
        (MemorySettings(enabled=False), False),
    ],
)
def test_shadow_mode_learns_unless_it_must_not(memory: MemorySettings, *, records: bool) -> None:
    assert is_recording(Settings(memory=memory)) is records


@pytest.mark.parametrize(
    ("is_shadow", "share", "compares"), [(False, 0.1, True), (True, 0.1, False), (False, 0, False)]
)
def test_arms_are_compared_only_where_notes_are_sent(*, is_shadow: bool, share: float, compares: bool) -> None:
    memory = MemorySettings(shadow=ShadowSettings(enabled=is_shadow), holdout=HoldoutSettings(share=share, salt="x"))
    assert worker_settings(Settings(memory=memory)).compares_arms is compares
    recall = recall_settings(Settings(memory=memory))
    assert (recall.is_shadow, recall.holdout) == (is_shadow, HoldoutRule(share, "x"))
