"""Everything that can be asked of a model in memory. Asks of pages come in two steps: the arguments of the address, and
the ask itself, with what only the server knows."""

from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, ConfigDict, Field

from lexiscope.precompute.errors import BadRequest
from lexiscope.precompute.live.wire import grammar
from lexiscope.precompute.live.wire.answers import (
    PairsReadingAnswer,
    PanelName,
    PromptAnswer,
    ReadingAnswer,
    RelationAnswer,
    SeedsAnswer,
    StatesAnswer,
    StatesReadingAnswer,
    ThroughHeadsAnswer,
)
from lexiscope.precompute.live.wire.fields import (
    Ask,
    End,
    Lens,
    LensOfScores,
    Matrix,
    Unbuilt,
    Wire,
    empty_is,
    split,
    typed,
)
from lexiscope.precompute.live.wire.grammar import (
    Change,
    ComparedWith,
    Group,
    NeuronPlace,
    NeuronSet,
    Term,
    Word,
    WordPair,
)
from lexiscope.precompute.shape import SEED_KIND, SIDES, Preset

MAX_NUMBER = 10**6  # largest number of a position, layer, neuron or head: far above what any model has
PANELS: tuple[PanelName, ...] = get_args(PanelName)
SEED_RESULTS = 50  # vectors that are about seed words
HEAD_TOKENS = 8  # tokens of what a head looks for with a word, or writes for it
LIKELY_TOKENS = 5  # tokens of a prediction, and of each cell of an evolution

Convention = Literal["final", "vocabulary", "exact"]
PatternRows = Literal["heads", "tokens"]
Reading = Literal["norm", "mlp"]  # the layer's norm folded in; the first MLP applied to the vocabulary


def plain_lines(text: str) -> str:
    """Turn the two characters by which forms end a line into one. Raise BadRequest for a NUL, which no address can
    hold."""
    if "\0" in text:
        raise BadRequest("the text holds a NUL character: leave it out")
    return text.replace("\r\n", "\n")


def _number(description: str) -> Any:
    return Field(ge=0, le=MAX_NUMBER, description=description)


def _named(argument: str, known: tuple[str, ...], usual: str) -> Any:
    """Return a parser of known names, which it gives in their usual order."""

    def parse(text: str) -> tuple[str, ...]:
        named = set(split(text))
        if unknown := named - set(known):
            wrong = sorted(unknown)[0][:100]
            raise BadRequest(f"{argument} = {wrong!r}: there are {', '.join(known)}; several with commas")
        return tuple(name for name in known if name in named) or (usual,)

    return parse


def _zero_or_one(text: str) -> str:
    if text not in ("0", "1"):
        raise BadRequest(f"heads = {text[:100]!r}: write 1 for all heads, or 0 for none")
    return text


# Seed words


class SeedsArguments(Ask[SeedsAnswer]):
    """Words, and which vectors to rank by them."""

    path, answer = "/seeds", SeedsAnswer
    model_config = ConfigDict(extra="ignore")  # FastAPI hands over the whole query

    words: Annotated[
        tuple[Term, ...],
        Field(
            description='Words such as `horse,dog,lion`; weighted `king - man + woman`, `2*dog`; `"New York"`',
            examples=["horse,dog,lion", "king - man + woman"],
        ),
        *typed(grammar.parse_terms, grammar.write_terms),
    ] = ()
    kind: Annotated[
        tuple[str, ...],
        Field(
            description=f"Kinds of vectors to rank: {', '.join(SIDES)}; several, or with commas",
            examples=[["ff_value"]],
        ),
        *typed(_named("kind", tuple(SIDES), SEED_KIND), list, several=True),
    ] = (SEED_KIND,)
    k: Annotated[int, Field(ge=1, le=1000, description="How many vectors"), empty_is(SEED_RESULTS)] = SEED_RESULTS
    heads: Annotated[
        int,
        Field(ge=0, le=1, description="1: also what every head would do with the average"),
        *typed(_zero_or_one, int)[:1],
        empty_is(0),
    ] = 0
    lens: LensOfScores = "dot"


class VectorPlace(Wire):
    kind: str
    layer: int = Field(ge=0)
    index: int = Field(ge=0)


