//! Hints that follow from an error, whichever command it ended.

use std::io;
use std::net::SocketAddr;

use anyhow::anyhow;
use rpc::http::ServeError;
use store::StoreError;
use store::disk::DiskError;
use store::head::HeadError;
use store::lock::LockError;
use store::manifest::ManifestError;

use crate::Failure;

/// What to do about a failure of the system, if its kind says that.
pub(crate) fn system_hint(kind: io::ErrorKind) -> Option<&'static str> {
    if matches!(kind, io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) {
        Some("the disk is full: free space and run the same command again; what is held stays")
    } else if kind == io::ErrorKind::PermissionDenied {
        Some("this user has no permission: check owner and mode of the path with `ls -ld`")
    } else if kind == io::ErrorKind::ReadOnlyFilesystem {
        Some("the file system is read-only: give a path on another one, or remount it")
    } else {
        None
    }
}

/// The same of a file of a data folder.
pub(crate) fn disk_hint(error: &DiskError) -> &'static str {
    if error.is_of_file() {
        return "the data folder is damaged: `quipu doctor` shows what is wrong and what to do";
    }
    error
        .system_kind()
        .and_then(system_hint)
        .unwrap_or("check the disk and run the same command again; what is held stays")
}

/// What to do about a data folder that fails.
pub(crate) fn folder_hint(error: &StoreError) -> &'static str {
    match error {
        StoreError::Disk(error)
        | StoreError::Manifest(ManifestError::Disk(error))
        | StoreError::Lock(LockError::Disk(error))
        | StoreError::Head(HeadError::Disk(error)) => disk_hint(error),
        StoreError::Lock(LockError::Held { .. }) => {
            "one process writes at a time: wait for the other, or give another --data-dir"
        }
        StoreError::Changing | StoreError::Outdated { .. } => {
            "another process writes to it: run the same command again"
        }
        StoreError::Stopped | StoreError::WriterGone | StoreError::NotHeld { .. } => {
            "run the same command again; what is held stays"
        }
        StoreError::ManifestMissing { .. }
        | StoreError::HeadLost { .. }
        | StoreError::GenesisFile { .. }
        | StoreError::Unlinked { .. }
        | StoreError::HasLogIndex { .. }
        | StoreError::Head(_)
        | StoreError::NoHead
        | StoreError::HeadInUse
        | StoreError::Manifest(ManifestError::Corrupt { .. }) => "nothing was changed",
        StoreError::FolderGone { .. } => "bring it back and run the same command again",
        StoreError::Manifest(ManifestError::TooLarge { .. })
        | StoreError::Segment { .. }
        | StoreError::Index { .. }
        | StoreError::NotListed { .. }
        | StoreError::Differs { .. }
        | StoreError::Block { .. }
        | StoreError::Reader(_)
        | StoreError::NothingProven { .. }
        | StoreError::NoSegment { .. }
        | StoreError::Seam { .. }
        | StoreError::Write { .. }
        | StoreError::Build(_)
        | StoreError::Merge { .. }
        | StoreError::Conflict(_) => {
            "the data folder is damaged: `quipu check` names the files; bring them back from a copy, \
             or import again elsewhere"
        }
    }
}

/// Why nothing can be served at the address of a flag, and what to do about it.
pub(crate) fn listen_failure(error: &ServeError, flag: &str) -> Failure {
    let (ip, kind) = (error.address.ip(), error.cause.kind());
    let hint = if kind == io::ErrorKind::AddrInUse {
        let free = SocketAddr::new(ip, 0);
        format!("another program listens there; {flag} {free} takes a free port")
    } else if kind == io::ErrorKind::AddrNotAvailable {
        format!(
            "this machine has no address {ip}; use 127.0.0.1, or 0.0.0.0 for all interfaces, with \
             {flag}"
        )
    } else if kind == io::ErrorKind::PermissionDenied {
        "ports below 1024 need CAP_NET_BIND_SERVICE, or a supervisor that hands its socket over, as \
         packaging/systemd/quipu.socket does"
            .to_owned()
    } else {
        return Failure::Work(anyhow!("{flag}: {error}"));
    };
    Failure::Work(anyhow!("{error}\n  hint: {hint}"))
}

/// The hint for an error that ends a command, unless its text has one.
pub(crate) fn find_hint(error: &anyhow::Error) -> Option<&'static str> {
    if format!("{error:#}").contains("hint: ") {
        return None;
    }
    if let Some(error) = error.downcast_ref::<StoreError>()
        && matches!(
            error,
            StoreError::Disk(_)
                | StoreError::Manifest(_)
                | StoreError::Lock(_)
                | StoreError::Head(HeadError::Disk(_))
        )
    {
        return Some(folder_hint(error));
    }
    if let Some(error) = error.downcast_ref::<DiskError>() {
        return Some(disk_hint(error));
    }
    let system = error.chain().find_map(|cause| cause.downcast_ref::<io::Error>());
    system.and_then(|error| system_hint(error.kind()))
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;

    use super::*;

    fn check(error: impl Into<anyhow::Error>, expected: &str) {
        let error = error.into();
        let found = find_hint(&error).unwrap_or_default();
        assert!(found.contains(expected), "{error:#}: {found}");
    }

    #[test]
    fn what_the_system_says_has_its_own_hint_wherever_it_is_said() {
        let kinds = [
            (io::ErrorKind::StorageFull, "disk is full"),
            (io::ErrorKind::PermissionDenied, "no permission"),
            (io::ErrorKind::ReadOnlyFilesystem, "read-only"),
        ];
        for (kind, expected) in kinds {
            let disk = || DiskError::Failed {
                place: "data/lock".to_owned(),
                operation: store::disk::Operation::Open,
                cause: kind.into(),
            };
            check(io::Error::from(kind), expected);
            check(anyhow!(io::Error::from(kind)).context("here"), expected);
            check(disk(), expected);
            check(StoreError::Disk(disk()), expected);
            let of_head = StoreError::Head(HeadError::Disk(disk()));
            assert!(folder_hint(&of_head).contains(expected), "{}", folder_hint(&of_head));
            check(of_head, expected);
            let named: anyhow::Result<()> = Err(disk()).context("here");
            check(named.unwrap_err(), expected);
        }
        // Nothing is wrong with the folder.
        let number = chain::BlockNumber(7);
        let range = chain::BlockRange::from_count(number, 1).unwrap();
        for error in [
            StoreError::Head(HeadError::Unknown { hash: alloy_primitives::B256::ZERO }),
            StoreError::NoHead,
            StoreError::HeadInUse,
            StoreError::Stopped,
            StoreError::WriterGone,
            StoreError::NotHeld { number },
            StoreError::Outdated { range },
        ] {
            assert!(!folder_hint(&error).contains("damaged"), "{error}");
        }
        assert_eq!(find_hint(&anyhow!("full\n  hint: free space")), None);
        assert_eq!(find_hint(&io::Error::from(io::ErrorKind::Other).into()), None);
    }
}
