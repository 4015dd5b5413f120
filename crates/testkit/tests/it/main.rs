//! Tests of the shared test tools: a net that can't fail is no net.

#[cfg(test)]
mod commits;
#[cfg(test)]
mod corruptions;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod judged;
#[cfg(test)]
mod model;
#[cfg(test)]
mod real_server;
#[cfg(test)]
mod scene;
#[cfg(test)]
mod twice;
