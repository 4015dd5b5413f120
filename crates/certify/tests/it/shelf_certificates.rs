//! Whole certificates in every place: issued, served, mended, adopted, erased, and what a bucket that is
//! down costs.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use certify::delivery::Missing;
use certify::keyring::Folder;
use certify::policy::Policy;
use certify::run::Issuer;
use certify::shelf::{Form, Shelf};
use certify::{AuditVisa, Settings};
use serde_json::{Value as Json, json};
use source::samples;

use crate::house::{House, endpoint, json, payment};
use crate::s3_server::Fault;
use crate::shelf_places::{Bucket, all};

const EVENT: &str = "evt_1SkQl3B7WZ01zgkWh3b8kqQe";

/// An installation with the keys of a folder, whose files stand on this shelf.
async fn house(shelf: Shelf, keys: Option<&Path>) -> House {
    let House { visa, clock, folder } = House::new().await;
    let settings = Settings {
        policy: Policy::default(),
        issuer: Issuer { name: "Evan & Co".into(), url: "https://deliver.example.com".into() },
        announce: vec!["log".into()],
        announce_repeats: Vec::new(),
        wait: Duration::from_secs(2),
    };
    let keys = Folder::new(keys.unwrap_or(folder.path()).join("keys"), None);
    let door = visa.door().clone();
    let visa = AuditVisa::open(door, clock.clone(), shelf, keys, settings).await.expect("AuditVisa");
    visa.set_endpoints(vec![endpoint("stripe")]);
    House { visa: Arc::new(visa), clock, folder }
}

fn slug(answer: &Json) -> String {
    let url = answer["html_url"].as_str().expect("a link");
    url.rsplit('/').next().expect("a name").replace(".html", "")
}

#[tokio::test]
async fn a_certificate_is_served_mended_and_erased_wherever_its_files_stand() {
    for place in all().await {
        let (name, shelf) = (place.name(), place.shelf().await);
        let house = house(shelf.clone(), None).await;
        let answer = json(&house.deliver(samples::CHECKOUT_PAID).await);
        assert_eq!(answer["status"], "processed", "{name}");
        let slug = slug(&answer);
        for form in Form::ALL {
            let good = shelf.get(&slug, form).await.expect("a look").expect("a file");
            shelf.put(&slug, form, b"damaged".to_vec()).await.expect("put");
            assert_eq!(house.problems().await.as_array().expect("a list").len(), 1, "{name}");
            assert_eq!(house.visa.delivered(&slug, form).await.expect("a file").bytes, good, "{name}");
            assert_eq!(shelf.get(&slug, form).await.expect("a look"), Some(good), "{name}");
        }
        for form in Form::ALL {
            shelf.remove(&slug, form).await.expect("removed");
        }
        assert_eq!(house.visa.reconcile("eva").await.expect("a sweep")["rebuilt"], 1, "{name}");
        while house.visa.sync_files(Duration::ZERO).await.expect("a sync") {}
        assert_eq!(house.problems().await, json!([]), "{name}");
        house.visa.erase(EVENT, "eva").await.expect("erased");
        assert_eq!(shelf.get(&slug, Form::Zip).await.expect("a look"), None, "{name}");
        assert!(matches!(house.visa.delivered(&slug, Form::Zip).await, Err(Missing::Erased)), "{name}");
    }
}

#[tokio::test]
async fn files_whose_record_is_lost_become_a_record_and_foreign_files_stay() {
    for place in all().await {
        let (name, shelf) = (place.name(), place.shelf().await);
        shelf.put("index", Form::Html, b"somebody's".to_vec()).await.expect("put");
        shelf.put(&"0".repeat(40), Form::Html, b"a leftover".to_vec()).await.expect("put");
        let lost = house(shelf.clone(), None).await;
        let answer = json(&lost.deliver(samples::CHECKOUT_PAID).await);
        let restored = house(place.shelf().await, Some(lost.folder.path())).await;
        let now = std::time::UNIX_EPOCH.elapsed().expect("now").as_secs();
        restored.clock.set(i64::try_from(now).expect("a time") + 3600);
        let report = restored.visa.reconcile("eva").await.expect("a sweep");
        assert_eq!((&report["adopted"], &report["removed"]), (&json!(1), &json!(1)), "{name}");
        assert!(shelf.get("index", Form::Html).await.expect("a look").is_some(), "{name}");
        let shown = restored.shown(EVENT).await;
        assert_eq!(shown["run_hash"], answer["run_hash"], "{name}");
        assert_eq!(restored.problems().await, json!([]), "{name}");
    }
}

#[tokio::test]
async fn a_bucket_that_is_down_costs_new_certificates_and_nothing_else() {
    for fault in [Fault::Down, Fault::LosesAnswers, Fault::HoldsAnswers] {
        let mut bucket = Bucket::new().await;
        bucket.settings.timeout = Duration::from_millis(300);
        let house = house(bucket.shelf().await, None).await;
        let first = json(&house.deliver(&payment(1)).await);
        bucket.server.fail(fault);
        assert_eq!(house.deliver(&payment(2)).await.status, 503, "{fault:?}");
        assert_eq!(house.count("certify_certificates").await, 1, "{fault:?}: nothing is committed");
        assert_eq!(house.deliver(&payment(1)).await.status, 200, "{fault:?}: a repeat needs no bucket");
        let served = house.visa.delivered(&slug(&first), Form::Zip).await.expect("made again");
        bucket.server.fail(Fault::None);
        assert_eq!(
            house.visa.delivered(&slug(&first), Form::Zip).await.expect("a file"),
            served,
            "{fault:?}"
        );
        house.clock.advance(Duration::from_secs(120));
        assert_eq!(json(&house.deliver(&payment(2)).await)["status"], "processed", "{fault:?}");
        assert_eq!(house.count("certify_certificates").await, 2, "{fault:?}");
        assert_eq!(house.problems().await, json!([]), "{fault:?}");
    }
}
