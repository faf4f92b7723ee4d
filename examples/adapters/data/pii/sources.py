"""Sentences with invented personal data: templates with their gaps filled, joined, and small records."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from training.invented import MARKED, Inventor

__all__ = ["examples"]

FILLINGS = 22
"""How often each template is filled."""

RECORDS = 500

_HERE = Path(__file__).parent
_GAP = re.compile(r"\{([A-Z]+)\}")
_FIELDS = {
    "PERSON": ("name", "Name", "full name", "customer", "patient", "contact", "employee"),
    "EMAIL": ("email", "E-mail", "mail", "e-mail address"),
    "PHONE": ("phone", "Phone", "tel", "mobile", "Tel."),
    "ADDRESS": ("address", "Address", "home", "ship to", "billing address"),
    "CARD": ("card", "credit card", "cc", "Card no."),
    "SSN": ("ssn", "SSN", "social security"),
    "NATID": ("id", "ID number", "national id", "tax id"),
    "PASSPORT": ("passport", "Passport no."),
    "DOB": ("dob", "born", "date of birth", "DOB", "birthday"),
    "IP": ("ip", "IP", "client", "host"),
    "DATE": ("date", "due", "created", "hired"),
    "ORDER": ("order", "ticket", "ref"),
    "MONEY": ("amount", "total", "salary"),
    "CITY": ("city", "office"),
    "COMPANY": ("company", "employer"),
    "NUM": ("count", "row", "points"),
}


def examples(seed: int) -> Iterator[dict[str, Any]]:
    """Draw the examples; rows of one template share a group."""
    chance, inventor = random.Random(seed), Inventor(seed)
    templates = _column("templates.jsonl", "template")
    plain = _column("train.jsonl", "text")
    for number, template in enumerate(templates):
        for _ in range(FILLINGS):
            yield {**_fill(_joined(template, templates, plain, chance), inventor), "group": f"template {number}"}
    for number in range(RECORDS):
        yield {**_fill(_record(chance), inventor), "group": f"record {number}"}


def _column(name: str, key: str) -> list[str]:
    return [json.loads(line)[key] for line in (_HERE / name).read_text(encoding="utf-8").splitlines()]


def _joined(template: str, templates: Sequence[str], plain: Sequence[str], chance: random.Random) -> str:
    """Put another sentence before or behind one template in three, and drop its full stop now and then."""
    if chance.random() < 0.15:
        template = template.rstrip(".?!")
    draw = chance.random()
    if draw >= 0.33:
        return template
    other = chance.choice(templates if draw < 0.12 else plain)
    return chance.choice((f"{template} {other}", f"{other} {template}", f"{other}\n{template}"))


def _record(chance: random.Random) -> str:
    gaps = chance.sample(sorted(_FIELDS), chance.randint(2, 5))
    between, after = chance.choice((", ", "; ", "\n", " | ", " ")), chance.choice((": ", "=", " ", ": "))
    return between.join(f"{chance.choice(_FIELDS[gap])}{after}{{{gap}}}" for gap in gaps)


def _fill(template: str, inventor: Inventor) -> dict[str, Any]:
    text, spans, last = "", [], 0
    for gap in _GAP.finditer(template):
        text += template[last : gap.start()]
        value, label = inventor.value(gap[1]), MARKED.get(gap[1])
        if label is not None:
            spans.append({"start": len(text), "end": len(text) + len(value), "label": label})
        text, last = text + value, gap.end()
    return {"text": text + template[last:], "spans": spans}
