//! TLS: the server's certificate and key, read from files, and anew when those change.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, fs, io, thread};

use arc_swap::ArcSwap;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, crypto};
use thiserror::Error;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// Of what is encrypted and not yet taken by a client: one record. It is held beside the answer, which
/// the budget counts.
const UNSENT_BYTES_MAX: usize = 16 * 1024;

/// Files that are the same after this time are whole.
const SETTLE_TIME: Duration = Duration::from_millis(100);
/// Looks after which nobody waits any more.
const SETTLE_LOOKS_MAX: u32 = 20;

/// Where the server's identity lies, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, and behind it those that lead to a root.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// Certificates of which one must have signed a client's; none if clients need no certificate.
    pub client_ca: Option<PathBuf>,
}

/// Why connections cannot be encrypted.
#[derive(Debug, Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("{}: cannot read it: {cause}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// The system's word.
        cause: io::Error,
    },
    /// A file does not hold what it should.
    #[error("{}: no {wanted} in PEM: {}", path.display(), pem_text(cause))]
    NotPem {
        /// Which.
        path: PathBuf,
        /// What was looked for.
        wanted: &'static str,
        /// What the reader says.
        cause: pem::Error,
    },
    /// Somebody goes on writing a file.
    #[error("{}: it is still being written", path.display())]
    Unsettled {
        /// Which, or one of those beside it.
        path: PathBuf,
    },
    /// The private key is another certificate's.
    #[error("{}: this is not the private key of the certificate in {}", key.display(), certificate.display())]
    OtherKey {
        /// The file with the key.
        key: PathBuf,
        /// The file with the certificate.
        certificate: PathBuf,
    },
    /// Certificates and key are no identity.
    #[error("{}: cannot be used: {cause}", path.display())]
    Unusable {
        /// Which file.
        path: PathBuf,
        /// What rustls says.
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// The server's side of TLS. Connections that begin after a reload have the new certificate; those
/// that are open go on.
pub struct Tls {
    files: TlsFiles,
    identity: ArcSwap<TlsIdentity>,
}

/// A certificate and its key that were read and can be used.
pub struct RenewedIdentity(TlsIdentity);

struct TlsIdentity {
    /// What it was made of.
    source: PemSource,
    config: Arc<ServerConfig>,
    /// The same for those who are told that there is no room, in words of HTTP/1.1.
    http1_config: Arc<ServerConfig>,
}

/// What the files hold.
#[derive(PartialEq, Eq)]
struct PemSource {
    certificate: Vec<u8>,
    key: Vec<u8>,
    client_ca: Option<Vec<u8>>,
}

impl Tls {
    /// Reads the files.
    pub fn load(files: TlsFiles) -> Result<Self, TlsError> {
        let identity = TlsIdentity::new(&files, PemSource::read(&files)?)?;
        Ok(Self { files, identity: ArcSwap::from_pointee(identity) })
    }

    /// Whether only clients with a certificate are let in.
    #[must_use]
    pub fn needs_client_certificate(&self) -> bool {
        self.files.client_ca.is_some()
    }

    /// Reads the files again; tells whether they have changed. If they cannot be used, all stays as it
    /// was: a certificate may be there before its key is.
    pub fn reload(&self) -> Result<bool, TlsError> {
        let renewed = self.read_again()?;
        let is_changed = renewed.is_some();
        self.install(renewed);
        Ok(is_changed)
    }

    /// New connections have what was read again, if anything was.
    pub fn install(&self, renewed: Option<RenewedIdentity>) {
        if let Some(RenewedIdentity(identity)) = renewed {
            self.identity.store(Arc::new(identity));
        }
    }

    /// What the files hold by now, if it is not what is in use; whoever is writing them is waited for.
    pub fn read_again(&self) -> Result<Option<RenewedIdentity>, TlsError> {
        let mut source = PemSource::read(&self.files)?;
        if source == self.identity.load().source {
            return Ok(None);
        }
        // A chain that is cut between two certificates looks like a whole one.
        for _ in 0..SETTLE_LOOKS_MAX {
            thread::sleep(SETTLE_TIME);
            let again = PemSource::read(&self.files)?;
            if again == source {
                return Ok(Some(RenewedIdentity(TlsIdentity::new(&self.files, source)?)));
            }
            source = again;
        }
        Err(TlsError::Unsettled { path: self.files.certificate.clone() })
    }

    /// The server's part of a handshake.
    pub(super) async fn accept(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        self.accept_by(Arc::clone(&self.identity.load().config), stream).await
    }

    /// The same where HTTP/1.1 is spoken whatever a client would like.
    pub(super) async fn accept_http1(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        self.accept_by(Arc::clone(&self.identity.load().http1_config), stream).await
    }

    async fn accept_by(
        &self,
        config: Arc<ServerConfig>,
        stream: TcpStream,
    ) -> io::Result<TlsStream<TcpStream>> {
        let acceptor = TlsAcceptor::from(config);
        let limit = |session: &mut rustls::ServerConnection| {
            session.set_buffer_limit(Some(UNSENT_BYTES_MAX));
        };
        acceptor.accept_with(stream, limit).await
    }
}

/// Without the key.
impl fmt::Debug for RenewedIdentity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("RenewedIdentity(..)")
    }
}

