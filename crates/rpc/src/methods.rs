//! The method table: what is served, with which parameters, by which function, and what it answers.
//!
//! A new method is one row here and one function of [`crate::answer::Context`].

use std::collections::BTreeSet;

/// Hands every row to another macro:
/// `Name = "wire name" function(parameter: Shape, ..) -> Shape, "summary";`. The shape of a parameter
/// says how it is read, too (`answer`'s `read_param`).
macro_rules! method_table {
    ($expand:ident) => {
        $expand! {
            // The six reads.
            BlockByNumber = "eth_getBlockByNumber" block(block: BlockNumberOrTag, return_full_txns: Flag) -> Block,
                "A block by its number or a tag, with the hashes of its transactions or all of each";
            BlockByHash = "eth_getBlockByHash" block(block_hash: BlockHash, return_full_txns: Flag) -> Block,
                "A block by its hash, with the hashes of its transactions or all of each";
            TransactionByHash = "eth_getTransactionByHash" transaction(tx_hash: Hash) -> Transaction,
                "A transaction by its hash";
            TransactionByBlockNumberAndIndex = "eth_getTransactionByBlockNumberAndIndex"
                transaction_at(block: BlockNumberOrTag, index: Index) -> Transaction,
                "A transaction by its block's number or a tag, and its position there";
            TransactionByBlockHashAndIndex = "eth_getTransactionByBlockHashAndIndex"
                transaction_at(block_hash: BlockHash, index: Index) -> Transaction,
                "A transaction by its block's hash and its position there";
            TransactionReceipt = "eth_getTransactionReceipt" receipt(tx_hash: Hash) -> Receipt,
                "The receipt of a transaction by the transaction's hash";

            // More of blocks and transactions.
            BlockReceipts = "eth_getBlockReceipts" receipts(block: BlockNumberTagOrHash) -> Receipts,
                "All receipts of a block";
            TransactionCountByNumber = "eth_getBlockTransactionCountByNumber"
                transaction_count(block: BlockNumberOrTag) -> Quantity,
                "How many transactions a block has";
            TransactionCountByHash = "eth_getBlockTransactionCountByHash"
                transaction_count(block_hash: BlockHash) -> Quantity,
                "How many transactions a block has";
            UncleCountByNumber = "eth_getUncleCountByBlockNumber"
                uncle_count(block: BlockNumberOrTag) -> Quantity,
                "How many uncles a block has";
            UncleCountByHash = "eth_getUncleCountByBlockHash" uncle_count(block_hash: BlockHash) -> Quantity,
                "How many uncles a block has";
            UncleByNumberAndIndex = "eth_getUncleByBlockNumberAndIndex"
                uncle(block: BlockNumberOrTag, index: Index) -> Block,
                "An uncle by its block's number or a tag, and its position there";
            UncleByHashAndIndex = "eth_getUncleByBlockHashAndIndex"
                uncle(block_hash: BlockHash, index: Index) -> Block,
                "An uncle by its block's hash and its position there";
            HeaderByNumber = "eth_getHeaderByNumber" header(block: BlockNumberOrTag) -> Header,
                "A header by its number or a tag";
            HeaderByHash = "eth_getHeaderByHash" header(block_hash: BlockHash) -> Header,
                "A header by its hash";
            RawHeader = "debug_getRawHeader" raw_header(block: BlockNumberTagOrHash) -> Data,
                "A header as RLP";
            RawBlock = "debug_getRawBlock" raw_block(block: BlockNumberTagOrHash) -> Data,
                "A block as RLP";
            RawTransaction = "debug_getRawTransaction" raw_transaction(tx_hash: Hash) -> Data,
                "A transaction in its EIP-2718 form";
            RawReceipts = "debug_getRawReceipts" raw_receipts(block: BlockNumberTagOrHash) -> DataList,
                "The receipts of a block, each in its EIP-2718 form";
            RawTransactionByHash = "eth_getRawTransactionByHash" raw_transaction(tx_hash: Hash) -> Data,
                "A transaction in its EIP-2718 form, by its hash";
            RawTransactionByBlockNumberAndIndex = "eth_getRawTransactionByBlockNumberAndIndex"
                raw_transaction_at(block: BlockNumberOrTag, index: Index) -> Data,
                "A transaction in its EIP-2718 form, by its block's number or a tag, and its position there";
            RawTransactionByBlockHashAndIndex = "eth_getRawTransactionByBlockHashAndIndex"
                raw_transaction_at(block_hash: BlockHash, index: Index) -> Data,
                "A transaction in its EIP-2718 form, by its block's hash and its position there";

            BlockAccessList = "eth_getBlockAccessList"
                block_access_list(block: BlockNumberTagOrHash) -> AccessList,
                "The access list of a block (EIP-7928): not stored, asked of a node if the operator says so";
            RawBlockAccessList = "debug_getRawBlockAccessList"
                raw_block_access_list(block: BlockNumberTagOrHash) -> Data,
                "The access list of a block as RLP: not stored, asked of a node if the operator says so";

            // Logs.
            Logs = "eth_getLogs" logs(filter: LogFilter) -> Logs,
                "The logs of a range of blocks, or of one block, that a filter asks for";
            NewFilter = "eth_newFilter" new_filter(filter: LogFilter) -> Text,
                "A filter whose logs of new blocks are polled; answers its id";
            NewBlockFilter = "eth_newBlockFilter" new_block_filter() -> Text,
                "A filter by which the hashes of new blocks are polled; answers its id";
            FilterChanges = "eth_getFilterChanges" filter_changes(filter: FilterId) -> FilterChanges,
                "What came since the last poll: logs, also those that a reorg removed, or hashes of blocks";
            FilterLogs = "eth_getFilterLogs" filter_logs(filter: FilterId) -> Logs,
                "All logs that a filter asks for, as eth_getLogs answers them";
            UninstallFilter = "eth_uninstallFilter" uninstall_filter(filter: FilterId) -> Flag,
                "Ends a filter; answers whether there was one";

            // Proofs.
            ProveTransaction = "quipu_proveTransaction" prove_transaction(tx_hash: Hash, anchor: OptionalBlock) -> Proof,
                "A bundle that proves a transaction: its bytes, its place in its block, and the way to an anchor";
            ProveReceipt = "quipu_proveReceipt" prove_receipt(tx_hash: Hash, anchor: OptionalBlock) -> Proof,
                "A bundle that proves a transaction and its receipt";
            ProveLog = "quipu_proveLog"
                prove_log(block: BlockNumberTagOrHash, log_index: Index, anchor: OptionalBlock) -> Proof,
                "A bundle that proves a log by its index in its block, with its receipt and its transaction";
            ProveBlock = "quipu_proveBlock" prove_block(block: BlockNumberTagOrHash, anchor: OptionalBlock) -> Proof,
                "A bundle that proves all of a block: header, transactions, receipts, uncles and withdrawals";
            ProveLogs = "quipu_proveLogs" prove_logs(filter: LogFilter, anchor: OptionalBlock) -> Proof,
                "A bundle that proves which logs of up to 1,000 blocks a filter asks for, and that there are no \
                 others";

            // What explorers ask for beside.
            ErigonHeaderByNumber = "erigon_getHeaderByNumber"
                erigon_header(block: BlockNumberOrTag) -> ErigonHeader,
                "A header by its number or a tag, with null for fields of later forks, as Erigon writes it";
            OtsApiLevel = "ots_getApiLevel" ots_api_level() -> Number,
                "The level of Otterscan's interface whose forms are spoken here";
            OtsBlockDetails = "ots_getBlockDetails" ots_block_details(block: BlockNumberOrTag) -> OtsBlockDetails,
                "A block without its transactions, with its issuance and the sum of its fees";
            OtsBlockDetailsByHash = "ots_getBlockDetailsByHash"
                ots_block_details(block_hash: BlockHash) -> OtsBlockDetails,
                "A block without its transactions, with its issuance and the sum of its fees";
            OtsBlockTransactions = "ots_getBlockTransactions"
                ots_block_transactions(block: BlockNumberOrTag, page_number: Index, page_size: Index)
                -> OtsBlockTransactions,
                "A page of a block's transactions and receipts, from the last transaction backwards";

            // The server and its chain.
            ChainId = "eth_chainId" chain_id() -> Quantity,
                "The chain id of EIP-155";
            NetVersion = "net_version" net_version() -> Text,
                "The network id, which is the chain id, in decimal";
            NetListening = "net_listening" net_listening() -> Flag,
                "True: the server accepts connections";
            NetPeerCount = "net_peerCount" net_peer_count() -> Quantity,
                "Zero: the server takes no part in the peer-to-peer network";
            BlockNumber = "eth_blockNumber" block_number() -> Quantity,
                "The number of the newest block held";
            Syncing = "eth_syncing" syncing() -> Syncing,
                "False, or how far it is to the tip while a node is followed and not yet reached";
            ClientVersion = "web3_clientVersion" client_version() -> Text,
                "Name and version of this server";
            Sha3 = "web3_sha3" sha3(bytes: Bytes) -> Hash,
                "The Keccak-256 hash of bytes";
            Modules = "rpc_modules" modules() -> Modules,
                "The namespaces of this table, each with its version";
            Capabilities = "eth_capabilities" capabilities() -> Capabilities,
                "What is held of blocks, transactions, receipts and logs";

            // Fees and forks.
            Config = "eth_config" config() -> Config,
                "The fork in force at the newest block, the next and the last that have a date (EIP-7910)";
            BaseFee = "eth_baseFee" base_fee() -> Quantity,
                "The base fee of the block above the newest one";
            BlobBaseFee = "eth_blobBaseFee" blob_base_fee() -> Quantity,
                "What a unit of blob gas costs in the newest block";
            FeeHistory = "eth_feeHistory"
                fee_history(block_count: Count, newest_block: BlockNumberOrTag, reward_percentiles: Percentiles)
                -> FeeHistory,
                "Base fees, shares of gas used and rewards of up to 1024 blocks";
            GasPrice = "eth_gasPrice" gas_price() -> Quantity,
                "A price for a unit of gas that is likely to be enough, while a node is followed";
            MaxPriorityFee = "eth_maxPriorityFeePerGas" max_priority_fee() -> Quantity,
                "A tip for a unit of gas that is likely to be enough, while a node is followed";

            Discover = "rpc.discover" discover() -> Document,
                "This table as an OpenRPC document";
            Subscribe = "eth_subscribe" subscribe(kind: SubscriptionKind, filter: SubscriptionFilter) -> Text,
                "Over WebSocket: the headers or the logs of new blocks from now on; answers the \
                 subscription's id";
            Unsubscribe = "eth_unsubscribe" unsubscribe(subscription: SubscriptionId) -> Flag,
                "Over WebSocket: ends a subscription of the same connection";
        }
    };
}
pub(crate) use method_table;

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
    BlockHash,
    BlockNumberTagOrHash,
    OptionalBlock,
    Hash,
    Index,
    Count,
    Bytes,
    Flag,
    LogFilter,
    Percentiles,
    SubscriptionKind,
    SubscriptionFilter,
    SubscriptionId,
    FilterId,
    FilterChanges,
    Quantity,
    Number,
    Text,
    Data,
    DataList,
    AccessList,
    Block,
    Header,
    ErigonHeader,
    OtsBlockDetails,
    OtsBlockTransactions,
    Transaction,
    Receipt,
    Receipts,
    Proof,
    Logs,
    Syncing,
    Capabilities,
    Config,
    FeeHistory,
    Modules,
    Document,
}

