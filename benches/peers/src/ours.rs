//! `ag-ui-stream`: the whole pipeline, as a bare machine and as a combinator.
//!
//! JSON text through compatibility, enforcement, expansion, verification and
//! assembly. Every event gives an update that comes with its snapshot, so the
//! readings differ only in what is done with it.

use std::borrow::Cow;
use std::hint::black_box;

use ag_ui_stream::machine::{Machine, Pipeline, Push};
use ag_ui_stream::snapshot::{Snapshot, Text, Update};
use ag_ui_stream::{EventStreamExt, Message};
use futures::executor::block_on;
use futures::{StreamExt, TryStreamExt, stream};

use crate::Reading;
use crate::checksum::{Checksum, hash_texts, hash_value};
use crate::clock::Clock;
use crate::workloads::Workload;

/// The pipeline, pushed and popped by hand.
pub fn bare(workload: &'static Workload, reading: Reading, clock: &mut Clock) -> Checksum {
    let mut pipeline = Pipeline::new();
    let mut held = Vec::new();
    clock.drive(&workload.events, |text, timed| {
        pipeline.push(text).expect("the workload is legal");
        while let Some(update) = pipeline.pop() {
            if timed {
                read(update, reading, &mut held);
            }
        }
    });
    let sum = checksum(pipeline.snapshot());
    // Whoever keeps snapshots pays for dropping them, too.
    clock.also(|| drop(held));
    sum
}

/// The same pipeline as a combinator, over a source that is always ready.
pub fn combined(workload: &'static Workload, reading: Reading, clock: &mut Clock) -> Checksum {
    let (before, events) = workload.events.split_at(clock.timed_from());
    let mut pipeline = Pipeline::new();
    for text in before {
        pipeline.push(text).expect("the workload is legal");
        while pipeline.pop().is_some() {}
    }
    let mut held = Vec::new();
    let mut updates = stream::iter(events).map(String::as_str).through_raw(pipeline);
    clock.start();
    block_on(async {
        while let Some(update) = updates.try_next().await.expect("the workload is legal") {
            read(update, reading, &mut held);
        }
    });
    clock.go_on(events.len());
    clock.stop();
    let sum = checksum(updates.machine().snapshot());
    clock.also(|| drop(held));
    sum
}

fn read(update: Update, reading: Reading, held: &mut Vec<Snapshot>) {
    match reading {
        Reading::None => {
            black_box(&update);
        }
        Reading::Latest => {
            // The text so far, as one string: what a user interface shows.
            let text = update.message().and_then(Message::text);
            black_box(text.as_ref().map(Text::to_cow));
            black_box(update.snapshot());
        }
        Reading::Held => held.push(update.into_parts().1),
    }
}

fn checksum(snapshot: &Snapshot) -> Checksum {
    let mut texts = Vec::new();
    let mut calls = Vec::new();
    let mut thoughts = Vec::new();
    for message in snapshot.messages() {
        match message {
            Message::Assistant(message) => {
                if let Some(text) = &message.content {
                    texts.push((message.id.as_str(), text.to_cow()));
                }
                for call in message.tool_calls.iter().flatten() {
                    calls.push((call.id.as_str(), call.function.arguments.to_cow()));
                }
            }
            Message::Reasoning(message) => {
                thoughts.push((message.id.as_str(), message.content.to_cow()));
            }
            _ => {}
        }
    }
    Checksum {
        arrival: None,
        texts: Some(hash(&texts)),
        calls: Some(hash(&calls)),
        thoughts: Some(hash(&thoughts)),
        state: Some(hash_value(&snapshot.state().to_value())),
    }
}

fn hash(texts: &[(&str, Cow<'_, str>)]) -> u64 {
    hash_texts(texts.iter().map(|(id, text)| (*id, text.as_ref())))
}
