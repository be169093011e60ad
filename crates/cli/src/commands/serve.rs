//! `quipu serve`: answer JSON-RPC from the data folder, which may follow a node meanwhile.

mod admission;
mod certificates;
pub(crate) mod follow;
mod health;
mod kept_page;
mod last_reload;
mod live_stat;
mod log_level;
mod memory;
mod metrics;
mod publishing;
mod reading;
mod reloading;
mod source;
mod supervisor;
mod watch;

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use chain::{BlockNumber, ChainSpec};
use ingest::folder_chain::FolderChain;
use node::UpstreamUrl;
use rpc::http::{HttpSettings, Listener, MetricsListener, Server, Tls};
use rpc::{AdmissionSettings, PassThroughMethod, Service, ServiceSettings, UnknownHash};
use store::Store;
use store::disk::Disk;
use store::read::ReadPool;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing::{debug, info};

use crate::Failure;
use crate::args::serve::{LogFormatArg, ServeArgs, UnknownHashArg};
use crate::bucket::open_bucket;
use crate::chain_choice;
use crate::config::variables::warn_of_unknown_variables;
use crate::data_folder::{DataFolder, locate};
use crate::descriptors::{log_shares, share_with_clients};
use crate::hints::listen_failure;
use crate::interrupt::StopSignal;
use crate::node::{Node, NodeLimits, OwnChain};
use crate::output::{clock, verbosity};
use crate::unix_time::since_1970;
use crate::upstream_args::parse_node;
use admission::{ServerReach, put_in_force};
use certificates::watch_certificates;
use follow::{FollowPlan, Following, ServerParts};
use health::{FollowHealth, ServerHealth, log_heartbeat};
use last_reload::LastReload;
use live_stat::{LiveStat, read_tip_timestamp};
pub(crate) use log_level::begin_logs;
use log_level::usual_level;
use metrics::{Metrics, MetricsParts};
use publishing::Publisher;
use reading::{ReadSettings, open_store};
use reloading::{ReloadedParts, Reloader, StartedWith, reload_on};
use source::BucketSource;
use supervisor::{inherited_listener, tell_ready, tell_stopping};
use watch::{LoggedFaults, warn_of_head, watch_folder};

/// Longest wait for the age of the newest block, for the log.
const TIP_PATIENCE: Duration = Duration::from_secs(2);

pub(crate) fn run(args: &ServeArgs) -> Result<(), Failure> {
    let log_level = begin_logs(args.log_format == LogFormatArg::Json, usual_level(verbosity()))?;
    warn_of_unknown_variables();
    // Before anybody is told that it listens.
    args.check()?;
    let node = match args.pass_through.as_slice() {
        [] => None,
        _ => Some(Arc::new(args.node()?)),
    };
    let admission = args.admission.settings();
    // Files that somebody else renews, perhaps just now: whoever supervises may try again.
    let tls = args.tls.files()?.map(Tls::load).transpose().map_err(anyhow::Error::from)?;
    let mut bound = match inherited_listener()? {
        Some(listener) => {
            info!("the socket that was handed over is listened on, and --listen is not used");
            Bound::inherit(listener)?
        }
        None => Bound::to(args.listen.resolve()?)?,
    };
    if let Some(listen) = &args.metrics_listen {
        bound.bind_metrics(listen.resolve_for("--metrics-listen")?)?;
    }
    let follow = &args.follow;
    let is_following = !follow.upstream.upstreams.is_empty();
    let source = bound.open_source(args)?;
    let (folder, chain) = if let Some(source) = &source {
        source_folder(args, source)?
    } else if is_following {
        // With a node to follow, an empty folder is a beginning.
        let path = locate(&args.data)?;
        let found = DataFolder::find(&path)?;
        let chain =
            chain_choice::folder_chain(&follow.chain, found.as_ref().map(DataFolder::store))?;
        (DataFolder::create(&path)?, chain)
    } else {
        let folder = DataFolder::open(&args.data)?;
        refuse_empty(&folder)?;
        let chain = chain_choice::folder_chain(&follow.chain, Some(folder.store()))?;
        (folder, chain)
    };
    let spec = chain.as_ref().map(|chain| chain.spec().clone());
    let plan = is_following.then_some(FollowPlan { args: follow, chain });
    let settings = ServiceSettings { is_following, ..args.settings() };
    let publisher = args.source.publish.as_deref().map(Publisher::open).transpose()?;
    if let Some(publisher) = &publisher {
        publisher.refuse_place_in(&folder.path)?;
    }
    let wiring = Wiring {
        plan: plan.as_ref(),
        spec,
        pass_through: args.pass_through.clone(),
        node,
        source,
        publisher,
        tls: tls.map(Arc::new),
        reading: ReadSettings::of(args),
        admission: admission.clone(),
        started_with: Some(StartedWith::new(args, admission, log_level, verbosity())),
        is_announced: true,
    };
    bound.serve(&folder, args.http_settings(), settings, wiring)
}

