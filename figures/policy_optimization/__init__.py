"""Figures of the study of policy losses, from its dataset alone."""
