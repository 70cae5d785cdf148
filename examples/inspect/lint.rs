//! The linter: reports every fault of a recording, and what is legal but suspect.
//!
//! It drives the stages one by one, as it continues after an error: each stage is then in its state from
//! before the event at fault.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::io::{self, Write};

use ag_ui_stream::event::{
    MessagesSnapshotEvent, ReasoningMessageContentEvent, RunFinishedEvent, RunFinishedOutcome, TextMessageContentEvent,
    TextMessageStartEvent,
};
use ag_ui_stream::id::{MessageId, SubagentRunId, ToolCallId};
use ag_ui_stream::machine::{Assembler, Cut, Enforcer, Expander, Machine, Push, Recovery, Upgrader, Verifier};
use ag_ui_stream::snapshot::{ItemStatus, Run, Snapshot, Text, Update};
use ag_ui_stream::{Error, Event, EventType, Item, Message, Rule, Warning};
use serde::Serialize;

use crate::diagnostic::{Diagnostic, Level};
use crate::input::{Frame, Input, Next};
use crate::json::locate;
use crate::report::{ErrorReport, Report, Spool, WarningReport};
use crate::run::{Fault, History, Lines, Outcome, Settings, error_of_end};
use crate::text;

macro_rules! lints {
    ($($id:ident $name:literal $title:literal $explain:literal;)*) => {
        /// Something that is legal but suspect. The names are stable.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub(crate) enum Lint {
            $($id,)*
        }

        impl Lint {
            /// Every lint, in the order of the table.
            pub(crate) const ALL: &'static [Lint] = &[$(Lint::$id),*];

            /// The name as it is cited.
            pub(crate) fn name(self) -> &'static str {
                match self { $(Lint::$id => $name,)* }
            }

            /// The lint in one line.
            pub(crate) fn title(self) -> &'static str {
                match self { $(Lint::$id => $title,)* }
            }

            /// Why it is suspect, and what to do.
            pub(crate) fn explanation(self) -> &'static str {
                match self { $(Lint::$id => $explain,)* }
            }
        }
    };
}

lints! {
    RepeatedText "repeated-text" "a delta repeats everything so far"
        "Deltas are appended (S3), so the text is there twice. Some frameworks send the whole text once more when a \
         message is complete, or the text so far in each event: send only what is new.";
    RenamedBySnapshot "renamed-by-snapshot" "a snapshot drops a streamed message and brings its text under a new id"
        "A snapshot reconciles by id (A2): whoever holds on to the old id, a view or an answer to it, loses the \
         message. Stream under the id that the message will keep.";
    DroppedBySnapshot "dropped-by-snapshot" "a snapshot drops a message that was streamed in this run"
        "What a snapshot leaves out is gone (A2). Usually it was taken from storage before the message got there.";
    RunIdMismatch "run-id-mismatch" "RUN_FINISHED carries another runId than its RUN_STARTED"
        "AG-UI 1.0 asks for the same id (R10), and the next version rejects this, as --strict does.";
    ThreadIdMismatch "thread-id-mismatch" "the threadId changes within a stream"
        "RUN_FINISHED repeats the threadId of its RUN_STARTED, and all runs on a stream belong to one thread (R10). \
         The next version rejects this, as --strict does.";
    DuplicateInterruptId "duplicate-interrupt-id" "two interrupts of a run have one id"
        "An answer names the id of its interrupt (R10), so only one of the two can be answered. The next version \
         rejects this, as --strict does.";
    EmptyMessage "empty-message" "a message ended without any text"
        "It shows as an empty bubble. Start a message when its first text is there; a tool call does not need one.";
    EmptyDelta "empty-delta" "a delta is empty"
        "It changes nothing (E8), and consumers from before 1.0 reject it.";
    ArgumentsNotJson "arguments-not-json" "the arguments of a tool call are not valid JSON"
        "Arguments are text (A9), but whoever runs the tool will parse them. Often they were sent twice, or cut off.";
    UnansweredToolCall "unanswered-tool-call" "a run succeeded and a tool call has no result"
        "The application is expected to answer it (R9). If that is meant, name the call in pendingToolCallIds of the \
         outcome; if not, its result was lost.";
    UnknownToolCall "unknown-tool-call" "a result answers a tool call that nobody made"
        "It cannot be placed after its call (S9) and most models reject such a history.";
    EarlyResult "early-result" "a result comes before the arguments of its tool call are complete"
        "The call is still open, so nobody can have run it with the arguments that are yet to come.";
    UnannouncedSubagent "unannounced-subagent" "an event belongs to a subagent that was not announced"
        "That is accepted (O5), but a view has no name to show, and nothing tells when the subagent is done.";
    ReopenedItem "reopened-item" "a closed message or tool call is opened again"
        "Its content goes on where it ended (S5). Consumers from before 1.0 start it anew or show it twice.";
    ConflictingRole "conflicting-role" "a message is opened again in another role"
        "The role that was there first stands (S5), so what follows is shown as somebody else's.";
    DuplicateMessage "duplicate-message" "the same text was streamed under two ids in one run"
        "It shows twice. Often two layers of a framework both translate what the model says.";
    BackwardsTimestamp "backwards-timestamp" "an event is older than the one before it"
        "Events come in the order in which they happened. A unit that changes, seconds for milliseconds, looks like \
         this too.";
    EmptyRun "empty-run" "a run succeeded and did nothing"
        "It has neither message nor state nor anything else between its first and its last event.";
}

