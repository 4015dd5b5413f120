//! What only the embedded engine has: a folder, a file, one writer.

mod copies;
mod fence;
mod folder;
mod full;
mod reads;
mod schema;
mod statements;
mod writer;
