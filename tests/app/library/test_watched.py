"""A value that is made again when its files may have changed."""

from lexiscope.app.library.watched import Watched


def test_it_is_read_again_when_it_is_due() -> None:
    always, patient = (Watched[int](lambda before: (before or 0) + 1, every) for every in (0, 3600))
    assert [always.value() for _ in range(3)] == [1, 2, 3]
    assert [patient.value() for _ in range(3)] == [1, 1, 1]


def test_it_is_read_at_once_when_it_is_outdated() -> None:
    watched = Watched[int](lambda before: (before or 0) + 1, 3600, lambda value: value < 3)
    assert [watched.value() for _ in range(4)] == [1, 2, 3, 3]


def test_an_error_leaves_the_value_before() -> None:
    errors = [False, True, False]

    def read(before: int | None) -> int:
        if errors.pop(0):
            raise OSError
        return (before or 0) + 1

    watched = Watched[int](read, 0)
    assert watched.value() == 1
    try:
        watched.value()
    except OSError:
        assert watched.value() == 2
