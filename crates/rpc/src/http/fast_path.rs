//! HTTP/1.1 as nearly every client speaks it, straight from the socket: POST, a length, JSON.
//!
//! hyper pays for header maps, channels for bodies and states that these requests never need: see
//! `docs/decisions/0035-http-fast-path.md` for what going past it measured.

mod admit_head;
mod date;
mod read_buffer;
mod request_head;

use std::future::{Future, poll_fn};
use std::io::{self, IoSlice};
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::StatusCode;
use hyper::body::Bytes;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::watch;
use tokio::time::{Instant, Sleep, sleep_until, timeout};

use super::bulk_thread::{INLINE_BYTES_MAX, RequestOrigin};
use super::byte_stream::ByteStream;
use super::compression::{self, Coding};
use super::response::{HttpAnswer, rate_limited, refused, status_of};
use super::settings::STOP_GRACE;
use super::write_progress::WriteProgress;
use super::{HttpSettings, Server};
use crate::admission::ConnectionCaller;
use crate::answered_range::ANSWERED;
use crate::in_time::in_time;
use crate::refusal::ExceededRate;
use crate::reply::Reply;
use crate::request_log::{REQUEST_ID, sane_id};
use crate::spare;
use crate::work_slice::WorkSlice;

use admit_head::admit_head;
use read_buffer::ReadBuffer;
use request_head::read_head;

/// Bytes of a request's head at the most, whoever reads it; hyper tells the client of more.
pub(super) const HEAD_BYTES_MAX: usize = 16 * 1024;
/// Of a head that is remembered: ten thousand connections remember one each.
const HEAD_BYTES_KEPT_MAX: usize = 512;
/// Header fields of a head at the most, the same.
const HEADERS_MAX: usize = 48;

/// How a connection of HTTP/2 begins (RFC 9113, 3.4).
pub(super) const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// For a client to read the last answer of a connection, and to send what it was sending.
const LINGER_TIMEOUT: Duration = Duration::from_secs(2);
/// The same while the server stops, which nobody should hold up by keeping a connection open.
const LINGER_STOPPING: Duration = Duration::from_millis(500);

/// How a connection went.
#[derive(Debug)]
pub(super) enum FastPathOutcome<S> {
    /// It is over.
    Ended,
    /// It is hyper's now, with what has come of the next request.
    Other(S, Bytes),
}

/// What the bytes so far are.
#[derive(Debug, PartialEq, Eq)]
enum RequestHead {
    /// The beginning of a head.
    Partial,
    /// Nothing for us.
    Other,
    /// The beginning of a connection of HTTP/2, where a request of HTTP/1.1 came before it.
    Http2,
    /// A request of our kind.
    Post(Post),
}

/// A request whose head is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Post {
    head_bytes: usize,
    body_bytes: usize,
    /// How the client likes long answers.
    coding: Option<Coding>,
    /// Where in the head it says what the request is called: from, and up to.
    request_id: Option<(usize, usize)>,
}

/// Why nothing more is read.
enum ReadEnd {
    /// The client or the network ended it.
    Ended,
    /// The server stops.
    Stopping,
    /// It took too long.
    Late,
    /// There is no room for more.
    Overloaded,
}

/// A connection.
#[derive(Debug)]
struct Connection<'a, S> {
    server: &'a Server,
    stream: S,
    /// What was read and not yet answered.
    buffer: ReadBuffer,
    /// Work since others had their turn.
    slice: WorkSlice,
    /// The head of an answer, kept for its room.
    head: Vec<u8>,
    last_request: LastRequest,
    /// Who sent it.
    caller: ConnectionCaller,
    /// The timer and the server's stop know that this connection waits.
    is_armed: bool,
    /// When a request came that saw the server stop.
    told_at: Option<Instant>,
}

/// The head of the last request and what it is: most clients send the same one again and again, and
/// comparing it takes less than reading it.
#[derive(Debug, Default)]
struct LastRequest {
    head: Vec<u8>,
    post: Option<Post>,
    /// How many heads were read, remembered or not: the number of the last.
    number: u64,
}

