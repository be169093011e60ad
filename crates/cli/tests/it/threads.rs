//! Connections between the threads of a server, each of which is made to run on a core of its own.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use rustix::thread::{CpuSet, Pid, sched_getaffinity, sched_setaffinity};

use crate::limits::request;
use crate::run::{command, text};
use crate::served::Served;
use crate::stores::data_folder;

const CONNECTIONS: usize = 32;
/// Rounds of two requests on each core: more than it takes to be followed there.
const ROUNDS: usize = 60;

/// Makes a thread, or this one, run on these cores alone.
fn bind(thread: Option<Pid>, cores: &[usize]) {
    let mut set = CpuSet::new();
    for core in cores {
        set.set(*core);
    }
    sched_setaffinity(thread, &set).unwrap();
}

/// The threads of a process that serve.
fn serving_threads(process: u32) -> Vec<Pid> {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let mut tasks: Vec<PathBuf> = tasks.map(|task| task.unwrap().path()).collect();
    tasks.retain(|task| std::fs::read_to_string(task.join("comm")).unwrap() == "serve\n");
    let id = |task: PathBuf| Pid::from_raw(task.file_name()?.to_str()?.parse().ok()?);
    tasks.into_iter().filter_map(id).collect()
}

/// A server of two threads, each bound to one of two cores, and what it says.
fn serve_on(cores: [usize; 2]) -> (Served, Receiver<String>) {
    let data = data_folder("gap");
    let mut command = command(&["serve", "--data-dir", text(&data), "--listen", "127.0.0.1:0"]);
    command.env("RUST_LOG", "rpc=debug").stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let log = BufReader::new(child.stderr.take().unwrap());
    let (says, said) = sync_channel(CONNECTIONS);
    // Whatever it says later must not fill the pipe: it is read though nobody may listen.
    thread::spawn(move || log.lines().map_while(Result::ok).for_each(|it| drop(says.send(it))));
    let mut addresses = said.iter().filter_map(|line| {
        line.strip_prefix("listening on http://").map(|address| address.parse().unwrap())
    });
    let address = addresses.next().unwrap();
    // It listens before they are all there.
    let threads = loop {
        let threads = serving_threads(child.id());
        assert!(threads.len() <= cores.len());
        if threads.len() == cores.len() {
            break threads;
        }
        thread::sleep(Duration::from_millis(1));
    };
    for (thread, core) in threads.iter().zip(cores) {
        bind(Some(*thread), &[core]);
    }
    (Served::over(child, address), said)
}

/// Asks on every connection, many times, two questions at a time.
fn ask_all(streams: &mut [TcpStream]) {
    for round in 0..ROUNDS {
        for stream in &mut *streams {
            let ids = [round, round + ROUNDS];
            let ask = |id| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"eth_blockNumber"}}"#);
            let asked = ids.map(|id| request(&ask(id))).concat();
            stream.write_all(asked.as_bytes()).unwrap();
        }
        for stream in &mut *streams {
            let answer = |id| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":"0x63"}}"#);
            let [first, second] = [round, round + ROUNDS].map(answer);
            let mut found = String::new();
            while !found.ends_with(&second) {
                let mut part = [0; 1024];
                let count = stream.read(&mut part).unwrap();
                assert!(count > 0, "closed after {found:?}");
                found.push_str(std::str::from_utf8(&part[..count]).unwrap());
            }
            assert!(found.find(&first) < found.find(&second) && found.contains(&first), "{found}");
        }
    }
}

/// How many connections the server says it has moved by the time that the client has ended.
fn moved(said: &Receiver<String>, client: &ScopedJoinHandle<'_, ()>) -> usize {
    let mut moved = 0;
    loop {
        match said.recv_timeout(Duration::from_millis(200)) {
            Ok(line) => moved += usize::from(line.contains("where its packets come in")),
            Err(RecvTimeoutError::Timeout) if !client.is_finished() => {}
            Err(_) => return moved,
        }
    }
}

#[test]
fn connections_go_where_their_packets_come_in_and_lose_nothing() {
    let allowed = sched_getaffinity(None).unwrap();
    let mut cores = (0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core));
    let (Some(one), Some(other)) = (cores.next(), cores.next()) else {
        println!("skipped: on one core there is nowhere to go");
        return;
    };
    // The server has as many threads as cores, and takes both from the thread that starts it.
    bind(None, &[one, other]);
    let (served, said) = serve_on([one, other]);
    thread::scope(|scope| {
        let client = scope.spawn(|| {
            let connect = |_| TcpStream::connect(served.address()).unwrap();
            let mut streams: Vec<TcpStream> = (0..CONNECTIONS).map(connect).collect();
            for core in [one, other, one] {
                bind(None, &[core]);
                ask_all(&mut streams);
            }
        });
        let moved = moved(&said, &client);
        client.join().unwrap();
        // The threads begin with sixteen each. One connection goes to the first core and two go to the
        // other, two come back: the rest has to stay where it is.
        assert!((5..CONNECTIONS).contains(&moved), "{moved}");
    });
}
