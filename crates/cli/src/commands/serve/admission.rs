//! Who may ask a server: rules that are put in force, at its start and whenever they are read again.

use std::net::SocketAddr;

use rpc::http::Server;
use rpc::{Admission, AdmissionError, AdmissionSettings};
use tracing::warn;

/// Who can reach a server.
#[derive(Clone, Copy, Debug)]
pub(super) struct ServerReach {
    /// Where it listens.
    pub(super) address: SocketAddr,
    /// Whether only clients with a certificate are let in.
    pub(super) needs_certificate: bool,
    /// Whether metrics are asked for there too.
    pub(super) shows_metrics: bool,
}

/// Puts rules in force, and warns if nobody may ask, or if other machines may without a key and could not
/// before; tells whether they may. If the rules are refused, those before stay.
pub(super) fn put_in_force(
    server: &Server,
    settings: AdmissionSettings,
    reach: ServerReach,
    was_open: bool,
) -> Result<bool, AdmissionError> {
    let admission = Admission::new(settings);
    let (needs_key, knows_key) = (admission.needs_key(), admission.knows_key());
    server.set_admission(admission)?;
    let ServerReach { address, needs_certificate, shows_metrics } = reach;
    let is_local = address.ip().to_canonical().is_loopback();
    if needs_key && !knows_key {
        warn!("every request needs a key, and there is none: nobody is let in");
    }
    let is_open = !needs_key && !needs_certificate && !is_local;
    if is_open && !was_open {
        let pages = if shows_metrics {
            "/stat.json, and /metrics, to which --metrics-listen gives an address of its own"
        } else {
            "/stat.json"
        };
        warn!(
            %address,
            "whoever reaches this address is answered, without a key: `quipu key new` makes one \
             (docs/admission.md). That includes {pages}"
        );
    }
    Ok(is_open)
}
