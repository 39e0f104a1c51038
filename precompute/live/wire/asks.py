"""Define everything that can be asked of a model in memory. What a page asks has two classes: the arguments of the
address, and the ask itself, which adds what only the server knows."""

from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BeforeValidator, Field

from lexiscope.precompute.errors import BadRequest
from lexiscope.precompute.live.wire import answers, grammar
from lexiscope.precompute.live.wire.answers import PanelName
from lexiscope.precompute.live.wire.fields import (
    Ask,
    AskArguments,
    End,
    Lens,
    Matrix,
    OnlyTokens,
    Unbuilt,
    Wire,
    split,
    typed,
)
from lexiscope.precompute.live.wire.grammar import AnyChange, Group, Term, WordPair
from lexiscope.precompute.shape import SEED_KIND, SIDES, Preset

MAX_NUMBER = 10**6  # largest number of a position, layer, neuron or head: far above what any model has
PANEL_NAMES: tuple[PanelName, ...] = get_args(PanelName)
SEED_RESULTS = 50  # vectors that are about seed words
TRANSITION_NEURONS = 50  # neurons of either end that read one word and write another
HEAD_TOKENS = 8  # tokens of what a head looks for with a word, or writes for it
STRONGEST_NEURONS = 200  # neurons that a sweep switches off, if no cut is given
LIKELY_TOKENS = 5  # tokens of a prediction, and of each cell of an evolution

LENS_OF_SCORES = "How a score is read: `dot` as in the paper, `cosine` with token embeddings centred and scaled"

FIT_KINDS = ("ff_key", "ff_value")  # what neurons read and write, together

SeedRank = Literal["score", "fit"]
Convention = Literal["final", "vocabulary", "exact"]
PatternRows = Literal["heads", "tokens"]
MeansOver = Literal["prompt", "texts"]
# Norms folded in; the vocabulary after the first block, or the first MLP; E⁺ in place of Eᵀ; the stored list whole.
Reading = Literal["norm", "first", "mlp", "pseudo", "full"]
Side = Literal["source", "target", "both"]
WordSource = Literal["raw", "first", "norm"]
SeedSource = Literal["raw", "first", "pseudo"]

SOURCE_OF_WORDS = (
    "How the first words are read: `raw` from the embedding, `first` as the first block leaves a token alone, `norm` "
    "through the norm in front of each layer's attention"
)


def plain_lines(text: str) -> str:
    """Replace the two characters with which forms end a line by one newline. Raise BadRequest for a NUL, which no
    address can hold."""
    if "\0" in text:
        raise BadRequest("the text holds a NUL character: leave it out")
    return text.replace("\r\n", "\n")


def _number(description: str) -> Any:
    """Declare an optional argument: the number of a position, layer, neuron or head."""
    return Field(None, ge=0, le=MAX_NUMBER, description=description)


def _named(argument: str, known: tuple[str, ...], usual: tuple[str, ...]) -> Any:
    """Return a function that parses some of the known names and returns them in the order of `known`; from an empty
    text it returns `usual`."""

    def parse(text: str) -> tuple[str, ...]:
        named = set(split(text))
        if unknown := named - set(known):
            wrong = sorted(unknown)[0][:100]
            raise BadRequest(f"{argument} = {wrong!r}: there are {', '.join(known)}; several with commas")
        return tuple(name for name in known if name in named) or usual

    return parse


def _zero_or_one(argument: str, meaning: str) -> BeforeValidator:
    def check(value: Any) -> Any:
        if isinstance(value, str) and value not in ("0", "1"):
            raise BadRequest(f"{argument} = {value[:100]!r}: write {meaning}")
        return value

    return BeforeValidator(check)


# Seed words


