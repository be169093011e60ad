//! Who decides which chain a folder holds, on real folders.

use std::path::Path;
use std::sync::Arc;

use sample::{self, Payload, SampleSettings};
use store::Limits;
use store::disk::Folder;
use store::read::Inline;

use super::*;

fn open(path: &Path) -> Arc<Store> {
    let disk = Arc::new(Folder::create(path).unwrap());
    Arc::new(Store::open(disk, Arc::new(Inline), Limits::default()).unwrap())
}

fn genesis_text() -> Vec<u8> {
    let settings = SampleSettings {
        seed: 1,
        block_count: 2,
        txs_per_block: 1,
        payload: Payload::Small,
        ..SampleSettings::default()
    };
    serde_json::to_vec(&sample::genesis(&settings)).unwrap()
}

fn named_genesis() -> NamedChain {
    NamedChain::Genesis { text: genesis_text(), place: "FILE".to_owned() }
}

fn files(networks: &[&str]) -> Vec<PathBuf> {
    let name = |network: &&str| PathBuf::from(format!("{network}-00000-0123abcd.ere"));
    networks.iter().map(name).collect()
}

/// Has a folder remember a chain.
fn remember(store: &Arc<Store>, chain: &FolderChain) {
    let mut writer = Writer::open(Arc::clone(store), chain.spec().clone()).unwrap();
    chain.remember(&mut writer).unwrap();
}

#[test]
fn names_of_archives_decide_where_there_is_no_folder_yet() {
    let decided = |networks: &[&str]| FolderChain::of_archives(None, None, &files(networks));
    assert_eq!(decided(&["sepolia", "sepolia"]).unwrap().spec().chain_id(), Some(11_155_111));
    assert_eq!(decided(&["other"]).unwrap().spec().chain_id(), None);
    let error = decided(&["other", "sepolia"]).unwrap_err().to_string();
    assert_eq!(error, "archives of several networks: other, sepolia");
    assert!(matches!(decided(&[]), Err(FolderChainError::NoNetworkName)));
    assert!(FolderChain::find(None, None, None).unwrap().is_none());
}

#[test]
fn a_genesis_that_was_named_once_is_the_folders_from_then_on() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let chain = FolderChain::find(Some(named_genesis()), Some(&store), None).unwrap().unwrap();
    remember(&store, &chain);
    let again = open(folder.path());
    let found = FolderChain::find(None, Some(&again), None).unwrap().unwrap();
    assert_eq!(found.spec().genesis_hash(), chain.spec().genesis_hash());
    assert_eq!(held_spec(&again).unwrap().chain_id(), chain.spec().chain_id());
    let other = FolderChain::of_archives(None, Some(&again), &files(&["sepolia"]));
    assert!(matches!(other, Err(FolderChainError::ArchivesOfOther { .. })), "{other:?}");
}

#[test]
fn an_empty_folder_may_become_another_chains_and_forgets_the_genesis() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    remember(
        &store,
        &FolderChain::find(Some(named_genesis()), Some(&store), None).unwrap().unwrap(),
    );
    let named = NamedChain::Id { chain_id: 7, genesis_hash: None };
    let chain = FolderChain::find(Some(named), Some(&store), None).unwrap().unwrap();
    assert_eq!(chain.spec().chain_id(), Some(7));
    let mut writer = Writer::open(Arc::clone(&store), chain.spec().clone()).unwrap();
    chain.settle(&mut writer).unwrap();
    assert_eq!(store.read_genesis().unwrap(), None);
}

#[test]
fn a_kept_genesis_that_is_damaged_is_refused_with_its_place_and_blocks_are_still_proven() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let chain = FolderChain::find(Some(named_genesis()), Some(&store), None).unwrap().unwrap();
    remember(&store, &chain);
    std::fs::write(folder.path().join(GENESIS_NAME), "{}").unwrap();
    let again = open(folder.path());
    let error = held_spec(&again).unwrap_err();
    assert!(matches!(error, FolderChainError::Store(StoreError::GenesisFile { .. })), "{error:?}");
    assert!(error.to_string().contains(GENESIS_NAME), "{error}");
    assert_eq!(proving_spec(&again).genesis_hash(), chain.spec().genesis_hash());
    // One that is named takes its place, whatever the kept one says.
    assert!(FolderChain::find(Some(named_genesis()), Some(&again), None).is_ok());
}

#[test]
fn a_folder_without_blocks_names_what_it_knows_and_a_genesis_of_another_chain_contradicts_it() {
    let network =
        Network { name: Some("private".to_owned()), chain_id: Some(1), genesis_hash: None };
    assert_eq!(spec_of_network(&network).unwrap().name(), "private");
    let place = || "genesis.json".to_owned();
    let error = check_kept(parse_genesis(&genesis_text(), None), &network, place()).unwrap_err();
    assert_eq!(error.to_string(), "genesis.json: has chain id 20260101, the manifest says 1");
    let error = check_kept(parse_genesis(b"{", None), &network, place()).unwrap_err();
    assert!(matches!(error, FolderChainError::KeptGenesis { .. }), "{error:?}");
}

#[test]
fn a_chain_that_is_held_is_not_taken_for_another() {
    let held = |spec| FolderFacts {
        folder: "FOLDER".to_owned(),
        network: Network { name: Some("sample".to_owned()), ..Network::default() },
        spec,
        first_hash: None,
        is_empty: false,
    };
    let own = ChainSpec::bare("sample", Some(5), Some(B256::repeat_byte(1)));
    let id = |chain_id| NamedChain::Id { chain_id, genesis_hash: None };
    // The name of the folder's chain is not that of another one.
    for (name, expected) in [(None, "chain-6"), (Some("archived"), "archived")] {
        let error = FolderChain::named(id(6), held(Some(own.clone())), name).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "FOLDER holds sample with chain id 5, the flags name {expected} with chain id 6"
            )
        );
    }
    // A chain id alone says less than what the folder knows.
    let chain = FolderChain::named(id(5), held(Some(own)), None).unwrap();
    assert_eq!(chain.spec().genesis_hash(), Some(B256::repeat_byte(1)));
}
