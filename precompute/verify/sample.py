"""Check a random sample of an index against the weights, by brute force in float64 and without the code that made it.
Whatever is not in the sample is not checked. Scores may differ in the last bit, if the order of sums decides a
rounding."""

import secrets
from collections.abc import Callable, Iterator
from itertools import product

import numpy as np

from lexiscope.precompute.errors import LexiscopeError, ManifestDamaged, NotFound, ShardDamaged
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.index.layout import Piece
from lexiscope.precompute.index.manifest import MANIFEST
from lexiscope.precompute.index.tensor_file import Array, Floats
from lexiscope.precompute.shape import COMPARED, ENDS, MATRICES, PRESETS
from lexiscope.precompute.verify import brute_lists
from lexiscope.precompute.verify.brute_force import FACTORS, BruteForce, Float64, Ids
from lexiscope.precompute.verify.brute_lists import LAST_BIT, SMALLEST_FLOAT32, Hubs, falls_in_order, same_cosine
from lexiscope.precompute.verify.directions import directions_error, doubtful
from lexiscope.precompute.verify.positions import positions_error
from lexiscope.precompute.verify.sample_classifier import check_classifier
from lexiscope.precompute.verify.stats import chance_error, stats_error
from lexiscope.precompute.verify.sums import Result
from lexiscope.precompute.weights.difference import Parameters

COSINE_ERROR = 2e-6
ROUNDED_OFF = 1e-2  # times 1e-12: the share of subtracted scores that float64 loses
NORM_ERROR = 1e-6  # relative error of the norm of a head's matrix
# Most multiplications to find the hubs of a layer with short lists; if it takes more, coherences are not checked.
MOST_MULTIPLICATIONS = 10**10
CHECKS = {"stats": stats_error}  # checks of the parts that hold numbers of vectors beside their lists
CHECKED_ROWS = 32  # source tokens whose whole row of a head's matrix is computed


