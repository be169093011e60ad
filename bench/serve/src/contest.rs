//! Contestants taking turns under the same load.

use std::path::Path;

use anyhow::{Context as _, Result};

use crate::load::{Load, LoadOutcome, Target, h2load, oha, wrk};
use crate::machine::usage;

/// A server in a contest.
#[derive(Clone, Debug)]
pub struct Contestant {
    /// What the table calls it.
    pub name: String,
    /// Its process.
    pub id: u32,
    /// Where it is asked.
    pub target: Target,
}

/// Who sends the requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Driver {
    /// As many as can be.
    Wrk,
    /// As many as can be over HTTP/2.
    H2load,
    /// So many in a second.
    Oha(u32),
}

/// One contestant in one round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// What the load generator saw.
    pub outcome: LoadOutcome,
    /// Microseconds of the server's CPU time for each request.
    pub cpu: f64,
    /// Bytes of memory at the end of the round.
    pub resident: u64,
}

/// All rounds: of every contestant one [`Measured`] a round.
#[derive(Clone, Debug)]
pub struct Contest {
    /// Their names.
    pub names: Vec<String>,
    rounds: Vec<Vec<Measured>>,
}

/// How a contest is held.
#[derive(Clone, Debug)]
pub struct Rules<'a> {
    /// Who sends the requests.
    pub driver: Driver,
    /// What is sent.
    pub load: Load,
    /// How many rounds count.
    pub rounds: usize,
    /// For what a load generator needs.
    pub folder: &'a Path,
}

/// One of a contest, and what it is asked.
#[derive(Clone, Copy, Debug)]
pub struct ContestEntry<'a> {
    /// Who.
    pub contestant: &'a Contestant,
    /// What, by whom and where to; its rounds do not count here.
    pub rules: &'a Rules<'a>,
}

/// Holds a contest: one round that does not count, then those that do. `before_each` is done before
/// every turn, and told whose it is. Who begins changes from round to round.
pub fn take_turns(
    entries: &[ContestEntry<'_>],
    rounds: usize,
    mut before_each: impl FnMut(usize) -> Result<()>,
) -> Result<Contest> {
    for (place, entry) in entries.iter().enumerate() {
        before_each(place)?;
        entry.rules.measure(entry.contestant)?;
    }
    let mut done = Vec::new();
    for round in 0..rounds {
        let mut turns: Vec<(usize, Measured)> = Vec::new();
        let mut order: Vec<(usize, &ContestEntry<'_>)> = entries.iter().enumerate().collect();
        order.rotate_left(round % entries.len().max(1));
        for (place, entry) in order {
            before_each(place)?;
            turns.push((place, entry.rules.measure(entry.contestant)?));
        }
        turns.sort_by_key(|(place, _)| *place);
        done.push(turns.into_iter().map(|(_, measured)| measured).collect());
    }
    let names = entries.iter().map(|entry| entry.contestant.name.clone()).collect();
    Ok(Contest { names, rounds: done })
}

impl Rules<'_> {
    /// Holds a contest in which all are asked the same.
    pub fn hold(
        &self,
        contestants: &[Contestant],
        before_each: impl FnMut(usize) -> Result<()>,
    ) -> Result<Contest> {
        let entry = |contestant| ContestEntry { contestant, rules: self };
        let entries: Vec<ContestEntry<'_>> = contestants.iter().map(entry).collect();
        take_turns(&entries, self.rounds, before_each)
    }

    /// One turn of one contestant.
    #[expect(clippy::cast_precision_loss, clippy::as_conversions, reason = "shown with few digits")]
    pub fn measure(&self, contestant: &Contestant) -> Result<Measured> {
        let before = usage(contestant.id).with_context(|| contestant.name.clone())?;
        let outcome = match self.driver {
            Driver::Wrk => wrk::run(&self.load, &contestant.target, self.folder)?,
            Driver::H2load => h2load::run(&self.load, &contestant.target)?,
            Driver::Oha(rate) => oha::run(&self.load, &contestant.target, rate)?,
        };
        let after = usage(contestant.id).with_context(|| contestant.name.clone())?;
        let micros = after.cpu.saturating_sub(before.cpu).as_secs_f64() * 1e6;
        let cpu = micros / outcome.requests.max(1) as f64;
        Ok(Measured { outcome, cpu, resident: after.resident })
    }
}

impl Contest {
    /// The median of what one contestant reached.
    #[must_use]
    pub fn median(&self, place: usize, value: impl Fn(&Measured) -> f64) -> f64 {
        median(self.rounds.iter().filter_map(|round| round.get(place)).map(value).collect())
    }

    /// The first contestant as a share of another: every round by itself.
    #[must_use]
    pub fn ratios(&self, place: usize, value: impl Fn(&Measured) -> f64) -> Vec<f64> {
        let of_round =
            |round: &Vec<Measured>| Some(value(round.first()?) / value(round.get(place)?));
        self.rounds.iter().filter_map(of_round).collect()
    }

    /// The same, and the median of it.
    #[must_use]
    pub fn ratio(&self, place: usize, value: impl Fn(&Measured) -> f64) -> f64 {
        median(self.ratios(place, value))
    }
}

/// The middle one; of two in the middle the mean.
#[must_use]
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    let upper = values.get(half).copied().unwrap_or(f64::NAN);
    if values.len() % 2 == 1 {
        return upper;
    }
    let lower = half.checked_sub(1).and_then(|at| values.get(at)).copied().unwrap_or(f64::NAN);
    f64::midpoint(lower, upper)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(per_second: f64) -> Measured {
        let outcome = LoadOutcome { requests: 1, per_second, bytes: 1.0, p50: 1.0, p99: 1.0 };
        Measured { outcome, cpu: 1.0, resident: 1 }
    }

    #[test]
    fn every_round_is_compared_by_itself() {
        // A machine that slows down by ten in the middle does not change the ratio.
        let rounds = [(100.0, 200.0), (10.0, 20.0), (9.0, 10.0)];
        let contest = Contest {
            names: vec!["one".into(), "other".into()],
            rounds: rounds.map(|(one, other)| vec![measured(one), measured(other)]).to_vec(),
        };
        let per_second = |it: &Measured| it.outcome.per_second;
        assert_eq!(contest.ratios(1, per_second), [0.5, 0.5, 0.9]);
        assert!((contest.ratio(1, per_second) - 0.5).abs() < 1e-9);
        assert!((contest.median(1, per_second) - 20.0).abs() < 1e-9);
    }

    #[test]
    fn the_median_of_an_even_number_is_between_two() {
        assert!((median(vec![4.0, 1.0, 2.0, 3.0]) - 2.5).abs() < 1e-9);
        assert!((median(vec![7.0]) - 7.0).abs() < 1e-9);
        assert!(median(Vec::new()).is_nan());
    }
}
