"""The shapes of what the server says about itself: health, settings, errors."""

from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelHealth:
    model: str
    layers_ready: int
    n_layers: int
    faults: tuple[str, ...]  # what is wrong with it, for people


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthView:
    status: Literal["ok"]
    models: tuple[ModelHealth, ...]
    labels: tuple[str, ...]  # what is wrong with files of labels, for people
    # By model: ready, loading or down. Of a worker elsewhere, how the last ask of it ended: ready, down, timed out, or
    # refused for its token; unchecked before the first one.
    workers: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingRow:
    name: str
    variable: str  # in the environment
    value: Any
    default: Any
    description: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsView:
    settings: tuple[SettingRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorDetail:
    status: int
    title: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorView:
    """What every error of data looks like."""

    error: ErrorDetail
