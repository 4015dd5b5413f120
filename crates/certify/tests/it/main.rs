//! AuditVisa on the real store, in a folder of its own, with a clock that stands still.

#![expect(clippy::expect_used, clippy::indexing_slicing, reason = "a test that can't go on says why")]

mod acts;
mod golden;
mod house;
mod intake;
mod keys_first;
mod keys_rotation;
mod ledger;
mod nodes;
mod only_postgres;
mod personal;
mod recovery;
mod s3;
mod s3_server;
mod shelf;
mod shelf_certificates;
mod shelf_places;
mod twin_reports;
