//! The story of the supply side: a market on the demo's server, with a provider and an SMS service on loopback, in
//! which everything happens that clients and networks do to money. Not here: printing (`cli::demo_market`).

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use futures::future::join_all;
use kernel::Clock as _;
use play::{Answer, Call, Client, Market, Phone, Provider, Supplier};
use serde_json::{Value as Json, json};

use crate::cli::api::Running;
use crate::random::SystemClock;

/// File in the demo's folder with the SMS that were sent: a line each, phone and code.
pub const SMS: &str = "sms.txt";
const WITHDRAW: &str = "/api/v1/supply/settlements/withdraw";
/// Before a payout begins: time enough to change one's mind.
const REVIEW_SECONDS: u32 = 2;
/// Before the scheduler must have done what is due.
const SCHEDULED_WITHIN: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// One part of the story and what came of it.
#[derive(Clone, Debug)]
pub struct Told {
    /// What happened, for people.
    pub title: &'static str,
    /// Answers by HTTP status and code (empty for a success), with their number.
    pub answers: BTreeMap<(u16, String), usize>,
    /// What the books say afterwards.
    pub effect: String,
}

/// The outside world of the demo's market.
pub struct Outside {
    provider: Provider,
    phone: Phone,
}

impl Outside {
    /// Starts it.
    ///
    /// # Errors
    /// No port is free.
    pub async fn start() -> Result<Self, String> {
        let fail = |cause: std::io::Error| format!("the demo's provider can't be started: {cause}");
        Ok(Self {
            provider: Provider::start().await.map_err(fail)?,
            phone: Phone::start().await.map_err(fail)?,
        })
    }

    /// The configuration's section; the SMS service's token is made in `folder`.
    ///
    /// # Errors
    /// The folder can't be written.
    pub fn configuration(&self, folder: &Path) -> Result<String, String> {
        let fail = |cause: std::io::Error| format!("the demo's folder can't be written: {cause}");
        std::fs::create_dir_all(folder).map_err(fail)?;
        let token = folder.join("sms.token");
        std::fs::write(&token, super::random_secret()).map_err(fail)?;
        std::fs::write(folder.join(SMS), "").map_err(fail)?;
        let token = token.display().to_string();
        Ok(play::setting::reviewed(self.provider.address(), self.phone.address(), &token, REVIEW_SECONDS))
    }
}

impl Outside {
    /// Writes the codes that come into [`SMS`], for as long as it is polled.
    ///
    /// # Errors
    /// The file can't be written.
    pub async fn note(&self, folder: &Path) -> std::io::Result<()> {
        let mut file = std::fs::OpenOptions::new().append(true).open(folder.join(SMS))?;
        for number in 0.. {
            let message = self.phone.message(number).await;
            writeln!(file, "{} {}", message.to, message.code)?;
        }
        Ok(())
    }
}

/// Whoever tells it.
pub struct Teller<'a> {
    market: Market,
    outside: &'a Outside,
    /// The token of the server's operator.
    operator: String,
    told: Vec<Told>,
}

