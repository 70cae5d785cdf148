//! The input of a run on its way out.

use serde_json::json;

use crate::error::{Error, Malformed};
use crate::input::RunAgentInput;
use crate::message::Message;
use crate::version::PROTOCOL_VERSION;

/// Why an input is not sent.
pub(super) enum Unsendable {
    /// It breaks the protocol (rule T4).
    Malformed(Box<Malformed>),
    /// It cannot be written as JSON.
    Json(serde_json::Error),
}

/// The input as it is sent, in JSON (rule T4).
pub(super) fn body_of(mut input: RunAgentInput) -> Result<String, Unsendable> {
    input.messages.retain(|message| !matches!(message, Message::Activity(_)));
    input.protocol_version.get_or_insert_with(|| PROTOCOL_VERSION.to_owned());
    let empty = || json!({});
    input.state.get_or_insert_with(empty);
    input.forwarded_props.get_or_insert_with(empty);
    input.tools.get_or_insert_with(Vec::new);
    input.context.get_or_insert_with(Vec::new);
    let input = serde_json::to_value(&input).map_err(Unsendable::Json)?;
    let body = serde_json::to_string(&input).map_err(Unsendable::Json)?;
    match RunAgentInput::from_value(input) {
        Err(Error::Malformed(error)) => Err(Unsendable::Malformed(error)),
        // One that is nested deeper than we would read it is for the server to judge.
        Ok(_) | Err(_) => Ok(body),
    }
}
