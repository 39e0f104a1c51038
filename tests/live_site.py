"""The explorer with a worker that has loaded its model, and addresses of its live pages: for tests that speak HTTP."""

import time
from typing import TYPE_CHECKING

import pytest

from tests.site import GPT2

if TYPE_CHECKING:
    from starlette.testclient import TestClient

TEXT = "the dog and the lion"
SEEDS = f"/{GPT2}/seeds?words=dog,lion"
RELATION = f"/{GPT2}/relation?pairs=dog%3Edogs,lion%3Ehorse"
PROMPT = f"/{GPT2}/prompt?text=the+dog+and+the+lion"


@pytest.fixture(scope="session")
def live(client: "TestClient") -> "TestClient":
    """The site, when its worker has loaded the model: one worker, for the whole run of the tests."""
    for _ in range(60):
        answer = client.get(f"/{GPT2}/seeds.json?words=dog")
        if answer.status_code == 200:
            return client
        assert (answer.status_code, "retry-after" in answer.headers) == (503, True), answer.text
        time.sleep(0.5)
    raise TimeoutError(answer.text)


def twin(path: str, face: str) -> str:
    path, _, query = path.partition("?")
    return f"{path}{'' if face == 'html' else '.' + face}?{query}"
