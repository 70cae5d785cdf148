//! Endless producers of each kind, against the bound on memory that follows from [`Limits`].
//!
//! Each producer goes on until it is refused, or for ever: long enough to see that nothing grows. The
//! figures are printed with `--nocapture`, and `docs/reliability.md` explains them.
//!
//! The allocator counts for the whole process, so one test runs at a time.

#![allow(missing_docs, reason = "a test")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "a test fails by panicking")]

use std::alloc::System;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ag_ui_stream::error::{Limit, LimitStage};
use ag_ui_stream::machine::{Machine, Push, Repairs};
use ag_ui_stream::{Error, Event, Limits, Options, Rule};
use serde_json::{Value, json};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn allocated() -> usize {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated - stats.bytes_deallocated
}

/// What is held that was not before; the harness of the tests may have given back a little.
fn since(before: usize) -> usize {
    allocated().saturating_sub(before)
}

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

/// Small, so that each is met soon.
fn small() -> Limits {
    Limits {
        max_event_bytes: 64 * KIB,
        max_event_values: 4 * KIB,
        max_id_bytes: 256,
        max_document_bytes: MIB,
        max_patch_operations: 100,
        max_messages: 500,
        max_conversation_bytes: MIB,
        max_open_items: 200,
        max_runs: 20,
        ..Limits::default()
    }
}

/// The bytes that are held at most, as `Limits` says: what the conversation takes, and what verification
/// knows of its items; the documents; a quarter more for buffers.
fn bound(limits: Limits) -> usize {
    let counted = 2 * limits.max_conversation_bytes + limits.max_document_bytes;
    counted + counted / 4
}

/// How it went with a producer.
struct Outcome {
    /// The number of events taken.
    taken: usize,
    /// The most bytes that were held.
    peak: usize,
    warnings: Vec<Rule>,
    error: Option<Error>,
}

impl Outcome {
    /// It was refused by this limit, which is named with its value.
    fn assert_refused(&self, limit: Limit, max: usize) {
        let error = self.error.as_ref().unwrap_or_else(|| panic!("{} events were not refused", self.taken));
        let Error::LimitExceeded(exceeded) = error else { panic!("{error}") };
        assert_eq!((exceeded.limit, exceeded.max, exceeded.stage), (limit, max, LimitStage::Pipeline), "{error}");
        let text = error.to_string();
        assert!(text.contains(&limit.to_string()) && text.contains(&max.to_string()), "{text}");
    }

    fn assert_accepted(&self) {
        assert_eq!(self.error, None);
    }
}

/// Pushes what the producer sends until it is refused, up to a number of events.
fn produce(
    what: &str,
    options: Options,
    limits: Limits,
    most: usize,
    mut event: impl FnMut(usize) -> Value,
) -> Outcome {
    let before = allocated();
    let mut pipeline = options.limits(limits).build();
    let mut outcome = Outcome { taken: 0, peak: 0, warnings: Vec::new(), error: None };
    let mut push = |event: Value, outcome: &mut Outcome| {
        let text = event.to_string();
        drop(event);
        let error = pipeline.push(text.as_str()).err();
        outcome.peak = outcome.peak.max(since(before).saturating_sub(text.len()));
        while let Some(update) = pipeline.pop() {
            if let Some(warning) = update.warning() {
                if outcome.warnings.len() < 200 {
                    outcome.warnings.push(warning.rule);
                }
            }
        }
        outcome.error = error;
        outcome.error.is_none()
    };
    push(json!({"type": "RUN_STARTED", "threadId": "t", "runId": "r"}), &mut outcome);
    for at in 0..most {
        if !push(event(at), &mut outcome) {
            break;
        }
        outcome.taken += 1;
    }
    let bound = bound(limits);
    println!("{what}: {} events, {} KiB held at most, bound {} KiB", outcome.taken, outcome.peak / KIB, bound / KIB);
    assert!(outcome.peak <= bound, "{what}: {} bytes held, {bound} allowed", outcome.peak);
    outcome
}

/// A producer of one kind of event.
fn endless(what: &str, event: impl FnMut(usize) -> Value) -> Outcome {
    produce(what, Options::new(), small(), 20_000, event)
}

