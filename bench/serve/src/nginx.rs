//! nginx, returning the bytes that Quipu answers with, without thinking: the limit.
//!
//! Short answers are in the configuration (`return`), so no file is touched for them. nginx reads
//! its words 4 KiB at a time, so longer ones are said in pieces; from `FILE_BYTES_MIN` on an answer
//! is a file that goes by `sendfile`, opened once. A file cannot be asked for by POST: it is asked
//! for by GET, with the same headers and no body, which is even less work for nginx.

use std::fmt::Write as _;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use crate::certificate::CertificateFiles;
use crate::http::ask;
use crate::load::Target;
use crate::process::{Running, command_on};

/// From here on answers are files.
const FILE_BYTES_MIN: usize = 32 << 10;
/// Of one word of the configuration.
const PIECE_BYTES: usize = 3000;
const START_WITHIN: Duration = Duration::from_secs(10);

/// An answer to return.
#[derive(Clone, Debug)]
pub struct Fixed {
    /// Where: one word.
    pub name: String,
    /// What.
    pub body: Vec<u8>,
    /// How it is encoded, if it is.
    pub encoding: Option<&'static str>,
}

impl Fixed {
    fn is_file(&self) -> bool {
        // What is compressed is no text that a configuration could hold.
        self.body.len() >= FILE_BYTES_MIN || self.encoding.is_some()
    }
}

/// A running nginx.
#[derive(Debug)]
pub struct Nginx {
    running: Running,
    address: String,
    address_h2: String,
    address_tls: String,
    files: Vec<String>,
}

impl Nginx {
    /// Starts it in a folder of its own, and sees that it returns what it shall.
    pub fn start(folder: &Path, answers: &[Fixed], cores: Option<&str>) -> Result<Self> {
        fs::create_dir_all(folder).context("nginx's folder")?;
        let ports = NginxPorts { plain: free_port()?, h2: free_port()?, tls: free_port()? };
        CertificateFiles::write(folder)?;
        for answer in answers.iter().filter(|answer| answer.is_file()) {
            fs::write(folder.join(&answer.name), &answer.body).context("a file for nginx")?;
        }
        let path = folder.join("nginx.conf");
        // By itself it starts one for every core of the machine.
        let workers = if cores.is_some() { "1" } else { "auto" };
        fs::write(&path, configuration(folder, &ports, answers, workers)?)?;
        let mut command = command_on(cores, Path::new("nginx"));
        command.arg("-p").arg(folder).arg("-c").arg(&path).args(["-e", "stderr"]);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let files = answers.iter().filter(|it| it.is_file()).map(|it| it.name.clone()).collect();
        let [address, address_h2, address_tls] =
            [ports.plain, ports.h2, ports.tls].map(|port| format!("127.0.0.1:{port}"));
        let running = Running::start(&mut command)?;
        let mut nginx = Self { running, address, address_h2, address_tls, files };
        nginx.wait_until_it_listens()?;
        for answer in answers {
            nginx.check(answer)?;
        }
        Ok(nginx)
    }

