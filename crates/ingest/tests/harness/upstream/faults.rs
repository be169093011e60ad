//! What a node does wrong, on purpose.

use std::time::Duration;

use serde_json::Value;

use super::node::number_of;

/// A fault of one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// An HTTP status, and how many seconds the node asks to be left alone.
    Status(u16, Option<u64>),
    /// No answer, for so long.
    Stall(Duration),
    /// The connection ends in the middle of the body.
    Disconnect,
    /// Half of the JSON, as if it were all.
    Truncated,
    /// A field of the header is another.
    WrongHash,
    /// Two receipts have each other's places.
    SwappedReceipts,
    /// A receipt lacks a log.
    MissingLog,
    /// A transaction has another value.
    WrongValue,
    /// A transaction has another sender, by a member that nothing commits to.
    WrongSender,
    /// The block is another one, whole and true.
    OtherBlock,
    /// A field of the header is another, and a member that nobody knows is to excuse it.
    ExcusedHash,
    /// Blocks with their transactions, and receipts, are not given.
    Refused,
    /// What is safe and what is final is not told, with a code and a message.
    RefusedNames(i64, &'static str),
    /// Receipts have a status where consensus has a root.
    NoPostState,
    /// The block lists far too many ommers.
    ManyOmmers,
    /// There is no method for ommers.
    NoOmmerMethod,
    /// Blocks with their transactions are null.
    NoBlock,
    /// Receipts are null, as of a node that has pruned them.
    NoReceipts,
    /// Headers have no hash.
    NoHash,
    /// The tip has this number, by its header.
    TipNumber(u64),
    /// There is no tip.
    NoTip,
    /// Block 0 is not told, with a code and a message.
    RefusedGenesis(i64, &'static str),
    /// The final block has this number, and headers that link lead down from it to the tip.
    InventedFinal(u64),
    /// The answer is true, and the connection ends with it.
    LastOfConnection,
}

/// Those that say what is not true. Each changes every block that it can be seen in.
pub(crate) const LIES: [Fault; 5] = [
    Fault::WrongHash,
    Fault::SwappedReceipts,
    Fault::MissingLog,
    Fault::WrongValue,
    Fault::OtherBlock,
];

impl Fault {
    /// Changes a block with its transactions.
    pub(crate) fn spoil_block(self, block: &mut Value) {
        if matches!(self, Self::WrongHash | Self::ExcusedHash) {
            block["stateRoot"] = block["parentHash"].clone();
        }
        if self == Self::ExcusedHash {
            block["futureRoot"] = block["parentHash"].clone();
        }
        if self == Self::ManyOmmers {
            block["uncles"] = vec![block["parentHash"].clone(); 1000].into();
        }
        if self == Self::WrongValue
            && let Some(tx) = block["transactions"].get_mut(0)
        {
            tx["value"] = Value::from("0x1234567");
        }
        if self == Self::WrongSender
            && let Some(tx) = block["transactions"].get_mut(0)
        {
            tx["from"] = Value::from(format!("0x{}", "11".repeat(20)));
        }
    }

    /// What is said instead of telling a block, with its code.
    pub(crate) fn refusal_of(self, name: &Value) -> Option<(i64, &'static str)> {
        if let Self::RefusedNames(code, message) = self {
            return (name == "safe" || name == "finalized").then_some((code, message));
        }
        let Self::RefusedGenesis(code, message) = self else { return None };
        (name == "0x0").then_some((code, message))
    }

    /// A header that no chain has, if this one is asked for by its name or number.
    pub(crate) fn invent(self, name: &Value, tip: &Value) -> Option<Value> {
        let Self::InventedFinal(highest) = self else { return None };
        let number = if name == "finalized" { highest } else { number_of(name)? };
        if number <= number_of(&tip["number"])? {
            return None;
        }
        let hash = |number: u64| Value::from(format!("{number:#066x}"));
        let mut header = tip.clone();
        header["number"] = format!("{number:#x}").into();
        header["hash"] = hash(number);
        header["parentHash"] = hash(number - 1);
        Some(header)
    }

    /// Changes the header of the tip.
    pub(crate) fn spoil_tip(self, header: &mut Value) {
        if let Self::TipNumber(number) = self {
            header["number"] = format!("{number:#x}").into();
        }
        if self == Self::NoTip {
            *header = Value::Null;
        }
    }

    /// Changes a block's receipts.
    pub(crate) fn spoil_receipts(self, receipts: &mut Vec<Value>) {
        if self == Self::SwappedReceipts && receipts.len() > 1 {
            receipts.swap(0, 1);
        }
        for receipt in receipts {
            if self == Self::MissingLog {
                receipt["logs"].as_array_mut().unwrap().pop();
            }
            if self == Self::NoPostState && receipt.get("root").is_some() {
                receipt.as_object_mut().unwrap().remove("root");
                receipt["status"] = Value::from("0x1");
            }
        }
    }
}