impl Lint {
    /// The lint with this name; letters in either case.
    pub(crate) fn from_name(name: &str) -> Option<Lint> {
        Lint::ALL.iter().copied().find(|lint| lint.name().eq_ignore_ascii_case(name))
    }

    /// The lint that a warning is reported as.
    fn of_warning(warning: &Warning) -> Option<Lint> {
        match (warning.rule, warning.path.as_str()) {
            (Rule::R10, "/runId") => Some(Lint::RunIdMismatch),
            (Rule::R10, "/threadId") => Some(Lint::ThreadIdMismatch),
            (Rule::R10, _) => Some(Lint::DuplicateInterruptId),
            _ => None,
        }
    }
}

/// The explanation of a rule or a lint; `None` if there is none of this name.
pub(crate) fn explain(name: &str) -> Option<String> {
    let wrapped = |title: String, text: &str, page: Option<String>| {
        let mut lines = Vec::new();
        let mut wrapper = text::Wrapper::new(79);
        wrapper.push(text, &mut lines);
        wrapper.finish(&mut lines);
        let page = page.map(|page| format!("\n{page}\n")).unwrap_or_default();
        format!("{title}\n\n{}\n{page}", lines.join("\n"))
    };
    if let Some(rule) = Rule::from_id(name) {
        let title = format!("{rule}: {}", rule.title());
        return Some(wrapped(title, rule.explanation(), Some(crate::diagnostic::page(rule))));
    }
    let lint = Lint::from_name(name)?;
    Some(wrapped(format!("{}: {}", lint.name(), lint.title()), lint.explanation(), None))
}

/// A finding of a lint, without the line and text of its event.
#[derive(Debug)]
struct Finding {
    lint: Lint,
    /// Its subject, by which repetitions are recognized.
    subject: String,
    event: u64,
    /// The note about this one.
    note: String,
    /// The JSON pointer of the place in the event.
    pointer: &'static str,
}

#[derive(Serialize)]
struct LintReport<'a> {
    lint: &'static str,
    event: u64,
    line: Option<u64>,
    message: Cow<'a, str>,
}

/// The messages, calls and subagents of the run, as far as lints need them.
#[derive(Debug, Default)]
struct Seen {
    messages: HashMap<MessageId, Streamed>,
    calls: HashMap<ToolCallId, Called>,
    /// The first message with this text.
    texts: HashMap<String, MessageId>,
    announced: HashSet<SubagentRunId>,
    anything: bool,
}

#[derive(Debug)]
struct Streamed {
    ended_at: Option<u64>,
}

