"""The pages of the site: each has one module, or folder, with everything about it; `page.py` says what a page consists
of."""
