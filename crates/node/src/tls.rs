//! TLS of upstream connections.

use std::sync::Arc;

use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};

use super::error::AskError;

/// The client's side, with the roots that the machine trusts.
pub(crate) fn client_config() -> Result<ClientConfig, AskError> {
    use hyper_rustls::ConfigBuilderExt as _;
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let refused = |error: String| AskError::Connect(format!("TLS: {error}"));
    let builder = builder.with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| refused(error.to_string()))?;
    let builder = builder.with_native_roots().map_err(|error| refused(error.to_string()))?;
    Ok(builder.with_no_client_auth())
}

/// For connections without TLS, which need no roots: a machine may have none.
pub(crate) fn client_config_unused() -> Result<ClientConfig, AskError> {
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| AskError::Connect(format!("TLS: {error}")))?;
    Ok(builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth())
}