#[derive(Debug)]
struct Called {
    started_at: u64,
    ended: bool,
    answered: bool,
}

/// Searches the updates of a stream for suspect events.
#[derive(Debug)]
struct Lints {
    before: Snapshot,
    run: Seen,
    last_timestamp: Option<i64>,
    found: Vec<Finding>,
}

impl Lints {
    fn new(before: Snapshot) -> Self {
        Self { before, run: Seen::default(), last_timestamp: None, found: Vec::new() }
    }

    fn find(&mut self, lint: Lint, subject: &str, event: u64, pointer: &'static str, note: String) {
        self.found.push(Finding { lint, subject: subject.to_owned(), event, note, pointer });
    }

    fn look(&mut self, update: &Update) {
        if let Item::Event(indexed) = update.item() {
            let index = indexed.index().unwrap_or_default();
            self.event(&indexed.event, indexed.sent_as(), index, update.snapshot());
        }
        self.before = update.snapshot().clone();
    }

    fn event(&mut self, event: &Event, sent_as: EventType, index: u64, after: &Snapshot) {
        if let Some(timestamp) = event.base().timestamp {
            if let Some(last) = self.last_timestamp.replace(timestamp).filter(|last| *last > timestamp) {
                let note = format!("{timestamp} comes after {last}");
                self.find(Lint::BackwardsTimestamp, "", index, "/timestamp", note);
            }
        }
        if !matches!(event, Event::RunStarted(_) | Event::RunFinished(_) | Event::RunError(_)) {
            self.run.anything = true;
        }
        self.check_subagent(event, index);
        // A chunk may carry nothing but an empty delta.
        let is_chunk = sent_as != event.event_type();
        match event {
            Event::RunStarted(_) => self.run = Seen::default(),
            Event::RunFinished(event) => self.run_finished(event, index, after),
            Event::RunError(_) => self.run_ended(after),
            Event::TextMessageStart(event) => self.message_started(event, index),
            Event::TextMessageContent(TextMessageContentEvent { message_id, delta, .. })
            | Event::ReasoningMessageContent(ReasoningMessageContentEvent { message_id, delta, .. }) => {
                let known = self.before.message(message_id).and_then(Message::text);
                self.check_delta(message_id.as_ref(), delta, known, index, is_chunk);
            }
            Event::TextMessageEnd(event) => self.message_ended(&event.message_id, index, after),
            Event::ToolCallStart(event) => {
                let id = &event.tool_call_id;
                if self.run.calls.get(id).is_some_and(|call| call.ended) {
                    let note = format!("tool call {:?} had ended", id.as_ref());
                    self.find(Lint::ReopenedItem, id.as_ref(), index, "/toolCallId", note);
                }
                let answered = self.run.calls.get(id).is_some_and(|call| call.answered);
                self.run.calls.insert(id.clone(), Called { started_at: index, ended: false, answered });
            }
            Event::ToolCallArgs(event) => {
                let known = self.before.tool_call(&event.tool_call_id).map(|call| call.function.arguments.clone());
                self.check_delta(event.tool_call_id.as_ref(), &event.delta, known, index, is_chunk);
            }
            Event::ToolCallEnd(event) => self.call_ended(&event.tool_call_id, index, after),
            Event::ToolCallResult(event) => {
                let id = &event.tool_call_id;
                if let Some(call) = self.run.calls.get_mut(id) {
                    call.answered = true;
                }
                match self.before.tool_call_status(id) {
                    None => {
                        let note = format!("there is no tool call {:?}", id.as_ref());
                        self.find(Lint::UnknownToolCall, id.as_ref(), index, "/toolCallId", note);
                    }
                    Some(ItemStatus::Streaming) => {
                        let note = format!("tool call {:?} is still open", id.as_ref());
                        self.find(Lint::EarlyResult, id.as_ref(), index, "/toolCallId", note);
                    }
                    Some(_) => {}
                }
            }
            Event::MessagesSnapshot(event) => self.restated(event, index, after),
            _ => {}
        }
    }

