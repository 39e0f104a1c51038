"""The shapes of what the server says about itself: health, settings, errors.
Pages about models have theirs in view_types.py and page_types.py."""

from typing import Any, Literal

from app.views.view_types import View


class ModelHealth(View):
    model: str
    layers_ready: int
    n_layers: int
    faults: tuple[str, ...]  # what is wrong with it, for people


class HealthView(View):
    status: Literal["ok"]
    models: tuple[ModelHealth, ...]


class SettingRow(View):
    name: str
    variable: str  # in the environment
    value: Any
    default: Any
    description: str


class SettingsView(View):
    settings: tuple[SettingRow, ...]


class ErrorDetail(View):
    status: int
    title: str
    detail: str


class ErrorView(View):
    """What every error of a data face looks like."""

    error: ErrorDetail
