//! Streams in another form that give the same conversation: a compacted record, and a prelude with the rest
//! of the stream after it.

#![allow(missing_docs, unreachable_pub, dead_code, reason = "a test")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test")]

#[path = "support/recorded.rs"]
mod recorded;
#[path = "support/streams.rs"]
mod streams;

use ag_ui_stream::RawEvent;
use ag_ui_stream::error::SubjectKind;
use ag_ui_stream::machine::{Compactor, Machine, Pipeline, Push, Verifier, compact};
use ag_ui_stream::snapshot::{ItemStatus, Snapshot};
use ag_ui_stream::{Error, Event, Item, Message, Rule};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use recorded::{Recorded, recorded};
use serde_json::{Value, json};

/// All streams: those of `tests/data`, and random ones from seeds.
fn all(seeds: u64) -> impl Iterator<Item = Recorded> {
    let seeded = (0..seeds).map(|seed| Recorded::new(format!("seed {seed}"), streams::stream(seed)));
    recorded().into_iter().chain(seeded)
}

/// The result of a pipeline for a stream.
struct Made {
    pipeline: Pipeline,
    items: Vec<Item>,
    error: Option<Error>,
}

impl Made {
    fn of<R: RawEvent>(mut pipeline: Pipeline, events: impl IntoIterator<Item = R>) -> Self {
        let mut items = Vec::new();
        let mut error = None;
        for event in events {
            error = pipeline.push(event).err();
            items.extend(std::iter::from_fn(|| pipeline.pop()).map(|update| update.item().clone()));
            if error.is_some() {
                break;
            }
        }
        let error = error.or_else(|| pipeline.finish().err());
        items.extend(std::iter::from_fn(|| pipeline.pop()).map(|update| update.item().clone()));
        Self { pipeline, items, error }
    }

    fn events(&self) -> Vec<Event> {
        self.items.iter().filter_map(Item::event).cloned().collect()
    }

    fn facts(&self) -> Facts {
        Facts::of(self.pipeline.snapshot())
    }
}

/// Everything in a snapshot except the indices of events.
#[derive(Debug, PartialEq)]
struct Facts {
    messages: Vec<(Value, Option<ItemStatus>)>,
    calls: Vec<(String, Option<ItemStatus>)>,
    state: Value,
    runs: Vec<RunFacts>,
}

#[derive(Debug, PartialEq)]
struct RunFacts {
    ids: String,
    outcome: String,
    open: Vec<String>,
    subagents: Vec<String>,
}

impl Facts {
    fn of(snapshot: &Snapshot) -> Self {
        let value = |message| serde_json::to_value(message).unwrap();
        let status = |message: &Message| snapshot.message_status(message.id());
        let calls = snapshot.messages().iter().flat_map(|message| message.tool_calls());
        Self {
            messages: snapshot.messages().iter().map(|message| (value(message), status(message))).collect(),
            calls: calls.map(|call| (call.id.to_string(), snapshot.tool_call_status(&call.id))).collect(),
            state: snapshot.state().to_value(),
            runs: snapshot
                .runs()
                .map(|run| RunFacts {
                    ids: format!("{:?} {:?} {:?} {:?}", run.thread_id, run.run_id, run.parent_run_id, run.resume),
                    outcome: format!("{:?} {:?} {:?}", run.outcome, run.result, run.usage),
                    open: run.open().map(|item| format!("{} {} {:?}", item.kind, item.id(), item.owner)).collect(),
                    subagents: run.subagents().map(|subagent| format!("{subagent:?}")).collect(),
                })
                .collect(),
        }
    }

    /// The part that a prelude can restore.
    fn for_a_viewer(mut self) -> Self {
        // An item of an earlier run that was cut off counts as complete after any MESSAGES_SNAPSHOT.
        let known = |status: &mut Option<ItemStatus>| {
            if *status == Some(ItemStatus::Abandoned) {
                *status = Some(ItemStatus::Complete);
            }
        };
        self.messages.iter_mut().for_each(|(_, status)| known(status));
        self.calls.iter_mut().for_each(|(_, status)| known(status));
        let latest = self.runs.len().saturating_sub(1);
        for run in &mut self.runs[..latest] {
            run.open.clear();
            run.subagents.clear();
        }
        self.runs.iter_mut().for_each(|run| run.open.sort());
        self
    }
}

