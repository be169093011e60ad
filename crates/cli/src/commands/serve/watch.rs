//! The data folder, looked at while it is served: what other processes add, and whether it is there.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use chain::BlockNumber;
use store::head::Recovery;
use store::{FileFault, Store, StoreError};
use tracing::{error, info, warn};

use crate::head_text::head_faults;

/// How often the folder is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Sees what imports in other processes add, and says once when the folder or its manifest is gone:
/// what was there is served on. Whoever follows has the folder's only writer, and nobody else changes
/// it.
pub(super) async fn watch_folder(store: Arc<Store>, is_following: bool, mut faults: LoggedFaults) {
    let mut said: Option<String> = None;
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        // Before it is looked at again: what has passed since is told too.
        faults.log_changes(&store);
        let before = store.head_recovery();
        // New blocks of the head are proven meanwhile.
        let looked = tokio::task::block_in_place(|| {
            let looked = if is_following { store.look().map(|()| false) } else { store.refresh() };
            store.look_at_faulty();
            looked
        });
        said = log_look(&store, looked, said.as_deref());
        faults.log_changes(&store);
        let recovery = store.head_recovery();
        if head_faults(&recovery) != head_faults(&before) {
            warn_of_head(&recovery);
        }
    }
}

/// Logs what a look at the folder found, if it is news; the cause that was logged last, if there is one.
fn log_look(store: &Store, looked: Result<bool, StoreError>, said: Option<&str>) -> Option<String> {
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

/// The files that cannot be read, as far as that is said: once for each, however often it is read.
#[derive(Debug, Default)]
pub(super) struct LoggedFaults(BTreeSet<String>);

impl LoggedFaults {
    /// Passes over listed files that cannot be read, and says so: the others are served.
    pub(super) fn pass_over_missing(store: &Store) -> Result<Self, StoreError> {
        store.pass_over_missing()?;
        let mut faults = Self::default();
        faults.log_changes(store);
        Ok(faults)
    }

    /// Logs the files that cannot be read any more, and those that can be read again.
    fn log_changes(&mut self, store: &Store) {
        let faults = store.faulty_files();
        self.0.retain(|file_name| {
            let is_left = faults.iter().any(|fault| fault.file_name == *file_name);
            if !is_left {
                info!(file_name, "the file is served again, as far as it was read");
            }
            is_left
        });
        for FileFault { file_name, text, is_of_log_index, is_far, is_unreached } in faults {
            if self.0.insert(file_name.clone()) {
                if is_far && is_unreached {
                    error!(
                        file_name,
                        fault = text,
                        "a published object could not be read: see whether the source is there, lets you in \
                        and answers requests for ranges"
                    );
                } else if is_far {
                    error!(
                        file_name,
                        fault = text,
                        "a published object cannot be read: `quipu check --at URL` tells what is wrong \
                        there, and `quipu publish` sends what is missing"
                    );
                } else if is_of_log_index {
                    error!(
                        file_name,
                        fault = text,
                        "a file of the log index cannot be read: `quipu index` builds it again"
                    );
                } else {
                    error!(
                        file_name,
                        fault = text,
                        "a file cannot be read: bring it back from a copy, or \
                        run `quipu repair` and import the blocks again"
                    );
                }
            }
        }
    }
}

/// Says what of the head is damaged: what is proven of it is served.
pub(super) fn warn_of_head(recovery: &Recovery) {
    for fault in head_faults(recovery) {
        warn!(fault, "the head is damaged: serving what is proven of it");
    }
}
