//! Requests that hyper reads: every method, path and encoding of HTTP/1.1 and HTTP/2.

use std::net::IpAddr;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};

use http_body_util::BodyExt as _;
use hyper::body::{Body, Bytes};
use hyper::header::{
    ACCEPT_ENCODING, ALLOW, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, EXPECT, HOST,
    HeaderValue, ORIGIN, VARY,
};
use hyper::upgrade::OnUpgrade;
use hyper::{Method, Request, Response, StatusCode, Version};
use tokio::time::timeout;
use tracing::debug;

use super::Server;
use super::bulk_thread::{INLINE_BYTES_MAX, QueuedRequest, RequestOrigin};
use super::compression::{self, BodyCoding, DecodeRefusal};
use super::explorer_page;
use super::headers;
use super::response::{
    HttpAnswer, HttpBody, come_again, come_again_in, denied, empty, json, no_such_page,
    rate_limited, refused, status_of, text, text_with, too_large, with_type,
};
use super::unread_body::pass_over;
use super::websocket::upgrade::{self, Handover};
use crate::admission::{
    Caller, CallerHead, ClientId, ConnectionCaller, Denial, SocketCaller, strip_key,
};
use crate::answer::CLIENT_VERSION;
use crate::answered_range::ANSWERED;
use crate::budget::{ByteLease, LeasedFor};
use crate::json::{Object, put_list, put_quantity, put_text};
use crate::metrics_page::MetricsPage;
use crate::reply::{Reply, put_range};
use crate::request_log::{REQUEST_ID, sane_id};
use crate::service::RequestLimits;
use crate::stat_page::{LiveCounts, PageError, StatScope};

/// Where supervisors ask whether what is configured can be answered.
pub(super) const READY: &str = "/readyz";
/// Pages that whoever watches the process may read without a key, and as often as it likes.
const OPEN_PAGES: [&str; 2] = ["/healthz", READY];
/// What is said to those who may not know why.
const NOT_READY: &str = "not ready\n";
/// The text format of Prometheus.
const METRICS_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

impl Server {
    /// Answers one request of a connection, which may become a WebSocket.
    pub(super) async fn handle<B>(
        &self,
        request: Request<B>,
        connection: &HyperConnection,
    ) -> HttpAnswer
    where
        B: Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let origin = request.headers().get(ORIGIN).cloned();
        let accepted = request.headers().get(ACCEPT_ENCODING).cloned();
        // A body that is not read before its answer is given.
        let mut is_unread = !request.body().is_end_stream();
        let is_http1 = request.version() <= Version::HTTP_11;
        // Whoever asks whether we are ready is not refused by being told that we are not.
        let is_probe = is_open_page(&request) && strip_key(request.uri().path()) == READY;
        let given_id = given_id(&request).and_then(|id| HeaderValue::from_str(id).ok());
        let admitted = match self.host_refusal(&request) {
            Some(refusal) => Err(refusal),
            None => self.admit(&request, connection).map_err(|denial| denied(&denial)),
        };
        let mut answer = match admitted {
            Err(refusal) => {
                if !is_http1 {
                    pass_over(request.into_body()).await;
                }
                refusal
            }
            Ok(admitted) => {
                let handover = &connection.handover;
                self.dispatch(request, admitted, handover, &mut is_unread).await
            }
        };
        if is_unread && is_http1 {
            // hyper would read the next request before this answer is sent, and keep the heads of
            // answers that nobody reads without a bound.
            answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        let HttpBody { bytes, lease } = answer.body_mut();
        if !lease.is_counted()
            && lease.resize(&self.budget, bytes.len(), LeasedFor::Answer).is_err()
        {
            answer = self.refuse_overloaded();
        }
        if !is_probe {
            self.counters.count_answer(answer.status());
        }
        if let Some(id) = given_id {
            answer.headers_mut().insert(REQUEST_ID, id);
        }
        headers::allow_origin(answer.headers_mut(), origin.as_ref(), &self.settings.cors_origins);
        compression::compress(&self.budget, answer, accepted.as_ref()).await
    }

