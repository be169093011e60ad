//! Log filters: which logs `eth_getLogs`, `eth_newFilter` and subscriptions to logs ask for.

pub(crate) mod range;
#[cfg(test)]
mod tests;

use alloy_primitives::{Address, B256, hex};
use chain::{BlockNumber, BlockRange};
use store::LogQuery;

use crate::params::{
    BlockRef, BlockTagName, block_number_or_tag, hash, hex_digits, kind_text, string,
};
use crate::refusal::Refusal;
use crate::scan::{Token, TokenKind};

/// Topics of a log at the most, and so positions of a filter.
const POSITIONS_MAX: usize = 4;
/// Addresses, and topics for one position.
const ALTERNATIVES_MAX: usize = 1000;

const TOO_MANY_TOPICS: &str = "exceed max topics";
const TOO_MANY_ADDRESSES: &str = "exceed max addresses or topics per search position";
const INVALID_TOPIC: &str = "invalid topic(s)";
const HASH_AND_RANGE: &str =
    "cannot specify both BlockHash and FromBlock/ToBlock, choose one or the other";

/// Which logs are asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LogFilter {
    blocks: FilterBlocks,
    query: LogQuery,
}

/// The blocks whose logs are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FilterBlocks {
    /// Both ends included, each a number or a tag.
    Range {
        /// The first.
        from: BlockRef,
        /// The last.
        to: BlockRef,
    },
    /// One, by its hash.
    Hash(B256),
}

impl LogFilter {
    /// Reads a filter object. Names of members are taken in any case, as go-ethereum does: a
    /// criterion that is passed over would answer with logs that nobody asked for.
    pub(crate) fn parse(token: Token<'_>) -> Result<Self, String> {
        if token.kind() != TokenKind::Object {
            return Err(format!("{} where a filter object belongs", kind_text(token)));
        }
        let mut members = FilterMembers::default();
        for (key, value) in token.members() {
            let Some(key) = key.string() else { continue };
            let Some(place) = members.place(&key) else { continue };
            // Two could be two filters.
            if place.replace(value).is_some() {
                return Err("an object in which a member of the filter stands twice".to_owned());
            }
        }
        members.read()
    }

    /// The blocks whose logs are asked for.
    pub(crate) fn blocks(&self) -> FilterBlocks {
        self.blocks
    }

    /// Refuses what go-ethereum refuses of a filter for new blocks: their numbers are not known yet, so
    /// of the tags only the newest block bounds them, and the lowest from below.
    pub(crate) fn check_for_new_blocks(&self) -> Result<(), Refusal> {
        use BlockRef::{Number, Tag};
        use BlockTagName::{Earliest, Latest, Pending};
        let FilterBlocks::Range { from, to } = self.blocks else { return Ok(()) };
        match (from, to) {
            (Tag(Pending), _) | (_, Tag(Pending)) => Err(Refusal::PendingLogs),
            (Tag(Latest | Earliest) | Number(_), Tag(Latest)) | (Tag(Earliest), Number(_)) => {
                Ok(())
            }
            (Number(from), Number(to)) if from <= to => Ok(()),
            _ => Err(Refusal::InvalidBlockRange),
        }
    }

    /// Those of new blocks whose numbers are asked for.
    pub(crate) fn clip(&self, added: BlockRange) -> Option<BlockRange> {
        let FilterBlocks::Range { from, to } = self.blocks else { return Some(added) };
        let number = |end| if let BlockRef::Number(number) = end { Some(number) } else { None };
        let first = number(from).map_or(added.first(), |from| from.max(added.first()));
        let last = number(to).map_or(added.last(), |to| to.min(added.last()));
        if first <= last { BlockRange::from_ends(first, last) } else { None }
    }

    /// Whether logs of this block are asked for.
    pub(crate) fn is_of_block(&self, number: BlockNumber, hash: B256) -> bool {
        match self.blocks {
            FilterBlocks::Hash(wanted) => wanted == hash,
            FilterBlocks::Range { .. } => {
                BlockRange::from_count(number, 1).is_some_and(|one| self.clip(one).is_some())
            }
        }
    }

    /// The addresses and topics that they are to have.
    pub(crate) fn query(&self) -> &LogQuery {
        &self.query
    }
}

/// The members of a filter object, as they were written.
#[derive(Debug, Default)]
struct FilterMembers<'a> {
    block_hash: Option<Token<'a>>,
    from: Option<Token<'a>>,
    to: Option<Token<'a>>,
    address: Option<Token<'a>>,
    topics: Option<Token<'a>>,
}

