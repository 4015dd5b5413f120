//! Tests of the senders on real-shaped deliveries, through the public interface.

mod bad_input;
mod never_panics;
mod projection;
mod settings;
mod support;
mod vectors;
