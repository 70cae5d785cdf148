//! A layer that shows what comes to a closure.

use core::fmt;

use futures::stream::{self, StreamExt};

use super::OnItems;
use crate::agent::{RawEventStream, raw_event_stream};
use crate::combinator::Items;
use crate::error::{AgentError, Error};
use crate::id::RunId;
use crate::item::Item;
use crate::run_input::RunAgentInput;

/// Shows each item of a run to a closure, then what ended it: for logs, counters, tests.
///
/// A run that cannot be started is not shown: there is nothing of it, and who runs the agent has the error
/// at once. Nor is the end of one that is dropped.
#[derive(Clone)]
pub struct Observe<F> {
    see: F,
}

/// What an [`Observe`] sees of a run.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Seen<'a> {
    /// An event or a warning.
    Item(&'a Item),
    /// What ended the stream before its time.
    Error(&'a Error<AgentError>),
    /// The stream came to its proper end.
    End,
}

impl<F: Fn(&RunId, Seen<'_>)> Observe<F> {
    /// A layer that shows to this closure what it sees, and of which run.
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
        // The stream's end is an item of its own, so that a failed one is not shown as ended.
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
