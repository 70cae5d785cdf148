//! An event is the same, with the same warnings or error, however it is read: straight from its text, by
//! way of a tree, or from a value (rule P4). Tested on all events of the fixtures, the corpus and the
//! cases, and on mutations of them.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "helpers of tests")]

mod support;

use std::fmt;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use ag_ui_stream::error::{Limit, LimitStage};
use ag_ui_stream::event::{
    CustomEvent, Interrupt, InterruptOutcome, Metadata, RunFinishedEvent, RunStartedEvent, StateDeltaEvent,
    TextMessageContentEvent, TokenUsage,
};
use ag_ui_stream::input::Tool;
use ag_ui_stream::machine::{Enforcer, Machine, Push};
use ag_ui_stream::message::{ContentPart, TextPart, UserMessage};
use ag_ui_stream::{Error, Event, EventType, Limits, Message, Rule, RunAgentInput, Warning};
use proptest::prelude::*;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Value, json};
use support::seeded;

// Events

/// JSON with the order of its members, and with members that repeat.
#[derive(Clone, Debug)]
enum Json {
    Atom(String),
    Array(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Json;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("JSON")
            }
            fn visit_unit<E>(self) -> Result<Json, E> {
                Ok(Json::Atom("null".into()))
            }
            fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
                Ok(Json::Atom(json!(value).to_string()))
            }
            fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
                Ok(Json::Atom(json!(value).to_string()))
            }
            fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
                Ok(Json::Atom(json!(value).to_string()))
            }
            fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
                Ok(Json::Atom(json!(value).to_string()))
            }
            fn visit_str<E>(self, value: &str) -> Result<Json, E> {
                Ok(Json::Atom(json!(value).to_string()))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Json, A::Error> {
                let mut elements = Vec::new();
                while let Some(element) = seq.next_element()? {
                    elements.push(element);
                }
                Ok(Json::Array(elements))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Json, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Json::Object(members))
            }
        }
        deserializer.deserialize_any(Any)
    }
}

impl Json {
    /// As text, with this after every token.
    fn write(&self, space: &str, out: &mut String) {
        match self {
            Json::Atom(text) => out.push_str(text),
            Json::Array(elements) => {
                out.push('[');
                for (at, element) in elements.iter().enumerate() {
                    out.push_str(if at > 0 { "," } else { "" });
                    out.push_str(space);
                    element.write(space, out);
                }
                out.push(']');
            }
            Json::Object(members) => {
                out.push('{');
                for (at, (key, value)) in members.iter().enumerate() {
                    out.push_str(if at > 0 { "," } else { "" });
                    out.push_str(space);
                    // A key may be given as it is to be written.
                    if key.starts_with('"') {
                        out.push_str(key);
                    } else {
                        out.push_str(&json!(key).to_string());
                    }
                    out.push_str(space);
                    out.push(':');
                    out.push_str(space);
                    value.write(space, out);
                }
                out.push('}');
            }
        }
        out.push_str(space);
    }

    fn to_text(&self, space: &str) -> String {
        let mut out = String::from(space);
        self.write(space, &mut out);
        out
    }

    /// The type comes first, as most producers write it.
    fn with_type_first(mut self) -> Self {
        if let Json::Object(members) = &mut self {
            members.sort_by_key(|(key, _)| key != "type");
        }
        self
    }
}

/// Every event of the files, the type first.
static EVENTS: LazyLock<Vec<Json>> = LazyLock::new(|| {
    let mut events = Vec::new();
    collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data"), &mut events);
    assert!(events.len() > 400, "the files are there: {}", events.len());
    events
});

fn collect(folder: &Path, events: &mut Vec<Json>) {
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            collect(&path, events);
        } else if path.extension().is_some_and(|extension| extension == "json") {
            // One has halves of surrogate pairs, which serde_json does not read.
            if let Ok(json) = serde_json::from_str::<Json>(&fs::read_to_string(&path).unwrap()) {
                find_events(json, events);
            }
        }
    }
}

/// Whatever is an object with the type of an event.
fn find_events(json: Json, events: &mut Vec<Json>) {
    match json {
        Json::Atom(_) => {}
        Json::Array(elements) => elements.into_iter().for_each(|element| find_events(element, events)),
        Json::Object(members) => {
            let is_event = members.iter().any(|(key, value)| match value {
                Json::Atom(text) => key == "type" && EventType::from_wire(text.trim_matches('"')).is_some(),
                _ => false,
            });
            if is_event {
                events.push(Json::Object(members).with_type_first());
            } else {
                members.into_iter().for_each(|(_, value)| find_events(value, events));
            }
        }
    }
}

// Ways to read

type Read = Result<(Option<Event>, Vec<Warning>), Error>;

