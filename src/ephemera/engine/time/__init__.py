"""This package has the two times of engines: that of events, and that of the machine."""
