//! A certificate for servers that are asked over TLS.
//!
//! Knows: how one is made.
//! Never knows: who shows it; load generators trust anybody.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

/// Files in PEM.
#[derive(Clone, Debug)]
pub struct CertificateFiles {
    /// The certificate.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

impl CertificateFiles {
    /// Makes both, for an elliptic curve (P-256), in a folder.
    pub fn write(folder: &Path) -> Result<Self> {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()])
            .context("a certificate")?;
        let files = Self { certificate: folder.join("cert.pem"), key: folder.join("key.pem") };
        fs::write(&files.certificate, made.cert.pem()).context("a certificate's file")?;
        fs::write(&files.key, made.signing_key.serialize_pem()).context("a key's file")?;
        Ok(files)
    }

    /// The flags that have Quipu show it.
    #[must_use]
    pub fn flags(&self) -> Vec<String> {
        let text = |path: &Path| path.display().to_string();
        vec!["--tls-cert".into(), text(&self.certificate), "--tls-key".into(), text(&self.key)]
    }
}
