//! Forks: their names, their order, and when one begins.

use std::fmt;

/// A change of the rules, oldest first. The `Bpo` forks change blob parameters only (EIP-7892).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "each variant is the fork's own name and nothing more")]
pub enum Fork {
    Frontier,
    Homestead,
    Dao,
    TangerineWhistle,
    SpuriousDragon,
    Byzantium,
    Constantinople,
    Petersburg,
    Istanbul,
    MuirGlacier,
    Berlin,
    London,
    ArrowGlacier,
    GrayGlacier,
    Paris,
    Shanghai,
    Cancun,
    Prague,
    Osaka,
    Bpo1,
    Bpo2,
    Bpo3,
    Bpo4,
    Bpo5,
    Amsterdam,
    Bogota,
}

impl Fork {
    /// The name people use for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Frontier => "Frontier",
            Self::Homestead => "Homestead",
            Self::Dao => "DAO",
            Self::TangerineWhistle => "Tangerine Whistle",
            Self::SpuriousDragon => "Spurious Dragon",
            Self::Byzantium => "Byzantium",
            Self::Constantinople => "Constantinople",
            Self::Petersburg => "Petersburg",
            Self::Istanbul => "Istanbul",
            Self::MuirGlacier => "Muir Glacier",
            Self::Berlin => "Berlin",
            Self::London => "London",
            Self::ArrowGlacier => "Arrow Glacier",
            Self::GrayGlacier => "Gray Glacier",
            Self::Paris => "Paris",
            Self::Shanghai => "Shanghai",
            Self::Cancun => "Cancun",
            Self::Prague => "Prague",
            Self::Osaka => "Osaka",
            Self::Bpo1 => "BPO1",
            Self::Bpo2 => "BPO2",
            Self::Bpo3 => "BPO3",
            Self::Bpo4 => "BPO4",
            Self::Bpo5 => "BPO5",
            Self::Amsterdam => "Amsterdam",
            Self::Bogota => "Bogota",
        }
    }
}

impl fmt::Display for Fork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// When a fork begins: before Shanghai at a block number, from Shanghai on at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Activation {
    /// From the block with this number.
    Block(u64),
    /// From the first block with at least this timestamp.
    Time(u64),
}

impl Activation {
    /// Whether the fork's rules hold for a block of this number and timestamp.
    #[must_use]
    pub fn is_active(self, number: u64, timestamp: u64) -> bool {
        match self {
            Self::Block(first) => number >= first,
            Self::Time(first) => timestamp >= first,
        }
    }
}

impl fmt::Display for Activation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Block(first) => write!(f, "block {first}"),
            Self::Time(first) => write!(f, "time {first}"),
        }
    }
}
