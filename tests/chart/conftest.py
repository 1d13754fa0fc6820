"""Helm is there before a test needs it."""

from pathlib import Path

import pytest

from controlplane import build_helm


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build helm now: the first build takes longer than a test may."""
    mine = any(Path(__file__).parent in item.path.parents for item in session.items)
    if mine and not session.config.option.collectonly:
        build_helm()
