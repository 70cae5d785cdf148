//! The size hints, at each step.

#[path = "support/stream.rs"]
mod support;

use ag_ui_stream::EventStreamExt;
use futures::Stream;
use support::{Step, Toy, gives, script, tell};
use tokio_test::{assert_pending, assert_ready, task};

#[test]
fn held_items_are_the_lower_bound() {
    let (source, _) = script([
        Step::Give(tell("3")),
        Step::Give(tell("0")),
        Step::Yield,
        Step::Give(tell("1")),
        Step::Give(tell("fail 2")),
    ]);
    let mut stream = task::spawn(source.through(Toy::default()));
    assert_eq!(stream.size_hint(), (0, None), "nothing is held, everything may be dropped");
    assert!(assert_ready!(stream.poll_next()).is_some());
    assert_eq!(stream.size_hint(), (2, None));
    assert!(assert_ready!(stream.poll_next()).is_some());
    assert_eq!(stream.size_hint(), (1, None));
    assert!(assert_ready!(stream.poll_next()).is_some());
    assert_eq!(stream.size_hint(), (0, None));
    assert_pending!(stream.poll_next());
    assert_eq!(stream.size_hint(), (0, None));
    assert!(assert_ready!(stream.poll_next()).is_some());
    assert_eq!(stream.size_hint(), (0, None));
    assert!(assert_ready!(stream.poll_next()).is_some());
    assert_eq!(stream.size_hint(), (2, None), "an output and the error");
    assert!(assert_ready!(stream.poll_next()).unwrap().is_ok());
    assert_eq!(stream.size_hint(), (1, None), "the error");
    assert!(assert_ready!(stream.poll_next()).unwrap().is_err());
    assert_eq!(stream.size_hint(), (0, Some(0)));
    assert!(assert_ready!(stream.poll_next()).is_none());
    assert_eq!(stream.size_hint(), (0, Some(0)));
}

#[test]
fn enforcement_counts_the_event_after_its_warnings() {
    let (source, _) = gives([r#"{"type":"RUN_ERROR","message":"m","a":1,"b":2}"#]);
    let mut stream = task::spawn(source.enforce());
    for hint in [(0, None), (2, None), (1, None), (0, None)] {
        assert_eq!(stream.size_hint(), hint);
        let _ = stream.poll_next();
    }
    assert_eq!(stream.size_hint(), (0, Some(0)));
}
