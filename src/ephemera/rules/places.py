"""This module checks places that are read or written: each has a name, and what it holds is of a known format."""

from __future__ import annotations

from ephemera.base.diagnostic import Code, Help
from ephemera.base.suggest import suggestion
from ephemera.rules.findings import Findings
from ephemera.syntax.nodes import Program, Stream, Table, Write

FORMATS = ("csv", "json", "jsonl", "parquet", "xml")
"""What can stand behind FORMAT, in any letters."""


def check_places(program: Program, findings: Findings) -> None:
    """Tells of formats that there are not, and of places without a name."""
    for declared in program.statements:
        if isinstance(declared, Write) and not declared.location.strip():
            findings.add(
                Code.EMPTY_PLACE,
                f"`{declared.labels[0]}` is written to nowhere: the text behind `TO` is empty",
                declared.span,
                help=[Help("name a file or an address, or leave `WRITE` out and name it when the program runs")],
            )
        if not isinstance(declared, Stream | Table):
            continue
        what = f"the stream `{declared.name}`" if isinstance(declared, Stream) else f"the table `{declared.label}`"
        if declared.location is not None and not declared.location.strip():
            findings.add(
                Code.EMPTY_PLACE,
                f"{what} is read from nowhere: the text behind `FROM` is empty",
                declared.span,
                help=[
                    Help("name a file, a folder or a pattern, or leave `FROM` out and name it when the program runs")
                ],
            )
        if declared.format is not None and declared.format.lower() not in FORMATS:
            meant = suggestion(declared.format, FORMATS)
            guess = (
                f"did you mean `{meant}`?"
                if meant is not None
                else "leave `FORMAT` out, and the name of the file says it"
            )
            findings.add(
                Code.UNKNOWN_FORMAT,
                f"there is no format `{declared.format}`",
                declared.span,
                notes=[f"the formats are {', '.join(FORMATS)}"],
                help=[Help(guess)],
            )
