"""Closed forms: pure functions of numbers and arrays, without randomness or training."""

from .. import __version__ as __version__  # fails at once when this folder is imported by itself