class SeedsAsk(SeedsArguments):
    model_config = ConfigDict(extra="forbid")

    # As terms, not as text: whoever asks may choose their spelling.
    words: Annotated[tuple[Term, ...], Field(min_length=1)]
    unbuilt: Unbuilt | None = None
    rank_of: VectorPlace | None = None  # also the rank of this vector, however far behind


# Pairs of words to heads


class RelationArguments(Ask[RelationAnswer]):
    """Pairs of words, and which matrix of heads to look into."""

    path, answer = "/relation", RelationAnswer
    model_config = ConfigDict(extra="ignore")

    pairs: Annotated[
        tuple[WordPair, ...],
        Field(
            description="Pairs of words such as `France>Paris,Italy>Rome`: what is read, and what should be written",
            examples=[["France>Paris", "Italy>Rome"]],
        ),
        *typed(grammar.parse_pairs, grammar.write_pairs, several=True),
    ] = ()
    lens: LensOfScores = "dot"
    matrix: Annotated[
        Matrix,
        Field(
            description="`vo`: what heads write having attended to the first words; `qk`: what they look for at them"
        ),
        empty_is("vo"),
    ] = "vo"


class RelationAsk(RelationArguments):
    model_config = ConfigDict(extra="forbid")

    pairs: Annotated[tuple[WordPair, ...], Field(min_length=1)]


# Words through heads


class ThroughHeadsArguments(Ask[ThroughHeadsAnswer]):
    """Words, and the heads they go through."""

    path, answer = "/heads", ThroughHeadsAnswer
    model_config = ConfigDict(extra="ignore")

    words: Annotated[
        tuple[Group, ...],
        Field(
            description='Words such as `couch,dog`; `horse+lion`, the mean of both; `"New York"`; '
            "`#3290`, a token by id",
            examples=["couch,dog,run,happy", "horse+lion"],
        ),
        *typed(grammar.parse_groups, grammar.write_groups),
    ] = ()
    layers: Annotated[
        tuple[int, ...] | None,  # None: all of them
        Field(description="Layers whose heads the words go through: `0-3`, `0,2,5` or `all`", examples=["0-3"]),
        *typed(grammar.parse_layers, grammar.write_layers),
        empty_is((0,)),
    ] = (0,)
    head: Annotated[int | None, _number("Only this head of each layer; all of them"), empty_is(None)] = None
    lens: LensOfScores = "dot"
    end: Annotated[
        End, Field(description="`top`: the largest scores, `bottom`: the most negative ones"), empty_is("top")
    ] = "top"
    k: Annotated[int, Field(ge=1, le=50, description="Tokens of each list"), empty_is(HEAD_TOKENS)] = HEAD_TOKENS


class ThroughHeadsAsk(ThroughHeadsArguments):
    model_config = ConfigDict(extra="forbid")

    words: Annotated[tuple[Group, ...], Field(min_length=1)]
    layers: Annotated[tuple[int, ...], Field(min_length=1)]


# A run of a prompt


