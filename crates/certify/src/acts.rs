//! What only a person may do to an event: look closely, try again, reconcile, erase. Each act leaves an
//! audit row with the operator's name.

use std::path::{Path, PathBuf};

use door::{Answer, AuditRow, Failure};
use kernel::Digest;
use seal::verify::{Trust, verify};
use serde_json::{Value as Json, json};
use store::{Query, Row, Write, values};

use crate::answer;
use crate::command::{Arrival, Arrives, CertifyEvent};
use crate::delivery::{hash_of, recorded};
use crate::identity::Identity;
use crate::intake::{AuditVisa, Endpoint, fingerprint};
use crate::policy::CertifiedMode;
use crate::shelf::Form;
use crate::sql;

/// Why an act was not done.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Refused {
    /// No event has this reference or id.
    #[error("event {0:?} is not known")]
    Unknown(String),
    /// Several have it.
    #[error("event {id:?} is known to several sources: {references}; give one of these references")]
    Ambiguous {
        /// As asked.
        id: String,
        /// What to give instead.
        references: String,
    },
    /// It stands in a state that the act is not for.
    #[error("event {reference:?} is {status}; {advice}")]
    State {
        /// Which event.
        reference: String,
        /// Its state.
        status: String,
        /// What to do instead.
        advice: &'static str,
    },
    /// Input that can't be used.
    #[error("{0}")]
    Input(String),
    /// The store, or a failure of the work itself.
    #[error(transparent)]
    Failure(#[from] Failure),
    /// Keys.
    #[error(transparent)]
    Keys(#[from] crate::keyring::Error),
}

impl From<store::Error> for Refused {
    fn from(error: store::Error) -> Self {
        Self::Failure(Failure::Store(error))
    }
}

impl Refused {
    /// Stable name.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Unknown(_) => "EVENT_UNKNOWN",
            Self::Ambiguous { .. } => "EVENT_AMBIGUOUS",
            Self::State { .. } => "EVENT_STATE",
            Self::Input(_) => "INPUT_INVALID",
            Self::Failure(Failure::Store(store::Error::Fenced)) => "STORE_FENCED",
            Self::Failure(_) => "STORE_UNAVAILABLE",
            Self::Keys(cause) => cause.code(),
        }
    }

    /// HTTP status.
    #[must_use]
    pub const fn status(&self) -> u16 {
        match self {
            Self::Unknown(_) => 404,
            Self::Ambiguous { .. } | Self::State { .. } => 409,
            Self::Keys(cause) if cause.is_refusal() => 409,
            Self::Input(_) => 400,
            Self::Failure(_) | Self::Keys(_) => 503,
        }
    }

    /// The reason in Chinese.
    #[must_use]
    pub const fn message_zh(&self) -> &'static str {
        match self {
            Self::Unknown(_) => "没有这个事件",
            Self::Ambiguous { .. } => "多个来源有这个事件编号，请给出完整引用",
            Self::State { .. } => "事件的当前状态不允许该操作",
            Self::Input(_) => "输入无法使用",
            Self::Failure(_) => "暂时无法完成，请稍后重试",
            Self::Keys(cause) if cause.is_refusal() => "密钥的当前状态不允许该操作",
            Self::Keys(_) => "签名密钥不可用",
        }
    }
}

impl AuditVisa {
    /// The one event with this reference or id.
    pub(crate) async fn only(&self, event: &str) -> Result<Row, Refused> {
        let mut found = self.find(event).await?;
        match (found.pop(), found.is_empty()) {
            (None, _) => Err(Refused::Unknown(event.into())),
            (Some(row), true) => Ok(row),
            (Some(row), false) => {
                found.push(row);
                let references =
                    found.iter().filter_map(|row| row.text(1).ok()).collect::<Vec<_>>().join(", ");
                Err(Refused::Ambiguous { id: event.into(), references })
            }
        }
    }

