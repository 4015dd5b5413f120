//! Which codes an operation can answer, grouped by status: its own, and those of what stands around every handler.
//! In the seed's profile of the protocol (section 7.5); in the draft's, 202 and 409 of keys are 409 and 422.

use std::collections::BTreeMap;

use onceseal_http::code as protocol;

use super::form::{Keys, Operation};
use crate::supply::envelope::{self, Fixed};

/// Codes by status, each once.
pub(super) type ByStatus = BTreeMap<u16, Vec<Fixed>>;

/// All codes of one operation, its own first.
pub(super) fn of(operation: &Operation) -> ByStatus {
    let own = operation.codes.iter().map(|code| Fixed::from(*code));
    // What does not fit into a path, a slash or half a character, makes it another one, which no route has.
    let elsewhere = operation.path.contains('{').then_some(envelope::ROUTE_UNKNOWN);
    // Where no scope is asked for none is missing.
    let is_denial = |code: &Fixed| operation.scopes.is_empty() && code.status == 403;
    let around = around(operation.keys).into_iter().filter(|code| !is_denial(code));
    grouped(own.chain(elsewhere).chain(around))
}

/// What any operation with these keys can answer.
pub(super) fn usual(keys: Keys) -> ByStatus {
    grouped(around(keys))
}

fn grouped(codes: impl IntoIterator<Item = Fixed>) -> ByStatus {
    let mut by_status = ByStatus::new();
    for fixed in codes {
        let codes = by_status.entry(fixed.status).or_default();
        if codes.iter().all(|known| known.name != fixed.name) {
            codes.push(fixed);
        }
    }
    by_status
}

fn around(keys: Keys) -> Vec<Fixed> {
    let edge = [
        envelope::QUERY_KEY,
        envelope::QUERY_MALFORMED,
        envelope::TOO_MANY,
        envelope::INTERNAL,
        envelope::WITHHELD,
    ];
    let authentication = auth::code::ALL.into_iter().map(Fixed::from);
    let mut codes: Vec<Fixed> = edge.into_iter().chain(authentication).collect();
    // A key that looks like a credential is refused on reads, too.
    codes.extend([of_protocol(protocol::KEY_INVALID), envelope::DEPENDENCY]);
    if keys != Keys::Read {
        let write = [
            protocol::BODY_UNREADABLE,
            protocol::FIELD_INVALID,
            protocol::IN_PROGRESS,
            protocol::MISMATCH,
            protocol::BODY_LATE,
            protocol::BODY_LARGE,
            protocol::BODY_TYPE,
            protocol::UNAVAILABLE,
        ];
        codes.extend(write.map(of_protocol));
    }
    if keys == Keys::Required {
        let demanded = [protocol::REQUEST_ID_MISSING, protocol::REQUEST_ID_INVALID, protocol::KEY_MISSING];
        codes.extend(demanded.map(of_protocol));
    }
    codes
}

fn of_protocol(code: protocol::Code) -> Fixed {
    Fixed { name: code.name, status: code.seed, message: code.message, message_zh: code.message_zh }
}
