"""Read an index with numpy and pydantic alone: `Index.open("data/gpt2")`. docs/format.md says what each array is."""

from lexiscope.precompute.index.index import Index

__all__ = ["Index"]
