"""Language models in buckets: their sizes, their figures, and the pools that they fit."""
