//! Several publishers, a reader, merging and pruning at once, over a store that fails now and then.
//!
//! What is held against the bucket is what publishers were told: blocks whose publication has succeeded
//! are there until they are withdrawn, and what was withdrawn is not.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use chain::{BlockRange, SplitMix64};
use replica::{
    Bucket, PublishError, Published, RunMergeError, check, merge_runs, prune, read_published,
    retract, segments_within,
};
use segment::SLOT_BLOCKS;
use store::disk::Disk;
use store::layout::{HeldRange, join_ranges, subtract};
use testing::disk::faulty::FaultyDisk;

use crate::faulty_store::{Faults, FaultyStore};
use crate::history::{Branch, MAIN, MadeFolder, range, whole};
use crate::publish::{bucket, put};

const DAY: Duration = Duration::from_hours(24);
const SEEDS: u64 = 12;
const ROUNDS: usize = 25;
/// Where the publisher that follows the tip begins.
const TIP: u64 = 9 * SLOT_BLOCKS;

/// One machine with a folder.
struct Publisher {
    branch: Branch,
    held: Vec<HeldRange>,
    /// What it may hold.
    own: BlockRange,
    /// What of it the bucket was told of.
    published: Vec<BlockRange>,
}

impl Publisher {
    fn new(own: BlockRange) -> Self {
        Self { branch: MAIN, held: Vec::new(), own, published: Vec::new() }
    }

    /// Gets more blocks: at the end of what it has, or anywhere.
    fn grow(&mut self, chance: &mut SplitMix64) {
        let ranges = join_ranges(self.held.iter().map(|it| it.range));
        let last_end = ranges.last().map_or(self.own.first(), BlockRange::end);
        let is_tip = self.own.first() == TIP;
        let first = if is_tip || chance.below(3) > 0 {
            last_end.min(self.own.last())
        } else {
            self.own.first() + chance.below(self.own.count())
        };
        let count = 1 + chance.below(if is_tip { 700 } else { 12_000 });
        let last = (first + count - 1).min(self.own.last());
        self.held.push(whole(first, last));
    }

    fn coverage(&self) -> Vec<BlockRange> {
        join_ranges(self.held.iter().map(|it| it.range))
    }

    fn folder(&self) -> MadeFolder {
        MadeFolder::of(self.branch, &self.held)
    }

    /// Drops what is above a block, which a human decided.
    fn rewind(&mut self, cut: u64, letter: u8) {
        let below = |held: &HeldRange| {
            BlockRange::from_ends(held.range.first(), held.range.last().min(cut))
        };
        let kept = self.held.iter().filter_map(below);
        self.held = kept.map(|it| whole(it.first(), it.last())).collect();
        self.branch = Branch { letter, fork: cut + 1 };
    }
}

/// What readers would serve.
fn shown(published: &Published) -> Vec<BlockRange> {
    let segments = published.manifests.iter().flat_map(|it| it.manifest.segments());
    let live = segments.filter(|it| !published.retracted.contains(&it.file_name));
    join_ranges(live.map(|it| it.range))
}

struct World {
    seed: u64,
    store: FaultyStore,
    bucket: Bucket,
    publishers: Vec<Publisher>,
    retracted: BTreeSet<String>,
    chance: SplitMix64,
    reader: Published,
}

impl World {
    fn new(seed: u64) -> Self {
        let store = FaultyStore::new(seed);
        let publishers = [(0, 4), (2, 7)].map(|(first, last)| {
            Publisher::new(range(first * SLOT_BLOCKS, last * SLOT_BLOCKS - 1))
        });
        let tip = Publisher::new(range(TIP, TIP + 4 * SLOT_BLOCKS));
        Self {
            seed,
            bucket: bucket(&store),
            publishers: publishers.into_iter().chain([tip]).collect(),
            retracted: BTreeSet::new(),
            chance: SplitMix64::new(seed ^ 0x5eed),
            reader: Published::default(),
            store,
        }
    }

    /// Everybody does something at once.
    async fn round_of_all(&mut self) {
        let who = self.chance.below(8);
        for (place, publisher) in self.publishers.iter_mut().enumerate() {
            if who & (1 << place) != 0 {
                publisher.grow(&mut self.chance);
            }
        }
        let expected = self.expected();
        self.store.set(Faults::PASSING);
        let (does_merge, does_prune) = (self.chance.below(4) == 0, self.chance.below(3) == 0);
        let folders: Vec<MadeFolder> = self.publishers.iter().map(Publisher::folder).collect();
        let bucket = &self.bucket;
        let publications = folders
            .iter()
            .enumerate()
            .filter(|(place, _)| who & (1 << place) != 0)
            .map(|(place, folder)| async move { (place, put(bucket, folder).await) });
        let scratch: Arc<dyn Disk> = Arc::new(FaultyDisk::new(self.seed));
        let merging = async {
            if does_merge {
                let merged = merge_runs(&self.bucket, &scratch, &(), &|| false).await;
                // A publisher replaced a run between the look at the manifests and the reading: it is gone
                // only if it was pruned, which takes a day.
                if let Err(error) = merged {
                    assert!(matches!(error, RunMergeError::Bucket(_)), "{error}");
                }
            }
        };
        let pruning = async {
            if does_prune {
                let _ = prune(&self.bucket, DAY, self.store.now()).await;
            }
        };
        let (published, (), (), read) = futures_util::join!(
            futures_util::future::join_all(publications),
            merging,
            pruning,
            read_published(&self.bucket, &self.reader),
        );
        self.store.set(Faults::default());
        // Whoever read meanwhile has all that was there before.
        if let Ok(read) = read {
            let missing = subtract(&expected, &shown(&read));
            assert!(missing.is_empty(), "seed {}: {missing:?} of {expected:?}", self.seed);
            self.reader = read;
        }
        for (place, done) in published {
            self.note(place, done.map(drop));
        }
    }

