//! Settlements through the door.

mod commits;
mod desk;
mod guarded;
mod payouts;
mod races;
mod reading;
mod reconciling;
mod scheduled;
mod wide;
mod withdrawals;
