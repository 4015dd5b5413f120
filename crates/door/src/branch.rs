//! Which branch of the table of answers a submission took, told at trace level to whoever counts them
//! (target [`TARGET`], field `branch`). Not here: the table itself (`kernel::meeting`).

/// Target of the events.
pub const TARGET: &str = "door::branch";

macro_rules! branches {
    ($($(#[doc = $doc:literal])+ $name:ident = $word:literal,)+) => {
        /// A branch. One submission takes several: what it met, and what came of it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Branch {
            $($(#[doc = $doc])+ $name,)+
        }

        impl Branch {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// Its word in events.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $word,)+
                }
            }
        }
    };
}

branches! {
    /// Nothing stands under the key.
    First = "first",
    /// The last attempt failed; the same payload goes on.
    FailedSame = "failed, same payload",
    /// The last attempt failed; another payload begins, or is refused where the key stays its payload's.
    FailedOther = "failed, other payload",
    /// The lease of the same payload has lapsed.
    LapsedSame = "lease lapsed, same payload",
    /// The lease of another payload has lapsed: only that payload may take it over.
    LapsedOther = "lease lapsed, other payload",
    /// The result has expired; the same payload begins anew.
    ExpiredSame = "expired, same payload",
    /// The result has expired; another payload begins.
    ExpiredOther = "expired, other payload",
    /// The result is given again.
    ReplaySame = "replay",
    /// A result stands, of another payload.
    ReplayOther = "replay to another payload",
    /// A valid lease of the same payload.
    RunningSame = "running, same payload",
    /// A valid lease of another payload.
    RunningOther = "running, other payload",
    /// The record is orphaned.
    Recover = "orphaned",
    /// The own claim still stands: settle it.
    Held = "claim held",
    /// The fence moved on.
    Lost = "claim lost",
    /// A foreign step was not begun, or its result not kept, since the fence moved on.
    LostInStep = "claim lost in a step",
    /// Preparing took longer than the lease.
    Outlived = "lease outlived",
    /// A twin in this process ended: look again.
    Waited = "a twin here ended",
    /// A twin in this process is still running.
    HereSame = "busy here, same payload",
    /// Another payload is still running in this process.
    HereOther = "busy here, other payload",
    /// A transaction of another node has the key, for the same payload.
    ElsewhereSame = "busy elsewhere, same payload",
    /// A transaction of another node has the key, for another payload or to add to its record.
    ElsewhereOther = "busy elsewhere, other payload",
    /// A lost commit had happened.
    UnknownFound = "unknown commit found",
    /// A lost commit had not happened: it ran again.
    UnknownAgain = "unknown commit not found",
    /// A lost commit stayed unknown.
    UnknownLeft = "unknown commit left open",
    /// A check raised, and became the refusal that it stands for.
    RaisedRefused = "raised, refused",
    /// A check raised, and a result stood there meanwhile.
    RaisedReplayed = "raised, replayed",
    /// The command left the key open.
    Open = "left open",
    /// A failure is on record.
    FailKept = "failure kept",
    /// Another attempt got ahead of a failure.
    FailPassed = "failure overtaken",
    /// A failure could not be put on record.
    FailLost = "failure not kept",
    /// Others kept getting ahead.
    Crowded = "crowded",
}

impl Branch {
    /// Tells it. Costs a load where nobody listens.
    pub(crate) fn taken(self) {
        tracing::trace!(target: TARGET, branch = self.as_str());
    }
}
