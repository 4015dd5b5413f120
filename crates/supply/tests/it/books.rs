//! Postings as rows.

use crate::market::market;

#[tokio::test]
async fn what_is_posted_is_in_the_cached_balance_and_in_balanced_entries() {
    let market = market().await;
    market.fund(1, 50).await;
    market.fund(2, 8).await;
    assert_eq!(
        (market.balance("supplier_available").await, market.balance("supplier_pending").await),
        ("5800".into(), "0".into())
    );
    let unbalanced = "select count(*) from (select journal_id from billing_ledger_entries group by journal_id
        having sum(case direction when 'dr' then amount else -amount end) <> 0) x";
    assert_eq!(market.count(unbalanced, vec![]).await, 0);
    assert_eq!(market.count("select count(*) from billing_ledger_entries", vec![]).await, 8);
}
