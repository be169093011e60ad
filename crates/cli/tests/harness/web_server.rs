//! A web server over real sockets: it shows a folder by name and by ranges, or fails for a while.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// A running server; its threads end with the test.
pub(crate) struct WebServer {
    pub(crate) url: String,
    shown: Arc<ShownFolder>,
}

struct ShownFolder {
    path: PathBuf,
    is_away: AtomicBool,
    /// Whether files come whole, whatever was asked for.
    is_without_ranges: AtomicBool,
    /// Whether ranges are awaited in vain.
    hangs_on_ranges: AtomicBool,
    requests: AtomicUsize,
}

impl WebServer {
    pub(crate) fn of(folder: &Path) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let shown = Arc::new(ShownFolder {
            path: folder.to_owned(),
            is_away: AtomicBool::new(false),
            is_without_ranges: AtomicBool::new(false),
            hangs_on_ranges: AtomicBool::new(false),
            requests: AtomicUsize::new(0),
        });
        let kept = Arc::clone(&shown);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let shown = Arc::clone(&kept);
                // A client that leaves is not worth a word.
                thread::spawn(move || shown.answer(&stream));
            }
        });
        Self { url, shown }
    }

    /// From here on whoever asks is left without an answer, or gets one again.
    pub(crate) fn set_away(&self, is_away: bool) {
        self.shown.is_away.store(is_away, Ordering::SeqCst);
    }

    /// From here on it answers no requests for ranges.
    pub(crate) fn ignore_ranges(&self) {
        self.shown.is_without_ranges.store(true, Ordering::SeqCst);
    }

    /// From here on whoever requests a range waits for it.
    pub(crate) fn hang_on_ranges(&self) {
        self.shown.hangs_on_ranges.store(true, Ordering::SeqCst);
    }

    /// How many requests came.
    pub(crate) fn requests(&self) -> usize {
        self.shown.requests.load(Ordering::SeqCst)
    }
}

impl ShownFolder {
    /// Answers one request. Each connection ends with it, as nobody measures time here.
    fn answer(&self, mut stream: &TcpStream) -> Option<()> {
        stream.set_read_timeout(Some(Duration::from_secs(20))).ok()?;
        let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
        let first = lines.next()?;
        let mut words = first.split(' ');
        let (method, path) = (words.next()?, words.next()?.trim_start_matches('/'));
        let mut asked = None;
        for line in lines.take_while(|line| !line.is_empty()) {
            let line = line.to_ascii_lowercase();
            asked = line.strip_prefix("range: bytes=").map(str::to_owned).or(asked);
        }
        self.requests.fetch_add(1, Ordering::SeqCst);
        if self.is_away.load(Ordering::SeqCst) {
            return None;
        }
        if asked.is_some() && self.hangs_on_ranges.load(Ordering::SeqCst) {
            let _ = stream.read(&mut [0]);
            return None;
        }
        let path = self.path.join(path);
        let Ok(file) = fs::read(&path) else {
            let gone = "HTTP/1.1 404 X\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
            return stream.write_all(gone.as_bytes()).ok();
        };
        let asked = asked.filter(|_| !self.is_without_ranges.load(Ordering::SeqCst));
        let range = asked.and_then(|asked| parse_range(&asked, file.len()));
        let (status, told) = match &range {
            None => (200, String::new()),
            Some(Range { start, end }) => {
                (206, format!("content-range: bytes {start}-{}/{}\r\n", end - 1, file.len()))
            }
        };
        let body = &file[range.unwrap_or(0..file.len())];
        let head = format!(
            "HTTP/1.1 {status} X\r\nconnection: close\r\nlast-modified: Thu, 01 Jan 2026 00:00:00 \
             GMT\r\n{told}content-length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).ok()?;
        if method != "HEAD" {
            stream.write_all(body).ok()?;
        }
        // The client closes when it has read all of it.
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let _ = stream.read(&mut [0]);
        Some(())
    }
}

/// The bytes that a range header names, of a file that has them.
fn parse_range(asked: &str, length: usize) -> Option<Range<usize>> {
    let (start, last) = asked.trim().split_once('-')?;
    let range = match (start, last) {
        ("", last) => length.saturating_sub(last.parse().ok()?)..length,
        (start, "") => start.parse().ok()?..length,
        (start, last) => start.parse().ok()?..last.parse::<usize>().ok()?.min(length - 1) + 1,
    };
    (range.start < range.end).then_some(range)
}
