"""This package reads stories, runs them, and says where answers differ from those they must have."""
