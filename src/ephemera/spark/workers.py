"""This module spares workers the search for garbage among what they keep from task to task.

Behind each task Spark has Python search all objects of the process. Modules, programs and shards make that dearer than
a small task itself. At the beginning of a task nothing is garbage, since the search is just over; so all that is there
is set aside, and the next search is for what the task leaves behind. Now and then everything is searched again.
"""

from __future__ import annotations

import gc
from itertools import count

from pyspark import TaskContext

_EVERYTHING = 200
"""Behind one of so many tasks everything is searched."""


_TASKS = count(1)
"""Numbers the tasks of this process."""


def begin_task() -> None:
    """Sets aside what the process has; outside of Spark's tasks nothing is done."""
    if TaskContext.get() is None:
        return
    if next(_TASKS) % _EVERYTHING:
        gc.freeze()
    else:
        gc.unfreeze()
