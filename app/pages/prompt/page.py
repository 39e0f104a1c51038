"""Show a run of the model on a text: the request, the worker's answer with tokens beside their ids, and stored lists
beside neurons and heads."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Annotated, Any, Literal
from urllib.parse import quote

from pydantic import Field, model_validator

from lexiscope.app.formats.table import Table
from lexiscope.app.lists.difference import check_can_run
from lexiscope.app.lists.first_tokens import FirstLists, unbuilt
from lexiscope.app.lists.kept_tokens import READ_TO_SKIP_HUBS
from lexiscope.app.lists.view import PAGE_ONLY, ViewOfModel, of_index
from lexiscope.app.pages.page import Address, ModelSite, Page
from lexiscope.app.pages.prompt import prediction
from lexiscope.app.pages.prompt.all_layers import AllLayersView, asks_of_all, runs_of_all
from lexiscope.app.pages.prompt.heads import MEASURES, HeadMeasure, MeasuredHead, measured_heads
from lexiscope.app.pages.prompt.panel import COLUMNS, Panel, Record
from lexiscope.app.pages.prompt.panels import PANELS
from lexiscope.app.pages.prompt.patterns import RepeatedWord
from lexiscope.app.pages.prompt.prediction import CHANGES, Change, change_of
from lexiscope.app.pages.prompt.sheet import SheetArguments, ShownRows, check_sheet, chosen_rows
from lexiscope.app.urls import DATA_FORMATS, pack, unpack
from lexiscope.precompute.errors import BadRequest, NotFound
from lexiscope.precompute.live.wire.answers import (
    ActiveNeuron,
    Attribution,
    ChosenNeuron,
    CoverageRow,
    EvolutionRow,
    FirstToken,
    HeadAttention,
    HeadList,
    HeadPattern,
    HeadSummary,
    MeanOver,
    Positions,
    Predicted,
    PromptAnswer,
    Right,
    SecondText,
    Sheet,
    Sweep,
    TextNeuron,
    Token,
    TokenPattern,
    Truth,
    Update,
    put_words,
)
from lexiscope.precompute.live.wire.asks import MAX_NUMBER, PromptArguments, PromptAsk
from lexiscope.precompute.shape import Predicts

LONGEST_PLAIN_TEXT = 1200  # most characters of a text, escaped for an address: a longer text is compressed
PACKED = {"z": "text", "z_from": "from"}  # arguments that hold a long text, and those that hold a short one
FORMATS = ("json", "csv")
TEXT_FORMATS = ("md", "tex")  # formats of those panels whose tables have a form for people outside the site
PREDICTS = (
    "What prediction and evolution hold. next: probabilities `p` of the next token; masked: `p` of the token at the "
    "position itself, by an encoder's MLM head; nearest: an encoder without such a head: the tokens that the stream is "
    "nearest to, their cosine as `score`, and no `p`"
)


class PromptAt(Address):
    pattern = "prompt"


class PromptQuery(SheetArguments):
    """The arguments of a run as addresses have them: long texts are compressed."""

    z: str | None = Field(
        None, description="Instead of `text`, a long one: UTF-8, raw deflate, base64 for addresses. POST makes it"
    )
    z_from: str | None = Field(None, description="Instead of `from`, a long one, compressed in the same way")

    layer: Annotated[int, Field(ge=0, le=MAX_NUMBER)] | Literal["all"] | None = Field(  # type: ignore[assignment]  # only this page knows `all`
        None,
        description="Which layer to look at in `attention` (a long text has no other) and `patterns`; the last. "
        "`updates` has its heads where it is given. In "
        "`.csv`, of patterns: `all`, and then all positions or, with `rows=tokens`, all heads",
    )

    by: HeadMeasure = Field("repeats", description=f"What the map of `heads` is coloured by: {', '.join(MEASURES)}")

    side: HeadList | None = Field(None, description="Of `by`: the list whose words count; that with the most")

    @model_validator(mode="before")
    @classmethod
    def _unpack(cls, values: Any) -> Any:
        """Put texts that were compressed for the address where they belong."""
        for packed, name in PACKED.items():
            if isinstance(values, dict) and values.get(packed):
                values = {**values, name: unpack(values[packed]), packed: None}
        return values

    def query(self) -> dict[str, Any]:
        query = super().query()
        for packed, name in PACKED.items():
            if len(quote(query.get(name, ""))) > LONGEST_PLAIN_TEXT:
                query = {packed: pack(query.pop(name)), **query}
        return query


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptView(ViewOfModel):
    text: str
    panel: str
    convention: str  # the convention of patterns and messages
    lens: str  # the lens of patterns and messages, and of the stored lists
    rows: str  # rows of patterns: heads at the position, or tokens at the head
    predicts: Annotated[Predicts, Field(description=PREDICTS)]
    position: int | None  # None while there is no text
    layer: int | None
    head: int | None  # a head of the layer, if the visitor asked about one
    changes: list[Change]
    bos: FirstToken | None = None  # None while there is no text
    tokens: list[Token]
    prediction: Predicted
    untouched: Predicted  # the prediction without the changes of the run; empty if there are none
    mean_over: MeanOver | None = None  # what the means that replace values are over
    from_text: str = ""  # the second text
    from_: Annotated[SecondText | None, Field(alias="from")] = None  # its run
    word: Token | None = None  # the word of each step of the evolution: the one asked about, or the answer
    truth: list[Truth] | None = None  # what the model predicts of the text's own tokens
    right: Right | None = None  # how many of these were the likeliest
    appears: int | None = None  # the first layer from which on the answer stays the likeliest
    evolution: list[EvolutionRow] | None = None
    evolution_untouched: list[EvolutionRow] | None = None
    attention: list[HeadAttention] | None = None
    looks: list[list[list[float]]] | None = None  # by layer and head: attention weights from the position
    patterns: list[HeadPattern] | None = None
    patterns_by_token: list[TokenPattern] | None = None
    repeats_of_head: list[RepeatedWord] | None = None  # with `rows=tokens`: words that stand in many rows
    sheet: Sheet | None = None
    shown_rows: Annotated[ShownRows | None, PAGE_ONLY] = None  # of the sheet
    neurons: list[ActiveNeuron] | None = None
    neuron: ChosenNeuron | None = None  # the neuron that the visitor asked about, if any
    activations: list[TextNeuron] | None = None  # the neurons whose activations were asked for
    # Strongest neurons of the whole text; then those that fire on its first token only.
    strongest: list[TextNeuron] | None = None
    updates: list[Update] | None = None
    by: HeadMeasure = "repeats"  # what the map of the panel `heads` is coloured by
    side: HeadList | None = None
    heads: list[HeadSummary] | None = None
    letter_chance: float | None = None  # what `letter` of the heads would be with lists of random tokens
    first_even: float | None = None  # what `first` of the heads would be if attention were spread evenly
    positions: Positions | None = None
    coverage: list[CoverageRow] | None = None
    attribution: Attribution | None = None
    sweep: Sweep | None = None

    tabs = PANELS.values()  # all panels (parts of the result)
    head_measures = MEASURES  # what the map of heads can be coloured by, and how people say it

    @property
    def differing(self) -> set[int]:
        """Return the positions at which the second text has another token than the first. If one is longer, these are
        all between what both begin with and what both end with."""
        texts = self.tokens, self.from_["tokens"] if self.from_ else []
        first, second = ([token["id"] for token in text] for text in texts)
        if len(first) == len(second):
            return {at for at, token in enumerate(second) if token != first[at]}
        start = _alike(first, second)
        end = _alike(first[start:][::-1], second[start:][::-1])
        return {*range(start, len(second) - end)}

    @property
    def has_lists(self) -> bool:
        """Return True if the run has a panel with lists, from which hubs (tokens in very many lists) may be left
        out."""
        return any(panel.has_lists for panel in _panels(self.panel.split(",")))

    @property
    def measured_heads(self) -> list[MeasuredHead]:
        """Return all heads, those with the most of the map's measure first."""
        return measured_heads(self.heads or (), self.by, self.side)

    @property
    def sheet_table(self) -> Table:
        """Return the page of the sheet that is shown."""
        return PANELS["sheet"].tables(self)[0]

    def repeated(self, name: str) -> frozenset[int]:
        """Return the tokens that one list (looks_for, found_by, sends) of the head holds in many rows."""
        found = [repeat["tokens"] for repeat in self.repeats_of_head or () if repeat["list"] == name]
        return frozenset(token["id"] for tokens in found for token in tokens)

    def about(self) -> dict[str, Any]:
        return {"model": self.model, "convention": self.convention, "lens": self.lens}

    def tables(self) -> list[Table]:
        """Return one long table for programs, panel by panel, and, for people, the tables of those panels that have
        them."""
        if self.panel == "sheet":  # its rows alone
            return PANELS["sheet"].for_programs(self)
        for_people = [table for panel in PANELS.values() if panel.has_text for table in panel.tables(self)]
        run = Table("", COLUMNS, self._rows(), "programs", ("convention", "lens"))
        named = self.panel.split(",")
        shown = [panel for panel in PANELS.values() if not panel.file_tables or panel.name in named]
        return [*for_people, run, *(table for panel in shown for table in panel.for_programs(self))]

    def _rows(self) -> Iterator[Record]:
        yield from prediction.token_rows(self)
        yield from prediction.change_rows(self.changes)
        yield from prediction.rows(self)


