//! A settlement's statement (对账单; section 8.4, operation 24): one file of comma-separated values (RFC 4180) for
//! spreadsheets, in UTF-8 with its mark, without which some of them take Chinese for Latin. Its bytes follow from the
//! rows alone, so that the same version of a settlement is the same file whenever and wherever it is made. Not here:
//! when it is made and where it stands ([`crate::consumers::statement`]).

use store::{Error, Query, Row, Store, values};

use super::view::{self, View};
use crate::exact::{Exact, Stamp};
use crate::rows::Reader;

/// What it is served as.
pub const MEDIA_TYPE: &str = "text/csv; charset=utf-8";

const ITEMS: &str =
    "select e.id, e.earnings_type, e.order_id, e.description, e.earned_at, e.currency_code, i.amount
from supply_settlement_items i join supply_earnings e on e.id = i.earning_id
where i.settlement_id = $1 and i.tenant_id = $2 order by e.earned_at, e.id";

/// Marks a text as UTF-8.
const MARK: &str = "\u{feff}";
/// Fields of each line.
const WIDTH: usize = 6;
const HEADINGS: [&str; WIDTH] = [
    "收益编号 Earning",
    "类型 Type",
    "订单 Order",
    "说明 Description",
    "获得时间 Earned at (UTC)",
    "金额 Amount",
];

/// A settlement at one of its versions, and its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// What it is about.
    pub settlement: View,
    /// The file.
    pub text: String,
}

impl Statement {
    /// Of a settlement as it is now; `None` where the tenant has none of this id.
    ///
    /// # Errors
    /// The store's.
    pub async fn read(store: &Store, tenant_id: i64, settlement_id: i64) -> Result<Option<Self>, Error> {
        let Some(settlement) = view::get(store, tenant_id, settlement_id).await? else { return Ok(None) };
        let items = Query::new("statement.items", ITEMS, values![settlement_id, tenant_id]);
        let items = store.query(items).await?;
        let items = items.iter().map(item).collect::<Result<Vec<_>, _>>()?;
        let text = text(&settlement, &items);
        Ok(Some(Self { settlement, text }))
    }

    /// What it is called for people.
    #[must_use]
    pub fn file_name(&self) -> String {
        file_name(&self.settlement.settlement_no)
    }

    /// Under which name it stands: another one for each version.
    #[must_use]
    pub fn kept_as(&self) -> String {
        kept_as(&self.settlement.settlement_no, self.settlement.version)
    }
}

/// `statement_<settlement_no>.csv`
#[must_use]
pub fn file_name(settlement_no: &str) -> String {
    format!("statement_{settlement_no}.csv")
}

/// `statement_<settlement_no>_<version>.csv`
#[must_use]
pub fn kept_as(settlement_no: &str, version: i64) -> String {
    format!("statement_{settlement_no}_{version}.csv")
}

fn item(row: &Row) -> Result<[String; WIDTH], Error> {
    let mut reader = Reader::new(row);
    let (id, kind) = (reader.int()?.to_string(), reader.text()?.to_owned());
    let order = reader.int_or_null()?.map_or_else(String::new, |id| id.to_string());
    let (description, earned_at) = (reader.text()?.to_owned(), reader.time()?.to_rfc3339_millis());
    let currency = reader.currency()?;
    let amount = Exact::from(reader.money(currency)?).text().to_owned();
    Ok([id, kind, order, description, earned_at, amount])
}

fn text(settlement: &View, items: &[[String; WIDTH]]) -> String {
    let mut text = MARK.to_owned();
    for (name, value) in head(settlement) {
        line(&mut text, [name, &value]);
    }
    line(&mut text, []);
    line(&mut text, HEADINGS);
    for item in items {
        line(&mut text, item.iter().map(String::as_str));
    }
    line(&mut text, ["合计 Total", "", "", "", "", settlement.total_amount.text()]);
    text
}

fn head(found: &View) -> [(&'static str, String); 17] {
    let at = |stamp: Option<Stamp>| stamp.map_or_else(String::new, |Stamp(at)| at.to_rfc3339_millis());
    [
        ("结算单号 Settlement", found.settlement_no.clone()),
        ("状态 Status", found.status.to_owned()),
        ("失败原因 Reason of failure", found.fail_reason.unwrap_or_default().to_owned()),
        ("收益起始日 First day", found.period_start.clone()),
        ("收益截止日 Last day", found.period_end.clone()),
        ("订单数 Orders", found.total_orders.to_string()),
        ("调用数 Calls", found.total_usage_records.to_string()),
        ("币种 Currency", found.currency_code.to_owned()),
        ("提现金额 Total", found.total_amount.text().to_owned()),
        ("手续费 Fee", found.fee_amount.text().to_owned()),
        ("实付金额 Paid out", found.net_amount.text().to_owned()),
        ("收款方式 Method", found.payment_method.clone()),
        ("收款账户 Account", found.payment_account_masked.clone()),
        ("支付流水号 Payment", found.payment_transaction_id.clone().unwrap_or_default()),
        ("申请时间 Asked for at (UTC)", at(Some(found.created_at))),
        ("到账时间 Paid at (UTC)", at(found.paid_at)),
        ("退回时间 Sent back at (UTC)", at(found.returned_at)),
    ]
}

/// A line of [`WIDTH`] fields; those that are not given are empty.
fn line<'a>(text: &mut String, fields: impl IntoIterator<Item = &'a str>) {
    let fields = fields.into_iter().chain(std::iter::repeat("")).take(WIDTH);
    let fields: Vec<String> = fields.map(field).collect();
    text.push_str(&fields.join(","));
    text.push_str("\r\n");
}

fn field(text: &str) -> String {
    // A spreadsheet takes these for the beginning of a formula, also behind blanks; some take the wide ones as well.
    let begins = |c: char| matches!(c, '=' | '+' | '-' | '@' | '＝' | '＋' | '－' | '＠');
    let is_formula = text.starts_with(['\t', '\r', '\n']) || text.trim_start().starts_with(begins);
    let harmless = if is_formula { format!("'{text}") } else { text.to_owned() };
    if harmless.contains([',', '"', '\r', '\n']) {
        return format!("\"{}\"", harmless.replace('"', "\"\""));
    }
    harmless
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_has_the_same_number_of_fields_and_none_is_a_formula() {
        let mut text = String::new();
        line(&mut text, ["a", "b"]);
        line(&mut text, ["=1+1", "x,y", "say \"no\"", "two\nlines", "@sum", "+1"]);
        assert_eq!(text, "a,b,,,,\r\n'=1+1,\"x,y\",\"say \"\"no\"\"\",\"two\nlines\",'@sum,'+1\r\n");
    }

    #[test]
    fn nothing_that_a_spreadsheet_may_compute_begins_a_field() {
        for begins in ["=", "+", "-", "@", "＝", "＋", "－", "＠", "\t", "\t=", " =", "\u{3000}＝", "\u{a0}+"]
        {
            assert!(field(&format!("{begins}1")).starts_with('\''), "{begins:?}");
        }
        for line in ["\r", "\n", "\r\n="] {
            assert!(field(&format!("{line}1")).starts_with("\"'"), "{line:?}");
        }
        for plain in ["1-1", "a=b", "", " ", "退款 -1"] {
            assert_eq!(field(plain), plain);
        }
    }
}
