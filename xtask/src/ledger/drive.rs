//! Commands as the product's actions.

use anyhow::{Context as _, Result};
use kernel::Time;
use kernel::money::{Currency, Money, Tokens};
use ledger::ids;
use ledger::posting::Beneficiary;
use secrecy::{ExposeSecret as _, SecretString};
use store::values;
use supply::earnings::{Bonus, Compensate, Release};
use supply::orders::{Call, Cancel as CancelOrder, Cause, Close, Create, Ending, Pay, RecordUsage, Refund};
use supply::packages::{
    BatchPrice, Expire, Fields, Item, Pause, Publish, Restock, SaveDraft, SellOut, Texts, Unlist,
};
use supply::platform::TopUp;
use supply::settlements::{Cancel, Complete, Fail, Reject, Return, SendCode, Start, Withdraw};

use super::command::{Command, Repriced, Sent, Told, What};
use super::model::minor;
use super::stage::Market;

fn cny(count: i64) -> Money {
    Money::from_count(count, Currency::CNY)
}

/// A count of 10^-6 as a number.
fn decimal(count: i64) -> String {
    minor(i128::from(count))
}

impl Market {
    /// Sends a command and waits for its answer.
    pub(super) async fn send(&self, command: Command) -> Result<Sent> {
        let (request, began) = (self.request(), self.step());
        let told = self.told(&command, &request).await?;
        let span = (began, self.step());
        let code_ref = match (&command.what, told.code) {
            (What::SendCode, 200) if !told.replayed => Some(self.code_of(&request).await?),
            _ => None,
        };
        Ok(Sent { command, request, span, told, code_ref })
    }

    async fn code_of(&self, request: &str) -> Result<(String, i64)> {
        let sql = "select code_ref, id from supply_sms_codes where request_id = $1";
        let rows = self.rows(sql, values![request]).await?;
        let row = rows.first().context("no code of a request that made one")?;
        Ok((row.text(0)?.to_owned(), row.int(1)?))
    }

    async fn told(&self, command: &Command, request: &str) -> Result<Told> {
        let (c, r) = (command, request);
        let description = || "for the run".to_owned();
        match command.what.clone() {
            What::TopUp { buyer, amount } => {
                self.act(c, r, TopUp { buyer_id: buyer, amount: cny(amount) }).await
            }
            What::Create { buyer, package, quota } => {
                self.act(c, r, Create { buyer_id: buyer, package_id: package, quota_count: quota }).await
            }
            What::Pay { order } => self.act(c, r, Pay { order_id: order }).await,
            What::CancelOrder { order } => {
                self.act(c, r, CancelOrder { order_id: order, cause: Cause::Buyer }).await
            }
            What::TimeOut { order } => {
                self.act(c, r, CancelOrder { order_id: order, cause: Cause::Timeout }).await
            }
            What::Close { order } => self.act(c, r, Close { order_id: order }).await,
            What::Refund { order, charge } => {
                self.act(c, r, Refund { order_id: order, charge: charge.map(cny) }).await
            }
            What::Use { order, key, call, tokens, success, started } => {
                let ending = if success { Ending::Success } else { Ending::Failure };
                self.act(c, r, usage((order, key, call), tokens, ending, started)).await
            }
            What::Bonus { amount } => {
                self.act(c, r, Bonus { amount: cny(amount), description: description() }).await
            }
            What::CompensateSupplier { supplier, amount } => {
                let (to, amount) = (Beneficiary::Supplier(ids::Supplier(supplier)), cny(amount));
                self.act(c, r, Compensate { to, amount, description: description() }).await
            }
            What::CompensateBuyer { buyer, amount } => {
                let (to, amount) = (Beneficiary::Buyer(ids::Buyer(buyer)), cny(amount));
                self.act(c, r, Compensate { to, amount, description: description() }).await
            }
            What::Release { earning } => self.act(c, r, Release { earning_id: earning }).await,
            What::SendCode => self.act(c, r, SendCode).await,
            What::Withdraw { amount, code, payee } => {
                let (code, account) = (self.digits(&code)?, SecretString::from(payee));
                self.act(c, r, Withdraw { amount, method: "alipay".into(), account, code }).await
            }
            _ => self.moved(command, request).await,
        }
    }

