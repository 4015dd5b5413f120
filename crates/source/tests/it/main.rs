//! Tests of the senders on real-shaped deliveries, through the public interface.

#[cfg(test)]
mod bad_input;
#[cfg(test)]
mod never_panics;
#[cfg(test)]
mod projection;
#[cfg(test)]
mod sending;
#[cfg(test)]
mod settings;
#[cfg(test)]
mod support;
#[cfg(test)]
mod vectors;
