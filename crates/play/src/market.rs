//! Suppliers with packages, buyers with money, calls that are used: made from the API alone.

use std::sync::atomic::{AtomicU64, Ordering};

use reqwest::Method;
use serde_json::{Value as Json, json};

use crate::client::{Call, Client};

/// The model that is sold, and its protected prices in CNY per million tokens.
pub const MODEL: &str = "gpt-x";
/// Per million tokens read.
pub const FLOOR_INPUT: u64 = 8;
/// Per million tokens written.
pub const FLOOR_OUTPUT: u64 = 32;
/// Everything that a supplier's owner may be allowed.
pub const SCOPES: [&str; 10] = [
    "supply:account:read",
    "supply:account:write",
    "supply:credential:manage",
    "supply:package:read",
    "supply:package:write",
    "supply:package:publish",
    "supply:package:offline",
    "supply:settlement:withdraw",
    "billing:read",
    "supply:audit:read",
];
/// Tokens of a package that never sells out.
const PLENTY: u64 = 5_000_000_000;

/// A supplier and its owner's token.
#[derive(Clone, Debug)]
pub struct Supplier {
    /// Its tenant.
    pub tenant_id: i64,
    /// The person who acts.
    pub operator_id: i64,
    /// The supplier.
    pub user_id: i64,
    /// Its registered phone.
    pub phone: String,
    /// The owner's token, with all of [`SCOPES`].
    pub token: String,
}

/// A buyer with money.
#[derive(Clone, Debug)]
pub struct Buyer {
    /// Its id.
    pub buyer_id: i64,
    /// The id of its key.
    pub api_key_id: i64,
}

/// The platform's side of a market, and the making of everybody else.
pub struct Market {
    /// Calls the server.
    pub client: Client,
    /// The administrator's token.
    pub admin: String,
    count: AtomicU64,
}

fn id(made: &Json, name: &str) -> Result<i64, String> {
    made.get(name).and_then(Json::as_i64).ok_or_else(|| format!("no {name} in {made}"))
}

impl Market {
    /// As the administrator with this token (`onceseal supply admin NAME` prints one).
    #[must_use]
    pub fn new(client: Client, admin: impl Into<String>) -> Self {
        Self { client, admin: admin.into(), count: AtomicU64::new(1) }
    }

    /// As an administrator of this name, made by the server's operator; `operator` is his token
    /// (`onceseal token issue`, or the one in `run/server.json`).
    ///
    /// # Errors
    /// No answer, or no success.
    pub async fn opened(client: Client, operator: &str, name: &str) -> Result<Self, String> {
        let call =
            Call::post("/api/v1/certify/platform-admins", operator, &client.key(), json!({ "name": name }));
        let made = client.send(&call).await?.done()?.json();
        let token = made.get("access_token").and_then(Json::as_str).ok_or("no access_token in the answer")?;
        Ok(Self::new(client, token))
    }

    fn next(&self) -> u64 {
        self.count.fetch_add(1, Ordering::Relaxed)
    }

    /// A write of the platform.
    ///
    /// # Errors
    /// No answer, or no success.
    pub async fn platform(&self, path: &str, body: Json) -> Result<Json, String> {
        self.client.make(path, &self.admin, body).await
    }

    /// A supplier with this code, its phone, and its owner's token.
    ///
    /// # Errors
    /// As [`Market::platform`].
    pub async fn supplier(&self, code: &str) -> Result<Supplier, String> {
        let phone = format!("+861380{:07}", self.next());
        let body = json!({ "code": code, "name": code, "supplier_type": "company", "operator": "owner", "phone": phone });
        let made = self.platform("/api/v1/platform/suppliers", body).await?;
        let (tenant_id, operator_id) = (id(&made, "tenant_id")?, id(&made, "operator_id")?);
        let token = self.token((tenant_id, operator_id), &SCOPES).await?;
        Ok(Supplier { tenant_id, operator_id, user_id: id(&made, "user_id")?, phone, token })
    }

    /// A token of three days for the owner of a supplier.
    ///
    /// # Errors
    /// As [`Market::platform`].
    pub async fn token(&self, (tenant, user): (i64, i64), scopes: &[&str]) -> Result<String, String> {
        let body = json!({ "tenant_id": tenant, "user_id": user, "role": "owner", "user_type": "supply",
            "scope": scopes, "ttl_seconds": 259_200 });
        let made = self.platform("/api/v1/platform/tokens/issue", body).await?;
        let token = made.get("access_token").and_then(Json::as_str).map(str::to_owned);
        token.ok_or_else(|| "no access_token in the answer".to_owned())
    }

