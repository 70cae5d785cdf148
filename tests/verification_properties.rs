//! Verification against a naive model, which reads the whole stream again for each event, in the words of
//! the rules.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "helpers of tests")]

mod support;

use ag_ui_stream::error::{Subject, SubjectKind};
use ag_ui_stream::{Error, Rule};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};
use support::verified::*;
use support::*;

// The model

fn text<'a>(event: &'a Value, key: &str) -> Option<&'a str> {
    event.get(key).and_then(Value::as_str)
}

fn kind_of(event: &Value) -> &str {
    text(event, "type").unwrap()
}

/// What START opens and END closes: its kind, which part of it the event is, and its key: the id,
/// for a step with its owner.
type Thing = (SubjectKind, &'static str, (String, Option<String>));

/// The thing that an event is a part of.
fn thing(event: &Value) -> Option<Thing> {
    let tag = || text(event, "subagentRunId").map(str::to_owned);
    let by = |key: &str| (text(event, key).unwrap().to_owned(), None);
    Some(match kind_of(event) {
        "TEXT_MESSAGE_START" => (SubjectKind::TextMessage, "START", by("messageId")),
        "TEXT_MESSAGE_CONTENT" => (SubjectKind::TextMessage, "CONTENT", by("messageId")),
        "TEXT_MESSAGE_END" => (SubjectKind::TextMessage, "END", by("messageId")),
        "TOOL_CALL_START" => (SubjectKind::ToolCall, "START", by("toolCallId")),
        "TOOL_CALL_ARGS" => (SubjectKind::ToolCall, "CONTENT", by("toolCallId")),
        "TOOL_CALL_END" => (SubjectKind::ToolCall, "END", by("toolCallId")),
        "REASONING_START" => (SubjectKind::ReasoningSpan, "START", by("messageId")),
        "REASONING_END" => (SubjectKind::ReasoningSpan, "END", by("messageId")),
        "REASONING_MESSAGE_START" => (SubjectKind::ReasoningMessage, "START", by("messageId")),
        "REASONING_MESSAGE_CONTENT" => (SubjectKind::ReasoningMessage, "CONTENT", by("messageId")),
        "REASONING_MESSAGE_END" => (SubjectKind::ReasoningMessage, "END", by("messageId")),
        "STEP_STARTED" => (SubjectKind::Step, "START", (text(event, "stepName").unwrap().to_owned(), tag())),
        "STEP_FINISHED" => (SubjectKind::Step, "END", (text(event, "stepName").unwrap().to_owned(), tag())),
        "SUBAGENT_STARTED" => (SubjectKind::Subagent, "START", by("subagentRunId")),
        "SUBAGENT_FINISHED" | "SUBAGENT_ERROR" => (SubjectKind::Subagent, "END", by("subagentRunId")),
        _ => return None,
    })
}

/// What happened last to the thing that an event is about.
fn last<'a>(run: &'a [Value], event: &Value) -> Option<&'a str> {
    let (kind, _, key) = thing(event)?;
    let same =
        |other: &&Value| matches!(thing(other), Some((k, part, id)) if k == kind && id == key && part != "CONTENT");
    run.iter().rev().find(same).map(|event| thing(event).unwrap().1)
}

/// The open items at the end of these events of a run, in the order of the opening.
fn open_at_end(run: &[Value]) -> Vec<Subject> {
    let is_open = |(at, event): &(usize, &Value)| {
        thing(event).is_some_and(|(_, part, _)| part == "START") && last(&run[at + 1..], event).is_none()
    };
    let started = run.iter().enumerate().filter(is_open);
    started.filter_map(|(_, event)| thing(event)).map(|(kind, _, (id, _))| Subject::new(kind, id)).collect()
}

/// The run that is active after these events.
#[derive(Clone, Copy)]
struct Run<'a> {
    events: &'a [Value],
    /// Another came before it on the stream, so that there may be messages that it does not name.
    is_later: bool,
}

impl<'a> Run<'a> {
    fn of(stream: &'a [Value]) -> Self {
        let is_start = |event: &Value| kind_of(event) == "RUN_STARTED";
        let (before, events) = stream.split_at(stream.iter().rposition(is_start).unwrap());
        Self { events, is_later: before.iter().any(is_start) }
    }

    fn until(self, at: usize) -> Self {
        Self { events: &self.events[..at], ..self }
    }
}

