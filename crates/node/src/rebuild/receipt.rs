//! A receipt as JSON has it.

use alloy_consensus::{Eip658Value, Receipt as Fields, TxType};
use alloy_primitives::{Address, B256, Bytes, Log};
use chain::Receipt;
use serde::Deserialize;

use super::RebuildFault;
use super::quantity::Quantity;

/// What consensus commits to of a receipt.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReceiptJson {
    r#type: Option<Quantity<u64>>,
    status: Option<Quantity<u64>>,
    root: Option<Bytes>,
    cumulative_gas_used: Quantity<u64>,
    logs: Vec<LogJson>,
}

#[derive(Debug, Deserialize)]
struct LogJson {
    address: Address,
    topics: Vec<B256>,
    data: Bytes,
}

impl ReceiptJson {
    pub(super) fn into_receipt(
        self,
        index: usize,
        is_byzantium: Option<bool>,
    ) -> Result<Receipt, RebuildFault> {
        let fault = |what| RebuildFault::Invalid(format!("receipt {index}: {what}"));
        let found = self.r#type.map_or(0, |found| found.0);
        let tx_type = u8::try_from(found).ok().and_then(|found| TxType::try_from(found).ok());
        let tx_type = tx_type.ok_or(RebuildFault::UnknownType { item: "receipt", index, found })?;
        let root = self.root.filter(|root| !root.is_empty() && is_byzantium != Some(true));
        let status = match (root, self.status, is_byzantium) {
            (Some(root), _, _) => {
                let root = B256::try_from(root.as_ref()).map_err(|_| fault("root is no hash"))?;
                Eip658Value::PostState(root)
            }
            (None, _, Some(false)) => return Err(RebuildFault::NoPostState { index }),
            (None, Some(Quantity(status @ (0 | 1))), _) => Eip658Value::Eip658(status == 1),
            (None, Some(_), _) => return Err(fault("status is neither 0 nor 1")),
            (None, None, _) => return Err(fault("neither status nor root")),
        };
        let mut logs = Vec::with_capacity(self.logs.len());
        for LogJson { address, topics, data } in self.logs {
            logs.push(
                Log::new(address, topics, data).ok_or_else(|| fault("more than four topics"))?,
            );
        }
        let cumulative_gas_used = self.cumulative_gas_used.0;
        Ok(Receipt { tx_type, fields: Fields { status, cumulative_gas_used, logs } })
    }
}
