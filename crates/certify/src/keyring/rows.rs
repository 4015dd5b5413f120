//! The keys as the store has them, and the statements on them.

use door::Door;
use kernel::{Digest, Time};
use seal::jwks::{Entry, Status};
use seal::key::PublicKey;
use store::{Query, Row};

use super::Error;

/// $1 key id, $2 public key, $3 stage, $4 now, $5 active from.
pub(super) const INSERT: &str = "insert into certify_keys (key_id, public_key, status, announced_at, active_from) values ($1, $2, $3, $4, $5)";
/// $1 digest, $2 now.
pub(super) const BEGIN: &str = "insert into certify_secret (id, digest, begun_at) values (1, $1, $2)";
/// $1 key id.
pub(super) const CLOSE: &str =
    "update certify_keys set status = 'closing' where key_id = $1 and status = 'active'";
/// $1 now, $2 key id.
pub(super) const OPEN: &str =
    "update certify_keys set status = 'active', active_from = $1 where key_id = $2 and status = 'announced'";
/// $1 key id.
pub(super) const WITHDRAW: &str = "delete from certify_keys where key_id = $1 and status = 'announced'";
/// $1 key id. Changes nothing, and so gets its transaction a number.
pub(super) const TOUCH: &str =
    "update certify_keys set status = 'closing' where key_id = $1 and status = 'closing'";
/// $1 now, $2 key id.
pub(super) const RETIRE: &str =
    "update certify_keys set status = 'retired', retired_at = $1 where key_id = $2 and status = 'closing'";

const ANCHORS: &str = "select key_id, public_key, status, announced_at, active_from, retired_at from certify_keys order by announced_at, key_id";
const SECRET: &str = "select digest from certify_secret";

/// Where a key stands in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Published ahead of its first signature.
    Announced,
    /// Signs.
    Active,
    /// Signs nothing new; what was on its way may still commit.
    Closing,
    /// Nothing is signed with it any more.
    Retired,
}

impl Stage {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Announced => "announced",
            Self::Active => "active",
            Self::Closing => "closing",
            Self::Retired => "retired",
        }
    }
}

/// One key's row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Anchor {
    pub(super) key: PublicKey,
    pub(super) stage: Stage,
    pub(super) announced_at: Time,
    pub(super) active_from: Option<Time>,
    pub(super) retired_at: Option<Time>,
}

impl Anchor {
    /// Whether a node needs the private half.
    pub(super) const fn signs(&self) -> bool {
        matches!(self.stage, Stage::Announced | Stage::Active)
    }

    fn read(row: &Row) -> Result<Self, Error> {
        let damaged = |cause: store::Error| Error::Recorded(cause.to_string());
        let bytes: [u8; 32] =
            row.bytes(1).map_err(damaged)?.try_into().map_err(|_| Error::Recorded("length".into()))?;
        let key = PublicKey::from_bytes(&bytes).map_err(|cause| Error::Recorded(cause.to_string()))?;
        let stage = match row.text(2).map_err(damaged)? {
            "announced" => Stage::Announced,
            "active" => Stage::Active,
            "closing" => Stage::Closing,
            _ => Stage::Retired,
        };
        Ok(Self {
            key,
            stage,
            announced_at: row.time(3).map_err(damaged)?,
            active_from: row.time_or_null(4).map_err(damaged)?,
            retired_at: row.time_or_null(5).map_err(damaged)?,
        })
    }
}

/// The published form. A closing key still counts as one that signs: it did until a moment ago.
impl From<&Anchor> for Entry {
    fn from(anchor: &Anchor) -> Self {
        let status = match (anchor.stage, anchor.retired_at) {
            (Stage::Announced, _) => Status::Announced,
            (_, Some(at)) => Status::Retired { at: at.seconds() },
            (_, None) => Status::Active,
        };
        Self { key: anchor.key.clone(), status, not_before: anchor.active_from.map(Time::seconds) }
    }
}

/// What the store says of the keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Known {
    /// In the order of their announcement.
    pub(super) anchors: Vec<Anchor>,
    /// Digest of the secret that the store was begun with.
    pub(super) secret: Option<Digest>,
}

impl Known {
    pub(super) fn queries() -> Vec<Query> {
        vec![Query::new("keys.all", ANCHORS, vec![]), Query::new("keys.secret", SECRET, vec![])]
    }

    /// From the rows of [`Known::queries`].
    pub(super) fn read(rows: &[Vec<Row>]) -> Result<Self, Error> {
        let anchors = rows.first().into_iter().flatten().map(Anchor::read).collect::<Result<_, _>>()?;
        let digest = rows.get(1).and_then(|rows| rows.first()).map(|row| row.digest(0)).transpose();
        Ok(Self { anchors, secret: digest.map_err(|cause| Error::Recorded(cause.to_string()))? })
    }

    /// As it is now.
    pub(super) async fn now(door: &Door) -> Result<Self, Error> {
        Self::read(&door.store().queries(Self::queries()).await?)
    }
}
