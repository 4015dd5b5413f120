//! Tests of the crate through its public API.

#[cfg(test)]
mod exits;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod live;
#[cfg(test)]
mod made_up;
#[cfg(test)]
mod passes;
#[cfg(test)]
mod queries;
#[cfg(test)]
mod shapes;
#[cfg(test)]
mod streams;
#[cfg(test)]
mod sweeps;
