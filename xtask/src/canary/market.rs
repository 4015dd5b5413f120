//! A life of the supply side that leaves everything behind, logged at the highest level: credentials mounted,
//! refused and quoted by the provider, rotated, sent in wrong places; money earned, withdrawn and paid out; every
//! answer with its headers, the export, a backup.

use anyhow::{Context as _, Result, anyhow, ensure};
use play::provider::REFUSED;
use play::{Answer, Call, Client, Market, Phone, Supplier};
use reqwest::Method;
use serde_json::{Value as Json, json};

use super::{Observed, proven_then_clean};
use crate::lab::market::{Outside, admin, keys, now};
use crate::lab::{self, Build, House};

const ACCOUNTS: &str = "/api/v1/supply/accounts";
const WITHDRAW: &str = "/api/v1/supply/settlements/withdraw";
/// Shaped like keys of a provider, and unlike anything else in the run.
const MOUNTED: &str = "sk-CaNaRy7xQ2mV9sK4tH8wB3nL6pR1";
const ROTATED: &str = "sk-RoTaTe3kW8bN5yD1fJ7zC4gT9qM2";
const WRONG: &str = "sk-ReFuSeD6vX1hL8cP4rZ9jB2wS5n";
const ASTRAY: &str = "sk-AsTrAy9mD4tG7pK2xV6bQ1zH8fL3";
/// Where suppliers look.
const READ: [&str; 12] = [
    "/api/v1/supply/accounts",
    "/api/v1/supply/accounts/{account}",
    "/api/v1/supply/accounts/{account}/audit-logs",
    "/api/v1/supply/packages",
    "/api/v1/supply/billing",
    "/api/v1/supplier/billing",
    "/api/v1/supply/earnings/records",
    "/api/v1/supply/settlements",
    "/api/v1/supply/settlements/1",
    "/api/v1/supply/settlements/1/statement",
    "/api/v1/audit/metrics/m013",
    "/api/v1/openapi.json",
];

/// Lives it and scans what is left.
///
/// # Errors
/// A step fails, or a secret was found.
pub(super) fn scanned() -> Result<()> {
    let program = Build::Release.program()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let outside = runtime.block_on(Outside::open())?;
    let house = House::make(lab::scratch("market")?, &outside.setup(""))?;
    keys(&house, &program)?;
    let mut command = house.command(&program, &["serve"]);
    command.env("RUST_LOG", "trace");
    let server = house.start_with(command)?;
    let token = admin(&house, &program)?;
    let client = Client::new(format!("http://{}", server.address)).map_err(|cause| anyhow!(cause))?;
    let mut life = Life { market: Market::new(client, &token), seen: Observed::default() };
    life.seen.credentials = [MOUNTED, ROTATED, WRONG, ASTRAY].map(str::to_owned).to_vec();
    runtime.block_on(life.lived(&outside.phone)).map_err(|cause| anyhow!(cause))?;
    let mut seen = life.seen;
    seen.secrets.push(("the administrator's token".into(), token));
    seen.metrics.push(server.get("/metrics")?.body);
    for path in ["ledger", "status", "announcements"] {
        seen.pages.push(server.order_raw("GET", path)?.body);
    }
    seen.exports.push(server.order_raw("GET", "export")?.body);
    std::fs::create_dir(house.folder().join("backup"))?;
    let ran = house.command(&program, &["backup", "backup/state.db"]).output().context("onceseal backup")?;
    ensure!(ran.status.success(), "onceseal backup: {}", String::from_utf8_lossy(&ran.stderr));
    server.stop()?;
    proven_then_clean(&house, &seen)
}

struct Life {
    market: Market,
    seen: Observed,
}

impl Life {
    /// Keeps an answer whole.
    fn saw(&mut self, answer: &Answer) {
        let mut text = format!("{} {:?}\n", answer.code(), answer.headers).into_bytes();
        text.extend(&answer.body);
        if answer.status.is_success() { self.seen.pages.push(text) } else { self.seen.errors.push(text) }
    }

    async fn send(&mut self, call: &Call) -> Result<Answer, String> {
        let answer = self.market.client.send(call).await?;
        self.saw(&answer);
        Ok(answer)
    }

    async fn post(&mut self, path: &str, token: &str, body: Json) -> Result<Answer, String> {
        let call = Call::post(path, token, &self.market.client.key(), body);
        self.send(&call).await
    }