    /// Its process; the work is done by its children.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.running.id()
    }

    /// Where an answer is returned.
    #[must_use]
    pub fn target(&self, name: &str, is_h2: bool) -> Target {
        let address = if is_h2 { &self.address_h2 } else { &self.address };
        let is_get = self.files.iter().any(|file| file == name);
        Target { url: format!("http://{address}/{name}"), is_get }
    }

    /// Where the same is returned over TLS.
    #[must_use]
    pub fn encrypted_target(&self, name: &str) -> Target {
        let url = format!("https://{}/{name}", self.address_tls);
        Target { url, ..self.target(name, false) }
    }

    fn check(&self, answer: &Fixed) -> Result<()> {
        let body = (!answer.is_file()).then_some(b"{}".as_slice());
        let found = ask(&self.address, &format!("/{}", answer.name), body, &[])?;
        ensure!(found == answer.body, "nginx does not return the bytes of {}", answer.name);
        Ok(())
    }

    fn wait_until_it_listens(&mut self) -> Result<()> {
        let begun = Instant::now();
        while std::net::TcpStream::connect(&self.address).is_err() {
            ensure!(self.running.is_running()?, "nginx ended at once: see above");
            if begun.elapsed() > START_WITHIN {
                bail!("nginx does not listen on {}", self.address);
            }
            // It does not tell when it is ready.
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

/// Where it listens, one port for each protocol.
struct NginxPorts {
    plain: u16,
    h2: u16,
    tls: u16,
}

/// A port of the loopback that nobody has.
pub fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0").context("a free port")?.local_addr()?.port())
}

fn configuration(
    folder: &Path,
    ports: &NginxPorts,
    answers: &[Fixed],
    workers: &str,
) -> Result<String> {
    let folder: PathBuf = folder.to_owned();
    let folder = folder.to_str().context("a folder whose name is no text")?;
    let &NginxPorts { plain, h2, tls } = ports;
    let mut locations = String::new();
    for answer in answers {
        locations.push_str(&location(answer)?);
    }
    Ok(format!(
        "daemon off;
worker_processes {workers};
worker_rlimit_nofile 20000;
error_log stderr error;
pid {folder}/nginx.pid;
events {{ worker_connections 16000; multi_accept on; }}
http {{
    access_log off;
    sendfile on;
    tcp_nopush on;
    open_file_cache max=100;
    open_file_cache_valid 1h;
    keepalive_requests 1000000000;
    keepalive_timeout 1h;
    default_type application/json;
    client_body_temp_path {folder}/client;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen 127.0.0.1:{plain} backlog=16384;
        listen 127.0.0.1:{h2} http2 backlog=16384;
        listen 127.0.0.1:{tls} ssl backlog=16384;
        ssl_certificate {folder}/cert.pem;
        ssl_certificate_key {folder}/key.pem;
        root {folder};
{locations}    }}
}}
"
    ))
}

fn location(answer: &Fixed) -> Result<String> {
    let name = &answer.name;
    let mut text = format!("        location = /{name} {{\n");
    if let Some(encoding) = answer.encoding {
        let _ = writeln!(text, "            add_header Content-Encoding {encoding};");
    }
    if !answer.is_file() {
        let body = std::str::from_utf8(&answer.body).context("an answer that is no text")?;
        ensure!(!body.contains(['\'', '$', '\\']), "{name}: nginx would read it otherwise");
        let pieces: Vec<&[u8]> = body.as_bytes().chunks(PIECE_BYTES).collect();
        ensure!(body.is_ascii(), "{name}: a letter could be cut in two");
        if let [whole] = pieces.as_slice() {
            let _ = writeln!(text, "            return 200 '{}';", String::from_utf8_lossy(whole));
        } else {
            let mut names = String::new();
            for (place, piece) in pieces.iter().enumerate() {
                let piece = String::from_utf8_lossy(piece);
                let _ = writeln!(text, "            set $piece{place} '{piece}';");
                let _ = write!(names, "${{piece{place}}}");
            }
            let _ = writeln!(text, "            return 200 {names};");
        }
    }
    text.push_str("        }\n");
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixed(body: &[u8], encoding: Option<&'static str>) -> Fixed {
        Fixed { name: "it".into(), body: body.to_vec(), encoding }
    }

    #[test]
    fn short_answers_are_said_and_long_ones_are_files() {
        let text = location(&fixed(b"{\"a\":1}", None)).unwrap();
        assert_eq!(
            text,
            "        location = /it {\n            return 200 '{\"a\":1}';\n        }\n"
        );
        let text = location(&fixed(&[b'1'; PIECE_BYTES + 1], None)).unwrap();
        assert!(text.contains("set $piece1 '1';\n            return 200 ${piece0}${piece1};"));
        let text = location(&fixed(&vec![b'1'; FILE_BYTES_MIN], None)).unwrap();
        assert_eq!(text, "        location = /it {\n        }\n");
        let text = location(&fixed(b"\x1f\x8b", Some("gzip"))).unwrap();
        assert!(text.contains("add_header Content-Encoding gzip;") && !text.contains("return"));
    }

    #[test]
    fn what_nginx_would_read_otherwise_is_refused() {
        for body in ["it's", "$it", "\\n", "\u{e9}"] {
            assert!(location(&fixed(body.as_bytes(), None)).is_err(), "{body}");
        }
    }
}
