//! The outbox at work: rows of `outbox` (the facts) go to the channels named in `outbox_deliveries`, one
//! row a destination (supply specification, section 17.3).
//!
//! A row is `pending` until it is claimed as `sending` with a fence and a lease; the claim is committed,
//! the message is sent outside of any transaction, and the end is marked under the fence: `delivered`,
//! `pending` again at a later time, or held for a person as `refused`, `uncertain` or `dead`.
//!
//! Modules in reading order: [`message`] (what is sent), [`channel`] (where to, and how a send can end),
//! [`schedule`] (when it is tried again), `lane` (how fast one channel may be used just now), `claim`
//! (the SQL), [`round`] (one claim, send, mark), [`run`] (rounds in tasks), [`held`] (what a person sees
//! and does), [`measure`] (numbers), [`text`] (the words of the announcements), [`log`] and [`telegram`]
//! (the channels).
//!
//! # Adding a channel
//! Implement [`Channel`]: say whether the other side removes repeats, how fast it may be used, and turn
//! every end of a send into an [`Outcome`]. The one question is "may it have arrived?": if so, and nobody
//! can tell, it is [`Outcome::Uncertain`].
//!
//! Not here: who announces what (the commands write their outbox rows), and the pages that show it.

pub mod channel;
pub mod held;
pub mod log;
pub mod measure;
pub mod message;
pub mod round;
pub mod run;
pub mod schedule;
pub mod telegram;
pub mod text;

mod claim;
mod lane;

pub use channel::{Channel, Outcome, Pace, Reach, Repeats};
pub use log::Log;
pub use message::{Message, State};
pub use round::{Relay, Settings, Turn};
pub use run::{Handle, Nudge};
pub use telegram::Telegram;
