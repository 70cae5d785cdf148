//! `JsonEncoder`: writes events as JSON texts, one each, for a transport with frames of its own.

use std::collections::VecDeque;

use crate::error::{Error, Malformed};
use crate::event::Event;
use crate::item::Item;
use crate::json::compact;
use crate::machine::{Push, queued_machine};
use crate::rule::Rule;

/// Writes events as JSON texts.
///
/// In: items or events, best verified ones. Out, for each event: its JSON text, in one line, without
/// absent fields. Warnings are not written; they have been logged.
///
/// # Errors
/// [`Error::Malformed`] (rule E9) for an event that JSON cannot hold, never for an enforced one.
///
/// # Examples
/// ```
/// use ag_ui_stream::Event;
/// use ag_ui_stream::codec::JsonEncoder;
/// use ag_ui_stream::event::RunErrorEvent;
///
/// let mut encoder = JsonEncoder::new();
/// encoder.push(Event::from(RunErrorEvent::new("overloaded")))?;
/// assert_eq!(encoder.pop().unwrap(), r#"{"type":"RUN_ERROR","message":"overloaded"}"#);
/// # Ok::<(), ag_ui_stream::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct JsonEncoder {
    events: u64,
    ready: VecDeque<String>,
}

impl JsonEncoder {
    /// An encoder.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of events so far.
    #[must_use]
    pub fn event_count(&self) -> u64 {
        self.events
    }

    /// Takes the next item.
    ///
    /// # Errors
    /// [`Error::Malformed`] (rule E9).
    pub fn push(&mut self, input: impl Into<Item>) -> Result<(), Error> {
        Push::push(self, input)
    }

    /// The text of the next event that is ready.
    pub fn pop(&mut self) -> Option<String> {
        self.ready.pop_front()
    }
}

impl<I: Into<Item>> Push<I> for JsonEncoder {
    fn push(&mut self, input: I) -> Result<(), Error> {
        if let Item::Event(indexed) = input.into() {
            let index = indexed.index().unwrap_or(self.events);
            self.events += 1;
            let text = compact::to_string(&indexed.event);
            self.ready.push_back(text.map_err(|error| unwritable(&indexed.event, index, &error))?);
        }
        Ok(())
    }
}

queued_machine!(JsonEncoder: String);

pub(super) fn unwritable(event: &Event, index: u64, error: &serde_json::Error) -> Error {
    let malformed = Malformed::new(Rule::E9, index, "an event that can be written as JSON", error.to_string());
    Malformed { event_type: Some(event.event_type()), ..malformed }.into()
}
