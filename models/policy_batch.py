"""What every policy loss is given: a padded batch of sequences."""

from typing import Any, NamedTuple


class PolicyBatch(NamedTuple):
    """B sequences of at most T tokens, padded; what a masked position holds never matters."""

    log_prob: Any
    """(B, T) log π_θ of the tokens drawn, natural logarithm; the loss is differentiated by it alone."""
    log_prob_old: Any
    """(B, T) the same under the proximal policy π_old, of which the ratio r = π_θ/π_old is taken."""
    log_prob_behavior: Any
    """(B, T) the same under the policy that drew the tokens; None: the old one."""
    advantage: Any
    """(B, T) estimated advantage of each token."""
    mask: Any
    """(B, T) bool or 0/1: which positions are tokens."""
    group_id: Any = None
    """(B,) integers in [0, B): the prompt group of each sequence; None where the loss needs none."""
    domain_id: Any = None
    """(B,) integers in [0, B): the domain of each sequence; a group lies in one domain only."""
