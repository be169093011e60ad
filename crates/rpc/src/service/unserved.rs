//! Calls that are not answered here: they go to a node, if there is one and they may.

use super::{Appended, BatchContext, Service};
use crate::call_counts::{CallOutcome, CallRecord};
use crate::envelope::{Call, Item};
use crate::methods::find;
use crate::pass_through::{ERROR_MEMBER, NotPassed, PassedAnswer, unknown_method};
use crate::refusal::Refusal;
use crate::reply::{put_envelope, put_refusal};

impl Service {
    /// What is not answered here goes to a node, if there is one and it may.
    pub(super) async fn put_unserved(
        &self,
        asked: &BatchContext<'_>,
        call: &Call<'_>,
        out: &mut Vec<u8>,
        record: &mut CallRecord,
    ) -> Appended {
        let refusal = match self.ask_node(asked, call).await {
            Ok(passed) => {
                if passed.member == ERROR_MEMBER {
                    record.outcome = CallOutcome::UpstreamError;
                }
                put_envelope(out, call.id);
                out.push(b',');
                out.extend_from_slice(passed.member.as_bytes());
                return Appended::BeforePassed(passed);
            }
            Err(NotPassed::NoRoom) => {
                record.outcome = CallOutcome::Overloaded;
                return Appended::NoRoom;
            }
            Err(NotPassed::Refused(refusal)) => refusal,
        };
        asked.note_refusal(&refusal, record);
        put_refusal(out, call.id, &refusal);
        Appended::Whole
    }

    async fn ask_node(
        &self,
        asked: &BatchContext<'_>,
        call: &Call<'_>,
    ) -> Result<PassedAnswer, NotPassed> {
        let forwarding = self.forwarding.as_ref().filter(|it| it.takes(&call.method));
        let Some(forwarding) = forwarding else {
            return Err(unknown_method(&call.method).into());
        };
        if let Some(reason) = self.conflict() {
            return Err(Refusal::NotPassed { reason }.into());
        }
        forwarding.ask(call, asked.limits.budget, asked.settings.batch_bytes_max).await
    }

    /// Where the followed node contradicts what is final here.
    pub(crate) fn conflict(&self) -> Option<String> {
        self.health.as_ref().and_then(|health| health.conflict())
    }

    /// Whether a call is none of ours and goes to a node.
    pub(super) fn is_forwarded(&self, item: &Item<'_>) -> bool {
        let (Some(forwarding), Item::Call(call)) = (&self.forwarding, item) else { return false };
        forwarding.takes(&call.method) && find(&call.method).is_none()
    }
}
