//! Which methods of a node may be asked through us: one table.
//!
//! `node-methods.txt` lists every method of go-ethereum, reth, Nethermind, Besu and Erigon; a test holds
//! that each of them is sorted here. Names are exact. Another spelling of a known namespace is refused:
//! a node that compares names without case would take it for the known one.

use crate::method_pattern::Pattern;

/// Methods that are sorted one by one. What is not listed as passed is refused.
#[derive(Debug)]
struct SortedNamespace {
    name: &'static str,
    /// They read, send what is signed already, or keep a filter for whoever asks.
    passed: &'static [&'static str],
    /// They sign, manage the node, write or read its files, or tell its secrets.
    refused: &'static [&'static str],
}

/// Namespaces of which nothing is passed on: they sign, mine, vote, drive the node, or manage it.
const CLOSED: &[&str] = &[
    "account",
    "admin",
    "anvil",
    "clique",
    "db",
    "dev",
    "eea",
    "engine",
    "evm",
    "flashbots",
    "graphql",
    "hardhat",
    "health",
    "ibft",
    "internal",
    "istanbul",
    "les",
    "mev",
    "miner",
    "perm",
    "personal",
    "plugins",
    "priv",
    "qbft",
    "rbuilder",
    "shh",
    "signer",
    "test",
    "testing",
    "vflux",
    "wallet",
];

/// Of a namespace in another spelling, nothing is passed.
const OTHER_SPELLING: SortedNamespace = SortedNamespace { name: "", passed: &[], refused: &[] };

