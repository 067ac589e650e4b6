"""Train what tells a change from two facts that both stand, on top of the encoder as it ships.

    python bench/reader/train_pairs.py              # after train.py, or after a change of pairs/: 20 minutes
    python bench/reader/train_pairs.py --holdout 0.2  # without a fifth of pairs/ and cards/, and scored on it as well

The encoder stays as it is, so nothing changes in how messages are read: its hidden states are computed once for every
pair, in 8 bits, as production sees them, and two small layers are trained on them, once for each seed: what is kept
is the mean of their logits, since single pairs near the bar fall either way in one training.

Scored on the users of changes/ and pairs/ on whom nothing is trained.

Learnt from four kinds of pairs: those in texts/, of the cards, and of users' facts with what they say later (news, or
orders to forget), which the encoder was trained on as well, and which compete: seldom are two of ten over at once;
those in pairs/, written in the manner of long chats; and statements of different messages that are near each other,
which both stand. The last kind is what most pairs of real chats are, and what nobody writes.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import texts as corpus
import torch
from examples import standing_together, stated_facts
from fingerprint import CHANGES_FOLDER, ORDERS_FOLDER, PAIRS_FOLDER, fingerprint
from heads import WEIGHTS, Floats, competition_loss, encoder_of, save
from rich.progress import track
from texts import Pair
from torch import nn

from memory.adapters.models import embedding_model
from memory.adapters.models.onnx_embedder import OnnxModel
from memory.learn.reading.labels import PAIR_RELATIONS
from memory.model import is_single_valued
from memory.settings import EmbeddingSettings
from memory.settings.loader import from_process

NEAR = (0.45, 0.9)  # cosine of two statements that are near each other, and not the same
NEAREST_MAX = 40
IDENTICAL_EVERY = 16  # facts that say the same as themselves, which nobody writes either
STANDING_WEIGHT = 0.3  # of a pair that nobody wrote, beside a written one
CHAT_WEIGHT = 2.0  # of a pair in pairs/
CHANGE_WEIGHT = 1.0  # of a fact and what the same user says later
ORDER_WEIGHT = 0.5  # of a fact and an order to forget, most of which do not belong together
COMPETITION_SHARE, COMPETING_AT_ONCE = 0.6, 8  # of the loss of what a user says later, whose facts compete, in a step
CARD_WEIGHT = 0.5  # of a pair of a card, whose wordings are alike
WIDTH, DROPOUT, DROPOUT_INPUT = 128, 0.3, 0.09
SEEDS = (0, 1, 2)
EPOCHS, BATCH, RATE, DECAY, SMOOTHING = 12, 128, 3e-3, 0.02, 0.02
BARS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8)  # shares of "replaces" from which a pair counts as a change


def near_statements(seed: int, models: Path) -> list[Pair]:
    """Of each statement in texts/, the nearest one of another message about the same person, as "unrelated".

    Two of one attribute that has one value at a time are left out: of one person, one would replace the other.
    """
    units = stated_facts(corpus.all_messages())
    model = OnnxModel(embedding_model.prepared(EmbeddingSettings().model, models))
    vectors = np.stack(
        [model.vector(model.prefixes.document + unit.text) for unit in track(units, description="embedding statements")]
    )
    rng, found = random.Random(seed), dict[tuple[str, str], None]()
    for row, unit in enumerate(units):
        likeness = vectors @ vectors[row]
        for other in np.argsort(-likeness, kind="stable")[:NEAREST_MAX]:
            second = units[int(other)]
            if second.message == unit.message or second.span.relation != unit.span.relation:
                continue
            is_one_field = second.span.attribute == unit.span.attribute and is_single_valued(unit.span.attribute)
            pair = (unit.text, second.text) if rng.random() < 0.5 else (second.text, unit.text)
            if is_one_field or not NEAR[0] <= likeness[other] <= NEAR[1] or pair[::-1] in found:
                continue
            found[pair] = None
            break
    return [Pair("unrelated", "", older, newer) for older, newer in found]


def trained(
    inputs: Floats, labels: Sequence[int], weights: Sequence[float], competing: Sequence[range], *, seed: int
) -> nn.Sequential:
    """The two layers. `inputs`: shape `(pairs, 5 * width of the encoder)`. `competing`: pairs of one thing said."""
    torch.manual_seed(seed)
    given, wanted = torch.from_numpy(inputs), torch.tensor(labels)
    share = torch.tensor(weights, dtype=torch.float32)
    net = nn.Sequential(
        nn.Dropout(DROPOUT_INPUT),
        nn.Linear(given.shape[1], WIDTH),
        nn.ReLU(),
        nn.Dropout(DROPOUT),
        nn.Linear(WIDTH, len(PAIR_RELATIONS)),
    )
    optimizer = torch.optim.AdamW(net.parameters(), lr=RATE / 3, weight_decay=DECAY)
    steps = EPOCHS * -(-len(given) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=steps + 1)
    net.train()
    for _ in range(EPOCHS):
        for batch in torch.randperm(len(given)).split(BATCH):
            losses = nn.functional.cross_entropy(
                net(given[batch]), wanted[batch], reduction="none", label_smoothing=SMOOTHING
            )
            groups = [competing[place] for place in torch.randint(len(competing), (COMPETING_AT_ONCE,))]
            rows = torch.tensor([row for group in groups for row in group])
            beside = competition_loss(net(given[rows]), wanted[rows], list(map(len, groups)))
            optimizer.zero_grad()
            loss = (losses * share[batch]).mean() + COMPETITION_SHARE * beside
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
    return net.eval()


@torch.no_grad()
def mean_of(nets: Sequence[nn.Sequential]) -> nn.Sequential:
    """Two layers, as wide as those of all together, that give the mean of their logits."""
    inner, outer = ([net[place] for net in nets] for place in (1, 4))
    sides = nn.Linear(inner[0].in_features, sum(layer.out_features for layer in inner))
    pair = nn.Linear(sides.out_features, len(PAIR_RELATIONS))
    sides.weight.copy_(torch.cat([layer.weight for layer in inner]))
    sides.bias.copy_(torch.cat([layer.bias for layer in inner]))
    pair.weight.copy_(torch.cat([layer.weight for layer in outer], dim=1) / len(nets))
    pair.bias.copy_(torch.stack([layer.bias for layer in outer]).mean(0))
    return nn.Sequential(sides, nn.ReLU(), pair)


@torch.no_grad()
def scored(net: nn.Sequential, inputs: Floats, labels: Sequence[int]) -> Iterator[str]:
    """How many changes are seen at each bar, and how many of the other pairs are taken for one."""
    shares = net(torch.from_numpy(inputs)).softmax(-1).numpy()
    replaces = PAIR_RELATIONS.index("replaces")
    is_change = np.array(labels) == replaces
    yield f"{len(labels)} pairs kept out: {(shares.argmax(-1) == np.array(labels)).mean():.3f} told right"
    for bar in BARS:
        seen, false = shares[is_change, replaces] >= bar, shares[~is_change, replaces] >= bar
        yield f"  bar {bar:.2f}: {false.mean():.3f} false, {seen.mean():.3f} of changes seen"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--weights", type=Path, default=WEIGHTS)
    parser.add_argument("--holdout", type=float, default=0.0, help="share of the older statements, and of the cards")
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS, metavar="N", help="one training for each")
    given = parser.parse_args()
    models = from_process(None, {}).models_path
    chats, rng = list(corpus.pairs(PAIRS_FOLDER)), random.Random(given.seeds[0])
    olders = sorted({pair.older for pair in chats})
    held = frozenset(rng.sample(olders, int(len(olders) * given.holdout)))
    standing = [*standing_together(corpus.all_messages()), *near_statements(given.seeds[0], models)]
    facts = list(corpus.cards())
    held_facts = frozenset(rng.sample(range(len(facts)), int(len(facts) * given.holdout)))
    seen = [(pair, 1.0) for pair in corpus.written_pairs()]
    competing: list[range] = []
    users = ((ORDER_WEIGHT, ORDERS_FOLDER), (CHANGE_WEIGHT, CHANGES_FOLDER), (CHANGE_WEIGHT, PAIRS_FOLDER))
    for weight, folder in users:
        for pairs in (group for user in corpus.taught_users(folder) for group in user.competing()):
            competing.append(range(len(seen), len(seen) + len(pairs)))
            seen += [(pair, weight) for pair in pairs]
    seen += [(pair, CARD_WEIGHT) for n, card in enumerate(facts) if n not in held_facts for pair in card.pairs]
    seen += [(pair, STANDING_WEIGHT) for pair in standing]
    stated = stated_facts(corpus.all_messages())[::IDENTICAL_EVERY]
    seen += [(Pair("same", "", fact.text, fact.text), STANDING_WEIGHT) for fact in stated]
    seen += [(pair, CHAT_WEIGHT) for pair in chats if pair.older not in held]
    encoder = encoder_of(given.weights, models)

    def inputs_of(pairs: Sequence[Pair]) -> Floats:
        with ThreadPoolExecutor() as pool:  # the encoder computes outside of the interpreter's lock
            sides = pool.map(lambda pair: encoder.sides(pair.older, pair.newer), pairs)
            return np.stack(list(track(sides, description="encoding pairs", total=len(pairs))))

    inputs, weights = inputs_of([pair for pair, _ in seen]), [weight for _, weight in seen]
    labels = [PAIR_RELATIONS.index(pair.relation) for pair, _ in seen]
    net = mean_of([trained(inputs, labels, weights, competing, seed=seed) for seed in given.seeds])
    changing = [*corpus.users(CHANGES_FOLDER), *corpus.users(PAIRS_FOLDER)]
    of_changes = [pair for user in changing if user.is_kept_out for pair in user.pairs()]
    of_chats = [pair for pair in chats if pair.older in held]
    of_cards = [pair for n in sorted(held_facts) for pair in facts[n].pairs]
    for name, kept_out in (("changes/", of_changes), ("pairs/", of_chats), ("cards/", of_cards)):
        if kept_out:
            wanted = [PAIR_RELATIONS.index(pair.relation) for pair in kept_out]
            print(name, *scored(net, inputs_of(kept_out), wanted), sep="\n")
    if not held:
        layers = {"sides": net[0], "pair": net[2]}
        arrays = {name: (one.weight.detach().numpy(), one.bias.detach().numpy()) for name, one in layers.items()}
        save(arrays, given.weights, pairs=fingerprint(PAIRS_FOLDER), pairs_seeds=given.seeds)


if __name__ == "__main__":
    main()