    fn check_subagent(&mut self, event: &Event, index: u64) {
        let Some(id) = event.subagent_run_id() else { return };
        let announces = matches!(event, Event::SubagentStarted(_));
        // Once is enough: from then on it counts as announced.
        if self.run.announced.insert(id.clone()) && !announces {
            let note = format!("no SUBAGENT_STARTED for {:?} in this run", id.as_ref());
            self.find(Lint::UnannouncedSubagent, id.as_ref(), index, "/subagentRunId", note);
        }
    }

    fn check_delta(&mut self, id: &str, delta: &str, known: Option<Text>, index: u64, is_chunk: bool) {
        /// A shorter text may repeat itself by chance: "ha", "ha".
        const LEAST: usize = 6;
        if delta.is_empty() && !is_chunk {
            self.find(Lint::EmptyDelta, id, index, "/delta", format!("it adds nothing to {id:?}"));
        }
        let Some(known) = known.filter(|known| (LEAST..=delta.len()).contains(&known.len())) else { return };
        let mut rest = delta;
        let repeats = known.chunks().all(|chunk| match rest.strip_prefix(chunk) {
            Some(after) => {
                rest = after;
                true
            }
            None => false,
        });
        if repeats {
            let more = if rest.is_empty() { "and nothing else" } else { "and goes on" };
            let note = format!("it repeats the {} of {id:?} so far, {more}", text::size(known.len()));
            self.find(Lint::RepeatedText, id, index, "/delta", note);
        }
    }

    fn message_started(&mut self, event: &TextMessageStartEvent, index: u64) {
        let id = &event.message_id;
        if self.run.messages.get(id).is_some_and(|message| message.ended_at.is_some()) {
            let note = format!("message {:?} had ended", id.as_ref());
            self.find(Lint::ReopenedItem, id.as_ref(), index, "/messageId", note);
        }
        let held = self.before.message(id).map(Message::role);
        if let Some((role, held)) = event.role.zip(held).filter(|(role, held)| role.as_str() != held.as_str()) {
            let note = format!("message {:?} has the role {held}, and is opened as {role}", id.as_ref());
            self.find(Lint::ConflictingRole, id.as_ref(), index, "/role", note);
        }
        self.run.messages.insert(id.clone(), Streamed { ended_at: None });
    }

    fn message_ended(&mut self, id: &MessageId, index: u64, after: &Snapshot) {
        /// Short answers repeat themselves by right.
        const LEAST: usize = 20;
        if let Some(message) = self.run.messages.get_mut(id) {
            message.ended_at = Some(index);
        }
        let text = after.message(id).and_then(Message::text).filter(|text| text.len() >= LEAST);
        let Some(text) = text.map(|text| text.to_cow().into_owned()) else { return };
        let first = self.run.texts.entry(text).or_insert_with(|| id.clone());
        if first != id {
            let note = format!("message {:?} says the same", first.as_ref());
            self.find(Lint::DuplicateMessage, id.as_ref(), index, "/messageId", note);
        }
    }

    fn call_ended(&mut self, id: &ToolCallId, index: u64, after: &Snapshot) {
        if let Some(call) = self.run.calls.get_mut(id) {
            call.ended = true;
        }
        let Some(call) = after.tool_call(id) else { return };
        let arguments = call.function.arguments.to_cow();
        if arguments.trim().is_empty() {
            return;
        }
        if let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(&arguments) {
            let shown = text::excerpt(&arguments, 80);
            let note = format!("the arguments {shown:?} of {:?}: {error}", id.as_ref());
            self.find(Lint::ArgumentsNotJson, id.as_ref(), index, "/toolCallId", note);
        }
    }