    /// Lets in whoever sent a request. Browsers ask whether a page may before they send any key.
    fn admit<B>(
        &self,
        request: &Request<B>,
        connection: &HyperConnection,
    ) -> Result<AdmittedRequest, Denial> {
        let path = request.uri().path();
        let is_upgrade = upgrade::is_asked(request);
        let is_free = *request.method() == Method::OPTIONS
            || is_open_page(request)
            || self.is_explorer_asked(request);
        let is_ready_page = strip_key(path) == READY;
        let is_guarded = self.admission.needs_key() || self.admission.knows_key();
        if is_free && !(is_ready_page && is_guarded) {
            return Ok(AdmittedRequest::default());
        }
        let fields = request.headers().iter().map(|(name, it)| (name.as_str(), it.as_bytes()));
        let head = CallerHead::read(path, fields);
        let mut callers = connection.callers.lock().unwrap_or_else(PoisonError::into_inner);
        if is_free {
            // A key that is sent is an attempt as any other; a supervisor sends none.
            let is_known = head.key().is_some() && callers.admit(&self.admission, &head).is_ok();
            return Ok(AdmittedRequest { is_stranger: !is_known, ..AdmittedRequest::default() });
        }
        let caller = callers.admit(&self.admission, &head)?;
        let socket = is_upgrade.then(|| callers.socket(&self.admission, &head));
        let is_stranger = self.admission.knows_key() && head.key().is_none();
        Ok(AdmittedRequest { caller, client: callers.client(), socket, is_stranger })
    }

