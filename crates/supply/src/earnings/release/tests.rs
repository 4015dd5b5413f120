//! Refusals of a release.
