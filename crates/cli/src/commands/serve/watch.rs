//! The data folder, looked at while it is served: what other processes add, and whether it is there.

use std::sync::Arc;
use std::time::Duration;

use chain::BlockNumber;
use store::head::Recovery;
use store::{MissingSegment, Store, StoreError};
use tracing::{error, info, warn};

use crate::head_text::head_faults;

/// How often the folder is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Sees what imports in other processes add, and says once when the folder or its manifest is gone:
/// what was there is served on. Whoever follows has the folder's only writer, and nobody else changes
/// it.
pub(super) async fn watch_folder(store: Arc<Store>, is_following: bool) {
    let mut said: Option<String> = None;
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let before = store.head_recovery();
        // New blocks of the head are proven meanwhile.
        let looked = tokio::task::block_in_place(|| {
            if is_following {
                return store.look().map(|()| false);
            }
            let is_new = store.refresh()?;
            if store.look_for_missing()? {
                info!("a segment is there again");
            }
            Ok(is_new)
        });
        said = tell(&store, looked, said.as_deref());
        let recovery = store.head_recovery();
        if head_faults(&recovery) != head_faults(&before) {
            warn_of_head(&recovery);
        }
    }
}

/// Logs what is news, and tells what has been said.
fn tell(store: &Store, looked: Result<bool, StoreError>, said: Option<&str>) -> Option<String> {
    match looked {
        Ok(is_new) => {
            if said.is_some() {
                info!("the data folder is there again");
            }
            if is_new {
                info!(
                    tip = store.view().tip().map(BlockNumber::get),
                    "the data folder has changed"
                );
            }
            None
        }
        Err(cause) => {
            let cause = cause.to_string();
            if said != Some(cause.as_str()) {
                error!(cause, "cannot look at the data folder; serving what was there");
            }
            Some(cause)
        }
    }
}

/// Passes over listed segments that cannot be read, and says so: the others are served.
pub(super) fn pass_over_missing(store: &Store) -> Result<(), StoreError> {
    for segment in store.pass_over_missing()? {
        let MissingSegment { range, file_name, reason } = segment;
        error!(blocks = %range, file_name, reason, "a segment cannot be read: its blocks are answered \
            as not held; bring the file back from a copy, or run `quipu repair` and import the blocks \
            again");
    }
    Ok(())
}

/// Says what of the head is damaged: what is proven of it is served.
pub(super) fn warn_of_head(recovery: &Recovery) {
    for fault in head_faults(recovery) {
        warn!(fault, "the head is damaged: serving what is proven of it");
    }
}
