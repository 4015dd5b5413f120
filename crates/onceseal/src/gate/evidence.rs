//! What a check keeps of the audit, without anything that must not leave. Not here: which rows (the checks ask by
//! request).

use guard::{Guard, Scanner};
use kernel::Random as _;
use serde_json::{Map, Value as Json};

use super::database::Database;
use crate::random::OsRandom;

/// The columns of a sample (section 16.1 of the domain's specification).
const COLUMNS: [&str; 12] = [
    "event_name",
    "rule_code",
    "object_type",
    "object_id",
    "action",
    "result_code",
    "operator_id",
    "tenant_id",
    "request_id",
    "before_state",
    "after_state",
    "metadata",
];
/// Rows of one request.
const ROWS: usize = 3;

/// Reads samples.
pub struct Redactor(Guard);

impl Redactor {
    /// With the shapes that the product's own guard knows.
    ///
    /// # Errors
    /// A pattern can't be used.
    pub fn new() -> Result<Self, String> {
        let scanner = Scanner::standard().map_err(|cause| format!("the guard's patterns: {cause}"))?;
        let mut key = [0; 32];
        OsRandom.fill(&mut key);
        Ok(Self(Guard::new(scanner, Vec::new(), &key)))
    }

    /// The guard.
    #[must_use]
    pub const fn guard(&self) -> &Guard {
        &self.0
    }

    /// Rows of the audit of a request.
    ///
    /// # Errors
    /// The audit can't be read.
    pub async fn audit(&self, database: &Database, request_id: &str) -> Result<Vec<Json>, String> {
        let list = COLUMNS.map(|name| format!("cast({name} as text)")).join(", ");
        let sql = format!(
            "select {list} from audit_events where request_id = '{request_id}' order by id limit {ROWS}"
        );
        let rows = database.rows(&sql).await?;
        Ok(rows.into_iter().map(|row| self.sample(row)).collect())
    }

    fn sample(&self, row: Vec<String>) -> Json {
        let named = COLUMNS.iter().zip(row).filter(|(_, text)| !text.is_empty());
        let members: Map<String, Json> = named
            .map(|(name, text)| {
                let text = self.0.redact(&text).into_owned();
                let is_json = matches!(*name, "before_state" | "after_state" | "metadata");
                let parsed = is_json.then(|| serde_json::from_str(&text).ok()).flatten();
                ((*name).to_owned(), parsed.unwrap_or(Json::String(text)))
            })
            .collect();
        Json::Object(members)
    }
}
