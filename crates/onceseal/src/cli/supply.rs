//! `onceseal supply`: the platform's first administrator (everybody else is made over the supply API), and the key
//! that wraps the keys of secrets.

use clap::{Args, Subcommand};
use serde_json::{Value as Json, json};

use super::Globals;
use super::api::{Api, Folder, Order};
use super::out::{Ended, Exit, Out, Stop, text};
use super::token::seconds;
use crate::config::supply::KmsKind;
use crate::random::OsRandom;
use crate::wiring::{market, secrets};

/// Arguments.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onceseal supply admin ann                 prints a token, once; it is good for 3 days
  onceseal supply admin ann --for 8h        another token for the same person
  onceseal supply keys list                 versions of the key that wraps others, and which rows need each
  onceseal supply keys rotate               then copy the file to the other servers, and restart one after the other
  onceseal supply keys rewrap               move all rows to the new version now instead of by and by

The token opens everything of /api/v1/platform, /api/v1/supply and /api/v1/audit: suppliers, buyers, tokens of
their users. Where an issuer outside makes the tokens (supply.issuer.jwks_url), what its token is to say of the
person is printed instead")]
pub struct Supply {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Add an administrator of the platform and print a token; one who is there gets another token
    Admin {
        /// Who it is; stands in the audit
        name: String,
        /// How long the token is good, 1m to 3d
        #[arg(long = "for", value_name = "DURATION", default_value = "3d")]
        lasts: String,
    },
    /// The key that wraps the keys of credentials, payout accounts and phones: list, rotate, rewrap
    Keys {
        #[command(subcommand)]
        what: Keys,
    },
}

#[derive(Debug, Subcommand)]
enum Keys {
    /// All versions, how many rows need each, and which may be removed
    List,
    /// Make the next version's file; a server wraps under it from its next start on
    Rotate,
    /// Wrap under the current version what earlier ones wrapped; no secret is seen by it
    Rewrap,
}

impl Supply {
    /// Runs it.
    ///
    /// # Errors
    /// The supply side is off, the name can't be used, or the store can't be written.
    pub async fn run(self, globals: &Globals, out: Out) -> Ended {
        let (name, lasts) = match self.what {
            What::Admin { name, lasts } => (name, lasts),
            What::Keys { what: Keys::List } => return list(globals, out).await,
            What::Keys { what: Keys::Rotate } => return rotate(globals, out),
            What::Keys { what: Keys::Rewrap } => return rewrap(globals, out).await,
        };
        let ttl = seconds(&lasts)?;
        let order = Order::post("/platform-admins").json(&json!({ "name": name, "ttl_s": ttl }));
        let answer = Api::open(globals, Folder::Made).await?.call(order).await?;
        match answer.get("access_token") {
            // Alone on its line, so that it can be piped into a file.
            Some(_) if !out.json => out.line(text(&answer, "access_token")),
            Some(_) => out.value(&answer),
            // An issuer outside makes the token: this is what it is to say.
            None => out.answer(&answer),
        }
        Ok(Exit::Fine)
    }
}

async fn list(globals: &Globals, out: Out) -> Ended {
    let found = Api::open(globals, Folder::Expected).await?.call(Order::get("/wrapping-keys")).await?;
    if out.json {
        out.value(&found);
        return Ok(Exit::Fine);
    }
    let versions = found.get("versions").and_then(Json::as_array).map(Vec::as_slice).unwrap_or_default();
    let row = |one: &Json| {
        ["version", "status", "rotated_at", "rows", "removable"].map(|name| text(one, name)).to_vec()
    };
    let rows: Vec<Vec<String>> = versions.iter().map(row).collect();
    out.table(&["version", "status", "since", "rows", "removable"], &rows);
    Ok(Exit::Fine)
}

/// A file beside the others. No server need run, and one that does goes on with the version before.
fn rotate(globals: &Globals, out: Out) -> Ended {
    let config = globals.load()?.config;
    let set = &config.supply;
    let elsewhere = |text: &str| Err(Stop::new(Exit::Usage, text.to_owned()));
    if set.kms.kind == KmsKind::Vault {
        return elsewhere(
            "Vault makes the versions: `vault write -f MOUNT/keys/KEY/rotate`; servers notice within a minute",
        );
    }
    if !set.keys.are_local() {
        return elsewhere(
            "the keys are named in [supply.keys]; add the next version to [supply.keys.kek] and restart",
        );
    }
    let folder = market::folder(&config);
    let made = secrets::make_kek(&folder, &OsRandom).map_err(Stop::failed)?;
    out.answer(&json!({ "made": format!("keys/{}/{made}", secrets::FOLDER), "next": "back it up (onceseal keys backup), copy it to the other servers, then restart them" }));
    Ok(Exit::Fine)
}

async fn rewrap(globals: &Globals, out: Out) -> Ended {
    let api = Api::open(globals, Folder::Expected).await?;
    let number = |round: &Json, name: &str| round.get(name).and_then(Json::as_u64).unwrap_or(0);
    let (mut rewrapped, mut left) = (0, 0);
    let mut order = Order::post("/wrapping-keys/rewrap");
    loop {
        let round = api.call(order).await?;
        rewrapped += number(&round, "rewrapped");
        left += number(&round, "left");
        let Some(next) = round.get("next").and_then(Json::as_str) else {
            out.answer(&json!({ "rewrapped": rewrapped, "left": left }));
            return Ok(if left == 0 { Exit::Fine } else { Exit::Problems });
        };
        order = Order::post(format!("/wrapping-keys/rewrap?after={next}"));
    }
}
