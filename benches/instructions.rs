//! The program whose instructions `instructions.sh` counts: one workload, processed in one way, both named
//! by arguments.

#![allow(missing_docs, reason = "a benchmark")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "the workloads are legal")]

use std::hint::black_box;

use ag_ui_stream::machine::{Machine, Pipeline, Push};

#[path = "support/floor.rs"]
mod floor;
#[path = "peers/src/workloads.rs"]
mod workloads;

/// Counting begins and ends with this function.
#[inline(never)]
fn measured(way: &str, events: &[String]) -> usize {
    if way == "floor" {
        return floor::run(events);
    }
    let mut pipeline = Pipeline::new();
    let mut kept = Vec::with_capacity(if way == "kept" { events.len() } else { 0 });
    for event in events {
        pipeline.push(event.as_str()).unwrap();
        while let Some(update) = pipeline.pop() {
            black_box(update.snapshot());
            if way == "kept" {
                kept.push(update.into_snapshot());
            }
        }
    }
    // Dropping them is not part of the cost of an event.
    std::mem::forget(kept);
    pipeline.snapshot().messages().len()
}

fn main() {
    // `cargo bench` runs every benchmark, with arguments of its own; this one is for the script.
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [way, name] = arguments.as_slice() else { return };
    let workload = match name.as_str() {
        "W1" => workloads::w1(),
        "W3" => workloads::w3(),
        "W4" => workloads::w4(),
        "W5" => workloads::w5(),
        "W6" => workloads::w6(),
        "W7" => workloads::w7(),
        _ => return,
    };
    black_box(measured(way, &workload.events));
}
