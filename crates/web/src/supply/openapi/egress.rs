//! What is told of calls past the platform (section 19, M-015).

use auth::scope;
use supply::Code;

use super::form::{Answer, Body, Kind, Operation, PROVIDERS, Shape, WRITE, must};

const REPORT: Shape = Shape {
    name: "EgressReport",
    fields: &[
        must(
            "event_id",
            Kind::Line(64),
            "The source's id of it, unique for the consumer: letters, digits and `._:-`.",
        ),
        must("consumer_tenant_id", Kind::Id, "Who called."),
        must("provider", Kind::Word(PROVIDERS), "Whose supplier was called."),
        must("host", Kind::Line(253), "Which host, without a path."),
        must("occurred_at", Kind::Instant, "When; at most five minutes ahead."),
        must("source", Kind::Line(200), "Who saw it and where; credentials in it are masked."),
    ],
};
const EVENT: Shape = Shape {
    name: "EgressEvent",
    fields: &[
        must("event_id", Kind::Said, "The source's id of it."),
        must("consumer_tenant_id", Kind::Id, "Who called."),
        must("provider", Kind::Word(PROVIDERS), "Whose supplier was called."),
        must("host", Kind::Said, "Which host."),
        must("occurred_at", Kind::Instant, "When."),
        must("source", Kind::Said, "Who saw it and where."),
        must("recorded_at", Kind::Instant, "When it was first reported."),
    ],
};

/// The one report.
pub(super) const OPERATIONS: &[Operation] = &[Operation {
    id: "reportEgress",
    path: "/api/v1/platform/egress-events",
    summary: "Report that a consumer called a supplier past the platform",
    summary_zh: "上报需求方绕过平台直连供应方",
    about: "Counted by M-015, and a P0 alert. An event that is on record gets the first answer again; with another \
            content it is refused.",
    scopes: &[scope::PLATFORM_RISK],
    body: Body::Fields(REPORT),
    answer: Answer::Data(201, EVENT),
    codes: &[Code::ComField, Code::ComMissing, Code::ComState],
    ..WRITE
}];
