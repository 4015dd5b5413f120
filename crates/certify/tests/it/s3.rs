//! A bucket whose server fails, late answers, lost answers, wrong keys.

use std::time::Duration;

use certify::shelf::{Access, Addressing, Form, Shelf};
use source::Secret;

use crate::s3_server::Fault;
use crate::shelf_places::{Bucket, ID, SECRET};

const SLUG: &str = "0123456789abcdef0123456789abcdef01234567";

async fn put(shelf: &Shelf) -> Result<(), String> {
    shelf.put(SLUG, Form::Html, b"<p>".to_vec()).await.map_err(|cause| cause.to_string())
}

async fn stands(shelf: &Shelf) -> bool {
    shelf.get(SLUG, Form::Html).await.expect("a look").is_some()
}

/// Which faults say what in the end, and what then stands.
#[tokio::test]
async fn a_put_that_fails_says_why_and_a_later_one_succeeds() {
    for (fault, told, done) in [
        (Fault::Down, "the answer 503 Service Unavailable SlowDown", false),
        (Fault::LosesAnswers, "the connection broke: connection closed before message completed", true),
        (Fault::HoldsAnswers, "no answer", true),
    ] {
        let mut bucket = Bucket::new().await;
        if fault == Fault::HoldsAnswers {
            bucket.settings.timeout = Duration::from_millis(200);
        }
        let shelf = bucket.shelf().await;
        bucket.server.fail(fault);
        let failed = put(&shelf).await.expect_err("no answer that counts");
        assert!(failed.starts_with(&format!("writing {SLUG}.html: {told}")), "{fault:?}: {failed}");
        assert!(shelf.get(SLUG, Form::Html).await.is_err() && shelf.probe().await.is_err(), "{fault:?}");
        bucket.server.fail(Fault::None);
        assert_eq!(stands(&shelf).await, done, "{fault:?}");
        put(&shelf).await.expect("put, or found to stand");
        assert!(stands(&shelf).await && shelf.probe().await.is_ok(), "{fault:?}");
    }
}

#[tokio::test]
async fn a_put_that_is_sent_twice_stands_once() {
    let bucket = Bucket::new().await;
    let shelf = bucket.shelf().await;
    bucket.server.fail(Fault::Twice);
    let created = bucket.server.created();
    put(&shelf).await.expect("put");
    assert_eq!(bucket.server.created() - created, 1);
    shelf.put(SLUG, Form::Html, b"mended".to_vec()).await.expect("replaced, though the answer says changed");
    assert_eq!(shelf.get(SLUG, Form::Html).await.expect("a look"), Some("mended".into()));
}

#[tokio::test]
async fn a_server_that_ignores_put_if_absent_is_refused() {
    let bucket = Bucket::new().await;
    bucket.server.fail(Fault::Forgets);
    let refused = Shelf::open_s3(bucket.settings.clone()).await.expect_err("refused").to_string();
    assert!(refused.contains("If-None-Match: *") && refused.contains("shared folder"), "{refused}");
}

#[tokio::test]
async fn what_is_wrong_with_the_settings_is_told_without_the_keys() {
    let bucket = Bucket::new().await;
    let key = |text: &str| Secret::new(text).expect("a key");
    let right = || bucket.settings.clone();
    let mut other_secret = right();
    other_secret.access = Access::Keys { id: key(ID), secret: key("CANARY+other") };
    let mut other_id = right();
    other_id.access = Access::Keys { id: key("AKIACANARYOTHER"), secret: key(SECRET) };
    let mut no_domain = right();
    no_domain.addressing = Addressing::Host;
    let mut nobody = right();
    nobody.endpoint = Some("http://127.0.0.1:9".into());
    let mut no_pem = right();
    no_pem.authorities = Some(b"CANARY".to_vec());
    for (settings, told) in [
        (other_secret, "403 Forbidden SignatureDoesNotMatch; check s3.secret_key"),
        (other_id, "403 Forbidden"),
        (no_domain, "names no domain that a bucket's name could be put before; set s3.path_style = true"),
        (nobody, "no connection: Connection refused"),
        (no_pem, "s3.authorities can't be used: no certificate in PEM is in it"),
    ] {
        let shown = format!("{settings:?}");
        let failed = Shelf::open_s3(settings).await.expect_err("refused").to_string();
        assert!(failed.starts_with("the bucket can't be used: s3://") && failed.contains(told), "{failed}");
        assert!(!failed.contains("CANARY") && !shown.contains("CANARY"), "{failed} {shown}");
    }
}

#[tokio::test]
async fn a_shelf_shows_where_it_is_and_no_key() {
    let bucket = Bucket::new().await;
    let shelf = bucket.shelf().await;
    assert_eq!(format!("{shelf:?}"), r#"Shelf("s3://onceseal-test/some/where/")"#);
    let path = shelf.path(SLUG, Form::Zip).display().to_string();
    assert_eq!(path, format!("s3://onceseal-test/some/where/{SLUG}.zip"));
    assert!(bucket.folder.path().join("onceseal-test/some/where/.onceseal").is_file());
}

#[tokio::test]
async fn keys_may_come_from_the_surroundings_and_other_variables_do_not_count() {
    let bucket = Bucket::new().await;
    let mut settings = bucket.settings.clone();
    let variable = |name: &str, value: &str| (name.to_owned(), Secret::new(value).expect("a value"));
    settings.access = Access::Surroundings(vec![
        variable("AWS_ACCESS_KEY_ID", ID),
        variable("AWS_SECRET_ACCESS_KEY", SECRET),
        variable("AWS_ENDPOINT", "http://127.0.0.1:9"),
        variable("AWS_SKIP_SIGNATURE", "true"),
        variable("AWS_CONDITIONAL_PUT", "disabled"),
    ]);
    let shelf = Shelf::open_s3(settings).await.expect("a shelf");
    put(&shelf).await.expect("put");
}

#[tokio::test]
async fn the_bucket_may_stand_in_the_host_and_the_prefix_may_be_empty() {
    let bucket = Bucket::new().await;
    let mut settings = bucket.settings.clone();
    settings.prefix = String::new();
    let shelf = Shelf::open_s3(settings.clone()).await.expect("a shelf");
    put(&shelf).await.expect("put");
    assert!(bucket.folder.path().join(format!("onceseal-test/{SLUG}.html")).is_file());
    settings.addressing = Addressing::Host;
    settings.endpoint = Some("http://s3.invalid".into());
    // No name server knows this host; that it is asked for is what counts.
    let failed = Shelf::open_s3(settings).await.expect_err("no such host").to_string();
    assert!(failed.contains("no connection: failed to lookup address information"), "{failed}");
}