const SORTED: &[SortedNamespace] = &[
    SortedNamespace {
        name: "eth",
        passed: &[
            "baseFee",
            "blobBaseFee",
            "blockNumber",
            "call",
            "callBundle",
            "callMany",
            "capabilities",
            "chainId",
            "coinbase",
            "config",
            "createAccessList",
            "estimateGas",
            "feeHistory",
            "fillTransaction",
            "gasPrice",
            "getAccount",
            "getAccountInfo",
            "getBalance",
            "getBlockAccessList",
            "getBlockAccessListByBlockHash",
            "getBlockAccessListByBlockNumber",
            "getBlockAccessListRaw",
            "getBlockByHash",
            "getBlockByNumber",
            "getBlockReceipts",
            "getBlockTransactionCountByHash",
            "getBlockTransactionCountByNumber",
            "getCode",
            "getFilterChanges",
            "getFilterLogs",
            "getHeaderByHash",
            "getHeaderByNumber",
            "getLogs",
            "getMultiProof",
            "getProof",
            "getRawTransactionByBlockHashAndIndex",
            "getRawTransactionByBlockNumberAndIndex",
            "getRawTransactionByHash",
            "getStorageAt",
            "getStorageValues",
            "getTransactionByBlockHashAndIndex",
            "getTransactionByBlockNumberAndIndex",
            "getTransactionByHash",
            "getTransactionBySenderAndNonce",
            "getTransactionCount",
            "getTransactionReceipt",
            "getTxWitness",
            "getUncleByBlockHashAndIndex",
            "getUncleByBlockNumberAndIndex",
            "getUncleCountByBlockHash",
            "getUncleCountByBlockNumber",
            "getWitness",
            "hashrate",
            "maxPriorityFeePerGas",
            "mining",
            "newBlockFilter",
            "newFilter",
            "newPendingTransactionFilter",
            "pendingTransactions",
            "protocolVersion",
            // Signed already: the node's keys have no part in it.
            "sendBundle",
            "sendPrivateRawTransaction",
            "sendPrivateTransaction",
            "sendRawTransaction",
            "sendRawTransactionConditional",
            "sendRawTransactionSync",
            "simulateV1",
            // Over a WebSocket, what is not served here.
            "subscribe",
            "syncing",
            "uninstallFilter",
        ],
        refused: &[
            // Signs or sends with keys of the node, or tells which it has.
            "accounts",
            "resend",
            "sendTransaction",
            "sign",
            "signTransaction",
            "signTypedData",
            "submitTransaction",
            // Has it mine, or changes what waits in its pool.
            "cancelBundle",
            "cancelPrivateTransaction",
            "getWork",
            "submitHashrate",
            "submitWork",
            // Runs compilers on its machine.
            "compileLLL",
            "compileSerpent",
            "compileSolidity",
            "getCompilers",
            // Writes to its disk.
            "snapshot",
            // Subscriptions, which are no calls.
            "logs",
            "newHeads",
            "newPendingTransactions",
            "newPendingTransactionsWithBody",
            "subscribeSyncStatus",
            "transactionReceipts",
            "unsubscribe",
        ],
    },
    SortedNamespace {
        name: "debug",
        passed: &[
            "accountAt",
            "accountInfoAt",
            "accountRange",
            "chainConfig",
            "codeByHash",
            "dumpBlock",
            "executionWitness",
            "executionWitnessByBlockHash",
            "executionWitnesses",
            "getAccessibleState",
            "getBadBlocks",
            "getBlockRlp",
            "getBlockRlpByHash",
            "getChainLevel",
            "getModifiedAccountsByHash",
            "getModifiedAccountsByNumber",
            "getRawBlock",
            "getRawBlockAccessList",
            "getRawHeader",
            "getRawReceipts",
            "getRawTransaction",
            "getRawTransactions",
            "intermediateRoots",
            "preimage",
            "printBlock",
            "seedHash",
            "simulateV1",
            "stateRootWithUpdates",
            "storageRangeAt",
            "traceBadBlock",
            "traceBlock",
            "traceBlockByHash",
            "traceBlockByNumber",
            "traceCall",
            "traceCallMany",
            "traceTransaction",
            "traceTransactionByBlockAndIndex",
            "traceTransactionByBlockhashAndIndex",
            "traceTransactionInBlockByHash",
            "traceTransactionInBlockByIndex",
        ],
        refused: &[
            // Changes its chain, its pool or its database.
            "batchSendRawTransaction",
            "chaindbCompact",
            "clearTxpool",
            "deleteChainSlice",
            "insertReceipts",
            "migrateReceipts",
            "replayBadBlock",
            "replayBlock",
            "resetHead",
            "resyncWorldState",
            "setHead",
            "setTrieFlushInterval",
            "sync",
            // Reads files of its machine, or writes them.
            "blockProfile",
            "cpuProfile",
            "goTrace",
            "mutexProfile",
            "standardTraceBadBlockToFile",
            "standardTraceBlockToFile",
            "startCPUProfile",
            "startGoTrace",
            "stopCPUProfile",
            "stopGoTrace",
            "traceBlockFromFile",
            "writeBlockProfile",
            "writeMemProfile",
            "writeMutexProfile",
            // Changes how it runs, or tells what is inside it.
            "chaindbProperty",
            "dbAncient",
            "dbAncients",
            "dbGet",
            "discoveryV4Table",
            "freeOSMemory",
            "gcStats",
            "getConfigValue",
            "getFromDb",
            "getSyncStage",
            "getTrieFlushInterval",
            "memStats",
            "metrics",
            "setBlockProfileRate",
            "setGCPercent",
            "setMemoryLimit",
            "setMutexProfileFraction",
            "stacks",
            "start",
            "stop",
            "verbosity",
            "vmodule",
            // Subscriptions, which are no calls.
            "traceChain",
            "unsubscribe",
        ],
    },
    SortedNamespace {
        name: "trace",
        passed: &[
            "block",
            "blockOpcodeGas",
            "call",
            "callMany",
            "filter",
            "get",
            "rawTransaction",
            "replayBlockTransactions",
            "replayTransaction",
            "simulateV1",
            "transaction",
            "transactionOpcodeGas",
        ],
        refused: &[],
    },
    SortedNamespace {
        name: "txpool",
        passed: &[
            "besuPendingTransactions",
            "besuStatistics",
            "besuTransactions",
            "content",
            "contentFrom",
            "inspect",
            "status",
        ],
        refused: &[],
    },
    SortedNamespace {
        name: "net",
        passed: &["listening", "peerCount", "version"],
        // Where it can be reached.
        refused: &["enode", "localAddress", "localEnode", "services"],
    },
    SortedNamespace { name: "web3", passed: &["clientVersion", "sha3"], refused: &[] },
    SortedNamespace { name: "rpc", passed: &["modules"], refused: &[] },
    SortedNamespace {
        name: "ots",
        passed: &[
            "getApiLevel",
            "getBlockDetails",
            "getBlockDetailsByHash",
            "getBlockTransactions",
            "getContractCreator",
            "getHeaderByNumber",
            "getInternalOperations",
            "getTransactionBySenderAndNonce",
            "getTransactionError",
            "hasCode",
            "searchTransactionsAfter",
            "searchTransactionsBefore",
            "traceTransaction",
        ],
        refused: &[],
    },
    SortedNamespace {
        name: "erigon",
        passed: &[
            "blockNumber",
            "forks",
            "getBalanceChangesInBlock",
            "getBlockByTimestamp",
            "getBlockReceiptsByBlockHash",
            "getHeaderByHash",
            "getHeaderByNumber",
            "getLatestLogs",
            "getLogs",
            "getLogsByHash",
        ],
        refused: &["cacheCheck", "nodeInfo"],
    },
    SortedNamespace {
        name: "parity",
        passed: &["getBlockReceipts", "listStorageKeys", "pendingTransactions"],
        refused: &[
            "clearEngineSigner",
            "enode",
            "netPeers",
            "setEngineSigner",
            "setEngineSignerSecret",
        ],
    },
    SortedNamespace {
        name: "reth",
        passed: &["getBalanceChangesInBlock", "getBlockExecutionOutcome"],
        refused: &[
            "forkchoiceUpdated",
            "jit",
            "newPayload",
            "unsubscribeChainNotifications",
            "unsubscribeFinalizedChainNotifications",
            "unsubscribePersistedBlock",
        ],
    },
    SortedNamespace {
        name: "proof",
        passed: &["call", "getProofWithMeta", "getTransactionByHash", "getTransactionReceipt"],
        refused: &[],
    },
    SortedNamespace { name: "overlay", passed: &["callConstructor", "getLogs"], refused: &[] },
    SortedNamespace { name: "logIndex", passed: &["blockNumbers", "status"], refused: &[] },
];

