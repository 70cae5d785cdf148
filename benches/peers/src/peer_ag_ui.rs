//! `ag-ui`: its client as shipped, and its parts put together by hand.

use std::collections::VecDeque;
use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use ag_ui::client::transport::{RawTransportFuture, Transport, TransportFuture, boxed_raw_stream};
use ag_ui::client::{Applier, ChunkNormalizer, Error, Thread, Update, Verifier};
use ag_ui::{Event, Message, RunAgentInput};
use futures::StreamExt;
use futures::executor::block_on;
use futures::stream;
use serde_json::Value;

use crate::Reading;
use crate::checksum::{Checksum, hash_texts, hash_value};
use crate::clock::Clock;
use crate::workloads::{THREAD_ID, Workload};

/// The client as shipped: a `Thread` over a transport that parses each event,
/// which is what its own HTTP transport does after the framing. Each run of the
/// workload is one `run` of the thread, and each event gives one update, which
/// holds a copy of the message it changed.
///
/// The history of a workload is handed to the thread at the start, for it would
/// take minutes to be fed.
pub fn thread(workload: &'static Workload, reading: Reading, clock: &mut Clock) -> Checksum {
    let runs = split_runs(&workload.events[workload.history_events..]);
    let unmeasured = clock.timed_from() - workload.history_events;
    let ids: Vec<String> = runs.iter().map(|run| run_id(run)).collect();
    let taken = Arc::new(AtomicUsize::new(0));
    let transport = Recorded { runs: Mutex::new(runs.into()), taken: Arc::clone(&taken) };
    let history: Vec<Message> =
        workload.history.iter().map(|message| Message::assistant(message.id.as_str(), message.text.as_str())).collect();
    let mut thread: Thread<Recorded> = Thread::<_, Value>::builder(transport, THREAD_ID)
        .messages(history)
        .build()
        .expect("the history has no duplicates");

    clock.start();
    let mut over_budget = false;
    for id in ids {
        thread.set_next_run_id(id.as_str());
        let mut updates = thread.run().expect("nothing is left open by the run before");
        block_on(async {
            while let Some(update) = updates.next().await {
                if let Update::Error(error) = &update {
                    panic!("the workload is legal, but: {error}");
                }
                black_box(update);
                if reading != Reading::None {
                    black_box(updates.thread().messages().to_vec());
                }
                if !clock.go_on(taken.load(Ordering::Relaxed).saturating_sub(unmeasured)) {
                    over_budget = true;
                    break;
                }
            }
        });
        drop(updates);
        if over_budget {
            break;
        }
    }
    clock.stop();
    checksum(thread.applier())
}

/// The same parts without enforcement: JSON text straight to a typed event,
/// then expansion, verification (one verifier a run, as it asks for) and
/// assembly.
pub fn by_hand(workload: &'static Workload, reading: Reading, clock: &mut Clock) -> Checksum {
    let mut normalizer = ChunkNormalizer::new();
    let mut verifier = Verifier::new();
    let mut applier = Applier::new();
    let mut expanded = Vec::new();
    clock.drive(&workload.events, |text, timed| {
        let event: Event = serde_json::from_str(text).expect("a workload event is typed");
        if matches!(event, Event::RunStarted(_)) {
            verifier = Verifier::new();
        }
        normalizer.normalize(event, &mut expanded).expect("the workload is legal");
        for event in expanded.drain(..) {
            verifier.verify(&event).expect("the workload is legal");
            black_box(applier.apply(&event).expect("the workload is legal"));
        }
        if timed && reading != Reading::None {
            black_box(applier.messages().to_vec());
        }
    });
    checksum(&applier)
}

fn checksum(applier: &Applier) -> Checksum {
    let assistant = || {
        applier.messages().iter().filter_map(|message| match message {
            Message::Assistant(message) => Some(message),
            _ => None,
        })
    };
    let texts = assistant().filter_map(|message| Some((message.id.as_str(), message.content.as_deref()?)));
    let calls = assistant()
        .flat_map(|message| message.tool_calls.iter().flatten())
        .map(|call| (call.id.as_str(), call.function.arguments.as_str()));
    let thoughts = applier.reasoning().iter().map(|thought| (thought.id.as_str(), thought.content.as_str()));
    Checksum {
        arrival: None,
        texts: Some(hash_texts(texts)),
        calls: Some(hash_texts(calls)),
        thoughts: Some(hash_texts(thoughts)),
        state: Some(hash_value(applier.state())),
    }
}

/// Hands out one recorded run for each request, and counts the events taken.
struct Recorded {
    runs: Mutex<VecDeque<&'static [String]>>,
    taken: Arc<AtomicUsize>,
}

impl Transport for Recorded {
    fn run(&self, _: RunAgentInput) -> TransportFuture {
        unreachable!("the client takes raw events")
    }

    fn run_raw(&self, _: RunAgentInput) -> RawTransportFuture {
        let run = self.runs.lock().ok().and_then(|mut runs| runs.pop_front());
        let taken = Arc::clone(&self.taken);
        Box::pin(async move {
            let events = run.ok_or_else(|| Error::Transport("no run is left".into()))?;
            Ok(boxed_raw_stream(stream::iter(events).map(move |text| {
                taken.fetch_add(1, Ordering::Relaxed);
                Ok(serde_json::from_str(text)?)
            })))
        })
    }
}

/// Cuts a workload before each `RUN_STARTED`.
fn split_runs(events: &'static [String]) -> Vec<&'static [String]> {
    let starts_run = |event: &String| event.starts_with(r#"{"type":"RUN_STARTED""#);
    let starts = (0..events.len()).filter(|&at| starts_run(&events[at]));
    let ends = starts.clone().skip(1).chain([events.len()]);
    starts.zip(ends).map(|(start, end)| &events[start..end]).collect()
}

fn run_id(run: &[String]) -> String {
    let started: Value = serde_json::from_str(&run[0]).expect("a workload event is JSON");
    started["runId"].as_str().expect("a run has an id").to_owned()
}
