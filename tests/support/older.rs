//! A run with a server from before 1.0, over HTTP or WebSocket (R11).

use ag_ui_stream::input::ProtocolVersion;
use ag_ui_stream::message::AssistantMessage;
use ag_ui_stream::{Item, Rule, RunAgentInput};
use serde_json::{Value, json};

/// The last version without subagents.
pub const VERSION: ProtocolVersion = ProtocolVersion::new(0, 0, 57);

/// What such a server cannot say.
pub const SUBAGENT: &str = r#"{"type":"SUBAGENT_STARTED","subagentRunId":"s","name":"n"}"#;

/// The input with a message as its second that such a server cannot take as it is.
pub fn with_a_subagent(mut input: RunAgentInput) -> RunAgentInput {
    let mut answer = AssistantMessage::new("a");
    answer.subagent_run_id = Some("s".into());
    input.messages.push(answer.into());
    input
}

/// Checks that the server was sent an input that it accepts, and that [`SUBAGENT`] was dropped from its
/// events, with warnings.
pub fn check(sent: &Value, items: &[Item]) {
    assert_eq!(sent.get("protocolVersion"), None);
    assert_eq!(sent["messages"][1], json!({"id": "a", "role": "assistant"}));
    let warnings: Vec<_> = items.iter().filter_map(Item::warning).collect();
    let of: Vec<_> = warnings.iter().map(|warning| (warning.rule, warning.event_type.as_str())).collect();
    assert_eq!(of, [(Rule::R11, "RunAgentInput"), (Rule::R11, "SUBAGENT_STARTED")]);
    assert!(items[0].warning().is_some(), "what there is to say about the input comes first");
    let types: Vec<_> = items.iter().filter_map(Item::event).map(|event| event.event_type().as_str()).collect();
    assert_eq!(types[..2], ["RUN_STARTED", "TEXT_MESSAGE_START"]);
}
