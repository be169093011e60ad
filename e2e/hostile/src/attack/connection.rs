//! One connection of an attacker.

use std::io::{self, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use socket2::{Domain, Protocol, Type};

use super::Attack;
use crate::http1::read_answer;

/// Between two looks whether it is still worth waiting.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// For the server to take a connection.
const CONNECT_WITHIN: Duration = Duration::from_secs(20);

/// Segments of one who takes little. Over loopback they are 64 KiB otherwise, and the server's kernel
/// then keeps 2.6 MB for every connection, whatever the server does: no stranger's are that long.
const NARROW_SEGMENT_BYTES: u32 = 1000;
/// What the kernel takes for one who takes little.
const NARROW_BUFFER_BYTES: usize = 4096;

/// How a socket is made.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Socket {
    /// As the system likes.
    Usual,
    /// With small segments and a small window.
    Narrow,
    /// One that is reset instead of closed.
    Abrupt,
}

/// Until when it is waited for bytes to come or to go.
#[derive(Clone, Copy, Debug)]
enum Patience {
    /// Until they do, or all is late.
    Late,
    /// For as long as the abuse goes on.
    Abuse,
    /// Not at all.
    None,
}

/// A connection that hides nothing and minds nothing.
#[derive(Debug)]
pub(crate) struct RawConnection<'a> {
    stream: TcpStream,
    attack: &'a Attack<'a>,
    patience: Patience,
    /// Bytes that were sent.
    pub(crate) sent: usize,
    is_closed: bool,
}

impl<'a> RawConnection<'a> {
    pub(crate) fn open(attack: &'a Attack<'_>, socket: Socket) -> io::Result<Self> {
        let made = socket2::Socket::new(
            Domain::for_address(attack.address),
            Type::STREAM,
            Some(Protocol::TCP),
        )?;
        match socket {
            Socket::Usual => {}
            Socket::Narrow => {
                made.set_tcp_mss(NARROW_SEGMENT_BYTES)?;
                made.set_recv_buffer_size(NARROW_BUFFER_BYTES)?;
            }
            Socket::Abrupt => made.set_linger(Some(Duration::ZERO))?,
        }
        made.connect_timeout(&attack.address.into(), CONNECT_WITHIN)?;
        let stream = TcpStream::from(made);
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(LOOK_EVERY))?;
        stream.set_write_timeout(Some(LOOK_EVERY))?;
        attack.tally.count_connected();
        Ok(Self { stream, attack, patience: Patience::Late, sent: 0, is_closed: false })
    }

    /// The same connection for another thread.
    pub(super) fn second(&self) -> io::Result<Self> {
        let stream = self.stream.try_clone()?;
        Ok(Self { stream, is_closed: true, ..*self })
    }

    /// From now on it waits only while the abuse goes on: nobody may be there to read.
    pub(crate) fn hurried(mut self) -> Self {
        self.patience = Patience::Abuse;
        self
    }

    /// From now on it takes and gives only what can be at once.
    pub(crate) fn without_waiting(mut self) -> io::Result<Self> {
        self.stream.set_nonblocking(true)?;
        self.patience = Patience::None;
        Ok(self)
    }

    /// Sends what can be sent at once; what cannot is left.
    pub(crate) fn send_at_once(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self.write(bytes) {
            Err(error) if is_timeout(&error) => Ok(()),
            sent => sent.map(drop),
        }
    }

    /// Takes at most so many bytes of what is there.
    pub(crate) fn take_at_once(&mut self, count_max: usize) -> io::Result<()> {
        let mut bytes = vec![0; count_max];
        match self.read(&mut bytes) {
            Err(error) if is_timeout(&error) => Ok(()),
            Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
            read => read.map(drop),
        }
    }

    /// Reads until the server ends the connection.
    pub(crate) fn drain(&mut self) -> io::Result<()> {
        let mut part = vec![0; 64 * 1024];
        while self.read(&mut part)? > 0 {}
        Ok(())
    }

    /// Reads answers of HTTP/1.1 until there were so many, or until the server ends the connection.
    pub(crate) fn read_answers(&mut self, count_max: usize) -> io::Result<Vec<u16>> {
        let (mut statuses, mut body) = (Vec::new(), Vec::new());
        let tally = &self.attack.tally;
        let mut source = BufReader::with_capacity(64 * 1024, self);
        while statuses.len() < count_max
            && let Some(status) = read_answer(&mut source, &mut body)?
        {
            tally.count_status(status);
            statuses.push(status);
        }
        Ok(statuses)
    }

    /// Says that nothing more comes.
    pub(super) fn finish(&self) {
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// Ends it for both threads.
    pub(super) fn end(&self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }

    fn wait<T>(&mut self, mut act: impl FnMut(&TcpStream) -> io::Result<T>) -> io::Result<T> {
        loop {
            let acted = act(&self.stream);
            let Err(error) = &acted else { return acted };
            if error.kind() == ErrorKind::Interrupted {
                continue;
            }
            if !is_timeout(error) {
                self.note_closed();
                return acted;
            }
            let pace = self.attack.pace;
            let is_given_up = match self.patience {
                Patience::Late => pace.is_late(),
                Patience::Abuse => !pace.goes_on(),
                Patience::None => true,
            };
            if is_given_up {
                return acted;
            }
        }
    }

    fn note_closed(&mut self) {
        if !self.is_closed {
            self.is_closed = true;
            self.attack.tally.count_closed();
        }
    }
}

impl Read for RawConnection<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let count = self.wait(|mut stream| stream.read(bytes))?;
        if count == 0 {
            self.note_closed();
        }
        self.attack.tally.count_received(count);
        Ok(count)
    }
}

impl Write for RawConnection<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.wait(|mut stream| stream.write(bytes))?;
        self.sent = self.sent.saturating_add(count);
        self.attack.tally.count_sent(count);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}
