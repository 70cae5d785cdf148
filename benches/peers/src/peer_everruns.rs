//! `everruns-core`: its own consumer, `RunConsumer`.
//!
//! It keeps no reasoning, no state and no tool messages, so it does less than
//! the full job; see the fields it leaves out of its checksum.

use std::hint::black_box;

use everruns_core::ag_ui::Event;
use everruns_core::ag_ui::consumer::{RunConsumer, RunResult};
use serde_json::Value;

use crate::Reading;
use crate::checksum::{Checksum, hash_texts};
use crate::clock::Clock;
use crate::workloads::Workload;

/// The whole consumer: JSON text to `Value`, then `push_value`, which enforces,
/// expands, verifies and assembles.
pub fn full(workload: &'static Workload, reading: Reading, clock: &mut Clock) -> Checksum {
    drive(workload, reading, clock, |consumer, text| {
        let value: Value = serde_json::from_str(text).expect("a workload event is JSON");
        let events = consumer.push_value(value).expect("the workload is legal");
        black_box(events);
    })
}

/// The shortcut past enforcement: JSON text straight to a typed event, then
/// `push`.
pub fn typed(workload: &'static Workload, reading: Reading, clock: &mut Clock) -> Checksum {
    drive(workload, reading, clock, |consumer, text| {
        let event: Event = serde_json::from_str(text).expect("a workload event is typed");
        let events = consumer.push(event).expect("the workload is legal");
        black_box(events);
    })
}

fn drive(
    workload: &'static Workload,
    reading: Reading,
    clock: &mut Clock,
    mut push: impl FnMut(&mut RunConsumer, &str),
) -> Checksum {
    let mut consumer = RunConsumer::new();
    clock.drive(&workload.events, |text, timed| {
        push(&mut consumer, text);
        if timed && reading != Reading::None {
            // An owned copy is the only view that outlives the next event.
            black_box(consumer.result().clone());
        }
    });
    checksum(consumer.result())
}

fn checksum(result: &RunResult) -> Checksum {
    let texts = result.messages.iter().map(|message| (message.id.as_str(), message.content.as_str()));
    let calls = result.tool_calls.iter().map(|call| (call.id.as_str(), call.arguments.as_str()));
    Checksum { texts: Some(hash_texts(texts)), calls: Some(hash_texts(calls)), ..Checksum::default() }
}