    async fn lived(&mut self, phone: &Phone) -> Result<(), String> {
        self.market.floors().await?;
        let owner = self.market.supplier("canary").await?;
        self.seen.secrets.push(("the supplier's token".into(), owner.token.clone()));
        self.seen.secrets.push(("the supplier's phone".into(), owner.phone.clone()));
        let account = self.credentials(&owner).await?;
        self.astray(&owner, account).await?;
        self.market.earn(&owner, MOUNTED.replace("sk-", "sk-2").as_str(), 200, &now()).await?;
        self.money(&owner, phone).await?;
        for path in READ {
            let path = path.replace("{account}", &account.to_string());
            self.send(&Call::get(path, &owner.token)).await?;
        }
        Ok(())
    }

    /// Mounted, mounted twice, refused and quoted by the provider, rotated.
    async fn credentials(&mut self, owner: &Supplier) -> Result<i64, String> {
        let body = |credential: &str| json!({ "provider": "openai", "account_type": "api_key", "credential_input": credential, "risk_ack": true });
        let mounted = self.post(ACCOUNTS, &owner.token, body(MOUNTED)).await?.done()?;
        let account = mounted.member("account_id").as_i64().ok_or("no account_id")?;
        self.post(&format!("{ACCOUNTS}/{account}/activate"), &owner.token, Json::Null).await?.done()?;
        let twice = self.post(ACCOUNTS, &owner.token, body(MOUNTED)).await?;
        let (refused, verify) = (body(WRONG), format!("{ACCOUNTS}/verify"));
        if !WRONG.contains(REFUSED) || twice.code() != 409 {
            return Err(format!("a second mount was answered {}", twice.code()));
        }
        self.post(ACCOUNTS, &owner.token, refused.clone()).await?;
        let checked = json!({ "provider": "openai", "account_type": "api_key", "credential_input": WRONG });
        self.post(&verify, &owner.token, checked).await?;
        let rotated = json!({ "credential_input": ROTATED });
        let path = format!("{ACCOUNTS}/{account}/rotate-credential");
        self.post(&path, &owner.token, rotated).await?.done()?;
        Ok(account)
    }

    /// A credential in places where none belongs.
    async fn astray(&mut self, owner: &Supplier, account: i64) -> Result<(), String> {
        let calls = [
            Call::get(format!("{ACCOUNTS}?api_key={ASTRAY}"), &owner.token),
            Call::get(format!("{ACCOUNTS}/{account}?note={ASTRAY}"), ""),
            Call::get(format!("/v1/models?key={ASTRAY}"), ""),
            Call::get(format!("/nowhere/{ASTRAY}"), &owner.token),
            Call::get(ACCOUNTS, ASTRAY),
            Call::post(ACCOUNTS, &owner.token, ASTRAY, json!({})),
            Call::post(
                ACCOUNTS,
                &owner.token,
                &self.market.client.key(),
                json!({ "credential_inputt": ASTRAY }),
            ),
            Call::post(ACCOUNTS, &owner.token, &self.market.client.key(), json!({ "provider": ASTRAY })),
            Call::post(
                ACCOUNTS,
                &owner.token,
                &self.market.client.key(),
                json!({ "provider": "openai",
                "account_type": "api_key", "credential_input": format!("{MOUNTED}y"), "account_alias": ASTRAY, "risk_ack": true }),
            ),
            Call::write(
                (Method::POST, format!("/api/v1/platform/supply/accounts/{account}/disable")),
                &self.market.admin,
                &self.market.client.key(),
                json!({ "reason": format!("found {ASTRAY} on a page") }),
            ),
        ];
        for call in &calls {
            self.send(call).await?;
        }
        Ok(())
    }

    /// Withdrawn, cancelled, withdrawn again and paid out.
    async fn money(&mut self, owner: &Supplier, phone: &Phone) -> Result<(), String> {
        self.seen.secrets.push(("the payout account".into(), "6222021234567890128".into()));
        let mut asked = 0;
        while asked < 2 {
            let bill = self.market.client.read("/api/v1/supply/billing", &owner.token).await?;
            if bill.pointer("/balance/pending_amount_minor") != Some(&json!("0")) {
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                continue;
            }
            let before = phone.count(&owner.phone);
            self.post(&format!("{WITHDRAW}/sms-code"), &owner.token, Json::Null).await?.done()?;
            let code = phone.code(&owner.phone, before).await?;
            let body = json!({ "withdraw_amount": 50, "payment_method": "bank", "payment_account": "6222021234567890128", "sms_code": code });
            let made = self.post(WITHDRAW, &owner.token, body).await?.done()?;
            let id = made.member("settlement_id");
            self.post(&format!("/api/v1/supply/settlements/{id}/cancel"), &owner.token, Json::Null).await?;
            let admin = self.market.admin.clone();
            for (verb, body) in
                [("start", Json::Null), ("complete", json!({ "payment_transaction_id": "bank-1" }))]
            {
                self.post(&format!("/api/v1/platform/settlements/{id}/{verb}"), &admin, body).await?;
            }
            asked += 1;
        }
        Ok(())
    }
}