/// The same text for the tree alone: an escape in a key is for nothing else.
fn for_the_tree(text: &str) -> Option<String> {
    let (head, tail) = text.split_once("{")?;
    let (space, tail) = tail.split_once('"')?;
    let first = tail.chars().next().filter(|first| space.trim().is_empty() && first.is_ascii_alphanumeric())?;
    Some(format!("{head}{{{space}\"\\u{:04x}{}", u32::from(first), &tail[1..]))
}

#[track_caller]
fn agree(text: &str) -> Read {
    let read = Event::from_json(text);
    if let Some(tree) = for_the_tree(text) {
        // An error about the text itself has an offset, which has moved.
        match (&read, Event::from_json(&tree)) {
            (Err(Error::Malformed(one)), Err(Error::Malformed(other))) if one.rule == Rule::E9 => {
                assert_eq!(other.rule, Rule::E9, "{text}");
            }
            (_, tree) => assert_eq!(read, tree, "{text}"),
        }
    }
    assert_eq!(Event::from_json(format!(" \n{text}\t")).ok(), read.clone().ok(), "{text}");
    if let Ok(value) = serde_json::from_str::<Value>(text) {
        let from_value = Event::from_value(&value);
        // A value has its members in another order, and so the warnings of unknown ones.
        let sorted = |read: &Read| {
            read.clone().map(|(event, mut warnings)| {
                warnings.sort_by(|one, other| (&one.path, &one.message).cmp(&(&other.path, &other.message)));
                (event, warnings)
            })
        };
        match (sorted(&read), sorted(&from_value)) {
            (Err(Error::Malformed(one)), Err(Error::Malformed(other))) => {
                // How a number was written is known of the text alone.
                assert_eq!((one.rule, one.path), (other.rule, other.path), "{text}");
            }
            (one, other) => assert_eq!(one, other, "{text}"),
        }
    }
    read
}

#[test]
fn p4_every_event_of_the_files_is_the_same_however_it_is_read() {
    for event in EVENTS.iter() {
        for space in ["", " ", "\r\n\t "] {
            let _ = agree(&event.to_text(space));
        }
        let Json::Object(mut members) = event.clone() else { unreachable!() };
        members.rotate_left(1);
        let _ = agree(&Json::Object(members).to_text(""));
    }
}

// Mutations

const ATOMS: [&str; 20] = [
    "null",
    "true",
    "0",
    "-1",
    "1.5",
    "1.0",
    "1e3",
    "-0",
    "1e400",
    "9007199254740991",
    "9007199254740992",
    "\"\"",
    "\"x\"",
    "\"\\u0061\"",
    "\"\\ud83d\"",
    "\"\\ud83d\\ude00\"",
    "[]",
    "{}",
    "[{\"a\":null,\"a\":1}]",
    "{\"type\":\"x\"}",
];

const KEYS: [&str; 12] = [
    "type",
    "metadata",
    "rawEvent",
    "timestamp",
    "subagentRunId",
    "messageId",
    "id",
    "role",
    "new",
    "",
    "\"\\u006dessageId\"",
    "\"\\ud83d\"",
];

/// What to change: the way to the place, what to do there, and with what.
type Mutation = (Vec<usize>, usize, usize);

fn mutate(json: &mut Json, way: &[usize], what: usize, with: usize) {
    let atom = || match with % (ATOMS.len() + 1) {
        20 => Json::Atom(format!("{}{}", "[".repeat(600), "]".repeat(600))),
        at => Json::Atom(ATOMS[at].to_owned()),
    };
    let (next, rest) = way.split_first().map_or((0, way), |(next, rest)| (*next, rest));
    match json {
        Json::Array(elements) if !elements.is_empty() => {
            let at = next % elements.len();
            if !rest.is_empty() {
                return mutate(&mut elements[at], rest, what, with);
            }
            match what % 3 {
                0 => drop(elements.remove(at)),
                1 => elements.push(elements[at].clone()),
                _ => elements[at] = atom(),
            }
        }
        Json::Object(members) if !members.is_empty() => {
            let at = next % members.len();
            if !rest.is_empty() {
                return mutate(&mut members[at].1, rest, what, with);
            }
            match what % 7 {
                0 => drop(members.remove(at)),
                1 => members.push(members[at].clone()),
                2 => members[at].0 = KEYS[with % KEYS.len()].to_owned(),
                3 => members[at].1 = atom(),
                4 => members.rotate_left(at),
                5 => members.push((KEYS[with % KEYS.len()].to_owned(), atom())),
                // The same member twice, with another value.
                _ => members.push((members[at].0.clone(), atom())),
            }
        }
        other => *other = atom(),
    }
}

fn mutations() -> impl Strategy<Value = Vec<Mutation>> {
    let mutation = (proptest::collection::vec(0usize..16, 1..5), 0usize..21, 0usize..420);
    proptest::collection::vec(mutation, 1..4)
}