impl LastRequest {
    /// What the bytes so far are.
    fn read_head(&mut self, bytes: &[u8], settings: &HttpSettings) -> RequestHead {
        if let Some(post) = self.post.filter(|_| bytes.starts_with(&self.head)) {
            return RequestHead::Post(post);
        }
        let head = read_head(bytes, settings);
        match head {
            RequestHead::Post(post) => {
                let own =
                    bytes.get(..post.head_bytes).filter(|own| own.len() <= HEAD_BYTES_KEPT_MAX);
                self.post = own.map(|_| post);
                self.head.clear();
                self.head.extend_from_slice(own.unwrap_or_default());
                self.number = self.number.saturating_add(1);
                head
            }
            // hyper would take it for a new connection: what stands between us and the client saw
            // one of HTTP/1.1, and would take frames for answers.
            RequestHead::Other if self.number > 0 && bytes.starts_with(HTTP2_PREFACE) => {
                RequestHead::Http2
            }
            RequestHead::Other if self.number > 0 && HTTP2_PREFACE.starts_with(bytes) => {
                RequestHead::Partial
            }
            RequestHead::Other | RequestHead::Partial | RequestHead::Http2 => head,
        }
    }
}

/// Serves a connection for as long as its requests are of this kind.
pub(super) async fn serve<S: ByteStream>(
    server: &Server,
    stream: S,
    client: IpAddr,
    stopping: &mut watch::Receiver<bool>,
) -> FastPathOutcome<S> {
    Connection::new(server, stream, client).serve(stopping).await
}

impl<'a, S: ByteStream> Connection<'a, S> {
    fn new(server: &'a Server, stream: S, client: IpAddr) -> Self {
        Connection {
            server,
            stream,
            buffer: ReadBuffer::default(),
            slice: WorkSlice::default(),
            head: Vec::new(),
            last_request: LastRequest::default(),
            caller: ConnectionCaller::new(client),
            is_armed: false,
            told_at: None,
        }
    }

    /// Serves requests of our kind, until one of another comes.
    async fn serve(mut self, stopping: &mut watch::Receiver<bool>) -> FastPathOutcome<S> {
        let news = stopping.clone();
        let mut timer = pin!(sleep_until(Instant::now()));
        // One future for all waits: it is asked only when there is nothing to read.
        let mut stop = pin!(stopping.wait_for(|is_stopping| *is_stopping));
        let mut is_stopping = *news.borrow();
        let settings = &self.server.settings;
        loop {
            // When what is waited for now began to be, once that is asked: most requests come whole.
            let mut since = None;
            let mut known = None;
            let post = loop {
                let head = known.map_or_else(|| self.read_head(), RequestHead::Post);
                let unread = self.buffer.unread();
                match head {
                    RequestHead::Other => {
                        return FastPathOutcome::Other(self.stream, self.buffer.into_unread());
                    }
                    RequestHead::Http2 => {
                        let reason = "HTTP/2 cannot begin behind a request of HTTP/1.1";
                        return self.end_with(refused(StatusCode::BAD_REQUEST, reason)).await;
                    }
                    RequestHead::Post(post) if post.is_whole(unread) => break post,
                    RequestHead::Post(post) if known.is_none() => {
                        known = Some(post);
                        since = None;
                    }
                    RequestHead::Post(_) | RequestHead::Partial => {}
                }
                let was_empty = unread.is_empty();
                let patience = match known {
                    Some(_) => settings.body_timeout,
                    None if was_empty => settings.idle_timeout,
                    None => settings.header_timeout,
                };
                let mut stopped = |context: &mut Context<'_>| {
                    is_stopping = is_stopping || stop.as_mut().poll(context).is_ready();
                    // What has begun is finished.
                    is_stopping && was_empty
                };
                let mut deadline = || since.get_or_insert_with(Instant::now).checked_add(patience);
                let wanted = known.map_or(HEAD_BYTES_MAX, |post| post.end());
                let wait = ReadWait { wanted, news: &news };
                match self.read_more(timer.as_mut(), wait, &mut deadline, &mut stopped).await {
                    Ok(()) if was_empty => since = None,
                    Ok(()) => {}
                    Err(ReadEnd::Late) if known.is_some() => {
                        let late = "request body took too long";
                        let answer = self.count_failed(refused(StatusCode::REQUEST_TIMEOUT, late));
                        return self.end_with(answer).await;
                    }
                    Err(ReadEnd::Overloaded) => return self.end_overloaded().await,
                    // What was sent before may still be on its way.
                    Err(ReadEnd::Stopping) if self.reads_within(STOP_GRACE).await => since = None,
                    Err(ReadEnd::Ended | ReadEnd::Stopping | ReadEnd::Late) => {
                        if known.is_some() {
                            // Nobody is left to be told of a rate.
                            let _ = self.take_call();
                        }
                        return FastPathOutcome::Ended;
                    }
                }
            };
            // Requests that have come are answered, and the last of them says that it is.
            let is_told = is_stopping || news.has_changed().unwrap_or(true);
            let is_last = is_told && self.is_last(&post).await;
            if self.answer(post, is_last).await.is_err() {
                return FastPathOutcome::Ended;
            }
            if is_last {
                self.linger(LINGER_STOPPING).await;
                return FastPathOutcome::Ended;
            }
        }
    }
}

