"""Excess risk of SGD and ridge on graphs."""