    /// One publisher is killed in the middle.
    async fn kill_one(&mut self) {
        let place = usize::try_from(self.chance.below(3)).unwrap();
        self.publishers[place].grow(&mut self.chance);
        self.store.stop_after(Some(self.chance.below(40)));
        let folder = self.publishers[place].folder();
        let done = put(&self.bucket, &folder).await;
        self.store.stop_after(None);
        if done.is_ok() {
            self.note(place, done.map(drop));
        }
    }

    /// The tip is rewound, and what it dropped is withdrawn before the other branch is published.
    async fn rewind_tip(&mut self) {
        let publisher = &mut self.publishers[2];
        let Some(top) = publisher.coverage().last().copied() else { return };
        // What is merged into a slot is below what a node would rewind.
        let slot = top.last() / SLOT_BLOCKS * SLOT_BLOCKS;
        let lowest = top.first().max(slot).max(top.last().saturating_sub(400));
        if lowest >= top.last() {
            return;
        }
        let cut = lowest + self.chance.below(top.last() - lowest);
        let letter = b'b' + u8::try_from(self.chance.below(20)).unwrap();
        let was = publisher.branch;
        // A branch of a branch would share blocks with it that the model does not know.
        if was.letter != MAIN.letter && cut + 1 > was.fork {
            return;
        }
        publisher.rewind(cut, letter);
        let folder = publisher.folder();
        let listed = read_published(&self.bucket, &self.reader).await.unwrap();
        let dropped = BlockRange::from_ends(cut + 1, top.last()).unwrap();
        let dropped = segments_within(&listed, dropped);
        retract(&self.bucket, &dropped).await.unwrap();
        self.retracted.extend(dropped);
        // A publisher that would be killed here has withdrawn what it keeps of the last segment, too.
        let done = put(&self.bucket, &folder).await.map(drop);
        self.note(2, done);
    }

    fn note(&mut self, place: usize, done: Result<(), PublishError>) {
        done.unwrap_or_else(|error| panic!("seed {}: {error}", self.seed));
        self.publishers[place].published = self.publishers[place].coverage();
    }

    /// What publishers were told is there.
    fn expected(&self) -> Vec<BlockRange> {
        join_ranges(self.publishers.iter().flat_map(|it| it.published.iter().copied()))
    }

    async fn check(&mut self) {
        let seed = self.seed;
        let report = check(&self.bucket, &(), &|| false).await.unwrap();
        assert_eq!(report.faults, [], "seed {seed}");
        let published = read_published(&self.bucket, &self.reader).await.unwrap();
        let missing = subtract(&self.expected(), &shown(&published));
        assert!(missing.is_empty(), "seed {seed}: {missing:?} is lost");
        assert!(published.retracted.is_superset(&self.retracted), "seed {seed}");
        // Whoever cannot list sees the same, but for what the last kill left unsaid.
        if let Ok(indexed) =
            read_published(&self.bucket.clone().as_web_server(), &Published::default()).await
        {
            assert!(subtract(&shown(&indexed), &shown(&published)).is_empty(), "seed {seed}");
        }
        self.reader = published;
    }
}

#[tokio::test(start_paused = true)]
async fn publishers_readers_merging_and_pruning_at_once_lose_nothing_and_show_nothing_withdrawn() {
    for seed in 0..SEEDS {
        let mut world = World::new(seed);
        for _ in 0..ROUNDS {
            world.store.pass(Duration::from_hours(world.chance.below(20)));
            match world.chance.below(6) {
                0 => world.kill_one().await,
                1 => world.rewind_tip().await,
                _ => world.round_of_all().await,
            }
            world.check().await;
        }
        // In the end one look at each is enough to tidy up.
        let (bucket, store) = (&world.bucket, &world.store);
        let scratch: Arc<dyn Disk> = Arc::new(FaultyDisk::new(seed));
        merge_runs(bucket, &scratch, &(), &|| false).await.unwrap();
        for _ in 0..3 {
            store.pass(DAY);
            prune(bucket, DAY, store.now()).await.unwrap();
        }
        world.check().await;
    }
}
