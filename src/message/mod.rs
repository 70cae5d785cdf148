//! The 7 messages of AG-UI 1.0, as types: those of a snapshot and of `MESSAGES_SNAPSHOT`.

use std::sync::Arc;

use serde_json::Value;

use crate::error::Error;
use crate::id::{MessageId, SubagentRunId, ToolCallId};
use crate::shared::{List, Metadata, Object, Text};
use crate::warning::Warning;

mod content;

pub use crate::json::partial::PartialArguments;
pub use content::{
    AudioPart, Content, ContentPart, DataSource, DocumentPart, FileSource, ImagePart, PartSource, TextPart, UrlSource,
    VideoPart,
};

closed_set! {
    /// The role of a message: which of the 7 it is.
    pub enum Role {
        /// Of the application's developer.
        Developer = "developer",
        /// Of the system.
        System = "system",
        /// Of the agent.
        Assistant = "assistant",
        /// Of the user.
        User = "user",
        /// The result of a tool call.
        Tool = "tool",
        /// Structured activity, shown and never sent.
        Activity = "activity",
        /// Reasoning.
        Reasoning = "reasoning",
    }
}

object! {
    /// A message of the application's developer.
    pub struct DeveloperMessage {
        tag "role" "developer";
        required {
            /// The message's id.
            id: MessageId = "id",
            /// Its text.
            content: Text = "content",
        }
        optional {
            /// Which developer.
            name: Arc<str> = "name",
            /// An opaque value that goes back to the producer (rule A7).
            encrypted_value: Arc<str> = "encryptedValue",
            /// The producer's own data (rule A1).
            metadata: Metadata = "metadata",
        }
        flatten subagent_run_id;
    }
}

object! {
    /// A message of the system.
    pub struct SystemMessage {
        tag "role" "system";
        required {
            /// The message's id.
            id: MessageId = "id",
            /// Its text.
            content: Text = "content",
        }
        optional {
            /// Which system.
            name: Arc<str> = "name",
            /// An opaque value that goes back to the producer (rule A7).
            encrypted_value: Arc<str> = "encryptedValue",
            /// The producer's own data (rule A1).
            metadata: Metadata = "metadata",
        }
        flatten subagent_run_id;
    }
}

object! {
    /// A message of the agent: text, tool calls, or both.
    pub struct AssistantMessage {
        tag "role" "assistant";
        required {
            /// The message's id.
            id: MessageId = "id",
        }
        optional {
            /// Its text; absent where it only holds tool calls.
            content: Text = "content",
            /// Its tool calls, in the order made.
            tool_calls: List<Arc<ToolCall>> = "toolCalls",
            /// Which agent.
            name: Arc<str> = "name",
            /// An opaque value that goes back to the producer (rule A7).
            encrypted_value: Arc<str> = "encryptedValue",
            /// The producer's own data (rule A1).
            metadata: Metadata = "metadata",
        }
        flatten subagent_run_id;
    }
}

object! {
    /// A message of the user: text, or a list of parts.
    pub struct UserMessage {
        tag "role" "user";
        required {
            /// The message's id.
            id: MessageId = "id",
            /// What it says.
            content: Content = "content",
        }
        optional {
            /// Which user.
            name: Arc<str> = "name",
            /// An opaque value that goes back to the producer (rule A7).
            encrypted_value: Arc<str> = "encryptedValue",
            /// The producer's own data (rule A1).
            metadata: Metadata = "metadata",
        }
        flatten subagent_run_id;
    }
}

object! {
    /// What a tool call gave back.
    pub struct ToolMessage {
        tag "role" "tool";
        required {
            /// The message's id.
            id: MessageId = "id",
            /// The result.
            content: Content = "content",
            /// The call that it answers.
            tool_call_id: ToolCallId = "toolCallId",
        }
        optional {
            /// What went wrong, if the tool failed.
            error: Arc<str> = "error",
            /// An opaque value that goes back to the producer (rule A7).
            encrypted_value: Arc<str> = "encryptedValue",
            /// The producer's own data (rule A1).
            metadata: Metadata = "metadata",
        }
        flatten subagent_run_id;
    }
}

object! {
    /// Structured activity, such as a plan or a search, for the application to show.
    pub struct ActivityMessage {
        tag "role" "activity";
        required {
            /// The message's id.
            id: MessageId = "id",
            /// What kind of activity it shows.
            activity_type: Arc<str> = "activityType",
            /// The activity.
            content: Object = "content",
        }
        optional {
            /// The producer's own data (rule A1).
            metadata: Metadata = "metadata",
        }
        flatten subagent_run_id;
    }
}

