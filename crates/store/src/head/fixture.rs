//! Heads for tests.

use testing::blocks::spec;

use super::*;

/// Opens the head of a disk; the limits are the usual ones.
pub(crate) fn open(disk: &(impl Disk + Clone + 'static)) -> Result<(Head, Recovery), HeadError> {
    let disk = Arc::new(disk.clone());
    Head::open(disk, &spec(), &Anchors::none(), HeadLimits::default())
}
