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
from app.routes.arguments import Lens
from app.routes.dependencies import LiveOfModel, ServedIndex, SiteSettings
from app.routes.page_answer import ModelPage, PageRoute, page
from app.views.lengths import HEAD_TOKENS, SEED_RESULTS
from app.views.prompt import PromptView, prompt_form, prompt_view
from app.views.relation import RelationView, relation_view
from app.views.seeds import SeedsView, seeds_view
from app.views.terms import parse_groups, parse_pairs, parse_terms
from app.views.through_heads import ThroughHeadsView, chosen_layers, through_heads_view
from app.workers.errors import TooLarge, VisitorGone
from precompute.errors import BadRequest
from precompute.live.wire import PromptAsk, RelationAsk, SeedsAsk, ThroughHeadsAsk

PROMPT_FORMATS = ("json", "csv")

router = APIRouter(tags=["live pages"], route_class=PageRoute)


@page(router, "/{model:name}/seeds", SeedsView, live=True)
async def seeds(
    answer: ModelPage, index: ServedIndex, live: LiveOfModel, words: arg.SeedWords = "",
    kind: arg.SeedKinds = (addresses.SEED_KIND,), k: arg.Results = SEED_RESULTS, heads: arg.WithHeads = 0,
) -> Response:  # fmt: skip
    """The vectors that are about a few words, over all layers: computed by the worker, for any words.

    `scores` are those of each word by itself; `nearest` the tokens nearest to the average; with `heads=1`, what every
    head would write for it (W_V W_O) and look for with it (W_Q W_Kᵀ)."""
    model, kinds = index.manifest.model, ",".join(kind)
    answer.at(addresses.seeds(model, words=words, kind=kinds, k=k, heads=heads))
    if not words:
        return answer.show("seeds", seeds_view(index, "", kinds, None))
    ask = SeedsAsk(terms=parse_terms(words), kinds=kind, n=k, heads=bool(heads))
    return answer.show("seeds", seeds_view(index, words, kinds, await live.ask(model, ask, answer.request)))


@page(router, "/{model:name}/relation", RelationView, live=True)
async def relation(
    answer: ModelPage, index: ServedIndex, live: LiveOfModel, pairs: arg.RelationPairs = (), lens: Lens = "dot"
) -> Response:
    """The heads that carry the first word of each pair to the second: computed by the worker, for any words.

    A head's rank is that of the second word among all tokens, for the first word through W_V W_O; the mean over the
    pairs counts. Heads that suppress it have a small `rank_from_bottom`."""
    model, text = index.manifest.model, ",".join(pairs)
    answer.at(addresses.relation(model, pairs=text, lens=lens))
    if not pairs:
        return answer.show("relation", relation_view(index, lens, None))
    ask = RelationAsk(pairs=parse_pairs(text), lens=lens)
    return answer.show("relation", relation_view(index, lens, await live.ask(model, ask, answer.request)))


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


@page(router, "/{model:name}/prompt", PromptView, formats=PROMPT_FORMATS, live=True)
async def prompt(
    answer: ModelPage, index: ServedIndex, live: LiveOfModel, arguments: Annotated[arg.PromptArguments, Query()]
) -> Response:
    """A run of the model, read as words: computed by the worker, for any text.

    Only the panels that are named are computed: `evolution`, what the stream would predict after each step;
    `attention` of every head; `patterns` and messages of every head at one position; the most active `neurons`;
    `coverage`, the paper's R_k. `neuron` and `head` choose one of the layer to tell more of. `off` and `set` change
    the run; `untouched` is then the prediction without. A text that is too long for an address as it is goes by POST,
    as the field `text` of a form, and gets one with `z`."""
    model, panel = index.manifest.model, ",".join(arguments.panel)
    answer.at(prompt_address(model, arguments), PROMPT_FORMATS)
    ask = prompt_ask(arguments)
    if ask is None:
        return answer.show("prompt", prompt_form(index, panel, arguments.convention, arguments.changes))
    return answer.show("prompt", prompt_view(index, ask, panel, await live.ask(model, ask, answer.request)))


@router.post("/{model:name}/prompt", include_in_schema=False)
async def post_prompt(request: Request, index: ServedIndex, settings: SiteSettings) -> Response:
    """Gives every text an address, and goes there."""
    arguments = await _form_arguments(request)
    address = prompt_address(index.manifest.model, arguments)
    if len(address) > settings.url_limit:
        raise TooLarge(
            f"a text of {len(arguments.text)} characters: its address would have {len(address)} bytes, and up "
            f"to {settings.url_limit} are read (the setting url_limit)"
        )
    return RedirectResponse(address, 303, {"cache-control": "no-store"})


def prompt_address(model: str, arguments: arg.PromptArguments) -> str:
    several = {name: ",".join(getattr(arguments, name)) for name in ("panel", "off", "set")}
    return addresses.prompt(model, **{**arguments.__dict__, **several})


def prompt_ask(arguments: arg.PromptArguments) -> PromptAsk | None:
    """None while there is no text."""
    if not arguments.whole_text:
        return None
    return PromptAsk.model_validate(
        {
            "text": arguments.whole_text, "panels": arguments.panel, "position": arguments.position,
            "layer": arguments.layer, "neuron": arguments.neuron, "head": arguments.head,
            "interventions": arguments.changes, "convention": arguments.convention, "k": arguments.k,
        }
    )  # fmt: skip


async def _form_arguments(request: Request) -> arg.PromptArguments:
    """A byte that is no text becomes a mark. The position is that of another text: this one is read from its end."""
    try:
        body = await request.body()
    except ClientDisconnect:
        raise VisitorGone("the visitor left before the form had arrived") from None
    fields = QueryParams(body.decode("utf-8", "replace"))
    if not fields.get("text"):
        raise BadRequest("there is no text: send it as the field text of a form")
    length = sum(len(value) for name in ("off", "set") for value in fields.getlist(name))
    if length > (limit := request.app.state.settings.url_limit):
        raise TooLarge(f"the changes to this run (off, set) have {length} characters: up to {limit} are read")
    several = {name: fields.getlist(name) for name in ("panel", "off", "set") if name in fields}
    try:
        return arg.PromptArguments.model_validate({**fields, **several, "position": None})
    except ValidationError as error:
        raise RequestValidationError(error.errors()) from None
