//! TLS at our own door, and a certificate changed while the server runs.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject as _};
use rustls::time_provider::TimeProvider;
use rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;
use web::ServeSettings;
use web::tls::Tls;

use crate::client::{Running, ask};
use crate::house::House;

/// The certificates are judged at a fixed time: 2030-01-01.
#[derive(Debug)]
struct Then;

impl TimeProvider for Then {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(std::time::Duration::from_secs(1_893_456_000)))
    }
}

fn keys() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/keys"))
}

/// A client that trusts exactly this certificate.
async fn greet(server: &Running, trusted: &str) -> Result<String, String> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(keys().join(trusted)).expect("a certificate")).expect("a root");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_details(provider, Arc::new(Then))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").expect("a name");
    let connected = TlsConnector::from(Arc::new(config)).connect(name, server.connect().await).await;
    let mut stream = connected.map_err(|error| error.to_string())?;
    Ok(ask(&mut stream, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await)
}

#[tokio::test]
async fn a_new_certificate_is_taken_without_a_restart_and_a_bad_one_is_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let (certificate, key) = (folder.path().join("tls.pem"), folder.path().join("tls.key"));
    let install = |name: &str| {
        std::fs::copy(keys().join(format!("{name}.pem")), &certificate).expect("copied");
        std::fs::copy(keys().join(format!("{name}.key")), &key).expect("copied");
    };
    install("tls-one");
    let tls = Arc::new(Tls::open(certificate.clone(), key.clone()).expect("usable files"));
    let settings = ServeSettings { tls: Some(Arc::clone(&tls)), ..ServeSettings::default() };
    let server = Running::new(House::new().await, settings).await;
    assert!(greet(&server, "tls-one.pem").await.expect("trusted").starts_with("HTTP/1.1 200"));
    assert!(greet(&server, "tls-two.pem").await.is_err());
    install("tls-two");
    tls.reload().expect("usable files");
    assert!(greet(&server, "tls-two.pem").await.expect("trusted").starts_with("HTTP/1.1 200"));
    std::fs::write(&key, b"no key").expect("written");
    let error = tls.reload().expect_err("no key").to_string();
    assert!(error.starts_with("tls.key") && !error.contains(&*folder.path().to_string_lossy()), "{error}");
    assert!(greet(&server, "tls-two.pem").await.is_ok(), "the last good one stays");
}
