//! TLS at our own door: certificate and key from files, read again without a restart.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::RwLock;
use rustls::ServerConfig;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

/// What is wrong with the files. Names the setting, never the content.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{setting} can't be used: {cause}")]
pub struct Error {
    setting: &'static str,
    cause: String,
}

/// The certificate and key that connections get just now.
pub struct Tls {
    certificate: PathBuf,
    key: PathBuf,
    current: RwLock<Arc<ServerConfig>>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").finish_non_exhaustive()
    }
}

impl Tls {
    /// Reads a PEM chain (leaf first) and a PEM private key.
    ///
    /// # Errors
    /// When a file can't be read, holds none, or the two don't belong together.
    pub fn open(certificate: PathBuf, key: PathBuf) -> Result<Self, Error> {
        let current = RwLock::new(read(&certificate, &key)?);
        Ok(Self { certificate, key, current })
    }

    /// Reads the files again. Connections that stand keep what they have.
    ///
    /// # Errors
    /// As [`Tls::open`]; the old certificate stays in use then.
    pub fn reload(&self) -> Result<(), Error> {
        let fresh = read(&self.certificate, &self.key)?;
        *self.current.write() = fresh;
        Ok(())
    }

    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.current.read()))
    }
}

fn read(certificate: &PathBuf, key: &PathBuf) -> Result<Arc<ServerConfig>, Error> {
    let fail = |setting: &'static str| move |cause: String| Error { setting, cause };
    let chain = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|cause| fail("tls.certificate")(cause.to_string()))?;
    if chain.is_empty() {
        return Err(fail("tls.certificate")("it holds no certificate in PEM".into()));
    }
    let key = PrivateKeyDer::from_pem_file(key).map_err(|cause| fail("tls.key")(cause.to_string()))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|cause| fail("tls")(cause.to_string()))?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|cause| fail("tls.key")(cause.to_string()))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
