"""Folders of models that are made ready once: whole or not at all, by a process of their own.

Making one ready takes torch, seconds and hundreds of megabytes, none of which a running part wants; so it happens in a
process that is gone afterwards.
"""

from __future__ import annotations

import multiprocessing
import shutil
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path


def made_once(folder: Path, make: Callable[[Path], None]) -> Path:
    """The folder; where it is missing, `make` fills one elsewhere first. A start that is cut short leaves nothing."""
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as apart:
            apart.submit(partial(make, draft)).result()
        draft.rename(folder)
    except OSError:
        if not folder.is_dir():  # else another process was faster
            raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return folder


__all__ = ["made_once"]
