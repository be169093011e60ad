//! A certificate for servers that are asked over TLS.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::process::output_of;

const MAKE_WITHIN: Duration = Duration::from_mins(1);

/// Files in PEM.
#[derive(Clone, Debug)]
pub struct CertificateFiles {
    /// The certificate.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

impl CertificateFiles {
    /// Has `openssl` make both, for an elliptic curve (P-256), in a folder.
    pub fn write(folder: &Path) -> Result<Self> {
        let files = Self { certificate: folder.join("cert.pem"), key: folder.join("key.pem") };
        let mut openssl = Command::new("openssl");
        openssl.args(["req", "-x509", "-nodes", "-days", "2", "-subj", "/CN=localhost"]);
        openssl.args(["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]);
        openssl.arg("-keyout").arg(&files.key).arg("-out").arg(&files.certificate);
        output_of(&mut openssl, MAKE_WITHIN).context("a certificate by openssl")?;
        Ok(files)
    }

    /// The flags that have Quipu show it.
    #[must_use]
    pub fn flags(&self) -> Vec<String> {
        let text = |path: &Path| path.display().to_string();
        vec!["--tls-cert".into(), text(&self.certificate), "--tls-key".into(), text(&self.key)]
    }
}
