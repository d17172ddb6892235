"""Happens-before: who comes before whom, which accesses race, what stands still, and why."""

from refimpl.order.check import check, races_in, run
from refimpl.order.checker import Checker
from refimpl.order.copies import HostRule, copy_rule, effective_kind, fill_rule, runs_on
from refimpl.order.explain import Explanation, Link, explain
from refimpl.order.flags import deadlock
from refimpl.order.graph import Edge, EdgeKind, Graph, Step, build
from refimpl.order.report import Deadlock, Hazard, Lint, MissingEdge, Race, Report, Touch

__all__ = [
    "Checker",
    "Deadlock",
    "Edge",
    "EdgeKind",
    "Explanation",
    "Graph",
    "Hazard",
    "HostRule",
    "Link",
    "Lint",
    "MissingEdge",
    "Race",
    "Report",
    "Step",
    "Touch",
    "build",
    "check",
    "copy_rule",
    "deadlock",
    "effective_kind",
    "explain",
    "fill_rule",
    "races_in",
    "run",
    "runs_on",
]
