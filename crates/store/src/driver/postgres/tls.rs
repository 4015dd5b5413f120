//! TLS to the database, by rustls. `sslmode` in the address says whether: `disable`, `prefer` (the
//! default: used where the server offers it) or `require`. The server's certificate is always verified.

use std::path::Path;

use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::error::Error;

/// What connections are made with.
///
/// # Errors
/// [`Error::Setup`] when the file of authorities can't be read or has none.
pub fn connector(authorities: Option<&Path>) -> Result<MakeRustlsConnect, Error> {
    let mut roots = RootCertStore::empty();
    match authorities {
        None => roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
        Some(path) => {
            let fail = |cause: String| {
                Error::Setup(format!(
                    "the database's authorities {:?} can't be used: {cause}",
                    path.display().to_string()
                ))
            };
            let found = CertificateDer::pem_file_iter(path).map_err(|cause| fail(cause.to_string()))?;
            for certificate in found {
                let certificate = certificate.map_err(|cause| fail(cause.to_string()))?;
                roots.add(certificate).map_err(|cause| fail(cause.to_string()))?;
            }
            if roots.is_empty() {
                return Err(fail("it holds no certificate; give a PEM file".into()));
            }
        }
    }
    let provider = rustls::crypto::ring::default_provider();
    let config = ClientConfig::builder_with_provider(provider.into())
        .with_safe_default_protocol_versions()
        .map_err(|cause| Error::Setup(format!("TLS can't be set up: {cause}")))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}
