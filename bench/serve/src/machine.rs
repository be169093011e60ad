//! What the system tells of a server and of itself.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use bench_store::machine::find_bytes;

/// What a server took so far, its children included: nginx works in children only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// CPU time, its own and the kernel's for it.
    pub cpu: Duration,
    /// Bytes of memory now.
    pub resident: u64,
    /// Bytes of memory at the highest.
    pub peak: u64,
}

/// What the process and its children took.
pub fn usage(id: u32) -> Result<Usage> {
    let mut sum = Usage::default();
    for id in [id].into_iter().chain(children(id)?) {
        let folder = Path::new("/proc").join(id.to_string());
        let stat = fs::read_to_string(folder.join("stat")).context("a server's stat")?;
        let status = fs::read_to_string(folder.join("status")).context("a server's status")?;
        let ticks = ProcStat::parse(&stat).context("a stat that cannot be read")?.ticks;
        sum.cpu = sum.cpu.saturating_add(duration(ticks));
        let bytes = |name| find_bytes(&status, name).with_context(|| format!("no {name}"));
        sum.resident = sum.resident.saturating_add(bytes("VmRSS:")?);
        sum.peak = sum.peak.saturating_add(bytes("VmHWM:")?);
    }
    Ok(sum)
}

/// The machine in one line: cores, memory, system.
#[must_use]
pub fn description() -> String {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let (cpu, memory) = (read("/proc/cpuinfo"), read("/proc/meminfo"));
    let model = find_value(&cpu, "model name").unwrap_or("unknown processor");
    let gibibytes = find_bytes(&memory, "MemTotal:").unwrap_or_default() >> 30;
    let cores = cpu.lines().filter(|line| line.starts_with("processor")).count();
    let kernel = read("/proc/sys/kernel/osrelease");
    format!("{cores} cores of {model}, {gibibytes} GiB of memory, Linux {}", kernel.trim())
}

fn find_value<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(rest.split_once(':')?.1.trim())
}

fn children(parent: u32) -> Result<Vec<u32>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").context("/proc")? {
        let name = entry?.file_name();
        let Some(id) = name.to_str().and_then(|name| name.parse().ok()) else { continue };
        // A process may end between the list and the look.
        let Ok(stat) = fs::read_to_string(format!("/proc/{id}/stat")) else { continue };
        if ProcStat::parse(&stat).is_some_and(|stat| stat.parent == parent) {
            found.push(id);
        }
    }
    Ok(found)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ProcStat {
    parent: u32,
    ticks: u64,
}

impl ProcStat {
    /// proc(5): the name is in brackets and may hold brackets and spaces itself; after it come state,
    /// parent, and as the 12th and 13th the times of the process, all its threads included.
    fn parse(stat: &str) -> Option<Self> {
        let (_, rest) = stat.rsplit_once(')')?;
        let words: Vec<&str> = rest.split_whitespace().collect();
        let number = |at: usize| words.get(at)?.parse::<u64>().ok();
        let ticks = number(11)?.checked_add(number(12)?)?;
        Some(Self { parent: words.get(1)?.parse().ok()?, ticks })
    }
}

fn duration(ticks: u64) -> Duration {
    let per_second = rustix::param::clock_ticks_per_second().max(1);
    Duration::from_micros(ticks.saturating_mul(1_000_000) / per_second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stat_is_read_behind_the_name() {
        let stat = "42 (a ) b) S 7 42 42 0 -1 4194560 1 2 3 4 150 50 9 9 20 0 3 0 100 1 2";
        assert_eq!(ProcStat::parse(stat), Some(ProcStat { parent: 7, ticks: 200 }));
        assert_eq!(ProcStat::parse("42 (a) S 7"), None);
    }

    #[test]
    fn this_process_has_taken_something() {
        let usage = usage(std::process::id()).unwrap();
        assert!(usage.resident > 1 << 20);
        assert!(description().contains(" GiB of memory, Linux "));
    }
}
