"""Score what the trained reader takes for replaced, on the users of changes/ and pairs/ on whom nothing was trained.

    python bench/reader/score_changes.py    # more than seven minutes

Each thing that they say later is compared with all of their facts, as the worker compares it. Prints which share of the
facts that it ends is found, and how much of what is found it ends, with and without their competition.
"""

from __future__ import annotations

import argparse
import asyncio
from dataclasses import replace
from pathlib import Path

import texts as corpus
from fingerprint import CHANGES_FOLDER, PAIRS_FOLDER
from heads import WEIGHTS, encoder_of
from rich.progress import track

from memory.adapters.models import embedding_model
from memory.adapters.models.onnx_embedder import OnnxModel
from memory.learn.consolidation import REPLACES_MIN
from memory.learn.reading.trained import TrainedReader
from memory.ports import PairRelation, StatementPair
from memory.settings import EmbeddingSettings
from memory.settings.loader import from_process


async def replaced(reader: TrainedReader, pairs: list[StatementPair]) -> set[int]:
    verdicts = await reader.relate(pairs)
    return {
        place
        for place, one in enumerate(verdicts)
        if one.relation is PairRelation.REPLACES and one.confidence >= REPLACES_MIN
    }


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--weights", type=Path, default=WEIGHTS)
    models = from_process(None, {}).models_path
    reader = TrainedReader(encoder_of(parser.parse_args().weights, models))
    model = OnnxModel(embedding_model.prepared(EmbeddingSettings().model, models))
    counts = {"alone": [0, 0, 0], "competing": [0, 0, 0]}  # found rightly, found, meant
    users = [*corpus.users(CHANGES_FOLDER), *corpus.users(PAIRS_FOLDER)]
    for user in track([one for one in users if one.is_kept_out], description="comparing"):
        vectors = [model.vector(model.prefixes.document + fact) for fact in user.facts]
        for said in user.later:
            asked = model.vector(model.prefixes.document + said.text)
            facts = zip(user.facts, vectors, strict=True)
            competing = [StatementPair(fact, said.text, likeness=float(vector @ asked)) for fact, vector in facts]
            alone = [replace(pair, likeness=None) for pair in competing]
            for name, pairs in (("alone", alone), ("competing", competing)):
                found = await replaced(reader, pairs)
                for place, count in enumerate((len(found & said.ends), len(found), len(said.ends))):
                    counts[name][place] += count
    for name, (right, found_in_all, meant) in counts.items():
        print(
            f"{name}: {right / meant:.3f} of {meant} facts found, {right / found_in_all:.3f} of what is found is meant"
        )


if __name__ == "__main__":
    asyncio.run(main())
