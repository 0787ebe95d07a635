"""This package lets the rules of an engine change while it runs: what is kept, what is lacking, and how state moves."""
