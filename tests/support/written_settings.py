"""Settings as an operator writes them, with the packaged models."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from memory.settings import Settings
from memory.settings.loader import from_process, load


def written_settings(folder: Path, **written: Any) -> Settings:
    file = folder / "settings.yaml"
    file.write_text(json.dumps({"models_dir": str(from_process(None, {}).models_path), **written}))
    return load(file, {}, {})


def named_model(url: str, **fields: Any) -> Mapping[str, Any]:
    """One of `external_models`: the model "m" that reads, at this address."""
    address, _, port = url.rpartition(":")
    endpoint = {"address": address, "port": int(port)}
    return {"model_role": "memory_extraction", "llm_model_name": "m", "llm_endpoint": endpoint, **fields}
