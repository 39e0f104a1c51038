"""Compare two models in one space: the page, and a module for each of its parts."""
