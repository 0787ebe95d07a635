"""This module holds what a story says of streams and tables to what its program declares."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from ephemera.base.suggest import suggestion
from ephemera.rules.nodes import Catalogue
from ephemera.stories.read import BadStory, Step, Story


def by_streams(story: Story, catalogue: Catalogue) -> Story:
    """A story whose rows come by the streams that it says; those that name no type are of the one that is carried."""
    carried = {source.name: source.carries for source in catalogue.sources}
    wrong = unknown_name((step.stream for step in story.steps if step.stream is not None), carried)
    if wrong is not None:
        raise BadStory(f"Stream `{wrong[0]}`: {wrong[1]}")
    return replace(story, steps=[_by_stream(step, carried) for step in story.steps])


def _by_stream(step: Step, carried: Mapping[str, Sequence[str]]) -> Step:
    if step.stream is None or step.event is None:
        return step
    types = carried[step.stream]
    label = step.event.get("event")
    if label is None and len(types) == 1:
        return replace(step, event={"event": types[0], **step.event})
    told = f"the stream `{step.stream}` carries {', '.join(f'`{one}`' for one in types) or 'what no other does'}"
    if label is None:
        raise BadStory(f"{told}, so its rows name the `event`")
    if types and label not in types:
        raise BadStory(f"{told}, and not `{label}`")
    return step


def unknown_name(names: Iterable[str], known: Collection[str]) -> tuple[str, str] | None:
    """The first name that the program does not declare, and what to say of it."""
    wrong = next((name for name in names if name not in known), None)
    if wrong is None:
        return None
    meant = suggestion(wrong, known)
    return wrong, "the program declares none of that name" + (f"; `{meant}` is one" if meant else "")
