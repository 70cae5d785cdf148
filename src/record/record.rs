//! `record`: passes a stream on, and writes it to a file or any other writer.

use core::fmt;
use core::future::poll_fn;
use core::pin::{Pin, pin};
use core::task::{Context, Poll, ready};
use std::io;

use futures::stream::{FusedStream, Stream};
use pin_project_lite::pin_project;
use tokio::io::AsyncWrite;
use tokio::time::Instant;

use super::Recordable;
use super::recordable::Entry;
use super::writer::RecordingWriter;
use crate::combinator::MAX_SWALLOWED;
use crate::raw::RawContent;

pin_project! {
    /// A stream that is also written to a file: the stream of
    /// [`record`](super::RecordStreamExt::record).
    #[must_use = "streams do nothing unless polled"]
    pub struct Record<S: Stream, W> {
        #[pin]
        source: Option<S>,
        #[pin]
        tape: Tape<W>,
        recording: RecordingWriter,
        began: Instant,
        // An item that came; it is given once it is written.
        held: Option<S::Item>,
        // If set at the beginning of a poll, the source or the conversion of its item has panicked.
        is_polling: bool,
        ended: bool,
    }
}

impl<S: Stream, W> Record<S, W> {
    pub(crate) fn new(source: S, writer: W, began: Instant) -> Self {
        Self {
            source: Some(source),
            tape: Tape::new(writer),
            recording: RecordingWriter::default(),
            began,
            held: None,
            is_polling: false,
            ended: false,
        }
    }

    /// The source; `None` once it ended or failed, as it is dropped then.
    #[must_use]
    pub fn get_ref(&self) -> Option<&S> {
        self.source.as_ref()
    }

    /// The source, to change it.
    ///
    /// Do not take items from it: they would not be recorded.
    #[must_use]
    pub fn get_mut(&mut self) -> Option<&mut S> {
        self.source.as_mut()
    }

    /// The writer of the recording.
    #[must_use]
    pub fn writer(&self) -> &W {
        &self.tape.writer
    }

    /// Gives the writer back. Bytes that are not written yet are lost, and so is an item that came and
    /// was not given.
    #[must_use]
    pub fn into_writer(self) -> W {
        self.tape.writer
    }

    /// Why the recording broke off, though the stream goes on; `None` while all is well.
    #[must_use]
    pub fn error(&self) -> Option<&io::Error> {
        self.tape.failure.as_ref()
    }

    pub(crate) fn take_error(self: Pin<&mut Self>) -> Option<io::Error> {
        self.project().tape.project().failure.take()
    }
}

impl<S: Stream, W: AsyncWrite> Record<S, W> {
    /// Drops the source, writes what remains, and closes the writer.
    ///
    /// Call it if you leave a stream before its end: the recording then has everything that came, and no
    /// comment about the end. After the end of the stream there is nothing left to do.
    ///
    /// # Errors
    /// The writer's, also one from before.
    ///
    /// # Cancel safety
    /// Dropping the future drops the recorder; bytes that the writer has taken stay written.
    ///
    /// # Examples
    /// ```
    /// use ag_ui_stream::record::RecordStreamExt;
    /// use futures::{StreamExt, stream};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> std::io::Result<()> {
    /// let endless = stream::repeat(r#"{"type":"CUSTOM","name":"tick","value":0}"#);
    /// let mut file = Vec::new();
    /// let mut events = endless.record(&mut file);
    /// events.next().await;
    /// events.finish().await?;
    /// assert!(String::from_utf8_lossy(&file).contains("tick"));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn finish(self) -> io::Result<()> {
        let mut this = pin!(self);
        let mut this = this.as_mut().project();
        this.source.set(None);
        this.tape.as_mut().close();
        poll_fn(|cx| this.tape.as_mut().poll_settle(cx)).await;
        this.tape.project().failure.take().map_or(Ok(()), Err)
    }
}

impl<S, W> Stream for Record<S, W>
where
    S: Stream,
    S::Item: Recordable,
    W: AsyncWrite,
{
    type Item = S::Item;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<S::Item>> {
        let mut this = self.project();
        if *this.ended {
            return Poll::Ready(None);
        }
        if core::mem::take(this.is_polling) {
            // The item is lost. The recording has no end, and the stream ends early, so both show it.
            this.source.set(None);
            let at = this.began.elapsed();
            let recording = &mut *this.recording;
            this.tape.as_mut().write(|out| {
                recording.truncated(at, out);
                Ok(())
            });
            this.tape.as_mut().close();
        }
        loop {
            ready!(this.tape.as_mut().poll_settle(cx));
            let source = this.source.as_mut().as_pin_mut();
            *this.ended = source.is_none();
            if let Some(item) = this.held.take() {
                return Poll::Ready(Some(item));
            }
            let Some(source) = source else { return Poll::Ready(None) };
            *this.is_polling = true;
            let Poll::Ready(item) = source.poll_next(cx) else {
                *this.is_polling = false;
                // There is time for it while nothing comes. Only the source is waited for.
                let _ = this.tape.poll_flush(cx);
                return Poll::Pending;
            };
            let at = this.began.elapsed();
            let entry = item.as_ref().map(Recordable::entry);
            let is_last = matches!(entry, None | Some(Entry::Failed(_) | Entry::Truncated));
            let recording = &mut *this.recording;
            this.tape.as_mut().write(|out| {
                match entry {
                    Some(Entry::Event(RawContent::Text(text))) => recording.text(at, text, out),
                    Some(Entry::Event(RawContent::Value(value))) => recording.value(at, value, out)?,
                    Some(Entry::Event(RawContent::Event(event))) => recording.value(at, event, out)?,
                    Some(Entry::Warning(warning)) => recording.warning(at, &warning.to_string(), out),
                    Some(Entry::Failed(message)) => recording.failed(at, &message, out),
                    Some(Entry::Nothing) => {}
                    Some(Entry::Truncated) => recording.truncated(at, out),
                    None => recording.end(at, out),
                }
                Ok(())
            });
            if is_last {
                // The file is closed before the error is given, as the reader may not poll again.
                this.source.set(None);
                this.tape.as_mut().close();
            }
            *this.held = item;
            *this.is_polling = false;
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        // An error of the source ends it, whatever its size hint.
        let held = usize::from(self.held.is_some());
        let (_, upper) = self.source.as_ref().map_or((0, Some(0)), Stream::size_hint);
        (held, upper.and_then(|upper| upper.checked_add(held)))
    }
}

impl<S, W> FusedStream for Record<S, W>
where
    S: Stream,
    S::Item: Recordable,
    W: AsyncWrite,
{
    fn is_terminated(&self) -> bool {
        self.ended
    }
}

impl<S: Stream, W> fmt::Debug for Record<S, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Record")
            .field("error", &self.tape.failure)
            .field("is_source_open", &self.source.is_some())
            .field("is_terminated", &self.ended)
            .finish_non_exhaustive()
    }
}

