//! A store that is a file: its backup, and what stands in its bytes.

use serde_json::json;
use web::token;

use crate::house::House;

#[tokio::test]
async fn only_a_digest_of_a_token_is_kept() {
    let house = House::new().await;
    let token = token::issue(house.visa.door(), "one", None, "test").await.expect("issued");
    let copy = house.folder.path().join("copy.db");
    house.visa.door().store().copy_to(copy.clone()).await.expect("copied");
    let bytes = std::fs::read(copy).expect("read");
    let secret = token.expose().as_bytes();
    assert!(!bytes.windows(secret.len()).any(|window| window == secret));
}

#[tokio::test]
async fn a_backup_goes_to_a_new_file_with_a_whole_path() {
    let house = House::new().await;
    let to = house.folder.path().join("backup.db");
    let got = house.order_with("backup", &json!({ "to": to })).await;
    assert_eq!(got.status, 200, "{}", got.text());
    assert!(to.exists());
    for to in ["backup.db", "/tmp/../etc/x"] {
        assert_eq!(
            house.order_with("backup", &json!({ "to": to })).await.problem(),
            (400, "INPUT_INVALID".into())
        );
    }
}