    fn restated(&mut self, event: &MessagesSnapshotEvent, index: u64, after: &Snapshot) {
        let before = self.before.clone();
        let dropped: Vec<&Message> = before
            .messages()
            .iter()
            .filter(|message| self.run.messages.contains_key(message.id()) && after.message(message.id()).is_none())
            .collect();
        if dropped.is_empty() {
            return;
        }
        let new: Vec<&Message> =
            event.messages.iter().filter(|message| before.message(message.id()).is_none()).collect();
        for message in dropped {
            let id = message.id().as_ref();
            let text = message.text().filter(|text| !text.is_empty());
            let twin = new.iter().find(|new| new.role() == message.role() && text.is_some() && new.text() == text);
            match twin {
                Some(twin) => {
                    let note = format!("message {id:?} comes back as {:?}", twin.id().as_ref());
                    self.find(Lint::RenamedBySnapshot, id, index, "/messages", note);
                }
                None => {
                    self.find(Lint::DroppedBySnapshot, id, index, "/messages", format!("message {id:?} is gone"));
                }
            }
        }
    }

    fn run_finished(&mut self, event: &RunFinishedEvent, index: u64, after: &Snapshot) {
        let pending_is_told = match &event.outcome {
            None => Some(false),
            Some(RunFinishedOutcome::Success(outcome)) => {
                Some(outcome.pending_tool_call_ids.as_ref().is_some_and(|ids| !ids.is_empty()))
            }
            Some(_) => None,
        };
        if pending_is_told == Some(false) {
            let mut calls: Vec<(u64, ToolCallId)> = self
                .run
                .calls
                .iter()
                .filter(|(_, call)| !call.answered)
                .map(|(id, call)| (call.started_at, id.clone()))
                .collect();
            calls.sort_by_key(|(started_at, _)| *started_at);
            for (started_at, id) in calls {
                let name = after.tool_call(&id).map(|call| call.function.name.to_string()).unwrap_or_default();
                let note = format!("{name:?} was called as {:?}, and the run ended at event {index}", id.as_ref());
                self.find(Lint::UnansweredToolCall, id.as_ref(), started_at, "/toolCallId", note);
            }
        }
        if pending_is_told.is_some() && !self.run.anything {
            self.find(Lint::EmptyRun, event.run_id.as_ref(), index, "/runId", String::new());
        }
        self.run_ended(after);
    }

    fn run_ended(&mut self, after: &Snapshot) {
        let mut empty: Vec<(u64, MessageId)> = Vec::new();
        for (id, streamed) in &self.run.messages {
            let Some((ended_at, message)) = streamed.ended_at.zip(after.message(id)) else { continue };
            let silent = message.text().is_none_or(|text| text.is_empty()) && message.tool_calls().next().is_none();
            if silent && !matches!(message, Message::Activity(_)) {
                empty.push((ended_at, id.clone()));
            }
        }
        empty.sort_by_key(|(ended_at, _)| *ended_at);
        for (ended_at, id) in empty {
            let note = format!("nothing was said in {:?}", id.as_ref());
            self.find(Lint::EmptyMessage, id.as_ref(), ended_at, "/messageId", note);
        }
    }
}

/// The findings reported before, and how often each came again.
#[derive(Debug, Default)]
struct Repeats {
    known: HashMap<(String, String), (usize, u64)>,
    /// In the order in which they came again first.
    again: Vec<Again>,
}

#[derive(Debug)]
struct Again {
    level: Level,
    code: String,
    what: String,
    count: u64,
    first: u64,
    last: u64,
}

impl Repeats {
    /// The most distinct findings that are tracked.
    const MOST: usize = 4096;

    /// Whether this is new; if not, it is counted.
    fn is_new(&mut self, level: Level, code: &str, what: &str, event: u64) -> bool {
        let key = (code.to_owned(), what.to_owned());
        match self.known.get_mut(&key) {
            None => {
                if self.known.len() < Self::MOST {
                    self.known.insert(key, (usize::MAX, event));
                }
                true
            }
            Some((place, _)) => {
                if *place == usize::MAX {
                    *place = self.again.len();
                    let (code, what) = key;
                    self.again.push(Again { level, code, what, count: 0, first: event, last: event });
                }
                if let Some(again) = self.again.get_mut(*place) {
                    again.count += 1;
                    again.last = event;
                }
                false
            }
        }
    }
}