    /// What moves a settlement or a package.
    async fn moved(&self, command: &Command, request: &str) -> Result<Told> {
        let (c, r) = (command, request);
        match command.what.clone() {
            What::Cancel { settlement } => self.act(c, r, Cancel { settlement_id: settlement }).await,
            What::Reject { settlement } => {
                self.act(c, r, Reject { settlement_id: settlement, reason: "at random".into() }).await
            }
            What::Start { settlement } => self.act(c, r, Start { settlement_id: settlement }).await,
            What::Complete { settlement } => {
                let payment_transaction_id = format!("payment of {settlement}");
                self.act(c, r, Complete { settlement_id: settlement, payment_transaction_id }).await
            }
            What::Fail { settlement } => {
                self.act(c, r, Fail { settlement_id: settlement, failure_code: "CLOSED".into() }).await
            }
            What::Return { settlement } => self.act(c, r, Return { settlement_id: settlement }).await,
            What::Draft { .. } => self.act(c, r, draft(&command.what)?).await,
            What::Publish { package } => self.act(c, r, Publish { package_id: package }).await,
            What::Pause { package } => self.act(c, r, Pause { package_id: package }).await,
            What::Unlist { package } => self.act(c, r, Unlist { package_id: package }).await,
            What::Reprice { items } => self.act(c, r, self.batch(&items)?).await,
            What::Expire { package } => self.act(c, r, Expire { package_id: package }).await,
            What::SellOut { package } => self.act(c, r, SellOut { package_id: package }).await,
            What::Restock { package } => self.act(c, r, Restock { package_id: package }).await,
            what => anyhow::bail!("{what:?} moves nothing"),
        }
    }

    fn batch(&self, items: &[Repriced]) -> Result<BatchPrice> {
        let items = items
            .iter()
            .map(|(package, input, output)| Item::parse(*package, &decimal(*input), &decimal(*output)));
        let batch = BatchPrice::of(&self.house.policy, items.collect());
        batch.map_err(|refusal| anyhow::anyhow!("a batch is refused: {refusal:?}"))
    }

    /// The six digits of a code; what is no reference is typed as it is.
    fn digits(&self, code_ref: &str) -> Result<SecretString> {
        if code_ref.len() < 16 {
            return Ok(SecretString::from(code_ref.to_owned()));
        }
        let codes = self.house.keys.sms.as_ref().context("no SMS keys")?;
        let code = codes.code(codes.current(), code_ref)?;
        Ok(SecretString::from(code.expose_secret().to_owned()))
    }
}

fn usage(
    (order_id, api_key_id, request_id): (i64, i64, String),
    (input, output): (u64, u64),
    ending: Ending,
    started: i64,
) -> RecordUsage {
    let at = Time::from_micros(started);
    let call = Call {
        ending,
        endpoint: "/v1/chat/completions".into(),
        upstream_request_id: None,
        response_status: 200,
        latency_ms: 250,
        error_message: None,
        started_at: at,
        completed_at: at,
    };
    RecordUsage { order_id, api_key_id, request_id, tokens: Tokens { input, output }, call }
}

fn draft(what: &What) -> Result<SaveDraft> {
    let What::Draft { account, model, total, least, prices, days } = what else {
        anyhow::bail!("{what:?} is no draft")
    };
    let (account, total, least, days) =
        (account.to_string(), decimal(*total), decimal(*least), days.to_string());
    let (input, output) = (decimal(prices.0), decimal(prices.1));
    let texts = Texts {
        supply_account_id: Some(&account),
        model: Some(model),
        total_quota: Some(&total),
        min_purchase: Some(&least),
        price_per_1m_input: Some(&input),
        price_per_1m_output: Some(&output),
        valid_days: Some(&days),
        ..Texts::default()
    };
    let fields = Fields::parse(&texts);
    let fields = fields.map_err(|refusal| anyhow::anyhow!("a draft is refused: {refusal:?}"))?;
    Ok(SaveDraft { fields })
}
