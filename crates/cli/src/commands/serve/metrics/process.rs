//! What the system says of this process: memory, processor time, descriptors.

use rustix::param::{clock_ticks_per_second, page_size};
use rustix::process::{Resource, getrlimit};

use super::super::live_stat::float;
use super::exposition::Exposition;
use super::table::Metric;

/// Fields of /proc/self/stat behind the name of the program, counted from its state (proc(5), 3).
const USER_TICKS: usize = 11;
const SYSTEM_TICKS: usize = 12;
const VIRTUAL_BYTES: usize = 20;
const RESIDENT_PAGES: usize = 21;

/// Adds what is known of the process. It waits for the system: not for a thread that serves.
pub(super) fn add(page: &mut Exposition) {
    if let Some(stat) = std::fs::read_to_string("/proc/self/stat").ok().as_deref().and_then(parse) {
        let ticks = float(clock_ticks_per_second().max(1));
        page.count_parts(Metric::ProcessCpu, &[], float(stat.ticks) / ticks);
        page.gauge(Metric::ProcessVirtual, &[], stat.virtual_bytes);
        let page_bytes = u64::try_from(page_size()).unwrap_or_default();
        let resident = stat.resident_pages.saturating_mul(page_bytes);
        page.gauge(Metric::ProcessResident, &[], resident);
    }
    if let Ok(entries) = std::fs::read_dir("/proc/self/fd") {
        // Without the one that lists them.
        let count = u64::try_from(entries.count()).unwrap_or(u64::MAX).saturating_sub(1);
        page.gauge(Metric::ProcessDescriptors, &[], count);
    }
    if let Some(limit) = getrlimit(Resource::Nofile).current {
        page.gauge(Metric::ProcessDescriptorsMax, &[], limit);
    }
}

#[derive(Debug, PartialEq, Eq)]
struct ProcessStat {
    ticks: u64,
    virtual_bytes: u64,
    resident_pages: u64,
}

fn parse(stat: &str) -> Option<ProcessStat> {
    // The name is in parentheses, and may have some itself.
    let (_, fields) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let number = |place: usize| fields.get(place)?.parse::<u64>().ok();
    Some(ProcessStat {
        ticks: number(USER_TICKS)?.saturating_add(number(SYSTEM_TICKS)?),
        virtual_bytes: number(VIRTUAL_BYTES)?,
        resident_pages: number(RESIDENT_PAGES)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_the_system_is_read_whatever_the_program_is_called() {
        let line = "7 (a) b (c) S 1 7 7 0 -1 4194560 2049 0 0 0 31 11 0 0 20 0 9 0 5123 \
                    268435456 4096 18446744073709551615 1 1";
        let expected = ProcessStat { ticks: 42, virtual_bytes: 268_435_456, resident_pages: 4096 };
        assert_eq!(parse(line), Some(expected));
        assert_eq!(parse("7 (a) S 1"), None);
    }
}
