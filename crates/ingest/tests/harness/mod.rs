//! What tests share: chains that are made for them, folders, and nodes that serve or lie.

pub(crate) mod folder;
pub(crate) mod made;
pub(crate) mod upstream;
