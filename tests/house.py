"""An import-linter contract that reads the table of the house as it is written in the design: one line a room."""

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output


class HouseContract(Contract):
    """A room imports only from itself and from the rooms behind its arrow; `*` is every room."""

    arrows = fields.ListField(subfield=fields.StringField())

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        (root,) = self.session_options["root_packages"]
        allowed = {
            room.strip(): set(rooms.split()) for room, _, rooms in (line.partition("->") for line in self.arrows)
        }
        found = {child.removeprefix(f"{root}.") for child in graph.find_children(root)} - {"__main__"}
        problems = [f"{root}.{room} stands in no line of the house" for room in sorted(found - allowed.keys())]
        for room in sorted(found & allowed.keys()):
            problems += [
                f"{room} may not import {other}: {importer} imports {imported}"
                for importer, imported in _imports_of(graph, f"{root}.{room}")
                if (other := _room(imported, root)) not in {room, None} | allowed[room] and "*" not in allowed[room]
            ]
        return ContractCheck(kept=not problems, metadata={"problems": problems})

    def render_broken_contract(self, check: ContractCheck) -> None:
        for problem in check.metadata["problems"]:
            output.print_error(problem)


def _imports_of(graph: ImportGraph, package: str) -> list[tuple[str, str]]:
    modules = {package} | graph.find_descendants(package)
    return sorted((m, i) for m in modules for i in graph.find_modules_directly_imported_by(m))


def _room(module: str, root: str) -> str | None:
    parts = module.split(".")
    return parts[1] if parts[0] == root and len(parts) > 1 else None
