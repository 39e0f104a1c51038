"""Make the pictures of pages in threads, a few at once, and keep the last ones in memory."""

from starlette.concurrency import run_in_threadpool

from lexiscope.app.formats.png import Picture, as_png
from lexiscope.app.site.limits import RunningLimit

PICTURES_AT_ONCE = 2
PICTURES_KEPT = 500  # of about 20 KB


class Pictures:
    def __init__(self) -> None:
        self._limit = RunningLimit(PICTURES_AT_ONCE, f"{PICTURES_AT_ONCE} pictures are being drawn already")
        self._kept: dict[str, bytes] = {}  # by ETag, the longest unused first

    async def png(self, etag: str, picture: Picture) -> bytes:
        """Return the PNG of a page whose version is `etag`, which changes with the index; answer 503 if too many are
        being drawn."""
        drawn = self._kept.pop(etag, None)
        if drawn is None:
            with self._limit.slot():
                drawn = await run_in_threadpool(as_png, picture)
        self._kept[etag] = drawn  # the last one of those kept
        if len(self._kept) > PICTURES_KEPT:
            del self._kept[next(iter(self._kept))]
        return drawn
