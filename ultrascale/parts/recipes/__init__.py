"""Recipes: settings of TorchTitan by which a training job trains a known language model."""
