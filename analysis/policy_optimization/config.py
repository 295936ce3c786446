"""Settings of the study of policy losses and its three presets."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Config:
    """What the study runs. Sizes and counts are static; all else is traced."""


PRESETS = {
    "smoke": Config(),
    "quick": Config(),
    "paper": Config(),
}
