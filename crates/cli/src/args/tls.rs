//! Flags about TLS.

use std::path::PathBuf;

use anyhow::anyhow;
use rpc::http::TlsFiles;

use crate::Failure;

/// How connections are encrypted.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "TLS")]
pub(crate) struct TlsArgs {
    /// Certificate in PEM, with those that lead to a root behind it; all connections are encrypted
    /// then. It is read again when it changes [default: none]
    #[arg(id = "tls_cert", long = "tls-cert", value_name = "FILE", requires = "tls_key")]
    cert: Option<PathBuf>,
    /// Its private key in PEM
    #[arg(id = "tls_key", long = "tls-key", value_name = "FILE", requires = "tls_cert")]
    key: Option<PathBuf>,
    /// Certificates in PEM of which one must have signed a client's certificate [default: clients need
    /// none]
    #[arg(
        id = "tls_client_ca",
        long = "tls-client-ca",
        value_name = "FILE",
        requires = "tls_cert"
    )]
    client_ca: Option<PathBuf>,
}

impl TlsArgs {
    /// The files, if connections are encrypted. What is given by halves would leave them open.
    pub(crate) fn files(&self) -> Result<Option<TlsFiles>, Failure> {
        match (self.cert.clone(), self.key.clone(), self.client_ca.clone()) {
            (None, None, None) => Ok(None),
            (Some(certificate), Some(key), client_ca) => {
                Ok(Some(TlsFiles { certificate, key, client_ca }))
            }
            (Some(_), None, _) => {
                Err(Failure::Usage(anyhow!("--tls-cert is given without --tls-key")))
            }
            (None, ..) => {
                Err(Failure::Usage(anyhow!("--tls-key and --tls-client-ca need --tls-cert")))
            }
        }
    }
}
