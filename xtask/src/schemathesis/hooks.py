"""Runs inside Schemathesis: what neither the document nor the configuration can say.

It adds a check and takes none away.
"""

import itertools
import json
import math
import re
import tomllib
import urllib.request
from decimal import Decimal
from pathlib import Path

import schemathesis

RUN = json.loads(Path("run.json").read_text())
STATUSES = tomllib.loads(Path("statuses.toml").read_text())
# A good key, and how often one that the tool made is kept: it likes the shortest, and a key that is used is 409.
KEY = re.compile('[!#-~][!-~]{15,127}|"[ -~]{16,128}"')
KEPT = 8
COUNT = itertools.count()
# The token that is renewed, in its present form.
RENEWED = {"token": RUN["renewed"]["token"]}


def fits(case):
    """Whether the request is one that its description allows."""
    return case.meta is not None and case.meta.generation.mode.is_positive


def operation_id(case):
    return case.operation.definition.raw.get("operationId", "")


def scope(case):
    """The first of the scopes that open the operation."""
    return case.operation.definition.raw["security"][0]["bearer"][0]


def written(value):
    """JSON whose numbers are plain decimals, as the document demands and JSON Schema can't: 0.000001, not 1e-06."""
    if isinstance(value, float) and math.isfinite(value):
        return format(Decimal(repr(float(value))), "f")
    if isinstance(value, dict):
        members = (f"{json.dumps(str(name))}:{written(member)}" for name, member in value.items())
        return "{" + ",".join(members) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(written, value)) + "]"
    return json.dumps(value, default=str)


@schemathesis.serializer("application/json")
def plain_decimals(ctx, value):
    return value if isinstance(value, bytes) else written(value).encode()


def is_spoilt_token(case):
    """Whether the tool has made the token another text. For it that still fits, as its own schema of the header knows no
    formats, and it would take the 401 for a refusal of what fits. Wrong tokens are `ignored_auth`'s."""
    data = case.meta and case.meta.phase.data
    about = getattr(data, "description", None) or ""
    return getattr(data, "parameter", None) == "Authorization" and about.startswith("violates `format`")


@schemathesis.hook
def filter_case(ctx, case):
    """Tokens that the run itself uses are not revoked by it, its own suppliers are not held up."""
    if is_spoilt_token(case):
        return False
    if operation_id(case) in ("suspendSupplier", "openRiskCase") and isinstance(case.path_parameters, dict):
        return str(case.path_parameters.get("id")) not in ("1", "2")
    if operation_id(case) != "revokeToken" or not isinstance(case.path_parameters, dict):
        return True
    return str(case.path_parameters.get("tokenId")) not in map(str, RUN["spared_tokens"])


@schemathesis.hook
def before_call(ctx, case, kwargs):
    """Where the request has a good token, the platform's operations get an administrator's, and a renewal the newest
    one, which has to outlive the run. A withdrawal that fits has the code that was just sent, so that it can succeed.
    Most good keys are replaced by new ones, and all where something else does not fit."""
    key, count = case.headers.get("Idempotency-Key"), next(COUNT)
    if isinstance(key, str) and KEY.fullmatch(key) and (count % KEPT or not fits(case)):
        case.headers["Idempotency-Key"] = f"schemathesis-{count:08}"
    if case.headers.get("Authorization", "").startswith("Bearer ey"):
        if operation_id(case) == "refreshToken":
            case.headers["Authorization"] = f"Bearer {RENEWED['token']}"
            if fits(case):
                case.body = {"ttl_seconds": 259_200}
        elif scope(case).startswith("platform:"):
            case.headers["Authorization"] = f"Bearer {RUN['admin']}"
    if operation_id(case) == "withdraw" and fits(case) and isinstance(case.body, dict):
        with urllib.request.urlopen(f"{RUN['desk']}/code", timeout=30) as answer:
            case.body["sms_code"] = answer.read().decode()


@schemathesis.hook
def after_call(ctx, case, response):
    if operation_id(case) == "refreshToken" and response.status_code == 200:
        token = response.json()["data"]["access_token"]
        if token is not None:
            RENEWED["token"] = token


@schemathesis.check
def pinned_reason(ctx, response, case):
    """The status of a refusal is pinned with the codes that it may have."""
    if not fits(case) or response.status_code < 400:
        return
    allowed = STATUSES.get(operation_id(case), {}).get(str(response.status_code))
    if allowed is None:
        return
    code = response.json()["error"]["code"]
    assert code in allowed, f"{response.status_code} {code} is not among {', '.join(allowed)}"
