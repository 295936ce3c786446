"""Figures of the study of coupled-SDE graph diffusion, from its dataset alone."""
