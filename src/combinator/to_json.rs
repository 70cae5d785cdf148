use core::fmt;
use core::pin::Pin;
use core::task::{Context, Poll};

use futures::stream::{FusedStream, Stream};
use pin_project_lite::pin_project;

use super::{ItemInput, Staged};
use crate::codec::JsonEncoder;
use crate::error::Error;

pin_project! {
    /// Events as JSON texts: the stream of [`EncodeStreamExt::to_json`](super::EncodeStreamExt::to_json).
    #[must_use = "streams do nothing unless polled"]
    pub struct ToJson<S> {
        #[pin]
        inner: Staged<S, JsonEncoder>,
    }
}

shell!(ToJson<S>, JsonEncoder);

impl<S> Stream for ToJson<S>
where
    S: Stream,
    S::Item: ItemInput,
{
    type Item = Result<String, Error<<S::Item as ItemInput>::Error>>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.project().inner.poll_next(cx, ItemInput::into_result)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.inner.size_hint()
    }
}

impl<S> FusedStream for ToJson<S>
where
    S: Stream,
    S::Item: ItemInput,
{
    fn is_terminated(&self) -> bool {
        self.inner.is_terminated()
    }
}