macro_rules! rows {
    ($($method:ident = $name:literal $function:ident($($param:ident: $shape:ident),*) -> $result:ident,
        $summary:literal;)*) => {
        /// A method.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub(crate) enum Method {
            $($method,)*
        }

        /// Every method, the six reads first.
        pub(crate) const METHODS: &[MethodRow] = &[$(MethodRow {
            method: Method::$method,
            name: $name,
            summary: $summary,
            params: &[$(Param { name: stringify!($param), shape: JsonShape::$shape }),*],
            result: JsonShape::$result,
        },)*];
    };
}
method_table!(rows);

impl Method {
    /// Its place in [`METHODS`].
    #[expect(clippy::as_conversions, reason = "the rows and the names are expanded from one table")]
    pub(crate) fn index(self) -> usize {
        self as usize
    }

    /// Whether the response cache may have its result.
    pub(crate) fn is_cached(self) -> bool {
        matches!(
            self,
            Self::BlockByNumber
                | Self::BlockByHash
                | Self::TransactionByHash
                | Self::TransactionReceipt
        )
    }
}

/// The namespaces of all methods, each once and in order: what comes before the underscore.
pub(crate) fn namespaces() -> BTreeSet<&'static str> {
    METHODS.iter().filter_map(|row| Some(row.name.split_once('_')?.0)).collect()
}

/// The method of this name.
pub(crate) fn find(name: &str) -> Option<&'static MethodRow> {
    METHODS.iter().find(|row| row.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_stands_once() {
        for (position, row) in METHODS.iter().enumerate() {
            let others = || METHODS.iter().skip(position + 1);
            assert!(others().all(|other| other.name != row.name), "{}", row.name);
            assert_eq!(find(row.name).unwrap().method, row.method);
            assert_eq!(row.method.index(), position);
        }
        assert!(find("eth_sendRawTransaction").is_none());
    }

    #[test]
    fn namespaces_are_told_once_and_in_order() {
        let found: Vec<&str> = namespaces().into_iter().collect();
        assert_eq!(found, ["debug", "erigon", "eth", "net", "ots", "quipu", "rpc", "web3"]);
    }
}
