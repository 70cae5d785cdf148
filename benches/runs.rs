//! Many runs at once, from bytes to updates, under a runtime of many threads: what each holds in the middle of
//! 600 bytes of text, and what an event costs, however many there are.

#![allow(missing_docs, reason = "a benchmark")]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "the runs are legal; the table is the result")]

use std::alloc::System;
use std::convert::Infallible;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use ag_ui_stream::{ByteStreamExt, EventStreamExt};
use bytes::Bytes;
use futures::{Stream, TryStreamExt, stream};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Barrier;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Deltas of five bytes until the middle, and after it.
const HALF: usize = 120;

/// A run as a server sends it, an event a piece: its id is its own, so that none is shared.
fn run(number: usize) -> Vec<Bytes> {
    let delta = format!(r#"{{"type":"TEXT_MESSAGE_CONTENT","messageId":"message {number}","delta":"token"}}"#);
    let delta = Bytes::from(format!("data: {delta}\n\n"));
    let begin = format!(
        "data: {{\"type\":\"RUN_STARTED\",\"threadId\":\"thread {number}\",\"runId\":\"run {number}\"}}\n\n\
         data: {{\"type\":\"TEXT_MESSAGE_START\",\"messageId\":\"message {number}\",\"role\":\"assistant\"}}\n\n"
    );
    std::iter::once(Bytes::from(begin)).chain(std::iter::repeat_n(delta, 2 * HALF)).collect()
}

/// One piece, then a turn for the other runs.
fn taking_turns(mut pieces: std::vec::IntoIter<Bytes>) -> impl Stream<Item = Result<Bytes, Infallible>> + Unpin {
    let mut is_my_turn = false;
    stream::poll_fn(move |cx| {
        is_my_turn = !is_my_turn;
        if is_my_turn {
            return Poll::Ready(pieces.next().map(Ok));
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
}

/// The bytes that each of so many runs holds, and the time of an event.
fn measure(runtime: &Runtime, count: usize) -> (usize, Duration) {
    // Two meetings: in the middle, and once that has been looked at; and one at the end.
    let barrier = Arc::new(Barrier::new(count + 1));
    // Kept, so that what is let go of is not taken for less that is held.
    let runs: Vec<_> = (0..count).map(run).collect();
    let sources: Vec<_> = runs.iter().map(|pieces| pieces.clone().into_iter()).collect();
    let region = Region::new(ALLOCATOR);
    let begun = Instant::now();
    let tasks = sources.into_iter().map(|source| {
        let barrier = Arc::clone(&barrier);
        runtime.spawn(async move {
            let mut updates = taking_turns(source).sse().updates();
            for _ in 0..2 + HALF {
                updates.try_next().await.unwrap().unwrap();
            }
            barrier.wait().await;
            barrier.wait().await;
            for _ in 0..HALF {
                updates.try_next().await.unwrap().unwrap();
            }
            barrier.wait().await;
        })
    });
    let tasks: Vec<_> = tasks.collect();
    runtime.block_on(async {
        barrier.wait().await;
        let mut took = begun.elapsed();
        let change = region.change();
        let held = (change.bytes_allocated - change.bytes_deallocated) / count;
        let begun = Instant::now();
        barrier.wait().await;
        barrier.wait().await;
        took += begun.elapsed();
        for task in tasks {
            task.await.unwrap();
        }
        (held, took / u32::try_from(count * (2 * HALF + 2)).unwrap())
    })
}

fn main() {
    let runtime = Builder::new_multi_thread().build().unwrap();
    measure(&runtime, 100);
    println!("| runs at once | bytes each | an event |\n|---:|---:|---:|");
    for count in [100, 1_000, 10_000] {
        let best = (0..5).map(|_| measure(&runtime, count)).min_by_key(|(_, took)| *took).unwrap();
        println!("| {count} | {} | {:?} |", best.0, best.1);
    }
}
