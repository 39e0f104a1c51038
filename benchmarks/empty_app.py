"""A FastAPI app with one endpoint that does nothing, served as the explorer is: what it costs to answer at all."""

import argparse

from fastapi import FastAPI

from lexiscope.app.asgi.http_server import browser_address, listen, make_server
from lexiscope.app.settings import load

app = FastAPI()


@app.get("/")
async def empty() -> dict[str, str]:
    return {}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    listener = listen("127.0.0.1", parser.parse_args().port)
    print(f"An empty endpoint is at {browser_address(listener)}", flush=True)
    make_server(app, load(), grace_seconds=1).run(sockets=[listener])
