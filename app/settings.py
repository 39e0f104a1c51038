"""Every setting of the server, with its meaning. A value comes from the command line, else from LEXISCOPE_... in the
environment. All settings are shown at /-/settings and listed in docs/serving.md."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from lexiscope.precompute.errors import ServeError

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

PREFIX = "LEXISCOPE_"
PRIVATE = "private"  # the mark of a setting whose value only the operator may see
HIDDEN = "(set, not shown)"
SHORTEST_TOKEN = 16  # fewest characters of a token, too many to be guessed
HOST = re.compile(r"[A-Za-z0-9.-]+(:[0-9]+)?|\[[0-9a-fA-F:.]+\](:[0-9]+)?")


def public_origin(url: str) -> str:
    """Return scheme://host or scheme://host:port, without a slash at the end; raise ValueError if the URL has more."""
    parts = urlsplit(url)
    if url and not (parts.scheme in ("http", "https") and HOST.fullmatch(parts.netloc)):
        raise ValueError("write http:// or https:// and a host, such as https://lexiscope.example.org")
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        raise ValueError("leave out what follows the host: the site is served from / on, not from a path below it")
    return f"{parts.scheme}://{parts.netloc}" if url else ""


def header_token(token: SecretStr) -> SecretStr:
    """Return the token if it can be sent in a header and is long enough; else raise a ValueError."""
    if token and not re.fullmatch(rf"[!-~]{{{SHORTEST_TOKEN},}}", token.get_secret_value()):
        raise ValueError(
            f"give {SHORTEST_TOKEN} or more letters, digits and signs of ASCII without spaces, such as `openssl rand "
            "-hex 32` prints"
        )
    return token