    /// Tries a failed or merely recorded event again, under the policy of today.
    ///
    /// # Errors
    /// [`Refused::State`] for an event that has its formal result.
    pub async fn retry(&self, reference: &str, operator: &str) -> Result<Json, Refused> {
        let row = self.only(reference).await?;
        let (reference, status) = (row.text(1)?.to_owned(), row.text(13)?.to_owned());
        if !matches!(status.as_str(), "failed" | "received") {
            let advice = "only failed and recorded events can be tried again; see `onceseal inspect`";
            return Err(Refused::State { reference, status, advice });
        }
        let command = self.command_again(&row, operator).await?;
        let mut audit = AuditRow::system(
            "certify.event.retry",
            "certify_event",
            reference.clone(),
            format!("retry:{operator}"),
        );
        audit.metadata = json!({ "by": operator });
        let random = self.door.random();
        let open = "update certify_events set status = 'failed', response_code = null, response_body = null, reason = null, updated_at = $1 where ref = $2 and status in ('failed', 'received')";
        self.door
            .maintain("retry", Vec::new(), move |_, now| {
                let opened = Write::one("events.open", open, values![now, &reference]);
                let passed = values!["failed", now, "opened for another try", &reference];
                let passed = Write::one("transitions.insert", sql::PASS, passed).numbered();
                Ok((vec![opened, passed, audit.clone().write(now, &*random)], ()))
            })
            .await?;
        self.run_again(command).await
    }

    pub(crate) async fn run_again(&self, command: CertifyEvent) -> Result<Json, Refused> {
        let counted = "select count(*) from certify_arrivals a join certify_events e on e.id = a.event where e.ref = $1";
        let counted = Query::new("arrivals.count", counted, values![&command.identity.reference]);
        let arrivals = self.door.store().query(counted).await?.first().map_or(Ok(0), |row| row.int(0))?;
        let wait = std::time::Duration::from_secs(2);
        match self.submit(command, wait).await? {
            Answer::Done(done) => {
                let reply = answer::reply(&done.outcome, done.replayed, arrivals, !done.same);
                Ok(serde_json::from_str(&reply.body).unwrap_or(Json::Null))
            }
            _ => Ok(json!({ "status": "processing" })),
        }
    }

    /// The command for an event that is on record, from its kept projection.
    pub(crate) async fn command_again(&self, row: &Row, by: &str) -> Result<CertifyEvent, Refused> {
        // In one look: another payload's failed attempt may take the row over at any time.
        let kept = Query::new(
            "events.input",
            "select source, payload_hash, input from certify_events where id = $1",
            values![row.int(0)?],
        );
        let kept = self.door.store().query(kept).await?;
        let kept = kept.first().ok_or_else(|| Refused::Input("the event is no longer kept".into()))?;
        let name = kept.text(0)?;
        let endpoint: std::sync::Arc<Endpoint> = self.endpoint(name).ok_or_else(|| {
            Refused::Input(format!("source {name:?} is no longer configured; add it to try again"))
        })?;
        let event = kept.text_or_null(2)?.and_then(|text| serde_json::from_str::<source::Event>(text).ok());
        let event = event.ok_or_else(|| Refused::Input("the event's content is no longer kept".into()))?;
        let mode = CertifiedMode::of(event.mode, endpoint.unstated);
        let source = &endpoint.source;
        let payload_hash = Digest::from_slice(kept.bytes(1)?).unwrap_or(Digest::UNKNOWN);
        Ok(CertifyEvent {
            shared: std::sync::Arc::clone(&self.shared),
            keys: self.keys(),
            identity: Identity::new(source.account(), &event.id, endpoint.plain),
            kind: source.kind(),
            mode,
            fingerprint: fingerprint(&event),
            verdict: self.shared.policy.judge(name, source.kind(), &event, mode),
            event: event.into(),
            arrival: Arrival {
                received_at: row.time(16)?,
                source: name.to_owned(),
                request_id: format!("retry:{by}"),
                trace_id: format!("retry:{by}"),
                client_ip: None,
                payload_hash,
            },
            payload: None,
            arrives: Arrives::No,
            built: std::sync::Arc::default(),
        })
    }

