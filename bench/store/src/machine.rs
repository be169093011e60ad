//! What the system tells of this process and of itself.

use std::fs;

use anyhow::{Context as _, Result};

/// Memory of this process in bytes: now, and at its highest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// What is in memory now.
    pub resident: u64,
    /// The most that ever was.
    pub peak: u64,
}

/// Memory of this process.
pub fn memory() -> Result<Memory> {
    let status = fs::read_to_string("/proc/self/status").context("/proc/self/status")?;
    let bytes = |name| find_bytes(&status, name).with_context(|| format!("no {name} in status"));
    Ok(Memory { resident: bytes("VmRSS:")?, peak: bytes("VmHWM:")? })
}

/// How many threads wanted a core in the last minute; `None` where nobody tells.
#[must_use]
pub fn load() -> Option<f64> {
    fs::read_to_string("/proc/loadavg").ok()?.split_whitespace().next()?.parse().ok()
}

/// A size by its name, in the form of `/proc/PID/status`.
#[must_use]
pub fn find_bytes(status: &str, name: &str) -> Option<u64> {
    let rest = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kibibytes: u64 = rest.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_found_by_name() {
        let status = "Name:\tbench\nVmHWM:\t    2048 kB\nVmRSS:\t 1024 kB\n";
        assert_eq!(find_bytes(status, "VmHWM:"), Some(2 << 20));
        assert_eq!(find_bytes(status, "VmRSS:"), Some(1 << 20));
        assert_eq!(find_bytes(status, "VmSwap:"), None);
    }
}
