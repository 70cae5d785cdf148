//! Writes recordings as JSON: one object a line for each input, or bare events or messages as JSON Lines.

use std::borrow::Cow;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};

use ag_ui_stream::event::{Interrupt, TokenUsage};
use ag_ui_stream::id::ToolCallId;
use ag_ui_stream::snapshot::{Messages, Run, RunOutcome, Snapshot, Subagent, SubagentStatus};
use ag_ui_stream::{Error, Warning};
use serde::Serialize;
use serde::ser::SerializeSeq;
use serde_json::Value;
use tempfile::SpooledTempFile;

use crate::run::{Fault, Outcome};
use crate::text;

/// A JSON array that grows without using memory: beyond some length it is in a temporary file, so that
/// memory is bounded by the conversation and not by the recording.
#[derive(Debug)]
pub(crate) struct Spool {
    file: BufWriter<SpooledTempFile>,
    empty: bool,
}

impl Spool {
    const IN_MEMORY: usize = 4 * 1024 * 1024;

    pub(crate) fn new() -> Self {
        Self { file: BufWriter::with_capacity(64 * 1024, SpooledTempFile::new(Self::IN_MEMORY)), empty: true }
    }

    pub(crate) fn push(&mut self, value: &impl Serialize) -> io::Result<()> {
        if !std::mem::take(&mut self.empty) {
            self.file.write_all(b",")?;
        }
        text::write_json(&mut self.file, value)
    }

    fn copy(self, out: &mut impl Write) -> io::Result<()> {
        out.write_all(b"[")?;
        let mut file = self.file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.seek(SeekFrom::Start(0))?;
        io::copy(&mut file, out)?;
        out.write_all(b"]")
    }
}

/// The error that ended a stream, in a report.
#[derive(Serialize)]
pub(crate) struct ErrorReport {
    rule: Option<&'static str>,
    event: Option<u64>,
    r#type: Option<&'static str>,
    message: String,
    line: Option<u64>,
}

impl ErrorReport {
    pub(crate) fn new(error: &Error, line: Option<u64>) -> Self {
        Self {
            rule: error.rule().map(ag_ui_stream::Rule::as_str),
            // If the input ends too early, the event at fault is the missing one.
            event: match error {
                Error::Truncated(truncated) => Some(truncated.events),
                other => other.event_index(),
            },
            r#type: error.event_type().map(ag_ui_stream::EventType::as_str),
            message: text::cut(&error.to_string()).into_owned(),
            line,
        }
    }

    fn of(fault: &Fault) -> Self {
        match fault {
            Fault::Stream { error, line, .. } => Self::new(error, *line),
            Fault::Input(unreadable) => Self {
                rule: None,
                event: None,
                r#type: None,
                message: text::cut(&unreadable.title()).into_owned(),
                line: unreadable.line,
            },
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RunReport<'a> {
    thread_id: Option<&'a str>,
    run_id: Option<&'a str>,
    outcome: &'static str,
    message: Option<&'a str>,
    pending_tool_call_ids: &'a [ToolCallId],
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_run_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    protocol_version: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    interrupts: Option<&'a [Interrupt]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<&'a [TokenUsage]>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    subagents: Vec<SubagentReport<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    open: Vec<OpenReport<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SubagentReport<'a> {
    subagent_run_id: &'a str,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_subagent_run_id: Option<&'a str>,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a Value>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OpenReport<'a> {
    kind: String,
    id: &'a str,
    subagent_run_id: Option<&'a str>,
    event: u64,
}

impl<'a> RunReport<'a> {
    fn new(run: &'a Run) -> Self {
        let (message, code) = match &run.outcome {
            RunOutcome::Error { message, code } => (Some(&**message), code.as_deref()),
            _ => (None, None),
        };
        Self {
            thread_id: run.thread_id.as_ref().map(AsRef::as_ref),
            run_id: run.run_id.as_ref().map(AsRef::as_ref),
            outcome: run.outcome.as_str(),
            message,
            pending_tool_call_ids: run.pending_tool_call_ids(),
            parent_run_id: run.parent_run_id.as_ref().map(AsRef::as_ref),
            protocol_version: run.protocol_version.as_deref(),
            code,
            interrupts: match &run.outcome {
                RunOutcome::Interrupt { interrupts, .. } => Some(interrupts),
                _ => None,
            },
            result: run.result.as_deref(),
            usage: run.usage.as_deref(),
            subagents: run.subagents().map(SubagentReport::new).collect(),
            open: run
                .open()
                .map(|item| OpenReport {
                    kind: item.kind.to_string(),
                    id: item.id(),
                    subagent_run_id: item.owner.as_ref().map(AsRef::as_ref),
                    event: item.since,
                })
                .collect(),
        }
    }
}

impl<'a> SubagentReport<'a> {
    fn new(subagent: &'a Subagent) -> Self {
        Self {
            subagent_run_id: subagent.subagent_run_id.as_ref(),
            name: &subagent.name,
            parent_subagent_run_id: subagent.parent_subagent_run_id.as_ref().map(AsRef::as_ref),
            status: status_word(&subagent.status),
            message: match &subagent.status {
                SubagentStatus::Error { message, .. } => Some(message),
                _ => None,
            },
            result: subagent.result.as_deref(),
        }
    }
}

/// The status of a subagent, in a word.
pub(crate) fn status_word(status: &SubagentStatus) -> &'static str {
    use ag_ui_stream::event::SubagentFinishedOutcome;
    match status {
        SubagentStatus::Running => "running",
        SubagentStatus::Finished(SubagentFinishedOutcome::Success(_)) => "success",
        SubagentStatus::Finished(SubagentFinishedOutcome::Suspended(_)) => "suspended",
        SubagentStatus::Error { .. } => "error",
        SubagentStatus::Abandoned => "abandoned",
        _ => "unknown",
    }
}

#[derive(Serialize)]
pub(crate) struct WarningReport<'a> {
    rule: &'static str,
    event: u64,
    r#type: &'a str,
    path: Cow<'a, str>,
    message: Cow<'a, str>,
}

