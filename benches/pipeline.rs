//! The cost of an event, by workload and by stage, beside the floor: `cargo bench`.
//!
//! The workloads are those of `peers/src/workloads.rs`; the floor is what `serde_json` needs to
//! parse each event into a borrowed struct of just its fields, and to push the deltas onto one
//! `String`. Absolute times mean little; the ratios within one run are what `docs/performance.md`
//! speaks of.

#![allow(missing_docs, reason = "a benchmark")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "the workloads are legal")]

use std::hint::black_box;

use ag_ui_stream::EventStreamExt;
use ag_ui_stream::machine::{Enforcer, EventPipeline, Machine, Pipeline, Push};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use futures::{StreamExt, TryStreamExt, stream};

#[path = "support/floor.rs"]
mod floor;
#[path = "peers/src/workloads.rs"]
mod workloads;

fn enforce(events: &[String]) {
    let mut enforcer = Enforcer::new();
    for event in events {
        enforcer.push(event.as_str()).unwrap();
        while let Some(item) = enforcer.pop() {
            black_box(&item);
        }
    }
}

fn verify(events: &[String]) {
    let mut pipeline = EventPipeline::new();
    for event in events {
        pipeline.push(event.as_str()).unwrap();
        while let Some(item) = pipeline.pop() {
            black_box(&item);
        }
    }
}

/// Everything, one snapshot read after each event.
fn full(events: &[String]) -> usize {
    let mut pipeline = Pipeline::new();
    for event in events {
        pipeline.push(event.as_str()).unwrap();
        while let Some(update) = pipeline.pop() {
            black_box(update.snapshot());
        }
    }
    pipeline.snapshot().messages().len()
}

/// The same with every snapshot kept.
fn held(events: &[String]) -> usize {
    let mut pipeline = Pipeline::new();
    let mut snapshots = Vec::with_capacity(events.len());
    for event in events {
        pipeline.push(event.as_str()).unwrap();
        while let Some(update) = pipeline.pop() {
            snapshots.push(update.into_parts().1);
        }
    }
    snapshots.len()
}

/// The same as `full`, as a combinator.
fn combined(events: &[String]) -> usize {
    futures::executor::block_on(async {
        let mut updates = stream::iter(events).map(String::as_str).updates();
        while let Some(update) = updates.try_next().await.unwrap() {
            black_box(update.snapshot());
        }
        updates.machine().snapshot().messages().len()
    })
}

fn workloads(criterion: &mut Criterion) {
    for workload in workloads::all().into_iter().chain([workloads::w7()]) {
        let events = &workload.events;
        // A cost counts only if the result is right.
        let expected = full(events);
        assert!(expected >= workload.texts.len());
        let mut group = criterion.benchmark_group(&workload.name);
        group.throughput(Throughput::Elements(events.len() as u64)).sample_size(20);
        group.bench_function("floor", |bencher| bencher.iter(|| floor::run(events)));
        group.bench_function("enforce", |bencher| bencher.iter(|| enforce(events)));
        group.bench_function("verify", |bencher| bencher.iter(|| verify(events)));
        group.bench_function("full", |bencher| bencher.iter(|| assert_eq!(full(events), expected)));
        group.bench_function("held", |bencher| bencher.iter(|| held(events)));
        group.bench_function("combined", |bencher| bencher.iter(|| assert_eq!(combined(events), expected)));
        group.finish();
    }
}

criterion_group!(benches, workloads);
criterion_main!(benches);