proptest! {
    #![proptest_config(seeded(4000))]

    #[test]
    fn p4_a_mutated_event_is_the_same_however_it_is_read(
        event in any::<prop::sample::Index>(),
        mutations in mutations(),
        space in prop::sample::select(vec!["", "", " ", "\n"]),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut event = event.get(EVENTS.as_slice()).clone();
        for (way, what, with) in mutations {
            mutate(&mut event, &way, what, with);
        }
        let text = event.to_text(space);
        let read = agree(&text);
        // Read without a warning, it equals the value that was written.
        if let Ok((Some(event), warnings)) = &read {
            if warnings.is_empty() {
                let again = serde_json::to_string(event).unwrap();
                prop_assert_eq!(agree(&again).unwrap(), (Some(event.clone()), Vec::new()));
                prop_assert_eq!(&pushed(event.clone()), &Ok(event.clone()));
            }
        }
        let mut cut = cut.index(text.len() + 1);
        while !text.is_char_boundary(cut) {
            cut -= 1;
        }
        let _ = agree(&text[..cut]);
    }
}

// Typed events

fn pushed(event: Event) -> Result<Event, Error> {
    let mut enforcer = Enforcer::new();
    enforcer.push(event)?;
    Ok(Machine::pop(&mut enforcer).unwrap().into_event().unwrap())
}

#[test]
fn p4_a_typed_event_is_judged_as_its_json_is() {
    let nested = |levels: usize| (0..levels).fold(json!(1), |inner, _| json!([inner]));
    let deep = || nested(Limits::default().max_depth);
    let metadata = |value: Value| Metadata::from_iter([("key", value)]);
    let content = || TextMessageContentEvent::new("m", "x");
    let mut events = Vec::new();
    for timestamp in [0, -1, (1 << 53) - 1, 1 << 53, -(1 << 53), i64::MIN] {
        let mut event = content();
        event.base.timestamp = Some(timestamp);
        event.base.metadata = Some(metadata(json!({"a": [null]})));
        events.push(Event::from(event));
    }
    for value in [json!(null), json!({"a": null}), nested(511), nested(512), deep()] {
        let mut event = content();
        event.base.raw_event = Some(Box::new(value.clone()));
        events.push(event.into());
        let mut event = content();
        event.base.metadata = Some(metadata(value.clone()));
        // Too deep nesting goes before other faults.
        event.base.timestamp = Some(i64::MAX);
        events.push(event.into());
        events.push(CustomEvent::new("c", value.clone()).into());
        let mut event = RunFinishedEvent::new("t", "r");
        event.result = Some(value.clone());
        events.push(event.into());
        let patch = json!([{"op": "add", "path": "/a", "value": value, "note": value}]);
        events
            .extend(ag_ui_stream::event::JsonPatch::from_value(&patch).map(|patch| StateDeltaEvent::new(patch).into()));

        let mut part = TextPart::new("x");
        part.metadata = Some(value.clone());
        let user = Message::from(UserMessage::new("m", vec![ContentPart::from(part)]));
        let mut input = RunAgentInput::new("t", "r", [user]);
        let mut tool = Tool::new("t", "d");
        tool.parameters = Some(value.clone());
        input.tools = Some(vec![tool]);
        input.state = Some(value);
        let mut event = RunStartedEvent::new("t", "r");
        event.input = Some(Box::new(input));
        events.push(event.into());
    }
    for count in [0, (1 << 53) - 1, 1 << 53, u64::MAX] {
        let mut usage = TokenUsage::new();
        usage.output_tokens = Some(count);
        let mut event = RunFinishedEvent::new("t", "r");
        event.usage = Some(vec![TokenUsage::new(), usage]);
        events.push(event.into());
    }
    let mut interrupt = Interrupt::new("i", "why");
    interrupt.metadata = Some(metadata(deep()));
    let mut event = RunFinishedEvent::new("t", "r");
    event.outcome = Some(InterruptOutcome::new(interrupt).into());
    events.push(event.into());

    let mut refused = 0;
    for event in events {
        let json = serde_json::to_value(&event).unwrap();
        let expected = Event::from_value(&json).map(|(read, warnings)| {
            assert_eq!(warnings, [], "{json}");
            read.unwrap()
        });
        refused += usize::from(expected.is_err());
        assert_eq!(pushed(event), expected);
    }
    // Each for one of: its timestamp, its nesting, a null, a count.
    assert_eq!(refused, 23);
}

#[test]
fn e9_a_text_of_too_many_values_is_refused_before_it_is_read() {
    let max = Limits::DEFAULT_MAX_EVENT_VALUES;
    let message = |values: usize| {
        let list = format!("{}0", "0,".repeat(values - 1));
        format!(r#"{{"id":"m","role":"user","content":"x","metadata":{{"list":[{list}]}}}}"#)
    };
    // The message, its four members and the list.
    assert!(Message::from_json(message(max - 6)).is_ok());
    let error = Message::from_json(message(max - 5)).unwrap_err();
    let Error::LimitExceeded(exceeded) = &error else { panic!("{error}") };
    assert_eq!((exceeded.limit, exceeded.max, exceeded.stage), (Limit::EventValues, max, LimitStage::Reader));
}
