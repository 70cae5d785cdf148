//! `Observe`: a layer that shows each item of a run, and its end, to a closure.

use core::fmt;

use futures::stream::{self, StreamExt};

use super::OnItems;
use crate::agent::{RawEventStream, raw_event_stream};
use crate::combinator::Items;
use crate::error::{AgentError, Error};
use crate::id::RunId;
use crate::item::Item;
use crate::run_input::RunAgentInput;

/// Shows each item of a run to a closure, then how the run ended: for logs, counters, tests.
///
/// The closure does not see a run that cannot be started, whose error the caller gets at once, nor the end of a
/// stream that is dropped.
#[derive(Clone)]
pub struct Observe<F> {
    see: F,
}

/// An item or the end of a run, as an [`Observe`] shows it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Seen<'a> {
    /// An event or a warning.
    Item(&'a Item),
    /// The error that ended the stream.
    Error(&'a Error<AgentError>),
    /// The stream ended without an error.
    End,
}

impl<F: Fn(&RunId, Seen<'_>)> Observe<F> {
    /// A layer that calls this closure with the id of the run and what it sees.
    pub fn new(see: F) -> Self {
        Self { see }
    }
}

impl<F> OnItems for Observe<F>
where
    F: Fn(&RunId, Seen<'_>) + Clone + Send + Sync + 'static,
{
    fn on_items(&self, input: &RunAgentInput, items: Items<RawEventStream>) -> RawEventStream {
        let (see, run) = (self.see.clone(), input.run_id.clone());
        let (see_end, ended_run) = (self.see.clone(), input.run_id.clone());
        // The end is an item of its own, so that a stream that failed is not shown as ended too.
        let with_end = items.map(Some).chain(stream::once(async { None }));
        raw_event_stream(
            input,
            with_end
                .scan(false, move |has_failed, item| {
                    let shown = match item {
                        Some(Ok(item)) => {
                            see(&run, Seen::Item(&item));
                            Some(Ok(item))
                        }
                        Some(Err(error)) => {
                            *has_failed = true;
                            see(&run, Seen::Error(&error));
                            Some(Err(error))
                        }
                        None if *has_failed => None,
                        None => {
                            see_end(&ended_run, Seen::End);
                            None
                        }
                    };
                    core::future::ready(shown)
                })
                .fuse(),
        )
    }
}

impl<F> fmt::Debug for Observe<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observe").finish_non_exhaustive()
    }
}
