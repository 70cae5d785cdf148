//! `Decode`: the stream of raw events that a decoder makes of a stream of bytes.

use core::pin::Pin;
use core::task::{Context, Poll};

use futures::stream::{FusedStream, Stream};

use super::Staged;
use crate::error::Error;
use crate::machine::Push;
use crate::raw::RawItem;

combinator! {
    /// Raw events out of bytes: the stream of [`ByteStreamExt`](super::ByteStreamExt).
    Decode<S, D>, D
}

impl<S, D, B, E> Stream for Decode<S, D>
where
    S: Stream<Item = Result<B, E>>,
    D: Push<B, Output = RawItem>,
{
    type Item = Result<RawItem, Error<E>>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.project().inner.poll_next(cx, |piece| piece.map_err(Error::Source), Some)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.inner.size_hint()
    }
}

impl<S, D, B, E> FusedStream for Decode<S, D>
where
    S: Stream<Item = Result<B, E>>,
    D: Push<B, Output = RawItem>,
{
    fn is_terminated(&self) -> bool {
        self.inner.is_terminated()
    }
}