impl<S> Connection<'_, S> {
    /// What the bytes so far are. Whoever is not let in, or has asked too much and has a long body still
    /// to send, is told so by hyper, before its body is read.
    fn read_head(&mut self) -> RequestHead {
        let Self { server, buffer, last_request, caller, .. } = self;
        let unread = buffer.unread();
        let head = last_request.read_head(unread, &server.settings);
        let RequestHead::Post(post) = head else { return head };
        let bytes = unread.get(..post.head_bytes).unwrap_or_default();
        let is_admitted = admit_head(server, caller, last_request.number, bytes);
        // A short body is waited for, so that each of its calls is refused by its id.
        let is_awaited = post.body_bytes > INLINE_BYTES_MAX && !post.is_whole(unread);
        let is_in_debt = || caller.last().is_some_and(|caller| caller.check().is_err());
        let is_ours = is_admitted && !(is_awaited && is_in_debt());
        if is_ours { head } else { RequestHead::Other }
    }

    /// Counts a request that fails before its calls are known as one call; tells how it is answered.
    fn count_failed(&self, answer: HttpAnswer) -> HttpAnswer {
        self.take_call().map_or_else(rate_limited, |()| answer)
    }

    fn take_call(&self) -> Result<(), ExceededRate> {
        self.caller.last().map_or(Ok(()), |caller| caller.take(1))
    }
}

impl Post {
    fn end(&self) -> usize {
        self.head_bytes.saturating_add(self.body_bytes)
    }

    /// What the client calls it, if it says so.
    fn request_id(&self, bytes: &[u8]) -> Option<String> {
        let (begin, end) = self.request_id?;
        bytes.get(begin..end).and_then(sane_id).map(str::to_owned)
    }

    fn is_whole(&self, bytes: &[u8]) -> bool {
        bytes.len() >= self.end()
    }
}

/// What is waited for.
#[derive(Clone, Copy)]
struct ReadWait<'a> {
    /// Bytes of the request, as far as that is known.
    wanted: usize,
    /// Tells that the server stops.
    news: &'a watch::Receiver<bool>,
}

