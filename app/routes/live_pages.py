"""The table of live pages: what a worker computes for whatever a visitor types.
Asking it is for app/live, filling the views for views/; pages of stored lists are in pages.py."""

from app import addresses
from app.live.errors import LiveOff
from app.live_types import RelationView, SeedsPageView
from app.routes import live_arguments as arg
from app.routes.arguments import Lens
from app.routes.table import Call, page
from app.terms import parse_pairs, parse_terms
from app.views.relation import relation_page
from app.views.seeds import seeds_page
from app.wire import RelationAsk, SeedsAsk


@page("/{model:name}/seeds", addresses.seeds, arg.SEED_RESULTS, many=("kind",))
async def seeds(
    call: Call, words: arg.SeedWords = "", kind: arg.SeedKinds = "ff_value",
    k: arg.Results = arg.SEED_RESULTS, heads: arg.WithHeads = 0,
) -> SeedsPageView:  # fmt: skip
    """The vectors that are about a few words, over all layers: computed by the worker, for any words.

    `scores` are those of each word by itself; `nearest` the tokens nearest to the average; with `heads=1`, what every
    head would write for it (W_V W_O) and look for with it (W_Q W_Kᵀ)."""
    _there(call)
    if not words:
        return seeds_page(call.index, "", kind, None)
    ask = SeedsAsk(terms=parse_terms(words), kinds=tuple(kind.split(",")), n=k, heads=bool(heads))
    answer = await call.site.live.ask(call.model, ask, call.request)
    return seeds_page(call.index, words, kind, answer)


@page("/{model:name}/relation", addresses.relation, many=("pairs",))
async def relation(call: Call, pairs: arg.RelationPairs = "", lens: Lens = "dot") -> RelationView:
    """The heads that carry the first word of each pair to the second: computed by the worker, for any words.

    A head's rank is that of the second word among all tokens, for the first word through W_V W_O; the mean over the
    pairs counts. Heads that suppress it have a small `rank_from_bottom`."""
    _there(call)
    if not pairs:
        return relation_page(call.index, lens, None)
    answer = await call.site.live.ask(call.model, RelationAsk(pairs=parse_pairs(pairs), lens=lens), call.request)
    return relation_page(call.index, lens, answer)


def _there(call: Call) -> None:
    """Also the page that only asks for words says at once that nobody will answer."""
    if not call.site.live.serves(call.model):
        raise LiveOff(call.site.live._why_off(call.model))


LIVE = (seeds, relation)