def _alike(one: Sequence[int], other: Sequence[int]) -> int:
    """Return with how many equal items both begin."""
    pairs = zip(one, other, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _panels(names: Collection[str]) -> list[Panel]:
    return [panel for panel in PANELS.values() if panel.name in names]


def prompt(site: ModelSite, _: PromptAt, ask: PromptQuery) -> PromptView | AllLayersView:
    """A run of the model, read as words: computed by the worker, for any text.

    Only the panels that are named are computed: `evolution`, what the model would predict from the stream after each
    step; `attention` of every head; `patterns` and messages of every head at one position, or with `rows=tokens` of
    every token of the text at one head; `updates`, what each layer added to the stream; the most active `neurons`;
    `coverage`, the paper's R_k; `attribution`, what heads and neurons added to the logit of a `token`; `sweep`, what
    switching each head or strong neuron off changes. `neuron` and `head` choose one of the layer to show in detail.
    `off`, `set`, `mean` and `patch` change the run; `untouched` is then the prediction without changes. `from` is a
    second text, whose run is shown beside it. A text that is too long for an address is sent by POST, as the field
    `text` of a form, and gets an address with the compressed text, `z`.
    """
    if ask.layer == "all":
        every = runs_of_all(site.index.shape, ask, len(site.answers[0]["tokens"]))
        runs = [_view(site, each, answer) for each, answer in zip(every, site.answers, strict=True)]
        return AllLayersView(**of_index(site.index), convention=ask.convention, lens=ask.lens, runs=runs)
    return _view(site, ask, site.answers[0] if site.answers else None)


def _view(site: ModelSite, ask: PromptQuery, answer: PromptAnswer | None) -> PromptView:
    fields = _run(site, ask, answer) if answer else _form(site)
    return PromptView(
        **of_index(site.index),
        panel=",".join(ask.panel),
        convention=ask.convention,
        lens=ask.lens,
        rows=ask.rows,
        by=ask.by,
        side=ask.side,
        from_text=ask.from_,
        changes=[change_of(kind, change) for kind in CHANGES for change in getattr(ask, kind)],
        **fields,
    )


def _run(site: ModelSite, ask: SheetArguments, answer: PromptAnswer) -> dict[str, Any]:
    """Return the worker's answer with words beside ids, neurons and heads. If hubs (tokens in very many lists) are left
    out, the lists of neurons and of patterns are filled up with other tokens."""
    fields: dict[str, Any] = {**answer}
    lists = FirstLists.of(site.index, ask.lens, fields.pop("lists"), site.left_out(ask.lens))
    if sheet := fields.get("sheet"):
        fields |= chosen_rows(site, ask, sheet, lists, len(answer["tokens"]))
    put_words(fields, site.index.tokens.texts)
    for panel in PANELS.values():
        panel.add_lists(fields, lists, ask)
    # The head of a table of tokens is the first, unless another one was asked about.
    head = 0 if ask.head is None and ask.rows == "tokens" and "patterns" in ask.panel else ask.head
    second = fields.pop("from", None)
    return {**fields, "from_": second, "text": ask.text, "head": head}


def _form(site: ModelSite) -> dict[str, Any]:
    """Return the fields of the page that asks for a text."""
    nowhere = {"position": None, "layer": None, "head": None}
    nothing: dict[str, Any] = {"tokens": [], "prediction": [], "untouched": []}
    return {"text": "", "predicts": site.index.shape.predicts, **nowhere, **nothing}


def asks(site: ModelSite, _: PromptAt, ask: PromptQuery) -> Iterable[PromptAsk]:
    """Return the request for a run, or those for all layers; none while there is no text. The page of a difference of
    two models only links to these models."""
    if ask.layer == "all":
        check_can_run(site.index)
        return asks_of_all(site.index.shape, ask, site.format, partial(_ask, site))
    if site.format != "html":
        check_can_run(site.index)
    if "sheet" in ask.panel:
        check_sheet(ask, site.index.shape, site.format in ("html", "events"))
    if not ask.text and site.format == "events":
        raise BadRequest("there is no text: give it as text=")
    if not ask.text or site.index.stored.difference:
        return []
    return [_ask(site, ask)]


def _ask(site: ModelSite, ask: PromptArguments) -> PromptAsk:
    spare = READ_TO_SKIP_HUBS if site.hide_hubs and {"patterns", "updates"} & {*ask.panel} else 0
    fields = {name: getattr(ask, name) for name in PromptArguments.model_fields}
    if ask.panel == ("sheet",):  # of which these choose rows: the same run answers for all of them
        fields |= {"layer": None, "head": None}
    only = site.kept.packed(site.index)
    return PromptAsk(**fields, spare=spare, only=only, unbuilt=unbuilt(site.index, ask.lens, only))


def formats_of(site: ModelSite, ask: PromptArguments) -> tuple[str, ...]:
    """Return the formats that the page links to."""
    if site.index.stored.difference:
        return ()
    is_sheet, has_pyarrow = ask.panel == ("sheet",), find_spec("pyarrow") is not None
    if site.format == "parquet" and not is_sheet:
        raise NotFound("a run has .parquet of its sheet alone: panel=sheet. There is .json and .csv of all")
    if site.format == "parquet" and not has_pyarrow:
        raise NotFound("a .parquet needs pyarrow, which this server lacks: pip install 'lexiscope[parquet]'")
    if any(panel.has_text for panel in _panels(ask.panel)):
        return (*FORMATS, *TEXT_FORMATS)
    if site.format in TEXT_FORMATS:
        named = [panel.name for panel in PANELS.values() if panel.has_text]
        raise NotFound(
            f"a run has .{site.format} of its {' and '.join(named)} only: add panel={named[0]}. "
            "There is .json and .csv of all"
        )
    return (*FORMATS, "parquet") if is_sheet and has_pyarrow else FORMATS


PROMPT: Page[PromptAt, PromptQuery, Any] = Page(
    name="prompt", title="", at=PromptAt, arguments=PromptQuery, view=PromptView, make=prompt, asks=asks, is_live=True,
    formats=(*DATA_FORMATS, "parquet"), formats_of=formats_of, has_events=True, is_slow=True,
    stages={"run": "running the model", **{panel.name: panel.working or panel.name for panel in PANELS.values()}},
)  # fmt: skip
