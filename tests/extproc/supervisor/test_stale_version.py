"""Somebody upgrades and does not restart: doctor names every part of the running product that is of the old release."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from product import Product, running_product
from upstream import RecordingUpstream

from memory.runtime.release import RUNNING

MEMPROXY = str(Path(sys.executable).with_name("memproxy"))
OLD = "0.0.9"


def doctor_on(product: Product, folder: Path) -> dict[str, dict[str, str]]:
    """As a shell starts it, with what is installed by then."""
    config = folder / "doctor.yaml"
    ports = dict.fromkeys(("port", "api_port", "envoy_admin_port", "metrics_port"), 0)
    config.write_text(json.dumps({"data_dir": str(product.data_dir), "models_dir": str(folder / "models"), **ports}))
    ended = subprocess.run(
        [MEMPROXY, "doctor", "--json", "--config", str(config)], capture_output=True, text=True, timeout=120
    )
    return {one["check"]: one for one in json.loads(ended.stdout)["checks"]}


def named(says: str) -> list[str]:
    return sorted(re.findall(rf"(\w+) \(pid \d+\) runs {re.escape(OLD)}", says))


@pytest.mark.slow("starts the whole product, and restarts its parts")
def test_parts_of_an_older_release_are_named_until_they_are_restarted(
    shared_upstream: RecordingUpstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The older release is today's code under an older version's name: what installers leave is read, not the code."""
    metadata = tmp_path / "site" / f"memproxy-{OLD}.dist-info" / "METADATA"
    metadata.parent.mkdir(parents=True)
    metadata.write_text(f"Metadata-Version: 2.1\nName: memproxy\nVersion: {OLD}\n")
    inherited = os.environ  # noqa: TID251 - what a shell would pass on
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path / "site"), inherited.get("PYTHONPATH", "")]))
    with running_product(tmp_path / "data", upstream=shared_upstream.url) as product:
        metadata.unlink()
        metadata.parent.rmdir()  # from now on today's version is what is installed
        found = doctor_on(product, tmp_path)
        assert (found["version"]["level"], named(found["version"]["says"])) == ("warn", ["api", "filter", "worker"])
        assert f"{RUNNING} is installed" in found["version"]["says"]
        assert (found["memproxy up"]["level"], OLD in found["memproxy up"]["says"]) == ("warn", True)
        words = [MEMPROXY, "restart", "--json", "--data-dir", str(product.data_dir)]
        ended = subprocess.run(words, check=True, capture_output=True, text=True, timeout=300)
        assert json.loads(ended.stdout)["state"] == "done"  # the lines of its progress are on standard error
        assert "restarting" in ended.stderr
        found = doctor_on(product, tmp_path)
        assert found["version"]["says"] == f"{RUNNING}, run by 1 api, 1 filter, 1 worker"
        assert "`memproxy restart` renews its parts only" in found["memproxy up"]["advice"]
