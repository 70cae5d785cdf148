//! The table of the intended differences from npm `@ag-ui/client` 1.0.0.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

use ag_ui_stream::Rule;
use serde_json::Value;

use crate::Case;

/// What the two sides can differ in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aspect {
    Verdict,
    Events,
    Outcomes,
    Messages,
    State,
}

/// How a difference is recognized.
#[derive(Debug)]
pub enum How {
    /// Events or messages are spelled in two ways: this makes one of both.
    Spelled(fn(&mut Value)),
    /// It concerns a part of the results: this takes that part out of both, and the rest is compared.
    Rewritten(fn(&mut Case)),
    /// It is at work where this says so.
    When(fn(&Case) -> bool),
}

/// One difference.
#[derive(Debug)]
pub struct Difference {
    /// The rule that decides.
    pub rule: Rule,
    /// What the crate does, the heading in `docs/differences.md`.
    pub name: &'static str,
    /// The parts of the result that it can affect.
    pub aspects: &'static [Aspect],
    pub how: How,
    /// A stream, one event a line, that shows it and no other.
    pub example: &'static str,
}

use Aspect::{Events, Messages, Outcomes, State, Verdict};
use How::{Rewritten, Spelled, When};

const ALL: &[Aspect] = &[Verdict, Events, Outcomes, Messages, State];

