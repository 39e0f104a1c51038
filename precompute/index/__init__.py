"""What is on disk, read with numpy and pydantic alone."""

from lexiscope.precompute.index.index import Index

__all__ = ["Index"]