object! {
    /// What the agent thought.
    pub struct ReasoningMessage {
        tag "role" "reasoning";
        required {
            /// The message's id.
            id: MessageId = "id",
            /// The thought.
            content: Text = "content",
        }
        optional {
            /// An opaque value that goes back to the producer (rule A7).
            encrypted_value: Arc<str> = "encryptedValue",
            /// The producer's own data (rule A1).
            metadata: Metadata = "metadata",
        }
        flatten subagent_run_id;
    }
}

object! {
    /// A call of a tool, on the assistant message that made it.
    pub struct ToolCall {
        const "type" "function";
        required {
            /// The call's id.
            id: ToolCallId = "id",
            /// What is called, and with which arguments.
            function: FunctionCall = "function",
        }
        optional {
            /// An opaque value that goes back to the producer (rule A7).
            encrypted_value: Arc<str> = "encryptedValue",
            /// The producer's own data (rule A1).
            metadata: Metadata = "metadata",
        }
    }
}

object! {
    /// The name of a tool and the arguments it is called with.
    pub struct FunctionCall {
        required {
            /// The tool.
            name: Arc<str> = "name",
            /// The arguments: text, usually JSON once the call is closed (rule A9). To show them before,
            /// use [`FunctionCall::partial_arguments`].
            arguments: Text = "arguments",
        }
    }
}

union! {
    /// A message of the conversation.
    ///
    /// A clone copies no text. Serialized to its exact wire form.
    pub enum Message by "role" {
        /// Of the application's developer.
        Developer "developer" DeveloperMessage,
        /// Of the system.
        System "system" SystemMessage,
        /// Of the agent.
        Assistant "assistant" AssistantMessage,
        /// Of the user.
        User "user" UserMessage,
        /// The result of a tool call.
        Tool "tool" ToolMessage,
        /// Structured activity.
        Activity "activity" ActivityMessage,
        /// Reasoning.
        Reasoning "reasoning" ReasoningMessage,
    }
}

impl FunctionCall {
    /// The arguments received so far, as a value to show while they stream.
    ///
    /// Strings and containers that are still open are closed at the end of the text. A key without a
    /// value is left out, and so is a number, literal or escape that may be incomplete. So a member
    /// that appears stays, and only the last strings and containers grow. When the text is complete,
    /// this is its value.
    ///
    /// `None` where nothing is known yet, where the text is not JSON, and where it is nested deeper
    /// than [`Limits::CEILING_DEPTH`](crate::Limits::CEILING_DEPTH). Do not act on arguments before
    /// their call is closed, even if they look complete (rule A9).
    ///
    /// # Cost
    /// One pass over the arguments. To show long ones after each delta, give the deltas to a
    /// [`PartialArguments`], which goes on where it was.
    ///
    /// # Examples
    /// ```
    /// use ag_ui_stream::machine::{Pipeline, Push};
    /// use serde_json::json;
    ///
    /// let mut pipeline = Pipeline::new();
    /// for event in [
    ///     r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#,
    ///     r#"{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"book"}"#,
    ///     r#"{"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"{\"to\": \"Par"}"#,
    /// ] {
    ///     pipeline.push(event)?;
    /// }
    /// let function = |pipeline: &Pipeline| pipeline.snapshot().tool_call("c").unwrap().function.clone();
    /// assert_eq!(function(&pipeline).partial_arguments(), Some(json!({"to": "Par"})));
    ///
    /// // Three nights, or thirty?
    /// pipeline.push(r#"{"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"is\", \"nights\": 3"}"#)?;
    /// assert_eq!(function(&pipeline).partial_arguments(), Some(json!({"to": "Paris"})));
    /// # Ok::<(), ag_ui_stream::Error>(())
    /// ```
    #[must_use]
    pub fn partial_arguments(&self) -> Option<Value> {
        let mut arguments = PartialArguments::new();
        self.arguments.chunks().for_each(|chunk| arguments.push(chunk));
        arguments.into_value()
    }
}

macro_rules! for_each_message {
    ($message:expr, $inner:ident => $value:expr) => {
        match $message {
            Message::Developer($inner) => $value,
            Message::System($inner) => $value,
            Message::Assistant($inner) => $value,
            Message::User($inner) => $value,
            Message::Tool($inner) => $value,
            Message::Activity($inner) => $value,
            Message::Reasoning($inner) => $value,
        }
    };
}

