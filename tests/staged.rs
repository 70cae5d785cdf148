//! Guarantees of every combinator: the order of outputs and error, the end, wake-ups.

#[path = "support/stream.rs"]
mod support;

use ag_ui_stream::{Error, Event, EventStreamExt, Item, RawItem, Rule, Warning};
use futures::stream::FusedStream;
use futures::{StreamExt, TryStreamExt, stream};
use support::{Broken, Step, Toy, fault, gives, script, tell};
use tokio_test::{assert_pending, assert_ready, assert_ready_eq, task};

const TEXT: &str = r#"{"type":"RUN_ERROR","message":"m","more":1}"#;

#[test]
fn outputs_before_the_fault_come_first_and_the_error_is_last() {
    let (source, remote) = gives([tell("1"), tell("fail 2"), tell("5")]);
    let mut stream = task::spawn(source.through(Toy::default()));
    assert_ready_eq!(stream.poll_next(), Some(Ok(0)));
    assert!(!remote.is_dropped());
    assert_ready_eq!(stream.poll_next(), Some(Ok(1)));
    assert!(remote.is_dropped(), "nothing is asked of the source after the fault");
    assert_ready_eq!(stream.poll_next(), Some(Ok(2)));
    assert!(!stream.is_terminated());
    assert_ready_eq!(stream.poll_next(), Some(Err(fault())));
    for _ in 0..3 {
        assert!(stream.is_terminated());
        assert_ready_eq!(stream.poll_next(), None);
    }
}

#[tokio::test]
async fn a_machine_of_ones_own_warns_and_fails_as_the_others_do() {
    let warning = Warning::new(Rule::E3, 4, &"T".repeat(100), "/a", "odd");
    assert_eq!((warning.event, warning.path.as_str(), warning.message.as_str()), (4, "/a", "odd"));
    assert!(warning.event_type.len() < 100, "bounded, as it comes from elsewhere");
    let items = stream::iter([Item::from(warning.clone())]).verify().collect::<Vec<_>>().await;
    assert_eq!(items[0], Ok(warning.into()));
}

#[test]
fn an_error_of_the_source_passes_through_typed_and_is_last() {
    let (source, remote) = gives([Ok(tell("2")), Err(Error::Source(Broken)), Ok(tell("1"))]);
    let mut stream = task::spawn(source.through(Toy::ending_in(1, true)));
    assert_ready_eq!(stream.poll_next(), Some(Ok(0)));
    assert_ready_eq!(stream.poll_next(), Some(Ok(1)));
    assert_ready_eq!(stream.poll_next(), Some(Err(Error::Source(Broken))));
    assert!(remote.is_dropped());
    assert!(!stream.machine().finished, "a failure of the source is no end of the input");
    assert_ready_eq!(stream.poll_next(), None);
    assert_ready_eq!(stream.poll_next(), None);
}

#[test]
fn the_machine_judges_the_end_once() {
    let (source, remote) = gives([tell("1")]);
    let mut stream = task::spawn(source.through(Toy::ending_in(2, true)));
    assert_ready_eq!(stream.poll_next(), Some(Ok(0)));
    assert_ready_eq!(stream.poll_next(), Some(Ok(1)));
    assert!(remote.is_dropped(), "the source goes with its end");
    assert!(stream.get_ref().is_none());
    assert_ready_eq!(stream.poll_next(), Some(Ok(2)));
    assert_ready_eq!(stream.poll_next(), Some(Err(fault())));
    assert_ready_eq!(stream.poll_next(), None);
}

#[test]
fn a_pending_source_wakes_the_task() {
    let (source, remote) = script([Step::Park, Step::Give(tell("0")), Step::Yield, Step::Give(tell("1"))]);
    let mut stream = task::spawn(source.through(Toy::default()));
    assert_pending!(stream.poll_next());
    assert!(!stream.is_woken());
    remote.wake();
    assert!(stream.is_woken());
    assert_pending!(stream.poll_next());
    assert!(stream.is_woken());
    assert_ready_eq!(stream.poll_next(), Some(Ok(0)));
    assert_ready_eq!(stream.poll_next(), None);
}

#[test]
fn a_source_that_is_always_ready_does_not_keep_the_thread() {
    let (source, remote) = gives((0..1000).map(|_| tell("0")));
    let mut stream = task::spawn(source.through(Toy::default()));
    assert_pending!(stream.poll_next());
    assert!(stream.is_woken(), "it goes on by itself");
    assert_eq!(remote.polls(), 64);
    let mut polls = 1;
    while stream.poll_next().is_pending() {
        polls += 1;
    }
    assert_eq!(polls, 1000 / 64);
}

#[tokio::test]
async fn raw_events_come_in_any_form_fallible_or_not() {
    fn check<E: std::fmt::Debug>(items: Vec<Result<Item, Error<E>>>) {
        assert_eq!(items.len(), 2);
        assert_eq!(items[0].as_ref().unwrap().warning().unwrap().path, "/more");
        assert!(matches!(items[1].as_ref().unwrap().event(), Some(Event::RunError(_))));
    }
    let value: serde_json::Value = serde_json::from_str(TEXT).unwrap();
    check(stream::iter([TEXT]).enforce().collect().await);
    check(stream::iter([TEXT.to_owned()]).enforce().collect().await);
    check(stream::iter([TEXT.as_bytes()]).enforce().collect().await);
    check(stream::iter([&value]).enforce().collect().await);
    check(stream::iter([Ok::<_, Broken>(TEXT)]).enforce().collect().await);
    check(stream::iter([Ok::<_, std::io::Error>(value.clone())]).enforce().collect().await);
    check(stream::iter([Ok::<_, Box<dyn std::error::Error>>(TEXT.to_owned().into_bytes())]).enforce().collect().await);
}

#[tokio::test]
async fn stages_on_stages_keep_one_error_type() {
    let source = stream::iter([Ok(TEXT.to_owned()), Err(std::io::Error::other("cut"))]);
    let stages = source.enforce().through(Toy::default());
    let outcome: Result<Vec<u32>, Error<std::io::Error>> = stages.try_collect().await;
    assert!(matches!(outcome, Err(Error::Source(error)) if error.to_string() == "cut"));

    let plain: Result<Vec<u32>, Error> = stream::iter([tell("2")]).through(Toy::default()).try_collect().await;
    assert_eq!(plain, Ok(vec![0, 1]));

    let placed = stream::iter([Err::<RawItem, Error<Broken>>(Error::Source(Broken))]).enforce();
    assert_eq!(placed.collect::<Vec<_>>().await, [Err(Error::Source(Broken))]);
}

#[tokio::test]
async fn middleware_sits_between_the_stages() {
    let source = stream::iter([tell("1"), tell("2"), tell("3")]);
    let events = source.enforce().try_filter_map(|item| async { Ok(item.into_event()) });
    let fewer = events.try_filter(|event| std::future::ready(*event != tell("2")));
    let out: Vec<u32> = fewer.through(Toy::default()).try_collect().await.unwrap();
    assert_eq!(out, [0, 1, 2, 3]);
}

#[test]
fn the_source_is_within_reach_until_it_is_dropped() {
    let (source, remote) = gives([tell("1"), tell("1")]);
    let mut stream = source.through(Toy::default());
    assert!(stream.get_ref().is_some());
    assert!(stream.get_mut().is_some());
    assert!(std::pin::Pin::new(&mut stream).get_pin_mut().is_some());
    assert_ready!(task::spawn(&mut stream).poll_next()).unwrap().unwrap();
    let source = stream.into_inner().unwrap();
    assert!(!remote.is_dropped());
    drop(source);
    assert!(remote.is_dropped());
}
