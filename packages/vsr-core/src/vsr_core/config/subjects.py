"""What is known of the models of the catalog without loading them, and where they contradict themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..catalog import HubSource, Source, cached_source, parse_source, resolve_source, specify
from ..contract import CatalogEntry, FamilyDescriptor, ModelSpec
from ..errors import ConfigError
from ..taxonomy import Artifact
from .configuration import Configuration
from .explain import closest
from .origin import KeyPath
from .report import Findings
from .schema import CatalogSettings
from .verdicts import Subject

__all__ = ["SubjectReader"]

_KEYS: Final[Mapping[str, str]] = {"capabilities": "capability"}
"""What the catalog calls some statements, and the keys they are written under."""


class SubjectReader:
    """Reads the files of catalog entries that are on this machine; downloads nothing.

    :param entries: every entry by name, the plugins' included.
    """

    def __init__(
        self,
        entries: Mapping[str, CatalogEntry],
        families: Mapping[str, FamilyDescriptor],
        *,
        config: Configuration,
        findings: Findings,
    ) -> None:
        self._entries = entries
        self._families = families
        self._config = config
        self._findings = findings
        self._subjects: dict[str, Subject | None] = {}

    def read(self, name: str, *, at: KeyPath) -> Subject | None:
        """What is known of an entry; None, reported once, where it contradicts itself or its files.

        :param at: where it is named, which is where a plugin's entry is reported.
        """
        if name not in self._subjects:
            entry = self._entries[name]
            self._subjects[name] = self._describe(entry, at) if self._base_is_sound(entry, at) else None
        return self._subjects[name]

    def _base_is_sound(self, entry: CatalogEntry, at: KeyPath) -> bool:
        if entry.base is None:
            return True
        base = self._entries.get(entry.base)
        if base is None:
            known = tuple(name for name in self._entries if name != entry.name)
            message = f"the catalog has no entry {entry.base!r}{closest(entry.base, known)}"
        elif base.adapter is not None:
            message = f"{entry.base!r} is an adapter itself; name the entry that it sits on"
        else:
            return True
        self._report(entry, at, "base", message, code="base")
        return False

    def _describe(self, entry: CatalogEntry, at: KeyPath) -> Subject | None:
        base = self.read(entry.base, at=at) if entry.base is not None else None
        if entry.base is not None and base is None:
            return None
        try:
            spec = self._inspect(entry, base)
        except ConfigError as error:
            for message in error.problems or (error.message,):
                self._report_contradiction(entry, at, message, code=error.code)
            return None
        return Subject(entry=entry, spec=spec, base=base)

    def _inspect(self, entry: CatalogEntry, base: Subject | None) -> ModelSpec | None:
        """What the files say, or None where there are none here."""
        text = entry.source if entry.adapter is None else entry.adapter
        if text is None or entry.artifact is Artifact.REMOTE:
            return None
        source = parse_source(text)
        folder = self._config.folder if entry.contributed_by is None else None
        if isinstance(source, HubSource):
            resolved = cached_source(source)
        else:
            resolved = resolve_source(source, relative_to=folder)
        if resolved is None or (base is not None and base.spec is None):
            missing = entry.name if resolved is None else entry.base
            path: KeyPath = ("catalog", entry.name, _source_key(entry))
            self._findings.note(path, f"not looked at: the files of {missing!r} are not in the local cache")
            return None
        return specify(
            entry,
            resolved.path,
            families=self._families,
            revision=resolved.revision,
            base=base.spec if base is not None else None,
            base_source=_source_of(base),
            under_adapters=any(each.base == entry.name for each in self._entries.values()),
            relative_to=folder,
        )

    def _report_contradiction(self, entry: CatalogEntry, at: KeyPath, message: str, *, code: str) -> None:
        """Report at the key that the message begins with, where it is written, and else at the source."""
        about, _, rest = message.partition(": ")
        key = _KEYS.get(about, about.partition(".")[0])
        stated = self._config.origin.written(("catalog", entry.name, key))[-1:] == (key,)
        if rest and stated and key in CatalogSettings.model_fields:
            self._report(entry, at, key, rest, code=code)
        else:
            self._report(entry, at, _source_key(entry), message, code=code)

    def _report(self, entry: CatalogEntry, at: KeyPath, key: str, message: str, *, code: str) -> None:
        if entry.contributed_by is None:
            self._findings.problem(("catalog", entry.name, key), message, code=code)
        else:
            whose = f"the catalog entry {entry.name!r} of plugin {entry.contributed_by!r}"
            self._findings.problem(at, f"{whose}: {message}", code=code)


def _source_of(base: Subject | None) -> Source | None:
    return parse_source(base.entry.source) if base is not None and base.entry.source is not None else None


def _source_key(entry: CatalogEntry) -> str:
    return "source" if entry.adapter is None else "adapter"
