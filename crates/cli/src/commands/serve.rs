//! `quipu serve`: answer JSON-RPC from the data folder.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::Context;
use rpc::http::{HttpSettings, Listener, Server};
use rpc::{Service, Settings, UnknownHash};
use store::read::{Blocking, ReadPool};
use store::{Limits, Store};
use tracing::{info, warn};

use crate::Failure;
use crate::args::{LogFormatArg, ServeArgs, UnknownHashArg};
use crate::data_folder::DataFolder;
use crate::folder_chain::spec_of;

/// Threads that wait for disks: as many reads as a disk has under way with profit.
const READ_THREADS: usize = 16;
/// Cold reads that wait for one of them.
const READS_MAX: usize = 1024;
/// How often the folder is looked at for what another process has added.
const REFRESH_EVERY: Duration = Duration::from_secs(1);

pub(crate) fn run(args: &ServeArgs) -> Result<(), Failure> {
    begin_logs(args.log_format == LogFormatArg::Json)?;
    let folder = DataFolder::open(&args.data)?;
    serve(&folder, args.listen, args.http_settings(), args.settings())
}

impl ServeArgs {
    fn http_settings(&self) -> HttpSettings {
        let defaults = HttpSettings::default();
        HttpSettings {
            connections_max: self.connections_max.get(),
            cors_origins: self.cors_origins.clone(),
            hosts: self.hosts.clone(),
            ..defaults
        }
    }

    fn settings(&self) -> Settings {
        let unknown_hash = match self.unknown_hash {
            None => UnknownHash::ByFollowing,
            Some(UnknownHashArg::Null) => UnknownHash::Null,
            Some(UnknownHashArg::Refuse) => UnknownHash::Refuse,
        };
        Settings { unknown_hash, ..Settings::default() }
    }
}

/// Serves a data folder until the process is told to stop.
pub(crate) fn serve(
    folder: &DataFolder,
    address: SocketAddr,
    http: HttpSettings,
    settings: Settings,
) -> Result<(), Failure> {
    let spec = spec_of(folder)?;
    let reads_max = NonZeroUsize::new(READS_MAX).unwrap_or(NonZeroUsize::MIN);
    let pool = Arc::new(ReadPool::new(reads_max));
    for _ in 0..READ_THREADS {
        let pool = Arc::clone(&pool);
        thread::Builder::new().name("disk".to_owned()).spawn(move || pool.work())?;
    }
    let blocking: Arc<dyn Blocking> = Arc::<ReadPool>::clone(&pool);
    let store = Store::open(Arc::clone(&folder.disk), blocking, Limits::default())?;
    let store = Arc::new(store);
    let service = Arc::new(Service::new(Arc::clone(&store), spec, settings));
    let server = Arc::new(Server::new(service, http));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let outcome = runtime.block_on(async {
        let listener = Listener::bind(address).await?;
        let held = store.view().coverage();
        let ranges: Vec<String> = held.iter().map(ToString::to_string).collect();
        info!(address = %listener.address(), held = ranges.join(", "), "serving");
        // For people and scripts: the first line says where, also when logs are silent.
        eprintln!("listening on http://{}", listener.address());
        tokio::spawn(refresh(store));
        listener.serve(server, stop_signal()).await;
        anyhow::Ok(())
    });
    pool.close();
    outcome?;
    info!("stopped");
    Ok(())
}

/// Sees what imports in other processes add.
async fn refresh(store: Arc<Store>) {
    loop {
        tokio::time::sleep(REFRESH_EVERY).await;
        match store.refresh() {
            Ok(true) => info!(tip = store.view().tip(), "the data folder has changed"),
            Ok(false) => {}
            Err(cause) => warn!(%cause, "cannot look at the data folder; serving what was there"),
        }
    }
}

/// Ctrl-C, or what a supervisor sends.
async fn stop_signal() {
    let interrupted = tokio::signal::ctrl_c();
    let terminated = async {
        match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
            Ok(mut signal) => drop(signal.recv().await),
            Err(_) => std::future::pending::<()>().await,
        }
    };
    tokio::select! {
        _ = interrupted => {}
        () = terminated => {}
    }
    info!("stopping: requests under way are finished");
}

/// Writes logs to standard error: what `RUST_LOG` asks for, or what an operator wants to see.
pub(crate) fn begin_logs(is_json: bool) -> Result<(), Failure> {
    use tracing_subscriber::EnvFilter;
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let is_terminal = std::io::IsTerminal::is_terminal(&std::io::stderr());
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(is_terminal);
    let begun = if is_json { builder.json().try_init() } else { builder.try_init() };
    begun.map_err(|error| anyhow::anyhow!("{error}")).context("logs")?;
    Ok(())
}
