use std::io::Write;
use std::sync::{Arc, Mutex};

use relay::{Channel, State};
use serde_json::json;
use tracing_subscriber::fmt::MakeWriter;

use crate::stub::{Reply, Stub, TOKEN, settings, telegram};
use crate::world::{issued, world};

#[derive(Clone, Default)]
struct Captured(Arc<Mutex<Vec<u8>>>);

impl Captured {
    /// Takes what this thread logs, at every level.
    fn start() -> (Self, tracing::subscriber::DefaultGuard) {
        let captured = Self::default();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::TRACE)
            .with_ansi(false)
            .with_writer(captured.clone())
            .finish();
        (captured, tracing::subscriber::set_default(subscriber))
    }

    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Captured {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Captured {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[tokio::test]
async fn the_token_is_in_no_log_and_no_row() {
    // [SEC-09]: each way to fail, at trace level, with answers that repeat the token.
    let (captured, _guard) = Captured::start();
    let world = world().await;
    let stub = Stub::start(&[Reply::Ok]).await;
    let echo = format!("Unauthorized: {TOKEN} in /bot{TOKEN}/sendMessage, CANARY_TG-secret_half");
    let statuses =
        [200, 302, 400, 401, 403, 404, 429, 500].map(|status| Reply::error(status, &echo, &json!({})));
    let replies = [vec![Reply::Ok, Reply::Slow, Reply::Drop, Reply::Half], statuses.to_vec()].concat();
    let count = replies.len();
    for (number, reply) in replies.into_iter().enumerate() {
        stub.then(&[reply]);
        world.tell(&number.to_string(), issued("o"), &["telegram"]).await;
        world.relay(vec![Arc::new(stub.hasty())]).turn().await.unwrap();
    }
    for (number, base) in ["http://127.0.0.1:1", "https://127.0.0.1:1"].iter().enumerate() {
        world.tell(&format!("x{number}"), issued("o"), &["telegram"]).await;
        world.later(60);
        world.relay(vec![Arc::new(telegram(base))]).turn().await.unwrap();
    }
    assert!(stub.count() >= count && world.list(&State::HELD).await.len() > 8);
    let seen = format!("{}{:?}{:?}", captured.text(), world.list(&State::ALL).await, stub.telegram());
    assert!(seen.contains("telegram_notified") && !seen.contains("CANARY"), "{seen}");
    assert!(!format!("{:?}", settings("http://x")).contains("CANARY"));
}

#[tokio::test]
async fn the_log_channel_writes_one_line_under_the_name_of_the_specification() {
    let (captured, _guard) = Captured::start();
    let world = world().await;
    for (object, kind) in [("a", "issued"), ("b", "duplicate")] {
        let mut payload = issued("av_evt_1\nforged line");
        payload["kind"] = json!(kind);
        world.tell(object, payload, &["log"]).await;
    }
    assert!(relay::Log::default().retakes());
    world.relay(vec![Arc::new(relay::Log::default())]).turn().await.unwrap();
    let text = captured.text();
    let lines: Vec<&str> = text.lines().filter(|line| line.contains("relay::announcement")).collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert!(lines[0].contains("处理成功 / processed") && lines[0].contains("event_processed"));
    assert!(lines[1].contains("already processed") && lines[1].contains("event_duplicate_reused"));
}

#[tokio::test]
async fn what_somebody_must_read_is_an_error_in_the_log() {
    let (captured, _guard) = Captured::start();
    let world = world().await;
    let level = async |alerts| {
        world.tell("a", issued("a"), &["log"]).await;
        world.relay(vec![Arc::new(relay::Log { alerts })]).turn().await.unwrap();
        let text = captured.text();
        let line = text.lines().rfind(|line| line.contains("relay::announcement")).unwrap();
        ["ERROR", "INFO"].into_iter().find(|level| line.contains(level)).unwrap()
    };
    assert_eq!(level(Some("certify.certificate.")).await, "ERROR");
    assert_eq!(level(Some("supply.alert.")).await, "INFO");
    assert_eq!(level(None).await, "INFO");
}
