"""The table of live pages: what a worker computes for whatever a visitor types.
Asking it is for app/live, filling the views for views/; pages of stored lists are in pages.py."""

from app import addresses
from app.packed_text import unpack
from app.routes import live_arguments as arg
from app.routes.arguments import Lens
from app.routes.table import Call, page
from app.views.prompt import PromptView, prompt_form, prompt_view
from app.views.relation import RelationView, relation_view
from app.views.seeds import SeedsView, seeds_view
from app.views.terms import parse_off, parse_pairs, parse_set, parse_terms
from app.wire import Convention, PromptAsk, RelationAsk, SeedsAsk
from app.workers.errors import LiveOff


@page("/{model:name}/seeds", addresses.seeds, arg.SEED_RESULTS, many=("kind",))
async def seeds(
    call: Call, words: arg.SeedWords = "", kind: arg.SeedKinds = "ff_value",
    k: arg.Results = arg.SEED_RESULTS, heads: arg.WithHeads = 0,
) -> SeedsView:  # fmt: skip
    """The vectors that are about a few words, over all layers: computed by the worker, for any words.

    `scores` are those of each word by itself; `nearest` the tokens nearest to the average; with `heads=1`, what every
    head would write for it (W_V W_O) and look for with it (W_Q W_Kᵀ)."""
    _there(call)
    if not words:
        return seeds_view(call.index, "", kind, None)
    ask = SeedsAsk(terms=parse_terms(words), kinds=tuple(kind.split(",")), n=k, heads=bool(heads))
    answer = await call.site.live.ask(call.model, ask, call.request)
    return seeds_view(call.index, words, kind, answer)


@page("/{model:name}/relation", addresses.relation, many=("pairs",))
async def relation(call: Call, pairs: arg.RelationPairs = "", lens: Lens = "dot") -> RelationView:
    """The heads that carry the first word of each pair to the second: computed by the worker, for any words.

    A head's rank is that of the second word among all tokens, for the first word through W_V W_O; the mean over the
    pairs counts. Heads that suppress it have a small `rank_from_bottom`."""
    _there(call)
    if not pairs:
        return relation_view(call.index, lens, None)
    answer = await call.site.live.ask(call.model, RelationAsk(pairs=parse_pairs(pairs), lens=lens), call.request)
    return relation_view(call.index, lens, answer)


@page("/{model:name}/prompt", addresses.prompt, arg.LIKELY, faces=("json", "csv"), many=("panel", "off", "set"))
async def prompt(
    call: Call, text: arg.Text = "", z: arg.Packed = None, position: arg.Position = None, layer: arg.ChosenLayer = None,
    neuron: arg.ChosenNeuron = None, head: arg.ChosenHead = None, panel: arg.Panels = "evolution",
    off: arg.Off = "", set: arg.Set = "",  # noqa: A002
    convention: arg.HowCompared = "final", k: arg.Likeliest = arg.LIKELY,
) -> PromptView:  # fmt: skip
    """A run of the model, read as words: computed by the worker, for any text.

    Only the panels that are named are computed: `evolution`, what the stream would predict after each step;
    `attention` of every head; `patterns` and messages of every head at one position; the most active `neurons`;
    `coverage`, the paper's R_k. `neuron` and `head` choose one of the layer to tell more of. `off` and `set` change
    the run; `untouched` is then the prediction without. A text that is too long for an address as it is goes by POST,
    as the field `text` of a form, and gets one with `z`."""
    _there(call)
    ask = prompt_ask(call, text, z, position, layer, neuron, head, panel, off, set, convention, k)
    if ask is None:
        return prompt_form(call.index, panel, convention, (*parse_off(off), *parse_set(set)))
    return prompt_view(call.index, ask, panel, await call.site.live.ask(call.model, ask, call.request))


def prompt_ask(
    call: Call, text: str, z: str | None, position: int | None, layer: int | None, neuron: int | None,
    head: int | None, panel: str, off: str, set: str, convention: Convention, k: int,  # noqa: A002
) -> PromptAsk | None:  # fmt: skip
    """None while there is no text."""
    _there(call)
    text = unpack(z) if z else text
    if not text:
        return None
    return PromptAsk.model_validate(
        {
            "text": text, "panels": panel.split(","), "position": position, "layer": layer,
            "neuron": neuron, "head": head,
            "interventions": (*parse_off(off), *parse_set(set)), "convention": convention, "k": k,
        }
    )  # fmt: skip


def _there(call: Call) -> None:
    """Also the page that only asks for words says at once that nobody will answer."""
    if not call.site.live.serves(call.model):
        raise LiveOff(call.site.live.why_off(call.model))


LIVE = (seeds, relation, prompt)
