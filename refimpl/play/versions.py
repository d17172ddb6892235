"""What a value in a cell means: who wrote it, from what.

A version is the hash of the op that wrote it and of all that the op had read. A stale read so goes on into what is
written from it, and two runs have the same version in a cell if and only if the same op wrote it from the same inputs.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b

import torch

from refimpl.play.memory import VALUE_BYTES, Memory

_STEP = -7046029254386353131
"""Added from cell to cell, so that no two cells of one write are equal: 2**64 over the golden ratio, made odd."""

_NUMBERS = 2**64
_BACK = pow(_STEP, -1, _NUMBERS)


@dataclass(frozen=True)
class Writer:
    """Who left a value behind.

    Args:
        op: Index of the op; None for what was there before the program, and for a value of several parts.
        parts: As messages say it, such as ``"the value of op 4 'forward'"`` or ``"the initial value"``; one, unless the
            value is made of several.
        torn: The parts are what two writes left in the midst of each other; else a copy put them together.
    """

    op: int | None
    parts: tuple[str, ...]
    torn: bool = False

    @property
    def words(self) -> str:
        """As messages say it."""
        if len(self.parts) == 1 and not self.torn:
            return self.parts[0]
        return ("torn: " if self.torn else "") + ", ".join(f"part {part}" for part in self.parts)


INITIAL = Writer(None, ("the initial value",))


class Versions:
    """All versions that one run has made, and what they mean.

    Of a large write only a number is kept, and what was stored where: a write of a million cells costs no dictionary.
    """

    KEPT_CELLS = 64
    """Cells up to which a write's values are kept one by one: programs have many small writes and few large ones."""

    def __init__(self) -> None:
        self._writes: dict[int, tuple[Memory, Writer]] = {}
        self._stored: dict[Memory, list[tuple[torch.Tensor, torch.Tensor]]] = {}
        self._found: dict[int, Writer] = {}
        self._torn = False

    def initial(self, memory: Memory) -> torch.Tensor:
        """What the cells of a memory hold before the program."""
        return self._made(INITIAL, memory, torch.arange(len(memory.values)), b"initial")

    def written(
        self, writer: Writer, key: str, inputs: list[torch.Tensor], memory: Memory, cells: torch.Tensor
    ) -> torch.Tensor:
        """The values that a writer leaves in some cells.

        Args:
            writer: The op, as messages say it.
            key: What sets it apart from every other op and node of the program.
            inputs: All that it has read, in the order of its ranges.
            memory: Where it writes.
            cells: Indices of the cells it writes there.
        """
        return self._made(writer, memory, cells, key.encode() + b"".join(tensor.numpy().tobytes() for tensor in inputs))

    def moved(self, memory: Memory, cells: torch.Tensor, values: torch.Tensor) -> None:
        """Notes that a copy brings values into some cells; what they mean does not change."""
        self._stored.setdefault(memory, []).append((cells, values))

    def joined(self, values: list[int]) -> int:
        """The value of a cell into which a copy brings several, one after the other."""
        value = _number(b"joined" + b"".join(map(_bytes, values)))
        writers = [self.of(one) for one in values]
        ops = {writer.op for writer in writers}
        parts = tuple(dict.fromkeys(part for writer in writers for part in writer.parts))
        torn = any(writer.torn for writer in writers)
        self._found[value] = Writer(ops.pop() if len(ops) == 1 else None, parts, torn)
        return value

    def splits(self) -> None:
        """A write begins that lands in pieces: from now on a read may find a value that nobody wrote."""
        self._torn = True

    def learn(self, memory: Memory, cells: torch.Tensor, values: torch.Tensor) -> None:
        """Takes apart what was found in some cells, where it is torn."""
        if self._torn:
            for cell, value in zip(cells.tolist(), values.tolist(), strict=True):
                if self._known(value) is None:
                    self._found[value] = self._taken_apart(memory, cell, value)

    def of(self, value: int) -> Writer:
        """Who left a value; a torn one must have been learned."""
        known = self._known(value)
        assert known is not None, f"{value} was never stored"
        return known

    def _known(self, value: int) -> Writer | None:
        found = self._found.get(value)
        if found is None:
            for number, (memory, writer) in self._writes.items():
                if (value - number) * _BACK % _NUMBERS < len(memory.values):
                    self._found[value] = found = writer
                    break
        return found

    def _made(self, writer: Writer, memory: Memory, cells: torch.Tensor, what: bytes) -> torch.Tensor:
        number = _number(memory.name.encode() + b"\0" + what)
        values = number + cells * _STEP
        if len(cells) <= self.KEPT_CELLS:
            self._found.update(dict.fromkeys(values.tolist(), writer))
        else:
            self._writes[number] = memory, writer
        self.moved(memory, cells, values)
        return values

    def _taken_apart(self, memory: Memory, cell: int, value: int) -> Writer:
        """A value made of pieces of what was stored in its cell: from the left, each time the longest piece."""
        raw, at, parts = _bytes(value), 0, list[str]()
        stored = [one for cells, values in reversed(self._stored[memory]) for one in values[cells == cell].tolist()]
        known = [(self.of(one).parts, _bytes(one)) for one in stored]
        while at < VALUE_BYTES:
            found, length = max(((some, _common(raw, other, at)) for some, other in known), key=lambda pair: pair[1])
            parts += found
            at += max(length, 1)
        return Writer(None, tuple(dict.fromkeys(parts)), torn=True)


def _number(what: bytes) -> int:
    return int.from_bytes(blake2b(what, digest_size=VALUE_BYTES).digest(), "little", signed=True)


def _bytes(value: int) -> bytes:
    return value.to_bytes(VALUE_BYTES, "little", signed=True)


def _common(raw: bytes, other: bytes, at: int) -> int:
    """How many bytes two values have in common from a place on."""
    end = at
    while end < VALUE_BYTES and raw[end] == other[end]:
        end += 1
    return end - at
