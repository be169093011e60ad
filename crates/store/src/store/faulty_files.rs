//! Serving beside files that cannot be read: they are passed over, told, and taken up again.

use std::sync::PoisonError;

use super::{Store, look_at_segments};
use crate::error::StoreError;
use crate::files::{FaultKind, open_run_on};
use crate::manifest::RunEntry;
use crate::missing_file::MissingFile;
use crate::read::block_on;
use crate::view::View;
use segment::index::RunSubject;

/// A listed file that cannot be read, or not all of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileFault {
    /// Its name.
    pub file_name: String,
    /// What is not answered because of it, and what is wrong.
    pub text: String,
    /// Whether it is of the log index, which can be built again from the blocks.
    pub is_of_log_index: bool,
    /// Whether it is published, and not in the folder.
    pub is_far: bool,
    /// Whether it could not be reached: the disk failed, or where it is published. Nothing is known of
    /// the file itself.
    pub is_unreached: bool,
}

impl Store {
    /// Looks at every listed file, and shows the store without those that are not there, or not as the
    /// manifest says: the others are served all the same. From here on that happens to each file that
    /// turns out so when it is read.
    pub fn pass_over_missing(&self) -> Result<(), StoreError> {
        let mut failed =
            std::mem::take(&mut *self.unlike.lock().unwrap_or_else(PoisonError::into_inner));
        failed.extend(self.look_at_runs());
        // A writer beside us may have merged some of them away since the manifest was read.
        if !failed.is_empty() && self.refresh()? {
            failed = look_at_segments(&*self.disk, self.view().manifest())?;
            failed.extend(self.look_at_runs());
        }
        let view = self.view();
        let faults = view.files().faults();
        for (file_name, error) in failed {
            // It is read where it was published.
            if view.published().manifests.iter().any(|it| it.lists_file(&file_name)) {
                continue;
            }
            // A disk that fails says nothing of a file.
            if matches!(&error, StoreError::Disk(error) if !error.is_of_file()) {
                return Err(error);
            }
            faults.note_unopened(&file_name, &error);
        }
        faults.pass_over();
        self.pass_over_faulty();
        Ok(())
    }

    fn look_at_runs(&self) -> Vec<(String, StoreError)> {
        let view = self.view();
        let look = |entry: &RunEntry| {
            let error = open_run_on(&*self.disk, entry).err()?;
            Some((entry.file_name.clone(), error))
        };
        view.manifest().runs().iter().filter_map(look).collect()
    }

    /// Acts on what readers could not read since the last time: a file that cannot be opened is passed
    /// over, if files are, and one of which some bytes are wrong is opened anew by the next who reads it,
    /// since it may have been replaced. Tells whether another view is shown: to ask it may help.
    ///
    /// One caller at a time: whoever comes while another acts on the same file waits, and finds the other
    /// view shown when this returns.
    pub fn pass_over_faulty(&self) -> bool {
        let _turn = self.fault_turn.lock().unwrap_or_else(PoisonError::into_inner);
        let view = self.view();
        let faults = view.files().faults();
        let new = faults.take_new();
        // A folder that is gone says nothing of a file: what it held is not denied, nor called not held.
        if !new.is_empty() && self.look().is_err() {
            for (file_name, _) in &new {
                faults.forget(file_name);
            }
            return false;
        }
        let mut is_news = false;
        for (file_name, fault) in new {
            if !view.lists(&file_name) {
                // Another process has merged it away.
                faults.forget(&file_name);
                continue;
            }
            let version = self.disk.version(&file_name).ok();
            let is_of_another = match fault.kind {
                FaultKind::Copy => true,
                // Another file has taken its place since it was opened.
                FaultKind::Part => fault.version.is_some() && fault.version != version,
                FaultKind::Disk | FaultKind::Whole => false,
            };
            if is_of_another {
                // Nothing is known of the file that is read next.
                faults.forget(&file_name);
            } else {
                faults.set_version(&file_name, version);
            }
            if fault.kind != FaultKind::Disk {
                view.files().forget(&file_name);
                is_news = true;
            }
        }
        is_news && self.show_relisted()
    }