/// The folder beside a source, and the chain that both are of. Without one of its own, a server has one
/// in its cache, for what it follows, and none if it follows nothing.
fn source_folder(
    args: &ServeArgs,
    source: &BucketSource,
) -> Result<(DataFolder, Option<FolderChain>), Failure> {
    let path = match &args.data.data_dir {
        Some(_) => locate(&args.data)?,
        None => source.own_folder(),
    };
    let found = DataFolder::find(&path)?;
    let store = found.as_ref().map(DataFolder::store);
    let chain = chain_choice::folder_chain_beside(&args.follow.chain, store, source.chain(), None)?;
    let follows = !args.follow.upstream.upstreams.is_empty();
    let is_empty = found.as_ref().is_none_or(|it| it.store.view().coverage().is_empty());
    if source.is_empty() && is_empty && !follows {
        if let Some(fault) = source.first_fault() {
            return Err(Failure::Work(anyhow!(
                "{}: {fault}\n  hint: quipu check --at tells all that is wrong there",
                source.place()
            )));
        }
        return Err(Failure::Work(anyhow!(
            "{}: nothing is published here, so there is nothing to serve\n  hint: see whether --source \
             is right; quipu publish --to URL brings the history of a data folder there",
            source.place()
        )));
    }
    // What an earlier process followed is served on.
    let has_files = found.is_some_and(|it| it.disk.list().map_or(true, |names| !names.is_empty()));
    let is_kept = follows || args.data.data_dir.is_some() || has_files;
    let folder =
        if is_kept { DataFolder::create(&path)? } else { DataFolder::without_files(&path)? };
    Ok((folder, chain))
}

/// A server that has nothing to answer and nobody who brings it anything is a mistake.
fn refuse_empty(folder: &DataFolder) -> Result<(), Failure> {
    let view = folder.store.view();
    // Blocks that were lost are answered as such.
    if !view.coverage().is_empty() || !view.lost().is_empty() {
        return Ok(());
    }
    let place = folder.path.display();
    Err(Failure::Work(anyhow!(
        "{place}: no block is held here, so there is nothing to serve\n  hint: take blocks in first: quipu \
         import --data-dir {place} ARCHIVES; or follow a node: quipu serve --data-dir {place} \
         --upstream URL"
    )))
}