class SeedsArguments(AskArguments[answers.SeedsAnswer]):
    """Words, and which vectors to rank by them."""

    path, answer = "/seeds", answers.SeedsAnswer

    words: grammar.Terms = Field(
        (),
        description='Words such as `horse,dog,lion`; weighted `king - man + woman`, `2*dog`; `"New York"`',
        examples=["horse,dog,lion", "king - man + woman"],
    )
    kind: Annotated[tuple[str, ...], *typed(_named("kind", tuple(SIDES), ()), list, several=True)] = Field(
        (),
        description=f"Kinds of vectors to rank: {', '.join(SIDES)}; several, or with commas. If not given: "
        f"{SEED_KIND}, and by fit {' and '.join(FIT_KINDS)}",
        examples=[["ff_value"]],
    )
    k: int = Field(SEED_RESULTS, ge=1, le=1000, description="How many vectors")
    heads: Annotated[int, _zero_or_one("heads", "1 for all heads, or 0 for none")] = Field(
        0, ge=0, le=1, description="1: also what every head would do with the average"
    )
    lens: Lens = Field(
        "dot", description="Of the lists, and of the words: `dot` averages their embeddings, `cosine` their directions"
    )
    rank: SeedRank = Field(
        "score",
        description="`score`, the paper's; `fit`: that of the words and their nearest tokens, over the vector's own "
        "spread",
    )
    widen: Annotated[
        int, _zero_or_one("widen", "1 to add the nearest tokens to the words, or 0 for the words alone")
    ] = Field(1, ge=0, le=1, description="Of the fit: 0 takes the words alone, without their nearest tokens")
    source: SeedSource = Field(
        "raw",
        description="Which vocabulary words are read from: `raw`, the embedding, `first`, tokens as the first block "
        "leaves them, `pseudo`, the pseudo-inverse E⁺ instead of Eᵀ",
    )

    @property
    def kinds(self) -> tuple[str, ...]:
        """Return the kinds of vectors to rank: those that were asked for, or those that this rank is usually of."""
        return tuple(dict.fromkeys(self.kind)) or self._usual_kinds

    @property
    def _usual_kinds(self) -> tuple[str, ...]:
        return FIT_KINDS if self.rank == "fit" else (SEED_KIND,)

    def query(self) -> dict[str, Any]:
        """Return the arguments as an address writes them, which leaves out the kinds that this rank is usually of."""
        return super().query() | ({"kind": ""} if self.kinds == self._usual_kinds else {})


class VectorPlace(Wire):
    kind: str
    layer: int = Field(ge=0)
    index: int = Field(ge=0)


class SeedsAsk(SeedsArguments, extra="forbid"):
    # Terms instead of text: whoever asks may choose their spelling.
    words: Annotated[tuple[Term, ...], Field(min_length=1)]
    unbuilt: Unbuilt | None = None
    rank_of: VectorPlace | None = None  # also return the rank of this vector, however low


# Pairs of words to heads


class RelationArguments(AskArguments[answers.RelationAnswer]):
    """Pairs of words, and which matrix of heads to search."""

    path, answer = "/relation", answers.RelationAnswer

    pairs: grammar.WordPairs = Field(
        (),
        description="Pairs of words such as `France>Paris,Italy>Rome`: what is read, and what should be written",
        examples=[["France>Paris", "Italy>Rome"]],
    )
    lens: Lens = Field("dot", description=LENS_OF_SCORES)
    matrix: Matrix = Field(
        "vo", description="`vo`: what heads write having attended to the first words; `qk`: what they look for at them"
    )
    source: WordSource = Field("raw", description=SOURCE_OF_WORDS)


class RelationAsk(RelationArguments, extra="forbid"):
    pairs: Annotated[tuple[WordPair, ...], Field(min_length=1)]


# Pairs of words to neurons


class TransitionArguments(AskArguments[answers.TransitionAnswer]):
    """Pairs of words, and how many neurons to show."""

    path, answer = "/transition", answers.TransitionAnswer

    pairs: grammar.WordPairs = Field(
        (),
        description="Pairs of words such as `baseball>player`: what is read, and what is written or taken away",
        examples=[["baseball>player"]],
    )
    lens: Lens = Field("dot", description=LENS_OF_SCORES)
    k: int = Field(TRANSITION_NEURONS, ge=1, le=1000, description="How many neurons of either end")


class TransitionAsk(TransitionArguments, extra="forbid"):
    pairs: Annotated[tuple[WordPair, ...], Field(min_length=1)]