impl Message {
    /// Reads one message from JSON text, such as a stored one, by the rules for a message within a
    /// `MESSAGES_SNAPSHOT`: unknown parts are removed with a warning (E2 to E4).
    ///
    /// Gives the message and the warnings; `None` for a message of an unknown role.
    ///
    /// # Errors
    /// [`Error::Malformed`] (E5, and E9 for invalid JSON); [`Error::LimitExceeded`] for a message that
    /// is nested too deep.
    ///
    /// # Examples
    /// A stored conversation, given to a pipeline:
    /// ```
    /// use ag_ui_stream::Options;
    /// use ag_ui_stream::message::{Message, UserMessage};
    ///
    /// let before = Options::new().history([UserMessage::new("m", "Hello").into()]).build();
    /// let stored = serde_json::to_string(&before.snapshot().messages())?;
    ///
    /// let mut history = Vec::new();
    /// for value in serde_json::from_str::<Vec<serde_json::Value>>(&stored)? {
    ///     let (message, warnings) = Message::from_value(&value)?;
    ///     assert_eq!(warnings, []);
    ///     history.extend(message);
    /// }
    /// let after = Options::new().history(history).build();
    /// assert_eq!(after.snapshot(), before.snapshot());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_json(json: impl AsRef<[u8]>) -> Result<(Option<Self>, Vec<Warning>), Error> {
        crate::schema::read::from_json(json.as_ref(), "Message", "a message")
    }

    /// The same from a [`Value`].
    ///
    /// # Errors
    /// As [`Message::from_json`].
    pub fn from_value(value: &Value) -> Result<(Option<Self>, Vec<Warning>), Error> {
        crate::schema::read::from_value(value, "Message")
    }

    /// The message's id.
    #[must_use]
    pub fn id(&self) -> &MessageId {
        for_each_message!(self, message => &message.id)
    }

    /// The message's role.
    #[must_use]
    pub fn role(&self) -> Role {
        match self {
            Message::Developer(_) => Role::Developer,
            Message::System(_) => Role::System,
            Message::Assistant(_) => Role::Assistant,
            Message::User(_) => Role::User,
            Message::Tool(_) => Role::Tool,
            Message::Activity(_) => Role::Activity,
            Message::Reasoning(_) => Role::Reasoning,
        }
    }

    /// The subagent invocation that it belongs to; absent means the parent agent.
    #[must_use]
    pub fn subagent_run_id(&self) -> Option<&SubagentRunId> {
        for_each_message!(self, message => message.subagent_run_id.as_ref())
    }

    #[cfg(feature = "stream")]
    pub(crate) fn id_mut(&mut self) -> &mut MessageId {
        for_each_message!(self, message => &mut message.id)
    }

    pub(crate) fn subagent_run_id_mut(&mut self) -> &mut Option<SubagentRunId> {
        for_each_message!(self, message => &mut message.subagent_run_id)
    }

    /// The producer's own data about it.
    #[must_use]
    pub fn metadata(&self) -> Option<&Metadata> {
        for_each_message!(self, message => message.metadata.as_ref())
    }

    /// Which speaker of its role, if the producer says so.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        match self {
            Message::Developer(message) => message.name.as_deref(),
            Message::System(message) => message.name.as_deref(),
            Message::Assistant(message) => message.name.as_deref(),
            Message::User(message) => message.name.as_deref(),
            Message::Tool(_) | Message::Activity(_) | Message::Reasoning(_) => None,
        }
    }

    /// The text of the message: its content, or its text parts one after the other where the content
    /// is a list of parts; `None` where it has no text.
    ///
    /// O(1), unless the content is a list of parts.
    #[must_use]
    pub fn text(&self) -> Option<Text> {
        match self {
            Message::Developer(message) => Some(message.content.clone()),
            Message::System(message) => Some(message.content.clone()),
            Message::Assistant(message) => message.content.clone(),
            Message::User(message) => message.content.text(),
            Message::Tool(message) => message.content.text(),
            Message::Reasoning(message) => Some(message.content.clone()),
            Message::Activity(_) => None,
        }
    }

    /// The message's tool calls; only an assistant message has any.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        let calls = match self {
            Message::Assistant(message) => message.tool_calls.as_ref(),
            _ => None,
        };
        calls.into_iter().flatten().map(AsRef::as_ref)
    }

    /// The field for an encrypted value; an activity has none (rule A7).
    pub(crate) fn encrypted_value_mut(&mut self) -> Option<&mut Option<Arc<str>>> {
        match self {
            Message::Developer(message) => Some(&mut message.encrypted_value),
            Message::System(message) => Some(&mut message.encrypted_value),
            Message::Assistant(message) => Some(&mut message.encrypted_value),
            Message::User(message) => Some(&mut message.encrypted_value),
            Message::Tool(message) => Some(&mut message.encrypted_value),
            Message::Reasoning(message) => Some(&mut message.encrypted_value),
            Message::Activity(_) => None,
        }
    }

    /// The bytes of it that count as documents, which patches can make larger than what was sent.
    pub(crate) fn document_bytes(&self) -> usize {
        match self {
            Message::Activity(message) => message.content.bytes(),
            _ => 0,
        }
    }

    pub(crate) fn metadata_mut(&mut self) -> &mut Option<Metadata> {
        for_each_message!(self, message => &mut message.metadata)
    }
}