def check_sample(index: Index, model: Parameters, sample: int, seed: int, rows: int = CHECKED_ROWS) -> Iterator[Result]:
    """Check some vectors of every kind, some neurons, one head for each matrix and three tokens, in every layer of the
    index.

    The caller must know that the index was made from this model.
    """
    rng = np.random.default_rng(seed)
    shape, stored = model.shape, index.stored

    def drawn(count: int) -> Ids:
        return np.sort(rng.choice(count, min(sample, count), replace=False))

    brute = BruteForce(model, list(index.tokens))
    if index.manifest.neighbours:
        tokens = drawn(shape.d_vocab)
        yield f"nearest tokens of {', '.join(map(str, tokens))}", _neighbours_error(index, brute, tokens)
    if index.manifest.reads_best and len(index.layers) == shape.n_layers:
        yield "the lens that reads best", _best_lens_error(index, brute)
    if index.manifest.classifier:
        yield from check_classifier(index, model, brute, sample, rng)
    for layer in index.layers:
        hubs = _hubs(index, layer, brute)
        for kind in stored.weight_kinds:
            numbers = drawn(shape.count(kind))
            error = _checked(index, layer, _vectors_error, brute, kind, numbers, hubs)
            yield f"layer {layer} {kind} {', '.join(map(str, numbers))}", error
        for part, check in CHECKS.items():
            entry = index.manifest.entries().get(piece := Piece(part, layer))
            for kind in stored.weight_kinds if entry and piece.is_known(entry.file) else ():
                numbers = drawn(shape.count(kind))
                error = _checked(index, layer, check, brute, kind, numbers, part=part)
                yield f"{piece}: {kind} {', '.join(map(str, numbers))}", error
        if index.has_part("heads", layer):
            numbers = drawn(shape.n_heads)
            error = _checked(index, layer, positions_error, brute, numbers, part="heads")
            yield f"{Piece('heads', layer)}: positions of {', '.join(map(str, numbers))}", error
        for matrix in stored.directions:
            heads = rng.choice(shape.n_heads, min(shape.n_heads, -(-sample // shape.d_head)), replace=False)
            for head in heads.tolist():
                numbers = drawn(shape.d_head)
                error = _checked(index, layer, directions_error, brute, matrix, head, numbers, hubs)
                left_out = doubtful(brute, layer, matrix, head, numbers)
                said = f"{', '.join(map(str, numbers))}{left_out}"
                yield f"layer {layer} directions of {matrix} head {head}: {said}", error
        for compared in stored.compared:
            count = shape.d_mlp if compared == "ff" else shape.n_heads * shape.d_head
            numbers = drawn(count)
            error = _checked(index, layer, _similarity_error, brute, compared, numbers)
            yield (
                f"layer {layer} similarity of {', '.join(_named(index, compared, n) for n in numbers.tolist())}",
                error,
            )
        for matrix in stored.matrices:
            head = int(rng.integers(shape.n_heads))
            sources = rng.choice(shape.d_vocab, min(rows, shape.d_vocab), replace=False)
            error = _checked(index, layer, _pairs_error, brute, matrix, head, sources, hubs)
            yield f"layer {layer} {matrix} head {head}", error
        for matrix in MATRICES if stored.difference else ():
            head = int(rng.integers(shape.n_heads))
            error = _checked(index, layer, _head_norms_error, brute, matrix, head)
            yield f"layer {layer} norm of {matrix} head {head}", error
        lists = [index.shard(layer).array(f"{name}.ids")[0] for name in (*stored.kinds[-1:], *stored.matrices[:1])]
        for token in (*(int(rng.choice(ids.ravel())) for ids in lists), int(rng.integers(shape.d_vocab))):
            yield f"layer {layer} lists of token {token}", _checked(index, layer, _inverted_error, token)
    if index.has_part("chance") and stored.weight_kinds:
        kind = str(rng.choice(stored.weight_kinds))
        yield f"lines of chance of {kind}", _checked(index, None, chance_error, brute, kind, part="chance")


def new_seed() -> int:
    """Return a random seed, which is printed so that a run can be repeated."""
    return secrets.randbelow(1 << 31)


def _checked(
    index: Index, layer: int | None, check: Callable[..., str | None], *what: object, part: str = "lists"
) -> LexiscopeError | None:
    """Return the error that one of the checks finds in a file of a layer, or of the whole model; None if there is
    none."""
    try:
        wrong = check(index, *([] if layer is None else [layer]), *what)
    except ShardDamaged as error:  # reading raises it for values that cannot be right
        return error
    except NotFound as error:  # a token that was drawn from a list does not exist
        wrong = f"a list with {error}"
    file = index.manifest.entries()[Piece(part, layer)].file
    return _error(index, file, wrong if layer is None else f"layer {layer}: {wrong}") if wrong else None


def _error(index: Index, file: str, wrong: str) -> ShardDamaged:
    remedy = f"Delete {index.folder / file} and run `{index.manifest.rebuild_command}` again"
    return ShardDamaged(f"{wrong} is not what the weights give. {remedy}")


def _hubs(index: Index, layer: int, brute: BruteForce) -> Hubs | None:
    """Return the hubs of a layer: found in the stored lists, which other checks cover, if these are long enough, else
    by brute force; None if that would take too long."""
    shape, stored = index.shape, index.stored
    if stored.k >= min(brute_lists.DEPTH, shape.d_vocab):
        lists = [brute_lists.lists_that_count(index.shard(layer), stored, kind) for kind in stored.counted_kinds]
        return brute_lists.hubs_of_lists(lists, shape.d_vocab)
    if not stored.weight_kinds or stored.n_vectors * shape.d_vocab * shape.d_model > MOST_MULTIPLICATIONS:
        return None
    return brute_lists.hubs(brute, layer, stored.weight_kinds, stored.lenses)


def _neighbours_error(index: Index, brute: BruteForce, tokens: Ids) -> LexiscopeError | None:
    directions = brute.embedding("ff_key", "cosine")
    cosines = directions[tokens] @ directions.T
    cosines[np.arange(len(tokens)), tokens] = -np.inf  # a token is not its own neighbour
    assert index.manifest.neighbours
    for at, token in enumerate(tokens.tolist()):
        try:
            nearest = index.neighbours(token)
        except ShardDamaged as error:
            return error
        if nearest is None:
            return None  # the file does not open, which the check of sums reports
        ids, stored = nearest
        best = np.sort(cosines[at])[::-1][: len(ids)]
        right = (
            np.abs(cosines[at, ids] - stored).max(initial=0) < COSINE_ERROR
            and np.abs(best - stored).max(initial=0) < COSINE_ERROR
        )
        if not right or len(np.unique(ids)) < len(ids) or not falls_in_order(stored, ids):
            return _error(index, index.manifest.neighbours.file, f"the list of tokens nearest to {token}")
    return None


def _vectors_error(
    index: Index, layer: int, brute: BruteForce, kind: str, numbers: Ids, hubs: Hubs | None
) -> str | None:
    vectors, directions = brute.vectors(layer, kind, numbers), brute.embedding(kind, "cosine")
    for lens_at, lens in enumerate(index.stored.lenses):
        scores = vectors @ brute.embedding(kind, lens).T  # (len(numbers), d_vocab)
        for at, number in enumerate(numbers.tolist()):
            lists = index.shard(layer).vector(kind, number, lens)
            off, left_out = 1e-12 * float(np.abs(scores[at]).max()), None if hubs is None else hubs[lens_at]
            changed = not index.stored.difference or bool(vectors[at].any())
            name = f"{kind} {number}"
            if wrong := brute_lists.lists_error(name, lens, lists, scores[at], off, left_out, directions, changed):
                return wrong
            if abs(lists.norm - np.linalg.norm(vectors[at])) > LAST_BIT * lists.norm + SMALLEST_FLOAT32:
                return f"the norm of {kind} {number}"
    if index.stored.difference:
        stored_norms = index.shard(layer).all_base_norms(kind)[numbers]
        far = np.abs(stored_norms - brute.norms_of_base(layer, kind, numbers))
        for at in np.flatnonzero(far > LAST_BIT * stored_norms + SMALLEST_FLOAT32)[:1]:
            return f"the norm of the base's {kind} {numbers[at]}"
    return None


def _head_norms_error(index: Index, layer: int, brute: BruteForce, matrix: str, head: int) -> str | None:
    """Say what is wrong with the norms of a head's matrix in a difference; return None if nothing is."""
    stored = [float(norms[head]) for norms in index.shard(layer).heads.all_matrix_norms(matrix)]
    exact = brute.head_norms(layer, matrix, head)
    for what, norm, right in zip(("norm", "base's norm"), stored, exact, strict=True):
        if abs(norm - right) > NORM_ERROR * right + 1e-12 * exact[1] + SMALLEST_FLOAT32:
            return f"the {what} of {matrix} of head {head}"
    return None


def _similarity_error(index: Index, layer: int, brute: BruteForce, compared: str, numbers: Ids) -> str | None:
    """Say what is wrong with the stored similarities of these neurons or subheads: of the list that each reads by with
    the list that it writes, and with the list that another one writes (shuffled). Return None if nothing is."""
    kinds, shape, shard = COMPARED[compared], index.shape, index.shard(layer)
    first, second = (np.array(shape.rows(kind), np.int64) for kind in kinds)  # rows of all neurons or subheads
    shuffled = second[brute_lists.partners(len(second))]
    parts = ("similarity", "", second), ("shuffled", "shuffled ", shuffled)
    for (part, what, other), (lens_at, lens), end in product(parts, enumerate(index.stored.lenses), ENDS):
        stored = shard.array(f"{compared}.{part}").reshape(len(first), -1, len(ENDS))[numbers, lens_at, ENDS.index(end)]
        rows = first[numbers], other[numbers]
        low, high = brute_lists.bounds(brute, layer, kinds, rows, lens, ENDS.index(end))
        for wrong in np.flatnonzero(~((low <= stored) & (stored <= high)))[:1]:
            return f"the {what}similarity of {_named(index, compared, int(numbers[wrong]))} ({lens}, {end})"
    return None


def _named(index: Index, compared: str, number: int) -> str:
    if compared == "ff":
        return f"neuron {number}"
    head, subhead = divmod(number, index.shape.d_head)
    return f"{compared} of head {head}, subhead {subhead}"


def _best_lens_error(index: Index, brute: BruteForce) -> LexiscopeError | None:
    try:
        best = brute_lists.best_lens(index, brute.words)
    except (ShardDamaged, ValueError):  # the lists cannot be read, or hold unknown tokens: other checks report that
        return None
    if index.manifest.reads_best in (None, best):
        return None
    return ManifestDamaged(
        f"{index.folder / MANIFEST} says that the lens {index.manifest.reads_best} reads best, and by its lists it is "
        f"{best}. Run `{index.manifest.rebuild_command} --force` to build it anew"
    )


def _pairs_error(
    index: Index, layer: int, brute: BruteForce, matrix: str, head: int, rows: Ids, hubs: Hubs | None
) -> str | None:
    all_tokens = np.arange(index.shape.d_vocab)
    directions = [brute.embedding(kind, "cosine") for kind in FACTORS[matrix]]
    for lens_at, lens in enumerate(index.stored.lenses):
        exact = brute.head(layer, matrix, head, lens)
        row_scores = exact.rows(rows)
        unchanged = index.stored.difference and not exact.left.any()
        for preset in PRESETS:
            allowed = brute.allowed(preset, rows[:, None], all_tokens)
            for end, sign in zip(ENDS, (1, -1), strict=True):
                stored = index.shard(layer).heads.pairs(matrix, head, lens, preset, end)
                pairs = stored.ids.astype(np.int64)
                listed = exact.at(pairs)
                size = float(np.abs(row_scores).max(initial=0)) + float(np.abs(listed).max(initial=0))
                size += ROUNDED_OFF * exact.subtracted
                full = len(pairs) == index.manifest.pairs
                floor = sign * float(stored.scores[-1]) + LAST_BIT * size + SMALLEST_FLOAT32 if full else -np.inf
                missing = (sign * row_scores > floor) & allowed
                for at, token in enumerate(rows):
                    missing[at, pairs[pairs[:, 0] == token, 1]] = False
                proper = bool(brute.allowed(preset, pairs[:, 0], pairs[:, 1]).all())
                proper &= len(np.unique(pairs, axis=0)) == len(pairs) and falls_in_order(
                    sign * stored.scores, pairs[:, 0], pairs[:, 1]
                )
                if missing.any() or not proper or not _close(listed, stored.scores, size):
                    return f"{matrix} of head {head} ({lens}, {preset}, {end})"
                readable = np.nan if unchanged else brute_lists.readability(pairs, *directions)
                kept = index.shard(layer).heads.readabilities(matrix, head, lens, preset)[ENDS.index(end)]
                if not same_cosine(kept, readable):
                    return f"the readability of {matrix} of head {head} ({lens}, {preset}, {end})"
                if hubs is not None:
                    mean = brute_lists.pair_coherence(pairs, hubs[lens_at], *directions)
                    mean = np.nan if unchanged else mean
                    if not same_cosine(stored.coherence, mean):
                        return f"the coherence of {matrix} of head {head} ({lens}, {preset}, {end})"
    return None


def _inverted_error(index: Index, layer: int, token: int) -> str | None:
    """Say which inverted lists do not name exactly the places at which lists hold the token, best rank first; return
    None if all do."""
    index.tokens.raw(token)  # raises NotFound if there is no such token
    shard, stored = index.shard(layer), index.stored

    def inverted(lists: str, name: str, *at: int) -> Array:
        first, last = shard.array(f"{lists}.offsets")[at][token : token + 2].tolist()
        return shard.array(f"{lists}.{name}")[first:last]

    lists = np.concatenate([shard.array(f"{kind}.ids") for kind in stored.kinds])  # (n_vectors, lenses, ends, k)
    kinds = [brute_lists.vectors_that_count(shard, stored, kind) for kind in stored.kinds]
    for (lens_at, lens), (end_at, end) in product(enumerate(stored.lenses), enumerate(ENDS)):
        rank, vector = np.nonzero((lists[:, lens_at, end_at] == token).T & np.concatenate(kinds))
        expected = [("inverted", "vector", vector), ("inverted", "rank", rank)]
        in_pairs = []  # by matrix: which entries hold the token, (n_heads, presets, pairs, 2)
        for matrix in stored.matrices:
            ids, count = (shard.array(f"{matrix}.{part}")[:, lens_at, :, end_at] for part in ("ids", "count"))
            valid = np.arange(stored.pairs) < count[..., None]
            if stored.difference:
                valid &= (shard.heads.all_matrix_norms(matrix)[0] > 0)[:, None, None]
            in_pairs.append((ids == token) & valid[..., None])
        if in_pairs:
            rank, *place = np.nonzero(np.stack(in_pairs, axis=1).transpose(3, 0, 1, 2, 4))  # head, matrix, preset, side
            expected += [("paired", "place", np.stack(place, axis=1)), ("paired", "rank", rank)]
        if not all(np.array_equal(inverted(of, name, lens_at, end_at), right) for of, name, right in expected):
            return f"the inverted lists of token {token} ({lens}, {end})"
    return None


def _close(exact: Float64, stored: Floats, size: float) -> bool:
    close = np.abs(exact - stored) <= LAST_BIT * np.abs(exact) + 1e-12 * size + SMALLEST_FLOAT32
    return exact.shape == stored.shape and bool(close.all())