pin_project! {
    /// A writer, and the bytes still to be written to it.
    struct Tape<W> {
        #[pin]
        writer: W,
        buffer: Vec<u8>,
        written: usize,
        state: State,
        // If set at the beginning of a call, the writer has panicked.
        is_busy: bool,
        failure: Option<io::Error>,
    }
}

/// What remains to be done once the buffer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Everything is flushed.
    Clean,
    /// It has to be flushed.
    Dirty,
    /// Nothing more will come.
    Closing,
    /// The writer is closed, or it failed: nothing more is recorded.
    Closed,
}

impl<W> Tape<W> {
    /// A buffer larger than this is not kept for the next event.
    const KEPT: usize = 64 * 1024;

    fn new(writer: W) -> Self {
        Self { writer, buffer: Vec::new(), written: 0, state: State::Clean, is_busy: false, failure: None }
    }

    /// Adds bytes to be written.
    fn write(self: Pin<&mut Self>, put: impl FnOnce(&mut Vec<u8>) -> serde_json::Result<()>) {
        let this = self.project();
        if *this.state == State::Closed {
            return;
        }
        *this.state = State::Dirty;
        if let Err(error) = put(this.buffer) {
            crate::log::recording_failed(&error);
            *this.failure = Some(io::Error::new(io::ErrorKind::InvalidData, error));
            *this.state = State::Closing;
        }
    }

    /// Says that nothing more will come.
    fn close(self: Pin<&mut Self>) {
        let this = self.project();
        if *this.state != State::Closed {
            *this.state = State::Closing;
        }
    }
}

impl<W: AsyncWrite> Tape<W> {
    /// Calls the writer, unless it has panicked.
    fn call<T>(
        self: Pin<&mut Self>,
        call: impl FnOnce(Pin<&mut W>, &[u8]) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        let this = self.project();
        if core::mem::replace(this.is_busy, true) {
            *this.is_busy = false;
            return Poll::Ready(Err(io::Error::other("the writer panicked")));
        }
        let polled = call(this.writer, this.buffer.get(*this.written..).unwrap_or_default());
        *this.is_busy = false;
        polled
    }

    /// Waits until the writer has taken everything, and is closed if nothing more will come.
    fn poll_settle(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut calls = 0;
        while self.state != State::Closed {
            if calls == MAX_SWALLOWED {
                // A writer that is always ready and takes next to nothing must not keep the thread.
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            calls += 1;
            let result = if self.written < self.buffer.len() {
                match ready!(self.as_mut().call(|writer, rest| writer.poll_write(cx, rest))) {
                    Ok(0) => Err(io::ErrorKind::WriteZero.into()),
                    Ok(count) => {
                        *self.as_mut().project().written += count;
                        continue;
                    }
                    Err(error) => Err(error),
                }
            } else {
                let this = self.as_mut().project();
                if *this.written > Self::KEPT {
                    *this.buffer = Vec::new();
                }
                this.buffer.clear();
                *this.written = 0;
                if *this.state != State::Closing {
                    return Poll::Ready(());
                }
                let closed = ready!(self.as_mut().call(|writer, _| writer.poll_shutdown(cx)));
                closed.map(|()| *self.as_mut().project().state = State::Closed)
            };
            let this = self.as_mut().project();
            fail(result, this.state, this.failure);
        }
        Poll::Ready(())
    }

    /// Waits until the writer is flushed.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.state == State::Dirty {
            let flushed = ready!(self.as_mut().call(|writer, _| writer.poll_flush(cx)));
            let this = self.project();
            fail(flushed.map(|()| *this.state = State::Clean), this.state, this.failure);
        }
        Poll::Ready(())
    }
}

/// An error of the writer ends the recording, once; an interruption is no error.
fn fail(result: io::Result<()>, state: &mut State, failure: &mut Option<io::Error>) {
    match result {
        Err(error) if error.kind() != io::ErrorKind::Interrupted => {
            crate::log::recording_failed(&error);
            *state = State::Closed;
            failure.get_or_insert(error);
        }
        _ => {}
    }
}
