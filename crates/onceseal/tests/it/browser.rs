//! Certificates in a real browser: what a person sees, and what a hostile payment can't do to it.

use std::path::Path;
use std::process::Command;

use crate::home::Home;

/// Debian's name for it; `cargo xtask test` installs it.
const BROWSER: &str = "/usr/bin/chromium";

/// The page as the browser has it after loading, with the server's headers in force.
fn seen(url: &str, profile: &Path) -> String {
    let mut browser = Command::new(BROWSER);
    browser.args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]);
    browser.args(["--disable-background-networking", "--disable-component-update", "--disable-sync"]);
    browser.arg(format!("--user-data-dir={}", profile.display())).args(["--dump-dom", url]);
    let done = browser.output().expect("chromium; run cargo xtask test, which installs it");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8_lossy(&done.stdout).into_owned()
}

fn page_of(home: &Home, body: &str) -> (crate::home::Running, String) {
    let server = home.serve();
    home.write("event.json", body);
    let sent = home.json(&["send", "event.json"]);
    let link = sent[0]["answer"]["html_url"].as_str().unwrap_or_else(|| panic!("no link: {sent}"));
    let path = link.split("/d/").nth(1).unwrap();
    let url = format!("{}/d/{path}", server.base);
    (server, url)
}

#[test]
fn a_person_sees_amount_reference_and_that_it_is_a_test() {
    let home = Home::new();
    let (_server, url) = page_of(&home, source::samples::CHECKOUT_PAID);
    let page = seen(&url, &home.path("profile"));
    for text in ["20.00 EUR", "av_evt_1SkQl3B7WZ01zgkWh3b8kqQe", "测试模式", "b***@example.com"] {
        assert!(page.contains(text), "{text}");
    }
    assert!(page.contains("<div class=\"test\""), "the mark on every page");
}

#[test]
fn markup_in_a_payment_is_text_and_runs_nothing() {
    let home = Home::new();
    let hostile = "</dd><script>document.title='taken'</script><img src=x onerror=document.title='taken'>";
    let body = source::samples::CHECKOUT_PAID.replace("order-1001", hostile);
    assert!(body.contains(hostile));
    let (_server, url) = page_of(&home, &body);
    let page = seen(&url, &home.path("profile"));
    assert!(page.contains("<title>TEST · AuditVisa 出证 · Certificate</title>"), "the title stands");
    assert!(page.contains("&lt;script&gt;document.title='taken'&lt;/script&gt;"), "shown as text");
    assert!(!page.contains("<script") && !page.contains("<img"));
}
