"""Declare the shapes of what the server says about itself: health, settings, errors."""

from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelHealth:
    model: str
    layers_ready: int
    n_layers: int
    faults: tuple[str, ...]  # errors of the model's index, for people


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthView:
    status: Literal["ok"]
    models: tuple[ModelHealth, ...]
    labels: tuple[str, ...]  # errors in files of labels, for people
    # Workers by model: ready, loading or down. For a worker elsewhere it is the result of the last ask: ready, down,
    # timed out, or refused because of its token; unchecked before the first ask.
    workers: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingRow:
    name: str
    variable: str  # the name in the environment
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
