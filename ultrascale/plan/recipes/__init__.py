"""Recipes on devices: their options, the division of a model, its memory, and what is wrong."""