/// Reads a recording to its end, whatever its faults.
#[derive(Debug)]
pub(crate) struct Linter<'a> {
    source: &'a str,
    colors: bool,
    columns: usize,
    /// Whether the report is to be JSON, and not shown.
    json: bool,
    report: Report,
    violations: Spool,
    lints_found: Spool,
    compat: Option<Upgrader>,
    enforcer: Enforcer,
    expander: Expander,
    verifier: Verifier,
    assembler: Assembler,
    lints: Lints,
    lines: Lines,
    repeats: Repeats,
    first: Option<Fault>,
    counts: [u64; 3],
    /// The text to be shown next.
    shown: String,
}

impl<'a> Linter<'a> {
    pub(crate) fn new(
        settings: &Settings,
        history: History,
        source: &'a str,
        json: bool,
        colors: bool,
        columns: usize,
    ) -> Self {
        let assembler = Assembler::with_history(history.messages, history.state.map(Into::into));
        Self {
            source,
            colors,
            columns,
            json,
            report: Report::new(),
            violations: Spool::new(),
            lints_found: Spool::new(),
            compat: settings.compat.then(Upgrader::new),
            enforcer: Enforcer::new(),
            expander: Expander::new(),
            verifier: Verifier::new().with_id_checks(settings.strictness),
            lints: Lints::new(assembler.snapshot().clone()),
            assembler,
            lines: Lines::default(),
            repeats: Repeats::default(),
            first: None,
            counts: [0; 3],
            shown: String::new(),
        }
    }

    /// Reads the recording and writes the findings. After each event it calls `write` with the progress and
    /// the text.
    pub(crate) fn run<W: Write>(
        mut self,
        input: &mut Input,
        out: &mut W,
        mut write: impl FnMut(&Input, &mut W, &str) -> io::Result<()>,
    ) -> io::Result<Outcome> {
        loop {
            match input.next() {
                Ok(Next::Event(frame)) => self.event(&frame)?,
                // A linter repairs nothing.
                Ok(Next::Skipped(..)) => {}
                Ok(Next::End(cut)) => {
                    self.finish(cut)?;
                    break;
                }
                Err(unreadable) => {
                    let fault = Fault::of_input(unreadable, self.verifier.finish());
                    self.assembler.cut(Cut::Truncated);
                    if let Fault::Stream { error, .. } = &fault {
                        self.counts[0] += 1;
                        self.violations.push(&ErrorReport::new(error, None))?;
                    }
                    self.shown += &fault.diagnostic(&self.lines).show(self.source, self.colors, self.columns);
                    self.shown.push('\n');
                    self.first.get_or_insert(fault);
                    break;
                }
            }
            write(input, out, &self.shown)?;
            self.shown.clear();
        }
        self.close(out)
    }

    fn event(&mut self, frame: &Frame) -> io::Result<()> {
        self.lines.add(frame.line);
        let Some(compat) = &mut self.compat else {
            let pushed = self.enforcer.push(frame.bytes.as_slice());
            return self.enforced(pushed, frame);
        };
        let pushed = match std::str::from_utf8(&frame.bytes) {
            Ok(text) => compat.push(text),
            Err(_) => compat.push(frame.bytes.as_slice()),
        };
        self.judge(pushed, frame)?;
        while let Some(raw) = self.compat.as_mut().and_then(Upgrader::pop) {
            let pushed = self.enforcer.push(raw);
            self.enforced(pushed, frame)?;
        }
        Ok(())
    }

    fn enforced(&mut self, pushed: Result<(), Error>, frame: &Frame) -> io::Result<()> {
        while let Some(item) = self.enforcer.pop() {
            let pushed = self.expander.push(item);
            self.expanded(frame)?;
            self.judge(pushed, frame)?;
        }
        self.judge(pushed, frame)
    }

