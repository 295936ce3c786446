"""Figures of the study of teams of agents, from its dataset alone."""
