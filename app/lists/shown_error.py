"""Describe an error to a visitor: on a page by itself, or on a page that stays, in the place of what cannot be
shown."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownError:
    status: int  # HTTP status of the answer
    title: str
    detail: str
    retry_after: int | None  # seconds after which the visitor may ask again; None if that would not help

    @property
    def headers(self) -> dict[str, str]:
        return {} if self.retry_after is None else {"retry-after": str(self.retry_after)}
