"""Plans are rewritten before they are run: each rewrite leaves the answers as they are."""
