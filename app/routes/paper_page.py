"""The page of the lists that the paper printed, and how much of them is in ours."""

from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from lexiscope.app import addresses
from lexiscope.app.library.library import Library
from lexiscope.app.routes import arguments as arg
from lexiscope.app.routes.dependencies import ServedIndex, SiteLibrary, StoredLens
from lexiscope.app.routes.page_answer import ModelPage, PageRoute, page
from lexiscope.app.views.paper import PaperView, lists_of, paper_view
from lexiscope.precompute.paper.lists import BASE, published_lists

router = APIRouter(route_class=PageRoute)


@page(router, "/{model:name}/paper", PaperView)
async def paper(
    answer: ModelPage, index: ServedIndex, library: SiteLibrary, lens: StoredLens,
    compared_as: arg.ComparedAs = None, chosen: arg.PrintedList = None,
) -> Response:  # fmt: skip
    """The lists that the paper printed of a model (GPT-2 medium, and GPT-2 after fine-tuning): of each, how many
    entries are printed, how many of them are among our first ones, and where our list is.

    With `list`, one printed list entry by entry, with the rank of each entry in ours."""
    own = compared_as if compared_as != lists_of(index.manifest) else None
    address = addresses.link("paper", index.manifest.model, **{"as": own, "list": chosen, "lens": lens})
    tuned = _tuned_from_base(library) if (own or lists_of(index.manifest)) == BASE else []
    answer.at(address, also=f"{tuned}")
    view = await run_in_threadpool(paper_view, index, compared_as, lens, chosen, tuned)  # it reads many lists
    return answer.show("paper", view)


def _tuned_from_base(library: Library) -> list[str]:
    """Return the names of differences whose tuned model was fine-tuned from GPT-2."""
    return [card.model for card in library.cards() if card.tuned and published_lists(card.base, "") == BASE]
