//! The first start of one node and of many, and what a node must have to start later.

use std::os::unix::fs::PermissionsExt as _;

use certify::keyring::Error;
use serde_json::json;

use crate::house::{json, payment};
use crate::nodes::{Site, active, deliver};

const KEYS: &str = "select key_id from certify_keys";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_eight_nodes_with_folders_of_their_own_one_begins_the_database() {
    let site = Site::new().await;
    let names: Vec<String> = (1..=8).map(|n| format!("keys-{n}")).collect();
    let all = (1..=8).zip(&names).map(|(n, name)| site.node(n, name));
    let opened = futures::future::join_all(all).await;
    let started: Vec<usize> = (0..8).filter(|n| opened[*n].is_ok()).collect();
    assert_eq!((started.len(), site.texts(KEYS).await.len()), (1, 1), "{started:?}");
    for (name, refused) in names.iter().zip(&opened).filter_map(|(n, end)| Some((n, end.as_ref().err()?))) {
        assert!(matches!(refused, Error::Missing(_)), "{refused}");
        assert!(refused.to_string().contains("onceseal keys restore"), "{refused}");
        assert_eq!(site.key_files(name), [""; 0], "nothing that was made in vain is in the way");
    }
    let (first, other) = (&names[started[0]], &names[(started[0] + 1) % 8]);
    site.copy_keys(first, other);
    let second = site.node(9, other).await.expect("it starts with the first node's keys");
    assert_eq!(active(&second), site.texts(KEYS).await[0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eight_nodes_that_mount_one_folder_all_start_with_one_key() {
    let site = Site::new().await;
    let opened = futures::future::join_all((1..=8).map(|n| site.node(n, "keys"))).await;
    let nodes: Vec<_> = opened.into_iter().map(|end| end.expect("a node")).collect();
    let key = site.texts(KEYS).await;
    assert_eq!(key.len(), 1);
    for node in &nodes {
        assert_eq!((active(node), node.keys().slug_key()), (key[0].clone(), nodes[0].keys().slug_key()));
    }
    assert_eq!(site.key_files("keys"), [format!("anchor-{}.pem", key[0]), "slug.secret".into()]);
    let body = payment(1);
    let replies = futures::future::join_all(nodes.iter().map(|node| deliver(node, &body))).await;
    let links: Vec<_> = replies.iter().map(|reply| json(reply)["html_url"].clone()).collect();
    assert!(links.iter().all(|link| *link == links[0] && link.is_string()), "{links:?}");
}

#[tokio::test]
async fn another_secret_is_told_from_the_one_that_the_database_was_begun_with() {
    let site = Site::new().await;
    drop(site.node(1, "keys").await.expect("a node"));
    site.copy_keys("keys", "restored");
    std::fs::write(site.keys("restored").join("slug.secret"), "ab".repeat(32)).expect("written");
    let refused = site.node(2, "restored").await.err().expect("the wrong folder");
    assert!(matches!(refused, Error::OtherSecret) && refused.code() == "KEYS_UNUSABLE", "{refused}");
    assert!(refused.to_string().contains("keys.folder"), "{refused}");
    std::fs::remove_file(site.keys("restored").join("slug.secret")).expect("removed");
    let refused = site.node(3, "restored").await.err().expect("a folder without it");
    assert!(refused.to_string().contains("slug.secret: it is missing"), "{refused}");
    assert!(!site.key_files("restored").contains(&"slug.secret".into()), "none is made up");
}

#[tokio::test]
async fn the_database_keeps_a_digest_of_the_secret_and_not_the_secret() {
    let site = Site::new().await;
    let node = site.node(1, "keys").await.expect("a node");
    let secret = kernel::Digest::from_slice(node.keys().slug_key()).expect("32 bytes");
    let query = store::Query::new("test.secret", "select digest from certify_secret", vec![]);
    let kept = node.door().store().query(query).await.expect("a row")[0].digest(0).expect("a digest");
    assert_ne!(kept, secret);
    assert_eq!(kept, kernel::Digest::of_fields(&[b"onceseal slug secret", secret.as_bytes()]));
}

#[tokio::test]
async fn a_key_file_that_others_may_read_is_refused_by_name() {
    let site = Site::new().await;
    drop(site.node(1, "keys").await.expect("a node"));
    let file = site.keys("keys").join(&site.key_files("keys")[0]);
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).expect("changed");
    let refused = site.node(1, "keys").await.err().expect("an open file").to_string();
    assert!(refused.contains("anchor-") && refused.contains("chmod 600"), "{refused}");
    assert!(!refused.contains(site.root.path().to_str().expect("text")), "no path of this machine");
}

#[tokio::test]
async fn a_start_after_the_first_makes_nothing() {
    let site = Site::new().await;
    let before = active(&site.node(1, "keys").await.expect("a node"));
    let again = site.node(1, "keys").await.expect("a node");
    assert_eq!((active(&again), site.key_files("keys").len()), (before, 2));
    let standing = again.keys_standing().await.expect("a look");
    assert_eq!((&standing["trouble"], &standing["announced"]), (&json!(null), &json!(null)));
    assert_eq!(standing["keys"][0]["status"], "active");
}
