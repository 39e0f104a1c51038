"""What a visitor is told where something went wrong: on a page by itself, or on a page that stays, in the place of what
cannot be shown."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownError:
    status: int  # of the answer
    title: str
    detail: str
    retry_after: int | None  # seconds after which to ask again is worth it; None where it is not

    @property
    def headers(self) -> dict[str, str]:
        return {} if self.retry_after is None else {"retry-after": str(self.retry_after)}
