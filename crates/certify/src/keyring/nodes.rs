//! Which servers share the store, and which keys each of them has loaded. A node says so every few seconds;
//! times are the store's.

use std::time::Duration;

use kernel::Time;
use seal::key::KeyId;
use serde_json::{Value as Json, json};
use store::{Query, Row, Write, values};

use super::rows::Anchor;
use super::{Error, Keyring};
use crate::intake::AuditVisa;

/// A node counts as alive for this long after it was last seen: five of its signs of life.
pub const LIVE_FOR: Duration = Duration::from_secs(15);
/// Then it is forgotten; until then people see that it was there.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(3600);

const NODES: &str = "select node_id, address, seen_at, loaded, trouble from certify_nodes order by node_id";
const BEAT: &str = "insert into certify_nodes (node_id, address, seen_at, loaded, trouble) values ($1, $2, $3, $4, $5)
on conflict (node_id) do update set address = excluded.address, seen_at = excluded.seen_at, loaded = excluded.loaded, trouble = excluded.trouble";

/// One server, as it was last seen.
pub(super) struct Node {
    pub(super) id: String,
    address: String,
    seen_at: Time,
    loaded: String,
    trouble: Option<String>,
}

impl Node {
    fn read(row: &Row) -> Result<Self, store::Error> {
        Ok(Self {
            id: row.text(0)?.to_owned(),
            address: row.text(1)?.to_owned(),
            seen_at: row.time(2)?,
            loaded: row.text(3)?.to_owned(),
            trouble: row.text_or_null(4)?.map(ToOwned::to_owned),
        })
    }

    fn is_alive(&self, now: Time) -> bool {
        now.since(self.seen_at) <= LIVE_FOR
    }

    pub(super) fn has_loaded(&self, id: KeyId) -> bool {
        let id = id.to_string();
        self.loaded.split(' ').any(|loaded| loaded == id)
    }

    /// For people.
    fn name(&self) -> String {
        if self.address.is_empty() { self.id.clone() } else { format!("{} ({})", self.address, self.id) }
    }
}

/// All nodes that are known.
pub(super) fn query() -> Query {
    Query::new("nodes.all", NODES, vec![])
}

/// Those other than `me` that are alive, from the rows of [`query`].
pub(super) fn alive(rows: &[Row], now: Time, me: Option<&str>) -> Result<Vec<Node>, store::Error> {
    let mut nodes = rows.iter().map(Node::read).collect::<Result<Vec<_>, _>>()?;
    nodes.retain(|node| node.is_alive(now) && Some(node.id.as_str()) != me);
    Ok(nodes)
}

/// Their names, for a sentence.
pub(super) fn names<'n>(nodes: impl IntoIterator<Item = &'n Node>) -> String {
    nodes.into_iter().map(Node::name).collect::<Vec<_>>().join(", ")
}

impl AuditVisa {
    /// Where people find this node; shown beside its name. The first address stays.
    pub fn reached_at(&self, address: String) {
        // One that is set twice is the same server's.
        let _ = self.tending.address.set(address);
    }

    /// Says that this node is alive and which keys it can sign with; nothing where it is the only one.
    ///
    /// # Errors
    /// [`Error::Door`] when the store can't be written.
    pub async fn beat(&self) -> Result<(), Error> {
        let Some(node) = self.node.clone() else { return Ok(()) };
        let ring = self.keys();
        let loaded = ring.private.keys().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        let (address, trouble) = (self.tending.address.get().cloned().unwrap_or_default(), ring.trouble());
        let plan = move |_, now: Time| {
            let row = values![&node, &address, now, &loaded, trouble.clone()];
            let old = values![now.minus(FORGOTTEN_AFTER)];
            let forget = "delete from certify_nodes where seen_at < $1";
            Ok((vec![Write::one("nodes.beat", BEAT, row), Write::any("nodes.forget", forget, old)], ()))
        };
        self.door.maintain("nodes.beat", Vec::new(), plan).await?;
        Ok(())
    }

    /// This node stops: nobody waits for it any more.
    ///
    /// # Errors
    /// [`Error::Door`]; it then counts as alive for a while.
    pub async fn leave(&self) -> Result<(), Error> {
        let Some(node) = self.node.clone() else { return Ok(()) };
        let sql = "delete from certify_nodes where node_id = $1";
        let plan = move |_, _| Ok((vec![Write::any("nodes.leave", sql, values![&node])], ()));
        self.door.maintain("nodes.leave", Vec::new(), plan).await?;
        Ok(())
    }

    /// Keys and nodes: where each key stands, who can sign with it, and what keeps the announced one from
    /// being activated.
    ///
    /// # Errors
    /// [`Error::Door`] when the store can't be read.
    pub async fn keys_standing(&self) -> Result<Json, Error> {
        self.look_at_keys().await?;
        let ring = self.keys();
        let rows = self.door.store().query(query()).await?;
        let nodes = rows.iter().map(Node::read).collect::<Result<Vec<_>, _>>()?;
        let now = self.clock.now();
        let shown = |node: &Node| {
            json!({
                "node": node.id,
                "address": node.address,
                "seen_at": node.seen_at.to_rfc3339_seconds(),
                "age_s": now.since(node.seen_at).as_secs(),
                "alive": node.is_alive(now),
                "loaded": node.loaded.split(' ').filter(|id| !id.is_empty()).collect::<Vec<_>>(),
                "trouble": node.trouble,
            })
        };
        let waiting = ring.announced().map(|id| {
            let lacking = |node: &&Node| node.is_alive(now) && !node.has_loaded(id);
            nodes.iter().filter(lacking).map(Node::name).collect::<Vec<_>>()
        });
        Ok(json!({
            "keys": ring.anchors.iter().map(|anchor| ring.shown(anchor)).collect::<Vec<_>>(),
            "nodes": nodes.iter().map(shown).collect::<Vec<_>>(),
            "answered_by": self.node,
            "announced": ring.announced().map(|id| id.to_string()),
            "not_loaded_by": waiting,
            "trouble": ring.trouble(),
        }))
    }
}

impl Keyring {
    fn shown(&self, anchor: &Anchor) -> Json {
        let time = |at: Option<Time>| at.map(Time::to_rfc3339_seconds);
        json!({
            "key_id": anchor.key.id().to_string(),
            "status": anchor.stage.as_str(),
            "announced_at": time(Some(anchor.announced_at)),
            "active_from": time(anchor.active_from),
            "retired_at": time(anchor.retired_at),
            "loaded_here": anchor.signs().then(|| self.has_loaded(anchor.key.id())),
        })
    }

    /// What keeps this node from signing now or after the next rotation; `None` when all is well.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        let signer = self.signer.as_ref().err();
        signer.or_else(|| self.lacking.values().next()).map(|cause| match cause {
            Error::Missing(id) => format!("{} is not in its keys folder", super::folder::file_name(*id)),
            other => other.to_string(),
        })
    }
}
