//! The layer through its public interface: tables for what is read, and real requests over a socket for what is
//! answered.

#[cfg(test)]
mod answers;
#[cfg(test)]
mod bank;
#[cfg(test)]
mod canonical;
#[cfg(test)]
mod failures;
#[cfg(test)]
mod fields;
#[cfg(test)]
mod headers;
#[cfg(test)]
mod looked_up;
#[cfg(test)]
mod requests;
#[cfg(test)]
mod routes;
#[cfg(test)]
#[path = "../../examples/two_routes.rs"]
#[expect(dead_code, reason = "its own start is not called here")]
mod two_routes;
#[cfg(test)]
mod wire;
