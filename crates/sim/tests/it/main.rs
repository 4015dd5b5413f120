//! The simulation itself: it finds nothing where nothing is wrong, and a seed is always the same run.

#[cfg(test)]
mod seeds;
