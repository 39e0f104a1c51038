"""What the pages of tokens say of those that are no text."""

import pytest

from lexiscope.app.html.glossary import explain_mark


@pytest.mark.parametrize(("token", "said"), [
    ("[CLS]", "before every text"),
    ("<s>", "before every text"),
    ("</s>", "after every text"),
    ("[MASK]", "guess"),
    ("<mask>", "guess"),
    ("[unused791]", "Kept free"),
])  # fmt: skip
def test_marks_are_explained(token: str, said: str) -> None:
    assert said in explain_mark(token)


@pytest.mark.parametrize("token", ["", "s", "cls", "[", "[]", "<div>", "[unused]", "[unusedx]", "mask", "[CLS"])
def test_text_is_no_mark(token: str) -> None:
    assert explain_mark(token) == ""