impl<S: ByteStream> Connection<'_, S> {
    /// Waits for more bytes.
    async fn read_more(
        &mut self,
        mut timer: Pin<&mut Sleep>,
        wait: ReadWait<'_>,
        deadline: &mut impl FnMut() -> Option<Instant>,
        stopped: &mut impl FnMut(&mut Context<'_>) -> bool,
    ) -> Result<(), ReadEnd> {
        poll_fn(|context| {
            if let Poll::Ready(read) = self.poll_read(context, wait.wanted) {
                return Poll::Ready(read);
            }
            self.slice.begin();
            // Both have been asked before, know whom to wake and have nothing to say, as between
            // most requests. How long an idle wait is, is asked when the timer ends: such a wait
            // ends after its time and before twice that.
            let is_news = wait.news.has_changed().unwrap_or(true) || timer.is_elapsed();
            if self.is_armed && self.buffer.is_empty() && !is_news {
                return Poll::Pending;
            }
            if stopped(context) {
                return Poll::Ready(Err(ReadEnd::Stopping));
            }
            // A time past the end of all clocks never comes.
            let Some(deadline) = deadline() else { return Poll::Pending };
            // A timer that fires too early is set again: most requests never move it.
            if deadline < timer.deadline() || timer.is_elapsed() {
                timer.as_mut().reset(deadline);
            }
            while timer.as_mut().poll(context).is_ready() {
                if Instant::now() >= deadline {
                    return Poll::Ready(Err(ReadEnd::Late));
                }
                timer.as_mut().reset(deadline);
            }
            self.is_armed = true;
            Poll::Pending
        })
        .await
    }

    /// Whether a request is the last of a server that stops: nothing has come behind it, or the client has
    /// gone on asking for half of the time.
    async fn is_last(&mut self, post: &Post) -> bool {
        let told_at = self.told_at.get_or_insert_with(Instant::now);
        let is_late = told_at.elapsed() >= self.server.settings.read_at_stop();
        is_late || !self.has_more_than(post.end()).await
    }

    /// Whether more has come than these bytes, of which the buffer has all: what the system holds is read
    /// too. An end of the connection, or that there is no room for more, is told by whoever reads next.
    async fn has_more_than(&mut self, bytes: usize) -> bool {
        if self.buffer.unread().len() > bytes {
            return true;
        }
        let wanted = bytes.saturating_add(HEAD_BYTES_MAX);
        let read = poll_fn(|context| Poll::Ready(self.poll_read(context, wanted))).await;
        matches!(read, Poll::Ready(Ok(()) | Err(ReadEnd::Overloaded)))
    }

    /// Whether anything comes within a time.
    async fn reads_within(&mut self, time: Duration) -> bool {
        let reading = poll_fn(|context| self.poll_read(context, HEAD_BYTES_MAX));
        matches!(timeout(time, reading).await, Ok(Ok(())))
    }

    /// Reads what is there, with room taken only then.
    fn poll_read(&mut self, context: &mut Context<'_>, wanted: usize) -> Poll<Result<(), ReadEnd>> {
        let Self { stream, buffer, .. } = self;
        if ready!(stream.poll_readable(context)).is_err() {
            return Poll::Ready(Err(ReadEnd::Ended));
        }
        let Ok(room) = buffer.make_room(&self.server.budget, wanted) else {
            return Poll::Ready(Err(ReadEnd::Overloaded));
        };
        let mut source = stream.take(u64::try_from(room).unwrap_or_default());
        let read = pin!(source.read_buf(buffer.end_mut())).poll(context);
        buffer.give_back_if_empty();
        read.map(|read| match read {
            Ok(0) | Err(_) => Err(ReadEnd::Ended),
            Ok(_) => Ok(()),
        })
    }

    /// Answers the first request of what was read, and drops it.
    async fn answer(&mut self, post: Post, is_last: bool) -> Result<(), ReadEnd> {
        let server = self.server;
        self.slice.go_on(&server.budget).await;
        let Self { stream, buffer, caller, .. } = self;
        let given_id = post.request_id(buffer.unread());
        let mut reply = if post.body_bytes > INLINE_BYTES_MAX {
            let (mut request, lease) = buffer.split_off(post.end());
            // Connections that send no long body have no room for its future.
            let body = request.split_off(post.head_bytes);
            let (client, request_id) = (caller.client(), given_id.clone());
            let origin = RequestOrigin { caller: caller.last().cloned(), client, request_id };
            let replying = Box::pin(server.reply(origin, None, body, lease));
            unless_reset(stream, replying).await?
        } else {
            let body = buffer.unread().get(post.head_bytes..post.end()).unwrap_or_default();
            let (client, caller) = (caller.client(), caller.last().map(|caller| &**caller));
            let limits = server.limits(caller, client, given_id.as_deref());
            let replying = server.service.reply(None, body, limits);
            let reply = unless_reset(stream, replying).await?;
            buffer.pass(post.end());
            reply
        };
        let answered_range = reply.as_ref().and_then(Reply::answered_range);
        let made_id = reply.as_mut().and_then(Reply::take_request_id);
        let (reply, packed) = match (reply, post.coding) {
            (Some(reply), Some(coding)) => {
                let (budget, cache) = (&server.budget, server.service.cache());
                unless_reset(stream, compression::pack_reply(budget, cache, reply, coding)).await?
            }
            (Some(reply), None) => (reply, None),
            (None, _) => (Reply::default(), None),
        };
        self.head.clear();
        let (status, retry_after) = status_of(&reply);
        server.counters.count_answer(status);
        if status == StatusCode::OK {
            self.head.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
        } else {
            self.head.extend_from_slice(format!("HTTP/1.1 {status}\r\n").as_bytes());
        }
        if let Some(seconds) = retry_after {
            put_header(&mut self.head, "retry-after", itoa::Buffer::new().format(seconds));
        }
        if !reply.is_empty() {
            self.head
                .extend_from_slice(b"content-type: application/json\r\nvary: accept-encoding\r\n");
        }
        if let Some(coding) = packed {
            put_header(&mut self.head, "content-encoding", coding.name());
        }
        if let Some(id) = given_id.as_deref().or(made_id.as_deref()) {
            put_header(&mut self.head, REQUEST_ID, id);
        }
        if let Some(answered) = answered_range {
            put_header(&mut self.head, ANSWERED, &answered.to_string());
        }
        self.write(&reply, is_last).await?;
        reply.give_back();
        self.slice.count_request(post.end());
        Ok(())
    }

    /// Drops what there is no room for, says so and ends the connection.
    async fn end_overloaded(mut self) -> FastPathOutcome<S> {
        self.buffer = ReadBuffer::default();
        let refusal = self.count_failed(self.server.refuse_overloaded());
        self.end_with(refusal).await
    }

    /// Answers with a refusal of the transport, after which the connection ends.
    async fn end_with(mut self, answer: HttpAnswer) -> FastPathOutcome<S> {
        self.head.clear();
        let status = answer.status();
        self.server.counters.count_answer(status);
        let line = format!("HTTP/1.1 {status}\r\n");
        self.head.extend_from_slice(line.as_bytes());
        for (name, value) in answer.headers() {
            put_header(&mut self.head, name.as_str(), value.to_str().unwrap_or_default());
        }
        let reply = Reply::of(answer.into_body().bytes.into());
        if self.write(&reply, true).await.is_ok() {
            self.linger(LINGER_TIMEOUT).await;
        }
        FastPathOutcome::Ended
    }

    /// Closes our side, and reads what the client still sends for a while: closing at once would take
    /// the answer back.
    async fn linger(&mut self, time: Duration) {
        let read = async {
            self.stream.shutdown().await?;
            // Not on the stack: every connection would have room for it.
            let mut rest = spare::take();
            while self.stream.read_buf(&mut rest).await? > 0 {
                rest.clear();
            }
            spare::give(rest);
            io::Result::Ok(())
        };
        // Whoever sends on and on does not read.
        let _ = timeout(time, read).await;
    }

    /// Ends the head and writes the answer, without copying what it is made of.
    async fn write(&mut self, reply: &Reply, is_last: bool) -> Result<(), ReadEnd> {
        let mut digits = itoa::Buffer::new();
        put_header(&mut self.head, "content-length", digits.format(reply.len()));
        if is_last {
            put_header(&mut self.head, "connection", "close");
        }
        date::put_date(&mut self.head);
        self.head.extend_from_slice(b"\r\n");
        let [begin, middle, end] = reply.parts();
        let mut progress = WriteProgress::new(self.server.settings.write_limit());
        let mut parts = [&self.head[..], begin, middle, end].map(IoSlice::new);
        let mut left = &mut parts[..];
        let Self { server, stream, slice, .. } = self;
        // For as long as the client takes enough of it.
        loop {
            let writing = poll_fn(|context| stream.poll_write_parts(context, left));
            let count = match in_time(writing, || progress.deadline()).await {
                Some(Ok(0) | Err(_)) | None => return Err(ReadEnd::Ended),
                Some(Ok(count)) => count,
            };
            IoSlice::advance_slices(&mut left, count);
            slice.count_written(count);
            if left.is_empty() {
                break;
            }
            progress.advance(count);
            slice.go_on(&server.budget).await;
        }
        // TLS has taken what the socket perhaps has not.
        let flushing = poll_fn(|context| Pin::new(&mut *stream).poll_flush(context));
        match in_time(flushing, || progress.deadline()).await {
            Some(Ok(())) => Ok(()),
            Some(Err(_)) | None => Err(ReadEnd::Ended),
        }
    }
}