/// Without the key.
impl fmt::Debug for Tls {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Tls").field("files", &self.files).finish_non_exhaustive()
    }
}

/// Whether a connection begins as TLS does, once it begins: with a record of a handshake (RFC 8446, 5.1).
pub(super) async fn is_begun(stream: &TcpStream) -> io::Result<bool> {
    let mut first = [0];
    Ok(stream.peek(&mut first).await? == 0 || first == [22])
}

impl PemSource {
    fn read(files: &TlsFiles) -> Result<Self, TlsError> {
        Ok(Self {
            certificate: read(&files.certificate)?,
            key: read(&files.key)?,
            client_ca: files.client_ca.as_deref().map(read).transpose()?,
        })
    }
}

impl TlsIdentity {
    fn new(files: &TlsFiles, source: PemSource) -> Result<Self, TlsError> {
        let provider = Arc::new(crypto::ring::default_provider());
        let chain = certificates(&files.certificate, &source.certificate)?;
        let key = PrivateKeyDer::from_pem_slice(&source.key)
            .map_err(|cause| not_pem(&files.key, "private key", cause))?;
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(unusable(&files.certificate))?;
        let builder = match files.client_ca.as_ref().zip(source.client_ca.as_ref()) {
            None => builder.with_no_client_auth(),
            Some((path, text)) => {
                let mut roots = RootCertStore::empty();
                for root in certificates(path, text)? {
                    roots.add(root).map_err(unusable(path))?;
                }
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(roots.into(), provider).build();
                builder.with_client_cert_verifier(verifier.map_err(unusable(path))?)
            }
        };
        let config = builder.with_single_cert(chain, key);
        let mut config = config.map_err(|cause| {
            if matches!(cause, rustls::Error::InconsistentKeys(_)) {
                let (key, certificate) = (files.key.clone(), files.certificate.clone());
                return TlsError::OtherKey { key, certificate };
            }
            unusable(&files.key)(cause)
        })?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        // A client resumes by what it keeps itself. The keys of it are new with each identity: a client
        // whose certificate is not taken any more does not come in by an old session.
        config.ticketer = crypto::ring::Ticketer::new().map_err(unusable(&files.key))?;
        let mut http1_config = config.clone();
        http1_config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { source, config: Arc::new(config), http1_config: Arc::new(http1_config) })
    }
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    fs::read(path).map_err(|cause| TlsError::Read { path: path.to_owned(), cause })
}

/// Certificates of a file; at least one.
fn certificates(path: &Path, text: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text).collect();
    let found = found
        .and_then(|found| if found.is_empty() { Err(pem::Error::NoItemsFound) } else { Ok(found) });
    found.map_err(|cause| not_pem(path, "certificate", cause))
}

/// What the reader says; the lines that it quotes as numbers are left out.
fn pem_text(cause: &pem::Error) -> String {
    if matches!(cause, pem::Error::MissingSectionEnd { .. }) {
        "a section does not end".to_owned()
    } else if matches!(cause, pem::Error::IllegalSectionStart { .. }) {
        "a section does not begin as it should".to_owned()
    } else {
        cause.to_string()
    }
}

fn not_pem(path: &Path, wanted: &'static str, cause: pem::Error) -> TlsError {
    TlsError::NotPem { path: path.to_owned(), wanted, cause }
}

fn unusable<E: std::error::Error + Send + Sync + 'static>(path: &Path) -> impl Fn(E) -> TlsError {
    move |cause| TlsError::Unusable { path: path.to_owned(), cause: Box::new(cause) }
}
