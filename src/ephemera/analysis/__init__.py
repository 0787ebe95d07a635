"""This package works out, before anything runs, what plans know about time: distances, relevance, look-back, blame."""
