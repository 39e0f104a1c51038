"""Held-out words of categories: does a search by three words of a category find vectors that list others of it?

Each category's words are split into groups of three, and each group is searched for. A found vector is on topic if two
other words of the category are among the first 100 words of its list (lens dot). Figures are the share of the first 20
vectors, by the paper's score and by fit. Half of the categories, by a seeded draw, were held back while the fit was
tried out; bounds are of these.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.figures import Figure, seconds
from lexiscope.app.weights import load_engine
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.tokens import whole_words
from lexiscope.precompute.live.engine import Engine
from lexiscope.precompute.live.wire.asks import FIT_KINDS, SeedRank, SeedsAsk
from lexiscope.precompute.live.wire.grammar import Term
from lexiscope.precompute.shape import SIDES

WORDS_OF_A_SEARCH, FOUND, LISTED, OTHERS = 3, 20, 100, 2
LEAST_WORDS = 8  # of a category that are single tokens
SPLIT_SEED = 2022
WAYS: dict[str, tuple[SeedRank, int]] = {
    "the paper's score": ("score", 0), "fit, words alone": ("fit", 0), "fit": ("fit", 1),
}  # fmt: skip
BOUNDS = {"ff_value": 1.3, "ff_key": 1.5}  # how many times as many by fit as by the paper's score
ROUNDS = 9
OTHER_MODEL = "minilm"

CATEGORIES = {
    "animals of a farm": "horse cow pig sheep goat chicken duck donkey rabbit lamb bull dog",
    "wild animals": "lion tiger elephant bear wolf monkey deer snake crocodile leopard fox shark",
    "birds": "eagle owl crow robin sparrow hawk penguin pigeon swan parrot falcon turkey",
    "fruit": "apple orange banana grape lemon cherry peach mango strawberry pear plum pineapple",
    "vegetables": "carrot onion potato tomato spinach cabbage garlic pepper bean lettuce cucumber broccoli",
    "drinks": "coffee tea wine beer juice milk soda vodka whiskey champagne water cocktail",
    "colours": "red blue green yellow purple orange pink brown black white gray violet",
    "parts of the body": "arm leg hand foot knee elbow shoulder ankle wrist finger neck hip",
    "organs": "heart lung liver kidney brain stomach bladder intestine skin spleen pancreas colon",
    "diseases": "cancer diabetes asthma malaria pneumonia arthritis flu tuberculosis hepatitis measles stroke infection",  # noqa: E501
    "instruments": "guitar piano violin drum flute trumpet bass saxophone harp organ keyboard clarinet",
    "sports": "football basketball tennis baseball hockey golf soccer cricket rugby volleyball swimming boxing",
    "clothes": "shirt pants dress jacket coat hat shoes skirt socks gloves sweater boots",
    "furniture": "chair table sofa bed desk couch shelf cabinet drawer bench lamp mattress",
    "vehicles": "car truck bus train bicycle motorcycle van airplane boat ship taxi tractor",
    "countries": "France Germany Italy Spain China Japan India Brazil Canada Mexico Russia Egypt",
    "cities": "Paris London Berlin Rome Madrid Tokyo Moscow Chicago Boston Sydney Toronto Vienna",
    "states of America": "Texas California Florida Ohio Virginia Oregon Georgia Colorado Michigan Alabama Kansas Utah",
    "religions": "Christian Muslim Jewish Hindu Buddhist Catholic Islam Christianity Judaism Buddhism Protestant Hinduism",  # noqa: E501
    "family": "mother father brother sister son daughter uncle aunt cousin grandmother wife husband",
    "professions": "doctor lawyer teacher nurse engineer carpenter plumber chef pilot accountant architect dentist",
    "days": "Monday Tuesday Wednesday Thursday Friday Saturday Sunday weekend weekday yesterday tomorrow today",
    "months": "January February March April May June July August September October November December",
    "numbers": "one two three four five six seven eight nine ten eleven twelve",
    "metals": "iron copper gold silver zinc lead aluminum nickel steel titanium platinum brass",
    "planets": "Mars Venus Jupiter Saturn Earth Mercury Neptune Uranus Pluto moon asteroid comet",
    "weather": "rain snow storm wind fog thunder hurricane tornado hail drought lightning sunshine",
    "feelings": "happy sad angry afraid proud jealous lonely excited ashamed anxious bored grateful",
    "weapons": "gun rifle sword knife bomb missile pistol grenade tank spear cannon bullet",
    "programming": "python java javascript ruby perl compiler variable array string function loop code",
    "units": "meter kilometer inch mile gram kilogram pound ounce liter gallon yard foot",
    "mathematics": "algebra geometry calculus equation integer fraction theorem polynomial matrix vector derivative triangle",  # noqa: E501
    "money": "dollar euro pound bank loan credit debt mortgage tax salary profit budget",
    "law": "court judge jury lawyer attorney trial verdict crime prison defendant witness sentence",
    "military": "army navy soldier troops battle war general colonel regiment infantry commander battalion",
    "school": "student teacher classroom homework exam university college grade lecture textbook campus curriculum",
    "trees": "oak pine maple cedar birch willow palm elm ash bamboo walnut cypress",
    "fabric": "cotton silk wool leather nylon linen polyester denim velvet lace fabric cloth",
    "cooking": "boil bake fry roast grill simmer stir chop knead peel slice mince",
    "movement": "walk run jump crawl climb swim dance march hop skip stumble sprint",
}


@dataclass(frozen=True)
class Search:
    words: tuple[str, ...]
    others: NDArray[np.bool_]  # (words of the vocabulary,) which are other words of the category


def figures(folder: Path) -> Iterator[Figure]:
    index = Index.open(folder)
    engine = load_engine(index, "cpu")
    yield from _speed(engine)
    yield from _shares(index, engine, bounded=True)
    if (folder.parent / OTHER_MODEL / "manifest.json").exists():
        other = Index.open(folder.parent / OTHER_MODEL)
        yield from _shares(other, load_engine(other, "cpu"), bounded=False)


def split() -> dict[str, list[str]]:
    """Return the categories that were used while trying, and those held back."""
    names = sorted(CATEGORIES)
    np.random.default_rng(SPLIT_SEED).shuffle(names)
    half = len(names) // 2
    return {"tried with": names[:half], "held back": names[half:]}


def _shares(index: Index, engine: Engine, bounded: bool) -> Iterator[Figure]:
    engine.seed_search.chance = lambda _: None  # type: ignore[method-assign,assignment]  # slow
    tokens = index.tokens
    whole = np.flatnonzero(whole_words([*tokens]))
    surfaces = np.array([tokens.surface(tokens.texts[token]) for token in whole.tolist()])
    for half, names in split().items():
        searches = [search for name in names for search in _searches(name, surfaces)]
        for kind in FIT_KINDS:
            shares = {}
            for way, (rank, widen) in WAYS.items():
                shares[way] = float(np.mean([_share(engine, s, kind, rank, widen, whole, surfaces) for s in searches]))
                yield Figure(
                    f"{index.manifest.model}, {kind}, {len(searches)} searches of categories {half}, {way}: on topic",
                    100 * shares[way], unit="%",
                )  # fmt: skip
            ratio = shares["fit"] / shares["the paper's score"]
            bound = BOUNDS[kind] if bounded and half == "held back" else None
            title = f"{index.manifest.model}, {kind}, categories {half}: on topic by fit / by the paper's score"
            yield Figure(title, ratio, bound, at_least=True)


def _searches(name: str, surfaces: NDArray[np.str_]) -> Iterator[Search]:
    """Yield the searches by three words of a category, of which a model must know enough as single tokens."""
    known = {*surfaces.tolist()}
    words = [word for word in CATEGORIES[name].split() if word.lower() in known]
    if len(words) < LEAST_WORDS:
        return
    np.random.default_rng(0).shuffle(words)
    for start in range(0, len(words) - WORDS_OF_A_SEARCH + 1, WORDS_OF_A_SEARCH):
        chosen = tuple(words[start : start + WORDS_OF_A_SEARCH])
        others = [word.lower() for word in words if word not in chosen]
        yield Search(chosen, np.isin(surfaces, others))


def _share(
    engine: Engine, search: Search, kind: str, rank: SeedRank, widen: int, whole: NDArray[np.intp],
    surfaces: NDArray[np.str_],
) -> float:  # fmt: skip
    words = tuple(Term(word=word) for word in search.words)
    (answer,) = engine.seeds([SeedsAsk(words=words, kind=(kind,), rank=rank, widen=widen, k=FOUND)])
    assert isinstance(answer, dict), answer
    W = engine.parameters.W_E if SIDES[kind] == "reads" else engine.parameters.W_U
    places: Sequence[tuple[int, int]] = [(result["layer"], result["index"]) for result in answer["results"]]
    V = torch.stack([engine.parameters.vectors(kind, layer)[number] for layer, number in places])
    lists = (V @ W[torch.from_numpy(whole)].T).topk(LISTED, dim=1).indices.numpy()  # (found, first words)
    return float(np.mean([len({*surfaces[row[search.others[row]]].tolist()}) >= OTHERS for row in lists]))


def _speed(engine: Engine) -> Iterator[Figure]:
    """Measure a search with what random words reach already known, as for all but the first words of a frequency."""
    ask = SeedsAsk(words=tuple(Term(word=word) for word in ("horse", "dog", "lion")), rank="fit")
    first = seconds(lambda: engine.seeds([ask]), 1)
    vectors = [torch.cat(engine.parameters.every_layer(kind)) for kind in FIT_KINDS]
    query = torch.randn(vectors[0].shape[1])
    rounds = [
        (seconds(lambda: [V @ query for V in vectors], 3), seconds(lambda: engine.seeds([ask]), 3))
        for _ in range(ROUNDS)
    ]
    bare, ours = (min(column) for column in zip(*rounds, strict=True))  # the machine may be busy
    yield Figure("seeds by fit over all keys and values, less 10 ms / bare product", (ours - 0.01) / bare, 1.5)
    yield Figure("the first seeds by fit, with spreads and random words", first, unit="s")