/// Methods that read the state of accounts and contracts, or execute transactions on it.
const STATE_METHODS: &[&str] = &[
    "debug_account*",
    "debug_codeByHash",
    "debug_dumpBlock",
    "debug_executionWitness*",
    "debug_getModifiedAccounts*",
    "debug_intermediateRoots",
    "debug_preimage",
    "debug_simulateV1",
    "debug_stateRootWithUpdates",
    "debug_storageRangeAt",
    "debug_trace*",
    "erigon_getBalanceChangesInBlock",
    "eth_call*",
    "eth_createAccessList",
    "eth_estimateGas",
    "eth_fillTransaction",
    "eth_getAccount*",
    "eth_getBalance",
    "eth_getCode",
    "eth_getMultiProof",
    "eth_getProof",
    "eth_getStorage*",
    "eth_getTransactionCount",
    "eth_getTxWitness",
    "eth_getWitness",
    "eth_simulateV1",
    "ots_getContractCreator",
    "ots_getInternalOperations",
    "ots_getTransactionError",
    "ots_hasCode",
    "ots_traceTransaction",
    "overlay_*",
    "proof_call",
    "proof_getProofWithMeta",
    "reth_getBalanceChangesInBlock",
    "reth_getBlockExecutionOutcome",
    "trace_*",
];

