"""Figures: one module a study, from its dataset to matplotlib figures; nothing is computed here."""

from .. import __version__ as __version__  # fails at once when this folder is imported by itself
