//! SIGHUP: what is read again, what is not, and that nobody who asks meanwhile notices.

use std::cell::RefCell;
use std::fs;
use std::io::Write as _;
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::Receiver;
use std::thread;
use std::time::Duration;

use rpc::http::TlsFiles;
use serde_json::json;
use tempfile::TempDir;

use crate::admission::{ASKED, CHAIN_ID, Kept, bearer, new_key};
use crate::harness::data::Data;
use crate::harness::encrypted::{Authority, encrypted};
use crate::harness::run::text;
use crate::harness::served::Served;
use crate::harness::stores::data_folder;
use crate::harness::wait::{wait_for, wait_for_line};
use crate::raw_requests::read_answer;

/// A server whose file can be written anew.
struct Reloaded {
    served: Served,
    log: Receiver<String>,
    path: PathBuf,
    _folder: TempDir,
    /// Lines that were passed over in search of the last one.
    passed: RefCell<Vec<String>>,
}

impl Reloaded {
    fn start(settings: &str, level: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("quipu.toml");
        fs::write(&path, settings).unwrap();
        let args = ["--config", text(&path)];
        let (served, log) = Served::start_logged_at(&data_folder("sample"), &args, level);
        Self { served, log, path, _folder: folder, passed: RefCell::default() }
    }

    /// Writes other settings and has them read; the line that tells how that went.
    fn reload(&self, settings: &str) -> String {
        fs::write(&self.path, settings).unwrap();
        self.served.signal("HUP");
        self.next_line("read again")
    }

    /// The next line with this text.
    fn next_line(&self, part: &str) -> String {
        let mut passed = self.passed.borrow_mut();
        passed.clear();
        wait_for_line(&self.log, part, &mut passed)
    }

    /// The lines before that one.
    fn passed(&self) -> String {
        self.passed.borrow().join("\n")
    }

    fn connect(&self) -> Kept {
        Kept::to(&self.served.address)
    }
}

#[test]
fn keys_and_limits_are_read_again_and_what_needs_a_restart_is_told() {
    let ((first, first_table), (second, second_table)) = (new_key("a", ""), new_key("b", ""));
    let reloaded = Reloaded::start(&first_table, "info");
    let [mut open, mut refused] = [(); 2].map(|()| reloaded.connect());
    for connection in [&mut open, &mut refused] {
        assert_eq!(connection.post("/", &bearer(&first), ASKED).2["result"], CHAIN_ID);
    }
    let batch = format!("[{ASKED},{ASKED},{ASKED}]");

    let settings = "[server]\ncors_origin = [\"https://a.example\"]\n[limits]\nbatch_items_max = 2\n\
                    body_bytes_max = 1000\nread_threads = 3\n";
    let told = reloaded.reload(&[settings, &second_table].concat());
    for name in ["limits.batch_items_max", "limits.body_bytes_max", "server.cors_origin", "keys"] {
        assert!(told.contains(name), "{name}: {told}");
    }
    assert!(!told.contains("read_threads"), "{told}");
    let told = reloaded.next_line("need a restart");
    assert!(told.contains("limits.read_threads") && !told.contains("cors"), "{told}");

    // Who may ask and what an answer may be count for connections that are open.
    assert_eq!(refused.post("/", &bearer(&first), ASKED).0, 401);
    let (status, _, answer) = open.post("/", &bearer(&second), &batch);
    assert_eq!((status, &answer[0]["error"]["code"]), (200, &json!(-32600)), "{answer}");
    // How requests are read counts for those that begin.
    let long = [ASKED, &" ".repeat(1000)].concat();
    assert_eq!(open.post("/", &bearer(&second), &long).0, 200);
    assert_eq!(reloaded.connect().post("/", &bearer(&second), &long).0, 413);

    // And back, which needs no restart any more.
    let told = reloaded.reload(&first_table);
    assert!(told.contains("keys") && told.contains("limits.batch_items_max"), "{told}");
    assert_eq!(reloaded.connect().post("/", &bearer(&first), &long).0, 200);
    let told = reloaded.reload(&first_table);
    assert!(told.contains("changed=\"nothing\""), "{told}");
    // All that the second reload said was said before the third began.
    assert!(!reloaded.passed().contains("restart"), "{}", reloaded.passed());
}

#[test]
fn settings_that_are_wrong_change_nothing() {
    let (key, table) = new_key("a", "");
    let reloaded = Reloaded::start(&table, "info");
    for (settings, reason) in [
        ("[limits]\nbatch_items_max = 2\nno_such = 1\n", "no_such"),
        ("[limits]\nbatch_items_max = 2\nbytes_under_way_max = 1\n", "are needed"),
        ("[limits]\nbatch_items_max = 2\n[[keys]]\nname = \"b\"\nhash = \"b\"\n", "sha256:"),
        ("batch_items_max = ", "line 1"),
    ] {
        let told = reloaded.reload(settings);
        assert!(told.contains("stay as they were") && told.contains("ERROR"), "{told}");
        let told = if told.contains(reason) { told } else { reloaded.next_line(reason) };
        assert!(told.contains(reason), "{told}");
    }
    let batch = format!("[{ASKED},{ASKED},{ASKED}]");
    let (status, _, answer) = reloaded.connect().post("/", &bearer(&key), &batch);
    assert_eq!((status, &answer[2]["result"]), (200, &json!(CHAIN_ID)), "{answer}");
}

