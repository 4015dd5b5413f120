//! Drafts through the door: saved, edited, cloned, read back.

use serde_json::json;
use store::values;
use supply::packages::{CloneDraft, EditDraft, Fields, List, Pause, Publish, SaveDraft, Texts, view};
use supply::rows::PackageStatus;

use crate::market::{Market, OTHER_SUPPLIER, OTHER_TENANT, SUPPLIER, SUPPLIER_TENANT, told};
use crate::packages::{package, with_draft};

const SAVE: &str = "supply.package.draft.save";

fn texts() -> Texts<'static> {
    Texts {
        supply_account_id: Some("5"),
        model: Some("gpt-x"),
        total_quota: Some("1000000"),
        price_per_1m_input: Some("8.000001"),
        price_per_1m_output: Some("33.25"),
        valid_days: Some("30"),
        min_purchase: Some("1000"),
        ..Texts::default()
    }
}

fn save(texts: &Texts<'_>) -> SaveDraft {
    SaveDraft { fields: Fields::parse(texts).unwrap() }
}

fn edit(package_id: i64, version: Option<i64>, texts: &Texts<'_>) -> EditDraft {
    EditDraft { package_id, version, fields: Fields::parse(texts).unwrap() }
}

async fn text_of(market: &Market, id: i64) -> String {
    let view = view::get(market.door.store(), SUPPLIER_TENANT, id).await.unwrap().unwrap();
    serde_json::to_string(&view).unwrap()
}

