"""The fingerprint of the training texts, which the packaged weights record."""

from __future__ import annotations

import hashlib
from pathlib import Path

FOLDER = Path(__file__).parent / "texts"
LANGUAGES_FOLDER = Path(__file__).parent / "languages"  # texts in nine more languages, and more in Chinese
CARDS_FOLDER = Path(__file__).parent / "cards"  # short facts, each with what replaces it and what does not
ORDERS_FOLDER = Path(__file__).parent / "orders"  # users' facts, and orders to forget with the facts that they mean
CHANGES_FOLDER = Path(__file__).parent / "changes"  # users' facts, and news with the facts that they end or repeat
# What the encoder is trained on
READING_FOLDERS = (FOLDER, LANGUAGES_FOLDER, CARDS_FOLDER, ORDERS_FOLDER, CHANGES_FOLDER)
LEANING_FILE = Path(__file__).parent / "leaning.tsv"  # what only the head for leaning learns from, after the encoder
REACH_FILE = Path(__file__).parent / "reach.tsv"  # what only the head for how far orders reach learns from
ASKING_FILE = Path(__file__).parent / "asking.tsv"  # what only the head for questions learns from, after the encoder
FRAMES_FILE = Path(__file__).parent / "frames.toml"  # what only the frame head learns from, after the encoder
PAIRS_FOLDER = Path(__file__).parent / "pairs"  # what only the pair head learns from, after the encoder


def fingerprint(*folders: Path) -> str:
    """Of the texts in these folders, and of these files."""
    digest = hashlib.sha256()
    for folder in folders:
        texts = (*folder.glob("*.txt"), *folder.glob("*.tsv"), *folder.glob("*.jsonl"))
        for path in [folder] if folder.is_file() else sorted(texts):
            digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()
