//! New heads for subscribers: the notifications that lead one from what it has seen to the tip.
//!
//! Knows: their form.
//! Never knows: sockets, or when a subscriber is sent something.

use chain::BlockNumber;
use store::Reader;
use tracing::{debug, error};

use super::{CallFailure, Service, give_reader, take_reader};
use crate::heads::Seen;
use crate::json::block::put_header;
use crate::json::{Object, put_text};

impl Service {
    /// The notifications that lead a subscriber from what it has seen to the newest view, as many as
    /// are sent at once; and whether there are more.
    pub(crate) async fn new_heads(
        &self,
        id: &str,
        seen: &mut Seen,
    ) -> Result<(Vec<Vec<u8>>, bool), HeadsFailed> {
        let mut reader = take_reader().map_err(|failure| heads_failed(&failure))?;
        let told = self.put_heads(&mut reader, id, seen).await;
        give_reader(reader);
        match told {
            Ok(told) => Ok(told),
            // The newer view is announced as every other is.
            Err(failure) if self.passes_over(&failure) => Ok((Vec::new(), true)),
            Err(failure) => Err(heads_failed(&failure)),
        }
    }

    async fn put_heads(
        &self,
        reader: &mut Reader,
        id: &str,
        seen: &mut Seen,
    ) -> Result<(Vec<Vec<u8>>, bool), CallFailure> {
        let view = self.store.view();
        let Some(due) = seen.due(reader, &view).await? else {
            *seen = Seen::all_of(view);
            return Ok((Vec::new(), false));
        };
        let last = *due.numbers.end();
        let mut messages = Vec::new();
        for number in due.numbers {
            let header = view
                .read_header(reader, BlockNumber(number))
                .await?
                .ok_or(CallFailure::NotABlock)?;
            let mut out =
                b"{\"jsonrpc\":\"2.0\",\"method\":\"eth_subscription\",\"params\":".to_vec();
            let mut params = Object::begin(&mut out);
            put_text(params.member("subscription"), id);
            put_header(params.member("result"), &header)?;
            params.end();
            out.push(b'}');
            messages.push(out);
        }
        *seen = Seen::up_to(view, BlockNumber(last));
        Ok((messages, !due.is_all))
    }
}

/// New heads cannot be read; the log says why.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeadsFailed;

fn heads_failed(failure: &CallFailure) -> HeadsFailed {
    if matches!(failure, CallFailure::Store(error) if error.is_of_file()) {
        // The store has noted the file: that is told once.
        debug!(?failure, "cannot read new heads");
    } else {
        error!(?failure, "cannot read new heads");
    }
    HeadsFailed
}
