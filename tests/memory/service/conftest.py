from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from library_parts import Parts, library_parts


@pytest.fixture
async def parts(tmp_path: Path) -> AsyncIterator[Parts]:
    async with library_parts(tmp_path) as opened:
        yield opened
