"""Which packages a wheel holds; pyproject.toml, which says all the rest, cannot add folders to those that are found."""

from setuptools import find_packages, setup

setup(
    packages=[
        *find_packages(include=["app", "app.*", "lexiscope", "precompute", "precompute.*"]),
        "app.static",
        "app.templates",
    ]
)
