"""A model as an object, with a method for every question about it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from lexiscope.app.formats.table import Table
from lexiscope.app.lists.find_tokens import TOKEN_ID
from lexiscope.app.notebook import arguments
from lexiscope.app.notebook.arguments import AskedLens, at, count
from lexiscope.app.notebook.by_words import Relation, Search, Seeds, ThroughHeads, Token
from lexiscope.app.notebook.errors import NeedsPackage
from lexiscope.app.notebook.pages import Direction, Head, Neuron, Subhead
from lexiscope.app.notebook.run import Run, run_model
from lexiscope.app.notebook.show import Shown
from lexiscope.app.notebook.signatures import takes_arguments_of, takes_fields_of
from lexiscope.app.notebook.slices import ListLens, Lists, pair_lists, vector_lists
from lexiscope.app.notebook.source import Source
from lexiscope.app.pages.head import HEAD, HeadAt
from lexiscope.app.pages.heads import HEADS, HeadsAt
from lexiscope.app.pages.parameter import DIRECTION, NEURON, SUBHEAD, DirectionAt, NeuronAt, SubheadAt
from lexiscope.app.pages.relation import RELATION, RelationAt
from lexiscope.app.pages.search import SEARCH, SearchAt
from lexiscope.app.pages.seeds import SEEDS, SeedsAt
from lexiscope.precompute.errors import BadRequest, WeightsError
from lexiscope.precompute.live.wire.answers import PanelName
from lexiscope.precompute.live.wire.asks import (
    HEAD_TOKENS,
    SEED_RESULTS,
    PromptArguments,
    SeedRank,
    SeedSource,
    WordSource,
)
from lexiscope.precompute.live.wire.fields import Lens, Matrix
from lexiscope.precompute.shape import LENSES, SEED_KIND, Preset

End: TypeAlias = Literal["top", "bottom"]


@dataclass(frozen=True, repr=False)
class Model(Shown):
    """A model whose lists can be read, from an index here or from a server. Any number of threads may use it.

    `lens` is `dot` or `cosine` (default: the first that is stored, mostly `dot`); `preset` chooses which token pairs
    are listed: `all`, `distinct` or `words`; `k` is the number of entries of each list (default: as on the page);
    `hide_hubs` leaves out tokens that are in very many lists. Numbers are those of the site's pages.
    """

    source: Source

    @property
    def name(self) -> str:
        """Return the name that the home page shows."""
        return self.source.name

    @property
    def layers(self) -> tuple[int, ...]:
        """Return the layers that are ready, from the lowest on; a build may be adding more."""
        return self.source.layers

    def neuron(
        self, layer: int, neuron: int, *, lens: AskedLens = None, k: int | None = None, hide_hubs: bool = False
    ) -> Neuron:
        """Return a neuron: what it reads (key, and up where neurons are gated) and what it writes (value)."""
        place = NeuronAt(layer=at("layer", layer), neuron=at("neuron", neuron))
        return Neuron(self.source.get(NEURON, place, hide_hubs, lens=lens, k=k))

    def head(
        self, layer: int, head: int, *, lens: AskedLens = None, preset: Preset = "all", hide_hubs: bool = False
    ) -> Head:
        """Return a head with its first token pairs, subheads (channels) and singular directions; its methods vo() and
        qk() return all pairs."""
        place = HeadAt(layer=at("layer", layer), head=at("head", head))
        return Head(self.source.get(HEAD, place, hide_hubs, lens=lens, preset=preset), self.source)

    def subhead(
        self, layer: int, head: int, j: int, *, lens: AskedLens = None, k: int | None = None, hide_hubs: bool = False
    ) -> Subhead:
        """Return subhead j, which is channel j of a head: its column of W_Q, W_K, W_V and its row of W_O."""
        place = SubheadAt(layer=at("layer", layer), head=at("head", head), subhead=at("j", j))
        return Subhead(self.source.get(SUBHEAD, place, hide_hubs, lens=lens, k=k))

    def direction(
        self, layer: int, head: int, j: int, *, lens: AskedLens = None, k: int | None = None, hide_hubs: bool = False
    ) -> Direction:
        """Return singular direction j of a head's matrices, counted from the largest on."""
        place = DirectionAt(layer=at("layer", layer), head=at("head", head), direction=at("j", j))
        return Direction(self.source.get(DIRECTION, place, hide_hubs, lens=lens, k=k))

    def token(self, which: str | int, *, exact: bool = False) -> Token:
        """Return a token by its id (2767 or "#2767"), or by a word as on the site: dog is the token " dog" if there is
        one.

        A text that begins with a space is taken as the token's exact text, and so is any text with `exact=True`.
        """
        if not isinstance(which, str):
            found = self.source.find_token(at("token", which), exact)
        elif not arguments.text("token", which):
            raise BadRequest("token = '': give a word, or a token's id")
        elif exact or which[0].isspace():
            found = self.source.find_token(which, True)
        else:
            number = TOKEN_ID.fullmatch(which.strip())
            found = self.source.find_token(int(number[1]) if number else which, False)
        return Token(found["id"], found["token"], self.source)

    def search(
        self,
        *words: str | Sequence[str],
        lens: AskedLens = None,
        kind: str | None = None,
        page: int = 1,
        hide_hubs: bool = False,
    ) -> Search:
        """Return tokens like these words, the parameters whose lists hold all of them, and the heads that pair one or
        two."""
        q = arguments.search_words(words)
        return Search(self.source.get(SEARCH, SearchAt(), hide_hubs, q=q, lens=lens, kind=kind, page=page))

    def seeds(
        self,
        *words: str | Sequence[str],
        kind: str | Iterable[str] | None = None,
        lens: Lens = "dot",
        k: int = SEED_RESULTS,
        rank: SeedRank = "fit",
        widen: bool = True,
        source: SeedSource = "raw",
        exact: bool | None = None,
    ) -> Seeds:
        """Return the vectors that are about these words, over all layers; `king - man + woman` and `2*dog` work, too.
        If there are several arguments, as in seeds("New York", "dog"), or one list, each of them stays together.

        They are ranked as on the page, from the weights, which are loaded for it: by `fit`, with the tokens nearest to
        the words unless `widen` is False, or by the paper's `score`. `source` is the vocabulary that words are read
        from, for all but `raw` from the weights alone. `exact=False` takes the stored lists alone; so does a model
        whose weights, or torch, are not here, unless `exact` is True. The result's `exact` says which it was.
        """
        terms, kinds = arguments.seed_words(words), None if kind is None else arguments.seed_kinds(kind)
        how = {"lens": lens, "k": k, "rank": rank, "widen": int(widen), "source": source}
        asked = {"words": terms, "kind": kinds, **how}
        if exact is not False or source != "raw":
            try:
                return Seeds(self.source.get(SEEDS, SeedsAt(), **asked), exact=True)
            except (NeedsPackage, WeightsError):
                if exact or source != "raw" or self.source.weights:
                    raise
        of_lens = arguments.one_of("lens", lens, LENSES) or "dot"
        return Seeds(*self.source.stored_seeds(terms, kinds or (SEED_KIND,), of_lens, count("k", k)))

    def relation(
        self, *pairs: str | Sequence[str], matrix: Matrix = "vo", lens: Lens = "dot", source: WordSource = "raw"
    ) -> Relation:
        """Return the heads that map the first word of each pair to the second: relation("France>Paris", "Italy>Rome").

        As on the page, they are computed from the weights, which are loaded for it: through W_V W_O, or with
        `matrix="qk"` what heads look for at the first word. `source` is the vocabulary that first words are read from.
        """
        asked = {"pairs": arguments.words(pairs), "matrix": matrix, "lens": lens, "source": source}
        return Relation(self.source.get(RELATION, RelationAt(), **asked))

    def heads(
        self,
        *words: str | Sequence[str],
        layers: int | str | Iterable[int] = 0,
        head: int | None = None,
        lens: Lens = "dot",
        end: End = "top",
        k: int = HEAD_TOKENS,
        source: WordSource = "raw",
    ) -> ThroughHeads:
        """Return what the heads of some layers look for and write, given these words: heads("dog", "horse+lion").

        `layers` is a layer, several, or a text as on the page: "0-3" or "all". The weights are loaded for it.
        """
        where = layers if isinstance(layers, str) else ",".join(map(str, arguments.layers(layers) or ()))
        how = {"head": head, "lens": lens, "end": end, "k": k, "source": source}
        asked = {"words": arguments.word_groups(words), "layers": where, **how}
        return ThroughHeads(self.source.get(HEADS, HeadsAt(), **asked))

    @takes_fields_of(PromptArguments)
    def run(self, /, text: str, *, panels: Iterable[PanelName] | None = None, **chosen: Any) -> Run:
        """Run the model on a text: here, with torch, or on the server. `panels` are the parts of the result to compute:
        unless some are named, the six that are quick; the sheet and others only by name.

        `position` (the last), `layer` (the last), `head` and `neuron` say what panels look at; `off`, `set`, `mean` and
        `patch` change the run: off=["10.2361", "8.h11"], set=["10.5:2.5"]; `from_` is a second text, from which `patch`
        takes values; `token` and `against` are of the panel attribution.
        """
        return run_model(self.source, text, panels, chosen)

    def neurons(
        self,
        layers: int | Iterable[int] | None = None,
        *,
        kinds: Iterable[str] | None = None,
        lens: ListLens = None,
        end: End | None = None,
        k: int | None = None,
    ) -> Lists:
        """Return the lists of all neurons of some layers (default: all that are ready), of `ff_key`, `ff_up`,
        `ff_value`."""
        return vector_lists(self.source, "ff_", layers, kinds=kinds, lens=lens, end=end, k=k)

    @takes_arguments_of(neurons)
    def subheads(self, *arguments: Any, **named: Any) -> Lists:
        """Return the lists of all subheads (channels of heads): `w_q`, `w_k`, `w_v`, `w_o`. Arguments are as for
        neurons(). Vectors that heads share are listed once."""
        return vector_lists(self.source, "w_", *arguments, **named)

    @takes_arguments_of(neurons)
    def directions(self, *arguments: Any, **named: Any) -> Lists:
        """Return the lists of all heads' singular directions: `vo_in`, `vo_out`, `qk_query`, `qk_key`. Arguments are as
        for neurons()."""
        return vector_lists(self.source, ("vo_", "qk_"), *arguments, **named)

    def pairs(
        self,
        matrix: Matrix,
        layers: int | Iterable[int] | None = None,
        *,
        lens: ListLens = None,
        preset: Preset | None = None,
        end: End | None = None,
        k: int | None = None,
    ) -> Lists:
        """Return the token pairs of all heads of some layers (default: all that are ready), of `vo` or `qk`, of all
        presets (choices of pairs)."""
        return pair_lists(self.source, matrix, layers, lens, preset, end, k)

    def _title(self) -> str:
        return f"model {self.name} ({self.source.where})"

    def _tables(self) -> Sequence[Table]:
        return ()

    def _notes(self) -> Sequence[str]:
        return (f"{self._title()}: neuron, head, subhead, direction, token, search, seeds, relation, heads, run; of an "
                "index here also neurons, subheads, directions and pairs over layers",)  # fmt: skip