# Words through heads


class ThroughHeadsArguments(AskArguments[answers.ThroughHeadsAnswer]):
    """Words, and the heads they go through."""

    path, answer = "/heads", answers.ThroughHeadsAnswer

    words: grammar.Groups = Field(
        (),
        description='Words such as `couch,dog`; `horse+lion`, the mean of both; `"New York"`; `#3290`, a token by id',
        examples=["couch,dog,run,happy", "horse+lion"],
    )
    layers: grammar.Layers = Field(
        (0,), description="Layers whose heads the words go through: `0-3`, `0,2,5` or `all`", examples=["0-3"]
    )
    head: int | None = _number("Only this head of each layer; all of them")
    lens: Lens = Field("dot", description=LENS_OF_SCORES)
    end: End = Field("top", description="`top`: the largest scores, `bottom`: the most negative ones")
    k: int = Field(HEAD_TOKENS, ge=1, le=50, description="Tokens of each list")
    source: WordSource = Field("raw", description=SOURCE_OF_WORDS.replace("first words", "words", 1))


class ThroughHeadsAsk(ThroughHeadsArguments, extra="forbid"):
    words: Annotated[tuple[Group, ...], Field(min_length=1)]
    layers: Annotated[tuple[int, ...], Field(min_length=1)]
    only: OnlyTokens = None


# A run of a prompt


class PromptArguments(AskArguments[answers.PromptAnswer]):
    """A text, and what to show of its run."""

    path, answer = "/prompt", answers.PromptAnswer

    text: Annotated[str, AfterValidator(plain_lines)] = Field(
        "", description="The prompt, as it is", examples=["The capital of France is"]
    )
    position: int | None = _number("Which token to look at, from 0; the last, or an encoder's mask")
    layer: int | None = _number(
        "Which layer to look at in `attention` (a long text has no other) and `patterns`; the last. "
        "`updates` has its heads where it is given"
    )
    neuron: int | None = _number("A neuron of that layer to tell of in `neurons`, however weak it is")
    head: int | None = _number("A head of that layer to tell more of in `attention` and `patterns`")
    panel: Annotated[
        tuple[PanelName, ...], *typed(_named("panel", PANEL_NAMES, PANEL_NAMES[:1]), list, several=True)
    ] = Field(
        PANEL_NAMES[:1],
        description=f"What to compute: {', '.join(PANEL_NAMES)}; several, or with commas",
        examples=[["evolution"]],
    )
    off: grammar.Off = Field(
        (),
        description="Neurons and heads to switch off in this run, at all positions or at one (`8.h11@3`)",
        examples=[["10.2361", "8.h11"]],
    )
    set: grammar.Set = Field(
        (),
        description="Neurons whose coefficient is set in this run, at all positions or at one (`10.5:2.5@3`)",
        examples=[["10.5:2.5"]],
    )
    mean: grammar.Means = Field(
        (),
        description="Neurons and heads that are set to their mean in this run, at all positions or at one (`8.h11@3`)",
        examples=[["10.2361", "8.h11"]],
    )
    means: MeansOver = Field(
        "prompt",
        description="What that mean is over: all positions of this `prompt`, or those of some sentences that Lexiscope "
        "has, `texts`, without their first ones",
    )
    from_: Annotated[str, AfterValidator(plain_lines)] = Field(
        "",
        alias="from",
        description="A second text, shown beside the first, from which `patch` takes values",
        examples=["The capital of Italy is"],
    )
    patch: grammar.Patches = Field(
        (),
        description="Neurons and heads that get their value of the second text, at all positions or at one (`8.h11@3`)",
        examples=[["8.h11@3"]],
    )
    convention: Convention = Field(
        "vocabulary",
        description="How `patterns` are compared with tokens: final norm, the layer's norm on tokens, or exactly",
    )
    lens: Lens = Field("dot", description="Of `patterns`, `updates` and stored lists of `neurons`: `dot` or `cosine`")
    rows: PatternRows = Field(
        "heads", description="Of `patterns`: all `heads` at the position, or all `tokens` at the head (or head 0)"
    )
    k: int = Field(LIKELY_TOKENS, ge=1, le=50, description="Tokens of each cell and prediction")
    neurons: grammar.Neurons = Field(
        (), description="Neurons whose coefficients at all tokens the panel `neurons` tells", examples=[["29.1240"]]
    )
    token: grammar.OneToken = Field(
        None,
        description="Whose logit `attribution` explains, which `evolution` follows, and whose log probability `sweep` "
        "follows: a token's id, or a word; the predicted",
        examples=["run"],
    )
    against: grammar.Against = Field(
        "mean",
        description="What that logit is compared with: the `mean` of all tokens, `none`, or a token's id or a word",
    )
    over: Literal["heads", "neurons"] = Field(
        "heads", description="Of `sweep`: what is switched off one by one, all `heads` or the strongest `neurons`"
    )
    cut: float | None = Field(
        None,
        ge=0,
        le=grammar.LARGEST_WEIGHT,
        description="Of `sweep`: the least strength of its neurons, over the text; that of the "
        f"{STRONGEST_NEURONS} strongest",
    )

    bos: Annotated[int, _zero_or_one("bos", "1 to put the model's own first token in front, or 0")] = Field(
        0,
        ge=0,
        le=1,
        description="1: the model's own first token stands in front, also where its tokenizer puts none",
    )

    @property
    def changes(self) -> tuple[AnyChange, ...]:
        """Return all that this run changes in the model: what is switched off, coefficients that are set, and values
        that are replaced."""
        return (*self.off, *self.set, *self.mean, *self.patch)

    @property
    def runs(self) -> int:
        """Return how many runs this takes: one, one without the changes if there are any, and one of the second
        text."""
        return 1 + bool(self.changes) + bool(self.from_)


