"""Read tables for tests: the rows of a CSV, and tokens that would spoil a table which does not escape them."""

import csv
import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.testclient import TestClient

NASTY = [
    " dog",
    "<script>",
    "a|b",
    "`x`",
    "\\",
    "*b*_c_",
    "a\nb",
    "\x00",
    "100%",
    "$x^2_~{}&#",
    '"q"',
    "--",
    "‮abc",
    "é",
    "",
]


def rows(client: "TestClient", path: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(client.get(path).text, newline="")))
