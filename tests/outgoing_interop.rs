//! The input of a run compared with the reference: npm `@ag-ui/client` 1.0.0 posts the same body to a peer
//! of every version.

#![allow(missing_docs, reason = "a test")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test")]

use std::collections::BTreeSet;

use ag_ui_stream::input::{Outgoing, ProtocolVersion};
use serde_json::{Value, json};

mod support {
    #![allow(unreachable_pub, reason = "each test has its own copy")]
    pub mod interop;
}

use support::interop::{files, fixture_inputs, node};

/// Those that take text alone.
const OLDEST: [&str; 2] = ["0.0.1", "0.0.39"];

/// Versions on each side of every boundary, and far from them; `None` for a peer of 1.0.
const PEERS: [Option<&str>; 12] = [
    Some("0.0.1"),
    Some("0.0.39"),
    Some("0.0.40"),
    Some("0.0.45"),
    Some("0.0.47"),
    Some("0.0.48"),
    Some("0.0.57"),
    Some("0.0.58"),
    Some("0.9"),
    Some("1.0.0"),
    Some("2.0"),
    None,
];

fn of_messages(messages: Value) -> Value {
    json!({"threadId": "t", "runId": "r", "messages": messages})
}

/// The inputs of the fixtures and of the corpus, good and malformed, and all kinds of messages at once.
fn inputs() -> Vec<(String, Value)> {
    let mut inputs = fixture_inputs("valid");
    inputs.extend(fixture_inputs("invalid"));
    for (name, fixture) in files("conformance/streams") {
        if let Some(messages) = fixture.pointer("/input/messages") {
            inputs.push((name, of_messages(messages.clone())));
        }
    }
    let text = |text: &str| json!({"type": "text", "text": text});
    let image = json!({"type": "image", "source": {"type": "url", "value": "https://example.com/cat.png"}});
    let call = json!({"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}});
    let mut everything = of_messages(json!([
        {"id": "1", "role": "system", "content": "Be brief.", "metadata": {"n": null}},
        {"id": "2", "role": "developer", "content": "", "name": "d", "subagentRunId": ""},
        {"id": "3", "role": "user", "content": [text("a"), image, text(" b")], "name": "u"},
        {"id": "4", "role": "user", "content": [image]},
        {"id": "5", "role": "user", "content": []},
        {"id": "6", "role": "activity", "activityType": "PLAN", "content": {"steps": []}},
        {"id": "7", "role": "reasoning", "content": "Hm.", "encryptedValue": "x", "subagentRunId": "s"},
        {"id": "8", "role": "assistant", "toolCalls": [call], "subagentRunId": "s"},
        {"id": "9", "role": "tool", "toolCallId": "c", "content": [text("one"), image], "error": "e"},
        {"id": "10", "role": "assistant"},
        {"id": "11", "role": "user", "content": [
            {"type": "binary", "mimeType": "audio/mp3", "data": "aGk=", "filename": "hi.mp3"},
            {"type": "binary", "mimeType": "application/pdf", "url": "https://example.com/a.pdf"}
        ]}
    ]));
    everything["protocolVersion"] = json!("1.7");
    everything["parentRunId"] = json!("p");
    everything["resume"] = json!([{"interruptId": "i", "status": "resolved", "payload": {"ok": null}}]);
    everything["forwardedProps"] = json!({"deep": [{"subagentRunId": "kept"}]});
    everything["state"] = json!([1, null, "x"]);
    inputs.push(("everything".to_owned(), everything));
    inputs
}

/// The body that goes out, or the error.
fn sent(peer: Option<&str>, input: &Value) -> Result<Value, String> {
    let peer = peer.map_or(ProtocolVersion::CURRENT, |version| version.parse().unwrap());
    let outgoing = Outgoing::new().max_protocol_version(peer);
    let (input, _) = outgoing.prepare_value(input.clone()).map_err(|error| error.to_string())?;
    Ok(serde_json::to_value(input).unwrap())
}

#[test]
fn t4_r11_what_is_sent_is_what_the_reference_sends_whatever_the_peer() {
    let Some(node) = node() else { return };
    let inputs = inputs();
    let questions: Vec<_> =
        inputs.iter().flat_map(|(name, input)| PEERS.map(|peer| (name.as_str(), peer, input))).collect();
    let json: Vec<_> = questions.iter().map(|(_, peer, input)| json!({"version": peer, "input": input})).collect();
    let answers = node.ask("request.mjs", &Value::from(json));
    let answers = answers.as_array().unwrap();
    assert_eq!(answers.len(), questions.len());
    let (mut equal, mut refused, mut here, mut there) = (0, 0, BTreeSet::new(), BTreeSet::new());
    for ((name, peer, input), answer) in questions.iter().zip(answers) {
        let mut theirs = answer.get("body").cloned();
        // It declares the version of the application alone; here the input may declare its own.
        let declared = theirs.as_mut().and_then(|body| body.get_mut("protocolVersion"));
        if let (Some(own), Some(declared)) = (input.get("protocolVersion"), declared) {
            *declared = own.clone();
        }
        let name = name.rsplit('/').next().unwrap_or_default();
        match (sent(*peer, input), theirs) {
            (Ok(ours), Some(theirs)) => {
                assert_eq!(ours, theirs, "{name} to {peer:?}");
                equal += 1;
            }
            (Err(_), None) => refused += 1,
            (Err(_), Some(_)) => drop(here.insert((name, peer.filter(|peer| OLDEST.contains(peer))))),
            (Ok(_), None) => drop(there.insert(name)),
        }
    }
    assert!(equal > 300 && refused > 50, "{equal} {refused}");
    // Malformed (T4): the reference reads absent messages as an empty list, and its conversion for the oldest
    // peers repairs invalid messages, parts and content.
    let repaired = ["content-missing.json", "content-part-not-an-object.json", "messages-item-not-a-message.json"];
    for peer in OLDEST.map(Some) {
        assert!(repaired.iter().all(|name| here.remove(&(*name, peer))), "{here:?}");
        assert!(here.remove(&("messages-missing.json", peer)), "{here:?}");
    }
    assert_eq!(here, BTreeSet::from([("messages-missing.json", None)]));
    // Unknown, and not malformed (E4); that it refuses it is a gap that its authors know.
    assert_eq!(there, BTreeSet::from(["unknown-status.json"]));
}
