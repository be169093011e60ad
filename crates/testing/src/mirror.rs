//! A mirror over real sockets: it serves a folder as a web server does, or fails as the test demands.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

/// What a mirror was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wish {
    /// The path, without the first slash.
    pub path: String,
    /// The first byte of the range, if one was asked for.
    pub from: Option<usize>,
    /// How often this path was asked for before.
    pub nth: usize,
}

/// How a mirror answers.
#[derive(Clone, Debug)]
pub enum Manner {
    /// As it should, with ranges.
    Well,
    /// With this status and these headers.
    Status(u16, &'static str),
    /// As it should up to so many bytes of the body; then the connection ends.
    Cut(usize),
    /// The whole file, whatever part is asked for.
    NoRanges,
    /// Without a length: the end of the connection is the end of the file.
    NoLength,
    /// The same, and it ends after so many bytes.
    NoLengthCut(usize),
    /// In chunks, without a length.
    Chunked,
    /// These bytes instead of the file's, as if they were.
    Instead(Vec<u8>),
    /// A body without an end.
    Endless,
    /// So many bytes every ten milliseconds.
    Slow(usize),
    /// Another part than was asked for.
    OtherPart,
    /// A head and so many bytes of the body, and then nothing until the mirror is let go on.
    Held(usize),
}

/// A mirror; its threads end with the test.
#[derive(Debug)]
pub struct Mirror {
    /// Where it is.
    pub url: String,
    wishes: Arc<Mutex<Vec<Wish>>>,
    gate: Arc<Gate>,
}

/// What those wait for that are held.
#[derive(Debug, Default)]
struct Gate {
    is_open: Mutex<bool>,
    changed: Condvar,
}

impl Mirror {
    /// Serves a folder; `manner` says how each wish is answered.
    pub fn of(folder: &Path, manner: impl Fn(&Wish) -> Manner + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let wishes = Arc::<Mutex<Vec<Wish>>>::default();
        let gate = Arc::<Gate>::default();
        let server = Arc::new(MirrorServer {
            folder: folder.to_owned(),
            manner: Box::new(manner),
            wishes: Arc::clone(&wishes),
            gate: Arc::clone(&gate),
        });
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let server = Arc::clone(&server);
                // A client that leaves is not worth a word.
                thread::spawn(move || server.answer(&stream));
            }
        });
        Self { url, wishes, gate }
    }

    /// One that answers as it should.
    pub fn good(folder: &Path) -> Self {
        Self::of(folder, |_| Manner::Well)
    }

    /// What it was asked for, in order.
    pub fn wishes(&self) -> Vec<Wish> {
        self.wishes.lock().unwrap().clone()
    }

    /// How often it was asked for files with this ending.
    pub fn count(&self, ending: &str) -> usize {
        self.wishes().iter().filter(|wish| wish.path.ends_with(ending)).count()
    }

    /// Those who are held go on.
    pub fn let_go_on(&self) {
        *self.gate.is_open.lock().unwrap() = true;
        self.gate.changed.notify_all();
    }
}

struct MirrorServer {
    folder: PathBuf,
    manner: Box<dyn Fn(&Wish) -> Manner + Send + Sync>,
    wishes: Arc<Mutex<Vec<Wish>>>,
    gate: Arc<Gate>,
}

impl MirrorServer {
    fn answer(&self, stream: &TcpStream) -> Option<()> {
        let wish = self.read_wish(stream)?;
        let file = fs::read(self.folder.join(&wish.path)).ok();
        let manner = (self.manner)(&wish);
        self.send(stream, &wish, &manner, file);
        let _ = stream.shutdown(Shutdown::Both);
        Some(())
    }

