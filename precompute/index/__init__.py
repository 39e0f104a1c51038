"""Read what is on disk, with numpy and pydantic alone."""

from lexiscope.precompute.index.index import Index

__all__ = ["Index"]