/// Does work for a client until that has broken off: many who ask for long answers and leave would
/// keep the server busy with answers that nobody takes. What is done without a pause is never asked.
async fn unless_reset<T>(
    stream: &impl ByteStream,
    work: impl Future<Output = T>,
) -> Result<T, ReadEnd> {
    let mut work = pin!(work);
    poll_fn(|context| match work.as_mut().poll(context) {
        Poll::Ready(done) => Poll::Ready(Ok(done)),
        Poll::Pending if stream.is_reset(context) => Poll::Ready(Err(ReadEnd::Ended)),
        Poll::Pending => Poll::Pending,
    })
    .await
}

/// Appends a field.
pub(super) fn put_header(head: &mut Vec<u8>, name: &str, value: &str) {
    for part in [name, ": ", value, "\r\n"] {
        head.extend_from_slice(part.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(fields: &str) -> RequestHead {
        let text = format!("POST / HTTP/1.1\r\n{fields}\r\n\r\n{{}}");
        read_head(text.as_bytes(), &HttpSettings::default())
    }

    const USUAL: &str = "Host: a\r\nContent-Type: application/json\r\nContent-Length: 2";

    #[test]
    fn what_most_clients_send_is_taken() {
        let length = "POST / HTTP/1.1\r\n\r\n\r\n".len();
        let post = |fields: &str, coding| {
            let head_bytes = length + fields.len();
            let (body_bytes, request_id) = (2, None);
            let expected = Post { head_bytes, body_bytes, coding, request_id };
            assert_eq!(head(fields), RequestHead::Post(expected));
        };
        post(USUAL, None);
        post(&format!("{USUAL}\r\nAccept-Encoding: gzip\r\nAccept: */*"), Some(Coding::Gzip));
        post(&format!("{USUAL}\r\nconnection: Keep-Alive"), None);
        post(&USUAL.replace("json", "json; charset=utf-8"), None);
    }

    #[test]
    fn a_request_is_called_what_its_first_field_says_if_that_is_sane() {
        let id = |more: &str| {
            let text = format!("POST / HTTP/1.1\r\n{USUAL}\r\n{more}\r\n\r\n{{}}");
            let head = read_head(text.as_bytes(), &HttpSettings::default());
            let RequestHead::Post(post) = head else { panic!("{head:?}") };
            post.request_id(text.as_bytes())
        };
        assert_eq!(id("x: y"), None);
        assert_eq!(id("X-Request-Id:  a-1 \r\nx-request-id: b").as_deref(), Some("a-1"));
        assert_eq!(id("x-request-id: a b"), None);
        assert_eq!(id("x-request-id:"), None);
    }

    #[test]
    fn what_has_not_come_yet_is_waited_for_and_nothing_else() {
        let whole = format!("POST / HTTP/1.1\r\n{USUAL}\r\n\r\n");
        let settings = HttpSettings::default();
        for end in 0..whole.len() {
            let part = whole.as_bytes().get(..end).unwrap_or_default();
            assert_eq!(read_head(part, &settings), RequestHead::Partial, "{end}");
        }
        let endless = [whole.trim_end(), "\r\nx: ", &"y".repeat(HEAD_BYTES_MAX)].concat();
        assert_eq!(read_head(endless.as_bytes(), &settings), RequestHead::Other);
        for other in ["GET / HTTP/1.1\r\n", "PRI * HTTP/2.0\r\n\r\n", "PUT", "\r\n", "\u{1}"] {
            assert_eq!(read_head(other.as_bytes(), &settings), RequestHead::Other, "{other:?}");
        }
    }

    #[test]
    fn whatever_asks_for_more_is_left_to_hyper() {
        for more in [
            "expect: 100-continue",
            "origin: http://a",
            "upgrade: websocket",
            "connection: close",
            "content-encoding: gzip",
            "transfer-encoding: chunked",
            "trailer: x",
            "content-length: 2",
            "host: a",
            // hyper reads the first of two.
            "content-type: application/json",
            "accept-encoding: gzip\r\naccept-encoding: br",
            "accept-encoding: gzip, \u{e9}",
        ] {
            assert_eq!(head(&format!("{USUAL}\r\n{more}")), RequestHead::Other, "{more}");
        }
        for (usual, other) in [
            ("application/json", "text/plain"),
            ("Content-Type: application/json\r\n", ""),
            ("Host: a\r\n", ""),
            ("Host: a", "Host: a b"),
            ("Host: a", "Host: a:b"),
            ("\r\nContent-Length: 2", ""),
            ("Length: 2", "Length: +2"),
            ("Length: 2", "Length: 99999999999999999999"),
            ("Length: 2", "Length: 6000000"),
            ("application/json", "application/json; \u{e9}"),
        ] {
            assert_eq!(head(&USUAL.replace(usual, other)), RequestHead::Other, "{other}");
        }
        // hyper refuses some letters of a path that others let pass.
        for (target, is_taken) in
            [("/", true), ("/v3/key?a=%20", true), ("/<", false), ("/`", false), ("*", false)]
        {
            let text = format!("POST {target} HTTP/1.1\r\n{USUAL}\r\n\r\n{{}}");
            let found = read_head(text.as_bytes(), &HttpSettings::default());
            assert_eq!(found != RequestHead::Other, is_taken, "{target}");
        }
    }

    #[test]
    fn a_head_that_comes_again_is_known_and_another_is_read() {
        let (settings, mut last) = (HttpSettings::default(), LastRequest::default());
        let request = |fields: &str| format!("POST / HTTP/1.1\r\n{fields}\r\n\r\n{{}}");
        let longer = USUAL.replace("Length: 2", "Length: 20");
        let gzip = format!("{USUAL}\r\nAccept-Encoding: gzip");
        let huge = format!("{USUAL}\r\nx: {}", "y".repeat(HEAD_BYTES_KEPT_MAX));
        let other = format!("{USUAL}\r\norigin: http://a");
        for fields in [USUAL, USUAL, &longer, &gzip, &gzip, &huge, &huge, USUAL, &other, USUAL] {
            let text = request(fields);
            // Whatever came before, and as it comes in.
            for end in 0..=text.len() {
                let bytes = text.as_bytes().get(..end).unwrap_or_default();
                let expected = read_head(bytes, &settings);
                assert_eq!(last.read_head(bytes, &settings), expected, "{fields} {end}");
            }
        }
    }

    #[test]
    fn a_host_that_is_not_named_is_left_to_hyper() {
        let settings = HttpSettings { hosts: vec!["b".to_owned()], ..HttpSettings::default() };
        let text =
            |host: &str| format!("POST / HTTP/1.1\r\n{}\r\n\r\n", USUAL.replace("Host: a", host));
        assert_eq!(read_head(text("Host: a").as_bytes(), &settings), RequestHead::Other);
        assert!(matches!(read_head(text("Host: b").as_bytes(), &settings), RequestHead::Post(_)));
    }
}
