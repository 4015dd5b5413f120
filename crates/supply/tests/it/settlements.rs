//! Settlements through the door.

mod desk;
mod payouts;
mod races;
mod withdrawals;
