//! `onceseal token`: who may use the operator API from elsewhere; and tokens of the supply API for users who are
//! there already (the first one is made by `onceseal supply admin`).

use clap::{Args, Subcommand};
use serde_json::{Value as Json, json};

use super::Globals;
use super::api::{Api, Folder, Order, path};
use super::out::{Ended, Exit, Out, Stop, text};
use crate::config::unit::Span;

/// Arguments.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onceseal token issue ann --for 90d        prints the token, once
  onceseal token list
  onceseal token revoke ann                 takes effect within 5 seconds
  onceseal token issue --platform --tenant 2 --user 4 --role owner --user-type supply \\
    --scope supply:account:read,supply:account:write --for 8h

On the server's own machine no token is needed")]
pub struct Token {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Make a token and print it; only its hash is kept
    Issue {
        /// Whose it is; stands in the audit of everything done with it
        #[arg(required_unless_present = "platform")]
        name: Option<String>,
        /// How long it is good, such as 90d [default: until it is revoked]
        #[arg(long = "for", value_name = "DURATION")]
        lasts: Option<String>,
        /// A token of the supply API, for a user of a tenant
        #[command(flatten)]
        platform: Platform,
    },
    /// All tokens that ever were, without the tokens themselves
    List,
    /// End a token
    Revoke {
        /// Whose
        name: String,
    },
}

/// What a token of the supply API says.
#[derive(Args, Debug)]
struct Platform {
    /// A token of the supply API instead, for a user who is there [at most 3d, which is the default]
    #[arg(long, conflicts_with = "name", requires_all = ["tenant", "user", "role", "user_type", "scope"])]
    platform: bool,
    /// Id of the user's tenant
    #[arg(long, value_name = "N", requires = "platform")]
    tenant: Option<i64>,
    /// Id of the user
    #[arg(long, value_name = "N", requires = "platform")]
    user: Option<i64>,
    /// owner, viewer or admin
    #[arg(long, value_name = "ROLE", requires = "platform")]
    role: Option<String>,
    /// supply, consumer or platform
    #[arg(long, value_name = "TYPE", requires = "platform")]
    user_type: Option<String>,
    /// What it opens, such as supply:account:read; several with commas, or given several times
    #[arg(long, value_name = "SCOPE", value_delimiter = ',', requires = "platform")]
    scope: Vec<String>,
}

impl Platform {
    fn order(&self, ttl: Option<u64>) -> Order {
        let Self { tenant, user, role, user_type, scope, .. } = self;
        Order::post("/platform-tokens").json(&json!({ "tenant_id": tenant, "user_id": user, "role": role,
            "user_type": user_type, "scope": scope, "ttl_s": ttl }))
    }
}

impl Token {
    /// Runs it.
    ///
    /// # Errors
    /// The name is taken or unknown, or the store can't be written.
    pub async fn run(self, globals: &Globals, out: Out) -> Ended {
        let order = match &self.what {
            What::Issue { lasts, platform, .. } if platform.platform => {
                platform.order(lasts.as_deref().map(seconds).transpose()?)
            }
            What::Issue { name, lasts, .. } => {
                let ttl = lasts.as_deref().map(seconds).transpose()?;
                Order::post("/tokens").json(&json!({ "name": name, "ttl_s": ttl }))
            }
            What::List => Order::get("/tokens"),
            What::Revoke { name } => Order::post(path(&["tokens", name, "revoke"], &[])),
        };
        let answer = Api::open(globals, Folder::Made).await?.call(order).await?;
        match (&self.what, answer.get("tokens").and_then(Json::as_array)) {
            (What::List, Some(tokens)) if !out.json => {
                let columns = ["name", "state", "created_at", "expires_at"];
                let row = |one: &Json| columns.iter().map(|column| text(one, column)).collect();
                out.table(&columns, &tokens.iter().map(row).collect::<Vec<_>>());
            }
            // Alone on its line, so that it can be piped into a file.
            (What::Issue { platform, .. }, _) if !out.json => {
                out.line(text(&answer, if platform.platform { "access_token" } else { "token" }));
            }
            _ => out.answer(&answer),
        }
        Ok(Exit::Fine)
    }
}

/// Whole seconds of a duration with its unit.
///
/// # Errors
/// It is none, or nothing.
pub(super) fn seconds(duration: &str) -> Result<u64, Stop> {
    let span: Span = serde_json::from_value(json!(duration))
        .map_err(|cause| Stop::new(Exit::Usage, format!("--for: {cause}")))?;
    match span.0.as_secs() {
        0 => Err(Stop::new(Exit::Usage, format!("--for is {span}; use 1s or more"))),
        seconds => Ok(seconds),
    }
}
