"""The pages that a worker computes, for whatever a visitor types."""

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.datastructures import QueryParams
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response

from app import addresses
from app.routes import live_arguments as arg
from app.routes.arguments import AskedMatrix, Hubs, Lens
from app.routes.dependencies import LiveOfModel, ServedIndex, SiteSettings
from app.routes.page_answer import ModelPage, PageRoute, page
from app.routes.unknown_arguments import check_names
from app.views.difference import check_can_run
from app.views.first_tokens import unbuilt
from app.views.hubs import LOOKED_AT
from app.views.lengths import HEAD_TOKENS, SEED_RESULTS
from app.views.prompt import PromptView, prompt_form, prompt_view
from app.views.relation import RelationView, relation_view
from app.views.seeds import SeedsView, seeds_view
from app.views.through_heads import ThroughHeadsView, chosen_layers, through_heads_view
from app.views.typed_parameters import parse_neurons
from app.views.typed_words import parse_against, parse_groups, parse_pairs, parse_terms, parse_token
from app.workers.errors import TooLarge, VisitorGone
from precompute.errors import BadRequest, NotFound
from precompute.index.index import Index
from precompute.live.wire.prompt import PromptAsk
from precompute.live.wire.words import RelationAsk, SeedsAsk, ThroughHeadsAsk

PROMPT_FORMATS = ("json", "csv")
PATTERNS_FORMATS = (*PROMPT_FORMATS, "md", "tex")  # of a run with that panel: its tables are read by people, too

router = APIRouter(tags=["live pages"], route_class=PageRoute)


@page(router, "/{model:name}/seeds", SeedsView, live=True)
async def seeds(
    answer: ModelPage, index: ServedIndex, live: LiveOfModel, words: arg.SeedWords = "",
    kind: arg.SeedKinds = (addresses.SEED_KIND,), k: arg.Results = SEED_RESULTS, heads: arg.WithHeads = 0,
    lens: Lens = "dot",
) -> Response:  # fmt: skip
    """The vectors that are about a few words, over all layers: computed by the worker, for any words.

    `scores` are those of each word by itself; `nearest` the tokens nearest to the average; with `heads=1`, what every
    head would write for it (W_V W_O) and look for with it (W_Q W_Kᵀ). With `lens=cosine` only directions count: of the
    words' embeddings, and of the vectors."""
    model, kinds = index.manifest.model, ",".join(kind)
    answer.at(addresses.seeds(model, words=words, kind=kinds, k=k, heads=heads, lens=lens))
    if not words:
        return answer.show("seeds", seeds_view(index, "", kinds, lens, None))
    ask = SeedsAsk(
        terms=parse_terms(words), kinds=kind, n=k, heads=bool(heads), lens=lens, unbuilt=unbuilt(index, lens)
    )
    result = await live.ask(model, ask, answer.request)
    return answer.show("seeds", seeds_view(index, words, kinds, lens, result, answer.hidden_hubs(lens)))


@page(router, "/{model:name}/relation", RelationView, live=True)
async def relation(
    answer: ModelPage, index: ServedIndex, live: LiveOfModel, pairs: arg.RelationPairs = (), lens: Lens = "dot",
    matrix: AskedMatrix = "vo",
) -> Response:  # fmt: skip
    """The heads that carry the first word of each pair to the second: computed by the worker, for any words.

    A head's rank is that of the second word among all tokens, for the first word through W_V W_O (with `matrix=qk`,
    W_Q W_Kᵀ); the mean over the pairs counts. Heads that suppress it have a small `rank_from_bottom`. `shuffled` is the
    same with other pairs' second words, `identity` with the first words themselves, `chance` how many heads would reach
    such a rank if ranks were drawn at random; `verdict` says how the head stands to them."""
    model, text = index.manifest.model, ",".join(pairs)
    answer.at(addresses.relation(model, pairs=text, lens=lens, matrix=matrix))
    if not pairs:
        return answer.show("relation", relation_view(index, matrix, lens, None))
    ask = RelationAsk(pairs=parse_pairs(text), lens=lens, matrix=matrix)
    return answer.show("relation", relation_view(index, matrix, lens, await live.ask(model, ask, answer.request)))


@page(router, "/{model:name}/heads", ThroughHeadsView, live=True)
async def heads(
    answer: ModelPage, index: ServedIndex, live: LiveOfModel, words: arg.HeadWords = "",
    layers: arg.HeadLayers = addresses.HEAD_LAYERS, head: arg.OneHead = None, lens: Lens = "dot",
    end: arg.ListEnd = "top", k: arg.HeadTokens = HEAD_TOKENS,
) -> Response:  # fmt: skip
    """What the heads of some layers do with some words: computed by the worker, for any words, without a run.

    `seeks` are the tokens a head looks for with a word, e W_Q W_Kᵀ; `writes` those it writes having attended to it,
    e W_V W_O; `..._itself` is the rank of the word itself there. e is the word's embedding: no norm, bias or position.
    """
    model = index.manifest.model
    answer.at(addresses.heads(model, words=words, layers=layers, head=head, lens=lens, end=end, k=k))
    chosen, result = chosen_layers(index, layers), None
    if words:
        ask = ThroughHeadsAsk(groups=parse_groups(words), layers=chosen, head=head, lens=lens, end=end, k=k)
        result = await live.ask(model, ask, answer.request)
    return answer.show("through_heads", through_heads_view(index, words, layers, head, lens, end, result))


