"""The page of two models in one space."""

from dataclasses import replace

from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from lexiscope.app import addresses
from lexiscope.app.routes import arguments as arg
from lexiscope.app.routes.dependencies import AnyLive, SiteLibrary, SiteSettings
from lexiscope.app.routes.error_pages import trouble_of, wants_data
from lexiscope.app.routes.live_arguments import SentenceLayer, SentenceText
from lexiscope.app.routes.page_answer import PageRoute, TwoModelsPage, page
from lexiscope.app.routes.sentences import read_sentence
from lexiscope.app.views.comparison import ComparisonView, check_has_data, comparison_view
from lexiscope.precompute.errors import LexiscopeError, NotFound
from lexiscope.precompute.live.wire.errors import VisitorGone

router = APIRouter(route_class=PageRoute)


@page(
    router, "/{model:name}/vs/{other:name}", ComparisonView, formats=addresses.FIGURE_FORMATS,
    responses={303: {"description": "They are compared the other way round: goes there"}},
)  # fmt: skip
async def comparison(
    answer: TwoModelsPage, library: SiteLibrary, live: AnyLive, settings: SiteSettings, model: arg.ComparedModel,
    other: arg.OtherModel, kind: arg.ComparedKind = None, text: SentenceText = "", layer: SentenceLayer = None,
) -> Response:  # fmt: skip
    """Two models in one space: how alike their layers are, which is assigned to which, and the vectors that match.

    `stitching` is what the last layers of the second made of states of the first. With a `text`, workers tell what the
    first reads in its states after a `layer`, and what these become in the second. With `.svg` it is a figure of the
    maps, of one kind or of all."""
    try:
        found = library.comparison(model, other)
    except NotFound:
        if any((card.a, card.b) == (other, model) for card in library.comparisons()):
            return answer.redirect(addresses.link("comparison", other, model, kind=kind, text=text))
        raise
    words = " ".join(map(library.index_version, (model, other)))
    address = addresses.link("comparison", model, other, kind=kind, text=text, layer=layer if text else None)
    is_live = live.serves(model) and live.serves(other)
    answer.at(address, addresses.FIGURE_FORMATS, also=f"{words} {is_live}")
    view = await run_in_threadpool(comparison_view, library, found, kind, answer.hubs is not None)
    view = replace(view, takes_sentence=is_live and view.stitches and all(side.words for side in view.models))
    if text:
        try:
            sentence = await read_sentence(live, library, settings, found, text, layer, answer.request)
            view = replace(view, sentence=sentence)
        except LexiscopeError as error:
            if isinstance(error, VisitorGone) or wants_data(answer.request):
                raise
            view = replace(view, sentence_trouble=trouble_of(error, answer.request))  # all else can still be read
    if answer.format not in ("html", "json"):
        check_has_data(view)
    return answer.show("comparison", view, trouble=view.sentence_trouble)
