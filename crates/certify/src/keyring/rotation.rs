//! A new key takes over. One server alone does it in one step ([`AuditVisa::rotate_keys`]). Where nodes share
//! a store it takes three, so that no node is left without the key that signs: announce, every node has
//! loaded it, activate.
//!
//! The switch is one transaction: the active key closes, the next one is active. From then on no transaction
//! can keep a certificate of the old key, because the insert asks for the active one. What had asked a moment
//! before may still commit; so the old key counts as retired only when all transactions are over that ran at
//! the switch, and every certificate under it is older than its end.

use std::time::Duration;

use door::{AuditRow, Failure};
use kernel::Time;
use seal::key::KeyId;
use serde_json::{Value as Json, json};
use store::{Query, Row, Write, values};

use super::rows::{CLOSE, INSERT, OPEN, RETIRE, Stage, TOUCH, WITHDRAW};
use super::{Error, folder, nodes};
use crate::acts::Refused;
use crate::intake::AuditVisa;

/// Looks whether the transactions that ran at the switch are over: two seconds in all. A longer one keeps
/// its key closing until somebody looks again.
const LOOKS_MAX: usize = 80;
/// Between two of them.
const LOOK_AGAIN: Duration = Duration::from_millis(25);

impl AuditVisa {
    /// Makes a new key and activates it at once: for a server that is alone on its store.
    ///
    /// # Errors
    /// [`Error::Shared`] where other nodes would have to load it first; the old key stays active then.
    pub async fn rotate_keys(&self, operator: &str) -> Result<Json, Refused> {
        self.look_at_keys().await?;
        let old = self.sole()?;
        let key = self.folder.make(&*self.door.random())?;
        let (id, public) = (key.id(), *key.public_key().as_bytes());
        let audit = self.key_audit("certify.key.rotate", id, operator, Stage::Active);
        let me = self.node.clone();
        let switched = self.door.maintain("keys.rotate", vec![nodes::query()], move |rows, now| {
            let others = nodes::alive(first(&rows), now, me.as_deref())?;
            if !others.is_empty() {
                return Ok((Vec::new(), Err(Error::Shared(nodes::names(&others)))));
            }
            let row = values![id.to_string(), public, Stage::Active.as_str(), now, now];
            let writes = vec![
                Write::one("keys.close", CLOSE, values![old.to_string()]),
                Write::one("keys.insert", INSERT, row),
                audit(now),
            ];
            Ok((writes, Ok(())))
        });
        self.made_or_removed(id, switched.await.map(|(said, _)| said))?;
        self.switched().await?;
        Ok(json!({ "active": id.to_string(), "keys": self.keys().jwks()?.entries().len() }))
    }

    /// Makes a key, its file in this node's folder, and publishes that it is to sign.
    ///
    /// # Errors
    /// [`Error::Announced`] when another one is; files that can't be written.
    pub async fn announce_key(&self, operator: &str) -> Result<Json, Refused> {
        self.look_at_keys().await?;
        if let Some(id) = self.keys().announced() {
            return Err(Error::Announced(id).into());
        }
        let key = self.folder.make(&*self.door.random())?;
        let (id, public) = (key.id(), *key.public_key().as_bytes());
        let audit = self.key_audit("certify.key.announce", id, operator, Stage::Announced);
        let announced = self.door.maintain("keys.announce", Vec::new(), move |_, now| {
            let row = values![id.to_string(), public, Stage::Announced.as_str(), now, None::<Time>];
            Ok((vec![Write::one("keys.insert", INSERT, row), audit(now)], Ok(())))
        });
        self.made_or_removed(id, announced.await.map(|(said, _)| said))?;
        self.look_at_keys().await?;
        self.beat().await?;
        let file = folder::file_name(id);
        let next = format!(
            "put {file} into the keys folder of every node, unless they share this one; once `onceseal keys status` shows it loaded everywhere, run `onceseal keys activate`"
        );
        Ok(json!({ "announced": id.to_string(), "file": file, "next": next }))
    }

    /// Hands over to the announced key.
    ///
    /// # Errors
    /// [`Error::NotLoaded`] while a node that is alive could not sign with it; [`Error::NotAnnounced`].
    pub async fn activate_key(&self, operator: &str) -> Result<Json, Refused> {
        self.look_at_keys().await?;
        let (ring, old) = (self.keys(), self.active_id()?);
        let id = ring.announced().ok_or(Error::NotAnnounced)?;
        if !ring.has_loaded(id) {
            let nodes = "the node that was asked".to_owned();
            return Err(Error::NotLoaded { key: id, nodes }.into());
        }
        let audit = self.key_audit("certify.key.activate", id, operator, Stage::Active);
        let me = self.node.clone();
        let switched = self.door.maintain("keys.activate", vec![nodes::query()], move |rows, now| {
            let mut others = nodes::alive(first(&rows), now, me.as_deref())?;
            others.retain(|node| !node.has_loaded(id));
            if !others.is_empty() {
                return Ok((Vec::new(), Err(Error::NotLoaded { key: id, nodes: nodes::names(&others) })));
            }
            let writes = vec![
                Write::one("keys.close", CLOSE, values![old.to_string()]),
                Write::one("keys.open", OPEN, values![now, id.to_string()]),
                audit(now),
            ];
            Ok((writes, Ok(())))
        });
        switched.await.map_err(changed)?.0?;
        self.switched().await?;
        let stage = self.stage_of(old).map(Stage::as_str);
        Ok(json!({ "active": id.to_string(), "before": old.to_string(), "before_is": stage }))
    }