class Settings(BaseSettings):
    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, env_ignore_empty=True, hide_input_in_errors=True)

    data: Annotated[Path, PRIVATE] = Field(
        default=Path("data"), description="the folder with the indexes, one folder per model"
    )
    host: str = Field(
        default="127.0.0.1", description="the address to listen at; 0.0.0.0 opens the explorer to the network"
    )
    port: int = Field(default=8000, ge=0, le=65535, description="the port to listen at; 0 takes any that is free")
    url: Annotated[str, AfterValidator(public_origin)] = Field(
        default="",
        description="the address under which visitors know the site, such as https://lexiscope.example.org: copied "
        "links and exports carry it; unset, the address that each visitor asked for",
    )
    refresh: float = Field(
        default=1.0, ge=0, le=3600, description="seconds until a model is looked at again for layers finished since"
    )
    url_limit: int = Field(
        default=8192, ge=256, le=65536, description="bytes of path and query; a longer address answers 414"
    )
    body_limit: int = Field(
        default=1 << 20, ge=1024, le=1 << 30, description="bytes in the body of a request; more answer 413"
    )
    body_seconds: float = Field(
        default=10.0,
        gt=0,
        le=3600,
        description="seconds in which the body of a request must have arrived; then it answers 408",
    )
    connections: int = Field(
        default=4096, ge=1, le=65536,
        description="visitors connected at once, at most three quarters of the files the system lets us open; one "
        "more answers 503",
    )  # fmt: skip
    streams: int = Field(
        default=32, ge=1, le=65536,
        description="long answers (CSV, events) on their way at once; one more answers 503",
    )  # fmt: skip
    layer_rows: int = Field(default=50, ge=1, le=1000, description="neurons on a page of a layer")
    token_rows: int = Field(
        default=100, ge=1, le=1000, description="places on a page of a token, once a kind is chosen"
    )
    search_rows: int = Field(default=50, ge=1, le=1000, description="parameters on a page of a search")
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="warning", description="what is written to standard error: messages of this weight or more"
    )
    access_log: bool = Field(
        default=False,
        description="whether each request is logged, as method, route and status; it takes log_level info or debug",
    )
    worker: Literal["auto", "start", "off"] = Field(
        default="auto",
        description="the worker behind live pages: auto starts one when a model first needs it, start starts them "
        "with the server, off leaves live pages out",
    )
    worker_url: Annotated[str, PRIVATE] = Field(
        default="",
        description="workers that run elsewhere, instead of own ones: model=http://host:port for each, comma "
        "separated, or one address for all; unix:/path for a socket. A model has one address, behind which Ray "
        "Serve or a proxy may have several workers",
    )
    worker_token: Annotated[SecretStr, PRIVATE, AfterValidator(header_token)] = Field(
        default=SecretStr(""),
        description="a secret of at least 16 characters that the server and the workers of worker_url share: a worker "
        "that has one refuses whoever does not send it; unset, whoever reaches a worker may use it",
    )
    workers: int = Field(
        default=4,
        ge=1,
        le=64,
        description="models with a worker of their own at once; the one unused longest makes room",
    )
    worker_silence: float = Field(
        default=10.0, ge=0.1, le=600, description="seconds without a sign of life after which a worker is replaced"
    )
    device: str = Field(default="auto", description="where workers compute: auto, cpu, cuda, cuda:1, ...")
    prompt_tokens: int = Field(
        default=256, ge=1, le=100_000, description="tokens of a prompt; a longer one answers 413"
    )
    seeds_limit: int = Field(
        default=64, ge=1, le=10_000,
        description="words of a seed search or of words through heads, pairs of a relation, or changes to a run; more "
        "answer 413",
    )  # fmt: skip
    heads_limit: int = Field(
        default=512, ge=1, le=100_000,
        description="words times heads of a table of words through heads; more answer 413",
    )  # fmt: skip
    sheet_rows: int = Field(
        default=20_000, ge=1, le=10_000_000,
        description="rows of the sheet of a run, one for each layer, head and token, fewer if they are asked for with "
        "longer lists; more answer 413. The server takes some 8 KB for each while it makes a page or a file",
    )  # fmt: skip
    recent_answers_mb: int = Field(
        default=64, ge=0, le=65_536,
        description="megabytes of recent answers of runs that the server keeps, so that another page or format of a "
        "run does not compute it again; 0 keeps none",
    )  # fmt: skip
    queue: int = Field(
        default=64, ge=1, le=10_000,
        description="live requests that may wait in each lane of a worker, that of runs and that of quick answers; one "
        "more answers 503",
    )  # fmt: skip
    visitor_queue: int = Field(
        default=8, ge=1, le=10_000,
        description="live requests of one visitor that may wait or be computed at once; one more answers 503",
    )  # fmt: skip
    ask_seconds: float = Field(
        default=15.0, gt=0, le=3600,
        description="seconds that one live request may take, estimated from its tokens and panels; a dearer one "
        "answers 413",
    )  # fmt: skip
    request_seconds: float = Field(
        default=30.0, gt=0, le=3600, description="seconds that a live request may take, waiting included"
    )
    batch_wait_ms: float = Field(
        default=5.0, ge=0, le=1000, description="milliseconds that a worker waits at most for requests to share a batch"
    )
    batch_size: int = Field(default=32, ge=1, le=1024, description="live requests in one batch")


def load(**chosen: Any) -> Settings:
    """Return the settings. A given value, unless it is None, takes precedence over the environment. ServeError names a
    wrong one."""
    try:
        return Settings(**{name: value for name, value in chosen.items() if value is not None})
    except ValidationError as error:
        wrong = "; ".join(
            f"{PREFIX}{str(one['loc'][0]).upper()}{_shown_input(one)}: {one['msg']}" for one in error.errors()
        )
        raise ServeError(f"a setting has a value it cannot have: {wrong}") from None


def _shown_input(error: "ErrorDetails") -> str:
    """Return the wrong value of a setting as text, unless it is a secret."""
    secret = Settings.model_fields[str(error["loc"][0])].annotation is SecretStr
    return "" if secret else f" = {error['input']!r}"


def described(settings: Settings) -> list[dict[str, Any]]:
    """Return every setting as plain data, for /-/settings and docs/serving.md. Private values that are set are
    hidden."""
    values = settings.model_dump(mode="json")
    rows = []
    for name, field in Settings.model_fields.items():
        default = str(field.default) if isinstance(field.default, Path | SecretStr) else field.default
        hidden = PRIVATE in field.metadata and values[name] != default
        rows.append(
            {
                "name": name,
                "variable": PREFIX + name.upper(),
                "value": HIDDEN if hidden else values[name],
                "default": default,
                "description": field.description,
            }
        )
    return rows
