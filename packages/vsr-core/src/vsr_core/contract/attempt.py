"""One row per attempt: what observers are given and the ledger keeps. It never holds texts or secrets."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from ..taxonomy import Capability, ErrorClass
from .address import BackendId
from .responses import Usage

__all__ = ["AttemptRecord", "Outcome"]

Outcome = Literal["served", "absorbed", "error", "aborted", "skipped", "rejected", "hedge_lost"]
"""``absorbed``: failed, and another candidate answered; ``rejected``: refused before any attempt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRecord:
    """One candidate of one request, tried or skipped. Times are Unix seconds, durations milliseconds.

    :param number: 1 for the first attempt; 0 for a request that was rejected before any.
    :param credential: the name of the credential's reference, never its value.
    """

    request_id: str
    attempt_id: str
    number: int
    capability: Capability
    logical_name: str
    outcome: Outcome
    parent_id: str | None = None
    role: str | None = None
    backend_id: BackendId | None = None
    model_revision: str | None = None
    response_model: str | None = None
    tenant: str | None = None
    app: str | None = None
    credential: str | None = None
    stream: bool = False
    started_at: float | None = None
    queue_ms: float | None = None
    first_content_ms: float | None = None
    latency_ms: float | None = None
    committed: bool = False
    error_class: ErrorClass | None = None
    error_code: str | None = None
    http_status: int | None = None
    retryable: bool | None = None
    retry_after: float | None = None
    cooldown_ms: float | None = None
    usage: Usage = Usage()
    usage_source: Literal["provider", "stream", "local", "estimated", "none"] = "none"
    cost: Decimal | None = None
    cost_status: Literal["exact", "estimated", "unknown"] = "unknown"
    selection_reason: str | None = None
    drop_reason: str | None = None
    policy: str | None = None
    hedge_of: str | None = None
    idempotency_key: str | None = None
