//! The method table: what is served, with which parameters, and what it answers.
//!
//! Knows: names, parameters and documentation of every method: dispatch, the `OpenRPC` document and
//! the labels of metrics read the same rows.
//! Never knows: how an answer is found or written.

/// A method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Method {
    BlockByNumber,
    BlockByHash,
    TransactionByHash,
    TransactionByBlockNumberAndIndex,
    TransactionByBlockHashAndIndex,
    TransactionReceipt,
    BlockReceipts,
    TransactionCountByNumber,
    TransactionCountByHash,
    UncleCountByNumber,
    UncleCountByHash,
    UncleByNumberAndIndex,
    UncleByHashAndIndex,
    HeaderByNumber,
    HeaderByHash,
    RawHeader,
    RawBlock,
    RawTransaction,
    RawReceipts,
    ChainId,
    NetVersion,
    BlockNumber,
    Syncing,
    ClientVersion,
    Capabilities,
    Config,
    BaseFee,
    BlobBaseFee,
    FeeHistory,
    GasPrice,
    MaxPriorityFee,
    Discover,
    Subscribe,
    Unsubscribe,
}

/// A row of the table.
#[derive(Debug)]
pub(crate) struct MethodRow {
    pub(crate) method: Method,
    pub(crate) name: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) params: &'static [Param],
    pub(crate) result: JsonShape,
}

/// A parameter.
#[derive(Debug)]
pub(crate) struct Param {
    pub(crate) name: &'static str,
    pub(crate) shape: JsonShape,
}

/// What a parameter or an answer looks like: the schemas of the `OpenRPC` document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JsonShape {
    BlockNumberOrTag,
    BlockNumberTagOrHash,
    Hash,
    Index,
    Flag,
    Percentiles,
    SubscriptionKind,
    Quantity,
    Text,
    Data,
    DataList,
    Block,
    Header,
    Transaction,
    Receipt,
    Receipts,
    Syncing,
    Capabilities,
    Config,
    FeeHistory,
    Document,
}

const NUMBER: Param = Param { name: "block", shape: JsonShape::BlockNumberOrTag };
const BLOCK_HASH: Param = Param { name: "block_hash", shape: JsonShape::Hash };
const TX_HASH: Param = Param { name: "tx_hash", shape: JsonShape::Hash };
const INDEX: Param = Param { name: "index", shape: JsonShape::Index };
const FULL: Param = Param { name: "return_full_txns", shape: JsonShape::Flag };
const KIND: Param = Param { name: "kind", shape: JsonShape::SubscriptionKind };
const SUBSCRIPTION: Param = Param { name: "subscription", shape: JsonShape::Text };
const BLOCK_COUNT: Param = Param { name: "block_count", shape: JsonShape::Index };
const NEWEST: Param = Param { name: "newest_block", shape: JsonShape::BlockNumberOrTag };
const PERCENTILES: Param = Param { name: "reward_percentiles", shape: JsonShape::Percentiles };
const ANY_BLOCK: Param = Param { name: "block", shape: JsonShape::BlockNumberTagOrHash };

macro_rules! row {
    ($method:ident, $name:literal, [$($param:ident),*], $result:ident, $summary:literal) => {
        MethodRow {
            method: Method::$method,
            name: $name,
            summary: $summary,
            params: &[$($param),*],
            result: JsonShape::$result,
        }
    };
}

