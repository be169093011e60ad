//! Which methods a node offers of those that following and backfilling ask for.

use alloy_primitives::B256;

use super::answers::NodeCall;
use super::client::Upstream;
use super::error::AskError;

/// What a method is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MethodUse {
    /// Nothing goes without it.
    Everything,
    /// All receipts of a block.
    Receipts,
    /// One receipt, where a node does not give those of a block.
    ReceiptsOneByOne,
    /// The ommers of blocks before the merge.
    Ommers,
    /// The fork schedule, and with it blob prices.
    ForkSchedule,
}

/// A method that a node does not offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissingMethod {
    /// Its name.
    pub name: &'static str,
    /// What it would be used for.
    pub purpose: MethodUse,
}

impl Upstream {
    /// The methods that the node says it does not know. What else it answers is of no interest: blocks
    /// are asked for that it cannot have.
    pub async fn find_missing_methods(&self) -> Result<Vec<MissingMethod>, AskError> {
        let nobody = B256::ZERO;
        let of_hash = format!("[\"{nobody}\"]");
        let probes = [
            ("eth_chainId", "[]".to_owned(), MethodUse::Everything),
            ("eth_getBlockByNumber", "[\"latest\",false]".to_owned(), MethodUse::Everything),
            ("eth_getBlockByHash", format!("[\"{nobody}\",false]"), MethodUse::Everything),
            ("eth_getBlockReceipts", of_hash.clone(), MethodUse::Receipts),
            ("eth_getTransactionReceipt", of_hash, MethodUse::ReceiptsOneByOne),
            (
                "eth_getUncleByBlockHashAndIndex",
                format!("[\"{nobody}\",\"0x0\"]"),
                MethodUse::Ommers,
            ),
            ("eth_config", "[]".to_owned(), MethodUse::ForkSchedule),
        ];
        let calls: Vec<NodeCall> =
            probes.iter().map(|(name, params, _)| NodeCall::new(name, params.clone())).collect();
        let answers = self.ask_together(&calls).await?;
        let asked = probes.iter().zip(answers);
        let missing =
            asked.filter(|(_, answer)| answer.as_ref().is_err_and(AskError::is_unknown_method));
        Ok(missing
            .map(|((name, _, purpose), _)| MissingMethod { name, purpose: *purpose })
            .collect())
    }
}