#[tokio::test]
async fn what_was_answered_is_what_is_read_back() {
    let market = with_draft().await;
    let saved = market.run("key-0000000000001", save(&texts())).await;
    assert_eq!((saved.code, saved.replayed), (201, false), "{saved:?}");
    let data = &saved.body["data"];
    assert_eq!((&data["user_id"], &data["supply_account_id"]), (&json!(SUPPLIER), &json!(5)));
    let id = data["package_id"].as_i64().unwrap();
    let read = text_of(&market, id).await;
    assert_eq!(&serde_json::from_str::<serde_json::Value>(&read).unwrap(), data);
    assert!(read.contains(r#""price_per_1m_input":8.000001,"price_per_1m_output":33.25"#), "{read}");
    let repeat = market.run("key-0000000000001", save(&texts())).await;
    assert_eq!((repeat.replayed, &repeat.body), (true, &saved.body));
    let made =
        "select count(*) from supply_packages where id <> 17 and request_id = $1 and idempotency_key = $2";
    let by = values!["request of key-0000000000001", "key-0000000000001"];
    assert_eq!(market.count(made, by).await, 1);
    assert_eq!(market.audited(SAVE, "OK").await, 1);
    assert_eq!(market.announced("supply.package.draft_save.succeeded").await, 1);
}

#[tokio::test]
async fn an_edited_draft_has_all_fields_anew_and_can_be_published() {
    let market = with_draft().await;
    let texts = Texts { total_quota: Some("7"), min_purchase: None, valid_days: Some("365"), ..texts() };
    let edited = market.run("key-0000000000001", edit(17, Some(0), &texts)).await;
    assert_eq!((edited.code, &edited.body["data"]["version"]), (200, &json!(1)), "{edited:?}");
    let read = text_of(&market, 17).await;
    assert_eq!(&serde_json::from_str::<serde_json::Value>(&read).unwrap(), &edited.body["data"]);
    let stale = market.run("key-0000000000002", edit(17, Some(0), &texts)).await;
    assert_eq!((stale.code, stale.error()), (409, "SUP_PKG_4091"));
    assert_eq!(market.run("key-0000000000003", Publish { package_id: 17 }).await.code, 200);
    let late = market.run("key-0000000000004", edit(17, None, &texts)).await;
    assert_eq!((late.code, late.error()), (409, "SUP_PKG_4091"));
    assert_eq!((market.audited(SAVE, "OK").await, market.audited(SAVE, "SUP_PKG_4091").await), (1, 2));
    let committed = "select count(*) from supply_accounts where id = 5 and frozen_quota = $1";
    assert_eq!(market.count(committed, vec![store::Value::Money(7_000_000)]).await, 1);
}

#[tokio::test]
async fn of_many_edits_of_one_version_one_is_kept() {
    let market = with_draft().await;
    let wait = std::time::Duration::from_secs(20);
    let mut running = tokio::task::JoinSet::new();
    for n in 0..12 {
        let price = format!("9.{n:02}");
        let edit = edit(17, Some(0), &Texts { price_per_1m_input: Some(&price), ..texts() });
        let edit = market.submission(market.operator(&format!("key-edit-{n:010}")), edit, wait);
        let door = if n % 2 == 0 { market.door.clone() } else { market.other.clone() };
        running.spawn(async move { told(door.submit(edit).await) });
    }
    let told = running.join_all().await;
    let (kept, lost): (Vec<_>, Vec<_>) = told.into_iter().partition(|told| told.code == 200);
    assert!(kept.len() == 1 && lost.iter().all(|told| told.error() == "SUP_PKG_4091"), "{kept:?}");
    let read = serde_json::from_str::<serde_json::Value>(&text_of(&market, 17).await).unwrap();
    assert_eq!((&read, &read["version"]), (&kept[0].body["data"], &json!(1)));
    assert_eq!((market.audited(SAVE, "OK").await, market.audited(SAVE, "SUP_PKG_4091").await), (1, 11));
    assert_eq!(market.announced("supply.package.draft_save.succeeded").await, 1);
}

#[tokio::test]
async fn a_clone_is_a_draft_of_its_own() {
    let market = with_draft().await;
    assert_eq!(market.run("key-0000000000001", Publish { package_id: 17 }).await.code, 200);
    let cloned = market.run("key-0000000000002", CloneDraft { package_id: 17 }).await;
    let data = &cloned.body["data"];
    assert_eq!((cloned.code, &data["cloned_from_id"], &data["status"]), (201, &json!(17), &json!("draft")));
    let id = data["package_id"].as_i64().unwrap();
    assert_eq!(
        (package(&market, id).await, package(&market, 17).await.0),
        (("draft".into(), 0), "active".into())
    );
    let again = market.run("key-0000000000003", CloneDraft { package_id: 17 }).await;
    assert_ne!(again.body["data"]["package_id"], data["package_id"]);
    assert_eq!(market.announced("supply.package.clone.succeeded").await, 2);
}

#[tokio::test]
async fn an_account_of_another_tenant_is_missing_as_one_that_never_was() {
    let market = with_draft().await;
    let stranger = |key| market.caller(OTHER_TENANT, OTHER_SUPPLIER, key);
    let theirs = market.run_as(stranger("key-0000000000001"), save(&texts())).await;
    let none = Texts { supply_account_id: Some("999"), ..texts() };
    let nobodys = market.run_as(stranger("key-0000000000002"), save(&none)).await;
    assert_eq!((theirs.code, theirs.error(), &theirs.body), (404, "SUP_ACC_4041", &nobodys.body));
    let object =
        "select count(*) from audit_events where object_id = 'supply_package:new' and tenant_id = $1";
    assert_eq!(market.count(object, values![OTHER_TENANT]).await, 2);
}

#[tokio::test]
async fn each_command_on_a_strangers_package_is_answered_as_on_none() {
    let market = with_draft().await;
    for (n, id) in [(1, 17), (2, 999)] {
        let stranger =
            |key: &str| market.caller(OTHER_TENANT, OTHER_SUPPLIER, &format!("key-000000000-{key}{n}"));
        for told in [
            market.run_as(stranger("e"), edit(id, None, &texts())).await,
            market.run_as(stranger("c"), CloneDraft { package_id: id }).await,
            market.run_as(stranger("p"), Pause { package_id: id }).await,
        ] {
            assert_eq!((told.code, told.error()), (404, "SUP_PKG_4041"));
            assert_eq!(told.body["error"]["details"], json!({}));
        }
        assert!(view::get(market.door.store(), OTHER_TENANT, id).await.unwrap().is_none());
    }
    assert_eq!(package(&market, 17).await, ("draft".into(), 0));
}

#[tokio::test]
async fn a_list_is_filtered_paged_and_of_ones_own() {
    let market = with_draft().await;
    for (id, status) in [(18, "active"), (19, "active"), (20, "expired")] {
        market.package(id, 5, status).await;
    }
    let store = market.door.store();
    let all = List { tenant_id: SUPPLIER_TENANT, status: None, provider: None, page: 1, page_size: 3 };
    let ids =
        |page: view::Page| (page.items.iter().map(|item| item.package_id).collect::<Vec<_>>(), page.total);
    assert_eq!(ids(all.page(store).await.unwrap()), (vec![20, 19, 18], 4));
    assert_eq!(ids(List { page: 2, ..all.clone() }.page(store).await.unwrap()), (vec![17], 4));
    let active = List { status: Some(PackageStatus::Active), provider: Some("openai".into()), ..all.clone() };
    assert_eq!(ids(active.page(store).await.unwrap()), (vec![19, 18], 2));
    let gemini = List { provider: Some("gemini".into()), ..active };
    assert_eq!(ids(gemini.page(store).await.unwrap()), (vec![], 0));
    let stranger = List { tenant_id: OTHER_TENANT, ..all };
    assert_eq!(ids(stranger.page(store).await.unwrap()), (vec![], 0));
}
