//! Abuse of WebSocket: messages that never end, long ones, control frames, and what is not read.

use std::io::{self, Read as _, Write as _};

use anyhow::Result;

use crate::attack::{Attack, RawConnection, send_and_receive};
use crate::websocket_frames::{CONTINUE, HANDSHAKE, PING, TEXT, TEXT_BEGIN, frame, head};

/// Of a message that never ends.
const FRAGMENT_BYTES: usize = 64 * 1024;
const FRAGMENT_COUNT: usize = 16;
/// Frames that are sent together.
const CHUNK_COUNT: usize = 500;
/// Of a long message.
const LONG_BYTES: usize = 4 << 20;
/// No message is longer.
const MESSAGE_BYTES_MAX: u64 = 5 << 20;
/// Messages of one socket that the server answers at the same time.
const REQUESTS_MAX: usize = 32;

fn open<'a>(attack: &'a Attack<'_>) -> io::Result<RawConnection<'a>> {
    shake_hands(attack.connect()?)
}

fn shake_hands(mut connection: RawConnection<'_>) -> io::Result<RawConnection<'_>> {
    connection.write_all(HANDSHAKE.as_bytes())?;
    connection.read_answers(1)?;
    Ok(connection)
}

/// Much of a message, and never its end.
pub(super) fn unfinished_messages(attack: &Attack<'_>) -> Result<()> {
    let part = vec![b' '; FRAGMENT_BYTES];
    let (first, next) = (frame(TEXT_BEGIN, &part), frame(CONTINUE, &part));
    let ping = frame(PING, b"");
    let opened = |_| {
        let mut connection = open(attack)?;
        connection.write_all(&first)?;
        for _ in 1..FRAGMENT_COUNT {
            connection.write_all(&next)?;
        }
        connection.without_waiting()
    };
    attack.keep(opened, |connection| {
        connection.send_at_once(&ping)?;
        connection.take_at_once(4096)
    })
}

/// A long message that is answered, and then nothing but PINGs.
pub(super) fn long_messages(attack: &Attack<'_>) -> Result<()> {
    let mut asked = br#"{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber"}"#.to_vec();
    asked.resize(LONG_BYTES, b' ');
    let message = frame(TEXT, &asked);
    let ping = frame(PING, b"");
    let opened = |_| {
        let mut connection = open(attack)?;
        connection.write_all(&message)?;
        // Of the answer.
        connection.read_exact(&mut [0; 2])?;
        connection.without_waiting()
    };
    attack.keep(opened, |connection| {
        connection.send_at_once(&ping)?;
        connection.take_at_once(4096)
    })
}

/// Every ping has to be answered. Every other client does not read that.
pub(super) fn control_frames(attack: &Attack<'_>) -> Result<()> {
    let chunk = frame(PING, &[b'a'; 125]).repeat(CHUNK_COUNT);
    attack.repeat(|lane| flood(attack, &[], &chunk, lane.is_multiple_of(2)))
}

/// A message that is nearly all heads of frames. The server ends it when it is too long.
pub(super) fn one_byte_frames(attack: &Attack<'_>) -> Result<()> {
    let chunk = frame(CONTINUE, b" ").repeat(CHUNK_COUNT);
    attack.repeat(|_| flood(attack, &frame(TEXT_BEGIN, b"["), &chunk, true))
}

fn flood(attack: &Attack<'_>, begin: &[u8], chunk: &[u8], is_read: bool) -> io::Result<()> {
    let mut connection = open(attack)?;
    connection.write_all(begin)?;
    let send = |connection: &mut RawConnection<'_>| {
        while attack.pace.goes_on() {
            connection.write_all(chunk)?;
        }
        Ok(())
    };
    if is_read {
        send_and_receive(connection, send, drain)
    } else {
        send(&mut connection.hurried())
    }
}

/// A method would be one of one lifetime only.
fn drain(connection: &mut RawConnection<'_>) -> io::Result<()> {
    connection.drain()
}

/// Frames that are announced and must be refused at once.
pub(super) fn huge_frames(attack: &Attack<'_>) -> Result<()> {
    attack.repeat(|_| {
        for length in [1 << 40, MESSAGE_BYTES_MAX.saturating_add(1)] {
            let mut connection = open(attack)?;
            connection.write_all(&head(TEXT, length))?;
            // Ends when the server does.
            connection.drain()?;
        }
        Ok(())
    })
}

/// As many of the longest answers as a socket may ask for, none of them read.
pub(super) fn unread(attack: &Attack<'_>) -> Result<()> {
    let asked = frame(TEXT, attack.largest.batch.as_bytes());
    let ping = frame(PING, b"");
    let opened = |_| {
        let mut connection = shake_hands(attack.connect_narrow()?)?;
        // Behind them the server reads no further.
        connection = connection.without_waiting()?;
        for _ in 0..REQUESTS_MAX {
            connection.send_at_once(&asked)?;
        }
        Ok(connection)
    };
    attack.keep(opened, |connection| connection.send_at_once(&ping))
}