fn text(data: &Json, at: &str) -> String {
    match data.pointer(at) {
        Some(Json::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    }
}

/// A path of one of the demo's objects.
fn of(kind: &str, id: &Json, verb: &str) -> String {
    format!("/api/v1/supply/{kind}/{id}/{verb}")
}

/// A withdrawal of so many CNY.
fn asks(amount: u64, code: &str) -> Json {
    json!({ "withdraw_amount": amount, "payment_method": "alipay", "payment_account": "13800000000", "sms_code": code })
}

impl<'a> Teller<'a> {
    /// On the server at `base` that runs in `folder`.
    ///
    /// # Errors
    /// The server can't be reached, or made no administrator.
    pub async fn new((base, folder): (&str, &Path), outside: &'a Outside) -> Result<Self, String> {
        let running = Running::read(&folder.join("data")).ok_or("the demo's server can't be found")?;
        let market = Market::opened(Client::new(base)?, &running.token, "ann").await?;
        Ok(Self { market, outside, operator: running.token, told: Vec::new() })
    }

    /// Tells all of it; what happened, and the ledger at its end.
    ///
    /// # Errors
    /// The server can't be reached, or refuses what must go well.
    pub async fn tell(mut self) -> Result<(Vec<Told>, Json), String> {
        self.market.floors().await?;
        let acme = self.market.supplier(&self.name("acme")).await?;
        let account = self.mounts(&acme).await?;
        let packages = self.publishes(&acme, account).await?;
        self.prices(&acme, &packages).await?;
        self.sells(&acme, &packages).await?;
        let settlement = self.withdraws(&acme).await?;
        self.changes_mind(&acme, &settlement).await?;
        let settlement = self.races(&acme).await?;
        self.pays(&acme, &settlement).await?;
        let call = Call::get("/api/v1/certify/ledger", &self.operator);
        let ledger = self.market.client.send(&call).await?.done()?.json();
        Ok((self.told, ledger))
    }

    fn happened(&mut self, title: &'static str, answers: &[Answer], effect: impl Into<String>) {
        let mut counted = BTreeMap::new();
        for answer in answers {
            let word = if answer.is_replay() { "the same result".to_owned() } else { answer.error() };
            *counted.entry((answer.code(), word)).or_insert(0) += 1;
        }
        self.told.push(Told { title, answers: counted, effect: effect.into() });
    }

    /// A name that an earlier demo in the same folder did not use.
    fn name(&self, of: &str) -> String {
        let key = self.market.client.key();
        format!("{of}-{}", key.rsplit('-').next().unwrap_or_default())
    }

    /// All of them at once.
    async fn all(&self, calls: &[Call]) -> Result<Vec<Answer>, String> {
        join_all(calls.iter().map(|call| self.market.client.send(call))).await.into_iter().collect()
    }

    /// Under a key of its own.
    fn call(&self, path: &str, token: &str, body: Json) -> Call {
        Call::post(path, token, &self.market.client.key(), body)
    }

    /// Under a key of its own; the answer may be any.
    async fn send(&self, path: &str, token: &str, body: Json) -> Result<Answer, String> {
        self.market.client.send(&self.call(path, token, body)).await
    }

    async fn mounts(&mut self, acme: &Supplier) -> Result<Json, String> {
        let credential = format!("sk-{}", self.name("demo-credential"));
        let mount = json!({ "provider": "openai", "account_type": "api_key", "credential_input": credential,
            "account_alias": "spare-1", "risk_ack": true });
        let call = self.call("/api/v1/supply/accounts", &acme.token, mount.clone());
        let first = self.market.client.send(&call).await?.done()?;
        let account = first.member("account_id");
        let again = self.market.client.send(&call).await?;
        let effect = "one account; its credential is never shown again";
        self.happened("a credential is mounted; no answer, asked again", &[first, again], effect);
        let other = self.market.supplier(&self.name("other")).await?;
        let stolen = self.send("/api/v1/supply/accounts", &other.token, mount).await?;
        self.happened("another supplier mounts the same credential", &[stolen], "nothing");
        self.send(&of("accounts", &account, "activate"), &acme.token, Json::Null).await?.done()?;
        Ok(account)
    }

    async fn publishes(&mut self, acme: &Supplier, account: Json) -> Result<[i64; 2], String> {
        let account = account.as_i64().ok_or("no account_id in the answer")?;
        let [first, second] = [5_000_000, 1_000_000].map(|quota| self.market.draft(acme, account, quota));
        let (first, second) = (first.await?, second.await?);
        let path = of("packages", &first.into(), "publish");
        let calls = [(); 2].map(|()| self.call(&path, &acme.token, Json::Null));
        let both = self.all(&calls).await?;
        self.happened("two people publish the same draft at once", &both, "one package, active, version 1");
        Ok([first, second])
    }

    async fn prices(&mut self, acme: &Supplier, packages: &[i64; 2]) -> Result<(), String> {
        let [first, second] = packages;
        let items = json!({ "items": [
            { "package_id": first, "price_per_1m_input": 8, "price_per_1m_output": 32 },
            { "package_id": second, "price_per_1m_input": 0.01, "price_per_1m_output": 32 },
            { "package_id": 999_999, "price_per_1m_input": 9, "price_per_1m_output": 33 }] });
        let answer = self.send("/api/v1/supply/packages/batch-price", &acme.token, items).await?;
        let data = answer.data();
        let failures = data.get("failures").and_then(Json::as_array).into_iter().flatten();
        let codes: Vec<String> = failures.map(|one| text(one, "/error_code")).collect();
        let effect =
            format!("{} changed, the others told: {}", text(&data, "/success_count"), codes.join(", "));
        self.happened("three prices: one too low, one of a stranger's package", &[answer], effect);
        Ok(())
    }

    async fn sells(&mut self, acme: &Supplier, packages: &[i64; 2]) -> Result<(), String> {
        let [package, _] = packages;
        let buyer = self.market.buyer(200).await?;
        let order = self.market.order(&buyer, *package, 5_000_000).await?;
        let now = SystemClock.now().to_rfc3339_millis();
        let ids = [self.name("call"), self.name("call")];
        let usage = |id: &str, tokens: (u64, u64)| {
            json!({ "order_id": order, "api_key_id": buyer.api_key_id, "request_id": id,
                "request_tokens": tokens.0, "response_tokens": tokens.1, "success": true,
                "endpoint": "/v1/chat/completions", "response_status": 200, "latency_ms": 900,
                "started_at": now, "completed_at": now })
        };
        let [first, second] = &ids;
        let mut answers = Vec::new();
        for (id, tokens) in [(first, (2_000_000, 1_500_000)), (second, (1_234, 567)), (second, (1_234, 567))]
        {
            let body = usage(id, tokens);
            answers
                .push(self.send("/api/v1/platform/usage-records", &self.market.admin, body).await?.done()?);
        }
        let earned = self.released(acme).await?;
        let effect = format!("two calls charged; {earned} CNY to withdraw");
        self.happened("a buyer calls twice, the second call is reported twice", &answers, effect);
        Ok(())
    }

    /// What can be withdrawn, once the scheduler has released the earnings.
    async fn released(&self, acme: &Supplier) -> Result<String, String> {
        let bill = self.until(acme, "/api/v1/supply/billing", |bill| {
            let minor = |name: &str| text(bill, &format!("/balance/{name}_amount_minor"));
            minor("pending") == "0" && minor("available") != "0"
        });
        Ok(text(&bill.await?, "/balance/available_amount"))
    }

    /// Waits until the review is over and the scheduler has asked the bank.
    async fn started(&self, acme: &Supplier, settlement: &Json) -> Result<(), String> {
        let path = format!("/api/v1/supply/settlements/{settlement}");
        self.until(acme, &path, |seen| text(seen, "/status") == "processing").await.map(drop)
    }

    /// Reads until it is so.
    async fn until(&self, acme: &Supplier, path: &str, is: impl Fn(&Json) -> bool) -> Result<Json, String> {
        let so = async {
            loop {
                let seen = self.market.client.read(path, &acme.token).await?;
                if is(&seen) {
                    return Ok(seen);
                }
                tokio::time::sleep(LOOK_EVERY).await;
            }
        };
        let late = |_| format!("the scheduler did nothing about {path} for {} s", SCHEDULED_WITHIN.as_secs());
        tokio::time::timeout(SCHEDULED_WITHIN, so).await.map_err(late)?
    }

    /// A code that was just sent.
    async fn code(&self, acme: &Supplier) -> Result<String, String> {
        let before = self.outside.phone.count(&acme.phone);
        self.send(&format!("{WITHDRAW}/sms-code"), &acme.token, Json::Null).await?.done()?;
        self.outside.phone.code(&acme.phone, before).await
    }

    async fn withdraws(&mut self, acme: &Supplier) -> Result<Json, String> {
        let code = self.code(acme).await?;
        let mut call = self.call(WITHDRAW, &acme.token, asks(50, &code));
        let mut answers = self.all(&vec![call.clone(); 5]).await?;
        answers.push(self.market.client.send(&call).await?.done()?);
        let settlement = answers.last().map(|answer| answer.member("settlement_id")).unwrap_or_default();
        let effect = format!("settlement {settlement}, 50 CNY frozen");
        self.happened("50 CNY withdrawn, five times at once and once more", &answers, effect);
        call.body = Some(asks(40, &code));
        let other = self.market.client.send(&call).await?;
        self.happened("the same key with another amount", &[other], "nothing");
        let open = self.send(WITHDRAW, &acme.token, asks(40, &code)).await?;
        self.happened("another withdrawal while one is open", &[open], "nothing");
        Ok(settlement)
    }

    async fn changes_mind(&mut self, acme: &Supplier, settlement: &Json) -> Result<(), String> {
        let call = self.call(&of("settlements", settlement, "cancel"), &acme.token, Json::Null);
        let answers = [self.market.client.send(&call).await?, self.market.client.send(&call).await?];
        self.happened("cancelled, and the cancellation sent again", &answers, "50 CNY available again, once");
        Ok(())
    }

    async fn races(&mut self, acme: &Supplier) -> Result<Json, String> {
        let body = asks(50, &self.code(acme).await?);
        let calls: Vec<Call> = (0..10).map(|_| self.call(WITHDRAW, &acme.token, body.clone())).collect();
        let answers = self.all(&calls).await?;
        let won = answers.iter().find(|answer| answer.code() == 201);
        let settlement = won.ok_or("none of ten withdrawals went through")?.member("settlement_id");
        let effect = format!("settlement {settlement}, 50 CNY frozen");
        self.happened("ten withdrawals at once, each with a key of its own", &answers, effect);
        Ok(settlement)
    }

    async fn pays(&mut self, acme: &Supplier, settlement: &Json) -> Result<(), String> {
        let platform = |verb: &str| format!("/api/v1/platform/settlements/{settlement}/{verb}");
        self.started(acme, settlement).await?;
        let late = self.send(&of("settlements", settlement, "cancel"), &acme.token, Json::Null).await?;
        self.happened("after the review: cancelled while the bank is paying", &[late], "nothing");
        let body = json!({ "payment_transaction_id": "bank-1" });
        let call = self.call(&platform("complete"), &self.market.admin, body);
        let answers = self.all(&vec![call; 3]).await?;
        self.happened(
            "the bank says three times that it paid",
            &answers,
            "49.50 CNY paid out, 0.50 CNY fee, once",
        );
        let body = asks(50, &self.code(acme).await?);
        let much = self.send(WITHDRAW, &acme.token, body).await?;
        self.happened("more is asked for than is left", &[much], "nothing");
        Ok(())
    }
}