// Compaction

/// The result of compaction for a stream.
fn compacted<R: RawEvent>(pipeline: Pipeline, events: impl IntoIterator<Item = R>) -> (Vec<Event>, Option<Error>) {
    let mut compactor = Compactor::with_pipeline(pipeline);
    let mut error = None;
    for event in events {
        error = compactor.push(event).err();
        if error.is_some() {
            break;
        }
    }
    let error = error.or_else(|| compactor.finish().err());
    (std::iter::from_fn(|| compactor.pop()).collect(), error)
}

/// The bytes of events as JSON.
fn bytes(events: &[Event]) -> usize {
    events.iter().map(|event| serde_json::to_string(event).unwrap().len()).sum()
}

/// The events that compaction does not change.
fn kept(events: &[Event]) -> Vec<&Event> {
    let is_kept = |event: &&Event| {
        !matches!(
            event,
            Event::TextMessageContent(_)
                | Event::ToolCallArgs(_)
                | Event::ReasoningMessageContent(_)
                | Event::StateDelta(_)
                | Event::StateSnapshot(_)
        )
    };
    events.iter().filter(is_kept).collect()
}

/// Compacts a stream and checks the result. Returns the bytes before and after.
fn hold(stream: &Recorded) -> (usize, usize) {
    let name = &stream.name;
    let whole = Made::of(stream.builder().build(), stream.events.iter().cloned());
    let (events, error) = compacted(stream.builder().build(), stream.events.iter().cloned());
    assert_eq!(error, whole.error, "{name}");
    let short = Made::of(stream.builder().build(), events.clone());
    assert!(short.error.as_ref().is_none_or(Error::is_truncated), "{name}: {:?}", short.error);
    let (mut wanted, mut found) = (whole.facts(), short.facts());
    if whole.error.as_ref().is_some_and(|error| !error.is_truncated()) {
        // An event that breaks a rule is not given.
        for facts in [&mut wanted, &mut found] {
            facts.runs.iter_mut().for_each(|run| run.outcome = run.outcome.replace("Rejected", "Truncated"));
        }
    }
    assert_eq!(found, wanted, "{name}: {events:#?}");
    assert_eq!(kept(&events), kept(&whole.events()), "{name}");
    assert!(events.len() <= whole.events().len(), "{name}");

    let (again, _) = compacted(stream.builder().build(), events.iter());
    assert_eq!(again, events, "{name}");
    let mut verifier = Verifier::new();
    assert!(events.iter().all(|event| verifier.push(event.clone()).is_ok()), "{name}");
    (bytes(&whole.events()), bytes(&events))
}

#[test]
fn a_compacted_stream_gives_the_same_and_compacts_to_itself() {
    let (before, after) = all(3000).map(|stream| hold(&stream)).fold((0, 0), |(a, b), (c, d)| (a + c, b + d));
    assert!(after < before, "{after} of {before} bytes");
}

