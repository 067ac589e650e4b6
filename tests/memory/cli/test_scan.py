"""`memproxy erase --scan` on a data directory."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from memory.cli import main

UNREAD = "broken"  # its first byte cannot be read, also not by root


def test_a_look_tells_which_files_hold_a_text_and_which_could_not_be_read(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("Ada likes green tea", encoding="utf-8")
    (tmp_path / "other").write_text("nothing", encoding="utf-8")
    (tmp_path / UNREAD).symlink_to("/proc/self/mem")
    config = tmp_path.parent / "settings.yaml"
    config.write_text(f"data_dir: {json.dumps(str(tmp_path))}", encoding="utf-8")
    words = ("erase", "--config", str(config), "--scan")
    found = CliRunner().invoke(main.commands, [*words, "green tea", "--json"])
    assert found.exit_code == 1, found.output
    seen = json.loads(found.stdout)
    assert (seen["files"], seen["found_in"]) == (2, ["log"])
    assert [reason.partition(":")[0] for reason in seen["not_searched"]] == [UNREAD]
    missing = CliRunner().invoke(main.commands, [*words, "black tea"])
    assert missing.exit_code == 0, missing.output
    assert f"looked through 2 files, 26 bytes, in {tmp_path}: nothing" in missing.output
    assert f"not searched: {UNREAD}" in missing.output