/// The owner recorded for a message, tool call, reasoning or activity: `Some(None)` is the parent.
fn owner(run: Run<'_>, table: SubjectKind, id: &str) -> Option<Option<String>> {
    let mut owner: Option<Option<String>> = None;
    for (at, event) in run.events.iter().enumerate() {
        let tag = text(event, "subagentRunId").map(str::to_owned);
        let is = |key: &str| text(event, key) == Some(id);
        match (kind_of(event), table) {
            ("TEXT_MESSAGE_START", SubjectKind::TextMessage)
            | ("REASONING_START" | "REASONING_MESSAGE_START", SubjectKind::ReasoningMessage)
                if is("messageId") =>
            {
                owner.get_or_insert(tag);
            }
            ("TOOL_CALL_START", SubjectKind::ToolCall) if is("toolCallId") => {
                let inherited = || {
                    let parent = text(event, "parentMessageId")?;
                    self::owner(run.until(at), SubjectKind::TextMessage, parent)?
                };
                owner.get_or_insert_with(|| tag.or_else(inherited));
            }
            // A call with a tag makes the message that it names, if nobody spoke of it (A3) and it cannot
            // be one from before.
            ("TOOL_CALL_START", SubjectKind::TextMessage)
                if is("parentMessageId") && tag.is_some() && !run.is_later =>
            {
                let before = run.until(at);
                let other = self::owner(before, SubjectKind::Activity, id).is_some();
                if !other && !before.events.iter().any(|event| names_thought(event, id)) {
                    owner.get_or_insert(tag);
                }
            }
            ("TOOL_CALL_RESULT", SubjectKind::TextMessage) if is("messageId") => {
                owner.get_or_insert(tag);
            }
            ("ACTIVITY_SNAPSHOT", SubjectKind::Activity) if is("messageId") => {
                let before = run.until(at);
                let text = || self::owner(before, SubjectKind::TextMessage, id).is_some();
                let other = || text() || before.events.iter().any(|event| names_thought(event, id));
                if event.get("replace") != Some(&json!(false)) {
                    owner = Some(tag);
                } else if owner.is_some() || !other() {
                    owner.get_or_insert(tag);
                }
            }
            ("MESSAGES_SNAPSHOT" | "RUN_STARTED", _) => {
                let list = event.get("messages").or_else(|| event.get("input")?.get("messages"));
                for message in list.and_then(Value::as_array).into_iter().flatten() {
                    let its = match text(message, "role").unwrap() {
                        "reasoning" => SubjectKind::ReasoningMessage,
                        "activity" => SubjectKind::Activity,
                        _ => SubjectKind::TextMessage,
                    };
                    let mut calls = message.get("toolCalls").and_then(Value::as_array).into_iter().flatten();
                    if (its == table && text(message, "id") == Some(id))
                        || (table == SubjectKind::ToolCall && calls.any(|call| text(call, "id") == Some(id)))
                    {
                        let tag = text(message, "subagentRunId").map(str::to_owned);
                        if kind_of(event) == "MESSAGES_SNAPSHOT" {
                            owner = Some(tag);
                        } else {
                            owner.get_or_insert(tag);
                        }
                    }
                }
            }
            _ => {}
        }
    }
    owner
}

/// Whether an event names a reasoning message; a span does not count.
fn names_thought(event: &Value, id: &str) -> bool {
    let list = event.get("messages").or_else(|| event.get("input")?.get("messages"));
    let mut messages = list.and_then(Value::as_array).into_iter().flatten();
    (kind_of(event) == "REASONING_MESSAGE_START" && text(event, "messageId") == Some(id))
        || messages.any(|message| text(message, "role") == Some("reasoning") && text(message, "id") == Some(id))
}

