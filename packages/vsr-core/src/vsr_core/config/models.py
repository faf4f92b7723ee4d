"""Checking models: can what the catalog and the roles name be served by what is installed?"""

from __future__ import annotations

from collections.abc import Mapping

from ..contract import BackendId, CatalogEntry, Refused
from ..plugins import PluginHost
from ..taxonomy import Capability, Kind
from .availability import Availability
from .configuration import Configuration
from .explain import closest
from .origin import KeyPath
from .report import Findings
from .roles import RoleTarget
from .subjects import SubjectReader
from .verdicts import Subject, refusal_of, serving_capabilities

__all__ = ["ModelCheck"]


class ModelCheck:
    """Checks every catalog entry and every role target; loads nothing and downloads nothing."""

    def __init__(
        self, config: Configuration, host: PluginHost, *, availability: Availability, findings: Findings
    ) -> None:
        self._availability = availability
        self._findings = findings
        self._entries: Mapping[str, CatalogEntry] = {entry.name: entry for entry in host.catalog} | dict(config.catalog)
        self._subjects = SubjectReader(self._entries, host.families, config=config, findings=findings)
        self._refused: set[tuple[str, str]] = set()

    def check_entry(self, entry: CatalogEntry) -> None:
        """Check one entry of the catalog with every backend that is to serve it."""
        subject = self._subjects.read(entry.name, at=("catalog", entry.name))
        if not entry.backends:
            if subject is not None:
                self._check_anywhere(subject)
            return
        for index, backend in enumerate(entry.backends):
            path: KeyPath = ("catalog", entry.name, "backends", index)
            declared = self._availability.declared(backend, path)
            if declared is None or subject is None:
                continue
            refusals = {one: refusal_of(declared, subject, one) for one in subject.capabilities}
            self._report_refusals(path, subject, backend, refusals, all_needed=bool(entry.capabilities))

    def check_target(self, target: RoleTarget) -> None:
        """Check one backend id that a role names."""
        if not isinstance(target.target, BackendId):
            return
        backend, model = target.target.backend, target.target.model
        declared = self._availability.declared(backend, target.path)
        if declared is None:
            return
        entry = self._entries.get(model)
        if entry is None:
            self._check_unlisted(target, target.target)
            return
        if entry.backends and backend not in entry.backends:
            listed = ", ".join(entry.backends)
            self._findings.problem(
                target.path,
                f"{backend!r} is none of the backends of the catalog entry {model!r}, which are {listed}",
                code="backend_not_listed",
            )
            return
        subject = self._subjects.read(model, at=target.path)
        if subject is None:
            return
        asked = serving_capabilities(subject, target.kind)
        if subject.capabilities and not asked:
            self._report_kind(target, subject)
        elif (backend, model) not in self._refused:
            asked = asked or _of_kind(target.kind)
            refusals = {one: refusal_of(declared, subject, one) for one in asked}
            self._report_refusals(target.path, subject, backend, refusals, all_needed=False)

    def _check_unlisted(self, target: RoleTarget, backend_id: BackendId) -> None:
        """A model no catalog names: a provider's, taken on trust, or a mistake."""
        if not self._availability.is_open(backend_id.backend):
            self._findings.problem(
                target.path,
                f"the catalog has no entry {backend_id.model!r}{closest(backend_id.model, tuple(self._entries))}",
                code="model_not_found",
            )
            return
        declared = self._availability.declared(backend_id.backend, target.path)
        if declared is None:
            return
        verdicts = [declared.overview(capability) for capability in _of_kind(target.kind)]
        refused = [verdict for verdict in verdicts if isinstance(verdict, Refused)]
        if len(refused) == len(verdicts):
            self._findings.problem(
                target.path,
                f"{backend_id.backend!r} does not serve {target.kind}: {refused[0].reason}",
                code=refused[0].code,
            )
            return
        self._findings.note(target.path, f"'{backend_id}' is taken on trust: no catalog entry describes it")

    def _check_anywhere(self, subject: Subject) -> None:
        """An entry that lists no backends needs one installed backend that serves it."""
        name = subject.entry.name
        reasons = []
        for backend in self._availability.names():
            declared = self._availability.declared(backend, ("catalog", name))
            if declared is None:
                continue
            refusals = [refusal_of(declared, subject, one) for one in subject.capabilities or tuple(Capability)]
            refused = [one for one in refusals if one is not None]
            if not refused or (len(refused) < len(refusals) and not subject.entry.capabilities):
                return
            reasons.append(f"{backend}: {refused[0].reason}")
        detail = "; ".join(reasons) if reasons else "no backend is installed"
        self._findings.problem(
            ("catalog", name), f"no installed backend can serve {subject}: {detail}", code="no_backend"
        )

    def _report_refusals(
        self,
        path: KeyPath,
        subject: Subject,
        backend: str,
        refusals: Mapping[Capability, Refused | None],
        *,
        all_needed: bool,
    ) -> None:
        """Report what is refused: each capability that was asked for by name, else only where none is served."""
        if not all_needed and None in refusals.values():
            return
        shown = [(capability, one) for capability, one in refusals.items() if one is not None]
        for capability, refused in shown if all_needed else shown[:1]:
            self._refused.add((backend, subject.entry.name))
            self._findings.problem(
                path, f"{backend!r} cannot serve {subject} for {capability}: {refused.reason}", code=refused.code
            )

    def _report_kind(self, target: RoleTarget, subject: Subject) -> None:
        able = ", ".join(map(str, subject.capabilities))
        self._findings.problem(
            target.path,
            f"a role of kind {target.kind} cannot use {subject}, which is for {able}",
            code="kind",
        )


def _of_kind(kind: Kind) -> tuple[Capability, ...]:
    """The capabilities that serve a kind, those first that a backend must offer itself."""
    own = [capability for capability in Capability if capability.kind is kind and capability.derived_from is None]
    sources = [
        capability.derived_from
        for capability in Capability
        if capability.kind is kind and capability.derived_from is not None
    ]
    return tuple(dict.fromkeys((*own, *sources)))
