"""A head's pairs in another reading, as events: the search takes long enough to tell how far it is.
The page itself is in pages.py, what is asked in readings.py."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from app.routes.arguments import PAIR_ENTRIES
from app.routes.live_events import event_stream
from app.routes.pages import pairs
from app.routes.readings import pairs_ask
from app.routes.table import Call
from app.site import Site
from app.views.pairs import PairsView, pairs_view, with_pairs_reading
from app.wire import PairsReadingAnswer
from precompute.errors import BadRequest


def reading_router(site: Site) -> APIRouter:
    router = APIRouter()

    @router.get("/{model:name}/head/{layer:number}/{head:number}/{matrix:matrix}.events", include_in_schema=False)
    async def events(model: str, layer: int, head: int, matrix: str, request: Request) -> Response:
        index = site.library.index(model)
        asked = pairs.parse(request.scope["query_string"])
        if asked["reading"] is None:
            raise BadRequest("there is nothing to wait for: give a reading, such as reading=norm")
        k = Call(site, index).entries(asked["k"], PAIR_ENTRIES, index.manifest.pairs)
        stored = pairs_view(index, matrix, layer, head, asked["lens"], asked["preset"], k)

        def view(answer: PairsReadingAnswer) -> PairsView:
            return with_pairs_reading(index, stored, asked["reading"], answer)

        run = site.live.stream(model, pairs_ask(stored, asked["reading"], k))
        arguments = {"layer": layer, "head": head, "matrix": matrix, **asked}
        return await event_stream(site, request, pairs, index, arguments, run, view)

    return router
