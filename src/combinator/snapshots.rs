use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll};

use futures::stream::{FusedStream, Stream};
use pin_project_lite::pin_project;

use super::only::OnlyChanges;
use super::{RawInput, Staged};
use crate::error::Error;
use crate::machine::Pipeline;
use crate::snapshot::{Changed, Snapshot};

pin_project! {
    /// The conversation, each time it changed: the stream of
    /// [`snapshots`](super::EventStreamExt::snapshots).
    #[must_use = "streams do nothing unless polled"]
    pub struct Snapshots<S> {
        #[pin]
        inner: Staged<S, OnlyChanges<Pipeline>>,
    }
}

shell!(Snapshots<S>, Pipeline, in OnlyChanges);

impl<S> Snapshots<S> {
    /// The conversation as it stands behind everything that came so far.
    #[must_use]
    pub fn snapshot(&self) -> &Snapshot {
        self.machine().snapshot()
    }
}

impl<S> Stream for Snapshots<S>
where
    S: Stream,
    S::Item: RawInput,
{
    type Item = Result<Changed, Error<<S::Item as RawInput>::Error>>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.project().inner.poll_next(cx, RawInput::into_result)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.inner.size_hint()
    }
}

impl<S> FusedStream for Snapshots<S>
where
    S: Stream,
    S::Item: RawInput,
{
    fn is_terminated(&self) -> bool {
        self.inner.is_terminated()
    }
}
