//! Certificates that are renewed while they are served.

use std::sync::Arc;
use std::time::Duration;

use rpc::http::Tls;
use tracing::{info, warn};

/// Between two looks at the files. They are read whole: what renews them may leave times and lengths
/// as they were.
const LOOK_INTERVAL: Duration = Duration::from_secs(10);

/// Reads certificates again now and then.
pub(super) async fn watch_certificates(tls: Arc<Tls>) {
    let mut told = None;
    loop {
        tokio::time::sleep(LOOK_INTERVAL).await;
        let tls = Arc::clone(&tls);
        if let Ok(trouble) = tokio::task::spawn_blocking(move || reload_certificates(&tls)).await {
            // Once, and not every ten seconds until it is mended.
            if let Some(trouble) = trouble.as_ref().filter(|&now| Some(now) != told.as_ref()) {
                warn!("{trouble}; the certificate that was read before stays in use");
            }
            told = trouble;
        }
    }
}

/// Reads the files; tells why they cannot be used.
fn reload_certificates(tls: &Tls) -> Option<String> {
    match tls.reload() {
        Ok(false) => None,
        Ok(true) => {
            info!("the TLS certificate was read again: new connections have it");
            None
        }
        Err(trouble) => Some(trouble.to_string()),
    }
}