@page(router, "/{model:name}/prompt", PromptView, formats=PATTERNS_FORMATS, live=True)
async def prompt(
    answer: ModelPage, index: ServedIndex, live: LiveOfModel, arguments: Annotated[arg.PromptArguments, Query()]
) -> Response:
    """A run of the model, read as words: computed by the worker, for any text.

    Only the panels that are named are computed: `evolution`, what the stream would predict after each step;
    `attention` of every head; `patterns` and messages of every head at one position, or with `rows=tokens` of every
    token of the text at one head; the most active `neurons`; `coverage`, the paper's R_k; `attribution`, what heads
    and neurons added to the logit of a `token`. `neuron` and `head` choose one of the layer to tell more of. `off` and
    `set` change the run; `untouched` is then the prediction without. A text that is too long for an address as it is
    goes by POST, as the field `text` of a form, and gets one with `z`."""
    model, panel = index.manifest.model, ",".join(arguments.panel)
    if index.stored.difference:
        answer.at(prompt_address(model, arguments), ())
        if answer.format != "html":
            check_can_run(index)
        return answer.show("no_run", _form(index, arguments))
    answer.at(prompt_address(model, arguments), prompt_formats(answer.format, arguments))
    ask = prompt_ask(index, arguments, without_hubs=bool(answer.hubs))
    if ask is None:
        return answer.show("prompt", _form(index, arguments))
    result = await live.ask(model, ask, answer.request)
    return answer.show("prompt", prompt_view(index, ask, panel, result, answer.hidden_hubs(ask.lens)))


@router.post("/{model:name}/prompt", include_in_schema=False)
async def post_prompt(request: Request, index: ServedIndex, settings: SiteSettings, hubs: Hubs = None) -> Response:
    """Gives every text an address, and goes there."""
    arguments = await _form_arguments(request)
    address = addresses.turned(prompt_address(index.manifest.model, arguments), hubs=hubs)
    if len(address) > settings.url_limit:
        raise TooLarge(
            f"a text of {len(arguments.text)} characters: its address would have {len(address)} bytes, and up "
            f"to {settings.url_limit} are read (the setting url_limit)"
        )
    return RedirectResponse(address, 303, {"cache-control": "no-store"})


def prompt_address(model: str, arguments: arg.PromptArguments) -> str:
    several = {name: ",".join(getattr(arguments, name)) for name in ("panel", "off", "set", "neurons")}
    return addresses.prompt(model, **{**arguments.__dict__, **several})


def prompt_formats(format: str, arguments: arg.PromptArguments) -> tuple[str, ...]:
    """What the page leads to. Other panels than `patterns` have no table for people."""
    if "patterns" in arguments.panel:
        return PATTERNS_FORMATS
    if format not in ("html", *PROMPT_FORMATS):
        raise NotFound(f"a run has .{format} of its patterns only: add panel=patterns. There is .json and .csv of all")
    return PROMPT_FORMATS


def _form(index: Index, arguments: arg.PromptArguments) -> PromptView:
    panel = ",".join(arguments.panel)
    return prompt_form(index, panel, arguments.convention, arguments.lens, arguments.rows, arguments.changes)


def prompt_ask(index: Index, arguments: arg.PromptArguments, *, without_hubs: bool) -> PromptAsk | None:
    """None while there is no text."""
    if not arguments.whole_text:
        return None
    return PromptAsk.model_validate(
        {
            "text": arguments.whole_text, "panels": arguments.panel, "position": arguments.position,
            "layer": arguments.layer, "neuron": arguments.neuron, "head": arguments.head,
            "interventions": arguments.changes, "convention": arguments.convention, "lens": arguments.lens,
            "rows": arguments.rows, "k": arguments.k, "unbuilt": unbuilt(index, arguments.lens),
            "spare": LOOKED_AT if without_hubs and "patterns" in arguments.panel else 0,
            "rows_of": parse_neurons(",".join(arguments.neurons)),
            "token": arguments.token and parse_token(arguments.token), "against": parse_against(arguments.against),
        }
    )  # fmt: skip


async def _form_arguments(request: Request) -> arg.PromptArguments:
    """A byte that is no text becomes a mark. The position is that of another text: this one is read from its end."""
    try:
        body = await request.body()
    except ClientDisconnect:
        raise VisitorGone("the visitor left before the form had arrived") from None
    fields = QueryParams(body.decode("utf-8", "replace"))
    check_names(fields.keys(), arg.PromptArguments.model_fields)
    if not fields.get("text"):
        raise BadRequest("there is no text: send it as the field text of a form")
    length = sum(len(value) for name in ("off", "set", "neurons") for value in fields.getlist(name))
    if length > (limit := request.app.state.settings.url_limit):
        raise TooLarge(
            f"the changes to this run (off, set) and its neurons have {length} characters: up to {limit} are read"
        )
    several = {name: fields.getlist(name) for name in ("panel", "off", "set", "neurons") if name in fields}
    try:
        return arg.PromptArguments.model_validate({**fields, **several, "position": None})
    except ValidationError as error:
        raise RequestValidationError(error.errors()) from None
