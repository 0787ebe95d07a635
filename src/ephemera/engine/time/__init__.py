"""This package has the time of engines: watermarks of sources, clocks, and the days of calendars."""