/// The rule that an event breaks after these.
fn breaks(before: &[Value], event: &Value) -> Option<Rule> {
    let boundary = |event: &&Value| matches!(kind_of(event), "RUN_STARTED" | "RUN_FINISHED" | "RUN_ERROR");
    let event_type = kind_of(event);
    match before.iter().rev().find(boundary).map(kind_of) {
        None if matches!(event_type, "RUN_STARTED" | "RUN_ERROR") => return None,
        None => return Some(Rule::R1),
        Some("RUN_FINISHED") if matches!(event_type, "RUN_STARTED" | "RUN_ERROR") => return None,
        Some("RUN_ERROR") if event_type == "RUN_STARTED" => return None,
        Some("RUN_ERROR") if event_type == "RUN_FINISHED" && before.len() == 1 => return Some(Rule::R3),
        Some("RUN_FINISHED" | "RUN_ERROR") => return Some(Rule::R4),
        Some(_) => {}
    }
    let run = Run::of(before);
    let tag = text(event, "subagentRunId").map(str::to_owned);
    let foreign = |table, id: &str| tag.is_some() && owner(run, table, id).is_some_and(|owner| owner != tag);
    match event_type {
        "RUN_STARTED" => return Some(Rule::R2),
        "RUN_ERROR" => return None,
        "RUN_FINISHED" => return (!open_at_end(run.events).is_empty()).then_some(Rule::R3),
        "ACTIVITY_DELTA" => {
            return foreign(SubjectKind::Activity, text(event, "messageId").unwrap()).then_some(Rule::O6);
        }
        "REASONING_ENCRYPTED_VALUE" => {
            let id = text(event, "entityId").unwrap();
            let table = match text(event, "subtype").unwrap() {
                "tool-call" => SubjectKind::ToolCall,
                _ if owner(run, SubjectKind::TextMessage, id).is_some() => SubjectKind::TextMessage,
                _ => SubjectKind::ReasoningMessage,
            };
            return foreign(table, id).then_some(Rule::O6);
        }
        _ => {}
    }
    let (kind, part, (id, _)) = thing(event)?;
    let happened = last(run.events, event);
    match (kind, part) {
        (SubjectKind::Step, "START") => return (happened == Some("START")).then_some(Rule::S8),
        (SubjectKind::Step, _) => return (happened != Some("START")).then_some(Rule::S8),
        (SubjectKind::Subagent, "START") => {
            let parent = text(event, "parentSubagentRunId");
            let announced = |parent| {
                run.events
                    .iter()
                    .any(|event| kind_of(event) == "SUBAGENT_STARTED" && text(event, "subagentRunId") == Some(parent))
            };
            return (happened.is_some() || !parent.is_none_or(announced)).then_some(Rule::O5);
        }
        (SubjectKind::Subagent, _) => return (happened != Some("START")).then_some(Rule::O5),
        (_, "START") if happened == Some("START") => return Some(Rule::S2),
        (_, "CONTENT" | "END") if happened != Some("START") => return Some(Rule::S2),
        _ => {}
    }
    let table = if kind == SubjectKind::ReasoningSpan { SubjectKind::ReasoningMessage } else { kind };
    let parent = text(event, "parentMessageId").and_then(|id| owner(run, SubjectKind::TextMessage, id));
    match (parent, &tag) {
        (Some(parent), Some(_)) if parent != tag => return Some(Rule::O4),
        (Some(parent), None) if owner(run, table, &id).is_some_and(|owner| owner != parent) => return Some(Rule::O4),
        _ => {}
    }
    foreign(table, &id).then_some(Rule::O2)
}

// The streams

const IDS: [&str; 3] = ["x", "y", ""];

fn messages() -> impl Strategy<Value = Value> {
    let owner = || select(vec![None, Some("a"), Some("")]);
    let role = select(vec!["assistant", "user", "reasoning", "activity", "tool"]);
    let message = (role, select(&IDS), owner(), select(&IDS)).prop_map(|(role, id, owner, call)| {
        let message = json!({"id": id, "role": role});
        let message = match role {
            "activity" => with(message, json!({"activityType": "plan", "content": {}})),
            "tool" => with(message, json!({"content": "x", "toolCallId": call})),
            "assistant" => with(
                message,
                json!({"toolCalls": [{"id": call, "type": "function", "function": {"name": "f", "arguments": ""}}]}),
            ),
            _ => with(message, json!({"content": "x"})),
        };
        owner.map_or(message.clone(), |owner| by(owner, message))
    });
    prop::collection::vec(message, 0..3).prop_map(Value::from)
}

