//! One file for each command.

pub(crate) mod at;
pub(crate) mod backfill;
pub(crate) mod check;
pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod export;
pub(crate) mod fetch;
pub(crate) mod health;
pub(crate) mod import;
pub(crate) mod index;
pub(crate) mod key;
pub(crate) mod man;
pub(crate) mod merge;
pub(crate) mod prove;
pub(crate) mod prune;
pub(crate) mod publish;
pub(crate) mod repair;
pub(crate) mod rewind;
pub(crate) mod sample;
pub(crate) mod serve;
pub(crate) mod stat;
pub(crate) mod verify;
pub(crate) mod verify_proof;