    fn expanded(&mut self, frame: &Frame) -> io::Result<()> {
        while let Some(item) = self.expander.pop() {
            let pushed = self.verifier.push(item);
            self.verified(frame)?;
            if let Err(error) = pushed {
                self.violation(error, frame)?;
                if self.verifier.recover() == Some(Recovery::Forced) {
                    self.verified(frame)?;
                }
            }
        }
        Ok(())
    }

    fn verified(&mut self, frame: &Frame) -> io::Result<()> {
        while let Some(item) = self.verifier.pop() {
            let starts = matches!(item.event(), Some(Event::RunStarted(_)));
            if starts && self.assembler.snapshot().run().is_some_and(Run::is_running) {
                // It began within another run, which ends here.
                self.assembler.cut(Cut::Rejected);
            }
            self.assembler.push(item).map_err(io::Error::other)?;
            self.assembled(frame)?;
        }
        Ok(())
    }

    fn assembled(&mut self, frame: &Frame) -> io::Result<()> {
        while let Some(update) = self.assembler.pop() {
            if let Some(warning) = update.warning() {
                self.warning(warning, frame)?;
            }
            if let (Some(event), true) = (update.event(), self.json) {
                self.report.events.push(event)?;
            }
            self.lints.look(&update);
            for finding in std::mem::take(&mut self.lints.found) {
                self.finding(&finding, frame)?;
            }
        }
        Ok(())
    }

    fn judge(&mut self, verdict: Result<(), Error>, frame: &Frame) -> io::Result<()> {
        match verdict {
            Ok(()) => Ok(()),
            Err(error) => self.violation(error, frame),
        }
    }

    fn violation(&mut self, error: Error, frame: &Frame) -> io::Result<()> {
        let line = frame.line.filter(|_| !error.is_truncated());
        self.counts[0] += 1;
        if self.json {
            self.violations.push(&ErrorReport::new(&error, line))?;
        } else {
            let code = error.rule().map_or("limit", Rule::as_str);
            // A message whose START was rejected has as many faults as it has deltas.
            let what = match &error {
                Error::Violation(fault) => match &fault.subject {
                    Some(subject) if fault.rule != Rule::R3 => subject.to_string(),
                    _ => fault.event_type.to_string(),
                },
                Error::Malformed(fault) => format!("{} {}", fault.event_type.map_or("", EventType::as_str), fault.path),
                _ => String::new(),
            };
            let event = error.event_index().unwrap_or_default();
            if self.repeats.is_new(Level::Error, code, what.trim(), event) {
                let diagnostic = Diagnostic::of_error(&error, line, &frame.bytes, &self.lines);
                self.show(&diagnostic);
            }
        }
        let text = crate::diagnostic::head(&frame.bytes).to_vec();
        self.first.get_or_insert(Fault::Stream { error, line, text, note: None });
        Ok(())
    }

    fn warning(&mut self, warning: &Warning, frame: &Frame) -> io::Result<()> {
        if let Some(lint) = Lint::of_warning(warning) {
            let pointer = match lint {
                Lint::RunIdMismatch => "/runId",
                Lint::ThreadIdMismatch => "/threadId",
                _ => "/outcome",
            };
            let (subject, note) = (warning.path.clone(), warning.message.clone());
            let finding = Finding { lint, subject, event: warning.event, note, pointer };
            if self.json {
                self.report.warnings.push(&WarningReport::new(warning))?;
            }
            return self.finding(&finding, frame);
        }
        self.counts[1] += 1;
        if self.json {
            return self.report.warnings.push(&WarningReport::new(warning));
        }
        let what = format!("{} {}", warning.event_type, without_indices(&warning.path));
        if self.repeats.is_new(Level::Warning, warning.rule.as_str(), what.trim(), warning.event) {
            let diagnostic =
                Diagnostic::of_warning(warning, self.lines.of(warning.event), self.text_of(warning.event, frame));
            self.show(&diagnostic);
        }
        Ok(())
    }

