//! What is checked, a file a family. A family is given the stage and the book, makes what it needs, and records each of
//! its checks under the id that the list has. A family that forgets one is found out by the book.

mod batch;
mod catalogue;
mod fi_001;
mod fi_002;
mod fi_003;
mod fi_004_005;
mod fi_006;
mod fi_007;
mod fi_008;
mod headers;
mod invariants;
mod metrics;
mod races;
mod search;
mod sound;

use futures::future::LocalBoxFuture;

use super::check::Book;
use super::stage::Stage;

/// One family.
pub type Family = for<'a> fn(&'a Stage, &'a Book) -> LocalBoxFuture<'a, ()>;

/// All, in the order in which they are made: the last ones look at what all others left.
pub const FAMILIES: [(&str, Family); 15] = [
    ("database", |stage, book| Box::pin(catalogue::run(stage, book))),
    ("headers", |stage, book| Box::pin(headers::run(stage, book))),
    ("time-outs", |stage, book| Box::pin(fi_001::run(stage, book))),
    ("mismatches", |stage, book| Box::pin(fi_002::run(stage, book))),
    ("conflicts", |stage, book| Box::pin(fi_003::run(stage, book))),
    ("audit and outbox", |stage, book| Box::pin(fi_004_005::run(stage, book))),
    ("services that are down", |stage, book| Box::pin(fi_006::run(stage, book))),
    ("invariants", |stage, book| Box::pin(invariants::run(stage, book))),
    ("races", |stage, book| Box::pin(races::run(stage, book))),
    ("batches", |stage, book| Box::pin(batch::run(stage, book))),
    ("query keys", |stage, book| Box::pin(fi_007::run(stage, book))),
    ("exposures", |stage, book| Box::pin(fi_008::run(stage, book))),
    ("soundness", |stage, book| Box::pin(sound::run(stage, book))),
    ("metrics", |stage, book| Box::pin(metrics::run(stage, book))),
    ("canary", |stage, book| Box::pin(search::run(stage, book))),
];