    /// Looks at an event's record and files closely and says what to do.
    ///
    /// # Errors
    /// [`Refused::Unknown`], [`Refused::Ambiguous`], or the store's.
    pub async fn inspect(&self, event: &str) -> Result<Json, Refused> {
        let row = self.only(event).await?;
        let shown = self.show(row.text(1)?, None).await?.pop().unwrap_or_default();
        let certificate = match row.int_or_null(21)? {
            Some(id) => self.certificate_of(id).await?,
            None => None,
        };
        let Some(row) = certificate else {
            return Ok(json!({ "event": shown, "files": [], "advice": advice_without_files(row.text(13)?) }));
        };
        let Some(recorded) = recorded(&row)?.1 else {
            return Ok(json!({ "event": shown, "files": [], "advice": "erased on request; nothing to do" }));
        };
        let rebuilt = self.rebuild(&recorded).await;
        let trust = self.keys().jwks().map_or_else(|_| Trust::none(), |set| Trust::from(&set));
        let mut files = Vec::new();
        let mut whole = true;
        for form in Form::ALL {
            let stands = self.shared.shelf.get(&recorded.slug, form).await.ok().flatten();
            let equal = stands.as_ref().is_some_and(|bytes| Digest::of(bytes) == hash_of(&recorded, form));
            whole &= equal;
            files.push(json!({
                "form": form.extension(),
                "path": self.shared.shelf.path(&recorded.slug, form).display().to_string(),
                "present": stands.is_some(),
                "bytes": stands.as_ref().map(bytes::Bytes::len),
                "hash_recorded": hash_of(&recorded, form).to_hex(),
                "hash_equal": equal,
                "verdict": stands.as_ref().map(|bytes| verify(bytes, &trust).verdict.to_string()),
            }));
        }
        let advice = match (&rebuilt, whole) {
            (Ok(_), true) => "record and files agree; nothing to do",
            (Ok(_), false) => {
                "the record gives the files again: run `onceseal reconcile`, or just fetch a link"
            }
            (Err(_), _) => {
                "the record can't give the files again: restore the database or the keys from a backup"
            }
        };
        Ok(json!({
            "event": shown,
            "files": files,
            "rebuild": rebuilt.as_ref().map_or_else(ToString::to_string, |_| "gives the recorded hashes".into()),
            "advice": advice,
        }))
    }

    pub(crate) async fn certificate_of(&self, event: i64) -> Result<Option<Row>, store::Error> {
        let query = Query::new("certificates.by_event", sql::BY_EVENT, values![event]);
        Ok(self.door.store().query(query).await?.into_iter().next())
    }

    /// Copies the committed state into a new file while the server goes on. Files are not needed: they
    /// are rebuilt from it. Keys are apart (`onceseal keys backup`).
    ///
    /// # Errors
    /// [`Refused`] when the target exists or can't be written.
    pub async fn backup(&self, target: PathBuf) -> Result<Json, Refused> {
        if self.door.store().is_shared() {
            return Err(Refused::Input(
                "the store is no file; take its backup with the engine's own tools (docs/operations.md)"
                    .into(),
            ));
        }
        let shown = target.display().to_string();
        self.door.store().copy_to(target.clone()).await?;
        let hashed = tokio::task::spawn_blocking(move || hashed(&target)).await;
        let hashed = hashed.map_err(std::io::Error::other).and_then(|done| done);
        let (bytes, hash) = hashed.map_err(|cause| Refused::Input(format!("{shown}: {cause}")))?;
        Ok(json!({ "to": shown, "bytes": bytes, "sha256": hash }))
    }
}

const fn advice_without_files(status: &str) -> &'static str {
    match status.as_bytes() {
        b"received" => "not certified, see its reason; `onceseal retry` judges it again under today's policy",
        b"failed" => "failed, see reason and cause; mend the cause, then `onceseal retry`",
        b"processing" => "being worked on; recovery takes over when the lease ends",
        b"orphaned" => "record and files disagree; run `onceseal reconcile`",
        _ => "nothing to do",
    }
}

/// Size and SHA-256 of a file, read piece by piece.
fn hashed(file: &Path) -> std::io::Result<(u64, String)> {
    use sha2::Digest as _;
    use std::io::Read as _;

    let mut hasher = sha2::Sha256::new();
    let mut file = std::fs::File::open(file)?;
    let (mut bytes, mut piece) = (0, vec![0; 1 << 16]);
    loop {
        let read = file.read(&mut piece)?;
        if read == 0 {
            return Ok((bytes, hex::encode(hasher.finalize())));
        }
        bytes += read as u64;
        hasher.update(piece.get(..read).unwrap_or_default());
    }
}
