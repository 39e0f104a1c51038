"""What visitors are told of errors."""

from pathlib import Path

from lexiscope.app.library.checks import for_visitors


def test_files_are_named_from_the_data_folder_on() -> None:
    assert for_visitors("/data/gpt2/layer-1 is damaged", Path("/data")) == "gpt2/layer-1 is damaged"