fn events() -> impl Strategy<Value = Value> {
    let id = || select(&IDS);
    let item = (
        select(vec![
            text_start as fn(&str) -> Value,
            text_content,
            text_end,
            call_start,
            call_args,
            call_end,
            thought_start,
            thought_content,
            thought_end,
            reasoning_start,
            reasoning_end,
            step_started,
            step_finished,
            activity_snapshot,
            activity_delta,
        ]),
        id(),
    )
        .prop_map(|(event, id)| event(id));
    let call = (id(), id()).prop_map(|(parent, id)| with(call_start(id), json!({"parentMessageId": parent})));
    let kept = id().prop_map(|id| with(activity_snapshot(id), json!({"replace": false})));
    let result = (id(), id()).prop_map(|(message, call)| call_result(message, call));
    let value = (select(vec!["message", "tool-call"]), id()).prop_map(|(subtype, id)| encrypted_value(subtype, id));
    let standalone = select(vec![custom(), raw(), state_snapshot(), state_delta()]);
    let taggable = prop_oneof![20 => item, 3 => call, 1 => kept, 1 => result, 3 => value, 1 => standalone];
    let tagged = (taggable, select(vec![None, None, Some("a"), Some("")]))
        .prop_map(|(event, tag)| tag.map_or(event.clone(), |tag| by(tag, event)));
    let subagent = (
        select(vec![subagent_started as fn(&str) -> Value, subagent_started, subagent_finished, subagent_error]),
        select(vec!["a", "b", ""]),
    )
        .prop_map(|(event, id)| event(id));
    let child = (select(vec!["a", "b"]), select(vec!["a", "b", ""]))
        .prop_map(|(id, parent)| with(subagent_started(id), json!({"parentSubagentRunId": parent})));
    let run = prop_oneof![
        Just(run_started()),
        Just(run_finished()),
        Just(run_error()),
        messages().prop_map(|messages| {
            with(run_started(), json!({"input": {"threadId": "t", "runId": "r", "messages": messages}}))
        }),
    ];
    prop_oneof![20 => tagged, 2 => subagent, 1 => child, 1 => messages().prop_map(messages_snapshot), 2 => run]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    /// Each event, put after the legal ones before it, is judged as the model judges it.
    #[test]
    fn every_verdict_is_that_of_the_model(candidates in prop::collection::vec(events(), 0..48)) {
        let mut stream = if candidates.len() % 8 == 0 { Vec::new() } else { vec![run_started()] };
        for candidate in candidates {
            let rule = breaks(&stream, &candidate);
            stream.push(candidate);
            let driven = verify(&stream);
            match (rule, &driven.error) {
                (Some(rule), Some(Error::Violation(error))) => {
                    prop_assert_eq!(error.rule, rule, "{}", error);
                    prop_assert_eq!(error.event as usize, stream.len() - 1);
                    prop_assert_eq!(driven.events().len(), stream.len() - 1);
                    let refused = stream.pop().unwrap();
                    prop_assert_eq!(error.event_type, wire(&refused));
                    if rule == Rule::R3 && stream.len() > 1 {
                        let start = stream.iter().rposition(|event| kind_of(event) == "RUN_STARTED").unwrap();
                        let named: Vec<_> = error.others.iter().map(|(subject, _)| subject.clone()).collect();
                        prop_assert_eq!(named, open_at_end(&stream[start..]));
                    }
                }
                (None, None | Some(Error::Truncated(_))) => {
                    let delivered: Vec<_> = driven.events().into_iter().cloned().collect();
                    let expected: Vec<_> = stream.iter().cloned().map(event).collect();
                    prop_assert_eq!(delivered, expected);
                }
                (expected, found) => prop_assert!(false, "{expected:?}, {found:?}, {:?}", stream.last()),
            }
        }
        // What remains is a legal stream; it is truncated exactly while a run is active.
        let end = stream.iter().rposition(|event| matches!(kind_of(event), "RUN_STARTED" | "RUN_FINISHED" | "RUN_ERROR"));
        match (verify(&stream).error, end) {
            (Some(Error::Truncated(error)), Some(at)) => {
                prop_assert_eq!(kind_of(&stream[at]), "RUN_STARTED");
                prop_assert_eq!(error.events as usize, stream.len());
                let named: Vec<_> = error.open.iter().map(|(subject, _)| subject.clone()).collect();
                prop_assert_eq!(named, open_at_end(&stream[at..]));
            }
            (Some(Error::Truncated(error)), None) => prop_assert_eq!(error.events, 0),
            (None, Some(at)) => prop_assert!(kind_of(&stream[at]) != "RUN_STARTED"),
            (error, at) => prop_assert!(false, "{error:?}, {at:?}"),
        }
    }

    /// For any events, the longest legal beginning is delivered, and nothing panics.
    #[test]
    fn what_is_delivered_is_the_longest_legal_prefix(stream in prop::collection::vec(events(), 0..48)) {
        let legal = (0..stream.len()).find(|at| breaks(&stream[..*at], &stream[*at]).is_some()).unwrap_or(stream.len());
        for driven in [verify(&stream), verify_strictly(&stream)] {
            let delivered: Vec<_> = driven.events().into_iter().cloned().collect();
            let expected: Vec<_> = stream[..legal].iter().cloned().map(event).collect();
            prop_assert_eq!(delivered, expected);
            let again = verify(&stream[..legal]);
            prop_assert!(again.error.is_none_or(|error| error.is_truncated()));
        }
    }
}
