//! The identity of a chain.

use std::fmt;

use alloy_primitives::B256;

/// The identity of a node's chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The chain id of EIP-155.
    pub chain_id: u64,
    /// The hash of block 0; `None` if the node does not have that block any more.
    pub genesis_hash: Option<B256>,
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "chain id {}", self.chain_id)?;
        self.genesis_hash.map_or(Ok(()), |hash| write!(f, " and genesis hash {hash}"))
    }
}

impl Identity {
    /// Why a node is not of the chain with this id and genesis hash; `None` if it may be. Only what
    /// both sides know is compared: a node without old history has no block 0 to show.
    #[must_use]
    pub fn find_difference(
        &self,
        chain_id: Option<u64>,
        genesis_hash: Option<B256>,
    ) -> Option<String> {
        if let Some(expected) = chain_id.filter(|expected| *expected != self.chain_id) {
            return Some(format!("it has chain id {}, expected {expected}", self.chain_id));
        }
        let (found, expected) = self.genesis_hash.zip(genesis_hash)?;
        (found != expected).then(|| format!("it has genesis hash {found}, expected {expected}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_of_our_chain_by_its_chain_id_and_by_its_genesis_if_it_has_one() {
        let hash = B256::repeat_byte;
        let check = |node: (u64, Option<B256>), own: (Option<u64>, Option<B256>)| {
            let identity = Identity { chain_id: node.0, genesis_hash: node.1 };
            identity.find_difference(own.0, own.1)
        };
        let own = (Some(7), Some(hash(1)));
        assert_eq!(check((7, Some(hash(1))), own), None);
        assert_eq!(check((7, None), own), None);
        let said = check((8, Some(hash(1))), own);
        assert_eq!(said.as_deref(), Some("it has chain id 8, expected 7"));
        let said = check((7, Some(hash(2))), own).unwrap();
        assert!(said.starts_with("it has genesis hash 0x0202"), "{said}");
        assert_eq!(check((7, Some(hash(2))), (Some(7), None)), None);
        assert_eq!(check((9, Some(hash(2))), (None, Some(hash(2)))), None);
    }
}
