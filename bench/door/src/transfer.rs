//! The command: debits an account, if its balance allows it, and tells one channel of it.

use std::sync::LazyLock;
use std::time::Duration;

use door::{AuditRow, Command, Decision, Failure, Key, OutboxRow, RecordTable, Repeat, Ruling, Steps};
use kernel::{Digest, Outcome, Time};
use serde_json::json;
use store::migration::{CORE, Chain, File};
use store::{Query, Raise, Row, Value, Write, values};

/// The schema: the ground that the product stands on, and the tables of this command.
pub(crate) const CHAINS: [Chain; 2] =
    [CORE, Chain { name: "bench", files: &[File::new("bench_schema_v1", include_str!("schema.sql"))] }];

/// Whose keys they are.
const TENANT: i64 = 1;

/// How long a key lives.
const KEPT: Duration = Duration::from_secs(24 * 3600);

static RECORDS: LazyLock<RecordTable> = LazyLock::new(|| {
    RecordTable::new("bench_records", &["tenant_id", "key"], &["account_id", "amount"], "bench_steps")
});

const ACCOUNT: &str = "select balance, version from bench_accounts where id = $1";

/// $1 amount, $2 now, $3 account. The balance may be lower by now than it was when it was loaded.
const DEBIT: &str = "update bench_accounts set balance = balance - $1, version = version + 1, updated_at = $2
where id = $3 and balance >= $1";

/// One transfer.
#[derive(Debug)]
pub(crate) struct Transfer {
    pub(crate) key: String,
    pub(crate) account: i64,
    pub(crate) amount: i64,
    /// Id of the request that brought it.
    pub(crate) request_id: String,
}

impl Transfer {
    /// The key it goes under.
    pub(crate) fn under(&self) -> Key {
        let fields = [self.account.to_be_bytes(), self.amount.to_be_bytes()];
        let fingerprint = Digest::of_fields(&fields.each_ref().map(<[u8; 8]>::as_slice));
        Key { life: Some(KEPT), ..Key::lasting(&RECORDS, values![TENANT, &self.key], fingerprint) }
    }

    fn audit(&self, name: &'static str, code: &str) -> AuditRow {
        let mut row = AuditRow::system(name, "bench_transfer", self.key.clone(), self.request_id.clone());
        row.idempotency_key = Some(self.key.clone());
        row.result_code = code.into();
        row
    }

    fn succeeded(&self, balance: i64, version: i64, at: Time) -> Decision {
        let outcome = json!({ "status": "succeeded", "transfer": self.key, "account": self.account, "amount": self.amount });
        let mut audit = self.audit("bench.transfer.succeeded", "OK");
        audit.before_state = json!({ "balance": balance, "version": version });
        audit.after_state = json!({ "balance": balance - self.amount, "version": version + 1 });
        let told = OutboxRow {
            event_name: "bench.account.transfer.succeeded",
            object_type: "bench_account",
            object_id: self.account.to_string(),
            aggregate_version: version + 1,
            tenant_id: 1,
            operator_id: 1,
            request_id: self.request_id.clone(),
            payload: json!({ "kind": "transfer", "key": self.key, "account": self.account, "amount": self.amount,
                "before_state": audit.before_state, "after_state": audit.after_state }),
            occurred_at: at,
            destinations: vec!["log".into()],
        };
        Decision {
            status: "succeeded",
            facts: self.facts(),
            ruling: Ruling::Formal(Outcome { code: 200, body: outcome.to_string() }),
            writes: vec![Write::one("accounts.debit", DEBIT, values![self.amount, at, self.account])],
            audit: vec![audit],
            outbox: vec![told],
        }
    }

    fn refused(&self) -> Decision {
        let outcome = json!({ "status": "refused", "account": self.account, "amount": self.amount });
        let mut audit = self.audit("bench.transfer.refused", "BALANCE_TOO_LOW");
        audit.rule_code = Some("BALANCE_NOT_NEGATIVE");
        Decision {
            status: "failed",
            facts: self.facts(),
            ruling: Ruling::Formal(Outcome { code: 402, body: outcome.to_string() }),
            writes: Vec::new(),
            audit: vec![audit],
            outbox: Vec::new(),
        }
    }
}

impl Command for Transfer {
    type Prepared = ();

    fn prepares(&self) -> bool {
        false
    }

    async fn prepare(&self, _steps: &Steps) -> Result<(), Failure> {
        Ok(())
    }

    fn facts(&self) -> Vec<Value> {
        values![self.account, self.amount]
    }

    fn load(&self, (): &()) -> Vec<Query> {
        vec![Query::new("accounts.by_id", ACCOUNT, values![self.account])]
    }

    fn decide(&self, (): &(), loaded: &[Vec<Row>], at: Time) -> Result<Decision, store::Error> {
        let Some(row) = loaded.first().and_then(|rows| rows.first()) else { return Ok(self.refused()) };
        let (balance, version) = (row.int(0)?, row.int(1)?);
        Ok(if balance < self.amount { self.refused() } else { self.succeeded(balance, version, at) })
    }

    /// The only check that stands for a rule is the debit's.
    fn raised(
        &self,
        (): &(),
        raise: &Raise,
        _loaded: &[Vec<Row>],
        _at: Time,
    ) -> Result<Decision, store::Error> {
        if raise.write == "accounts.debit" {
            return Ok(self.refused());
        }
        Err(store::Error::Raised(raise.clone()))
    }

    fn repeat_audit(&self, repeat: &Repeat, _at: Time) -> Vec<AuditRow> {
        let code = if repeat.same { "REPLAYED" } else { "PAYLOAD_DIFFERS" };
        vec![self.audit("bench.transfer.repeated", code)]
    }
}