    /// Protects the prices of [`MODEL`], without which nothing of it is published.
    ///
    /// # Errors
    /// As [`Market::platform`].
    pub async fn floors(&self) -> Result<(), String> {
        let body = json!({ "provider": "openai", "model": MODEL, "floor_input": FLOOR_INPUT, "floor_output": FLOOR_OUTPUT });
        let path = (Method::PUT, "/api/v1/platform/price-protection".to_owned());
        let call = Call::write(path, &self.admin, &self.client.key(), body);
        self.client.send(&call).await?.done().map(drop)
    }

    /// An active account under this credential.
    ///
    /// # Errors
    /// No answer, or no success.
    pub async fn account(&self, owner: &Supplier, credential: &str) -> Result<i64, String> {
        let body = json!({ "provider": "openai", "account_type": "api_key", "credential_input": credential,
            "account_alias": "spare", "risk_ack": true });
        let made = self.client.make("/api/v1/supply/accounts", &owner.token, body).await?;
        let account = id(&made, "account_id")?;
        let path = format!("/api/v1/supply/accounts/{account}/activate");
        self.client.make(&path, &owner.token, Json::Null).await?;
        Ok(account)
    }

    /// A draft of so many tokens at the protected prices.
    ///
    /// # Errors
    /// No answer, or no success.
    pub async fn draft(&self, owner: &Supplier, account: i64, quota: u64) -> Result<i64, String> {
        let body = json!({ "supply_account_id": account, "model": MODEL, "total_quota": quota,
            "price_per_1m_input": FLOOR_INPUT, "price_per_1m_output": FLOOR_OUTPUT, "valid_days": 30 });
        id(&self.client.make("/api/v1/supply/packages/draft", &owner.token, body).await?, "package_id")
    }

    /// An active package of so many tokens.
    ///
    /// # Errors
    /// No answer, or no success.
    pub async fn package(&self, owner: &Supplier, account: i64, quota: u64) -> Result<i64, String> {
        let package = self.draft(owner, account, quota).await?;
        let path = format!("/api/v1/supply/packages/{package}/publish");
        self.client.make(&path, &owner.token, Json::Null).await?;
        Ok(package)
    }

    /// A buyer who paid this many CNY in.
    ///
    /// # Errors
    /// As [`Market::platform`].
    pub async fn buyer(&self, amount: u64) -> Result<Buyer, String> {
        let code = self.client.key();
        let made = self.platform("/api/v1/platform/buyers", json!({ "code": code, "name": code })).await?;
        let buyer = Buyer { buyer_id: id(&made, "buyer_id")?, api_key_id: id(&made, "api_key_id")? };
        let path = format!("/api/v1/platform/buyers/{}/topups", buyer.buyer_id);
        self.platform(&path, json!({ "amount": amount })).await?;
        Ok(buyer)
    }

    /// A paid order of so many tokens.
    ///
    /// # Errors
    /// As [`Market::platform`].
    pub async fn order(&self, buyer: &Buyer, package: i64, quota: u64) -> Result<i64, String> {
        let body = json!({ "buyer_id": buyer.buyer_id, "package_id": package, "quota_amount": quota });
        let order = id(&self.platform("/api/v1/platform/orders", body).await?, "order_id")?;
        self.platform(&format!("/api/v1/platform/orders/{order}/pay"), Json::Null).await?;
        Ok(order)
    }

    /// A call that read and wrote so many tokens, a second long and over at `now` (RFC 3339); what is stored of it.
    ///
    /// # Errors
    /// As [`Market::platform`].
    pub async fn usage(
        &self,
        (order, buyer): (i64, &Buyer),
        tokens: (u64, u64),
        now: &str,
    ) -> Result<Json, String> {
        let request = self.client.key();
        let body = json!({ "order_id": order, "api_key_id": buyer.api_key_id, "request_id": request,
            "request_tokens": tokens.0, "response_tokens": tokens.1, "success": true,
            "endpoint": "/v1/chat/completions", "response_status": 200, "latency_ms": 900,
            "started_at": now, "completed_at": now });
        self.platform("/api/v1/platform/usage-records", body).await
    }
}

/// What selling must have brought before a supplier can withdraw.
impl Market {
    /// Sells and uses so much that the supplier earns at least this many CNY (at the usual fee of 15 %), through
    /// an account with this credential, which must be new. The earning is available once the scheduler released it.
    ///
    /// # Errors
    /// No answer, or no success.
    pub async fn earn(
        &self,
        owner: &Supplier,
        credential: &str,
        amount: u64,
        now: &str,
    ) -> Result<i64, String> {
        let account = self.account(owner, credential).await?;
        let package = self.package(owner, account, PLENTY).await?;
        // Written tokens only: a million brings 32 CNY, of which 27.2 are the supplier's.
        let millions = amount.div_ceil(27);
        let buyer = self.buyer(millions.saturating_mul(FLOOR_OUTPUT)).await?;
        let tokens = millions.saturating_mul(1_000_000);
        let order = self.order(&buyer, package, tokens).await?;
        self.usage((order, &buyer), (0, tokens), now).await?;
        Ok(package)
    }
}
