//! Tables of refusals.
