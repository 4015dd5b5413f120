//! The ids that a request brings, before anything logs, keeps or echoes them (sections 7.2, 15.2): on paths of this API
//! the request's id is a UUID, elsewhere any text that the guard lets pass, and of a `traceparent` what is known of it
//! stays. Not here: keys ([`super::enter`]), and which route demands an id (`onceseal_http`).

use axum::extract::Request;
use axum::http::HeaderValue;
use onceseal_http::headers::{REQUEST_ID, Spare, TRACEPARENT, made, request_id};

use super::{Supply, owns};
use crate::arrival;

/// Stands for an id that was put out, so that a route that demands one refuses the request as before.
const PUT_OUT: HeaderValue = HeaderValue::from_static("-");

/// Puts out what can't be kept. Gives the request's id, where the path is this API's.
pub(crate) fn settle(supply: &Supply, request: &mut Request) -> Option<String> {
    let is_ours = owns(request.uri().path());
    let passes = |value: &HeaderValue| value.to_str().is_ok_and(|text| supply.guard.passes(text));
    let headers = request.headers_mut();
    match arrival::trace(headers).filter(|trace| passes(trace.echo())) {
        Some(trace) => headers.insert(TRACEPARENT, trace.echo().clone()),
        None => headers.remove(TRACEPARENT),
    };
    if !is_ours {
        if !headers.get_all(REQUEST_ID).iter().all(passes) {
            headers.remove(REQUEST_ID);
        }
        return None;
    }
    let given = arrival::only(headers, &REQUEST_ID).filter(|value| passes(value)).and_then(request_id);
    if given.is_none() && headers.contains_key(REQUEST_ID) {
        headers.insert(REQUEST_ID, PUT_OUT);
    }
    let id = given.unwrap_or_else(|| made(&*supply.protocol.random));
    request.extensions_mut().insert(Spare(id.clone()));
    Some(id)
}
