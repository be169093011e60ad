//! Certificates, and clients that speak TLS.

use std::fs;
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rpc::http::TlsFiles;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned, crypto};

/// A client's side of an encrypted connection. It reads what has come also where the server has
/// stopped reading, as clients of plain connections do.
pub(crate) struct Encrypted(StreamOwned<ClientConnection, TcpStream>);

impl Encrypted {
    /// The protocol that was agreed on.
    pub(crate) fn protocol(&self) -> Option<&[u8]> {
        self.0.conn.alpn_protocol()
    }

    /// The server's certificate.
    pub(crate) fn certificate(&self) -> CertificateDer<'static> {
        self.0.conn.peer_certificates().unwrap()[0].clone()
    }
}

impl Read for Encrypted {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let StreamOwned { conn, sock } = &mut self.0;
        loop {
            match conn.reader().read(buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                read => return read,
            }
            conn.read_tls(sock)?;
            conn.process_new_packets().map_err(Error::other)?;
        }
    }
}

impl Write for Encrypted {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> Result<()> {
        self.0.flush()
    }
}

/// Whoever signs certificates.
pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key, in PEM.
#[derive(Clone)]
pub(crate) struct Identity {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "tests");
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// Signs a new certificate of a name.
    pub(crate) fn identity(&self, name: &str) -> Identity {
        let params = CertificateParams::new([name.to_owned()]).unwrap();
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        Identity { certificate: certificate.pem(), key: key.serialize_pem() }
    }

    /// Its own certificate, in PEM.
    pub(crate) fn pem(&self) -> String {
        self.0.pem()
    }

    /// A client that trusts it and speaks these protocols; perhaps with a certificate of its own.
    pub(crate) fn client(&self, protocols: &[&str], own: Option<&Identity>) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        roots.add(self.0.der().clone()).unwrap();
        let builder = ClientConfig::builder_with_provider(crypto::ring::default_provider().into())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let mut config = match own {
            None => builder.with_no_client_auth(),
            Some(own) => {
                let chain = CertificateDer::pem_slice_iter(own.certificate.as_bytes());
                let key = PrivateKeyDer::from_pem_slice(own.key.as_bytes()).unwrap();
                builder.with_client_auth_cert(chain.map(|it| it.unwrap()).collect(), key).unwrap()
            }
        };
        config.alpn_protocols = protocols.iter().map(|it| it.as_bytes().to_vec()).collect();
        Arc::new(config)
    }
}

impl Identity {
    /// Writes it to files of a folder.
    pub(crate) fn write(&self, folder: &Path) -> TlsFiles {
        let (certificate, key) = (folder.join("cert.pem"), folder.join("key.pem"));
        fs::write(&certificate, &self.certificate).unwrap();
        fs::write(&key, &self.key).unwrap();
        TlsFiles { certificate, key, client_ca: None::<PathBuf> }
    }
}

/// A connection that is encrypted from its first byte on.
pub(crate) fn encrypted(stream: TcpStream, client: &Arc<ClientConfig>) -> Encrypted {
    let name = ServerName::try_from("localhost").unwrap();
    let session = ClientConnection::new(Arc::clone(client), name).unwrap();
    Encrypted(StreamOwned::new(session, stream))
}
