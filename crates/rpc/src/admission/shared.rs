//! The rules in force, which can be replaced at any time.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwapOption;

use super::{Admission, AdmissionError, Caller, CallerHead, Denial, KeyHash};

/// The number of rules that let everybody in.
const OPEN: u64 = 0;

/// Rules that requests read and an operator replaces.
#[derive(Debug, Default)]
pub(crate) struct SharedAdmission {
    /// Of the rules in force; another one for each.
    generation: AtomicU64,
    current: ArcSwapOption<Admission>,
    /// The last number, for whoever replaces them.
    replacing: Mutex<u64>,
}

impl SharedAdmission {
    /// Replaces the rules; requests that begin from now on are let in by these.
    pub(crate) fn replace(&self, mut admission: Admission) -> Result<(), AdmissionError> {
        let mut last = self.replacing.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(previous) = &*self.current.load() {
            admission.check_replacing(previous)?;
            admission.continue_from(previous);
        }
        let is_open = admission.is_open();
        // Before their number: whoever reads it finds these rules, or newer ones.
        self.current.store(Some(Arc::new(admission)));
        *last = last.saturating_add(1);
        self.generation.store(if is_open { OPEN } else { *last }, Ordering::Release);
        Ok(())
    }

    /// The number of the rules in force; none if everybody is let in.
    pub(super) fn generation(&self) -> Option<u64> {
        Some(self.generation.load(Ordering::Acquire)).filter(|it| *it != OPEN)
    }

    /// Admits a caller by the hash of its key.
    pub(super) fn admit(
        &self,
        key: Option<KeyHash>,
        client: IpAddr,
    ) -> Result<Option<Arc<Caller>>, Denial> {
        let current = self.current.load();
        current.as_ref().map(|admission| admission.admit(key, client)).transpose()
    }

    /// Whether only callers with a key are admitted.
    pub(crate) fn needs_key(&self) -> bool {
        self.current.load().as_ref().is_some_and(|admission| admission.needs_key())
    }

    /// Whether there is a key that lets a caller in.
    pub(crate) fn knows_key(&self) -> bool {
        self.current.load().as_ref().is_some_and(|admission| admission.knows_key())
    }

    /// Counts a request that was not let in; tells why it is refused.
    pub(super) fn count_denied(&self, denial: Denial, client: IpAddr) -> Denial {
        let current = self.current.load();
        let counted = current.as_ref().map_or(Ok(()), |admission| admission.count_denied(client));
        counted.map_or_else(Denial::RateLimited, |()| denial)
    }

    /// The address of whoever sent a request over a connection of `peer`.
    pub(super) fn client_address(&self, peer: IpAddr, head: &CallerHead<'_>) -> IpAddr {
        let current = self.current.load();
        current.as_ref().map_or(peer, |admission| admission.client_address(peer, head))
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::num::NonZeroU32;

    use super::*;
    use crate::admission::{AdmissionSettings, ApiKey, KeyRequirement, Rates};

    const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

    fn per_second(calls: u32) -> Rates {
        Rates { calls: NonZeroU32::new(calls), weight: None }
    }

    fn rules(key_rate: u32, address_rate: u32) -> Admission {
        let (name, rates) = ("a".to_owned(), per_second(key_rate));
        let key = ApiKey { name, hash: KeyHash::of("a"), methods: None, rates };
        let per_address = per_second(address_rate);
        let keys = vec![key];
        Admission::new(AdmissionSettings { keys, per_address, ..AdmissionSettings::default() })
    }

    /// Whether a call is let in and counted.
    fn is_taken(shared: &SharedAdmission) -> bool {
        let caller = shared.admit(Some(KeyHash::of("a")), CLIENT).unwrap().unwrap();
        caller.take(1).is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn replaced_rules_go_on_counting_where_the_rates_are_the_same() {
        let shared = SharedAdmission::default();
        assert_eq!(shared.generation(), None);
        for (key_rate, address_rate) in [(1, 0), (0, 1)] {
            shared.replace(rules(key_rate, address_rate)).unwrap();
            let generation = shared.generation();
            assert!(generation.is_some() && is_taken(&shared) && !is_taken(&shared));
            shared.replace(rules(key_rate, address_rate)).unwrap();
            assert!(shared.generation() > generation && !is_taken(&shared));
            shared.replace(rules(key_rate * 2, address_rate * 2)).unwrap();
            assert!(is_taken(&shared) && is_taken(&shared) && !is_taken(&shared));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_not_let_in_counts_for_its_address_only() {
        let shared = SharedAdmission::default();
        shared.replace(rules(0, 1)).unwrap();
        let wrong = || shared.admit(Some(KeyHash::of("b")), CLIENT).unwrap_err();
        assert_eq!(shared.count_denied(wrong(), CLIENT), Denial::UnknownKey);
        assert!(matches!(shared.count_denied(wrong(), CLIENT), Denial::RateLimited(_)));
        assert!(!is_taken(&shared));
        assert_eq!(shared.admit(None, CLIENT).unwrap_err(), Denial::NoKey);
    }

    #[test]
    fn the_last_key_is_withdrawn_only_if_it_is_said_who_may_ask_then() {
        let without_keys = |key_requirement| {
            Admission::new(AdmissionSettings { key_requirement, ..AdmissionSettings::default() })
        };
        let shared = SharedAdmission::default();
        let ask = |key: Option<&str>| shared.admit(key.map(KeyHash::of), CLIENT).err();
        // One that never had keys may go on without.
        shared.replace(without_keys(KeyRequirement::IfAnyKnown)).unwrap();
        shared.replace(without_keys(KeyRequirement::IfAnyKnown)).unwrap();
        shared.replace(rules(0, 0)).unwrap();
        let refused = shared.replace(without_keys(KeyRequirement::IfAnyKnown));
        assert_eq!(refused, Err(AdmissionError::WouldOpen));
        assert_eq!((ask(None), ask(Some("a"))), (Some(Denial::NoKey), None));
        shared.replace(without_keys(KeyRequirement::Always)).unwrap();
        assert!(shared.needs_key());
        assert_eq!((ask(None), ask(Some("a"))), (Some(Denial::NoKey), Some(Denial::UnknownKey)));
        let refused = shared.replace(without_keys(KeyRequirement::IfAnyKnown));
        assert_eq!(refused, Err(AdmissionError::WouldOpen));
        shared.replace(without_keys(KeyRequirement::Never)).unwrap();
        assert!(!shared.needs_key() && shared.generation().is_none());
        assert_eq!((ask(None), ask(Some("a"))), (None, None));
    }

    #[tokio::test(start_paused = true)]
    async fn where_no_key_is_needed_one_that_is_sent_counts() {
        let shared = SharedAdmission::default();
        let optional = Admission { key_requirement: KeyRequirement::Never, ..rules(1, 0) };
        shared.replace(optional).unwrap();
        assert!(shared.generation().is_some() && is_taken(&shared) && !is_taken(&shared));
        let anybody = shared.admit(None, CLIENT).unwrap().unwrap();
        assert!((0..10).all(|_| anybody.take(1).is_ok()));
        let wrong = shared.admit(Some(KeyHash::of("b")), CLIENT);
        assert_eq!(wrong.unwrap_err(), Denial::UnknownKey);
    }
}
