//! Blob parameters in a node's `eth_config` (EIP-7910).

use alloy_eips::eip7840::BlobParams;
use serde::Deserialize;
use serde_json::Value;

/// The contract that Osaka brought, and with it another rule for the price of blobs.
const OSAKA_CONTRACT: &str = "P256VERIFY";

#[derive(Debug, Default, Deserialize)]
struct ConfigJson {
    current: Option<ForkJson>,
    next: Option<ForkJson>,
    last: Option<ForkJson>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ForkJson {
    activation_time: u64,
    blob_schedule: Option<BlobScheduleJson>,
    #[serde(default)]
    precompiles: Value,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct BlobScheduleJson {
    base_fee_update_fraction: u64,
    max: u64,
    target: u64,
}

impl ForkJson {
    /// From when on which parameters hold. A price that never changes is none.
    fn step(self) -> Option<(u64, BlobParams)> {
        let schedule = self.blob_schedule.filter(|it| it.base_fee_update_fraction > 0)?;
        // Drafts of the EIP had names and addresses the other way round.
        let is_osaka = self.precompiles.to_string().contains(OSAKA_CONTRACT);
        let rules = if is_osaka { BlobParams::osaka() } else { BlobParams::prague() };
        let params = BlobParams {
            target_blob_count: schedule.target,
            max_blob_count: schedule.max,
            update_fraction: schedule.base_fee_update_fraction.into(),
            max_blobs_per_tx: schedule.max,
            ..rules
        };
        Some((self.activation_time, params))
    }
}

/// The blob parameters of an answer, each with the time from which on it holds, in rising order; none
/// if it tells none.
pub(super) fn blob_schedule_of(text: &[u8]) -> Vec<(u64, BlobParams)> {
    let ConfigJson { current, next, last } = serde_json::from_slice(text).unwrap_or_default();
    let forks = [current, next, last].into_iter().flatten();
    let mut scheduled: Vec<(u64, BlobParams)> = forks.filter_map(ForkJson::step).collect();
    scheduled.sort_by_key(|(from, _)| *from);
    scheduled.dedup_by_key(|(from, _)| *from);
    scheduled
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fork(time: u64, fraction: u64, precompiles: &str) -> String {
        format!(
            r#"{{"activationTime":{time},"blobSchedule":{{"baseFeeUpdateFraction":{fraction},
            "max":9,"target":6}},"chainId":"0x7","forkId":"0x00000000","precompiles":{precompiles}}}"#
        )
    }

    #[test]
    fn a_schedule_is_told_in_rising_order_with_the_rules_of_its_forks() {
        let prague = fork(100, 5_007_716, r#"{"ECREC":"0x01"}"#);
        let osaka = fork(200, 8_346_193, r#"{"P256VERIFY":"0x0100"}"#);
        let text = format!(r#"{{"current":{prague},"next":{osaka},"last":{osaka}}}"#);
        let told = blob_schedule_of(text.as_bytes());
        let expected = [
            (100, BlobParams::prague()),
            (200, BlobParams { update_fraction: 8_346_193, ..BlobParams::osaka() }),
        ]
        .map(|(from, params)| (from, params.with_max_blobs_per_tx(9)));
        assert_eq!(told, expected);
    }

    #[test]
    fn what_is_no_schedule_is_none() {
        let flat = fork(100, 0, "{}");
        for text in [
            "null",
            "{",
            "[]",
            r#"{"current":null,"next":null,"last":null}"#,
            r#"{"current":{"activationTime":5,"blobSchedule":null}}"#,
            &format!(r#"{{"current":{flat}}}"#),
        ] {
            assert!(blob_schedule_of(text.as_bytes()).is_empty(), "{text}");
        }
    }
}