    /// Looks again at files that could not be read, if they were changed or replaced since, and shows
    /// those that are well.
    pub fn look_at_faulty(&self) {
        self.pass_over_faulty();
        let view = self.view();
        let faults = view.files().faults();
        let mut is_news = false;
        for (file_name, fault) in faults.all() {
            if !view.lists(&file_name) {
                faults.forget(&file_name);
                continue;
            }
            if !view.lists_itself(&file_name) {
                // Whether it is there again is asked where it lies: [`Store::look_at_far_faults`].
                continue;
            }
            if fault.kind == FaultKind::Disk {
                faults.pass(&file_name);
                continue;
            }
            let version = self.disk.version(&file_name).ok();
            if version == fault.version {
                continue;
            }
            // Of one that could be opened only a read tells whether it is well now.
            let tried = match fault.kind {
                FaultKind::Whole => try_open(&view, &file_name),
                FaultKind::Part | FaultKind::Disk | FaultKind::Copy => Ok(()),
            };
            match tried {
                Ok(()) => {
                    faults.forget(&file_name);
                    view.files().forget(&file_name);
                    is_news = true;
                }
                Err(error) => {
                    faults.set_version(&file_name, version);
                    faults.set_reason(&file_name, &error);
                    is_news = true;
                }
            }
        }
        if is_news {
            self.show_relisted();
        }
    }

    /// The same for published files, for whoever has just heard from where they lie: what could not be
    /// reached is forgotten, what was not there is opened again, and of what was damaged the next read
    /// tells after a while.
    pub fn look_at_far_faults(&self) {
        self.pass_over_faulty();
        let view = self.view();
        let faults = view.files().faults();
        let mut is_news = false;
        for (file_name, fault) in faults.all() {
            if view.lists_itself(&file_name) {
                continue;
            }
            let is_well = match fault.kind {
                FaultKind::Disk | FaultKind::Copy => true,
                FaultKind::Part => faults.pass(&file_name),
                FaultKind::Whole => try_open(&view, &file_name).is_ok(),
            };
            if is_well {
                faults.forget(&file_name);
                view.files().forget(&file_name);
                is_news = true;
            }
        }
        if is_news {
            self.show_relisted();
        }
    }

    /// Shows what is known now of files that cannot be read.
    fn show_relisted(&self) -> bool {
        self.show(|view| Ok(view.relisted())).is_ok()
    }

    /// The listed files that cannot be read, or not all of them, by name.
    #[must_use]
    pub fn faulty_files(&self) -> Vec<FileFault> {
        let view = self.view();
        let is_of_logs =
            |name: &str| view.find_run(name).is_some_and(|entry| entry.subject == RunSubject::Logs);
        let mut found = Vec::new();
        for MissingFile { file_name, reason, .. } in &view.published().set_aside {
            let text = format!("what {file_name} lists is not served: {reason}");
            found.push(FileFault {
                file_name: file_name.clone(),
                text,
                is_of_log_index: false,
                is_far: true,
                is_unreached: false,
            });
        }
        for (file_name, fault) in view.files().faults().all() {
            let reason = &fault.reason;
            let segment = view.find_segment(&file_name);
            let text = match (fault.kind, segment) {
                _ if !view.lists(&file_name) => continue,
                (FaultKind::Whole, Some(entry)) => {
                    format!("blocks {} are not served: {reason}", entry.range)
                }
                (FaultKind::Whole, None) if is_of_logs(&file_name) => {
                    format!("logs are looked for without {file_name}, block by block: {reason}")
                }
                (FaultKind::Whole, None) => {
                    format!("hashes that only {file_name} tells are not found: {reason}")
                }
                (FaultKind::Part | FaultKind::Disk | FaultKind::Copy, _) => {
                    format!("some of {file_name} cannot be read: {reason}")
                }
            };
            let is_of_log_index = is_of_logs(&file_name);
            let is_far = !view.lists_itself(&file_name);
            let is_unreached = fault.kind == FaultKind::Disk;
            found.push(FileFault { file_name, text, is_of_log_index, is_far, is_unreached });
        }
        found
    }
}

/// Opens a listed file as a reader would.
fn try_open(view: &View, file_name: &str) -> Result<(), StoreError> {
    if let Some(entry) = view.find_segment(file_name) {
        return block_on(view.files().try_segment(entry));
    }
    match view.find_run(file_name) {
        Some(entry) => block_on(view.files().try_run(entry)),
        None => Ok(()),
    }
}
