"""What a page of words through heads shows first: clear lists, and heads in which a word comes back."""

from collections.abc import Sequence

import pytest

from lexiscope.app.html.links import first_layers
from lexiscope.app.lists.readable import SAME
from lexiscope.app.pages.heads import CARDS, Echo, ThroughHeadsView
from lexiscope.precompute.errors import NotFound
from lexiscope.precompute.index.index import Index
from lexiscope.precompute.live.wire.answers import HeadReading, ScoredToken, ThroughHeadsAnswer, WordUsed
from tests.app.lists.test_worth_reading import DULL, FORMS, LETTERS, WORDS, ids, opened, words
from tests.support.views import make_view


@pytest.fixture(scope="module")
def word_index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    return opened(tmp_path_factory.mktemp("through") / "words")


def reading(head: int, seeks: Sequence[int], alike: float | None, writes: Sequence[int] = ()) -> HeadReading:
    seeks_, writes_ = (
        [ScoredToken(id=token, score=1.0) for token in tokens] for tokens in (seeks, writes or ids(*LETTERS[:6]))
    )
    return HeadReading(layer=1, head=head, seeks=seeks_, seeks_alike=alike, writes=writes_, writes_alike=0.7)


def view_of(
    index: Index, *readings: HeadReading, word: str = "x", tokens: tuple[int, ...] = (0, 1)
) -> ThroughHeadsView:
    answer = ThroughHeadsAnswer(
        groups=[[WordUsed(word=word, tokens=[{"id": token} for token in tokens])]], heads=[[*readings]]
    )
    view: ThroughHeadsView = make_view(index, "heads", {}, {"answers": [answer]}, words=word, layers="1")
    return view


def test_clear_lists_are_of_words_that_are_alike(word_index: Index) -> None:
    view = view_of(
        word_index,
        reading(0, words(0, 6), 0.3),
        reading(1, words(6, 6), 0.5),
        reading(2, words(6, 6), 0.4),  # the same again
        reading(3, ids(*FORMS), 0.6),  # one word
        reading(4, ids(*DULL[:6]), 0.6),  # not learned
        reading(5, words(12, 6), SAME),
        reading(6, words(18, 6), None),
        reading(7, words(24, 3) + ids(*LETTERS[:5]), 0.6),
    )
    assert [(clear.head, clear.is_sought, clear.alike) for clear in view.clearest] == [(1, True, 0.5), (0, True, 0.3)]
    many = [reading(head, words(6 * head, 6), 0.5) for head in range(12)]
    assert len(view_of(word_index, *many).clearest) == CARDS


@pytest.mark.parametrize(("word", "tokens", "rank"), [
    (" BALI", (0, 1), 3), ("x", (ids(WORDS[0])[0],), 3), ("x", (ids(WORDS[0])[0], 1), None), ("x+y", (0, 1), None),
])  # fmt: skip
def test_the_word_itself_whatever_its_case_and_space(
    word_index: Index, word: str, tokens: tuple[int, ...], rank: int | None
) -> None:
    """A piece of a word is not the word."""
    assert WORDS[0] == " bali"
    view = view_of(word_index, reading(2, [5, 6, *words(0, 2)], 0.1), word=word, tokens=tokens)
    assert view.heads[0]["words"][0]["seeks_itself"] == rank
    assert view.echoes[0].seeks == ([Echo(layer=1, head=2, rank=rank)] if rank else [])


def test_heads_that_echo_come_by_rank(word_index: Index) -> None:
    bali = words(0, 1)
    heads = [reading(0, [5, 6], 0.1), reading(1, [5, *bali], 0.1, bali), reading(2, [*bali, 5], 0.1)]
    view = view_of(word_index, *heads, word="bali")
    assert [(echo.head, echo.rank) for echo in view.echoes[0].seeks] == [(2, 1), (1, 2)]
    assert [(echo.head, echo.rank) for echo in view.echoes[0].writes] == [(1, 1)]


def test_layers(word_index: Index) -> None:
    assert first_layers(word_index) == "0-1"
    page = make_view(word_index, "heads", {}, layers="all")
    assert (page.layers, page.earlier, page.later) == ("all", None, None)
    with pytest.raises(NotFound, match="has layers 0 to 1"):
        make_view(word_index, "heads", {}, layers="0-2")


def test_a_page_that_was_asked_nothing(word_index: Index) -> None:
    view = make_view(word_index, "heads", {})
    assert (view.groups, view.heads, view.clearest, view.earlier, view.later) == ([], [], [], None, "1")
