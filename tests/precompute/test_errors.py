import pytest

from lexiscope.precompute.errors import first_line


@pytest.mark.parametrize(("error", "line"), [
    (OSError(111, "Connection refused"), "[Errno 111] Connection refused"),
    (RuntimeError("\n  CUDA error: out of memory  \nCompile with TORCH_USE_CUDA_DSA\n"), "CUDA error: out of memory"),
    (MemoryError(), "MemoryError"),
    (ValueError(" \n"), "ValueError"),
])  # fmt: skip
def test_the_first_line_of_an_error(error: Exception, line: str) -> None:
    assert first_line(error) == line
