//! Continuing after an error, as a linter does: every stage is then in its state from before the event at
//! fault.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test")]

use ag_ui_stream::machine::{Enforcer, Expander, IdChecks, Machine, Push, Recovery, Verifier};
use ag_ui_stream::{Error, Event, EventType, Item, Rule};
use serde_json::{Value, json};

fn event(json: Value) -> Event {
    Event::from_value(&json).unwrap().0.unwrap()
}

/// A fault: the rule, the event, and what became of it.
type Fault = (Rule, u64, Option<Recovery>);

/// The faults of a stream, and the types of the events that came through.
fn lint(id_checks: IdChecks, events: &[Value]) -> (Vec<Fault>, Vec<EventType>) {
    let mut verifier = Verifier::new().with_id_checks(id_checks);
    let (mut faults, mut types) = (Vec::new(), Vec::new());
    for (index, json) in (0..).zip(events) {
        if let Err(error) = verifier.push(event(json.clone())) {
            assert_eq!(error.event_index(), Some(index));
            assert_eq!(verifier.finish(), Err(error.clone()));
            faults.push((error.rule().unwrap(), index, verifier.recover()));
        }
        types.extend(std::iter::from_fn(|| verifier.pop()).filter_map(|item| item.event().map(Event::event_type)));
    }
    if let Err(error) = verifier.finish() {
        assert_eq!(verifier.recover(), None);
        assert_eq!(verifier.finish(), Err(error));
    }
    (faults, types)
}

fn started(run: &str) -> Value {
    json!({"type": "RUN_STARTED", "threadId": "t", "runId": run})
}

fn finished(run: &str) -> Value {
    json!({"type": "RUN_FINISHED", "threadId": "t", "runId": run})
}

fn text(kind: &str, id: &str) -> Value {
    match kind {
        "CONTENT" => json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": id, "delta": "x"}),
        _ => json!({"type": format!("TEXT_MESSAGE_{kind}"), "messageId": id}),
    }
}

#[test]
fn an_event_that_is_skipped_changes_nothing() {
    let (faults, types) = lint(
        IdChecks::Warn,
        &[
            text("START", "m"),
            started("r"),
            text("CONTENT", "m"),
            text("START", "m"),
            text("START", "m"),
            text("CONTENT", "m"),
            text("END", "m"),
            text("END", "m"),
            finished("r"),
            finished("r"),
        ],
    );
    let skipped = Some(Recovery::Skipped);
    assert_eq!(
        faults,
        [
            (Rule::R1, 0, skipped),
            (Rule::S2, 2, skipped),
            (Rule::S2, 4, skipped),
            (Rule::S2, 7, skipped),
            (Rule::R4, 9, skipped)
        ]
    );
    assert_eq!(types.len(), 5);
}

#[test]
fn a_run_begins_and_ends_where_its_events_say_so() {
    let (faults, types) = lint(
        IdChecks::Reject,
        &[
            started("a"),
            text("START", "m"),
            started("b"),
            text("START", "m"),
            finished("b"),
            started("c"),
            finished("d"),
            json!({"type": "RUN_STARTED", "threadId": "other", "runId": "e"}),
            finished("e"),
        ],
    );
    let forced = Some(Recovery::Forced);
    assert_eq!(
        faults,
        [
            (Rule::R2, 2, forced),
            (Rule::R3, 4, forced),
            (Rule::R10, 6, forced),
            (Rule::R10, 7, forced),
            (Rule::R10, 8, forced)
        ]
    );
    assert_eq!(types.len(), 9);
}

#[test]
fn there_is_nothing_to_recover_from_without_an_error() {
    let mut verifier = Verifier::new();
    assert_eq!(verifier.recover(), None);
    verifier.push(event(started("r"))).unwrap();
    assert_eq!(verifier.recover(), None);
    assert!(verifier.active_run().is_some());
}

#[test]
fn enforcement_and_expansion_go_on_as_they_are() {
    let mut enforcer = Enforcer::new();
    assert!(enforcer.push(r#"{"type":"TEXT_MESSAGE_START","messageId":7,"extra":1}"#).is_err());
    assert!(enforcer.push("{").is_err());
    enforcer.push(r#"{"type":"TEXT_MESSAGE_START","messageId":"m"}"#).unwrap();
    let items: Vec<Item> = std::iter::from_fn(|| enforcer.pop()).collect();
    assert_eq!(items.len(), 1, "{items:?}");

    let chunk = |id: Option<&str>, role: &str| {
        let mut json = json!({"type": "TEXT_MESSAGE_CHUNK", "role": role, "delta": "x"});
        if let Some(id) = id {
            json["messageId"] = id.into();
        }
        event(json)
    };
    let mut expander = Expander::new();
    let rule = |verdict: Result<(), Error>| verdict.unwrap_err().rule();
    assert_eq!(rule(expander.push(chunk(None, "user"))), Some(Rule::C2));
    expander.push(chunk(Some("m"), "user")).unwrap();
    assert_eq!(rule(expander.push(chunk(None, "assistant"))), Some(Rule::C5));
    expander.push(chunk(None, "user")).unwrap();
    let types: Vec<EventType> =
        std::iter::from_fn(|| expander.pop()).map(|item| item.event().unwrap().event_type()).collect();
    assert_eq!(types, [EventType::TextMessageStart, EventType::TextMessageContent, EventType::TextMessageContent]);
}
