//! The layer through its public interface: tables for what is read, and real requests over a socket for what is
//! answered.

#[cfg(test)]
mod routes;
#[cfg(test)]
#[path = "../../examples/two_routes.rs"]
#[expect(dead_code, reason = "its own start is not called here")]
mod two_routes;
#[cfg(test)]
mod wire;
