//! A page that is made by one at a time and kept for a while (single flight).

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::Mutex;
use tokio::task::JoinError;
use tokio::time::Instant;

/// The newest page, and what is kept from one making to the next.
#[derive(Debug)]
pub(super) struct KeptPage<T, C> {
    runtime: Handle,
    state: Arc<Mutex<KeptPageState<T, C>>>,
}

#[derive(Debug)]
struct KeptPageState<T, C> {
    /// With the time when it was made.
    newest: Option<(Instant, T)>,
    cache: C,
}

impl<T: Clone + Send + 'static, C: Default + Send + 'static> KeptPage<T, C> {
    pub(super) fn new(runtime: Handle) -> Self {
        let state = KeptPageState { newest: None, cache: C::default() };
        Self { runtime, state: Arc::new(Mutex::new(state)) }
    }

    /// The newest page, if it is good at its age, or a new one. It is made to its end though the client
    /// that asked has left, or many who leave would have many made at once.
    pub(super) async fn get<M: FnOnce(&mut C) -> T + Send + 'static>(
        &self,
        is_good: impl FnOnce(&T, Duration) -> bool,
        making: impl Future<Output = M>,
    ) -> Result<T, JoinError> {
        let mut state = Arc::clone(&self.state).lock_owned().await;
        if let Some((at, page)) = &state.newest
            && is_good(page, at.elapsed())
        {
            return Ok(page.clone());
        }
        let make = making.await;
        let working = self.runtime.spawn_blocking(move || {
            let page = make(&mut state.cache);
            state.newest = Some((Instant::now(), page.clone()));
            page
        });
        working.await
    }
}

#[cfg(test)]
mod tests {
    use tokio::runtime::{Builder, Runtime};

    use super::*;

    fn runtime() -> Runtime {
        Builder::new_current_thread().enable_all().build().unwrap()
    }

    /// Seen: every request for metrics had a page made, at the same time as all others.
    #[test]
    fn those_who_ask_at_the_same_time_get_the_same_page() {
        let runtime = runtime();
        let page = KeptPage::<u64, u64>::new(runtime.handle().clone());
        let get = |is_good: bool| {
            let making = std::future::ready(|count: &mut u64| {
                *count += 1;
                *count
            });
            page.get(move |_, _| is_good, making)
        };
        let found = runtime.block_on(async { tokio::join!(get(true), get(true), get(true)) });
        assert_eq!((found.0.unwrap(), found.1.unwrap(), found.2.unwrap()), (1, 1, 1));
        assert_eq!(runtime.block_on(get(false)).unwrap(), 2);
        assert_eq!(runtime.block_on(get(true)).unwrap(), 2);
    }

    #[test]
    fn a_panic_leaves_no_page_and_the_next_one_is_made() {
        let runtime = runtime();
        let page = KeptPage::<u64, ()>::new(runtime.handle().clone());
        let get = |is_broken: bool| {
            let making = std::future::ready(move |&mut (): &mut ()| {
                assert!(!is_broken, "as it is told to");
                7
            });
            runtime.block_on(page.get(|_, _| true, making))
        };
        assert!(get(true).unwrap_err().is_panic());
        assert_eq!(get(false).unwrap(), 7);
    }
}