/// The certificate was in force when the keys were refused, and without its file everything had its
/// default.
#[test]
fn what_is_refused_last_changes_nothing_either() {
    let (key, table) = new_key("a", "");
    let authority = Authority::new();
    let folder = tempfile::tempdir().unwrap();
    let TlsFiles { certificate, key: private, .. } =
        authority.identity("localhost").write(folder.path());
    let [certificate, private] = [&certificate, &private].map(|path| text(path));
    let settings = format!("[tls]\ntls_cert = \"{certificate}\"\ntls_key = \"{private}\"\n");
    let reloaded = Reloaded::start(&[&settings, &*table].concat(), "info");
    let client = authority.client(&[], None);
    let connect = || encrypted(TcpStream::connect(&reloaded.served.address).unwrap(), &client);
    let asked = || {
        let mut stream = connect();
        let head = "POST / HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n";
        let length = ASKED.len();
        let request = format!("{head}{}content-length: {length}\r\n\r\n{ASKED}", bearer(&key));
        stream.write_all(request.as_bytes()).unwrap();
        (read_answer(&mut stream), stream.certificate())
    };
    let before = asked();
    assert_eq!(before.0, Some(200));
    authority.identity("localhost").write(folder.path());
    // No key is left, and nobody said that everybody may ask.
    let told = reloaded.reload(&settings);
    assert!(told.contains("stay as they were"), "{told}");
    assert_eq!(asked(), before);
    fs::remove_file(&reloaded.path).unwrap();
    reloaded.served.signal("HUP");
    let told = reloaded.next_line("read again");
    assert!(told.contains("stay as they were") && told.contains("No such file"), "{told}");
    assert_eq!(asked(), before);
    let told = reloaded.reload(&[&settings, &*table].concat());
    assert!(told.contains("the certificate"), "{told}");
    let after = asked();
    assert!(after.0 == Some(200) && after.1 != before.1);
}

/// A file that is found in the data folder, and not named, counted as one without settings when it was
/// gone.
#[test]
fn a_file_that_is_gone_changes_nothing() {
    let data = Data::imported();
    let path = data.path().join("quipu.toml");
    fs::write(&path, "[limits]\nbatch_items_max = 2\n").unwrap();
    let (served, log) = Served::start_logged_at(&data.path(), &[], "info");
    fs::remove_file(&path).unwrap();
    served.signal("HUP");
    let told = wait_for_line(&log, "read again", &mut Vec::new());
    assert!(told.contains("it was there at the start, and is gone"), "{told}");
    let batch = format!("[{ASKED},{ASKED},{ASKED}]");
    let (_, _, answer) = Kept::to(&served.address).post("/", "", &batch);
    assert_eq!(answer[0]["error"]["code"], -32600, "{answer}");
    // An operator hears of it, also of the end.
    let shown = || String::from_utf8(served.get("/metrics").body).unwrap();
    let wait_for_shown = |expected: &str| {
        let is_shown = || shown().lines().any(|line| line == expected).then_some(());
        wait_for(is_shown, || format!("no {expected} in {}", shown()));
    };
    wait_for_shown("quipu_config_last_reload_successful 0");
    fs::write(&path, "").unwrap();
    served.signal("HUP");
    wait_for_shown("quipu_config_last_reload_successful 1");
}

#[test]
fn the_level_of_logs_is_read_again() {
    let reloaded = Reloaded::start("", "");
    let ask = || assert_eq!(reloaded.connect().post("/", "", ASKED).0, 200);
    reloaded.reload("[log]\nverbose = true\n");
    ask();
    reloaded.next_line("DEBUG");
    // The level changes after the line that tells of it, and before the next one.
    reloaded.reload("");
    reloaded.reload("");
    ask();
    reloaded.served.signal("HUP");
    let mut seen = Vec::new();
    while !seen.last().is_some_and(|line: &String| line.contains("read again")) {
        seen.push(reloaded.log.recv_timeout(Duration::from_mins(1)).unwrap());
    }
    assert!(seen.iter().all(|line| !line.contains("DEBUG")), "{seen:#?}");
}

#[test]
fn nobody_notices_that_settings_are_read_again() {
    let ((key, table), (_, other)) = (new_key("a", ""), new_key("b", ""));
    let fields = bearer(&key);
    let reloaded = Reloaded::start(&table, "info");
    let address = &*reloaded.served.address;
    let (is_over, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    let asks = |connection: &mut Kept| {
        let (status, head, answer) = connection.post("/", &fields, ASKED);
        assert_eq!((status, &answer["result"]), (200, &json!(CHAIN_ID)), "{head} {answer}");
        answered.fetch_add(1, Ordering::Relaxed);
    };
    thread::scope(|scope| {
        let keeps = || {
            let mut connection = Kept::to(address);
            while !is_over.load(Ordering::Relaxed) {
                asks(&mut connection);
            }
        };
        let begins = || {
            while !is_over.load(Ordering::Relaxed) {
                asks(&mut Kept::to(address));
            }
        };
        let clients = [scope.spawn(keeps), scope.spawn(keeps), scope.spawn(begins)];
        for turn in 0..40 {
            let limits = format!("[limits]\nbatch_items_max = {}\n", turn + 1);
            let keys = if turn % 2 == 0 { [&other, &table] } else { [&table, &other] };
            let told = reloaded.reload(&[&limits, &**keys[0], &**keys[1]].concat());
            assert!(told.contains("limits.batch_items_max"), "{told}");
            let before = answered.load(Ordering::Relaxed);
            // Some are answered between two reloads, unless a client has failed.
            while answered.load(Ordering::Relaxed) < before + 10
                && !clients.iter().any(thread::ScopedJoinHandle::is_finished)
            {
                thread::yield_now();
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert!(answered.load(Ordering::Relaxed) >= 400);
}