    /// Answers a request that was let in.
    async fn dispatch<B>(
        &self,
        mut request: Request<B>,
        admitted: AdmittedRequest,
        handover: &Handover,
        is_unread: &mut bool,
    ) -> HttpAnswer
    where
        B: Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let AdmittedRequest { caller, client, socket, is_stranger } = admitted;
        if *request.method() == Method::POST {
            let request_id = given_id(&request).map(str::to_owned);
            return self
                .post(request, RequestOrigin { caller, client, request_id }, is_unread)
                .await;
        }
        // Calls are counted when it is known how many they are, all else here.
        if let Some(Err(exceeded)) = caller.as_ref().map(|caller| caller.take(1)) {
            return rate_limited(exceeded);
        }
        let answer = match (request.method(), socket) {
            (&Method::GET, Some(socket)) if !*is_unread => {
                upgrade::accept(&mut request, &self.settings.cors_origins, socket, handover)
            }
            (&Method::GET | &Method::HEAD, _) => {
                let is_head = *request.method() == Method::HEAD;
                let page = if let Some(answer) = self.explorer_answer(&request) {
                    answer
                } else {
                    let has_files = request.uri().query().is_some_and(asks_for_files);
                    let scope = StatScope { has_files, hides_upstreams: is_stranger };
                    self.get(strip_key(request.uri().path()).to_owned(), scope).await
                };
                if is_head { head_of(page) } else { page }
            }
            (&Method::OPTIONS, _) => empty(StatusCode::NO_CONTENT),
            (_, _) => {
                let mut answer = refused(StatusCode::METHOD_NOT_ALLOWED, "use POST");
                let allowed = HeaderValue::from_static("POST, GET, HEAD, OPTIONS");
                answer.headers_mut().insert(ALLOW, allowed);
                answer
            }
        };
        if let Some(caller) = caller {
            caller.charge_answer(answer.body().bytes.len());
        }
        answer
    }

    /// Answers a POST; `is_unread` tells whether its body was read to its end. One that fails before its
    /// calls are known counts as one call.
    async fn post<B>(
        &self,
        request: Request<B>,
        origin: RequestOrigin,
        is_unread: &mut bool,
    ) -> HttpAnswer
    where
        B: Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let caller = origin.caller.clone();
        let replied = match self.read_post(request, caller.as_deref()).await {
            Ok((body, lease, coding)) => {
                *is_unread = false;
                match coding {
                    None => Ok(self.reply(origin, None, body.into(), lease).await),
                    Some(coding) => {
                        let replied = self.reply_to_packed(origin, body, lease, coding).await;
                        replied.map_err(|refusal| self.undecoded(refusal))
                    }
                }
            }
            Err(refused) => Err(refused),
        };
        let mut reply = match replied {
            Ok(Some(reply)) => reply,
            Ok(None) => return empty(StatusCode::OK),
            Err(refused) => {
                let counted = caller.map_or(Ok(()), |caller| caller.take(1));
                return counted.map_or_else(rate_limited, |()| refused);
            }
        };
        let made_id = reply.take_request_id().map(|id| HeaderValue::from_str(&id));
        let (status, retry_after) = status_of(&reply);
        let answered_range = reply.answered_range();
        let mut answer = json(status, reply);
        let answered = answered_range.map(|answered| HeaderValue::try_from(answered.to_string()));
        if let Some(Ok(answered)) = answered {
            answer.headers_mut().insert(ANSWERED, answered);
        }
        if let Some(Ok(id)) = made_id {
            answer.headers_mut().insert(REQUEST_ID, id);
        }
        match retry_after {
            Some(seconds) => come_again_in(answer, seconds),
            None => answer,
        }
    }

    /// The body of a POST, and how it is compressed. Whoever has asked too much is refused before a long
    /// body is read; a short one is, so that each of its calls is refused by its id.
    async fn read_post<B>(
        &self,
        request: Request<B>,
        caller: Option<&Caller>,
    ) -> Result<(Vec<u8>, ByteLease, Option<BodyCoding>), HttpAnswer>
    where
        B: Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let is_open = self.settings.cors_origins.iter().any(|origin| origin == "*");
        if !headers::is_json_type(request.headers(), is_open) {
            return Err(refused(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "content type must be application/json",
            ));
        }
        let coding = BodyCoding::of(request.headers().get(CONTENT_ENCODING));
        let coding = coding.map_err(|refusal| self.undecoded(refusal))?;
        let length = request.body().size_hint();
        let bytes = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        if length.upper().is_none_or(|count| bytes(count) > INLINE_BYTES_MAX) {
            caller.map_or(Ok(()), Caller::check).map_err(rate_limited)?;
        }
        // Whoever waits to be told to go on is told before anything is sent.
        let bytes_max = self.settings.body_bytes_max;
        if request.headers().contains_key(EXPECT) && bytes(length.lower()) > bytes_max {
            return Err(too_large(bytes_max));
        }
        let collected = self.collect(request.into_body());
        match timeout(self.settings.body_timeout, collected).await {
            Err(_) => Err(refused(StatusCode::REQUEST_TIMEOUT, "request body took too long")),
            Ok(collected) => collected.map(|(body, lease)| (body, lease, coding)),
        }
    }

    /// A body as it comes in, counted on the way. One that there is no room for is read to its end
    /// nevertheless, and dropped: a client that is still sending would not see its refusal.
    async fn collect<B>(&self, body: B) -> Result<(Vec<u8>, ByteLease), HttpAnswer>
    where
        B: Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let bytes_max = self.settings.body_bytes_max;
        let mut body = pin!(body);
        let mut count = 0_usize;
        let mut collected = Some((Vec::new(), ByteLease::default()));
        while let Some(frame) = body.frame().await {
            let cut_off = |_| refused(StatusCode::BAD_REQUEST, "request body was cut off");
            // What comes behind a body says nothing that is wanted here.
            let Ok(part) = frame.map_err(cut_off)?.into_data() else { continue };
            count = count.saturating_add(part.len());
            if count > bytes_max {
                return Err(too_large(bytes_max));
            }
            collected = collected.and_then(|(mut out, mut lease)| {
                out.extend_from_slice(&part);
                lease.resize(&self.budget, out.capacity(), LeasedFor::Body).ok()?;
                Some((out, lease))
            });
        }
        collected.ok_or_else(|| self.refuse_overloaded())
    }

    /// Decompresses a body and answers it, both where nobody waits for it.
    async fn reply_to_packed(
        &self,
        origin: RequestOrigin,
        packed: Vec<u8>,
        packed_lease: ByteLease,
        coding: BodyCoding,
    ) -> Result<Option<Reply>, DecodeRefusal> {
        let RequestLimits { until, begun, .. } = self.limits(None, origin.client, None);
        let queued = QueuedRequest {
            server: self,
            until,
            begun,
            origin: origin.clone(),
            is_socket: false,
            body_bytes: packed.len(),
            has_begun: Arc::default(),
        };
        let (service, budget) = (Arc::clone(&self.service), Arc::clone(&self.budget));
        let bytes_max = self.settings.body_bytes_max;
        let replying = Box::pin(async move {
            let (body, _lease) = compression::decompress(&packed, coding, bytes_max, &budget)?;
            drop((packed, packed_lease));
            let limits = origin.limits(begun, until, &budget);
            Ok(service.reply(None, &body, limits).await)
        });
        let replied = self.run_on_bulk_thread(queued, replying);
        replied.await.unwrap_or_else(|failure| Ok(Some(failure.into())))
    }

    fn undecoded(&self, refusal: DecodeRefusal) -> HttpAnswer {
        match refusal {
            DecodeRefusal::TooLarge => too_large(self.settings.body_bytes_max),
            DecodeRefusal::Unknown => {
                refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, "content encoding not supported")
            }
            DecodeRefusal::Broken => {
                refused(StatusCode::BAD_REQUEST, "request body does not decompress")
            }
            DecodeRefusal::OutOfBudget => self.refuse_overloaded(),
        }
    }

    async fn get(&self, path: String, scope: StatScope) -> HttpAnswer {
        match path.as_str() {
            "/healthz" => text("ok\n"),
            READY if scope.hides_upstreams && !self.service.troubles().is_empty() => {
                come_again(text_with(StatusCode::SERVICE_UNAVAILABLE, NOT_READY))
            }
            READY => self.ready(),
            "/openrpc.json" => json(StatusCode::OK, self.service.document().to_vec()),
            "/stat.json" => self.stat(scope).await,
            "/metrics" => self.metrics(self.service.metrics_page()).await,
            "/" => self.status_page(),
            _ => no_such_page(),
        }
    }

    fn is_explorer_asked<B>(&self, request: &Request<B>) -> bool {
        self.settings.has_explorer && explorer_page::is_asked(request)
    }

    /// What a browser is shown, if this is one and the explorer is not turned off.
    fn explorer_answer<B>(&self, request: &Request<B>) -> Option<HttpAnswer> {
        if !self.is_explorer_asked(request) {
            return None;
        }
        Some(explorer_page::answer(request).unwrap_or_else(no_such_page))
    }

    /// What programs get where browsers get the explorer.
    fn status_page(&self) -> HttpAnswer {
        let mut answer = json(StatusCode::OK, self.status());
        if self.settings.has_explorer {
            answer.headers_mut().append(VARY, HeaderValue::from_static("accept"));
        }
        answer
    }

    /// Ready when what is configured can be answered; if not, it is said why.
    pub(super) fn ready(&self) -> HttpAnswer {
        let troubles = self.service.troubles();
        if troubles.is_empty() {
            return text("ready\n");
        }
        let mut out = Vec::new();
        let mut object = Object::begin(&mut out);
        object.raw("ready", "false");
        put_list(object.member("reasons"), &troubles, |out, trouble| put_text(out, trouble));
        put_list(object.member("held"), self.service.store().view().coverage(), put_range);
        object.end();
        out.push(b'\n');
        come_again(json(StatusCode::SERVICE_UNAVAILABLE, out))
    }

    /// What is held and how serving goes, if somebody tells it.
    async fn stat(&self, scope: StatScope) -> HttpAnswer {
        let Some(page) = self.service.stat_page() else {
            return no_such_page();
        };
        let live = LiveCounts {
            traffic: self.service.traffic(),
            times: self.service.call_times(),
            bytes_under_way: self.budget.bytes(),
            troubles: self.service.troubles(),
        };
        match page.make(live, scope).await {
            Ok(body) => json(StatusCode::OK, body),
            Err(error) => no_page(&error),
        }
    }

    /// What is counted, if somebody shows it.
    pub(super) async fn metrics(&self, page: Option<&dyn MetricsPage>) -> HttpAnswer {
        match page {
            Some(page) => match page.make(&|| self.counts()).await {
                Ok(body) => with_type(StatusCode::OK, body.into(), METRICS_TYPE),
                Err(error) => no_page(&error),
            },
            None => no_such_page(),
        }
    }

    fn status(&self) -> Vec<u8> {
        let view = self.service.store().view();
        let mut out = Vec::new();
        let mut object = Object::begin(&mut out);
        put_text(object.member("server"), CLIENT_VERSION);
        if let Some(tip) = view.tip() {
            put_quantity(object.member("tip"), tip.get());
        }
        put_list(object.member("held"), view.coverage(), put_range);
        object.end();
        out.push(b'\n');
        out
    }

    /// Refuses a request without a valid host, with more than one, or with one that is not allowed.
    /// HTTP/2 names it in `:authority`, as a target of HTTP/1.1 may; where there is a Host field too, both
    /// count.
    fn host_refusal<B>(&self, request: &Request<B>) -> Option<HttpAnswer> {
        let malformed = malformed_host(request);
        if malformed.is_some() {
            return malformed;
        }
        // Whoever watches the process may know it by another name.
        if is_open_page(request) {
            return None;
        }
        let (hosts, field) = (&self.settings.hosts, request.headers().get(HOST));
        let target = request.uri().host();
        let is_field_named =
            field.map(|host| host.to_str().is_ok_and(|host| headers::is_host_named(host, hosts)));
        let is_target_named = target.map(|host| headers::is_host_named(host, hosts));
        let mut named = is_field_named.into_iter().chain(is_target_named).peekable();
        let is_allowed = hosts.is_empty() || (named.peek().is_some() && named.all(|it| it));
        (!is_allowed).then(|| refused(StatusCode::FORBIDDEN, "invalid host specified"))
    }
}

