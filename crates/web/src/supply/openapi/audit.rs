//! What the platform's auditors read (sections 3.3, 8.5, 19).

use auth::scope;
use supply::Code;

use super::accounts::EVENT;
use super::form::{Answer, Field, Kind, Operation, PAGE, PAGE_SIZE, READ, Shape, may, must, or_null};

/// Names of metrics in paths.
pub(super) const SLUGS: &[&str] = &["m004", "m005", "m011", "m012", "m013", "m014", "m015", "m016"];

const READING: Shape = Shape {
    name: "MetricReading",
    fields: &[
        must("metric", Kind::Said, "`M-013`."),
        must("name", Kind::Said, "`supplier_credential_exposure_events`."),
        or_null(
            "value",
            Kind::Exact,
            "Events, or percent, cut after four decimals; null where there is no sample.",
        ),
        must("target", Kind::Said, "What it must be: `= 0`, `>= 90`."),
        must(
            "status",
            Kind::Word(&["pass", "fail", "no_sample"]),
            "A part of nothing has no sample: it neither passes nor fails.",
        ),
        must("numerator", Kind::Whole(0, i64::MAX), "What is counted."),
        or_null("denominator", Kind::Whole(0, i64::MAX), "Of how many; null where events alone count."),
        or_null("blocked", Kind::Whole(0, i64::MAX), "Of M-013: what was about to leave and was withheld."),
        must(
            "period",
            Kind::Object(&[
                must("start", Kind::Instant, "First instant."),
                must("end", Kind::Instant, "First instant after it."),
            ]),
            "Over which time.",
        ),
        must("samples", Kind::Texts, "Ids of the latest requests that it is about, ten at most."),
    ],
};

const AUDITORS: &[&str] = &[scope::PLATFORM_AUDIT_READ];

/// Sections 3.3 and 8.5.
pub(super) const OPERATIONS: &[Operation] = &[
    Operation {
        id: "readMetric",
        path: "/api/v1/audit/metrics/{metric}",
        summary: "Read a metric of the gate over a period",
        summary_zh: "门禁指标",
        about: "By full counts of the audit log and of what the servers counted, which survives their restarts. What another server counted within the last seconds may be missing.",
        scopes: AUDITORS,
        query: &[START, END],
        answer: Answer::Data(200, READING),
        codes: &[Code::ComField, Code::ComMissing],
        ..READ
    },
    Operation {
        id: "listTokenAuditEvents",
        path: "/api/v1/platform/tokens/audit-events",
        summary: "List the audit events of tokens, the newest first",
        summary_zh: "令牌审计事件",
        about: "Issued, renewed, revoked, callers turned away; who was told by a token and who was not are sums of a minute. Administrators see all tenants, others their own.",
        scopes: AUDITORS,
        query: &[PAGE, PAGE_SIZE],
        answer: Answer::Page(EVENT),
        ..READ
    },
];

const START: Field =
    may("start", Kind::Instant, "First instant; 30 days before the end where nothing is said.");
const END: Field =
    may("end", Kind::Instant, "First instant after it, at most 366 days later; now where nothing is said.");
