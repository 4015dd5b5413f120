//! A second report of a change that reaches two nodes at once: what both built for it is in nobody's way.

use source::samples;

use crate::house::json;
use crate::nodes::{Site, deliver};

/// Changes: in about half of them the two nodes meet.
const CHANGES: u32 = 12;

/// The sample's body with a session, a payment and an event of its own.
fn numbered(sample: &str, number: u32) -> String {
    let ids = [
        "evt_1SkQl3B7WZ01zgkW",
        "cs_test_a1YS1URlnyQCN5fUUduO",
        "pi_3SkQl0B7WZ01zgkW",
        "evt_1SkQl4B7WZ01zgkW",
    ];
    ids.iter().fold(sample.to_owned(), |body, id| body.replace(id, &format!("{id}{number:04}")))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_two_nodes_built_for_one_second_report_is_removed_by_both() {
    let site = Site::new().await;
    let folders = ["files-1", "files-2"];
    let first = site.node_at(1, ("keys", folders[0])).await.expect("a node");
    let second = site.node_at(2, ("keys", folders[1])).await.expect("a node");
    for number in 0..CHANGES {
        let certified = deliver(&first, &numbered(samples::CHECKOUT_PAID, number)).await;
        let report = numbered(samples::CHECKOUT_PAID_SECOND_ID, number);
        let (one, other) = tokio::join!(deliver(&first, &report), deliver(&second, &report));
        for reply in [&one, &other] {
            assert_eq!(json(reply)["html_url"], json(&certified)["html_url"], "{}", reply.body);
            assert!(json(reply)["same_change_as"].is_string(), "{}", reply.body);
        }
    }
    let of_certificates = folders.map(|folder| {
        let files = std::fs::read_dir(site.root.path().join(folder)).expect("a folder");
        files
            .filter(|file| !file.as_ref().expect("a file").file_name().to_string_lossy().starts_with('.'))
            .count()
    });
    assert_eq!(of_certificates, [3 * CHANGES as usize, 0]);
}
