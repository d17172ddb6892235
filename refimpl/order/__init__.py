"""Happens-before: who comes before whom, which accesses race, what stands still, and why; and the orders themselves,
searched one by one."""

from refimpl.order.check import check, races_in, run
from refimpl.order.checker import Checker
from refimpl.order.copies import HostRule, copy_rule, effective_kind, fill_rule, runs_on
from refimpl.order.explain import Explanation, Link, explain
from refimpl.order.explore import Bounds, explore
from refimpl.order.explore_report import Exploration, Overtaking, spelled
from refimpl.order.explore_witness import Witness
from refimpl.order.flags import deadlock
from refimpl.order.graph import Edge, EdgeKind, Graph, Step, build
from refimpl.order.lowering import lower
from refimpl.order.mutate import Fence, drop, fences_of
from refimpl.order.redundant import FenceReport, FenceVerdict, judge_fences
from refimpl.order.report import Deadlock, Hazard, Lint, MissingEdge, Race, Report, Touch
from refimpl.order.units import Bytes, Call, Unit, Units

__all__ = [
    "Bounds",
    "Bytes",
    "Call",
    "Checker",
    "Deadlock",
    "Edge",
    "EdgeKind",
    "Explanation",
    "Exploration",
    "Fence",
    "FenceReport",
    "FenceVerdict",
    "Graph",
    "Hazard",
    "HostRule",
    "Link",
    "Lint",
    "MissingEdge",
    "Overtaking",
    "Race",
    "Report",
    "Step",
    "Touch",
    "Unit",
    "Units",
    "Witness",
    "build",
    "check",
    "copy_rule",
    "deadlock",
    "drop",
    "effective_kind",
    "explain",
    "explore",
    "fences_of",
    "fill_rule",
    "judge_fences",
    "lower",
    "races_in",
    "run",
    "runs_on",
    "spelled",
]
