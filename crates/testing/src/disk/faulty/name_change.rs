//! Changes of the names of the faulty disk.

use std::collections::BTreeMap;

/// A change of the folder.
#[derive(Debug)]
pub(super) enum NameChange {
    Create { name: String, id: u64 },
    Rename { from: String, to: String, id: u64 },
    Remove { name: String },
}

impl NameChange {
    pub(super) fn apply(&self, names: &mut BTreeMap<String, u64>) {
        match self {
            Self::Create { name, id } => {
                names.insert(name.clone(), *id);
            }
            Self::Rename { from, to, id } => {
                if names.get(from) == Some(id) {
                    names.remove(from);
                }
                names.insert(to.clone(), *id);
            }
            Self::Remove { name } => {
                names.remove(name);
            }
        }
    }
}
