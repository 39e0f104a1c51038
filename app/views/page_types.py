"""The shapes of pages about many parameters: home, model, layer, head, token, search, help.
One parameter's own pages are in view_types.py; filling all of them is for views/."""

from collections.abc import Sequence
from typing import Literal

from pydantic import Field
from typing_extensions import TypedDict

from app.views.lists import PairList, PairView, ScoredView, TokenView
from app.views.view_types import View

Role = Literal["reads", "writes", "avoids", "suppresses", "positive", "negative"]


class ModelCard(View):
    model: str
    name: str  # what others call it, such as "openai-community/gpt2"; "" if that is not known
    architecture: str
    n_layers: int
    layers: tuple[int, ...]  # those that can be read
    bytes: int
    revision: str
    origin: str  # where the weights come from, for people
    faults: tuple[str, ...]  # what is wrong with it, for people


class Provenance(View):
    """Where the lists come from: a link shows the same lists as long as this is the same."""

    name: str  # what others call the model; "" if that is not known
    source: str
    revision: str
    origin: str  # the same for people
    weights_sha256: str
    build: str
    k: int
    pairs: int


class HeadCell(TypedDict):
    head: int
    coherence: float | None
    first: PairView | None  # the best pair


class LayerRow(View):
    layer: int
    ready: bool
    fault: str | None
    coherence: tuple[int, ...]  # of its neurons' values: how many in each of ten equal steps from 0 to 1
    vo: tuple[HeadCell, ...]  # empty unless ready
    qk: tuple[HeadCell, ...]


class NeuronCard(TypedDict):
    layer: int
    neuron: int
    number: float  # what it was chosen by: coherence or similarity
    tokens: tuple[TokenView, ...]


class HeadCard(TypedDict):
    layer: int
    head: int
    matrix: str
    lens: str  # of number and pairs, whichever the maps are of
    preset: str
    number: float  # coherence
    pairs: tuple[PairView, ...]  # the first that repeat no word


class Start(View):
    """What a visitor who knows nothing of a model may look at first."""

    model: str
    lens: str  # of the neuron
    neuron: NeuronCard | None  # whose key and value agree
    head: HeadCard | None  # one of the clearest, the one with the most words


class HomeView(View):
    models: tuple[ModelCard, ...]
    start: Start | None = None  # None while no layer is ready


class ModelView(View):
    model: str
    lens: str
    preset: str  # of the pairs in the maps
    architecture: str
    d_model: int
    d_head: int
    d_mlp: int
    d_vocab: int
    n_layers: int
    n_heads: int
    n_kv_heads: int
    provenance: Provenance
    rows: tuple[LayerRow, ...]  # top layer first
    neurons: tuple[NeuronCard, ...]  # most coherent values
    agreeing: tuple[NeuronCard, ...]  # key and value most alike; tokens of the value
    heads: tuple[HeadCard, ...]


class NeuronRow(TypedDict):
    neuron: int
    key: tuple[TokenView, ...]
    value: tuple[TokenView, ...]
    norm: float  # of the value
    coherence: float | None  # of the value's top list
    similarity: float


class LayerView(View):
    model: str
    layer: int
    lens: str
    sort: str
    token: TokenView | None  # only neurons whose key or value lists it
    page: int
    pages: int
    total: int
    rows: Sequence[NeuronRow]


class SubheadRow(TypedDict):
    subhead: int
    q: tuple[TokenView, ...]
    k: tuple[TokenView, ...]
    v: tuple[TokenView, ...]
    o: tuple[TokenView, ...]


class MatrixGlance(View):
    pairs: PairList
    bottom: PairList
    coherence: float | None
    columns: tuple[str, str] = Field(exclude=True)
    hidden: int = Field(0, exclude=True)  # of as many of the best pairs: how many the preset leaves out


class HeadView(View):
    model: str
    layer: int
    head: int
    lens: str
    preset: str
    vo: MatrixGlance
    qk: MatrixGlance
    subheads: tuple[SubheadRow, ...]
    note: str = Field(exclude=True)


class Place(TypedDict):
    """A vector that lists a token."""

    kind: str
    layer: int
    index: int  # of a neuron, or head * d_head + subhead
    head: int | None  # of subheads; of kinds that heads share, the first head that has it
    subhead: int | None
    rank: int  # 1 is the best
    score: float


class RoleList(View):
    role: Role = Field(
        description="`reads` and `avoids`: at the top and at the bottom of what a vector reads; `writes` and "
        "`suppresses`: of what it writes; `positive` and `negative`: of `ff_up`, whose sign the neuron's activation has"
    )
    kind: str
    end: str
    total: int
    places: Sequence[Place]


class PairPlace(TypedDict):
    """A head pair that holds a token; `other` is the token at the other side. A pair with itself is there once."""

    matrix: str
    layer: int
    head: int
    side: Literal["from", "to"]
    end: str
    rank: int
    score: float
    other: TokenView


class TokenPageView(View):
    model: str
    lens: str
    preset: str  # of the pairs
    token: TokenView
    bytes: str  # hexadecimal, two digits a byte, spaces between
    kind: str | None  # only this kind, all of it in pages; None: the best of every kind
    page: int
    pages: int
    variants: tuple[TokenView, ...]  # with and without space, in other cases
    nearest: tuple[ScoredView, ...] | None  # by cosine of the centred embeddings; None while not built
    roles: tuple[RoleList, ...]
    pairs: Sequence[PairPlace]  # of VO, then of QK, each with the best rank first
    pairs_total: int
    missing: tuple[int, ...]  # layers that are not built or damaged: they may list it, too
    totals: dict[str, int] = Field({}, exclude=True)  # of the pairs, by matrix
    hub: float | None = Field(None, exclude=True)  # in how many times more lists than usual, if that is very many


class TokenGroup(View):
    """Tokens that differ in case and surrounding space only."""

    surface: str
    match: Literal["exact", "prefix", "substring"]
    tokens: tuple[TokenView, ...]


class Match(TypedDict):
    """A vector that lists every word of a search."""

    kind: str
    layer: int
    index: int
    head: int | None
    subhead: int | None
    end: str
    ranks: tuple[int, ...]  # the best of each word, 1 is the best
    tokens: tuple[TokenView, ...]  # and the token that has it


PairMatch = TypedDict(  # a head pair that holds the word of a search, or both words, one at each side
    "PairMatch",
    {
        "matrix": str,
        "layer": int,
        "head": int,
        "preset": str,  # of those whose list holds it, the one in which its rank is best
        "end": str,
        "rank": int,  # 1 is the best
        "from": TokenView,
        "to": TokenView,
        "score": float,
    },
)


class SearchView(View):
    model: str
    q: str
    lens: str
    kind: str | None
    page: int
    pages: int
    jump: str | None  # the path of the parameter that was named
    words: tuple[TokenGroup, ...]  # what each word of the search stands for
    pieces: tuple[TokenView, ...]  # how the tokenizer splits a text that is no token itself
    tokens: tuple[TokenGroup, ...]  # tokens like the search
    total: int
    matches: Sequence[Match]
    pairs: Sequence[PairMatch] = ()  # of one or two words: the best on page 1; with kind vo or qk all, in pages
    pairs_total: int = 0
    missing: tuple[int, ...] = ()  # layers that are not built or damaged: they may match, too
