"""The page of what people said of a model's parameters."""

from fastapi import APIRouter
from starlette.responses import Response

from lexiscope.app import addresses
from lexiscope.app.routes import arguments as arg
from lexiscope.app.routes.dependencies import ServedIndex, SiteLibrary
from lexiscope.app.routes.page_answer import ModelPage, PageRoute, page
from lexiscope.app.views.labels import SIZE, LabelsView, labels_view

router = APIRouter(route_class=PageRoute)


@page(router, "/{model:name}/labels", LabelsView)
async def labels(
    answer: ModelPage, index: ServedIndex, library: SiteLibrary, page: arg.PageNumber = 1
) -> Response:  # fmt: skip
    """What people said of the model's parameters, from the files of labels in the data folder."""
    answer.at(addresses.link("labels", index.manifest.model, page=page))
    found = library.labels(index)
    view = await answer.make(labels_view, index, found, library.label_faults(), *answer.window(page, SIZE))
    return answer.show("labels", view)
