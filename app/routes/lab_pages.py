"""The page of the paper's measurements of a model."""

from fastapi import APIRouter
from starlette.responses import Response

from lexiscope.app import addresses
from lexiscope.app.library.labs import lab_version
from lexiscope.app.routes import arguments as arg
from lexiscope.app.routes.dependencies import ServedIndex
from lexiscope.app.routes.page_answer import ModelPage, PageRoute, page
from lexiscope.app.views.lab import LabView, lab_view

router = APIRouter(route_class=PageRoute)


@page(router, "/{model:name}/lab", LabView, formats=addresses.FIGURE_FORMATS)
async def lab(answer: ModelPage, index: ServedIndex, figure: arg.LabFigure = None) -> Response:
    """The paper's measurements of this model, as `lexiscope lab` made them: how similar lists are, how well the
    transpose inverts the embedding, how much of a state active vectors cover. With `.svg` it is a figure of charts."""
    answer.at(
        addresses.link("lab", index.manifest.model, figure=figure), addresses.FIGURE_FORMATS, also=lab_version(index)
    )
    return answer.show("lab", lab_view(index, figure))
