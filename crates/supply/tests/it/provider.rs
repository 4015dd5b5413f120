//! A provider of models on loopback: it counts what it is asked and answers as it is told.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use custody::provider::{Addresses, Settings};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

pub(crate) struct Provider {
    address: String,
    asked: Arc<AtomicUsize>,
}

impl Provider {
    /// Answers everything with this status.
    pub(crate) async fn answering(status: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    match stream.read_u8().await {
                        Ok(byte) => head.push(byte),
                        Err(_) => break,
                    }
                }
                count.fetch_add(1, Ordering::SeqCst);
                let body = r#"{"object":"list","data":[]}"#;
                let answer = format!(
                    "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                    body.len()
                );
                // Whoever asked may have gone.
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        Self { address, asked }
    }

    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    pub(crate) fn settings(&self) -> Settings {
        let (openai, baidu) = (self.address.clone(), self.address.clone());
        let addresses = Addresses { openai, baidu, ..Addresses::default() };
        Settings { addresses, ..Settings::default() }
    }
}
