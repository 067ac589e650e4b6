"""Fits what all vectors of the packaged embedding model have in common, which its preparation takes out of them.

    python bench/centre.py     # two minutes on one core; writes memory/adapters/models/centre.npz

Two texts that have nothing to do with each other have a cosine of 0.79 to 0.85 with this model, depending on their
language: their common part is large, and says nothing. It is the mean of all texts, and what tells their languages
apart. Without both, unrelated texts are at 0 in every language, and a cosine means the same in each.

The texts are those that the reader is trained on, as many of each language. Prints the medians before and after.
"""

from __future__ import annotations

import random
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.progress import track
from rich.table import Table

from memory.adapters.models import packaged_encoder
from memory.adapters.models.packaged_encoder import CENTRE, PROMPTS, Archive, Centre
from memory.adapters.models.sentence_pieces import SentencePieces

sys.path.insert(0, str(Path(__file__).parent / "reader"))
import texts as corpus
from fingerprint import LANGUAGES_FOLDER

TEXTS_PER_LANGUAGE = 60
CHARACTERS_MAX = 160
DIRECTIONS = 5  # in which languages differ; more of them cost recall
SEED = 3
LANGUAGES = ("ar", "de", "en", "es", "fr", "it", "ja", "ko", "nl", "pl", "pt", "ru", "zh")

Floats = npt.NDArray[np.float32]


def sampled() -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for marked in (*corpus.messages(), *corpus.messages(LANGUAGES_FOLDER)):
        language = marked.source.partition("_")[0]
        if language in LANGUAGES and len(marked.text) <= CHARACTERS_MAX:
            found[language].append(marked.text)
    chosen = random.Random(SEED)
    return {language: chosen.sample(found[language], TEXTS_PER_LANGUAGE) for language in LANGUAGES}


def embedded(texts: list[str], archive: Archive) -> Floats:
    """In single precision, before anything is taken out."""
    import torch

    torch.set_num_threads(1)  # several of them wait for each other where cores are shared
    model, pieces = archive.bert("sdpa"), SentencePieces(archive.sentence_pieces())
    found = np.zeros((len(texts), archive.shape.width), dtype=np.float32)
    for place, text in enumerate(track(texts, description="embedding", console=Console(stderr=True))):
        with torch.no_grad():
            hidden = model(torch.tensor([[pieces.start, *pieces.ids(text), pieces.end]])).last_hidden_state
        found[place] = torch.nn.functional.normalize(hidden[0].mean(0), dim=-1).numpy()
    return found


def fitted(vectors: dict[str, Floats]) -> Centre:
    means = np.stack([of_language.mean(axis=0) for of_language in vectors.values()])
    _, _, directions = np.linalg.svd(means - means.mean(axis=0), full_matrices=False)
    return Centre(means.mean(axis=0), directions[:DIRECTIONS])


def between(questions: Floats, texts: Floats) -> float:
    """The median cosine of what was written by different people."""
    cosines = questions @ texts.T
    return float(np.median(cosines[~np.eye(len(cosines), dtype=bool)]))


def without(centre: Centre, vectors: Floats) -> Floats:
    """Unit vectors of what is left, shape `(texts, width)`."""
    left = vectors - centre.mean
    left = left - left @ centre.directions.T @ centre.directions
    return np.asarray(left / np.linalg.norm(left, axis=-1, keepdims=True), dtype=np.float32)


def main() -> None:
    chosen = sampled()
    archive = Archive()
    prompts = [PROMPTS["query"], PROMPTS["document"]]
    vectors = embedded([prompt + text for some in chosen.values() for prompt in prompts for text in some], archive)
    by_language = dict(zip(chosen, np.split(vectors, len(chosen)), strict=True))
    centre = fitted(by_language)
    with (Path(packaged_encoder.__file__).parent / CENTRE).open("wb") as file:
        np.savez(file, mean=centre.mean, directions=centre.directions)
    table = Table("language", "unrelated, before", "after")
    for language, found in by_language.items():
        after = without(centre, found)
        halves = TEXTS_PER_LANGUAGE
        table.add_row(
            language, f"{between(found[:halves], found[halves:]):.2f}", f"{between(after[:halves], after[halves:]):.2f}"
        )
    Console().print(table)


if __name__ == "__main__":
    main()
