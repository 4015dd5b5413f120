//! A server that plays Telegram: it keeps what it is asked and answers as told.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use relay::{Telegram, telegram};
use secrecy::SecretString;
use serde_json::{Value as Json, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

pub(crate) const TOKEN: &str = "123456:CANARY_TG-secret_half";

#[derive(Clone, Debug)]
pub(crate) enum Reply {
    Ok,
    /// Status, further header lines, body.
    Status(u16, &'static str, String),
    /// Takes the request and never answers.
    Slow,
    /// Takes the request and closes.
    Drop,
    /// Half an answer, then closes.
    Half,
    /// As Telegram: refuses markup that it can't parse, and texts over 4096.
    Strict,
}

impl Reply {
    pub(crate) fn error(status: u16, words: &str, parameters: &Json) -> Self {
        let body = json!({
            "ok": false, "error_code": status, "description": words, "parameters": parameters,
        });
        Self::Status(status, "", body.to_string())
    }
}

pub(crate) struct Stub {
    pub(crate) address: String,
    replies: Mutex<VecDeque<Reply>>,
    pub(crate) got: Mutex<Vec<Json>>,
    pub(crate) paths: Mutex<Vec<String>>,
    pub(crate) arrived: Semaphore,
}

impl Stub {
    /// Answers in turn, the last reply for ever.
    pub(crate) async fn start(replies: &[Reply]) -> Arc<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stub = Arc::new(Self {
            address: format!("http://{}", listener.local_addr().unwrap()),
            replies: Mutex::new(replies.iter().cloned().collect()),
            got: Mutex::default(),
            paths: Mutex::default(),
            arrived: Semaphore::new(0),
        });
        let served = Arc::clone(&stub);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(Arc::clone(&served).answer(stream));
            }
        });
        stub
    }

    pub(crate) fn then(&self, replies: &[Reply]) {
        *self.replies.lock().unwrap() = replies.iter().cloned().collect();
    }

    pub(crate) fn telegram(&self) -> Telegram {
        telegram(&self.address)
    }

    /// Waits for answers just long enough for a machine under load.
    pub(crate) fn hasty(&self) -> Telegram {
        let mut settings = settings(&self.address);
        settings.connect_within = Duration::from_millis(500);
        settings.answer_within = Duration::from_millis(600);
        Telegram::new(settings).unwrap()
    }

    pub(crate) fn count(&self) -> usize {
        self.got.lock().unwrap().len()
    }

    pub(crate) fn texts(&self) -> Vec<String> {
        self.got.lock().unwrap().iter().map(|body| body["text"].as_str().unwrap().to_owned()).collect()
    }

    async fn answer(self: Arc<Self>, mut stream: TcpStream) {
        let Some((path, body)) = request(&mut stream).await else { return };
        let reply = {
            let mut replies = self.replies.lock().unwrap();
            if replies.len() > 1 { replies.pop_front() } else { replies.front().cloned() }.unwrap()
        };
        self.paths.lock().unwrap().push(path);
        self.got.lock().unwrap().push(body.clone());
        self.arrived.add_permits(1);
        let ok = r#"{"ok":true,"result":{"message_id":42,"date":1767225600,"text":"x"}}"#;
        let (status, head, text) = match reply {
            Reply::Ok => (200, "", ok.to_owned()),
            Reply::Status(status, head, text) => (status, head, text),
            Reply::Slow => return std::future::pending().await,
            Reply::Drop => return,
            Reply::Half => {
                let half = "HTTP/1.1 200 OK\r\ncontent-length: 70\r\n\r\n{\"ok\":tr";
                return stream.write_all(half.as_bytes()).await.unwrap();
            }
            Reply::Strict => match complaint(&body) {
                None => (200, "", ok.to_owned()),
                Some(words) => (400, "", json!({"ok": false, "description": words}).to_string()),
            },
        };
        let answer = format!(
            "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\n{head}content-length: {}\r\nconnection: close\r\n\r\n{text}",
            text.len()
        );
        // Whoever asked may have gone.
        let _ = stream.write_all(answer.as_bytes()).await;
    }
}

pub(crate) fn telegram(address: &str) -> Telegram {
    Telegram::new(settings(address)).unwrap()
}

pub(crate) fn settings(address: &str) -> telegram::Settings {
    let mut settings = telegram::Settings::new(SecretString::from(TOKEN), "4242");
    settings.base_url = address.to_owned();
    settings.connect_within = Duration::from_secs(10);
    settings.answer_within = Duration::from_secs(20);
    settings
}

/// The path and the body; `None` for what is no HTTP.
async fn request(stream: &mut TcpStream) -> Option<(String, Json)> {
    let mut bytes = Vec::new();
    loop {
        let mut chunk = [0; 4096];
        let read = stream.read(&mut chunk).await.unwrap();
        bytes.extend_from_slice(&chunk[..read]);
        if read == 0 || !bytes.starts_with(b"POST ") {
            return None;
        }
        let text = String::from_utf8_lossy(&bytes);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
        if body.len() >= length.parse::<usize>().unwrap() {
            let path = head.split(' ').nth(1).unwrap().to_owned();
            return Some((path, serde_json::from_str(body).unwrap()));
        }
    }
}

/// What Telegram would say against a message, as far as it matters here.
fn complaint(body: &Json) -> Option<String> {
    let text = body["text"].as_str().unwrap();
    let markup = body["parse_mode"] == "HTML";
    let mut shown = text.replace("<b>", "").replace("</b>", "");
    if !markup {
        shown = text.to_owned();
    } else if shown.contains(['<', '>']) {
        return Some("Bad Request: can't parse entities: Unsupported start tag".into());
    } else if shown.split('&').skip(1).any(|rest| !["lt;", "gt;", "amp;"].iter().any(|e| rest.starts_with(e)))
    {
        return Some("Bad Request: can't parse entities: unescaped ampersand".into());
    }
    let shown = shown.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    (shown.chars().count() > 4096).then(|| "Bad Request: message is too long".into())
}
