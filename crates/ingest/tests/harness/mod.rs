//! What tests share: chains that are made for them, folders, and nodes and mirrors that serve or lie.

pub(crate) mod folder;
pub(crate) mod made;
pub(crate) mod mirror;
pub(crate) mod shared_data;
pub(crate) mod upstream;