impl ServeArgs {
    /// Refuses settings that contradict each other and addresses that cannot be right. Nothing is asked
    /// and no other file is read.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        self.limits.check()?;
        let upstream = &self.follow.upstream;
        if !upstream.upstreams.is_empty() {
            upstream.urls()?;
        }
        upstream.check_quorum()?;
        if !self.pass_through.is_empty() {
            self.node()?;
        }
        self.tls.files()?;
        if let Some(url) = &self.source.source {
            open_bucket("--source", url)?;
        }
        self.source.publish.as_deref().map_or(Ok(()), |url| Publisher::open(url).map(drop))
    }

    /// The node that calls and subscriptions are passed through to.
    fn node(&self) -> Result<Node, Failure> {
        let parse = |text: &String| parse_node(text).context("--pass-through-to");
        let urls = self.pass_through_to.iter().map(parse).collect::<Result<Vec<UpstreamUrl>, _>>();
        let urls = urls.map_err(Failure::Usage)?;
        let http = urls.iter().find(|url| url.is_http()).cloned();
        let socket = urls.into_iter().find(UpstreamUrl::is_websocket);
        let upstream = &self.follow.upstream;
        let http = http.map_or_else(|| upstream.first_http(), Ok)?;
        let socket = socket.map_or_else(|| upstream.first_socket(), |url| Ok(Some(url)))?;
        let limits = NodeLimits {
            requests_max: self.limits.pass_through_requests_max.get(),
            subscriptions_max: self.limits.pass_through_subscriptions_max.get(),
        };
        Ok(Node::at(http, socket, limits)?)
    }

    fn settings(&self) -> ServiceSettings {
        let unknown_hash = match self.unknown_hash {
            None => UnknownHash::ByFollowing,
            Some(UnknownHashArg::Null) => UnknownHash::Null,
            Some(UnknownHashArg::Refuse) => UnknownHash::Refuse,
        };
        let slow_request = Some(self.slow_request).filter(|time| !time.is_zero());
        let settings = ServiceSettings { unknown_hash, slow_request, ..ServiceSettings::default() };
        self.limits.service(settings)
    }
}

/// What a server is connected to beside its folder.
#[derive(Debug, Default)]
pub(crate) struct Wiring<'a> {
    /// The nodes that are followed.
    plan: Option<&'a FollowPlan<'a>>,
    /// The chain, if more is known of it than the folder tells.
    spec: Option<ChainSpec>,
    pass_through: Vec<PassThroughMethod>,
    /// The node that is asked these.
    node: Option<Arc<Node>>,
    /// What is published and served beside the folder.
    source: Option<Arc<BucketSource>>,
    /// Where what is sealed is sent.
    publisher: Option<Publisher>,
    /// What connections are encrypted with.
    tls: Option<Arc<Tls>>,
    reading: ReadSettings,
    admission: AdmissionSettings,
    /// What can be read again; none if nothing can.
    started_with: Option<StartedWith>,
    /// Whether it is said where it listens, once nothing can fail any more.
    is_announced: bool,
}

/// An address that is listened on, and the runtime that will serve it. Taken before long work, so
/// that an address that is not free is told at once.
#[derive(Debug)]
pub(crate) struct Bound {
    runtime: Runtime,
    listener: Listener,
    /// Where metrics are asked for, if not where clients ask.
    metrics_listener: Option<MetricsListener>,
    stop: StopSignal,
    /// Asks for a reload, and is what a terminal sends that is closed: nothing ends.
    hangup: Signal,
}

impl Bound {
    pub(crate) fn to(address: SocketAddr) -> Result<Self, Failure> {
        let bind = async {
            Listener::bind(address).await.map_err(|error| listen_failure(&error, "--listen"))
        };
        Self::by(bind)
    }

    /// Takes a socket that is listened on already.
    fn inherit(listener: TcpListener) -> Result<Self, Failure> {
        Self::by(async { Ok(Listener::inherit(listener).context("the socket handed over")?) })
    }

