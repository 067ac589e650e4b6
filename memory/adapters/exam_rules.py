"""How long results of exams count, on every adapter, and how many there are."""

from __future__ import annotations

from memory.ports.reading import ExamKey

PASSED_SECONDS_MAX = 30 * 86_400.0
FAILED_SECONDS_MAX = 86_400.0
RESULTS_MAX = 1_000
NAME_CHARACTERS_MAX = 256  # of a model, a server, a version


def named(key: ExamKey) -> tuple[str, str, str]:
    model, server, version = (
        name[:NAME_CHARACTERS_MAX].encode(errors="replace").decode() for name in (key.model, key.server, key.version)
    )
    return model, server, version
