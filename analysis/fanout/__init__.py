"""Full-graph against mini-batch training, through batch size and fan-out."""

from boundlab.analysis.fanout.advice import Advice, advise
from boundlab.analysis.fanout.published_tables import (
    FittedElasticities,
    fit_elasticities,
    published_accuracy,
    published_iterations,
)

__all__ = [
    "Advice",
    "FittedElasticities",
    "advise",
    "fit_elasticities",
    "published_accuracy",
    "published_iterations",
]