/// The answer where a page should be and could not be made.
fn no_page(error: &PageError) -> HttpAnswer {
    debug!(%error, "a page could not be made");
    refused(StatusCode::INTERNAL_SERVER_ERROR, "the page could not be made")
}

/// Whether a request is for a page that anybody may read.
fn is_open_page<B>(request: &Request<B>) -> bool {
    matches!(*request.method(), Method::GET | Method::HEAD)
        && OPEN_PAGES.contains(&strip_key(request.uri().path()))
        && !upgrade::is_asked(request)
}

fn asks_for_files(query: &str) -> bool {
    query.split('&').any(|member| member == "files=1")
}

/// What a client calls its request, if it says so.
fn given_id<B>(request: &Request<B>) -> Option<&str> {
    request.headers().get(REQUEST_ID).and_then(|id| sane_id(id.as_bytes()))
}

/// What the requests of a connection share.
#[derive(Debug)]
pub(super) struct HyperConnection {
    callers: Mutex<ConnectionCaller>,
    handover: Handover,
}

impl HyperConnection {
    pub(super) fn new(client: IpAddr) -> Self {
        let callers = Mutex::new(ConnectionCaller::new(client));
        Self { callers, handover: Handover::default() }
    }

    /// The connection that is to be a WebSocket once HTTP lets go of it, and who asked for that.
    pub(super) fn take_upgrade(&self) -> Option<(OnUpgrade, SocketCaller)> {
        self.handover.take()
    }
}

