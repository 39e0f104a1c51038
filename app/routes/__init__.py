"""Which address answers what: pages.py is the table of pages, system.py the rest, under /-/ and beside it."""
