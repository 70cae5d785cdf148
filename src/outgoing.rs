//! `Outgoing`: prepares the input of a run to be sent: <https://docs.ag-ui.com/spec/1.0/basic/run-input>.

use serde_json::{Value, json};

use crate::error::Error;
use crate::limits::Limits;
use crate::machine::upgrade_input;
use crate::message::{Content, ContentPart, Message};
use crate::rule::Rule;
use crate::run_input::RunAgentInput;
use crate::version::{PROTOCOL_VERSION, ProtocolVersion};
use crate::warning::Warning;

/// Prepares the input of a run to be sent (rule T4). The clients of this crate use it; use it yourself
/// if you send by other means.
///
/// - A legacy `binary` part becomes an image, audio, video or document part, as in incoming messages
///   (rule B3), with a warning only if something is lost.
/// - Unknown parts are removed with a warning (E2 to E4); a malformed one is an error.
/// - Activity messages are left out: they are the application's own.
/// - The version of the protocol is declared.
/// - Absent `state`, `tools`, `context` and `forwardedProps` become empty, as servers from before
///   AG-UI 1.0 require them.
///
/// For an older peer, [`max_protocol_version`](Outgoing::max_protocol_version) removes what it cannot
/// receive. For the events of such a peer see [`Downgrader`](crate::machine::Downgrader).
///
/// # Examples
/// ```
/// use ag_ui_stream::input::Outgoing;
/// use ag_ui_stream::Rule;
/// use serde_json::json;
///
/// let (input, warnings) = Outgoing::new().prepare_value(json!({
///     "threadId": "t",
///     "runId": "r",
///     "messages": [{"id": "m", "role": "user", "content": "Hello", "draft": true}],
/// }))?;
/// assert_eq!(input.protocol_version.as_deref(), Some("1.0"));
/// assert_eq!((warnings[0].rule, &*warnings[0].path), (Rule::E2, "/messages/0/draft"));
/// # Ok::<(), ag_ui_stream::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Outgoing {
    peer: ProtocolVersion,
}

impl Outgoing {
    /// For a peer that speaks AG-UI 1.0.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// For a peer that speaks this version of the protocol at most:
    ///
    /// | up to | what is sent |
    /// |---|---|
    /// | before 1.0 | no `protocolVersion` |
    /// | [0.0.57](ProtocolVersion::LAST_WITHOUT_SUBAGENTS) | messages without `subagentRunId` |
    /// | [0.0.39](ProtocolVersion::LAST_WITHOUT_PARTS) | the text of messages without other parts, empty where there is none; no `parentRunId` |
    ///
    /// Each loss but the first gives a warning (rule R11).
    #[must_use]
    pub fn max_protocol_version(self, peer: ProtocolVersion) -> Self {
        Self { peer }
    }

    /// The version that the peer speaks at most.
    #[cfg(any(feature = "reqwest", feature = "websocket"))]
    pub(crate) fn peer(self) -> ProtocolVersion {
        self.peer
    }

    /// The input to send, and the warnings about it. Their paths are those within the given input, and
    /// their type is `RunAgentInput`.
    ///
    /// # Errors
    /// [`Error::Malformed`] (E5): a value that the type allows and the rules do not, such as null state.
    pub fn prepare(&self, input: RunAgentInput) -> Result<(RunAgentInput, Vec<Warning>), Error> {
        let to_value = || serde_json::to_value(&input).map_err(|error| crate::run_input::no_input(&error.to_string()));
        let (input, mut warnings) = match RunAgentInput::from_value(&to_value()?) {
            // The server may limit the depth of open values; the rest is checked.
            Err(Error::LimitExceeded(_)) => {
                let (_, warnings) = RunAgentInput::from_value(&outer_levels(&to_value()?, DESCRIBED_DEPTH))?;
                (input, warnings)
            }
            read => read?,
        };
        let input = self.downgrade(input, &mut warnings);
        Ok((input, warnings))
    }