class PromptAsk(PromptArguments, extra="forbid"):
    text: str = Field(min_length=1)
    spare: int = Field(0, ge=0, le=100)  # more tokens of lists of `patterns` or `updates`, for those left out
    only: OnlyTokens = None  # of `patterns` and of all steps of `evolution` but the last, which is the prediction
    unbuilt: Unbuilt | None = None


# Other readings of a stored parameter


class ReadingAsk(Ask[answers.ReadingAnswer]):
    path, answer = "/reading", answers.ReadingAnswer

    kind: str  # a kind of vector
    layer: int
    index: int
    reading: Reading
    lens: Lens = "dot"
    k: int = Field(25, ge=1, le=100)
    only: OnlyTokens = None


class PairsReadingAsk(Ask[answers.PairsReadingAnswer]):
    path, answer = "/pairs-reading", answers.PairsReadingAnswer

    matrix: Matrix
    layer: int
    head: int
    reading: Reading
    side: Side = "both"  # of `first`: which tokens of the pairs are taken as the first block leaves them
    lens: Lens = "dot"
    preset: Preset = "all"
    n: int = Field(50, ge=1, le=1000)
    only: OnlyTokens = None


# A sentence in two models


class StatesAsk(Ask[answers.StatesAnswer]):
    path, answer = "/states", answers.StatesAnswer

    text: str
    layer: int | None = None  # the stream after this layer; None: the last one
    k: int = Field(5, ge=1, le=50)


class StatesReadingAsk(Ask[answers.StatesReadingAnswer]):
    path, answer = "/states-reading", answers.StatesReadingAnswer

    states: bytes  # (positions, d_model) float32, little-endian, row after row
    k: int = Field(5, ge=1, le=50)


# What a model makes of a token before any text


class BeforehandAsk(Ask[answers.BeforehandAnswer]):
    path, answer = "/beforehand", answers.BeforehandAnswer

    token: int = Field(ge=0)


ASKS: tuple[type[Ask[Any]], ...] = (
    BeforehandAsk,
    SeedsAsk,
    RelationAsk,
    TransitionAsk,
    ThroughHeadsAsk,
    PromptAsk,
    ReadingAsk,
    PairsReadingAsk,
    StatesAsk,
    StatesReadingAsk,
)