class PromptArguments(Ask[PromptAnswer]):
    """A text, and what to tell of its run."""

    path, answer = "/prompt", PromptAnswer
    model_config = ConfigDict(extra="ignore")

    text: Annotated[
        str,
        Field(description="The prompt, as it is", examples=["The capital of France is"]),
        AfterValidator(plain_lines),
    ] = ""
    position: Annotated[
        int | None, _number("Which token to look at, from 0; the last, or an encoder's mask"), empty_is(None)
    ] = None
    layer: Annotated[
        int | None,
        _number("Which layer to look at in `attention` (a long text has no other) and `patterns`; the last"),
        empty_is(None),
    ] = None
    neuron: Annotated[
        int | None, _number("A neuron of that layer to tell of in `neurons`, however weak it is"), empty_is(None)
    ] = None
    head: Annotated[
        int | None, _number("A head of that layer to tell more of in `attention` and `patterns`"), empty_is(None)
    ] = None
    panel: Annotated[
        tuple[PanelName, ...],
        Field(description=f"What to compute: {', '.join(PANELS)}; several, or with commas", examples=[["evolution"]]),
        *typed(_named("panel", PANELS, PANELS[0]), list, several=True),
    ] = PANELS[:1]
    off: Annotated[
        tuple[Change, ...],
        Field(
            description="Neurons and heads to switch off in this run, at all positions or at one (`8.h11@3`)",
            examples=[["10.2361", "8.h11"]],
        ),
        *typed(grammar.parse_off, grammar.write_off, several=True),
    ] = ()
    set: Annotated[
        tuple[NeuronSet, ...],
        Field(
            description="Neurons whose coefficient is set in this run, at all positions or at one (`10.5:2.5@3`)",
            examples=[["10.5:2.5"]],
        ),
        *typed(grammar.parse_set, grammar.write_set, several=True),
    ] = ()
    convention: Annotated[
        Convention,
        Field(
            description="How `patterns` are compared with tokens: final norm, the layer's norm on tokens, or exactly"
        ),
        empty_is("vocabulary"),
    ] = "vocabulary"
    lens: Annotated[
        Lens,
        Field(description="Of `patterns`, and of the stored lists of `neurons`: `dot` or `cosine`"),
        empty_is("dot"),
    ] = "dot"
    rows: Annotated[
        PatternRows,
        Field(description="Of `patterns`: all `heads` at the position, or all `tokens` at the head (or head 0)"),
        empty_is("heads"),
    ] = "heads"
    k: Annotated[int, Field(ge=1, le=50, description="Tokens of each cell and prediction"), empty_is(LIKELY_TOKENS)] = (
        LIKELY_TOKENS
    )
    neurons: Annotated[
        tuple[NeuronPlace, ...],
        Field(description="Neurons whose coefficients at all tokens the panel `neurons` tells", examples=[["29.1240"]]),
        *typed(grammar.parse_neurons, grammar.write_neurons, several=True),
    ] = ()
    token: Annotated[
        Word | None,
        Field(
            description="Whose logit `attribution` explains: a token's id, or a word; the predicted", examples=["run"]
        ),
        *typed(grammar.parse_token, grammar.write_token),
    ] = None
    against: Annotated[
        Word | ComparedWith,
        Field(
            description="What that logit is compared with: the `mean` of all tokens, `none`, or a token's id or a word"
        ),
        *typed(grammar.parse_against, grammar.write_against),
    ] = "mean"

    @property
    def changes(self) -> tuple[Change, ...]:
        """Return all changes of the run."""
        return (*self.off, *self.set)


class PromptAsk(PromptArguments):
    model_config = ConfigDict(extra="forbid")

    text: str = Field(min_length=1)
    spare: int = Field(0, ge=0, le=100)  # more tokens of each list of `patterns`, for those that will be left out
    unbuilt: Unbuilt | None = None


# Other readings of a stored parameter


class ReadingAsk(Ask[ReadingAnswer]):
    path, answer = "/reading", ReadingAnswer

    kind: str  # a kind of vector
    layer: int
    index: int
    reading: Reading
    lens: Lens = "dot"
    k: int = Field(25, ge=1, le=100)


class PairsReadingAsk(Ask[PairsReadingAnswer]):
    path, answer = "/pairs-reading", PairsReadingAnswer

    matrix: Matrix
    layer: int
    head: int
    reading: Reading
    lens: Lens = "dot"
    preset: Preset = "all"
    n: int = Field(50, ge=1, le=1000)


# A sentence in two models


class StatesAsk(Ask[StatesAnswer]):
    path, answer = "/states", StatesAnswer

    text: str
    layer: int | None = None  # the stream after it; the last one
    k: int = Field(5, ge=1, le=50)


class StatesReadingAsk(Ask[StatesReadingAnswer]):
    path, answer = "/states-reading", StatesReadingAnswer
    model_config = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")

    states: bytes  # (positions, d_model) float32, little-endian, row after row
    k: int = Field(5, ge=1, le=50)


ASKS: tuple[type[Ask[Any]], ...] = (
    SeedsAsk,
    RelationAsk,
    ThroughHeadsAsk,
    PromptAsk,
    ReadingAsk,
    PairsReadingAsk,
    StatesAsk,
    StatesReadingAsk,
)
