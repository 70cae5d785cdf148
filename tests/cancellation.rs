//! `next()` may be dropped at any point, and polls may come at any time: the stream is the same.

#[path = "support/stream.rs"]
mod support;

use std::pin::pin;
use std::task::Poll;

use ag_ui_stream::{Error, EventStreamExt, Item};
use futures::{Stream, StreamExt, TryStreamExt, executor, stream};
use proptest::prelude::*;
use support::{Broken, Remote, Step, Toy, gives, script, tell};
use tokio_test::{assert_pending, assert_ready, task};

#[test]
fn a_next_that_is_dropped_while_it_waits_loses_nothing() {
    let (source, remote) = script([
        Step::Give(tell("2")),
        Step::Park,
        Step::Give(tell("0")),
        Step::Yield,
        Step::Give(tell("1")),
        Step::Yield,
    ]);
    let mut stream = source.through(Toy::ending_in(1, true));
    let mut seen = Vec::new();
    let mut dropped = 0;
    while seen.len() < 6 {
        let mut next = task::spawn(stream.next());
        match next.poll() {
            Poll::Ready(item) => seen.push(item),
            Poll::Pending => {
                drop(next);
                remote.wake();
                dropped += 1;
            }
        }
    }
    assert_eq!(dropped, 3);
    assert_eq!(seen[..4], [Some(Ok(0)), Some(Ok(1)), Some(Ok(2)), Some(Ok(3))]);
    assert!(matches!(seen[4..], [Some(Err(_)), None]));
}

#[test]
fn a_next_that_was_never_polled_takes_nothing() {
    let (source, remote) = gives([tell("1")]);
    let mut stream = source.through(Toy::default());
    drop(stream.next());
    drop(stream.try_next());
    assert_eq!(remote.polls(), 0);
    assert_eq!(executor::block_on(stream.next()), Some(Ok(0)));
}

#[test]
fn the_task_that_polled_last_is_woken() {
    let (source, remote) = script([Step::Park, Step::Give(tell("1"))]);
    let mut stream = source.through(Toy::default());
    let mut first = task::spawn(stream.next());
    assert_pending!(first.poll());
    drop(first);
    let mut second = task::spawn(stream.next());
    assert_pending!(second.poll());
    remote.wake();
    assert!(second.is_woken());
    assert_eq!(assert_ready!(second.poll()), Some(Ok(0)));
}

#[tokio::test(start_paused = true)]
async fn a_timeout_around_next_loses_nothing() {
    let slow = stream::iter(0..3).then(|count| async move {
        tokio::time::sleep(std::time::Duration::from_secs(10)).await;
        tell(&count.to_string())
    });
    let mut stream = pin!(slow.through(Toy::default()));
    let mut seen = Vec::new();
    let mut timeouts = 0;
    loop {
        match tokio::time::timeout(std::time::Duration::from_secs(3), stream.next()).await {
            Ok(Some(item)) => seen.push(item.unwrap()),
            Ok(None) => break,
            Err(_) => timeouts += 1,
        }
    }
    assert_eq!(seen, [0, 1, 2]);
    assert!(timeouts > 3);
}

