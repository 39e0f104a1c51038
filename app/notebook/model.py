"""A model as an object: what can be asked of it."""

import builtins
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import index as whole  # of numpy, too, as frames have them
from typing import Literal, TypeAlias

from app.addresses import SEED_KIND
from app.formats.table import Table
from app.notebook.pages import Direction, Head, Neuron, Search, Seeds, Subhead, Token
from app.notebook.run import Run, run_model
from app.notebook.show import Shown
from app.notebook.slices import Lists, pair_lists, vector_lists
from app.notebook.source import AskedLens, Preset, RunAsk, Source
from app.views.layer import TOKEN_ID
from app.views.lengths import LIKELY_TOKENS, SEED_RESULTS
from precompute.errors import BadRequest
from precompute.live.wire import Convention, Lens, Matrix, Panel, PatternRows
from precompute.shape import SIDES

End: TypeAlias = Literal["top", "bottom"]
ListLens: TypeAlias = Lens | Literal["both"] | None


@dataclass(frozen=True, repr=False)
class Model(Shown):
    """A model whose lists can be read: of an index here, or from a server. Any number of threads may ask it.

    `lens` is `dot` or `cosine` (default: the first that is stored, mostly `dot`), `preset` of pairs `all`, `distinct`
    or `words`, `k` how many entries of each list (default: as on the page); `hide_hubs` leaves out tokens that are in
    very many lists. Numbers are those of the site's pages."""

    source: Source

    @property
    def name(self) -> str:
        """As on the home page."""
        return self.source.name

    @property
    def layers(self) -> tuple[int, ...]:
        """The layers that are ready, from the lowest on; a build may be adding more."""
        return self.source.layers

    def neuron(
        self, layer: int, neuron: int, *, lens: AskedLens = None, k: int | None = None, hide_hubs: bool = False
    ) -> Neuron:
        """What a neuron reads (key, and up where neurons are gated) and what it writes (value)."""
        return Neuron(self.source.neuron(whole(layer), whole(neuron), lens, k, hide_hubs))

    def head(
        self, layer: int, head: int, *, lens: AskedLens = None, preset: Preset = "all", hide_hubs: bool = False
    ) -> Head:
        """A head at a glance, with methods for its pairs: vo() and qk()."""
        return Head(self.source.head(whole(layer), whole(head), lens, preset, hide_hubs), self.source)

    def subhead(
        self, layer: int, head: int, j: int, *, lens: AskedLens = None, k: int | None = None, hide_hubs: bool = False
    ) -> Subhead:
        """Channel j of a head: its column of W_Q, W_K, W_V and its row of W_O."""
        return Subhead(self.source.subhead(whole(layer), whole(head), whole(j), lens, k, hide_hubs))

    def direction(
        self, layer: int, head: int, j: int, *, lens: AskedLens = None, k: int | None = None, hide_hubs: bool = False
    ) -> Direction:
        """Singular direction j of a head's matrices, from the largest on."""
        return Direction(self.source.direction(whole(layer), whole(head), whole(j), lens, k, hide_hubs))

    def token(self, which: str | int, *, exact: bool = False) -> Token:
        """A token by its id (2767 or "#2767"), or a word as on the site: dog is the token " dog" where there is one.

        A text that begins with a space is the token's very text, and so is any text with `exact=True`."""
        if not isinstance(which, str):
            found = self.source.find_token(whole(which), exact)
        elif not which:
            raise BadRequest("token = '': give a word, or a token's id")
        elif exact or which[0].isspace():
            found = self.source.find_token(which, True)
        else:
            number = TOKEN_ID.fullmatch(which.strip())
            found = self.source.find_token(int(number[1]) if number else which, False)
        return Token(found["id"], found["token"], self.source)

    def search(
        self, *words: str, lens: AskedLens = None, kind: str | None = None, page: int = 1, hide_hubs: bool = False
    ) -> Search:
        """Tokens like these words, the parameters that list all of them, the heads that pair one or two."""
        return Search(self.source.search(_query(words), lens, kind, page, hide_hubs))

    def seeds(
        self,
        *words: str,
        kind: str | Iterable[str] = SEED_KIND,
        lens: Lens = "dot",
        k: int = SEED_RESULTS,
        exact: bool | None = None,
    ) -> Seeds:
        """The vectors that are about these words, over all layers; `king - man + woman` and `2*dog` work, too.

        `exact=False`: from the stored lists; `exact=True`: from the weights, which are loaded for it. Unless it is
        said: from the weights of a server, or where the model was opened with `weights=True`; else from the lists. The
        result says which it was."""
        kinds = _kinds(kind)
        if k < 1:
            raise BadRequest(f"k = {k}: give 1 or more")
        return Seeds(*self.source.seeds(" ".join(words), kinds, lens, k, exact))

    def run(
        self,
        text: str,
        *,
        panels: Iterable[Panel] | None = None,
        position: int | None = None,
        layer: int | None = None,
        head: int | None = None,
        neuron: int | None = None,
        lens: Lens = "dot",
        convention: Convention = RunAsk.convention,
        rows: PatternRows = "heads",
        k: int = LIKELY_TOKENS,
        off: Sequence[str] = (),
        set: Sequence[str] = (),  # noqa: A002 (the page's word)
        token: str | None = None,
        against: str = "mean",
    ) -> Run:
        """Runs the model on a text: here, with torch, or on the server. `panels`: all six unless some are named.

        `position` (the last), `layer` (the last), `head` and `neuron` say what panels look at; `off` and `set` change
        the run: off=["10.2361", "8.h11"], set=["10.5:2.5"]; `token` and `against` are of attribution."""
        return run_model(
            self.source, text, panels, position=position, layer=layer, head=head, neuron=neuron, lens=lens,
            convention=convention, rows=rows, k=k, off=tuple(off), set=tuple(set), token=token, against=against,
        )  # fmt: skip

    def neurons(
        self,
        layers: int | Iterable[int] | None = None,
        *,
        kinds: Iterable[str] | None = None,
        lens: ListLens = None,
        end: End | None = None,
        k: int | None = None,
    ) -> Lists:
        """The lists of all neurons of some layers (default: all that are ready), of `ff_key`, `ff_up`, `ff_value`."""
        return self._lists("ff_", layers, kinds, lens, end, k)

    def subheads(
        self,
        layers: int | Iterable[int] | None = None,
        *,
        kinds: Iterable[str] | None = None,
        lens: ListLens = None,
        end: End | None = None,
        k: int | None = None,
    ) -> Lists:
        """The same of all subheads: `w_q`, `w_k`, `w_v`, `w_o`. Vectors that heads share are there once."""
        return self._lists("w_", layers, kinds, lens, end, k)

    def directions(
        self,
        layers: int | Iterable[int] | None = None,
        *,
        kinds: Iterable[str] | None = None,
        lens: ListLens = None,
        end: End | None = None,
        k: int | None = None,
    ) -> Lists:
        """The same of all heads' singular directions: `vo_in`, `vo_out`, `qk_query`, `qk_key`."""
        return self._lists(("vo_", "qk_"), layers, kinds, lens, end, k)

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
        """The pairs of all heads of some layers (default: all that are ready), of `vo` or `qk`, of all presets."""
        return pair_lists(self.source, matrix, _layers(layers), lens, preset, end, k)

    def _lists(
        self,
        prefix: str | tuple[str, ...],
        layers: int | Iterable[int] | None,
        kinds: Iterable[str] | None,
        lens: ListLens,
        end: End | None,
        k: int | None,
    ) -> Lists:
        stored = self.source.read(lambda index: index.stored.kinds)
        named = [kinds] if isinstance(kinds, str) else kinds
        of_prefix = tuple(kind for kind in SIDES if kind.startswith(prefix))
        chosen = tuple(kind for kind in of_prefix if kind in stored) or of_prefix if named is None else tuple(named)
        if wrong := [kind for kind in chosen if kind not in of_prefix]:
            raise BadRequest(f"kind {wrong[0]!r}: here there are {', '.join(of_prefix)}")
        return vector_lists(self.source, chosen, _layers(layers), lens, end, k)

    def _title(self) -> str:
        return f"model {self.name} ({self.source.where})"

    def _tables(self) -> Sequence[Table]:
        return ()

    def _notes(self) -> Sequence[str]:
        return (f"{self._title()}: neuron, head, subhead, direction, token, search, seeds, run; neurons, subheads, "
                "directions and pairs over layers",)  # fmt: skip


def _layers(layers: int | Iterable[int] | None) -> tuple[int, ...] | None:
    if layers is None:
        return None
    return tuple(map(whole, layers)) if isinstance(layers, Iterable) else (whole(layers),)


def _kinds(kind: str | Iterable[str]) -> tuple[str, ...]:
    named = builtins.set(kind.split(",") if isinstance(kind, str) else kind)
    if unknown := named - SIDES.keys():
        raise BadRequest(f"kind = {sorted(unknown)[0][:100]!r}: there are {', '.join(SIDES)}")
    return tuple(name for name in SIDES if name in named)


def _query(words: Sequence[str]) -> str:
    """One word as people type it; of several, each stays together."""
    if len(words) == 1:
        return words[0]
    return " ".join(f'"{word}"' if any(c.isspace() or c == "," for c in word) else word for word in words)