impl<'a> WarningReport<'a> {
    pub(crate) fn new(warning: &'a Warning) -> Self {
        Self {
            rule: warning.rule.as_str(),
            event: warning.event,
            r#type: &warning.event_type,
            path: text::cut(&warning.path),
            message: text::cut(&warning.message),
        }
    }
}

struct Runs<'a>(&'a Snapshot);

impl Serialize for Runs<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.0.runs().len()))?;
        for run in self.0.runs() {
            list.serialize_element(&RunReport::new(run))?;
        }
        list.end()
    }
}

#[derive(Serialize)]
struct Head<'a> {
    source: &'a str,
    outcome: &'static str,
    error: Option<ErrorReport>,
    runs: Runs<'a>,
}

/// The report of one input: the object of `--json`, written piece by piece.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) events: Spool,
    pub(crate) warnings: Spool,
    /// Members beyond the usual ones, as JSON.
    pub(crate) more: Vec<(&'static str, Spool)>,
}

impl Report {
    pub(crate) fn new() -> Self {
        Self { events: Spool::new(), warnings: Spool::new(), more: Vec::new() }
    }

    /// Writes it as one line.
    pub(crate) fn write(
        self,
        out: &mut impl Write,
        source: &str,
        outcome: Outcome,
        fault: Option<&Fault>,
        snapshot: &Snapshot,
    ) -> io::Result<()> {
        let head = Head { source, outcome: outcome.as_str(), error: fault.map(ErrorReport::of), runs: Runs(snapshot) };
        let mut written = Vec::new();
        text::write_json(&mut written, &head)?;
        out.write_all(written.strip_suffix(b"}").unwrap_or(&written))?;
        out.write_all(b",\"events\":")?;
        self.events.copy(out)?;
        out.write_all(b",\"warnings\":")?;
        self.warnings.copy(out)?;
        out.write_all(b",\"messages\":")?;
        text::write_json(out, &snapshot.messages())?;
        out.write_all(b",\"state\":")?;
        text::write_json(out, snapshot.state())?;
        for (name, spool) in self.more {
            write!(out, ",\"{name}\":")?;
            spool.copy(out)?;
        }
        out.write_all(b"}\n")
    }
}

/// A value as a line.
pub(crate) fn write_line(out: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    text::write_json(out, value)?;
    out.write_all(b"\n")
}

/// Each message as a line.
pub(crate) fn write_messages(out: &mut impl Write, messages: Messages<'_>) -> io::Result<()> {
    messages.iter().try_for_each(|message| write_line(out, message))
}
