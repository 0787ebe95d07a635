"""This package holds the complex event relational algebra: operators, plans, and how rules become plans."""
