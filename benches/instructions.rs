//! What `instructions.sh` counts: one way through one workload, named by two arguments; a way that begins
//! with bytes has the size of the pieces as a third.

#![allow(missing_docs, reason = "a benchmark")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "the workloads are legal")]

use std::hint::black_box;

use ::bytes::Bytes;
use ag_ui_stream::codec::Format;
use ag_ui_stream::machine::{Machine, Pipeline, Push};

#[path = "support/bytes.rs"]
mod bytes;
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

/// The same for the ways that begin with bytes.
#[inline(never)]
fn measured_bytes(way: &str, body: &[u8], pieces: &[Bytes]) -> usize {
    match way {
        "byte-floor" => bytes::floor(body),
        "sse" => bytes::updates(Format::Sse, pieces),
        "json-lines" => bytes::updates(Format::JsonLines, pieces),
        #[cfg(feature = "protobuf")]
        "protobuf" => bytes::updates(Format::Protobuf, pieces),
        "items" => bytes::items(pieces),
        "gateway" => bytes::gateway(pieces),
        _ => 0,
    }
}

fn main() {
    // `cargo bench` runs every benchmark, with arguments of its own; this one is for the script.
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (way, name, size) = match arguments.as_slice() {
        [way, name] => (way, name, None),
        [way, name, size] => (way, name, size.parse().ok()),
        _ => return,
    };
    let workload = match name.as_str() {
        "W1" => workloads::w1(),
        "W2" => workloads::w2(),
        "W3" => workloads::w3(),
        "W4" => workloads::w4(),
        "W5" => workloads::w5(),
        "W6" => workloads::w6(),
        "W7" => workloads::w7(),
        _ => return,
    };
    let Some(size) = size else {
        black_box(measured(way, &workload.events));
        return;
    };
    let format = match way.as_str() {
        "json-lines" => Format::JsonLines,
        #[cfg(feature = "protobuf")]
        "protobuf" => Format::Protobuf,
        _ => Format::Sse,
    };
    let body = bytes::body(format, &workload.events);
    let pieces = bytes::pieces(&body, size);
    black_box(measured_bytes(way, &body, &pieces));
}
