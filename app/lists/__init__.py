"""What a page shows, as data: one module per page, each reading an index into a frozen view."""