/// A producer of several events a turn.
fn turns<const N: usize>(what: &str, turn: impl Fn(usize) -> [Value; N]) -> Outcome {
    endless(what, |at| turn(at / N).into_iter().nth(at % N).unwrap())
}

fn start(kind: &str, id: &str) -> Value {
    json!({"type": kind, "messageId": id})
}

#[test]
fn deltas_without_end() {
    let _alone = alone();
    let deltas = |what, first: Value, next: Value| {
        let outcome = endless(what, |at| if at == 0 { first.clone() } else { next.clone() });
        outcome.assert_refused(Limit::ConversationBytes, small().max_conversation_bytes);
        assert!(outcome.taken * 100 > MIB / 2, "refused after {} deltas", outcome.taken);
    };
    let delta = "x".repeat(100);
    deltas(
        "text",
        start("TEXT_MESSAGE_START", "m"),
        json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": delta}),
    );
    deltas(
        "text with metadata",
        start("TEXT_MESSAGE_START", "m"),
        json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": delta, "metadata": {"a": 1}}),
    );
    deltas(
        "chunks",
        json!({"type": "TEXT_MESSAGE_CHUNK", "messageId": "m", "delta": delta}),
        json!({"type": "TEXT_MESSAGE_CHUNK", "delta": delta}),
    );
    deltas(
        "arguments",
        json!({"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "f"}),
        json!({"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": delta}),
    );
    deltas(
        "reasoning",
        json!({"type": "REASONING_MESSAGE_START", "messageId": "m", "role": "reasoning"}),
        json!({"type": "REASONING_MESSAGE_CONTENT", "messageId": "m", "delta": delta}),
    );
}

#[test]
fn metadata_without_end() {
    let _alone = alone();
    let event = |at: usize, key: String| match at {
        0 => start("TEXT_MESSAGE_START", "m"),
        _ => json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "", "metadata": {key: "x".repeat(100)}}),
    };
    endless("metadata of new keys", |at| event(at, format!("key {at}")))
        .assert_refused(Limit::ConversationBytes, small().max_conversation_bytes);
    // A key that is set again takes no more than before.
    endless("metadata of few keys", |at| event(at, format!("key {}", at % 10))).assert_accepted();
}

#[test]
fn messages_without_end() {
    let _alone = alone();
    turns("messages", |at| {
        let id = format!("m{at}");
        [start("TEXT_MESSAGE_START", &id), start("TEXT_MESSAGE_END", &id)]
    })
    .assert_refused(Limit::Messages, small().max_messages);
    let many = Limits { max_messages: usize::MAX, ..small() };
    produce("messages, by their bytes", Options::new(), many, 20_000, |at| {
        let kind = if at % 2 == 0 { "TEXT_MESSAGE_START" } else { "TEXT_MESSAGE_END" };
        start(kind, &format!("m{}", at / 2))
    })
    .assert_refused(Limit::ConversationBytes, many.max_conversation_bytes);
    endless(
        "results",
        |at| json!({"type": "TOOL_CALL_RESULT", "messageId": format!("m{at}"), "toolCallId": "c", "content": ""}),
    )
    .assert_refused(Limit::Messages, small().max_messages);
    endless("messages in snapshots", |at| {
        let message = |at| json!({"id": format!("m{at}"), "role": "user", "content": ""});
        json!({"type": "MESSAGES_SNAPSHOT", "messages": (0..at).map(message).collect::<Vec<_>>()})
    })
    .assert_refused(Limit::Messages, small().max_messages);
}

#[test]
fn results_for_new_calls_without_end() {
    let _alone = alone();
    // One message, replaced each time; the tally of calls grows (rule R9).
    turns("calls on one message", |at| {
        let id = format!("c{at}");
        let call = |kind: &str| json!({"type": kind, "toolCallId": id});
        let mut start = call("TOOL_CALL_START");
        start["toolCallName"] = "f".into();
        start["parentMessageId"] = "m".into();
        [start, call("TOOL_CALL_END")]
    })
    .assert_refused(Limit::ConversationBytes, small().max_conversation_bytes);
}

