//! What every engine promises.

mod groups;
mod reads;
mod schema;
mod standing;
mod statements;
mod supply_schema;
