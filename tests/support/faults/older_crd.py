"""A served CRD of DispatchStarts that is older than the operator, and does not keep what it writes."""

import json
from dataclasses import dataclass
from typing import Any

from dispatch_operator.api.models.status import StartStatus, fields_of
from dispatch_operator.kube.errors import answered

Object = dict[str, Any]


@dataclass(frozen=True)
class OlderCrd:
    """Drops one field of the status, or refuses every status that has it."""

    field: str
    refuses: bool = False

    def __str__(self) -> str:
        return f"a CRD that {'refuses' if self.refuses else 'drops'} {self.field}"

    def take(self, body: Object) -> Object:
        """Return what is stored of a patch.

        Raises:
            ApiError: It is refused.
        """
        if body["status"].get(self.field) is None:
            return body
        if not self.refuses:
            return {**body, "status": {**body["status"], self.field: None}}
        causes = [{"field": field} for field in (f"status.{self.field}", "<nil>")]
        status = {"reason": "Invalid", "message": "is invalid", "details": {"causes": causes}}
        raise answered("patch", "DispatchStart", 422, json.dumps(status), None)


OLDER_CRDS = (
    *(OlderCrd(field.encode_name) for field in fields_of(StartStatus)),
    *(OlderCrd(field, refuses=True) for field in ("phase", "outcome")),
)