#[test]
fn open_items_without_end() {
    let _alone = alone();
    let max = small().max_open_items;
    endless("open messages", |at| start("TEXT_MESSAGE_START", &format!("m{at}"))).assert_refused(Limit::OpenItems, max);
    endless("open reasoning", |at| start("REASONING_START", &format!("m{at}"))).assert_refused(Limit::OpenItems, max);
    endless("open calls", |at| json!({"type": "TOOL_CALL_START", "toolCallId": format!("c{at}"), "toolCallName": "f"}))
        .assert_refused(Limit::OpenItems, max);
    endless("open steps", |at| json!({"type": "STEP_STARTED", "stepName": format!("s{at}")}))
        .assert_refused(Limit::OpenItems, max);
    endless(
        "running subagents",
        |at| json!({"type": "SUBAGENT_STARTED", "subagentRunId": format!("a{at}"), "name": "n"}),
    )
    .assert_refused(Limit::OpenItems, max);
    endless("lanes of chunks", |at| {
        json!({"type": "TEXT_MESSAGE_CHUNK", "messageId": format!("m{at}"), "subagentRunId": format!("a{at}"), "delta": "x"})
    })
    .assert_refused(Limit::OpenItems, max);
}

#[test]
fn items_that_open_and_close_without_end() {
    let _alone = alone();
    let max = small().max_conversation_bytes;
    turns("steps", |at| {
        let step = |kind: &str| json!({"type": kind, "stepName": format!("step {at}")});
        [step("STEP_STARTED"), step("STEP_FINISHED")]
    })
    .assert_refused(Limit::ConversationBytes, max);
    turns("subagents", |at| {
        let subagent = |kind: &str| json!({"type": kind, "subagentRunId": format!("a{at}")});
        let mut start = subagent("SUBAGENT_STARTED");
        start["name"] = "n".into();
        [start, subagent("SUBAGENT_FINISHED")]
    })
    .assert_refused(Limit::ConversationBytes, max);
    turns("reasoning spans", |at| {
        let id = format!("m{at}");
        [start("REASONING_START", &id), start("REASONING_END", &id)]
    })
    .assert_refused(Limit::ConversationBytes, max);
    turns("one step, again and again", |_| {
        let step = |kind: &str| json!({"type": kind, "stepName": "step"});
        [step("STEP_STARTED"), step("STEP_FINISHED")]
    })
    .assert_accepted();
}

#[test]
fn halves_of_characters_without_end() {
    let _alone = alone();
    let limits = Limits { max_open_items: 500, ..small() };
    let half = |at: usize| {
        let half = r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"x\ud83d"}"#;
        half.replace("\"m\"", &format!("\"m{at}\""))
    };
    let before = allocated();
    let mut pipeline = Options::new().limits(limits).build();
    pipeline.push(r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#).unwrap();
    let mut peak = 0;
    let refused = (0..1000).find_map(|at| {
        let started = pipeline.push(start("TEXT_MESSAGE_START", &format!("m{at}")).to_string());
        let error = started.and_then(|()| pipeline.push(half(at))).err();
        while pipeline.pop().is_some() {}
        peak = peak.max(since(before));
        error
    });
    let Some(Error::LimitExceeded(exceeded)) = refused else { panic!("{refused:?}") };
    assert!(matches!(exceeded.limit, Limit::OpenItems | Limit::Messages), "{exceeded}");
    assert!(peak <= bound(limits), "{peak}");
}

