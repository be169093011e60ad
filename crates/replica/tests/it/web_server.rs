//! A static web server on loopback: files of a folder, and ranges of them.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{ACCEPT_RANGES, CONTENT_RANGE, LAST_MODIFIED, RANGE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

/// Serves a folder until the runtime ends.
pub(crate) async fn serve(folder: &Path) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let folder = folder.to_owned();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let folder = folder.clone();
            let answer = move |request| {
                let answered = answer(&folder, &request);
                async move { Ok::<_, Infallible>(answered) }
            };
            let serving = http1::Builder::new();
            tokio::spawn(serving.serve_connection(TokioIo::new(stream), service_fn(answer)));
        }
    });
    address
}

fn answer(folder: &Path, request: &Request<Incoming>) -> Response<Full<Bytes>> {
    let empty = |status| {
        let response = Response::builder().status(status);
        response.body(Full::new(Bytes::new())).unwrap()
    };
    if request.method() != Method::GET && request.method() != Method::HEAD {
        return empty(StatusCode::METHOD_NOT_ALLOWED);
    }
    let path: PathBuf = folder.join(request.uri().path().trim_start_matches('/'));
    let Ok(bytes) = std::fs::read(path) else { return empty(StatusCode::NOT_FOUND) };
    let response = Response::builder()
        .header(ACCEPT_RANGES, "bytes")
        .header(LAST_MODIFIED, "Wed, 18 Nov 2026 12:00:00 GMT");
    let range = request.headers().get(RANGE).and_then(|it| it.to_str().ok());
    let Some(range) = range.and_then(|it| it.strip_prefix("bytes=")) else {
        return response.body(Full::new(bytes.into())).unwrap();
    };
    let (first, last) = range.split_once('-').unwrap();
    let (first, last) = match (first.parse::<usize>(), last.parse::<usize>()) {
        (Ok(first), Ok(last)) => (first, last.min(bytes.len() - 1)),
        (Ok(first), Err(_)) => (first, bytes.len() - 1),
        (Err(_), Ok(count)) => (bytes.len().saturating_sub(count), bytes.len() - 1),
        (Err(_), Err(_)) => return empty(StatusCode::BAD_REQUEST),
    };
    if first > last {
        return empty(StatusCode::RANGE_NOT_SATISFIABLE);
    }
    let told = format!("bytes {first}-{last}/{}", bytes.len());
    let part = Bytes::copy_from_slice(&bytes[first..=last]);
    let response = response.status(StatusCode::PARTIAL_CONTENT).header(CONTENT_RANGE, told);
    response.body(Full::new(part)).unwrap()
}
