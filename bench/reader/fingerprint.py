"""The fingerprint of the training texts, which the packaged weights record."""

from __future__ import annotations

import hashlib
from pathlib import Path

FOLDER = Path(__file__).parent / "texts"
LANGUAGES_FOLDER = Path(__file__).parent / "languages"  # texts in nine more languages, and more in Chinese
FRAMES_FILE = Path(__file__).parent / "frames.toml"  # what only the frame head learns from, after the encoder
PAIRS_FOLDER = Path(__file__).parent / "pairs"  # what only the pair head learns from, after the encoder


def fingerprint(*folders: Path) -> str:
    """Of the texts in these folders, and of these files."""
    digest = hashlib.sha256()
    for folder in folders:
        for path in [folder] if folder.is_file() else sorted((*folder.glob("*.txt"), *folder.glob("*.tsv"))):
            digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()
