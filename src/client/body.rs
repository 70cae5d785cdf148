//! The input of a run on its way out.

use crate::agent::BoxError;
use crate::error::{Error, Malformed};
use crate::outgoing::Outgoing;
use crate::run_input::RunAgentInput;
use crate::warning::Warning;

/// Why an input is not sent.
pub(super) enum Unsendable {
    /// It breaks the protocol (rule T4).
    Malformed(Box<Malformed>),
    /// It cannot be written as JSON.
    Json(serde_json::Error),
    /// Anything else.
    Other(BoxError),
}

/// The input as it is sent, in JSON (rule T4), and what there is to say about it.
pub(super) fn body_of(outgoing: Outgoing, input: RunAgentInput) -> Result<(String, Vec<Warning>), Unsendable> {
    let (input, warnings) = outgoing.prepare(input).map_err(|error| match error {
        Error::Malformed(error) => Unsendable::Malformed(error),
        other => Unsendable::Other(other.into()),
    })?;
    Ok((serde_json::to_string(&input).map_err(Unsendable::Json)?, warnings))
}