/// A change of an item or of the state; some patches do not apply.
fn change() -> impl Strategy<Value = Value> {
    let path = prop::sample::select(vec!["/x", "/y", "/l", "/l/0", "/l/-", ""]);
    let value = prop::sample::select(vec![json!(1), json!([1]), json!({}), json!("a longer text than others")]);
    let op = prop::sample::select(vec!["add", "add", "replace", "remove", "test"]);
    let patch = prop::collection::vec((op, path, value.clone()), 0..3).prop_map(|ops| {
        let ops = ops.into_iter().map(|(op, path, value)| json!({"op": op, "path": path, "value": value, "n": 1}));
        json!({"type": "STATE_DELTA", "delta": ops.collect::<Vec<_>>()})
    });
    let delta = (prop::sample::select(vec!["a", "b"]), "[x-z]{0,2}").prop_map(|(id, delta)| text(id, &delta));
    let event = prop_oneof![4 => delta, 6 => patch, 1 => value.prop_map(snapshot), 1 => Just(json!({"type": "RAW", "event": 1}))];
    (event, 0..12_u8, 0..12_u8).prop_map(|(event, owner, extra)| {
        let event = if owner == 0 && event.get("delta").is_none_or(Value::is_array) {
            with(event, json!({"subagentRunId": "s"}))
        } else {
            event
        };
        match extra {
            0 => with(event, json!({"metadata": {"k": owner}})),
            1 => with(event, json!({"timestamp": owner})),
            2 => with(event, json!({"metadata": {}, "rawEvent": 1})),
            _ => event,
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rows_of_changes_come_to_the_same(changes in prop::collection::vec(change(), 0..20), second in 0..20_usize) {
        let run = json!({"type": "RUN_STARTED", "threadId": "t", "runId": "r", "input": {"threadId": "t", "runId": "r", "messages": [], "tools": [], "context": [], "state": {"x": 0, "z": "z".repeat(300)}}});
        let between = [end("a"), end("b"), json!({"type": "RUN_FINISHED", "threadId": "t", "runId": "r"})];
        let open = [start("a"), start("b")];
        let (first, second) = changes.split_at(second.min(changes.len()));
        let run = std::slice::from_ref(&run);
        let all = [run, &open[..], first, &between, run, &open, second].concat();
        hold(&Recorded::new("changes", all.iter().map(Value::to_string)));
    }
}

fn short(events: &[Value]) -> Vec<Value> {
    let run = [json!({"type": "RUN_STARTED", "threadId": "t", "runId": "r"})];
    let end = [json!({"type": "RUN_ERROR", "message": "no"})];
    let events: Vec<_> = compact(run.iter().chain(events).chain(&end)).collect::<Result<_, _>>().unwrap();
    let values: Vec<_> = events.iter().map(|event| serde_json::to_value(event).unwrap()).collect();
    values[1..values.len() - 1].to_vec()
}

fn start(id: &str) -> Value {
    json!({"type": "TEXT_MESSAGE_START", "messageId": id})
}

fn text(id: &str, delta: &str) -> Value {
    json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": id, "delta": delta})
}

fn end(id: &str) -> Value {
    json!({"type": "TEXT_MESSAGE_END", "messageId": id})
}

fn snapshot(state: Value) -> Value {
    json!({"type": "STATE_SNAPSHOT", "snapshot": state})
}

fn set(path: &str, value: Value) -> Value {
    json!({"type": "STATE_DELTA", "delta": [{"op": "add", "path": path, "value": value}]})
}

fn with(mut event: Value, members: Value) -> Value {
    event.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    event
}

#[test]
fn deltas_of_several_items_are_joined_between_other_events() {
    let custom = json!({"type": "CUSTOM", "name": "c", "value": 1});
    let found = short(&[
        start("a"),
        start("b"),
        text("a", "1"),
        text("b", "2"),
        text("a", ""),
        text("a", "3"),
        custom.clone(),
        text("b", "4"),
        text("a", "5"),
        text("b", "6"),
        end("a"),
    ]);
    let wanted =
        [start("a"), start("b"), text("a", "13"), text("b", "2"), custom, text("b", "46"), text("a", "5"), end("a")];
    assert_eq!(found, wanted);
}

#[test]
fn a_joined_event_has_the_first_timestamp_all_metadata_and_no_raw_event() {
    let found = short(&[
        start("a"),
        with(text("a", "1"), json!({"metadata": {"k": 1, "l": {"x": 1}}, "rawEvent": {"n": 1}})),
        with(text("a", "2"), json!({"timestamp": 7, "metadata": {"l": {"y": 2}}})),
        with(text("a", "3"), json!({"timestamp": 9, "rawEvent": {"n": 2}})),
        with(text("a", ""), json!({"rawEvent": {"n": 3}})),
        end("a"),
        with(end("b"), json!({"type": "RAW", "event": {"n": 4}, "rawEvent": 5})),
    ]);
    assert_eq!(found[1], with(text("a", "123"), json!({"timestamp": 7, "metadata": {"k": 1, "l": {"y": 2}}})));
    assert_eq!(found[3]["rawEvent"], 5);
}

#[test]
fn a6_changes_of_the_state_are_joined_to_the_shorter_form() {
    let large = json!({"text": "x".repeat(500)});
    // Patches of a large state stay patches, those of a small state become a snapshot.
    let found = short(&[snapshot(large.clone()), start("a"), set("/a", json!(1)), text("a", "1"), set("/b", json!(2))]);
    let patch = json!([{"op": "add", "path": "/a", "value": 1}, {"op": "add", "path": "/b", "value": 2}]);
    assert_eq!(
        found,
        [snapshot(large.clone()), start("a"), json!({"type": "STATE_DELTA", "delta": patch}), text("a", "1")]
    );
    let found = short(&[set("/a", json!(1)), set("/a", json!(2)), set("/a", json!(3))]);
    assert_eq!(found, [snapshot(json!({"a": 3}))]);
    // The changes that a snapshot replaces are left out.
    let found = short(&[set("/a", large.clone()), snapshot(json!({})), set("/b", json!(1))]);
    assert_eq!(found, [snapshot(json!({"b": 1}))]);
    // A patch that does not apply is left out, and the others stay.
    let missing = json!({"type": "STATE_DELTA", "delta": [{"op": "remove", "path": "/none"}]});
    let found = short(&[snapshot(large.clone()), start("a"), set("/a", json!(1)), missing, set("/b", json!(2))]);
    assert_eq!(found[2]["delta"], patch);
    // Extra members of an operation stay (rule E6).
    let odd = json!({"type": "STATE_DELTA", "delta": [{"op": "add", "path": "/b", "value": 2, "why": "so"}]});
    let found = short(&[snapshot(large), start("a"), set("/a", json!(1)), odd]);
    assert_eq!(found[2]["delta"][1]["why"], "so");
}

#[test]
fn o8_changes_of_the_state_by_different_owners_are_not_joined() {
    let by = |owner: &str, event| with(event, json!({"subagentRunId": owner}));
    let found = short(&[
        by("s", snapshot(json!(1))),
        by("s", snapshot(json!(2))),
        snapshot(json!(3)),
        by("z", snapshot(json!(4))),
    ]);
    assert_eq!(found, [by("s", snapshot(json!(2))), snapshot(json!(3)), by("z", snapshot(json!(4)))]);
}

#[test]
fn a_compactor_holds_back_little() {
    // Deltas: an event that is as long as the bound goes by itself.
    let part = "x".repeat(40 * 1024);
    let found = short(&[start("a"), text("a", &part), text("a", &part), text("a", "y"), end("a")]);
    assert_eq!(found[1..3], [text("a", &part), text("a", &format!("{part}y"))]);
    // State: as many patches as may come, one snapshot.
    let patches: Vec<Value> = (0..1000).map(|n| set("/n", json!(n))).collect();
    assert_eq!(short(&patches), [snapshot(json!({"n": 999}))]);
}

#[test]
fn r8_events_that_are_held_back_come_before_an_error() {
    let run = json!({"type": "RUN_STARTED", "threadId": "t", "runId": "r"});
    for (last, rule) in [(None, Rule::R8), (Some(start("a")), Rule::S2)] {
        let events = [run.clone(), start("a"), text("a", "1"), text("a", "2")];
        let mut items: Vec<_> = compact(events.iter().chain(&last)).collect();
        assert_eq!(items.pop().unwrap().unwrap_err().rule(), Some(rule));
        let last = items.pop().unwrap().unwrap();
        assert_eq!(serde_json::to_value(last).unwrap(), text("a", "12"));
        assert_eq!(items.len(), 2);
    }
}

// Preludes

/// Whether messages share an id, or shared it until one of them, which is still open, was dropped.
fn has_twins(snapshot: &Snapshot) -> bool {
    let mut seen = std::collections::HashSet::new();
    let is_other = |item: &ag_ui_stream::snapshot::OpenItem| {
        let is_thought = match item.kind {
            SubjectKind::TextMessage => false,
            SubjectKind::ReasoningMessage => true,
            _ => return false,
        };
        // Reasoning that was dropped is dropped again only by a snapshot that has other reasoning.
        snapshot.message(item.id()).map_or(is_thought, |held| {
            !matches!(held, Message::Activity(_)) && matches!(held, Message::Reasoning(_)) != is_thought
        })
    };
    let is_first = |message: &Message| seen.insert(message.id().clone());
    !snapshot.messages().iter().all(is_first) || snapshot.run().unwrap().open().any(is_other)
}

/// Whether the stream has a run that gives things of an earlier run to another owner.
fn changes_hands(error: &Error) -> bool {
    matches!(error.rule(), Some(Rule::O2 | Rule::O4 | Rule::O6))
}

/// Joins a stream after each of its events, and reads the rest. Returns how many points were tried, and which
/// were refused because of an owner.
fn join(stream: &Recorded, refused: &mut Vec<String>) -> usize {
    let name = &stream.name;
    let whole = Made::of(stream.builder().build(), stream.events.iter().cloned());
    if whole.error.as_ref().is_some_and(|error| !error.is_truncated()) {
        return 0;
    }
    let wanted = || whole.facts().for_a_viewer();
    let mut pipeline = stream.builder().build();
    let mut points = 0;
    let mut given = 0;
    for (at, event) in stream.events.iter().enumerate() {
        pipeline.push(event.clone()).unwrap();
        given += std::iter::from_fn(|| pipeline.pop()).count();
        if pipeline.snapshot().run().is_none() || has_twins(pipeline.snapshot()) {
            continue;
        }
        points += 1;
        let raw = pipeline.raw_prelude().into_iter().map(ag_ui_stream::Raw::from);
        let rest = stream.events[at + 1..].iter().filter_map(|event| event.raw().cloned());
        let by_raw = Made::of(Pipeline::new(), raw.chain(rest));
        let rest = whole.items[given..].iter().filter_map(Item::event).cloned();
        // Ids that the boundary made (rule B1) differ.
        let is_raw = !whole.items.iter().filter_map(Item::warning).any(|warning| warning.rule == Rule::B1);
        let by_event = Made::of(Pipeline::new(), pipeline.prelude().into_iter().chain(rest));
        for (made, form) in [(by_raw, "as sent"), (by_event, "as verified")].into_iter().skip(usize::from(!is_raw)) {
            if made.error.as_ref().is_some_and(changes_hands) {
                refused.push(format!("{name} {form} at {at}: {}", made.error.unwrap()));
                continue;
            }
            let prelude = pipeline.raw_prelude().join("\n");
            assert_eq!(
                made.error.as_ref().map(Error::rule),
                whole.error.as_ref().map(Error::rule),
                "{name} {form} at {at}: {:?}\n{prelude}",
                made.error
            );
            assert_eq!(made.facts().for_a_viewer(), wanted(), "{name} {form} at {at}:\n{prelude}");
        }
    }
    points
}

#[test]
fn a_viewer_that_joins_at_any_point_gets_the_same_conversation() {
    let mut refused = Vec::new();
    let points: usize = recorded().iter().map(|stream| join(stream, &mut refused)).sum();
    assert!(points > 1000, "{points}");
    assert!(refused.is_empty(), "{refused:#?}");
}

#[test]
fn a_viewer_that_joins_a_random_stream_gets_the_same_conversation() {
    let mut refused = Vec::new();
    let streams = (0..1000).map(|seed| Recorded::new(format!("seed {seed}"), streams::stream(seed)));
    let points: usize = streams.map(|stream| join(&stream, &mut refused)).sum();
    assert!(points > 2000, "{points}");
    // The exception that the documentation names: a thing of an earlier run whose owner changes.
    assert!(refused.len() * 20 < points, "{} of {points}: {refused:#?}", refused.len());
}