#[test]
fn long_ids() {
    let _alone = alone();
    let long = "i".repeat(small().max_id_bytes + 1);
    let fits = &long[1..];
    let events = |id: &str| {
        [
            start("TEXT_MESSAGE_START", id),
            json!({"type": "TEXT_MESSAGE_CHUNK", "messageId": id, "delta": "x"}),
            json!({"type": "TEXT_MESSAGE_CHUNK", "messageId": "m", "delta": "x", "name": id}),
            json!({"type": "TEXT_MESSAGE_START", "messageId": "m", "subagentRunId": id}),
            json!({"type": "TOOL_CALL_START", "toolCallId": id, "toolCallName": "f"}),
            json!({"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "f", "parentMessageId": id}),
            json!({"type": "TOOL_CALL_RESULT", "messageId": id, "toolCallId": "c", "content": ""}),
            json!({"type": "ACTIVITY_SNAPSHOT", "messageId": id, "activityType": "plan", "content": {}}),
            json!({"type": "MESSAGES_SNAPSHOT", "messages": [{"id": id, "role": "user", "content": ""}]}),
            json!({"type": "SUBAGENT_STARTED", "subagentRunId": id, "name": "n"}),
            json!({"type": "STATE_SNAPSHOT", "snapshot": {}, "subagentRunId": id}),
        ]
    };
    let verdict = |event: &Value, typed: bool| {
        let mut pipeline = Options::new().limits(small()).build();
        pipeline.push(r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#).unwrap();
        if typed {
            let (event, _) = Event::from_value(event).unwrap();
            return pipeline.push(event.unwrap());
        }
        pipeline.push(event.to_string())
    };
    for (long, fits) in events(&long).iter().zip(&events(fits)) {
        for typed in [false, true] {
            let error = verdict(long, typed).unwrap_err();
            let Error::LimitExceeded(exceeded) = &error else { panic!("{error}: {long}") };
            assert_eq!((exceeded.limit, exceeded.max), (Limit::IdBytes, small().max_id_bytes), "{long}");
            verdict(fits, typed).unwrap_or_else(|error| panic!("{error}: {fits}"));
        }
    }
}

#[test]
fn runs_without_end() {
    let _alone = alone();
    let limits = small();
    let mut pipeline = Options::new().limits(limits).build();
    let mut held = Vec::with_capacity(4000);
    let before = allocated();
    for at in 0..4000 {
        let interrupt = json!({"id": format!("i{at}"), "reason": "r".repeat(100)});
        for event in [
            json!({"type": "RUN_STARTED", "threadId": "t", "runId": format!("r{at}")}),
            json!({"type": "STEP_STARTED", "stepName": "s"}),
            json!({"type": "STEP_FINISHED", "stepName": "s"}),
            json!({"type": "RUN_FINISHED", "threadId": "t", "runId": format!("r{at}"),
                "outcome": {"type": "interrupt", "interrupts": [interrupt]}}),
        ] {
            pipeline.push(event.to_string()).unwrap();
            while pipeline.pop().is_some() {}
        }
        held.push(since(before));
    }
    assert_eq!(pipeline.snapshot().runs().len(), limits.max_runs);
    assert_eq!(pipeline.snapshot().runs().next().unwrap().run_id.as_ref().unwrap().as_str(), "r3980");
    let peak = |runs: &[usize]| runs.iter().copied().max().unwrap();
    let (first, second) = (peak(&held[..2000]), peak(&held[2000..]));
    println!("runs: 4000 runs, {} KiB held at most", second / KIB);
    // Besides the runs: up to 2,048 ids that may come again.
    assert!(first < 256 * KIB && second < first + first / 10, "{first} bytes, then {second}");
}

#[test]
fn messages_of_the_input_of_runs_without_end() {
    let _alone = alone();
    let run = |at: usize| format!("r{}", at / 2);
    produce("messages in the input of runs", Options::new(), small(), 20_000, |at| match at {
        0 => json!({"type": "RUN_FINISHED", "threadId": "t", "runId": "r"}),
        _ if at % 2 == 0 => json!({"type": "RUN_FINISHED", "threadId": "t", "runId": run(at - 1)}),
        _ => {
            let message = |n: usize| json!({"id": format!("m{at} {n}"), "role": "user", "content": "x"});
            let messages: Vec<Value> = (0..20).map(message).collect();
            let input = json!({"threadId": "t", "runId": run(at), "messages": messages, "tools": [], "context": [],
                "state": {}, "forwardedProps": {}});
            json!({"type": "RUN_STARTED", "threadId": "t", "runId": run(at), "input": input})
        }
    })
    .assert_refused(Limit::Messages, small().max_messages);
}

#[test]
fn a_documents_growth_without_end() {
    let _alone = alone();
    let grown = endless(
        "patches that add",
        |at| json!({"type": "STATE_DELTA", "delta": [{"op": "add", "path": format!("/key{at}"), "value": "x".repeat(200)}]}),
    );
    grown.assert_accepted();
    assert_eq!(grown.warnings.last(), Some(&Rule::A6));
    // Keys count as well: each copy takes what the key takes.
    let copied = endless("patches that copy what they copied", |at| match at {
        0 => json!({"type": "STATE_SNAPSHOT", "snapshot": {"a": {"k".repeat(10_000): 1}}}),
        _ => json!({"type": "STATE_DELTA", "delta": [{"op": "copy", "from": "", "path": format!("/c{at}")}]}),
    });
    copied.assert_accepted();
    assert_eq!(copied.warnings.last(), Some(&Rule::A6));
    let activities = endless("activities", |at| {
        let content = json!({"text": "x".repeat(2000)});
        json!({"type": "ACTIVITY_SNAPSHOT", "messageId": format!("m{at}"), "activityType": "plan", "content": content})
    });
    let Some(Error::LimitExceeded(exceeded)) = &activities.error else { panic!("{:?}", activities.error) };
    assert!(matches!(exceeded.limit, Limit::DocumentBytes | Limit::Messages | Limit::ConversationBytes), "{exceeded}");
}

#[test]
fn operations_of_a_patch() {
    let _alone = alone();
    let patch = |count: usize| {
        let operation = json!({"op": "add", "path": "/list/0", "value": 0});
        json!({"type": "STATE_DELTA", "delta": vec![operation; count]})
    };
    let state = json!({"type": "STATE_SNAPSHOT", "snapshot": {"list": []}});
    let push = |count: usize| {
        let events = [state.clone(), patch(count)];
        produce("operations", Options::new(), small(), 2, |at| events[at].clone())
    };
    let (most, more) = (push(small().max_patch_operations), push(small().max_patch_operations + 1));
    assert_eq!((most.error, most.warnings), (None, vec![]));
    assert_eq!((more.error, more.warnings), (None, vec![Rule::A6]));
}

#[test]
fn values_of_an_event() {
    let _alone = alone();
    let limits = small();
    let raw = |values: usize| format!(r#"{{"type":"RAW","event":[{}0]}}"#, "0,".repeat(values - 1));
    // The event, its type, the array, and what is in it.
    let most = limits.max_event_values - 3;
    for (values, fits) in [(most, true), (most + 1, false), (20 * KIB, false)] {
        let text = raw(values);
        let value: Value = serde_json::from_str(&text).unwrap();
        let verdict = |text: Option<&str>| {
            let mut pipeline = Options::new().limits(limits).build();
            pipeline.push(r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#).unwrap();
            while pipeline.pop().is_some() {}
            let before = allocated();
            let result = match text {
                Some(text) => pipeline.push(text),
                None => pipeline.push(&value),
            };
            (result, since(before))
        };
        for (result, taken) in [verdict(Some(&text)), verdict(None)] {
            if fits {
                assert_eq!(result, Ok(()));
                continue;
            }
            let Err(Error::LimitExceeded(exceeded)) = result else { panic!("{result:?}") };
            assert_eq!((exceeded.limit, exceeded.max), (Limit::EventValues, limits.max_event_values));
            // Refused before memory is taken for what is in it.
            assert!(taken < 16 * KIB, "{taken}");
        }
    }
}

#[test]
fn values_are_counted_within_strings_and_around_empty_containers_as_they_are() {
    let count = |text: &str| {
        let fits = |max: usize| {
            let limits = Limits { max_event_values: max, ..Limits::default() };
            let mut pipeline = Options::new().limits(limits).build();
            let text = format!(r#"{{"type":"RUN_ERROR","message":"m","x":{text}}}"#);
            pipeline.push(text).is_ok()
        };
        // The event and two members, and what stands under the third.
        (1..100).find(|max| fits(*max)).unwrap() - 3
    };
    for (text, values) in [
        ("0", 1),
        ("[]", 1),
        ("{}", 1),
        ("[ ]", 1),
        ("[[],{}]", 3),
        (r#"{"a":[1,{"b":2}],"c":3}"#, 6),
        (r#""[,,,{""#, 1),
        (r#"["\"[,","\\",","]"#, 4),
        (r#"{"a,[b":1}"#, 2),
    ] {
        assert_eq!(count(text), values, "{text}");
    }
}

#[test]
fn warnings_of_an_event() {
    let _alone = alone();
    let unknown: String = (0..3000).map(|key| format!(r#","u{key}":1"#)).collect();
    let text = format!(r#"{{"type":"RUN_ERROR","message":"m"{unknown}}}"#);
    let before = allocated();
    let mut pipeline = Options::new().limits(small()).build();
    pipeline.push(text.as_str()).unwrap();
    let taken = since(before);
    let warnings: Vec<_> =
        std::iter::from_fn(|| pipeline.pop()).filter_map(|update| update.warning().cloned()).collect();
    assert_eq!(warnings.len(), 101);
    assert!(warnings[100].message.contains("2900 more warnings"), "{}", warnings[100]);
    assert!(taken < 512 * KIB, "{taken}");

    // Those of assembly too: a snapshot in which one id stands a thousand times (rule A10).
    let message = json!({"id": "m", "role": "user", "content": ""});
    let snapshot = json!({"type": "MESSAGES_SNAPSHOT", "messages": vec![message; 1000]});
    let outcome = produce("a message restated in one snapshot", Options::new(), small(), 1, |_| snapshot.clone());
    assert_eq!(outcome.warnings.len(), 101);
}

#[test]
fn what_is_not_kept_takes_nothing() {
    let _alone = alone();
    let before = |what, event: Value| {
        let outcome = produce(what, Options::new(), small(), 5000, |_| event.clone());
        outcome.assert_accepted();
        assert!(outcome.peak < 256 * KIB, "{what}: {}", outcome.peak);
    };
    before("raw events", json!({"type": "RAW", "event": {"x": "y".repeat(1000)}}));
    before("custom events", json!({"type": "CUSTOM", "name": "n", "value": "y".repeat(1000)}));
    before("unknown events", json!({"type": "SHOUT", "value": "y".repeat(1000)}));
    before("snapshots of the state", json!({"type": "STATE_SNAPSHOT", "snapshot": {"x": "y".repeat(1000)}}));
    before(
        "encrypted values",
        json!({"type": "REASONING_ENCRYPTED_VALUE", "subtype": "message", "entityId": "none",
        "encryptedValue": "y".repeat(1000)}),
    );
    before(
        "messages restated",
        json!({"type": "MESSAGES_SNAPSHOT", "messages": [{"id": "m", "role": "user",
        "content": "y".repeat(1000)}]}),
    );
}

#[test]
fn faults_that_are_repaired_without_end() {
    let _alone = alone();
    let repaired = |what, event: fn(usize) -> Value| {
        let outcome = produce(what, Options::new().repairs(Repairs::ALL), small(), 20_000, event);
        assert!(matches!(outcome.error, Some(Error::LimitExceeded(_))), "{:?}", outcome.error);
    };
    repaired(
        "text without a START",
        |at| json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": format!("m{at}"), "delta": "x"}),
    );
}

#[test]
fn thoughts_of_older_producers_without_end() {
    let _alone = alone();
    turns("retired events", |_| {
        ["THINKING_START", "THINKING_TEXT_MESSAGE_START", "THINKING_TEXT_MESSAGE_END", "THINKING_END"]
            .map(|kind| json!({"type": kind}))
    })
    .assert_refused(Limit::Messages, small().max_messages);
}

#[test]
fn what_was_there_before_counts_and_is_not_refused() {
    let _alone = alone();
    let limits = Limits { max_messages: 2, ..small() };
    let history = (0..5).map(|at| ag_ui_stream::message::UserMessage::new(format!("h{at}"), "x").into());
    let mut pipeline = Options::new().limits(limits).history(history).build();
    pipeline.push(r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#).unwrap();
    pipeline.push(json!({"type": "STATE_SNAPSHOT", "snapshot": 1}).to_string()).unwrap();
    let fewer = json!({"type": "MESSAGES_SNAPSHOT", "messages": [
        {"id": "h0", "role": "user", "content": "x"}, {"id": "h1", "role": "user", "content": "x"},
        {"id": "h2", "role": "user", "content": "x"}]});
    pipeline.push(fewer.to_string()).unwrap();
    let error = pipeline.push(start("TEXT_MESSAGE_START", "m").to_string()).unwrap_err();
    let Error::LimitExceeded(exceeded) = &error else { panic!("{error}") };
    assert_eq!((exceeded.limit, exceeded.max), (Limit::Messages, 2));
    assert_eq!(pipeline.snapshot().run().unwrap().outcome.as_str(), "rejected");
}

#[cfg(feature = "json-lines")]
#[test]
fn lines_and_frames_without_end() {
    use ag_ui_stream::codec::{Decoder, Format};

    let _alone = alone();
    let formats: [(Format, &[u8]); 3] = [
        (Format::Sse, b"data: xxxxxxxxxx"),
        (Format::JsonLines, b"xxxxxxxxxxxxxxxx"),
        (Format::Sse, b": comment without end"),
    ];
    for (format, piece) in formats {
        let before = allocated();
        let mut decoder = Decoder::new(format).with_limits(small());
        let mut peak = 0;
        let refused = (0..100_000).find_map(|_| {
            let error = decoder.push(piece).err().or_else(|| decoder.fault());
            while decoder.pop().is_some() {}
            peak = peak.max(since(before));
            error
        });
        println!("{format:?}, a line without end: {} KiB held at most", peak / KIB);
        assert!(peak <= 2 * small().max_event_bytes + KIB, "{peak}");
        if let Some(error) = refused {
            let Error::LimitExceeded(exceeded) = error else { panic!("{error}") };
            assert_eq!((exceeded.limit, exceeded.stage), (Limit::EventBytes, LimitStage::Decoder));
        } else {
            assert!(piece.starts_with(b":"), "{format:?}");
        }
    }
}

#[cfg(feature = "stream")]
#[test]
fn events_for_a_half_that_is_not_polled() {
    use ag_ui_stream::EventStreamExt;
    use ag_ui_stream::combinator::{SplitCapacity, split_with_capacity};
    use futures::{FutureExt, StreamExt, stream};

    let _alone = alone();
    let capacity = SplitCapacity { items: 100, bytes: 64 * KIB };
    let event = |at: usize| match at {
        0 => json!({"type": "RUN_STARTED", "threadId": "t", "runId": "r"}).to_string(),
        _ => json!({"type": "RAW", "event": "x".repeat(10_000)}).to_string(),
    };
    let before = allocated();
    let updates = stream::iter((0..).map(event)).updates();
    let (events, mut snapshots) = split_with_capacity(updates, capacity);
    let mut peak = 0;
    for _ in 0..1000 {
        let _ = snapshots.next().now_or_never();
        peak = peak.max(since(before));
    }
    println!("split, a half that is not polled: {} KiB held at most", peak / KIB);
    assert!(peak < 4 * capacity.bytes, "{peak}");
    drop(events);
}

/// By hand, with 1 GiB of memory: `cargo test --release --test limits -- --ignored --nocapture`.
#[test]
#[ignore = "takes hundreds of megabytes"]
fn with_the_defaults() {
    let _alone = alone();
    let limits = Limits::default();
    let delta = "x".repeat(64 * KIB);
    produce("text", Options::new(), limits, 10_000, |at| match at {
        0 => start("TEXT_MESSAGE_START", "m"),
        _ => json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": delta}),
    })
    .assert_refused(Limit::ConversationBytes, limits.max_conversation_bytes);
    produce("messages", Options::new(), limits, 1_000_000, |at| {
        start(if at % 2 == 0 { "TEXT_MESSAGE_START" } else { "TEXT_MESSAGE_END" }, &format!("message {}", at / 2))
    })
    .assert_refused(Limit::Messages, limits.max_messages);
    produce("steps", Options::new(), limits, 10_000_000, |at| {
        let kind = if at % 2 == 0 { "STEP_STARTED" } else { "STEP_FINISHED" };
        json!({"type": kind, "stepName": format!("step {}", at / 2)})
    })
    .assert_refused(Limit::ConversationBytes, limits.max_conversation_bytes);
    produce("open messages", Options::new(), limits, 1_000_000, |at| start("TEXT_MESSAGE_START", &format!("m{at}")))
        .assert_refused(Limit::OpenItems, limits.max_open_items);
    produce(
        "state",
        Options::new(),
        limits,
        3000,
        |at| json!({"type": "STATE_DELTA", "delta": [{"op": "add", "path": format!("/key{at}"), "value": delta}]}),
    )
    .assert_accepted();
    produce(
        "the worst of events",
        Options::new(),
        limits,
        1,
        |_| json!({"type": "RAW", "event": vec![json!([]); limits.max_event_values - 4]}),
    )
    .assert_accepted();
}