    /// Takes the announcement back: its file was lost, or the key must not be used.
    ///
    /// # Errors
    /// [`Error::NotAnnounced`], or [`Error::Changed`] when it was activated meanwhile.
    pub async fn withdraw_key(&self, operator: &str) -> Result<Json, Refused> {
        self.look_at_keys().await?;
        let id = self.keys().announced().ok_or(Error::NotAnnounced)?;
        let audit = self.key_audit("certify.key.withdraw", id, operator, Stage::Retired);
        let withdrawn = self.door.maintain("keys.withdraw", Vec::new(), move |_, now| {
            Ok((vec![Write::one("keys.withdraw", WITHDRAW, values![id.to_string()]), audit(now)], ()))
        });
        withdrawn.await.map_err(changed)?;
        self.look_at_keys().await?;
        self.beat().await?;
        Ok(json!({ "withdrawn": id.to_string(), "file": folder::file_name(id) }))
    }

    /// A key that closes is retired once nothing that saw it active can commit any more. The ring must have
    /// been looked at: what it calls closing was committed then.
    pub(super) async fn retire_closed(&self) -> Result<(), Error> {
        let ring = self.keys();
        let closing = ring.anchors.iter().filter(|anchor| anchor.stage == Stage::Closing);
        let closing: Vec<String> = closing.map(|anchor| anchor.key.id().to_string()).collect();
        if closing.is_empty() {
            return Ok(());
        }
        // A transaction has a number before it asks for the active key. One that is begun after the switch
        // has a higher one, and the next look counts from behind that.
        let touch = closing.iter().map(|id| Write::any("keys.touch", TOUCH, values![id])).collect::<Vec<_>>();
        self.door.maintain("keys.touch", Vec::new(), move |_, _| Ok((touch.clone(), ()))).await?;
        let end = self.transaction("select {next_transaction}").await?;
        for _ in 0..LOOKS_MAX {
            let oldest = self.transaction("select {oldest_transaction}").await?;
            if oldest >= end || door::planted::is("key-retired-at-once") {
                return self.retire(closing).await;
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        tracing::info!(?closing, "key_still_closing");
        Ok(())
    }

    async fn retire(&self, closing: Vec<String>) -> Result<(), Error> {
        let told = closing.clone();
        let retired = self.door.maintain("keys.retire", Vec::new(), move |_, now| {
            let retire = |id: &String| Write::any("keys.retire", RETIRE, values![now, id]);
            Ok((closing.iter().map(retire).collect(), ()))
        });
        retired.await?;
        tracing::info!(keys = ?told, "keys_retired");
        self.look_at_keys().await
    }

    async fn transaction(&self, sql: &'static str) -> Result<i64, Error> {
        let rows = self.door.store().query(Query::new("keys.transaction", sql, vec![])).await?;
        let row = rows.first().ok_or_else(|| Error::Recorded("no transaction".into()))?;
        Ok(row.int(0)?)
    }

    /// After the switch: this node signs with the new key, and the old one comes to its end.
    async fn switched(&self) -> Result<(), Error> {
        self.look_at_keys().await?;
        self.retire_closed().await?;
        self.beat().await
    }

    /// The active key, where nobody has announced another one.
    fn sole(&self) -> Result<KeyId, Error> {
        match self.keys().announced() {
            Some(id) => Err(Error::Announced(id)),
            None => self.active_id(),
        }
    }

    fn active_id(&self) -> Result<KeyId, Error> {
        let ring = self.keys();
        let active = ring.anchors.iter().find(|anchor| anchor.stage == Stage::Active);
        Ok(active.ok_or_else(|| Error::Recorded("none is active".into()))?.key.id())
    }

    fn stage_of(&self, id: KeyId) -> Option<Stage> {
        self.keys().anchors.iter().find(|anchor| anchor.key.id() == id).map(|anchor| anchor.stage)
    }

    /// A key whose row was surely not kept leaves no file behind.
    fn made_or_removed(&self, id: KeyId, ended: Result<Result<(), Error>, Failure>) -> Result<(), Error> {
        let cause = match ended {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(refused)) => refused,
            Err(failure @ Failure::Store(store::Error::Indeterminate { .. })) => return Err(failure.into()),
            Err(failure) => changed(failure),
        };
        self.folder.remove(id);
        Err(cause)
    }

    /// The audit row of an act on a key, at its time.
    fn key_audit(
        &self,
        name: &'static str,
        id: KeyId,
        operator: &str,
        after: Stage,
    ) -> impl Fn(Time) -> Write + Send + 'static {
        let random = self.door.random();
        let mut audit = AuditRow::system(name, "anchor_key", id.to_string(), format!("key:{id}"));
        audit.metadata = json!({ "by": operator });
        audit.after_state = json!({ "status": after.as_str() });
        move |now| audit.clone().write(now, &*random)
    }
}

fn first(rows: &[Vec<Row>]) -> &[Row] {
    rows.first().map_or(&[], Vec::as_slice)
}

/// A check that raised means that somebody else was at the keys.
fn changed(failure: Failure) -> Error {
    match failure {
        Failure::Store(store::Error::Raised(_)) => Error::Changed,
        other => other.into(),
    }
}