/// Every method, the six reads first.
pub(crate) const METHODS: &[MethodRow] = &[
    row!(
        BlockByNumber,
        "eth_getBlockByNumber",
        [NUMBER, FULL],
        Block,
        "A block by its number or a tag, with the hashes of its transactions or all of each"
    ),
    row!(
        BlockByHash,
        "eth_getBlockByHash",
        [BLOCK_HASH, FULL],
        Block,
        "A block by its hash, with the hashes of its transactions or all of each"
    ),
    row!(
        TransactionByHash,
        "eth_getTransactionByHash",
        [TX_HASH],
        Transaction,
        "A transaction by its hash"
    ),
    row!(
        TransactionByBlockNumberAndIndex,
        "eth_getTransactionByBlockNumberAndIndex",
        [NUMBER, INDEX],
        Transaction,
        "A transaction by its block's number or a tag, and its position there"
    ),
    row!(
        TransactionByBlockHashAndIndex,
        "eth_getTransactionByBlockHashAndIndex",
        [BLOCK_HASH, INDEX],
        Transaction,
        "A transaction by its block's hash and its position there"
    ),
    row!(
        TransactionReceipt,
        "eth_getTransactionReceipt",
        [TX_HASH],
        Receipt,
        "The receipt of a transaction by the transaction's hash"
    ),
    row!(BlockReceipts, "eth_getBlockReceipts", [ANY_BLOCK], Receipts, "All receipts of a block"),
    row!(
        TransactionCountByNumber,
        "eth_getBlockTransactionCountByNumber",
        [NUMBER],
        Quantity,
        "How many transactions a block has"
    ),
    row!(
        TransactionCountByHash,
        "eth_getBlockTransactionCountByHash",
        [BLOCK_HASH],
        Quantity,
        "How many transactions a block has"
    ),
    row!(
        UncleCountByNumber,
        "eth_getUncleCountByBlockNumber",
        [NUMBER],
        Quantity,
        "How many uncles a block has"
    ),
    row!(
        UncleCountByHash,
        "eth_getUncleCountByBlockHash",
        [BLOCK_HASH],
        Quantity,
        "How many uncles a block has"
    ),
    row!(
        UncleByNumberAndIndex,
        "eth_getUncleByBlockNumberAndIndex",
        [NUMBER, INDEX],
        Block,
        "An uncle by its block's number or a tag, and its position there"
    ),
    row!(
        UncleByHashAndIndex,
        "eth_getUncleByBlockHashAndIndex",
        [BLOCK_HASH, INDEX],
        Block,
        "An uncle by its block's hash and its position there"
    ),
    row!(
        HeaderByNumber,
        "eth_getHeaderByNumber",
        [NUMBER],
        Header,
        "A header by its number or a tag"
    ),
    row!(HeaderByHash, "eth_getHeaderByHash", [BLOCK_HASH], Header, "A header by its hash"),
    row!(RawHeader, "debug_getRawHeader", [ANY_BLOCK], Data, "A header as RLP"),
    row!(RawBlock, "debug_getRawBlock", [ANY_BLOCK], Data, "A block as RLP"),
    row!(
        RawTransaction,
        "debug_getRawTransaction",
        [TX_HASH],
        Data,
        "A transaction in its EIP-2718 form"
    ),
    row!(
        RawReceipts,
        "debug_getRawReceipts",
        [ANY_BLOCK],
        DataList,
        "The receipts of a block, each in its EIP-2718 form"
    ),
    row!(ChainId, "eth_chainId", [], Quantity, "The chain id of EIP-155"),
    row!(NetVersion, "net_version", [], Text, "The network id, which is the chain id, in decimal"),
    row!(BlockNumber, "eth_blockNumber", [], Quantity, "The number of the newest block held"),
    row!(
        Syncing,
        "eth_syncing",
        [],
        Syncing,
        "False, or how far it is to the tip while a node is followed and not yet reached"
    ),
    row!(ClientVersion, "web3_clientVersion", [], Text, "Name and version of this server"),
    row!(
        Capabilities,
        "eth_capabilities",
        [],
        Capabilities,
        "What is held of blocks, transactions and receipts"
    ),
    row!(
        Config,
        "eth_config",
        [],
        Config,
        "The fork in force at the newest block, the next and the last that have a date (EIP-7910)"
    ),
    row!(BaseFee, "eth_baseFee", [], Quantity, "The base fee of the block above the newest one"),
    row!(
        BlobBaseFee,
        "eth_blobBaseFee",
        [],
        Quantity,
        "What a unit of blob gas costs in the newest block"
    ),
    row!(
        FeeHistory,
        "eth_feeHistory",
        [BLOCK_COUNT, NEWEST, PERCENTILES],
        FeeHistory,
        "Base fees, shares of gas used and rewards of up to 1024 blocks"
    ),
    row!(
        GasPrice,
        "eth_gasPrice",
        [],
        Quantity,
        "A price for a unit of gas that is likely to be enough, while a node is followed"
    ),
    row!(
        MaxPriorityFee,
        "eth_maxPriorityFeePerGas",
        [],
        Quantity,
        "A tip for a unit of gas that is likely to be enough, while a node is followed"
    ),
    row!(Discover, "rpc.discover", [], Document, "This table as an OpenRPC document"),
    row!(
        Subscribe,
        "eth_subscribe",
        [KIND],
        Text,
        "Over WebSocket: the headers of new blocks from now on; answers the subscription's id"
    ),
    row!(
        Unsubscribe,
        "eth_unsubscribe",
        [SUBSCRIPTION],
        Flag,
        "Over WebSocket: ends a subscription of the same connection"
    ),
];

/// The method of this name.
pub(crate) fn find(name: &str) -> Option<&'static MethodRow> {
    METHODS.iter().find(|row| row.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_and_every_method_stands_once() {
        for (position, row) in METHODS.iter().enumerate() {
            let others = || METHODS.iter().skip(position + 1);
            assert!(others().all(|other| other.name != row.name), "{}", row.name);
            assert!(others().all(|other| other.method != row.method), "{}", row.name);
            assert_eq!(find(row.name).unwrap().method, row.method);
        }
        assert!(find("eth_sendRawTransaction").is_none());
    }
}