    fn send(
        &self,
        mut stream: &TcpStream,
        wish: &Wish,
        manner: &Manner,
        file: Option<Vec<u8>>,
    ) -> Option<()> {
        let file = if let Manner::Instead(bytes) = manner { Some(bytes.clone()) } else { file };
        if let Manner::Status(status, headers) = manner {
            let head = format!(
                "HTTP/1.1 {status} X\r\nconnection: close\r\n{headers}content-length: 4\r\n\r\nsaid"
            );
            return stream.write_all(head.as_bytes()).ok();
        }
        let Some(file) = file else {
            return stream
                .write_all(b"HTTP/1.1 404 X\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")
                .ok();
        };
        let has_ranges = !matches!(manner, Manner::NoRanges);
        let from = wish.from.filter(|_| has_ranges);
        if from.is_some_and(|from| from >= file.len()) {
            let head = format!(
                "HTTP/1.1 416 X\r\nconnection: close\r\ncontent-range: bytes */{}\r\n\
                 content-length: 0\r\n\r\n",
                file.len()
            );
            return stream.write_all(head.as_bytes()).ok();
        }
        let body = &file[from.unwrap_or(0)..];
        let told = from.map(|from| if matches!(manner, Manner::OtherPart) { 0 } else { from });
        let range = told.map_or(String::new(), |from| {
            format!("content-range: bytes {from}-{}/{}\r\n", file.len() - 1, file.len())
        });
        let length = match manner {
            Manner::NoLength | Manner::NoLengthCut(_) | Manner::Endless => String::new(),
            Manner::Chunked => "transfer-encoding: chunked\r\n".to_owned(),
            Manner::Well
            | Manner::Status(..)
            | Manner::Cut(_)
            | Manner::NoRanges
            | Manner::Instead(_)
            | Manner::Slow(_)
            | Manner::OtherPart
            | Manner::Held(_) => format!("content-length: {}\r\n", body.len()),
        };
        let status = if from.is_some() { 206 } else { 200 };
        let head = format!("HTTP/1.1 {status} X\r\nconnection: close\r\n{range}{length}\r\n");
        stream.write_all(head.as_bytes()).ok()?;
        self.send_body(stream, manner, body)
    }

    fn send_body(&self, mut stream: &TcpStream, manner: &Manner, body: &[u8]) -> Option<()> {
        match manner {
            Manner::Cut(count) | Manner::NoLengthCut(count) => {
                stream.write_all(&body[..body.len().min(*count)]).ok()
            }
            Manner::Endless => loop {
                stream.write_all(&[7; 4096]).ok()?;
            },
            Manner::Slow(count) => body.chunks(*count).try_for_each(|chunk| {
                // It is the mirror that is slow: nobody waits for something here.
                thread::sleep(Duration::from_millis(10));
                stream.write_all(chunk).ok()
            }),
            Manner::Held(count) => {
                let (begin, rest) = body.split_at(body.len().min(*count));
                stream.write_all(begin).ok()?;
                let is_open = self.gate.is_open.lock().unwrap();
                drop(self.gate.changed.wait_while(is_open, |is_open| !*is_open).unwrap());
                stream.write_all(rest).ok()
            }
            Manner::Chunked => {
                for chunk in body.chunks(1000) {
                    write!(stream, "{:x}\r\n", chunk.len()).ok()?;
                    stream.write_all(chunk).ok()?;
                    stream.write_all(b"\r\n").ok()?;
                }
                stream.write_all(b"0\r\n\r\n").ok()
            }
            Manner::Well
            | Manner::Status(..)
            | Manner::NoRanges
            | Manner::NoLength
            | Manner::Instead(_)
            | Manner::OtherPart => stream.write_all(body).ok(),
        }
    }

    fn read_wish(&self, stream: &TcpStream) -> Option<Wish> {
        let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
        let first = lines.next()?;
        let path = first.split(' ').nth(1)?.trim_start_matches('/').to_owned();
        let mut from = None;
        for line in lines.take_while(|line| !line.is_empty()) {
            let line = line.to_ascii_lowercase();
            let range = line.strip_prefix("range: bytes=").and_then(|it| it.strip_suffix('-'));
            from = range.map(|from| from.parse().unwrap()).or(from);
        }
        if first.starts_with("HEAD ") {
            self.report_length(stream, path);
            return None; // it is no wish for the file
        }
        let mut wishes = self.wishes.lock().unwrap();
        let nth = wishes.iter().filter(|wish| wish.path == path).count();
        let wish = Wish { path, from, nth };
        wishes.push(wish.clone());
        Some(wish)
    }

    fn report_length(&self, mut stream: &TcpStream, path: String) -> Option<()> {
        let found = fs::metadata(self.folder.join(&path)).ok()?.len();
        let is_endless =
            matches!((self.manner)(&Wish { path, from: None, nth: 0 }), Manner::Endless);
        let length = if is_endless { u64::MAX / 2 } else { found };
        let head =
            format!("HTTP/1.1 200 X\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n");
        stream.write_all(head.as_bytes()).ok()
    }
}
