"""Timelines for print: a Trace, or several on one axis, as a still picture and in words."""

from refimpl.view.plot.picture import Picture, compare, plot
from refimpl.view.plot.words import alt_text

__all__ = ["Picture", "alt_text", "compare", "plot"]
