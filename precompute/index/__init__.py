"""What is on disk, read with numpy and pydantic alone."""

from precompute.index.index import Index

__all__ = ["Index"]
