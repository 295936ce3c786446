"""Studies: theory and models on one grid, one labelled dataset, and the claims about it."""

from .. import __version__ as __version__  # fails at once when this folder is imported by itself