    /// The same from JSON, such as a stored conversation. Only this form can have `binary` parts.
    ///
    /// # Errors
    /// [`Error::Malformed`] (E5); [`Error::LimitExceeded`].
    pub fn prepare_value(&self, input: Value) -> Result<(RunAgentInput, Vec<Warning>), Error> {
        let (input, losses) = upgrade_input(&input, Limits::default().depth()).unwrap_or((input, Vec::new()));
        let mut warnings: Vec<_> = losses.into_iter().map(|(path, message)| warning(Rule::B3, path, message)).collect();
        let (input, more) = RunAgentInput::from_value(&input)?;
        warnings.extend(more);
        let input = self.downgrade(input, &mut warnings);
        Ok((input, warnings))
    }

    fn downgrade(&self, mut input: RunAgentInput, warnings: &mut Vec<Warning>) -> RunAgentInput {
        let lost = |path: String, what: &str| {
            warning(Rule::R11, path, format!("a peer of version {} cannot receive {what}", self.peer))
        };
        for (at, message) in input.messages.iter_mut().enumerate() {
            let path = format!("/messages/{at}");
            if self.peer <= ProtocolVersion::LAST_WITHOUT_SUBAGENTS && message.subagent_run_id_mut().take().is_some() {
                warnings.push(lost(format!("{path}/subagentRunId"), "whose message it is"));
            }
            if self.peer <= ProtocolVersion::LAST_WITHOUT_PARTS {
                let content = match message {
                    // Such a peer requires it.
                    Message::Assistant(message) => {
                        message.content.get_or_insert_default();
                        continue;
                    }
                    Message::User(message) => &mut message.content,
                    Message::Tool(message) => &mut message.content,
                    _ => continue,
                };
                if let Content::Parts(parts) = content {
                    let media: Vec<_> = parts.iter().filter_map(media_type).collect();
                    if !media.is_empty() {
                        let what = format!("non-text parts: {}", media.join(", "));
                        warnings.push(lost(format!("{path}/content"), &what));
                    }
                    *content = content.text().unwrap_or_default().into();
                }
            }
        }
        input.messages.retain(|message| !matches!(message, Message::Activity(_)));
        if self.peer <= ProtocolVersion::LAST_WITHOUT_PARTS && input.parent_run_id.take().is_some() {
            warnings.push(lost("/parentRunId".to_owned(), "the run that it continues"));
        }
        if self.peer >= ProtocolVersion::CURRENT {
            input.protocol_version.get_or_insert_with(|| PROTOCOL_VERSION.to_owned());
        } else {
            input.protocol_version = None;
        }
        input.state.get_or_insert_with(|| json!({}));
        input.forwarded_props.get_or_insert_with(|| json!({}));
        input.tools.get_or_insert_with(Vec::new);
        input.context.get_or_insert_with(Vec::new);
        input
    }
}

/// More levels than the protocol describes for an input (`/messages/0/content/0/source/value` and
/// `/messages/0/toolCalls/0/function/name` are the deepest): anything deeper is within open values.
const DESCRIBED_DEPTH: usize = 16;

/// A copy in which arrays and objects deeper than this are empty.
fn outer_levels(value: &Value, depth: usize) -> Value {
    match value {
        Value::Array(elements) if depth > 0 => elements.iter().map(|value| outer_levels(value, depth - 1)).collect(),
        Value::Object(members) if depth > 0 => {
            let members = members.iter().map(|(key, value)| (key.clone(), outer_levels(value, depth - 1)));
            Value::Object(members.collect())
        }
        Value::Array(_) => json!([]),
        Value::Object(_) => json!({}),
        scalar => scalar.clone(),
    }
}

fn warning(rule: Rule, path: String, message: String) -> Warning {
    Warning::new(rule, 0, crate::run_input::NAME, path, message)
}

/// The type of a part, unless it is text.
fn media_type(part: &ContentPart) -> Option<&'static str> {
    match part {
        ContentPart::Text(_) => None,
        ContentPart::Image(_) => Some("image"),
        ContentPart::Audio(_) => Some("audio"),
        ContentPart::Video(_) => Some("video"),
        ContentPart::Document(_) => Some("document"),
    }
}
