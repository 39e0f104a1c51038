"""Each noun has one module, which holds everything about its page; `page.py` says what a page consists of."""
