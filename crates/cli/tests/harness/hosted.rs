//! The server inside the test's own process: for settings that no flag has, and for disks that fail.

use std::net::{SocketAddr, TcpStream};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread::JoinHandle;
use std::time::Duration;

use chain::ChainSpec;
use rpc::http::{HttpSettings, Listener, Server};
use rpc::{Budget, Service, ServiceSettings};
use store::disk::{DataFile, Disk, Folder};
use store::read::{Blocking, Inline, Reading};
use store::{Limits, Store};
use testing::disk::faulty::FaultyDisk;
use tokio::sync::oneshot;

use crate::harness::wait::wait_for;

/// The sample chain, as far as answers need to know it.
fn spec(folder: &Path) -> ChainSpec {
    let text = std::fs::read(folder.join("genesis.json")).unwrap();
    ChainSpec::from_genesis("sample", &serde_json::from_slice(&text).unwrap()).unwrap()
}

/// A service over a data folder of the sample chain.
pub(crate) fn service(folder: &Path, settings: ServiceSettings) -> Service {
    let disk: Arc<dyn Disk> = Arc::new(Folder::open(folder).unwrap());
    service_on(folder, disk, Arc::new(Inline), settings)
}

/// The same of a chain that nobody described.
pub(crate) fn service_of_unknown_chain(folder: &Path) -> Service {
    service_of(folder, ChainSpec::bare("unknown", Some(20_260_101), None))
}

/// The same of any chain.
pub(crate) fn service_of(folder: &Path, spec: ChainSpec) -> Service {
    let disk: Arc<dyn Disk> = Arc::new(Folder::open(folder).unwrap());
    let store = Store::open(disk, Arc::new(Inline), Limits::default()).unwrap();
    Service::new(Arc::new(store), spec, ServiceSettings::default())
}

/// The same on a disk of which about half of the reads would have to wait, and then wait for ever.
pub(crate) fn service_that_stalls(folder: &Path) -> Service {
    let disk = FaultyDisk::new(1);
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        disk.write(&name, &std::fs::read(entry.path()).unwrap()).unwrap();
    }
    disk.set_may_block(true);
    service_on(folder, Arc::new(disk), Arc::new(Stalled), ServiceSettings::default())
}

/// A disk that never answers.
#[derive(Debug)]
struct Stalled;

impl Blocking for Stalled {
    fn read(&self, _: Arc<dyn DataFile>, _: Range<u64>) -> Reading<'_> {
        Box::pin(std::future::pending())
    }
}

fn service_on(
    folder: &Path,
    disk: Arc<dyn Disk>,
    blocking: Arc<dyn Blocking>,
    settings: ServiceSettings,
) -> Service {
    let store = Store::open(disk, blocking, Limits::default()).unwrap();
    Service::new(Arc::new(store), spec(folder), settings)
}

/// Answers a body as the server would.
pub(crate) fn respond(service: &Service, body: &str) -> Option<serde_json::Value> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let answer = runtime.block_on(service.respond(body.as_bytes(), Duration::from_secs(20)));
    answer.map(|bytes| serde_json::from_slice(&bytes).unwrap())
}

/// A running server; stopped when it is dropped.
pub(crate) struct Hosted {
    pub(crate) address: SocketAddr,
    pub(crate) server: Arc<Server>,
    /// What its clients take.
    pub(crate) budget: Arc<Budget>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Hosted {
    pub(crate) fn start(service: Service, settings: HttpSettings) -> Self {
        Self::start_server(Server::new(Arc::new(service), settings))
    }

    /// The same with more than settings.
    pub(crate) fn start_server(server: Server) -> Self {
        let (told, begun) = sync_channel(1);
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let any = SocketAddr::from(([127, 0, 0, 1], 0));
                let listener = Listener::bind(any).await.unwrap();
                let server = Arc::new(server);
                told.send((listener.address(), Arc::clone(&server))).unwrap();
                listener.serve(server, async move { drop(stopped.await) }).await.unwrap();
            });
        });
        let (address, server) = begun.recv().unwrap();
        let budget = Arc::clone(server.budget());
        Self { address, server, budget, stop: Some(stop), thread: Some(thread) }
    }

    /// Tells the server to stop; it ends when it has finished what it was asked.
    pub(crate) fn stop(&mut self) {
        drop(self.stop.take());
    }

    /// Waits until nothing is under way; `connected` stays open meanwhile.
    pub(crate) fn settle<T>(&self, connected: &T) {
        let bytes = || self.budget.bytes();
        wait_for(|| (bytes() == 0).then_some(()), || format!("{} bytes stay", bytes()));
        let _ = connected;
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }
}

impl Drop for Hosted {
    fn drop(&mut self) {
        drop(self.stop.take());
        drop(self.thread.take().map(JoinHandle::join));
    }
}