/// A request that was let in.
#[derive(Debug, Default)]
struct AdmittedRequest {
    /// Who sent it; none where everybody may.
    caller: Option<Arc<Caller>>,
    /// The client that it counts for.
    client: ClientId,
    /// Who would ask over the WebSocket that it asks for.
    socket: Option<SocketCaller>,
    /// Whether it came without a key, to a page that it may read nevertheless, where there are keys.
    is_stranger: bool,
}

/// The refusal of a request whose Host field, or the authority in whose place HTTP/2 and some targets of
/// HTTP/1.1 name the host, is not as RFC 9112, 3.2, and RFC 9113, 8.3.1, want it.
pub(super) fn malformed_host<B>(request: &Request<B>) -> Option<HttpAnswer> {
    let authority = request.uri().authority();
    let mut fields = request.headers().get_all(HOST).iter();
    let is_valid =
        |field: &HeaderValue| field.to_str().is_ok_and(|it| headers::host_name(it).is_some());
    let fault = match fields.next() {
        Some(_) if fields.next().is_some() => "more than one host specified",
        Some(field) if !is_valid(field) => "the host specified is not valid",
        _ if authority.is_some_and(|it| headers::host_name(it.as_str()).is_none()) => {
            "the host specified is not valid"
        }
        None if request.version() == Version::HTTP_11 => "no host specified",
        None if request.version() == Version::HTTP_2 && authority.is_none() => "no host specified",
        Some(_) | None => return None,
    };
    let mut answer = refused(StatusCode::BAD_REQUEST, fault);
    // A proxy in between may have read another request than this server did.
    if request.version() <= Version::HTTP_11 {
        answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    Some(answer)
}

/// The answer to a request for a page's head: as for the page, without it.
pub(super) fn head_of(page: HttpAnswer) -> HttpAnswer {
    let (mut parts, body) = page.into_parts();
    parts.headers.insert(CONTENT_LENGTH, HeaderValue::from(body.bytes.len()));
    Response::from_parts(parts, HttpBody::default())
}