    fn by(listen: impl Future<Output = Result<Listener, Failure>>) -> Result<Self, Failure> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let (listener, stop, hangup) = runtime.block_on(async {
            let listener = listen.await?;
            let hangup = signal(SignalKind::hangup()).context("signals")?;
            Ok::<_, Failure>((listener, StopSignal::new().context("signals")?, hangup))
        })?;
        Ok(Self { runtime, listener, metrics_listener: None, stop, hangup })
    }

    /// Opens the bucket that is served, if one is. Told to stop meanwhile, the process ends: a store may
    /// take its time.
    fn open_source(&mut self, args: &ServeArgs) -> Result<Option<Arc<BucketSource>>, Failure> {
        let Some(url) = &args.source.source else { return Ok(None) };
        let is_following = !args.follow.upstream.upstreams.is_empty();
        let keeps_data = is_following && args.data.data_dir.is_none();
        let stop = &mut self.stop;
        self.runtime.block_on(async {
            tokio::select! {
                opened = BucketSource::open(&args.source, url, keeps_data) => opened.map(Arc::new).map(Some),
                code = stop.wait() => Err(Failure::Stopped(code)),
            }
        })
    }

    /// Listens for those who ask for metrics, on an address of their own.
    fn bind_metrics(&mut self, address: SocketAddr) -> Result<(), Failure> {
        let bound = self.runtime.block_on(MetricsListener::bind(address));
        self.metrics_listener =
            Some(bound.map_err(|error| listen_failure(&error, "--metrics-listen"))?);
        Ok(())
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    /// Does what must be done before serving, on a thread of its own. If the process is told to
    /// stop before it is done, it goes on until the process ends, and the exit code is given back.
    pub(crate) fn prepare<T: Send + 'static>(
        &mut self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> anyhow::Result<Result<T, u8>> {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let working = thread::Builder::new().name("prepare".to_owned());
        working.spawn(move || drop(sender.send(work())))?;
        let stop = &mut self.stop;
        self.runtime.block_on(async {
            tokio::select! {
                done = receiver => done.map(Ok).context("the work broke off"),
                code = stop.wait() => Ok(Err(code)),
            }
        })
    }

    /// Serves a data folder until the process is told to stop, connected as `wiring` says.
    pub(crate) fn serve(
        mut self,
        folder: &DataFolder,
        http: HttpSettings,
        settings: ServiceSettings,
        wiring: Wiring<'_>,
    ) -> Result<(), Failure> {
        let segments = wiring.reading.limits.open_segments_max;
        let shares = share_with_clients(segments, http.connections_max);
        log_shares(&shares, http.connections_max);
        let connections_max = shares.connections;
        let http = HttpSettings { connections_max, ..http };
        let plan = wiring.plan;
        let spec = wiring.spec.clone().map_or_else(|| folder.spec(), Ok)?;
        let (store, pool) = open_store(folder, wiring.reading, wiring.source.as_deref())?;
        let faults = LoggedFaults::pass_over_missing(&store)?;
        if plan.is_none() {
            // A long log takes its time: told to stop meanwhile, the process ends.
            let (store, spec) = (Arc::clone(&store), spec.clone());
            let Ok(head) = self.prepare(move || store.read_head(spec))? else { return Ok(()) };
            warn_of_head(&head?);
        }
        let health = plan.map(|_| Arc::<FollowHealth>::default());
        let shown = folder.shown_by(Arc::clone(&store), spec.clone());
        let source = wiring.source.clone();
        let pages = self.make_pages(shown, health.clone(), source, Arc::clone(&pool));
        let service = self.make_service(&pages, spec.clone(), settings, &wiring, health.as_ref());
        let mut following = None;
        if let Some((plan, health)) = plan.zip(health) {
            let (store, service) = (Arc::clone(&store), Arc::clone(&service));
            let runtime = self.runtime.handle().clone();
            runtime.spawn(log_heartbeat(Arc::clone(&health), plan.args.heartbeat_every));
            let parts = ServerParts { store, service, health, node: wiring.node.clone(), runtime };
            let Ok(opened) = self.prepare(Following::opening(plan, &parts))? else {
                return Ok(());
            };
            following = Some(Following::begin(plan, opened?, parts)?);
        }
        self.begin_transfers(&wiring, &store, &folder.disk)?;
        debug!(limits = ?http, "client limits");
        let scheme = if wiring.tls.is_some() { "https" } else { "http" };
        self.log_serving(scheme, &spec, http.has_explorer, plan, &store)?;
        let mut server = Server::new(Arc::clone(&service), http);
        let needs_certificate = wiring.tls.as_ref().is_some_and(|it| it.needs_client_certificate());
        if let Some(tls) = &wiring.tls {
            self.runtime.spawn(watch_certificates(Arc::clone(tls)));
            server = server.with_tls(Arc::clone(tls));
        }
        let server = Arc::new(server);
        let reach = ServerReach {
            address: self.listener.address(),
            needs_certificate,
            shows_metrics: self.metrics_listener.is_none(),
        };
        let is_open = put_in_force(&server, wiring.admission, reach, false)?;
        if wiring.is_announced {
            self.announce(scheme);
        }
        if let Some(listener) = self.metrics_listener.take() {
            self.runtime.spawn(listener.serve(Arc::clone(&server), pages.page));
        }
        let parts = ReloadedParts {
            server: Arc::clone(&server),
            service,
            tls: wiring.tls,
            reach,
            is_open,
            is_following: settings.is_following,
            segments,
            connections_max,
            last_reload: pages.last_reload,
        };
        let reloader = wiring.started_with.map(|started| Reloader::new(started, parts));
        tell_ready();
        let node = wiring.node;
        self.run(server, RunningParts { store, pool, faults, following, node, reloader })
    }

    /// What travels between the server and buckets while it serves.
    fn begin_transfers(
        &self,
        wiring: &Wiring<'_>,
        store: &Arc<Store>,
        disk: &Arc<dyn Disk>,
    ) -> anyhow::Result<()> {
        if let Some(source) = &wiring.source {
            self.runtime.spawn(Arc::clone(source).keep_looking(Arc::clone(store)));
            source.begin_pinning(Arc::clone(store))?;
        }
        match wiring.publisher.clone() {
            Some(publisher) => publisher.begin(Arc::clone(store), Arc::clone(disk)),
            None => Ok(()),
        }
    }

    /// Logs what is served where.
    fn log_serving(
        &self,
        scheme: &str,
        spec: &ChainSpec,
        has_explorer: bool,
        plan: Option<&FollowPlan<'_>>,
        store: &Store,
    ) -> Result<(), Failure> {
        let address = format!("{scheme}://{}", self.listener.address());
        let explorer = has_explorer.then(|| format!("{address}/"));
        let urls = plan.map_or_else(|| Ok(Vec::new()), |plan| plan.args.upstream.urls())?;
        let upstream: Vec<&str> = urls.iter().map(UpstreamUrl::name).collect();
        let upstream = (!upstream.is_empty()).then(|| upstream.join(", "));
        let (chain, chain_id) = (spec.name().to_owned(), spec.chain_id());
        let view = store.view();
        self.runtime.spawn(async move {
            let blocks: Vec<String> = view.coverage().iter().map(ToString::to_string).collect();
            let (blocks, tip) = (blocks.join(", "), view.tip().map(BlockNumber::get));
            // A bucket may hang.
            let read = tokio::task::spawn_blocking(move || read_tip_timestamp(&view));
            let timestamp = tokio::time::timeout(TIP_PATIENCE, read).await;
            let timestamp = timestamp.ok().and_then(Result::ok).flatten();
            let tip_age =
                timestamp.map(|timestamp| clock(since_1970().as_secs().saturating_sub(timestamp)));
            info!(chain, chain_id, blocks, tip, tip_age, address, explorer, upstream, "serving");
        });
        Ok(())
    }

    /// For people and scripts, also when logs are silent: nothing stands in the way any more.
    fn announce(&self, scheme: &str) {
        eprintln!("listening on {scheme}://{}", self.listener.address());
        if let Some(listener) = &self.metrics_listener {
            eprintln!("metrics on http://{}/metrics", listener.address());
        }
    }

    /// The pages that tell what is held and how serving goes.
    fn make_pages(
        &self,
        folder: DataFolder,
        health: Option<Arc<FollowHealth>>,
        source: Option<Arc<BucketSource>>,
        pool: Arc<ReadPool>,
    ) -> LivePages {
        let runtime = self.runtime.handle().clone();
        let live = LiveStat::new(folder, health.clone(), source.clone(), runtime.clone());
        let live = Arc::new(live);
        let begun = since_1970();
        let last_reload = Arc::new(LastReload::at_start(begun));
        let parts = MetricsParts {
            live: Arc::clone(&live),
            health,
            source,
            pool,
            last_reload: Arc::clone(&last_reload),
            begun,
        };
        let page = Arc::new(Metrics::new(parts, runtime));
        LivePages { live, page, last_reload }
    }

    /// What answers calls.
    fn make_service(
        &self,
        pages: &LivePages,
        spec: ChainSpec,
        settings: ServiceSettings,
        wiring: &Wiring<'_>,
        health: Option<&Arc<FollowHealth>>,
    ) -> Arc<Service> {
        let own_chain = OwnChain::of(&spec);
        let mut service = Service::new(pages.live.store(), spec, settings);
        if health.is_some() || wiring.source.is_some() {
            let (follow, source) = (health.cloned(), wiring.source.clone());
            service = service.with_health(Arc::new(ServerHealth { follow, source }));
        }
        if let Some(node) = &wiring.node {
            node.expect_chain(own_chain);
            let methods = wiring.pass_through.clone();
            service = service.with_pass_through(methods, Arc::<Node>::clone(node));
        }
        if self.metrics_listener.is_none() {
            service = service.with_metrics_page(Arc::<Metrics>::clone(&pages.page));
        }
        let live = Arc::clone(&pages.live);
        let service = Arc::new(service.with_stat_page(Arc::<LiveStat>::clone(&live)));
        self.runtime.spawn(live.keep_sampling(Arc::clone(&service)));
        service
    }

    /// Serves until the process is told to stop or following turns out to be impossible.
    fn run(mut self, server: Arc<Server>, parts: RunningParts) -> Result<(), Failure> {
        let RunningParts { store, pool, faults, mut following, node, reloader } = parts;
        let mut failure = None;
        let outcome = self.runtime.block_on(async {
            tokio::spawn(watch_folder(store, following.is_some(), faults));
            tokio::spawn(memory::give_back_free_pages(Arc::clone(server.budget())));
            tokio::spawn(reload_on(self.hangup, reloader));
            let stop = async {
                tokio::select! {
                    _ = self.stop.wait() => {}
                    cause = failed(following.as_mut()) => failure = Some(cause),
                }
                info!("stopping: requests under way are finished");
                tell_stopping();
                // At once and not after the last request: neither may wait for a node.
                if let Some(following) = &following {
                    following.stop();
                }
                if let Some(node) = &node {
                    node.stop();
                }
            };
            self.listener
                .serve(server, stop)
                .await
                .map_err(|error| listen_failure(&error, "--listen"))
        });
        if let Some(following) = following {
            following.end();
        }
        pool.close();
        // Names that are looked up, for instance, are not waited for.
        self.runtime.shutdown_background();
        outcome?;
        if let Some(failure) = failure {
            return Err(failure);
        }
        info!("stopped");
        Ok(())
    }
}

/// What tells how serving goes.
#[derive(Debug)]
struct LivePages {
    live: Arc<LiveStat>,
    page: Arc<Metrics>,
    last_reload: Arc<LastReload>,
}

/// What runs beside a server and ends with it.
#[derive(Debug)]
struct RunningParts {
    store: Arc<Store>,
    pool: Arc<ReadPool>,
    faults: LoggedFaults,
    following: Option<Following>,
    node: Option<Arc<Node>>,
    reloader: Option<Reloader>,
}

/// Waits until following fails for good; for ever, if nothing is followed.
async fn failed(following: Option<&mut Following>) -> Failure {
    match following {
        Some(following) => following.failed().await,
        None => std::future::pending().await,
    }
}
