//! alloy's provider, unmodified: `get_logs` by filters that its own builder makes.

use alloy_eips::BlockNumberOrTag;
use alloy_primitives::{Address, B256};
use alloy_provider::Provider;
use alloy_rpc_types_eth::Filter;
use anyhow::{Context as _, Result};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::Agreement;

impl Agreement {
    /// A query's logs are those that the node answered.
    pub(crate) async fn hold_logs(
        &mut self,
        provider: &impl Provider,
        query: &Value,
    ) -> Result<()> {
        let found = provider.get_logs(&filter(&query["filter"])?).await?;
        self.hold(query["name"].as_str().context("no name")?, &found, &query["logs"])
    }
}

fn filter(asked: &Value) -> Result<Filter> {
    let mut filter = match &asked["blockHash"] {
        Value::Null => {
            let end = |name| serde_json::from_value::<BlockNumberOrTag>(asked[name].clone());
            Filter::new().from_block(end("fromBlock")?).to_block(end("toBlock")?)
        }
        hash => Filter::new().at_block_hash(serde_json::from_value::<B256>(hash.clone())?),
    };
    filter = filter.address(one_or_many::<Address>(&asked["address"])?);
    for (position, topic) in asked["topics"].as_array().into_iter().flatten().enumerate() {
        let topics = one_or_many::<B256>(topic)?;
        filter = match position {
            0 => filter.event_signature(topics),
            1 => filter.topic1(topics),
            2 => filter.topic2(topics),
            _ => filter.topic3(topics),
        };
    }
    Ok(filter)
}

/// A value, a list of alternatives, or nothing, which is no list.
fn one_or_many<T: DeserializeOwned>(value: &Value) -> Result<Vec<T>> {
    Ok(match value {
        Value::Null => Vec::new(),
        Value::Array(_) => serde_json::from_value(value.clone())?,
        one => vec![serde_json::from_value(one.clone())?],
    })
}
