//! Whoever watches files come and go.

/// Is told how far files are on their way to a bucket or from it.
pub trait PublishProgress: Sync {
    /// So many files are to be sent or read, and so many bytes. Told again when it is known better.
    fn plan(&self, _files: u64, _bytes: u64) {}
    /// So many bytes more were sent or read.
    fn advance(&self, _bytes: u64) {}
    /// A file is there, whole.
    fn finish_file(&self, _name: &str) {}
}

impl PublishProgress for () {}