/// What the table says of a namespace.
enum Rule {
    /// Nothing is passed on.
    Closed,
    /// These names are.
    Sorted(&'static SortedNamespace),
    /// No client that the table knows has it, as those of rollups: the operator's word decides.
    Unknown,
}

/// Namespace and name of a method; `None` if it is no name that a node has. Whatever else is in a text
/// (blanks, control characters, other alphabets) may be read in another way by whoever comes after us.
pub(super) fn split(method: &str) -> Option<(&str, &str)> {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let (namespace, name) = method.split_once('_')?;
    (!namespace.is_empty() && method.bytes().all(is_letter)).then_some((namespace, name))
}

fn rule_of(namespace: &str) -> Rule {
    if CLOSED.iter().any(|closed| closed.eq_ignore_ascii_case(namespace)) {
        return Rule::Closed;
    }
    let sorted = SORTED.iter().find(|sorted| sorted.name.eq_ignore_ascii_case(namespace));
    match sorted {
        Some(sorted) if sorted.name == namespace => Rule::Sorted(sorted),
        Some(_) => Rule::Sorted(&OTHER_SPELLING),
        None => Rule::Unknown,
    }
}

/// Whether a method may be passed on, if the operator allows it.
pub(super) fn may_pass(method: &str) -> bool {
    let Some((namespace, name)) = split(method).filter(|(_, name)| !name.is_empty()) else {
        return false;
    };
    match rule_of(namespace) {
        Rule::Closed => false,
        Rule::Sorted(sorted) => sorted.passed.contains(&name),
        Rule::Unknown => true,
    }
}

/// Whether a method that may be passed on needs state.
pub(super) fn needs_state(method: &str) -> bool {
    may_pass(method) && STATE_METHODS.iter().any(|it| Pattern::new(it).is_match(method))
}

/// Whether any method that begins so may be.
pub(super) fn may_pass_beginning(prefix: &str) -> bool {
    let Some((namespace, begin)) = split(prefix) else { return false };
    match rule_of(namespace) {
        Rule::Closed => false,
        Rule::Sorted(sorted) => sorted.passed.iter().any(|name| name.starts_with(begin)),
        Rule::Unknown => true,
    }
}

/// Whether the table refuses a method, or all that begins so, by name.
pub(super) fn is_refused(prefix: &str) -> bool {
    let Some((namespace, begin)) = split(prefix) else { return false };
    match rule_of(namespace) {
        Rule::Closed => true,
        Rule::Sorted(sorted) => {
            !begin.is_empty() && sorted.refused.iter().any(|name| name.starts_with(begin))
        }
        Rule::Unknown => false,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Every method of five clients, one a line, with those that have it.
    const NODE_METHODS: &str = include_str!("node-methods.txt");

    fn listed() -> impl Iterator<Item = (&'static str, &'static str)> {
        let lines = NODE_METHODS.lines().filter(|line| !line.starts_with('#'));
        lines.map(|line| line.split(' ').next().unwrap()).map(|method| split(method).unwrap())
    }

    #[test]
    fn every_method_of_five_clients_is_sorted_once() {
        for (namespace, name) in listed() {
            let count = match rule_of(namespace) {
                Rule::Closed => 1,
                Rule::Sorted(sorted) => {
                    let all = sorted.passed.iter().chain(sorted.refused);
                    all.filter(|it| **it == name).count()
                }
                Rule::Unknown => 0,
            };
            assert_eq!(count, 1, "{namespace}_{name}");
        }
        assert!(listed().count() > 400, "{}", listed().count());
    }

    #[test]
    fn nothing_is_passed_that_no_client_has() {
        let listed: BTreeSet<_> = listed().collect();
        for sorted in SORTED {
            for name in sorted.passed.iter().chain(sorted.refused) {
                assert!(listed.contains(&(sorted.name, *name)), "{}_{name}", sorted.name);
            }
        }
    }

    #[test]
    fn every_method_that_needs_state_is_one_that_a_client_has() {
        for pattern in STATE_METHODS {
            let is_match = |(namespace, name): (&str, &str)| {
                let method = format!("{namespace}_{name}");
                Pattern::new(pattern).is_match(&method) && needs_state(&method)
            };
            assert!(listed().any(is_match), "{pattern}");
        }
        for method in ["eth_getLogs", "eth_sendRawTransaction", "debug_traceBlockFromFile", "x_y"] {
            assert!(!needs_state(method), "{method}");
        }
    }

    /// Seen: a blank behind the name, another case and a control character were passed on.
    #[test]
    fn other_spellings_of_what_is_refused_are_refused() {
        let closed = CLOSED.iter().map(|namespace| format!("{namespace}_get"));
        let refused = SORTED.iter().flat_map(|sorted| {
            sorted.refused.iter().map(move |name| format!("{}_{name}", sorted.name))
        });
        for method in closed.chain(refused) {
            let spellings = [
                method.clone(),
                method.to_uppercase(),
                method.to_lowercase(),
                format!("{method} "),
                format!(" {method}"),
                format!("{method}\0"),
                format!("{method}\n"),
                format!("{method}\u{200b}"),
                method.replace('_', "\u{ff3f}"),
                method.replace('e', "\u{435}"),
                method.replace('_', "."),
            ];
            for spelling in spellings {
                assert!(!may_pass(&spelling), "{spelling:?}");
            }
        }
    }
}
