"""What every part of the kit shares: its standard tests can be left out only with a reason that is on record."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import pytest

from .claims import demand

__all__ = ["Conformance"]

_KIT = __name__.rpartition(".")[0]


class Conformance:
    """The base of the kit's classes.

    ``deviations`` maps the name of a standard test to the reason why the author departs from it. A test that is listed
    there is skipped with that reason, or, where the author has overridden it, replaced. A test that is overridden or
    removed without being listed is an error when the class is made.
    """

    deviations: ClassVar[Mapping[str, str]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        problems = [] if _of_the_kit(cls) else [*_problems(cls)]
        if problems:
            raise TypeError("; ".join(problems))

    @pytest.fixture(autouse=True)
    def _leave_out(self, request: pytest.FixtureRequest) -> None:
        """Skip the standard tests that the author lists and puts nothing in the place of."""
        name = request.function.__name__
        reason = self.deviations.get(name)
        if reason is not None and not _replaced(type(self), name):
            pytest.skip(f"deviation: {reason}")

    def test_no_standard_test_was_left_out(self) -> None:
        """Also after the class was made."""
        demand(not (problems := [*_problems(type(self))]), "; ".join(problems))


def _of_the_kit(cls: type) -> bool:
    return cls.__module__ == _KIT or cls.__module__.startswith(f"{_KIT}.")


def _standard(cls: type) -> dict[str, object]:
    """The standard tests of a class, by name, as the kit has them."""
    found: dict[str, object] = {}
    for base in cls.__mro__:
        if _of_the_kit(base):
            for name, value in vars(base).items():
                if name.startswith("test_"):
                    found.setdefault(name, value)
    return found


def _replaced(cls: type, name: str) -> bool:
    return inspect.getattr_static(cls, name, None) is not _standard(cls).get(name)


def _problems(cls: type[Conformance]) -> Iterator[str]:
    standard = _standard(cls)
    for name in standard:
        if name not in cls.deviations and _replaced(cls, name):
            yield f"{cls.__name__} overrides {name}: say why in deviations[{name!r}], or leave it as it is"
    for name, reason in cls.deviations.items():
        if name not in standard:
            yield f"{cls.__name__}.deviations names {name!r}, which is no standard test of this kit"
        elif not isinstance(reason, str) or not reason.strip():
            yield f"{cls.__name__}.deviations[{name!r}] gives no reason"
