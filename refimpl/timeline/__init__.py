"""When a program runs: schedules, imported profiler traces, accounts of idle and blocked time, export to viewers."""

from refimpl.timeline.accounts import Accounts, Blocked, LaneAccount, accounts, table
from refimpl.timeline.costs import Costs
from refimpl.timeline.crop import crop
from refimpl.timeline.edges import Edge, drawn_edges, event_edges
from refimpl.timeline.idle import Idle, gaps
from refimpl.timeline.names import stem
from refimpl.timeline.ordering import SpanEdge, ordering
from refimpl.timeline.reading.columns_in import from_columns
from refimpl.timeline.reading.profiler import from_profiler
from refimpl.timeline.reports.report import Report, report
from refimpl.timeline.schedule import schedule
from refimpl.timeline.writing.chrome import to_chrome
from refimpl.timeline.writing.columns import columns
from refimpl.timeline.writing.perfetto import to_perfetto

__all__ = [
    "Accounts",
    "Blocked",
    "Costs",
    "Edge",
    "Idle",
    "LaneAccount",
    "Report",
    "SpanEdge",
    "accounts",
    "columns",
    "crop",
    "drawn_edges",
    "event_edges",
    "from_columns",
    "from_profiler",
    "gaps",
    "ordering",
    "report",
    "schedule",
    "stem",
    "table",
    "to_chrome",
    "to_perfetto",
]