/// Raw events: of a legal run, and some that are not.
fn raw_events() -> impl Strategy<Value = Vec<Result<String, Broken>>> {
    let text = |text: &str| Just(Ok(text.to_owned()));
    let legal = prop_oneof![
        4 => text(r#"{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":"a"}"#),
        4 => text(r#"{"type":"TEXT_MESSAGE_CHUNK","messageId":"n","delta":"b"}"#),
        4 => text(r#"{"type":"TEXT_MESSAGE_CHUNK","messageId":"n","delta":"\ud83d"}"#),
        4 => text(r#"{"type":"TEXT_MESSAGE_CHUNK","messageId":"n","delta":"\ude00","new":true}"#),
        4 => text(r#"{"type":"NOT_KNOWN_YET"}"#),
        2 => text(r#"{"type":"CUSTOM","name":"c","value":{"a":[1,null]}}"#),
        2 => text(r#"{"type":"STATE_SNAPSHOT","snapshot":{"a":1}}"#),
        1 => text(r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#),
        1 => text(r#"{"type":"RUN_ERROR","message":"no","code":"x"}"#),
        1 => text(r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#),
        1 => text(r#"{"type":"TEXT_MESSAGE_END","messageId":"m"}"#),
        1 => text(r#"{"type":"TEXT_MESSAGE_END"}"#),
        1 => text("[]"),
        1 => Just(Err(Broken)),
    ];
    prop::collection::vec(legal, 0..30).prop_map(|mut events| {
        events.insert(0, Ok(r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#.to_owned()));
        events
    })
}

/// What happens before each event.
fn waits() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop_oneof![3 => Just(0u8), 1 => 1u8..4], 0..64)
}

type Given = Vec<Result<String, Broken>>;

/// The events with waiting between them: one for each bit.
fn scripted(events: &Given, waits: &[u8]) -> (support::Script<Result<String, Broken>>, Remote) {
    let mut steps = Vec::new();
    for (at, event) in events.iter().enumerate() {
        let wait = waits.get(at).copied().unwrap_or(0);
        steps.extend((wait & 1 != 0).then_some(Step::Yield));
        steps.extend((wait & 2 != 0).then_some(Step::Park));
        steps.push(Step::Give(event.clone()));
    }
    script(steps)
}

/// Takes everything with a `next()` for each poll, all of which are dropped.
fn piecewise<S: Stream>(stream: S, remote: &Remote, mut patience: impl Iterator<Item = u8>) -> Vec<S::Item> {
    let mut stream = pin!(stream);
    let mut items = Vec::new();
    loop {
        let mut next = task::spawn(stream.next());
        let mut polls = patience.next().unwrap_or(1);
        loop {
            if polls == 0 {
                break;
            }
            polls -= 1;
            match next.poll() {
                Poll::Ready(Some(item)) => {
                    items.push(item);
                    break;
                }
                Poll::Ready(None) => return items,
                Poll::Pending if next.is_woken() => {}
                Poll::Pending => {
                    remote.wake();
                    assert!(next.is_woken(), "lost wake-up");
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_polls_give_the_same_items(
        events in raw_events(),
        waits in waits(),
        patience in prop::collection::vec(0u8..4, 0..200),
    ) {
        let whole: Vec<Result<Item, Error<Broken>>> =
            executor::block_on(stream::iter(events.clone()).items().collect());
        let (source, remote) = scripted(&events, &waits);
        let patience = || patience.clone().into_iter();
        prop_assert_eq!(&piecewise(source.items(), &remote, patience()), &whole);
        prop_assert!(remote.is_dropped());

        let (source, remote) = scripted(&events, &waits);
        let stages = source.upgrade().enforce().expand().verify();
        prop_assert_eq!(piecewise(stages, &remote, patience()), whole);
    }

    #[test]
    fn any_polls_give_the_same_conversation(
        events in raw_events(),
        waits in waits(),
        patience in prop::collection::vec(0u8..4, 0..200),
    ) {
        let shown = |update: Result<ag_ui_stream::snapshot::Update, Error<Broken>>| {
            update.map(|update| (update.item().clone(), update.snapshot().clone(), update.message().cloned()))
        };
        let whole: Vec<_> = executor::block_on(stream::iter(events.clone()).updates().map(shown).collect());
        let (source, remote) = scripted(&events, &waits);
        prop_assert_eq!(piecewise(source.updates().map(shown), &remote, patience.clone().into_iter()), &whole[..]);

        let (source, remote) = scripted(&events, &waits);
        let changes = source.snapshots().map(|changed| changed.map(|at| at.into_snapshot()));
        let mut last = None;
        for at in whole.into_iter() {
            let at = at.map(|(_, snapshot, _)| snapshot);
            if last.as_ref() != Some(&at) {
                last = Some(at);
            }
        }
        prop_assert_eq!(piecewise(changes, &remote, patience.into_iter()).pop(), last);
    }
}
