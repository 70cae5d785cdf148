//! `Encoder`: writes events as bytes of a format.

use std::collections::VecDeque;

use super::Format;
#[cfg(any(feature = "sse", feature = "json-lines"))]
use super::json::unwritable;
use crate::error::Error;
use crate::event::{Event, fast};
use crate::item::Item;
use crate::json::compact;
use crate::machine::{Push, queued_machine};

/// Writes events as bytes.
///
/// In: items or events, best verified ones, so that the output is legal and without chunks. Out, for
/// each event: one piece of bytes by [`Format::encode`]. Warnings are not written; they have been
/// logged.
///
/// # Errors
/// Those of [`Format::encode`].
///
/// # Examples
/// ```
/// use ag_ui_stream::Event;
/// use ag_ui_stream::codec::{Encoder, Format};
/// use ag_ui_stream::event::RunErrorEvent;
///
/// let mut encoder = Encoder::new(Format::JsonLines);
/// encoder.push(Event::from(RunErrorEvent::new("overloaded")))?;
/// assert_eq!(encoder.pop().unwrap(), b"{\"type\":\"RUN_ERROR\",\"message\":\"overloaded\"}\n");
/// # Ok::<(), ag_ui_stream::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Encoder {
    format: Format,
    events: u64,
    ready: VecDeque<Vec<u8>>,
}

impl Encoder {
    /// An encoder to this format.
    #[must_use]
    pub fn new(format: Format) -> Self {
        Self { format, events: 0, ready: VecDeque::new() }
    }

    /// The format that it writes.
    #[must_use]
    pub fn format(&self) -> Format {
        self.format
    }

    /// The number of events so far.
    #[must_use]
    pub fn event_count(&self) -> u64 {
        self.events
    }

    /// Takes the next item.
    ///
    /// # Errors
    /// Those of [`Format::encode`].
    pub fn push(&mut self, input: impl Into<Item>) -> Result<(), Error> {
        Push::push(self, input)
    }

    /// The bytes of the next event that is ready.
    pub fn pop(&mut self) -> Option<Vec<u8>> {
        self.ready.pop_front()
    }
}

impl<I: Into<Item>> Push<I> for Encoder {
    fn push(&mut self, input: I) -> Result<(), Error> {
        // By reference, as to take the event out would copy it.
        if let Item::Event(indexed) = &input.into() {
            let index = indexed.index().unwrap_or(self.events);
            self.events += 1;
            self.ready.push_back(encode(self.format, &indexed.event, index)?);
        }
        Ok(())
    }
}

queued_machine!(Encoder: Vec<u8>);

#[inline]
pub(super) fn encode(format: Format, event: &Event, index: u64) -> Result<Vec<u8>, Error> {
    let mut out = Vec::with_capacity(compact::USUAL);
    match format {
        #[cfg(feature = "sse")]
        Format::Sse => {
            out.extend_from_slice(b"data: ");
            write_json(event, index, &mut out)?;
            out.extend_from_slice(b"\n\n");
        }
        #[cfg(feature = "json-lines")]
        Format::JsonLines => {
            write_json(event, index, &mut out)?;
            out.push(b'\n');
        }
        #[cfg(feature = "protobuf")]
        Format::Protobuf => super::protobuf::write(event, index, &mut out)?,
    }
    Ok(out)
}

/// JSON without line ends: those in strings are escaped.
#[cfg(any(feature = "sse", feature = "json-lines"))]
fn write_json(event: &Event, index: u64, out: &mut Vec<u8>) -> Result<(), Error> {
    if fast::write(event, out) {
        return Ok(());
    }
    compact::write(event, out).map_err(|error| unwritable(event, index, &error))
}