pub const DIFFERENCES: &[Difference] = &[
    Difference {
        rule: Rule::S6,
        name: "an absent role stays absent",
        aspects: &[Events],
        how: Spelled(|event| {
            if event["type"] == "TEXT_MESSAGE_START" && event["role"] == "assistant" {
                event.as_object_mut().unwrap().remove("role");
            }
        }),
        example: r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}
{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":"x"}
{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#,
    },
    Difference {
        rule: Rule::E5,
        name: "no tools and no context stay absent",
        aspects: &[Events],
        how: Spelled(|event| {
            let Some(input) = event.get_mut("input").and_then(Value::as_object_mut) else { return };
            input.retain(|key, value| {
                !(["tools", "context"].contains(&key.as_str()) && *value == serde_json::json!([]))
            });
        }),
        example: r#"{"type":"RUN_STARTED","threadId":"t","runId":"r","input":{"threadId":"t","runId":"r","messages":[]}}
{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#,
    },
    Difference {
        rule: Rule::S3,
        name: "an empty delta changes nothing",
        aspects: &[Messages],
        how: Spelled(|message| {
            if message["role"] == "assistant" && message["content"] == "" {
                message.as_object_mut().unwrap().remove("content");
            }
        }),
        example: r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}
{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"f","parentMessageId":"m"}
{"type":"TOOL_CALL_END","toolCallId":"c"}
{"type":"TEXT_MESSAGE_START","messageId":"m"}
{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":""}
{"type":"TEXT_MESSAGE_END","messageId":"m"}
{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#,
    },
    Difference {
        rule: Rule::R8,
        name: "a stream without its terminal event is truncated",
        aspects: &[Verdict],
        how: When(|case| case.rejects(Rule::R8) && case.theirs.error.is_none()),
        example: r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#,
    },
    Difference {
        rule: Rule::E4,
        name: "an unknown string of a closed set is stripped",
        aspects: ALL,
        how: When(|case| case.warns(Rule::E4)),
        example: r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}
{"type":"TEXT_MESSAGE_START","messageId":"m","role":"future"}
{"type":"TEXT_MESSAGE_END","messageId":"m"}
{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#,
    },
    Difference {
        rule: Rule::E11,
        name: "half a surrogate pair waits for its other half",
        aspects: ALL,
        how: When(|case| case.stream.iter().any(|event| has_lone_half(event))),
        example: r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}
{"type":"TEXT_MESSAGE_START","messageId":"m"}
{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"\ud83d"}
{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"\ude00"}
{"type":"TEXT_MESSAGE_END","messageId":"m"}
{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#,
    },
    Difference {
        rule: Rule::A12,
        name: "text and reasoning under one id are two messages",
        aspects: &[Messages],
        how: Rewritten(without_shared_ids),
        example: r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}
{"type":"REASONING_MESSAGE_START","messageId":"m","role":"reasoning"}
{"type":"REASONING_MESSAGE_CONTENT","messageId":"m","delta":"hm"}
{"type":"REASONING_MESSAGE_END","messageId":"m"}
{"type":"TEXT_MESSAGE_START","messageId":"m"}
{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"answer"}
{"type":"TEXT_MESSAGE_END","messageId":"m"}
{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#,
    },
    Difference {
        rule: Rule::A10,
        name: "a repeated id loses nothing",
        aspects: &[Messages],
        how: When(|case| case.warns(Rule::A10)),
        example: r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}
{"type":"TOOL_CALL_RESULT","messageId":"m","toolCallId":"call","content":"one"}
{"type":"TOOL_CALL_RESULT","messageId":"m","toolCallId":"call","content":"two"}
{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#,
    },
    Difference {
        rule: Rule::B1,
        name: "the generated ids are the application's",
        aspects: &[Events],
        how: Rewritten(with_numbered_ids),
        example: r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}
{"type":"THINKING_START"}
{"type":"THINKING_END"}
{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#,
    },
    Difference {
        rule: Rule::A6,
        name: "a state never contains itself",
        aspects: ALL,
        how: When(|case| case.theirs.error.as_ref().is_some_and(|error| error.contains("circular structure"))),
        example: r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}
{"type":"STATE_DELTA","delta":[{"op":"move","from":"","path":"/a"}]}
{"type":"STATE_DELTA","delta":[]}
{"type":"CUSTOM","name":"c","value":1}
{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#,
    },
    Difference {
        rule: Rule::A6,
        name: "a patch that cannot apply leaves the state",
        aspects: &[State],
        how: When(|case| case.warns(Rule::A6)),
        example: r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}
{"type":"STATE_DELTA","delta":[{"op":"remove","path":""}]}
{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#,
    },
    Difference {
        rule: Rule::A5,
        name: "a patch that cannot apply leaves the activity",
        aspects: &[Messages],
        how: When(|case| case.warns(Rule::A5)),
        example: r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}
{"type":"ACTIVITY_SNAPSHOT","messageId":"m","activityType":"plan","content":{}}
{"type":"ACTIVITY_DELTA","messageId":"m","activityType":"plan","patch":[{"op":"remove","path":""}]}
{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#,
    },
    Difference {
        rule: Rule::A4,
        name: "text does not overwrite parts",
        aspects: &[Messages],
        how: When(is_streamed_into_parts),
        example: r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}
{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"m","role":"user","content":[{"type":"text","text":"Look: "}]}]}
{"type":"TEXT_MESSAGE_START","messageId":"m"}
{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"here"}
{"type":"TEXT_MESSAGE_END","messageId":"m"}
{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#,
    },
    Difference {
        rule: Rule::S5,
        name: "a call that is opened again keeps its name",
        aspects: &[Messages],
        how: When(is_renamed),
        example: r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}
{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"one"}
{"type":"TOOL_CALL_END","toolCallId":"c"}
{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"other"}
{"type":"TOOL_CALL_END","toolCallId":"c"}
{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#,
    },
    Difference {
        rule: Rule::E9,
        name: "an event whose type is not a string is fatal",
        aspects: ALL,
        how: When(|case| case.rejects(Rule::E9)),
        example: r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}
{"type":1}
{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#,
    },
    Difference {
        rule: Rule::E5,
        name: "a discriminator that is not a string is malformed",
        aspects: ALL,
        how: When(has_a_malformed_discriminator),
        example: r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}
{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":1}}"#,
    },
    Difference {
        rule: Rule::A2,
        name: "one message of a snapshot stays one",
        aspects: &[Messages],
        how: When(has_copies),
        example: r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}
{"type":"TEXT_MESSAGE_START","messageId":"m","role":"user"}
{"type":"TEXT_MESSAGE_END","messageId":"m"}
{"type":"TOOL_CALL_START","toolCallId":"m","toolCallName":"f"}
{"type":"TOOL_CALL_END","toolCallId":"m"}
{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"m","role":"user","content":"x"}]}
{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#,
    },
    Difference {
        rule: Rule::A11,
        name: "text for a dropped message goes into no other",
        aspects: &[Messages],
        how: When(|case| case.warns(Rule::A11)),
        example: r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}
{"type":"REASONING_MESSAGE_START","messageId":"m","role":"reasoning"}
{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"other","role":"reasoning","content":"hm"}]}
{"type":"TEXT_MESSAGE_START","messageId":"m"}
{"type":"REASONING_MESSAGE_CONTENT","messageId":"m","delta":"thus"}
{"type":"REASONING_MESSAGE_END","messageId":"m"}
{"type":"TEXT_MESSAGE_END","messageId":"m"}
{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#,
    },
    Difference {
        rule: Rule::O2,
        name: "a message that a call makes belongs to the owner of the call",
        aspects: ALL,
        how: When(is_of_another_owner),
        example: r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}
{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"f","parentMessageId":"m","subagentRunId":"s"}
{"type":"TOOL_CALL_END","toolCallId":"c","subagentRunId":"s"}
{"type":"TEXT_MESSAGE_START","messageId":"m","subagentRunId":"z"}
{"type":"TEXT_MESSAGE_END","messageId":"m"}
{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#,
    },
    Difference {
        rule: Rule::A3,
        name: "a message that a call makes has its owner, whatever its id",
        aspects: &[Messages],
        how: When(is_untagged),
        example: r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}
{"type":"TEXT_MESSAGE_START","messageId":"m","role":"user"}
{"type":"TEXT_MESSAGE_END","messageId":"m"}
{"type":"TOOL_CALL_START","toolCallId":"m","toolCallName":"f","subagentRunId":"s"}
{"type":"TOOL_CALL_END","toolCallId":"m"}
{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#,
    },
    Difference {
        rule: Rule::E8,
        name: "an empty id is an id",
        aspects: &[Messages],
        how: When(|case| case.ours.events.iter().any(|event| event["parentMessageId"] == "")),
        example: r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}
{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"f","parentMessageId":""}
{"type":"TOOL_CALL_END","toolCallId":"c"}
{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#,
    },
    Difference {
        rule: Rule::E7,
        name: "`__proto__` is a key like others",
        aspects: &[Events, Messages, State],
        how: When(|case| case.stream.iter().any(|event| event.contains(r#""__proto__""#))),
        example: r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}
{"type":"STATE_DELTA","delta":[{"op":"add","path":"/a","value":1,"__proto__":2}]}
{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#,
    },
    Difference {
        rule: Rule::C8,
        name: "an explicit event for a chunked item is fatal at once, whatever its tag",
        aspects: ALL,
        how: When(is_mixed_at_once),
        example: r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}
{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":"x","subagentRunId":"s"}
{"type":"TEXT_MESSAGE_END","messageId":"m"}
{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#,
    },
    Difference {
        rule: Rule::C7,
        name: "every item that an event closes ends before the event is judged",
        aspects: &[Events],
        how: Rewritten(without_last_ends),
        example: r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}
{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","role":"user","delta":"x","subagentRunId":"s"}
{"type":"TEXT_MESSAGE_CHUNK","messageId":"n","role":"user","delta":"y"}
{"type":"RUN_STARTED","threadId":"t","runId":"r2"}"#,
    },
    Difference {
        rule: Rule::A12,
        name: "text streams into the message that a call made, even if another shares its id",
        aspects: &[Messages],
        how: When(shares_its_id),
        example: r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}
{"type":"TOOL_CALL_RESULT","messageId":"m","toolCallId":"c","content":"done"}
{"type":"TOOL_CALL_START","toolCallId":"m","toolCallName":"f"}
{"type":"TOOL_CALL_END","toolCallId":"m"}
{"type":"TEXT_MESSAGE_START","messageId":"m"}
{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"x"}
{"type":"TEXT_MESSAGE_END","messageId":"m"}
{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#,
    },
    Difference {
        rule: Rule::O3,
        name: "a result does not take over the message that has its id",
        aspects: ALL,
        how: When(is_taken_over),
        example: r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}
{"type":"TEXT_MESSAGE_START","messageId":"m"}
{"type":"TOOL_CALL_RESULT","messageId":"m","toolCallId":"c","content":"done","subagentRunId":"s"}
{"type":"TEXT_MESSAGE_END","messageId":"m","subagentRunId":"s"}
{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#,
    },
    Difference {
        rule: Rule::E10,
        name: "a number beyond a double is null",
        aspects: &[Events, Messages, State],
        how: When(|case| case.warns(Rule::E10)),
        example: r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}
{"type":"STATE_SNAPSHOT","snapshot":{"n":9e9999}}
{"type":"STATE_DELTA","delta":[{"op":"test","path":"/n","value":9e9999},{"op":"add","path":"/ok","value":true}]}
{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#,
    },
];

/// Whether a result has the id of a message of text, and the two sides disagree whose that is.
fn is_taken_over(case: &Case) -> bool {
    let events = &case.ours.events;
    let results = events.iter().filter(|event| event["type"] == "TOOL_CALL_RESULT");
    let streams =
        |id: &Value| events.iter().any(|event| event["type"] == "TEXT_MESSAGE_START" && event["messageId"] == *id);
    let theirs_disagrees = case.theirs.error.as_ref().is_some_and(|error| error.contains("does not match the message"));
    results.map(|result| &result["messageId"]).any(streams) && (theirs_disagrees || case.rejects(Rule::O2))
}

/// Whether ours rejects an explicit event at which it had closed the chunk stream itself.
fn is_mixed_at_once(case: &Case) -> bool {
    let Some(error) = case.ours.error.as_deref().filter(|_| case.rejects(Rule::S2)) else { return false };
    let event = error.split_once("(event ").and_then(|(_, rest)| rest.split_once(')')).map(|(event, _)| event);
    event.is_some_and(|event| {
        error.contains(&format!("closed at event {event},")) || error.contains(&format!("closed at event {event})"))
    })
}

/// Whether another message shares the id of one with calls that text or a value goes to.
fn shares_its_id(case: &Case) -> bool {
    let messages = &case.ours.messages;
    messages.iter().filter(|message| message["toolCalls"].is_array()).any(|message| {
        let goes_there = |event: &Value| match event["type"].as_str() {
            Some("TEXT_MESSAGE_START" | "TEXT_MESSAGE_CONTENT") => event["messageId"] == message["id"],
            Some("REASONING_ENCRYPTED_VALUE") => event["entityId"] == message["id"],
            Some("TOOL_CALL_START") => event["parentMessageId"] == message["id"],
            _ => false,
        };
        messages.iter().filter(|other| other["id"] == message["id"]).count() > 1
            && case.ours.events.iter().any(goes_there)
    })
}

/// Whether one side rejects another owner's part of a message that a tagged call made, and the other does not.
fn is_of_another_owner(case: &Case) -> bool {
    let rejects = case.rejects(Rule::O2) || case.rejects(Rule::O4);
    let ours = case.ours.error.as_ref().filter(|_| rejects);
    let theirs = case.theirs.error.as_ref().filter(|error| case.ours.error.is_none() && error.contains("opener's"));
    let made = |event: &Value| {
        let made = event["parentMessageId"].as_str().or(event["toolCallId"].as_str())?;
        (event["type"] == "TOOL_CALL_START" && event["subagentRunId"].is_string()).then(|| made.to_owned())
    };
    case.ours.events.iter().filter_map(made).any(|made| {
        ours.is_some_and(|error| error.contains(&format!("{made:?}")))
            || theirs.is_some_and(|error| error.contains(&format!("'{made}'")))
    })
}

/// Whether a message with calls has an owner here, and none in the reference.
fn is_untagged(case: &Case) -> bool {
    let owned = |message: &Value| message["subagentRunId"].is_string();
    let mut pairs = case.ours.messages.iter().zip(&case.theirs.messages);
    pairs.any(|(ours, theirs)| {
        ours["toolCalls"].is_array() && ours["id"] == theirs["id"] && owned(ours) && !owned(theirs)
    })
}

/// Whether the reference holds copies of a snapshot's message.
fn has_copies(case: &Case) -> bool {
    let messages = &case.theirs.messages;
    let is_copy = |(index, message): (usize, &Value)| messages.iter().take(index).any(|earlier| earlier == message);
    messages.iter().enumerate().any(is_copy)
}

/// Whether text streams into a message whose content is a list of parts.
fn is_streamed_into_parts(case: &Case) -> bool {
    let mut parts = case.ours.messages.iter().filter(|message| message["content"].is_array());
    parts.any(|message| {
        let streams = |event: &Value| event["type"] == "TEXT_MESSAGE_CONTENT" && event["messageId"] == message["id"];
        case.ours.events.iter().any(streams)
    })
}

/// Whether a call has another name in the reference, that of a later START.
fn is_renamed(case: &Case) -> bool {
    let calls = |messages: &[Value]| {
        let calls = messages.iter().filter_map(|message| message["toolCalls"].as_array()).flatten();
        calls.map(|call| (call["id"].clone(), call["function"]["name"].clone())).collect::<Vec<_>>()
    };
    let (ours, theirs) = (calls(&case.ours.messages), calls(&case.theirs.messages));
    theirs.iter().any(|(id, name)| {
        let starts = |event: &Value| event["toolCallId"] == *id && event["toolCallName"] == *name;
        ours.iter().any(|call| call.0 == *id && call.1 != *name) && case.ours.events.iter().any(starts)
    })
}

fn has_a_malformed_discriminator(case: &Case) -> bool {
    let Some(error) = case.ours.error.as_ref().filter(|_| case.rejects(Rule::E5)) else { return false };
    ["/type: ", "/role: ", "/op: "].iter().any(|place| error.contains(place))
}

/// Whether half of a pair stands without the other half next to it.
fn has_lone_half(event: &str) -> bool {
    let joined = event.replace(r"\ud83d\ude00", "");
    joined.contains(r"\ud83d") || joined.contains(r"\ude00")
}

/// Takes out the messages of the ids that text and reasoning share, and those of calls that name them as parents.
fn without_shared_ids(case: &mut Case) {
    let shared: Vec<Value> = case
        .our_warnings
        .iter()
        .filter(|warning| warning.rule == Rule::A12)
        .filter_map(|warning| serde_json::from_str::<Value>(case.stream.get(warning.event as usize)?).ok())
        .map(|event| event["messageId"].clone())
        .collect();
    let is_child = |event: &&Value| event["type"] == "TOOL_CALL_START" && shared.contains(&event["parentMessageId"]);
    let children: Vec<_> = case.ours.events.iter().filter(is_child).map(|event| event["toolCallId"].clone()).collect();
    for seen in [&mut case.ours, &mut case.theirs] {
        seen.messages.retain(|message| {
            let mut calls = message["toolCalls"].as_array().into_iter().flatten();
            !shared.contains(&message["id"]) && !calls.any(|call| children.contains(&call["id"]))
        });
    }
}

/// Numbers the ids that the stream does not have, in the order of their events.
fn with_numbered_ids(case: &mut Case) {
    let sent = case.stream.join("\n");
    for seen in [&mut case.ours, &mut case.theirs] {
        let mut generated: Vec<Value> = Vec::new();
        for event in &mut seen.events {
            let is_reasoning = event["type"].as_str().is_some_and(|kind| kind.starts_with("REASONING_"));
            let Some(id) = event.get_mut("messageId").filter(|_| is_reasoning) else { continue };
            if sent.contains(&id.to_string()) {
                continue;
            }
            let known = generated.iter().position(|known| known == id);
            let number = known.unwrap_or_else(|| {
                generated.push(id.clone());
                generated.len() - 1
            });
            *id = format!("generated {number}").into();
        }
        for message in &mut seen.messages {
            if let Some(number) = generated.iter().position(|known| *known == message["id"]) {
                message["id"] = format!("generated {number}").into();
            }
        }
    }
}

/// Takes out the ENDs that only one of two rejected streams gave last.
fn without_last_ends(case: &mut Case) {
    let (ours, theirs) = (&mut case.ours, &case.theirs);
    let is_end = |event: &Value| event["type"].as_str().is_some_and(|kind| kind.ends_with("_END"));
    let last = ours.events.get(theirs.events.len()..).unwrap_or_default();
    if ours.error.is_some() && theirs.error.is_some() && last.iter().all(is_end) {
        ours.events.truncate(theirs.events.len());
    }
}
