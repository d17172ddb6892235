"""From one launch of a graph to an op of the program."""

from __future__ import annotations

from collections.abc import Sequence

from refimpl.program import GraphLaunch, Node
from refimpl.record.entries import Launched
from refimpl.record.merging import duration, merged, ranges
from refimpl.record.names import Names
from refimpl.record.work import Kind, Work, one_region


def launch_of(entry: Launched, names: Names) -> GraphLaunch:
    """A launch with its nodes; nodes of one region in a row are one node, marks inside the graph are edges."""
    groups: list[list[Work]] = []
    for work in entry.works:
        if groups and one_region(groups[-1][-1], work):
            groups[-1].append(work)
        else:
            groups.append([work])
    group_of = {id(work): index for index, group in enumerate(groups) for work in group}
    before = {id(work): after for work, after in zip(entry.works, entry.after, strict=True)}
    deps = [
        sorted({group_of[id(b)] for work in group for b in before[id(work)] if id(b) in group_of} - {i})
        for i, group in enumerate(groups)
    ]
    shown = {i: _node_name(group) for i, group in enumerate(groups) if not _is_edge(group[0])}
    labels = {i: name if list(shown.values()).count(name) == 1 else f"{name} {i}" for i, name in shown.items()}

    def sources(index: int) -> list[int]:
        return sorted({s for d in deps[index] for s in ([d] if d in labels else sources(d))})

    nodes = tuple(_node(groups[i], label, tuple(labels[s] for s in sources(i)), names) for i, label in labels.items())
    regions = {work.region.name for work in entry.works if work.region is not None}
    name = names.graph(entry.graph, regions.pop() if len(regions) == 1 else "graph")
    stream, called = names.stream(entry.lane), entry.called
    return GraphLaunch(
        stream=stream, nodes=nodes, name=name, us=duration(entry.works), site=called.site, step=called.step
    )


def _is_edge(work: Work) -> bool:
    return work.mark is not None and not work.mark.external


def _node_name(group: Sequence[Work]) -> str:
    region = group[0].region
    return region.name if region is not None else group[0].name


def _node(group: Sequence[Work], label: str, deps: tuple[str, ...], names: Names) -> Node:
    first = group[0]
    if first.mark is not None:
        event = names.event(first.mark)
        if first.kind is Kind.RECORD:
            return Node(name=label, record=event, deps=deps)
        return Node(name=label, wait=event, deps=deps)
    reads, writes = merged(group, set())
    return Node(name=label, reads=ranges(reads, names), writes=ranges(writes, names), deps=deps, us=duration(group))
