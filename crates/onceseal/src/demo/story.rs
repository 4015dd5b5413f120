//! What the demo's sender does: the ways in which events arrive in life, in the order in which they hurt.

use source::samples;

/// How a delivery is signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signed {
    /// With the right secret, now.
    Right,
    /// Somebody changed a byte of the body on the way.
    Tampered,
    /// With the right secret, an hour ago.
    Stale,
}

/// One part of the story.
#[derive(Clone, Copy, Debug)]
pub struct Scene {
    /// What happens, for people.
    pub title: &'static str,
    /// The body.
    pub body: &'static str,
    /// How often it is sent.
    pub times: usize,
    /// Whether all at once, or one after another.
    pub at_once: AtOnce,
    /// How it is signed.
    pub signed: Signed,
}

/// Whether sends of a scene overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtOnce {
    /// All start together.
    All,
    /// Each waits for the one before.
    OneByOne,
}

const fn scene(title: &'static str, body: &'static str, times: usize) -> Scene {
    Scene { title, body, times, at_once: AtOnce::OneByOne, signed: Signed::Right }
}

/// The story.
pub const STORY: [Scene; 9] = [
    Scene { at_once: AtOnce::All, ..scene("paid, sent five times at once", samples::CHECKOUT_PAID, 5) },
    scene("the same, retried days later", samples::CHECKOUT_PAID_RENDERED_AGAIN, 2),
    scene("the same payment under a second id", samples::CHECKOUT_PAID_SECOND_ID, 1),
    scene("late payment, arrives before its order", samples::CHECKOUT_ASYNC_SUCCEEDED, 2),
    scene("that order, not paid yet", samples::CHECKOUT_UNPAID, 2),
    scene("another currency", samples::CHECKOUT_PAID_JPY, 3),
    scene("a refund", samples::REFUND_FULL, 1),
    Scene { signed: Signed::Tampered, ..scene("changed on the way", samples::CHECKOUT_PAID, 1) },
    Scene { signed: Signed::Stale, ..scene("signed an hour ago", samples::CHECKOUT_PAID, 1) },
];
