"""Train what a unit does (its act) and whether it leans on what was said before, on the encoder as it is.

    python bench/reader/train_acts.py    # after train.py: four minutes

In chats most messages follow an answer, and in the texts most follow none, except those that correct one. So an
answer as short as "Okay." would tell a correction from a statement. Here half of the messages that follow none follow
such an answer, which changes nothing in them. The encoder stays as it is: two linear layers are fitted by logistic
regression on what it makes of units and clauses, in 8 bits, as production sees them. Seeded.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import texts as corpus
import torch
from examples import IGNORED, Example, Texts
from fingerprint import CHANGES_FOLDER, ORDERS_FOLDER
from heads import WEIGHTS, Floats, encoder_of, save
from model import RARE_ACT_WEIGHT
from rich.progress import track
from texts import Leaning, Marked

from memory.adapters.models.statement_encoder import pooled_of
from memory.learn.reading.labels import ACTS
from memory.settings.loader import from_process

FOLLOWS_SHARE = 0.5  # of the messages that follow no answer
ANSWERS = {
    "ar": ("حسنًا.", "فهمت.", "شكرًا لإخباري."),
    "de": ("Okay.", "Verstanden.", "Danke, gut zu wissen."),
    "en": ("Okay.", "I see.", "Alright.", "Got it.", "Thanks for telling me.", "Understood.", "Sure!"),
    "es": ("Vale.", "Entendido.", "Gracias por contármelo."),
    "fr": ("D'accord.", "Je vois.", "Merci de me l'avoir dit."),
    "it": ("Va bene.", "Capito.", "Grazie di avermelo detto."),
    "ja": ("わかりました。", "なるほど。", "教えてくれてありがとうございます。"),
    "ko": ("알겠습니다.", "그렇군요.", "알려 줘서 고마워요."),
    "nl": ("Oké.", "Begrepen.", "Bedankt, goed om te weten."),
    "pl": ("Dobrze.", "Rozumiem.", "Dzięki za informację."),
    "pt": ("Está bem.", "Entendi.", "Obrigado por me contar."),
    "ru": ("Хорошо.", "Понятно.", "Спасибо, что сказали."),
    "zh": ("好的。", "明白了。", "谢谢告诉我。"),
}
STATES = ACTS.index("state")
STANDS_WEIGHT = 0.2  # of a message that says one thing and follows nothing, which mostly stands alone
DECAY, STEPS, SMOOTHING = 3.0, 80, 0.02


def following(messages: Sequence[Marked], rng: random.Random) -> Iterator[Marked]:
    """The messages, some of those that follow no answer behind a short one in their language."""
    for marked in messages:
        language = next((part for part in marked.source.split("_") if part in ANSWERS), "en")
        follows = not marked.before and rng.random() < FOLLOWS_SHARE
        yield replace(marked, before=rng.choice(ANSWERS[language])) if follows else marked


def fitted(inputs: Floats, labels: npt.NDArray[np.int64], shares: Floats, *, kinds: int) -> tuple[Floats, Floats]:
    """Weight and bias, shapes `(kinds, width)` and `(kinds,)`. `shares`: the weight of each row."""
    given, wanted, weight = map(torch.from_numpy, (inputs, labels, shares))
    layer = torch.nn.Linear(inputs.shape[1], kinds)
    torch.nn.init.zeros_(layer.weight)
    torch.nn.init.zeros_(layer.bias)
    optimizer = torch.optim.LBFGS(layer.parameters(), max_iter=STEPS, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        lost = (
            torch.nn.functional.cross_entropy(layer(given), wanted, reduction="none", label_smoothing=SMOOTHING)
            * weight
        ).sum()
        lost = lost + DECAY / 2 * layer.weight.square().sum()
        lost.backward()  # type: ignore[no-untyped-call]
        return lost

    optimizer.step(loss)  # type: ignore[no-untyped-call]
    return layer.weight.detach().numpy(), layer.bias.detach().numpy()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--weights", type=Path, default=WEIGHTS)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    reading = Texts()
    messages = list(following(list(corpus.all_messages()), random.Random(given.seed)))
    examples = reading.examples(messages) + reading.orders(corpus.taught_users(ORDERS_FOLDER))
    corrections = [
        Leaning(said.leans, "", ANSWERS[user.language][0], said.text)
        for user in corpus.users(CHANGES_FOLDER)
        for said in user.later
        if said.leans is not None
    ]
    leaning = reading.leanings([*corpus.leanings(), *corrections])
    encoder = encoder_of(given.weights, from_process(None, {}).models_path)

    def pooled(example: Example) -> Floats:
        hidden = encoder.hidden(example.window)
        return np.stack([pooled_of(hidden, one.first, one.stop) for one in example.judged])

    def rows(of: Sequence[Example]) -> Floats:
        with ThreadPoolExecutor() as pool:  # the encoder computes outside of the interpreter's lock
            return np.concatenate(list(track(pool.map(pooled, of), description="encoding", total=len(of))))

    said, led = rows(examples), rows(leaning)
    acts = np.array([one.labels[0] for example in examples for one in example.judged])
    rare = np.where((acts == ACTS.index("none")) | (acts == STATES), 1.0, RARE_ACT_WEIGHT).astype(np.float32)
    leans = np.array([one.labels[-1] for example in leaning for one in example.judged])
    alone = np.array([len(example.judged) == 2 for example in examples for _ in example.judged]) & (acts == STATES)
    stands = np.concatenate([np.ones(len(leans)), np.full(int(alone.sum()), STANDS_WEIGHT)]).astype(np.float32)
    assert IGNORED not in leans
    heads = {
        "act": fitted(said, acts, rare, kinds=len(ACTS)),
        "leans": fitted(
            np.concatenate([led, said[alone]]),
            np.concatenate([leans, np.zeros(int(alone.sum()), dtype=np.int64)]),
            stands,
            kinds=2,
        ),
    }
    save(heads, given.weights, acts_seed=given.seed)


if __name__ == "__main__":
    main()
