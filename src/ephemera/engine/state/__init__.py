"""This package keeps the state of engines: snapshots, change logs, and files that outlive a crash."""
