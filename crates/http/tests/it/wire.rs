//! A server on a socket, and a client that sends what a test says.

use axum::Router;
use reqwest::header::{HeaderMap, HeaderValue};
use reqwest::{Client, Method};
use serde_json::Value as Json;
use tokio::task::JoinHandle;

/// A served router; it ends with the test.
pub(crate) struct Server {
    address: String,
    client: Client,
    serving: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Got {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Got {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    pub(crate) fn json(&self) -> Json {
        serde_json::from_str(&self.text).unwrap_or_else(|e| panic!("{e}: {}", self.text))
    }

    pub(crate) fn code(&self) -> String {
        let json = self.json();
        json.pointer("/error/code").or_else(|| json.get("code")).unwrap_or(&Json::Null).to_string()
    }
}

/// The id of an attempt.
pub(crate) fn request_id(n: u32) -> String {
    format!("6f1c0000-0000-4000-8000-0000{n:08x}")
}

impl Server {
    pub(crate) async fn over(router: Router) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        // The client wants one even where it speaks no TLS; a second test finds it installed.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Self { address, client: Client::new(), serving }
    }

    /// Posts with these headers, as they are.
    pub(crate) async fn send(
        &self,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<reqwest::Body>,
    ) -> Got {
        let mut request = self.client.request(Method::POST, format!("{}{path}", self.address)).body(body);
        for (name, value) in headers {
            request = request.header(*name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        let response = request.send().await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Got { status, headers, text: response.text().await.unwrap() }
    }

    /// Posts JSON as attempt `n` of the operation `key`.
    pub(crate) async fn post(&self, path: &str, key: &str, n: u32, body: &str) -> Got {
        let id = request_id(n);
        let mut headers = vec![("x-request-id", id.as_str()), ("idempotency-key", key)];
        if !body.is_empty() {
            headers.push(("content-type", "application/json"));
        }
        self.send(path, &headers, body.to_owned()).await
    }
}
