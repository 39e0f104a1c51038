"""A FastAPI app with one endpoint that does nothing, served as the explorer is: what it costs to answer at all."""

import argparse

from fastapi import FastAPI

from app.commands.serve import address, listen, run_app
from app.settings import load

app = FastAPI()


@app.get("/")
async def empty() -> dict[str, str]:
    return {}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    listener = listen("127.0.0.1", parser.parse_args().port)
    print(f"An empty endpoint is at {address(listener)}", flush=True)
    run_app(app, load(), listener)