impl<'a> FilterMembers<'a> {
    /// Where the member of this name belongs; `None` for those that are no part of a filter.
    fn place(&mut self, name: &str) -> Option<&mut Option<Token<'a>>> {
        let places = [
            ("blockHash", &mut self.block_hash),
            ("fromBlock", &mut self.from),
            ("toBlock", &mut self.to),
            ("address", &mut self.address),
            ("topics", &mut self.topics),
        ];
        let found = places.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, place)| place)
    }

    /// Null counts as not given, everywhere.
    fn read(self) -> Result<LogFilter, String> {
        let given = |member: Option<Token<'a>>| member.filter(|it| it.kind() != TokenKind::Null);
        let (block_hash, from, to) = (given(self.block_hash), given(self.from), given(self.to));
        let blocks = match block_hash {
            Some(_) if from.is_some() || to.is_some() => return Err(HASH_AND_RANGE.to_owned()),
            Some(token) => FilterBlocks::Hash(hash(token).map_err(of_member("blockHash"))?),
            None => FilterBlocks::Range {
                from: end_of_range(from).map_err(of_member("fromBlock"))?,
                to: end_of_range(to).map_err(of_member("toBlock"))?,
            },
        };
        let addresses = given(self.address).map_or(Ok(Vec::new()), addresses)?;
        let topics = given(self.topics).map_or(Ok(Vec::new()), topics)?;
        Ok(LogFilter { blocks, query: LogQuery::new(addresses, topics) })
    }
}

fn of_member(name: &'static str) -> impl FnOnce(String) -> String {
    move |reason| format!("{name}: {reason}")
}

/// A number or a tag; the newest block if it is not given.
fn end_of_range(given: Option<Token<'_>>) -> Result<BlockRef, String> {
    given.map_or(Ok(BlockRef::Tag(BlockTagName::Latest)), block_number_or_tag)
}

/// One address, or a list of them.
fn addresses(token: Token<'_>) -> Result<Vec<Address>, String> {
    let address = |text: &str| fixed_bytes(text, "address").map(Address::from);
    match token.kind() {
        TokenKind::String => {
            let decoded = string(token).and_then(|text| address(&text));
            Ok(vec![decoded.map_err(|reason| format!("invalid address: {reason}"))?])
        }
        TokenKind::Array => {
            let mut found = Vec::new();
            for (item, index) in token.items().zip(0_usize..) {
                if index >= ALTERNATIVES_MAX {
                    return Err(TOO_MANY_ADDRESSES.to_owned());
                }
                if item.kind() != TokenKind::String {
                    return Err(format!("non-string address at index {index}"));
                }
                let decoded = string(item).and_then(|text| address(&text));
                let invalid = |reason| format!("invalid address at index {index}: {reason}");
                found.push(decoded.map_err(invalid)?);
            }
            Ok(found)
        }
        TokenKind::Object | TokenKind::Number | TokenKind::Bool | TokenKind::Null => {
            Err("invalid addresses in query".to_owned())
        }
    }
}

/// What the topic at each position may be.
fn topics(token: Token<'_>) -> Result<Vec<Vec<B256>>, String> {
    if token.kind() != TokenKind::Array {
        return Err(format!("{} where a list of topics belongs", kind_text(token)));
    }
    let mut positions = Vec::new();
    for position in token.items() {
        if positions.len() >= POSITIONS_MAX {
            return Err(TOO_MANY_TOPICS.to_owned());
        }
        positions.push(match position.kind() {
            TokenKind::Null => Vec::new(),
            TokenKind::String => vec![topic(position)?],
            TokenKind::Array => alternatives(position)?,
            TokenKind::Object | TokenKind::Number | TokenKind::Bool => {
                return Err(INVALID_TOPIC.to_owned());
            }
        });
    }
    Ok(positions)
}

/// Topics of which a position may have any. A null among them stands for every topic.
fn alternatives(list: Token<'_>) -> Result<Vec<B256>, String> {
    let mut found = Vec::new();
    let mut is_any = false;
    for (item, index) in list.items().zip(0_usize..) {
        if index >= ALTERNATIVES_MAX {
            return Err(TOO_MANY_TOPICS.to_owned());
        }
        match item.kind() {
            TokenKind::Null => is_any = true,
            TokenKind::String => found.push(topic(item)?),
            TokenKind::Object | TokenKind::Array | TokenKind::Number | TokenKind::Bool => {
                return Err(INVALID_TOPIC.to_owned());
            }
        }
    }
    Ok(if is_any { Vec::new() } else { found })
}

fn topic(token: Token<'_>) -> Result<B256, String> {
    fixed_bytes(&string(token)?, "topic").map(B256::new)
}

fn fixed_bytes<const COUNT: usize>(text: &str, what: &str) -> Result<[u8; COUNT], String> {
    let digits = hex_digits(text)?;
    if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err("invalid hex string".to_owned());
    }
    if digits.len() % 2 == 1 {
        return Err("hex string of odd length".to_owned());
    }
    let count = digits.len() / 2;
    let mut bytes = [0; COUNT];
    let wrong_length =
        || format!("hex has invalid length {count} after decoding; expected {COUNT} for {what}");
    if count != COUNT {
        return Err(wrong_length());
    }
    hex::decode_to_slice(digits, &mut bytes).map_err(|_| wrong_length())?;
    Ok(bytes)
}
