//! Memory of the server, as the system tells it.

use std::fs;

use anyhow::{Context as _, Result};
use bench_store::machine::find_bytes;

/// Lets the kernel forget the most that there ever was: proc(5), `clear_refs`.
const FORGET_PEAK: &str = "5";

/// Bytes of memory that a process has now.
pub(crate) fn resident_bytes(id: u32) -> Result<u64> {
    read(id, "VmRSS:")
}

/// The most that it had since [`forget_peak`].
pub(crate) fn peak_bytes(id: u32) -> Result<u64> {
    read(id, "VmHWM:")
}

/// From now on only what comes counts as the most.
pub(crate) fn forget_peak(id: u32) -> Result<()> {
    let path = format!("/proc/{id}/clear_refs");
    fs::write(&path, FORGET_PEAK).context(path)
}

fn read(id: u32, name: &str) -> Result<u64> {
    let path = format!("/proc/{id}/status");
    let status = fs::read_to_string(&path).with_context(|| path.clone())?;
    find_bytes(&status, name).with_context(|| format!("no {name} in {path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peak_that_is_forgotten_does_not_come_back() {
        let id = std::process::id();
        let large = vec![1_u8; 64 << 20];
        let peak = peak_bytes(id).unwrap();
        assert!(resident_bytes(id).unwrap() > 64 << 20);
        drop(std::hint::black_box(large));
        forget_peak(id).unwrap();
        assert!(peak_bytes(id).unwrap() < peak);
    }
}
