"""What is simulated: graphs, samplers, tasks and learners, as pure functions of a key."""

from .. import __version__ as __version__  # fails at once when this folder is imported by itself
