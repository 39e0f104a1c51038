"""The page of the lists that the paper printed, beside ours."""

from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from app import addresses
from app.library.library import Library
from app.routes import arguments as arg
from app.routes.dependencies import AnyLive, ServedIndex, SiteLibrary, StoredLens
from app.routes.page_answer import ModelPage, PageRoute, page
from app.views.paper import PaperView, lists_of, paper_view
from app.views.paper_neurons import SPELLINGS, SpeltRank, looked_up
from app.views.tokens import tokens_of
from app.workers.client import LiveClient
from app.workers.errors import LiveOff
from precompute.files import stamp_of
from precompute.index.index import Index
from precompute.index.lab_record import LAB
from precompute.live.wire.words import SeedsAsk, Term, VectorPlace
from precompute.paper.lists import BASE, published_lists

router = APIRouter(tags=["pages"], route_class=PageRoute)


@page(router, "/{model:name}/paper", PaperView)
async def paper(
    answer: ModelPage, index: ServedIndex, library: SiteLibrary, live: AnyLive, lens: StoredLens,
    compared_as: arg.ComparedAs = None, chosen: arg.PrintedList = None, ranks: arg.WithRanks = None,
) -> Response:  # fmt: skip
    """What the paper printed of a model (GPT-2 medium, and GPT-2 after fine-tuning) beside our lists.

    Of each head, how many printed pairs are among our first 50 and 500: exactly, up to the leading space, as printed
    and turned around; of each neuron, how many tokens are among our first 100; and every number that can be checked.
    With `ranks=1` a worker ranks the neurons that the paper looked up by seed words."""
    model = index.manifest.model
    own = compared_as if compared_as != lists_of(index.manifest) else None
    address = addresses.paper(model, **{"as": own, "list": chosen, "lens": lens, "ranks": ranks})
    tuned = _tuned_from_base(library) if (own or lists_of(index.manifest)) == BASE else []
    answer.at(address, also=f"{stamp_of(index.folder / LAB)} {tuned} {live.serves(model)}")
    found = await _ranks(live, index, answer.request) if ranks else {}
    view = await run_in_threadpool(paper_view, index, compared_as, lens, chosen, found, tuned)  # it reads many lists
    return answer.show("paper", view)


async def _ranks(live: LiveClient, index: Index, request: Request) -> dict[tuple[int, int], list[SpeltRank]]:
    """Of the looked-up neurons that this model has, for each way to write the seed words as tokens."""
    model = index.manifest.model
    if not live.serves(model):
        raise LiveOff(live.why_off(model))
    found: dict[tuple[int, int], list[SpeltRank]] = {}
    for seeds, layer, neuron in looked_up(index.shape):
        for spelling in SPELLINGS:
            terms = tuple(Term(word=seed, spelling=spelling) for seed in seeds)
            place = VectorPlace(kind="ff_value", layer=layer, index=neuron)
            result = await live.ask(model, SeedsAsk(terms=terms, kinds=("ff_value",), n=1, rank_of=place), request)
            assert result.rank is not None
            tokens = [tokens_of(index.tokens, term.tokens) for term in result.terms]
            found.setdefault((layer, neuron), []).append({"spelling": spelling, "tokens": tokens, "rank": result.rank})
    return found


def _tuned_from_base(library: Library) -> list[str]:
    """Differences of models that were fine-tuned from GPT-2."""
    return [card.model for card in library.cards() if card.tuned and published_lists(card.base, "") == BASE]
