//! Being told to stop, for work that lasts.

use tokio::sync::watch;

/// Waits to be told to stop; for ever, if nobody ever tells. Where whoever could tell is gone, that is an
/// end too.
pub(crate) async fn until_stopped(stop: Option<watch::Receiver<bool>>) {
    match stop {
        Some(mut stop) => drop(stop.wait_for(|is_stopped| *is_stopped).await),
        None => std::future::pending().await,
    }
}

/// Whether it was told to stop.
pub(crate) fn is_stopped(stop: Option<&watch::Receiver<bool>>) -> bool {
    stop.is_some_and(|stop| *stop.borrow() || stop.has_changed().is_err())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_stop_is_seen_when_it_is_told_and_when_nobody_can_tell_it_any_more() {
        let (tell, stop) = watch::channel(false);
        assert!(!is_stopped(None) && !is_stopped(Some(&stop)));
        let hour = std::time::Duration::from_hours(1);
        let wait = async |stop| tokio::time::timeout(hour, until_stopped(stop)).await.is_ok();
        assert!(!wait(None).await && !wait(Some(stop.clone())).await);
        tell.send_replace(true);
        assert!(is_stopped(Some(&stop)) && wait(Some(stop)).await);
        let (tell, stop) = watch::channel(false);
        drop(tell);
        assert!(is_stopped(Some(&stop)) && wait(Some(stop)).await);
    }
}