    fn finding(&mut self, finding: &Finding, frame: &Frame) -> io::Result<()> {
        self.counts[2] += 1;
        let line = self.lines.of(finding.event);
        if self.json {
            let message = if finding.note.is_empty() {
                finding.lint.title().to_owned()
            } else {
                format!("{}: {}", finding.lint.title(), finding.note)
            };
            return self.lints_found.push(&LintReport {
                lint: finding.lint.name(),
                event: finding.event,
                line,
                message: text::cut(&message),
            });
        }
        if self.repeats.is_new(Level::Lint, finding.lint.name(), &finding.subject, finding.event) {
            let text = crate::diagnostic::on_a_line(self.text_of(finding.event, frame));
            let mark = locate(&text, finding.pointer).filter(|_| !finding.note.is_empty());
            let mut notes = Vec::new();
            if mark.is_none() && !finding.note.is_empty() {
                notes.push(finding.note.clone());
            }
            notes.push(finding.lint.explanation().to_owned());
            let diagnostic = Diagnostic {
                level: Level::Lint,
                code: Some(finding.lint.name().to_owned()),
                title: finding.lint.title().to_owned(),
                event: Some(finding.event),
                line,
                text,
                mark: mark.map(|range| (range, finding.note.clone())),
                about: None,
                notes,
            };
            self.show(&diagnostic);
        }
        Ok(())
    }

    /// The text of an event, if it is the current one.
    fn text_of<'f>(&self, event: u64, frame: &'f Frame) -> &'f [u8] {
        if event + 1 == self.lines.events() { &frame.bytes } else { &[] }
    }

    fn show(&mut self, diagnostic: &Diagnostic) {
        self.shown += &diagnostic.show(self.source, self.colors, self.columns);
        self.shown.push('\n');
    }

    fn finish(&mut self, cut: Option<Error>) -> io::Result<()> {
        let nowhere = Frame::default();
        let expanded = self.expander.finish();
        self.expanded(&nowhere)?;
        self.judge(expanded, &nowhere)?;
        let finished = self.verifier.finish();
        self.assembler.finish().map_err(io::Error::other)?;
        self.assembled(&nowhere)?;
        let error = error_of_end(cut, finished, self.lines.events());
        self.judge(error.map_or(Ok(()), Err), &nowhere)
    }

    fn close(mut self, out: &mut impl Write) -> io::Result<Outcome> {
        let outcome = self.first.as_ref().map_or(Outcome::Completed, Fault::outcome);
        if self.json {
            self.report.more = vec![("violations", self.violations), ("lints", self.lints_found)];
            let snapshot = self.assembler.snapshot();
            self.report.write(out, self.source, outcome, self.first.as_ref(), snapshot)?;
            return Ok(outcome);
        }
        for again in &self.repeats.again {
            let code = format!("[{}]", again.code);
            let head =
                crate::diagnostic::paint(self.colors, again.level.style(), format!("{}{code}", again.level.word()));
            let what = if again.what.is_empty() { String::new() } else { format!(" of {}", text::said(&again.what)) };
            let events = if again.first == again.last {
                format!("event {}", again.first)
            } else {
                format!("events {} to {}", again.first, again.last)
            };
            self.shown += &format!("{head}: {} more{what} ({events})\n", again.count);
        }
        if !self.repeats.again.is_empty() {
            self.shown.push('\n');
        }
        let [violations, warnings, lints] = self.counts;
        let found = format!(
            "{}: {}, {}, {} in {}\n",
            text::said(self.source),
            text::count(violations, "violation", "violations"),
            text::count(warnings, "warning", "warnings"),
            text::count(lints, "lint", "lints"),
            text::count(self.lines.events(), "event", "events"),
        );
        out.write_all(self.shown.as_bytes())?;
        out.write_all(found.as_bytes())?;
        Ok(outcome)
    }
}

/// A JSON pointer with its indices left out, so that the same fault of each element is one.
fn without_indices(path: &str) -> String {
    let tokens = path.split('/').map(|token| if token.parse::<u64>().is_ok() { "*" } else { token });
    tokens.collect::<Vec<_>>().join("/")
}
