"""CI demands every part that tests start: a skip fails there. A machine that lacks one still runs the others."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from all_parts import OPTION

ROOT = Path(__file__).resolve().parent.parent
CI = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
SKIPPED_BY = {
    "mark": 'import pytest\n@pytest.mark.skipif(True, reason="NO PART")\ndef test_it() -> None: ...\n',
    "test": 'import pytest\ndef test_it() -> None:\n    pytest.skip("NO PART")\n',
    "fixture": 'import pytest\n@pytest.fixture\ndef part():\n    pytest.skip("NO PART")\ndef test_it(part): ...\n',
    "module": 'import pytest\npytest.skip("NO PART", allow_module_level=True)\n',
    "import": 'import pytest\npytest.importorskip("no_such_module", reason="NO PART")\n',
}


def outcome(folder: Path, test: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Of a run that has this one test."""
    (folder / "test_one.py").write_text(test, encoding="utf-8")
    words = [sys.executable, "-m", "pytest", "-p", "all_parts", "-rs", "--rootdir", str(folder), "-c", "/dev/null"]
    words += ["-p", "no:cacheprovider", *options, "test_one.py"]
    environment = {"PYTHONPATH": str(ROOT / "tests" / "support")}
    return subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("skipped_by", SKIPPED_BY)
def test_a_skip_fails_where_every_part_is_demanded(skipped_by: str, tmp_path: Path) -> None:
    demanded = outcome(tmp_path, SKIPPED_BY[skipped_by], OPTION)
    assert demanded.returncode in {1, 2}, demanded.stdout  # 2: a module that cannot be collected
    assert "NO PART" in demanded.stdout


def test_elsewhere_a_skip_is_a_line_at_the_end_of_the_run(tmp_path: Path) -> None:
    tolerated = outcome(tmp_path, SKIPPED_BY["test"])
    assert tolerated.returncode == 0, tolerated.stdout
    assert "NO PART" in tolerated.stdout


def test_an_expected_failure_is_no_missing_part(tmp_path: Path) -> None:
    test = "import pytest\n@pytest.mark.xfail\ndef test_it() -> None:\n    raise AssertionError\n"
    assert outcome(tmp_path, test, OPTION).returncode == 0


def test_ci_demands_every_part_and_tolerates_no_failure() -> None:
    commands = [line.partition(" #")[0].strip() for line in CI.splitlines()]
    assert [line for line in commands if line.startswith("make test")] == [f'make test ARGS="{OPTION} --durations=30"']
    assert "make milvusserver" in commands
    assert "set -euo pipefail" in commands
