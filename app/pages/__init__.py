"""One module for each noun: what its page is, in one place. `page.py` says what that takes."""
