"""Show a run of the model, read as words: the page, and a module for each of its panels."""
