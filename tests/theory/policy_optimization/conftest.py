"""Shared by the tests of the theory of teams."""

import jaxtyping
import pytest


@pytest.fixture
def as_users_call(monkeypatch):
    """Switch the run-time type checker off, which would refuse some bad input before we do."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
