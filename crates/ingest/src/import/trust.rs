//! Whether what arrives may stand beside what is held.

use std::collections::{BTreeMap, BTreeSet};

use alloy_primitives::B256;
use chain::trust::{Anchor, Anchors, Opponent, ProvenRun, TrustStatus, assess, meeting_points};
use chain::{BlockNumber, BlockRange};
use store::read::block_on;
use store::{Reader, StoreError, View};

use super::ImportError;
use crate::survey::describe_claims;

/// What is held, as far as trust is concerned.
pub(crate) struct Trust {
    /// The held segments, and the final blocks of the head.
    runs: Vec<ProvenRun>,
    /// What the folder trusts and was told before.
    trusted: Anchors,
    /// Blocks of the file whose hashes must be told.
    pub(crate) points: BTreeSet<u64>,
    /// Trusted hashes that held blocks have.
    pub(crate) anchors: Vec<Anchor>,
    /// Blocks of the part that the folder held and lost: no other takes their places.
    lost: BTreeMap<u64, B256>,
}

impl Trust {
    /// Reads the hashes of held blocks where they meet `part` of a source, and where `anchors` are.
    pub(crate) fn gather(
        file: &str,
        view: &View,
        part: BlockRange,
        anchors: &Anchors,
    ) -> Result<Self, ImportError> {
        let manifest = view.manifest();
        // What is final in the head is as good as sealed. What is not gives way to what arrives.
        let final_head = view.finalized().and_then(|last| view.head_run(last));
        let mut runs: Vec<ProvenRun> =
            manifest.trust_runs().into_iter().chain(final_head).collect();
        let mut ranges: Vec<BlockRange> = runs.iter().map(|run| run.range).collect();
        ranges.push(part);
        let lost = manifest.lost_hashes().map(|it| (it.number.get(), it.hash));
        let lost: BTreeMap<u64, B256> = lost.filter(|(number, _)| part.contains(*number)).collect();
        let mut points = meeting_points(&ranges, anchors);
        points.extend(lost.keys());
        let mut reader = Reader::new().map_err(StoreError::Reader)?;
        let mut held = Vec::new();
        // Block 0 too: it may have come before anybody said what genesis is.
        let asked = anchors.operator().map(|anchor| anchor.number).chain([part.last(), 0]);
        for number in asked {
            let Some(run) = runs.iter_mut().find(|run| run.range.contains(number)) else {
                continue;
            };
            let Some(hash) = block_on(view.read_hash(&mut reader, BlockNumber(number)))? else {
                continue;
            };
            run.hashes.insert(number, hash);
            match anchors.expected_hash(number) {
                Some((trusted, kind)) if trusted != hash => {
                    let said = format!(
                        "hash of block {number} is {hash} by the data folder, {trusted} by {kind}"
                    );
                    return Err(ImportError::Contradiction { file: file.to_owned(), said });
                }
                _ => {}
            }
            held.extend(anchors.operator().filter(|it| (it.number, it.hash) == (number, hash)));
        }
        let trusted = manifest.trusted().map_err(StoreError::from)?;
        Ok(Self { runs, trusted, points, anchors: held, lost })
    }

    /// The hash of the block that the folder held under this number and lost, if this is another.
    pub(crate) fn lost_instead_of(&self, number: u64, found: B256) -> Option<B256> {
        self.lost.get(&number).copied().filter(|lost| *lost != found)
    }

    /// The statuses of the blocks that arrive, if nothing that is held contradicts them. `called` is what
    /// the source is called where its word on a block is named beside another.
    pub(crate) fn judge(
        &self,
        file: &str,
        called: &dyn Fn(u64) -> String,
        run: &ProvenRun,
        anchors: &Anchors,
    ) -> Result<Vec<(BlockRange, TrustStatus)>, ImportError> {
        let contradiction = |said| ImportError::Contradiction { file: file.to_owned(), said };
        let told = run.hashes.iter().map(|(number, hash)| (*number, *hash));
        for (number, found) in told.chain([(run.range.last(), run.last_hash)]) {
            if let Some(lost) = self.lost_instead_of(number, found) {
                return Err(contradiction(format!(
                    "hash of block {number} is {found} by {}, {lost} by the data folder, which held that \
                     block and lost it",
                    called(number)
                )));
            }
        }
        let mut trusted = anchors.clone();
        for anchor in self.trusted.operator() {
            trusted = trusted.with_operator(anchor).map_err(|it| contradiction(it.to_string()))?;
        }
        let epochs = self.runs.iter().filter_map(|run| run.epoch);
        let trusted = epochs.fold(trusted, |all, epoch| all.with_proven_epoch(epoch.number));
        let runs: Vec<ProvenRun> = self.runs.iter().chain([run]).cloned().collect();
        let mut assessed = assess(&runs, &trusted);
        let own = assessed.pop().unwrap_or_else(|| Ok(Vec::new()));
        let with = |opponent| match opponent {
            Opponent::Anchor => "an anchor".to_owned(),
            Opponent::ProvenRun(..) => "the data folder".to_owned(),
        };
        let statuses = own.map_err(|conflict| {
            let by = with(conflict.with);
            contradiction(describe_claims(&conflict, &called(conflict.number), &by))
        })?;
        let held = assessed.into_iter().find_map(Result::err);
        held.map_or(Ok(statuses), |conflict| {
            let by = match conflict.with {
                Opponent::Anchor => "an anchor".to_owned(),
                Opponent::ProvenRun(..) => {
                    format!("{}, which stands on firmer ground", called(conflict.number))
                }
            };
            Err(contradiction(describe_claims(&conflict, "the data folder", &by)))
        })
    }
}
