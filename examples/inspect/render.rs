//! Shows a recording to people: who says what, while it streams.

use std::collections::HashMap;
use std::io::{self, Write};

use ag_ui_stream::event::{
    ActivityDeltaEvent, ActivitySnapshotEvent, MessagesSnapshotEvent, ReasoningEncryptedValueSubtype, RunErrorEvent,
    RunFinishedEvent, RunFinishedOutcome, RunStartedEvent, SubagentFinishedOutcome, SubagentStartedEvent, TokenUsage,
};
use ag_ui_stream::id::SubagentRunId;
use ag_ui_stream::message::{Content, ContentPart, Role};
use ag_ui_stream::snapshot::{Run, RunOutcome, Snapshot, Update};
use ag_ui_stream::{Event, Message, Warning};
use anstyle::{AnsiColor, Style};
use serde_json::Value;

use crate::diagnostic::{BOLD, CYAN, DIM, RED, YELLOW, paint};
use crate::report::status_word;
use crate::run::{Fault, Lines, Outcome};
use crate::screen::{Bar, BlockId, Look, Screen, rule};
use crate::text;

const GREEN: Style = AnsiColor::Green.on_default().bold();
const BLUE: Style = AnsiColor::Blue.on_default().bold();
const PLAIN: Style = Style::new();
const THOUGHT: Style = Style::new().dimmed().italic();
const ADDED: Style = AnsiColor::Green.on_default();
const REMOVED: Style = AnsiColor::Red.on_default();
const CHANGED: Style = AnsiColor::Yellow.on_default();
const CALL: Style = AnsiColor::Yellow.on_default();

/// The colours of subagents, in the order in which they appear.
const LANES: [AnsiColor; 6] = [
    AnsiColor::Cyan,
    AnsiColor::Magenta,
    AnsiColor::Green,
    AnsiColor::Blue,
    AnsiColor::BrightRed,
    AnsiColor::BrightYellow,
];

/// The kind of a block that grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Text,
    Call,
    Reasoning,
}

/// A subagent's part of the screen.
#[derive(Clone, Debug)]
struct Lane {
    key: u64,
    name: String,
    style: Style,
    bars: Vec<Bar>,
}

/// Lines that are not written yet and that a later event of the same kind replaces: a hundred small
/// changes of the state are shown as one.
#[derive(Debug)]
struct Pending {
    blocks: Vec<BlockId>,
    from: Snapshot,
    count: u64,
    of: String,
}

/// Shows updates on a screen.
#[derive(Debug)]
pub(crate) struct Renderer<W> {
    screen: Screen<W>,
    before: Snapshot,
    /// Whether an agent is run, not a recording read.
    live: bool,
    lanes: HashMap<SubagentRunId, Lane>,
    next_lane: u64,
    items: HashMap<(Kind, String), BlockId>,
    state: Option<Pending>,
    raw: Option<Pending>,
    began: Option<i64>,
    last: Option<i64>,
    delivered: u64,
    warnings: u64,
    usage: Vec<TokenUsage>,
}

impl<W: Write> Renderer<W> {
    /// A renderer of a conversation that begins with this snapshot.
    pub(crate) fn new(screen: Screen<W>, before: Snapshot) -> Self {
        Self {
            screen,
            before,
            live: false,
            lanes: HashMap::new(),
            next_lane: 1,
            items: HashMap::new(),
            state: None,
            raw: None,
            began: None,
            last: None,
            delivered: 0,
            warnings: 0,
            usage: Vec::new(),
        }
    }

    /// Shows the name of a recording, and the conversation from before it; the message that an agent was
    /// just `asked` is shown in full.
    pub(crate) fn title(&mut self, source: &str, asked: bool) -> io::Result<()> {
        self.live = asked;
        self.rule(BOLD, &[source.to_owned()])?;
        let before = self.before.clone();
        let held = before.messages().len();
        let asked = before.messages().iter().next_back().filter(|message| asked && message.role() == Role::User);
        let held = held - usize::from(asked.is_some());
        if held > 0 {
            let look = self.line_look("history", None, DIM);
            self.screen.line(look, &text::count(held as u64, "message", "messages"));
        }
        if let Some(message) = asked {
            self.whole_message(message);
        }
        Ok(())
    }

    /// Sets the line at the bottom of the screen.
    pub(crate) fn set_status(&mut self, status: Option<String>) {
        let status = status.map(|status| paint(self.screen.colors(), DIM, format!("  {status}")));
        self.screen.set_status(status);
    }

    /// Draws everything that came so far.
    pub(crate) fn paint(&mut self) -> io::Result<()> {
        self.screen.paint()
    }

    /// The same, for somebody to see now: nothing may follow for a while.
    pub(crate) fn paint_now(&mut self) -> io::Result<()> {
        self.screen.paint_now()
    }

    /// Shows an event or a warning.
    pub(crate) fn update(&mut self, update: &Update) -> io::Result<()> {
        if let Some(warning) = update.warning() {
            self.warning(warning);
        }
        if let Some(event) = update.event() {
            self.delivered += 1;
            self.last = event.base().timestamp.or(self.last);
            self.event(event, update)?;
        }
        self.before = update.snapshot().clone();
        self.screen.paint_soon()
    }

    fn warning(&mut self, warning: &Warning) {
        self.warnings += 1;
        let look = Look { aside: true, style: CHANGED, ..self.line_look("warning", None, YELLOW) };
        let path = if warning.path.is_empty() { String::new() } else { format!(" {}", warning.path) };
        let message = text::excerpt(&warning.message, 400);
        self.screen.line(look, &format!("{} {}{path}: {message}", warning.rule, warning.event_type));
    }

    fn event(&mut self, event: &Event, update: &Update) -> io::Result<()> {
        let owner = event.subagent_run_id();
        match event {
            Event::RunStarted(event) => self.run_started(event, update)?,
            Event::RunFinished(event) => self.run_finished(event, update)?,
            Event::RunError(event) => self.run_error(event)?,

            Event::TextMessageStart(event) => {
                let message = update.snapshot().message(&event.message_id);
                let owner = owner.or(message.and_then(Message::subagent_run_id));
                let role = message.map_or(Role::Assistant, Message::role);
                let name = message.and_then(Message::name).map(str::to_owned);
                let look = self.message_look(role, name.as_deref(), owner);
                self.begin(Kind::Text, event.message_id.as_ref(), look, "");
            }
            Event::TextMessageContent(event) => self.grow(Kind::Text, event.message_id.as_ref(), &event.delta),
            Event::TextMessageEnd(event) => self.end(Kind::Text, event.message_id.as_ref()),

            Event::ReasoningMessageStart(event) => {
                let message = update.snapshot().message(&event.message_id);
                let owner = owner.or(message.and_then(Message::subagent_run_id));
                let look = self.message_look(Role::Reasoning, None, owner);
                self.begin(Kind::Reasoning, event.message_id.as_ref(), look, "");
            }
            Event::ReasoningMessageContent(event) => {
                self.grow(Kind::Reasoning, event.message_id.as_ref(), &event.delta);
            }
            Event::ReasoningMessageEnd(event) => self.end(Kind::Reasoning, event.message_id.as_ref()),

            Event::ToolCallStart(event) => {
                let holder = update.snapshot().tool_call_message(&event.tool_call_id);
                let owner = owner.or(holder.and_then(Message::subagent_run_id));
                let look = Look { style: PLAIN, ..self.line_look("call", owner, CALL) };
                let name = format!("{} ", event.tool_call_name);
                self.begin(Kind::Call, event.tool_call_id.as_ref(), look, &name);
            }
            Event::ToolCallArgs(event) => self.grow(Kind::Call, event.tool_call_id.as_ref(), &event.delta),
            Event::ToolCallEnd(event) => self.end(Kind::Call, event.tool_call_id.as_ref()),
            Event::ToolCallResult(event) => {
                let holder = update.snapshot().tool_call_message(&event.tool_call_id);
                let owner = owner.or(holder.and_then(Message::subagent_run_id));
                let look = self.line_look("result", owner, DIM);
                self.screen.text(look, ("", PLAIN), &shown_content(&event.content, 600));
            }

            Event::StepStarted(event) => self.step(owner, "▸", &event.step_name),
            Event::StepFinished(event) => self.step(owner, "✓", &event.step_name),

            Event::SubagentStarted(event) => self.subagent_started(event),
            Event::SubagentFinished(event) => {
                let mut said = match &event.outcome {
                    Some(SubagentFinishedOutcome::Suspended(_)) => "⏸ suspended".to_owned(),
                    _ => "✓ finished".to_owned(),
                };
                if let Some(result) = &event.result {
                    said += &format!(" · {}", text::json(result, 200));
                }
                self.subagent_line(&event.subagent_run_id, DIM, &said);
            }
            Event::SubagentError(event) => {
                let said = format!("✗ {}", event.message);
                self.subagent_line(&event.subagent_run_id, REMOVED, &said);
            }

            Event::StateSnapshot(_) | Event::StateDelta(_) => self.state_changed(owner, update.snapshot()),
            Event::MessagesSnapshot(event) => self.messages_restated(event, update.snapshot()),
            Event::ActivitySnapshot(event) => self.activity_set(event, update),
            Event::ActivityDelta(event) => self.activity_patched(event, update),

            Event::ReasoningEncryptedValue(event) => {
                let target = match event.subtype {
                    ReasoningEncryptedValueSubtype::ToolCall => "tool call",
                    ReasoningEncryptedValueSubtype::Message => "message",
                    other => other.as_str(),
                };
                let look = Look { aside: true, ..self.line_look("encrypted", owner, DIM) };
                let size = text::size(event.encrypted_value.len());
                self.screen.line(look, &format!("{size} for {target} {}", event.entity_id));
            }
            Event::Raw(event) => {
                let source = event.source.as_deref().map(|source| format!(" from {source}"));
                let source = source.unwrap_or_default();
                let shown = text::json(&event.event, 160);
                self.raw_passed(owner, update.snapshot(), &source, &shown);
            }
            Event::Custom(event) => {
                let look = Look { aside: true, ..self.line_look("custom", owner, DIM) };
                self.screen.line(look, &format!("{} {}", event.name, text::json(&event.value, 300)));
            }

            // A span is shown by its messages; chunks never leave expansion.
            Event::ReasoningStart(_)
            | Event::ReasoningEnd(_)
            | Event::TextMessageChunk(_)
            | Event::ToolCallChunk(_)
            | Event::ReasoningMessageChunk(_) => {}
            // An event that this tool does not know.
            other => {
                let look = Look { aside: true, ..self.line_look("event", owner, DIM) };
                self.screen.line(look, other.event_type().as_str());
            }
        }
        Ok(())
    }

    fn begin(&mut self, kind: Kind, id: &str, look: Look, lead: &str) {
        let style = if kind == Kind::Call { CALL.bold() } else { PLAIN };
        let block = self.screen.open(look, lead, style);
        self.items.insert((kind, id.to_owned()), block);
    }

    fn grow(&mut self, kind: Kind, id: &str, delta: &str) {
        if let Some(block) = self.items.get(&(kind, id.to_owned())) {
            self.screen.append(*block, delta);
        }
    }

    fn end(&mut self, kind: Kind, id: &str) {
        if let Some(block) = self.items.remove(&(kind, id.to_owned())) {
            self.screen.close(block);
        }
    }

    fn rule(&mut self, style: Style, parts: &[String]) -> io::Result<()> {
        let line = rule(self.screen.columns(), self.screen.colors(), style, parts);
        self.screen.raw(&line)
    }

    fn run_started(&mut self, event: &RunStartedEvent, update: &Update) -> io::Result<()> {
        self.lanes.clear();
        self.items.clear();
        self.began = event.base.timestamp;
        let mut parts = vec![format!("run {}", event.run_id), format!("thread {}", event.thread_id)];
        if let Some(version) = &event.protocol_version {
            parts.push(format!("AG-UI {version}"));
        }
        self.rule(BLUE, &parts)?;
        self.new_messages(update.snapshot());
        if update.changed_state() {
            self.state_changed(None, update.snapshot());
        }
        Ok(())
    }

    fn run_finished(&mut self, event: &RunFinishedEvent, update: &Update) -> io::Result<()> {
        let (style, word) = match &event.outcome {
            None | Some(RunFinishedOutcome::Success(_)) => (GREEN, "✓ success"),
            Some(RunFinishedOutcome::Interrupt(_)) => (YELLOW, "⏸ waits for an answer"),
            Some(RunFinishedOutcome::Cancelled(_)) => (YELLOW, "■ cancelled"),
            Some(_) => (YELLOW, "■ finished"),
        };
        self.screen.paint()?;
        if let Some(RunFinishedOutcome::Interrupt(outcome)) = &event.outcome {
            for interrupt in outcome.interrupts.as_slice() {
                let look = Look { apart: true, ..self.line_look("interrupt", None, YELLOW) };
                let question = interrupt.message.as_deref().unwrap_or(&interrupt.reason);
                self.screen.line(look, question);
            }
        }
        if let Some(result) = &event.result {
            let look = self.line_look("result", None, BOLD);
            self.screen.line(look, &text::json(result, 400));
        }
        let pending = update.snapshot().run().map_or(0, |run| run.pending_tool_call_ids().len());
        let mut parts = vec![word.to_owned()];
        if pending > 0 {
            parts.push(text::count(pending as u64, "call to answer", "calls to answer"));
        }
        self.end_run(style, parts, event.usage.as_deref())
    }

    fn run_error(&mut self, event: &RunErrorEvent) -> io::Result<()> {
        let code = event.code.as_deref().map(|code| format!(" ({code})")).unwrap_or_default();
        let parts = vec![format!("✗ {}{code}", event.message)];
        self.end_run(RED, parts, event.usage.as_deref())
    }

    fn end_run(&mut self, style: Style, mut parts: Vec<String>, usage: Option<&[TokenUsage]>) -> io::Result<()> {
        if let (Some(began), Some(last)) = (self.began, self.last) {
            parts.push(duration(last - began));
        }
        if let Some(usage) = usage {
            parts.extend(tokens(usage));
            self.usage.extend_from_slice(usage);
        }
        self.rule(style, &parts)
    }

    fn step(&mut self, owner: Option<&SubagentRunId>, mark: &str, name: &str) {
        let look = Look { style: BLUE, ..self.line_look("step", owner, DIM) };
        self.screen.line(look, &format!("{mark} {name}"));
    }

    fn subagent_started(&mut self, event: &SubagentStartedEvent) {
        let parent = event.parent_subagent_run_id.clone();
        self.new_lane(&event.subagent_run_id, &event.name, parent.as_ref());
        let said = match &event.description {
            Some(description) => format!("● {description}"),
            None => "● started".to_owned(),
        };
        self.subagent_line(&event.subagent_run_id, DIM, &said);
    }

    fn subagent_line(&mut self, id: &SubagentRunId, style: Style, said: &str) {
        let lane = self.lane(id);
        let look = Look { style, label: lane.name.clone(), ..self.line_look("", Some(id), lane.style.bold()) };
        self.screen.line(look, said);
    }

    fn new_lane(&mut self, id: &SubagentRunId, name: &str, parent: Option<&SubagentRunId>) -> Lane {
        let color = usize::try_from(self.next_lane - 1).ok().and_then(|at| LANES.get(at % LANES.len()));
        let style = color.copied().unwrap_or(AnsiColor::Cyan).on_default();
        let mut bars = parent.map(|parent| self.lane(parent).bars).unwrap_or_default();
        // Deeper nesting shows by its colour only.
        if bars.len() == 5 {
            bars.pop();
        }
        bars.push(Bar { style, digit: self.next_lane });
        let lane = Lane { key: self.next_lane, name: name.to_owned(), style, bars };
        self.next_lane += 1;
        self.lanes.insert(id.clone(), lane.clone());
        lane
    }

    fn lane(&mut self, id: &SubagentRunId) -> Lane {
        match self.lanes.get(id) {
            Some(lane) => lane.clone(),
            None => self.new_lane(id, id.as_ref(), None),
        }
    }

    fn line_look(&mut self, label: &str, owner: Option<&SubagentRunId>, label_style: Style) -> Look {
        let (bars, lane) = match owner.map(|owner| self.lane(owner)) {
            Some(lane) => (lane.bars, lane.key),
            None => (Vec::new(), 0),
        };
        Look { bars, label: label.to_owned(), label_style, style: DIM, apart: false, aside: false, lane }
    }

    fn message_look(&mut self, role: Role, name: Option<&str>, owner: Option<&SubagentRunId>) -> Look {
        let lane = owner.map(|owner| self.lane(owner));
        let (label, label_style, style) = match role {
            Role::User => ("user".to_owned(), GREEN, PLAIN),
            Role::Reasoning => ("thinking".to_owned(), THOUGHT, THOUGHT),
            Role::Assistant => match &lane {
                Some(lane) => (lane.name.clone(), lane.style.bold(), PLAIN),
                None => ("assistant".to_owned(), BOLD, PLAIN),
            },
            other => (other.as_str().to_owned(), DIM, PLAIN),
        };
        let label = name.map_or(label, str::to_owned);
        Look { label, style, apart: true, ..self.line_look("", owner, label_style) }
    }

    /// The messages that were not there before.
    fn new_messages(&mut self, after: &Snapshot) {
        const SHOWN: usize = 6;
        let before = self.before.clone();
        let new: Vec<&Message> =
            after.messages().iter().filter(|message| before.message(message.id()).is_none()).collect();
        let hidden = new.len().saturating_sub(SHOWN);
        if hidden > 0 {
            let look = self.line_look("history", None, DIM);
            self.screen.line(look, &text::count(hidden as u64, "more message", "more messages"));
        }
        for message in new.into_iter().skip(hidden) {
            self.whole_message(message);
        }
    }

    fn whole_message(&mut self, message: &Message) {
        let look = self.message_look(message.role(), message.name(), message.subagent_run_id());
        let said = match message {
            Message::User(message) => shown_content(&message.content, 1_000),
            Message::Tool(message) => shown_content(&message.content, 600),
            Message::Activity(message) => {
                format!("{} {}", message.activity_type, text::json(&message.content, 300))
            }
            other => other.text().map(|text| text::excerpt(&text.to_cow(), 1_000).into_owned()).unwrap_or_default(),
        };
        if !said.is_empty() {
            self.screen.text(look, ("", PLAIN), &said);
        }
        for call in message.tool_calls() {
            let look = Look { style: PLAIN, ..self.line_look("call", message.subagent_run_id(), CALL) };
            let name = format!("{} ", call.function.name);
            let arguments = call.function.arguments.to_cow();
            self.screen.text(look, (&name, CALL.bold()), &text::excerpt(&arguments, 400));
        }
    }

    fn messages_restated(&mut self, event: &MessagesSnapshotEvent, after: &Snapshot) {
        let before = self.before.clone();
        let new = after.messages().iter().filter(|message| before.message(message.id()).is_none()).count();
        let dropped = before.messages().iter().filter(|message| after.message(message.id()).is_none()).count();
        let changed = after
            .messages()
            .iter()
            .filter(|message| before.message(message.id()).is_some_and(|held| held != *message))
            .count();
        let mut said = text::count(event.messages.len() as u64, "message", "messages");
        for (count, what) in [(new, "new"), (changed, "changed"), (dropped, "dropped")] {
            if count > 0 {
                said += &format!(", {count} {what}");
            }
        }
        let look = Look { aside: true, ..self.line_look("snapshot", None, DIM) };
        self.screen.line(look, &said);
        self.new_messages(after);
    }

    fn state_changed(&mut self, owner: Option<&SubagentRunId>, after: &Snapshot) {
        let from = match self.state.take() {
            // The change before is not written yet: both are shown as one.
            Some(pending) if self.screen.are_held(&pending.blocks) => {
                pending.blocks.iter().for_each(|block| self.screen.retract(*block));
                pending.from
            }
            _ => self.before.clone(),
        };
        let changes = diff(&from.state().to_value(), &after.state().to_value());
        let blocks = self.show_changes("state", owner, &changes);
        self.state = Some(Pending { blocks, from, count: 0, of: String::new() });
    }

    fn show_changes(&mut self, label: &str, owner: Option<&SubagentRunId>, changes: &Changes) -> Vec<BlockId> {
        let style = AnsiColor::Magenta.on_default().bold();
        let mut look = Look { aside: true, style: PLAIN, ..self.line_look(label, owner, style) };
        if changes.list.is_empty() {
            return vec![self.screen.line(Look { style: DIM, ..look }, "unchanged")];
        }
        let mut blocks = Vec::new();
        for change in &changes.list {
            blocks.push(self.screen.text(look.clone(), (&change.head, change.style), &change.rest));
            look.label = String::new();
        }
        if changes.more > 0 {
            blocks.push(self.screen.line(Look { style: DIM, ..look }, &format!("… and {} more", changes.more)));
        }
        blocks
    }

    fn activity_set(&mut self, event: &ActivitySnapshotEvent, update: &Update) {
        let look = self.activity_look(event.subagent_run_id.as_ref());
        let said = match update.message() {
            Some(Message::Activity(message)) => text::json(&message.content, 400),
            _ => "left as it is".to_owned(),
        };
        self.screen.text(look, (&format!("{} ", event.activity_type), BOLD), &said);
    }

    fn activity_patched(&mut self, event: &ActivityDeltaEvent, update: &Update) {
        let (Some(Message::Activity(after)), Some(Message::Activity(before))) =
            (update.message(), self.before.message(&event.message_id))
        else {
            return;
        };
        let changes = diff(&before.content.to_map().into(), &after.content.to_map().into());
        let owner = after.subagent_run_id.clone();
        self.show_changes("activity", owner.as_ref(), &changes);
    }

    fn activity_look(&mut self, owner: Option<&SubagentRunId>) -> Look {
        Look { aside: true, style: PLAIN, ..self.line_look("activity", owner, AnsiColor::Magenta.on_default().bold()) }
    }

    fn raw_passed(&mut self, owner: Option<&SubagentRunId>, after: &Snapshot, source: &str, shown: &str) {
        let look = Look { aside: true, ..self.line_look("raw", owner, DIM) };
        let count = match self.raw.take() {
            Some(pending) if pending.of == source && self.screen.are_held(&pending.blocks) => {
                pending.blocks.iter().for_each(|block| self.screen.retract(*block));
                pending.count + 1
            }
            _ => 1,
        };
        let said = if count == 1 {
            format!("1 event{source}: {shown}")
        } else {
            format!("{count} events{source}, at last {shown}")
        };
        let block = self.screen.line(look, &said);
        self.raw = Some(Pending { blocks: vec![block], from: after.clone(), count, of: source.to_owned() });
    }

    /// Shows the fault, if any, and a summary.
    pub(crate) fn finish(
        mut self,
        source: &str,
        outcome: Outcome,
        fault: Option<&Fault>,
        after: &Snapshot,
        lines: &Lines,
    ) -> io::Result<()> {
        self.set_status(None);
        let (colors, columns) = (self.screen.colors(), self.screen.columns());
        if let Some(fault) = fault {
            self.screen.raw(&fault.diagnostic(lines).show(source, colors, columns))?;
        }
        self.rule(BOLD, &["summary".to_owned()])?;
        for (label, style, said) in self.summary(outcome, after, lines) {
            let look = Look { style, ..self.line_look(label, None, DIM) };
            self.screen.line(look, &said);
        }
        self.screen.finish()
    }

    fn summary(&self, outcome: Outcome, after: &Snapshot, lines: &Lines) -> Vec<(&'static str, Style, String)> {
        let mut rows = Vec::new();
        let (style, word) = match outcome {
            Outcome::Completed => (GREEN, "completed"),
            Outcome::Truncated => (RED, "truncated: not a success"),
            Outcome::Failed => (RED, "rejected"),
            Outcome::Unreadable => (RED, if self.live { "could not be run" } else { "cannot be read" }),
        };
        rows.push((if self.live { "agent" } else { "recording" }, style, word.to_owned()));
        for run in after.runs() {
            rows.push(("run", outcome_style(run), run_line(run)));
        }
        let mut events = format!("{} read, {} delivered", text::grouped(lines.events()), text::grouped(self.delivered));
        if self.warnings > 0 {
            events += &format!(", {}", text::count(self.warnings, "warning", "warnings"));
        }
        rows.push(("events", PLAIN, events));
        let mut roles: Vec<(Role, usize)> = Vec::new();
        for message in after.messages() {
            match roles.iter_mut().find(|(role, _)| *role == message.role()) {
                Some((_, count)) => *count += 1,
                None => roles.push((message.role(), 1)),
            }
        }
        let roles: Vec<String> = roles.iter().map(|(role, count)| format!("{count} {role}")).collect();
        let total = after.messages().len();
        let messages = if roles.len() > 1 { format!("{total}: {}", roles.join(", ")) } else { roles.join("") };
        rows.push(("messages", PLAIN, if total == 0 { "none".to_owned() } else { messages }));
        let calls: Vec<_> = after.messages().iter().flat_map(Message::tool_calls).map(|call| call.id.clone()).collect();
        if !calls.is_empty() {
            let answered = after.messages().iter().filter_map(|message| match message {
                Message::Tool(message) => Some(message.tool_call_id.clone()),
                _ => None,
            });
            let answered: std::collections::HashSet<_> = answered.collect();
            let count = calls.iter().filter(|call| answered.contains(*call)).count();
            rows.push(("tool calls", PLAIN, format!("{}, {count} answered", calls.len())));
        }
        let subagents = after.runs().flat_map(Run::subagents);
        let subagents: Vec<String> =
            subagents.map(|subagent| format!("{} ({})", subagent.name, status_word(&subagent.status))).collect();
        if !subagents.is_empty() {
            rows.push(("subagents", PLAIN, text::excerpt(&subagents.join(", "), 400).into_owned()));
        }
        if let Some(tokens) = tokens(&self.usage) {
            rows.push(("tokens", PLAIN, tokens));
        }
        if after.state().as_object().is_none_or(|members| !members.is_empty()) {
            rows.push(("state", PLAIN, text::json(after.state(), 400)));
        }
        rows
    }
}

fn outcome_style(run: &Run) -> Style {
    match run.outcome {
        RunOutcome::Success { .. } => GREEN,
        RunOutcome::Interrupt { .. } | RunOutcome::Cancelled => YELLOW,
        RunOutcome::Running => CYAN,
        _ => RED,
    }
}

fn run_line(run: &Run) -> String {
    let id = run.run_id.as_ref().map_or("(it never began)", |id| id.as_ref());
    let mut said = format!("{id} · {}", run.outcome.as_str());
    if let RunOutcome::Error { message, .. } = &run.outcome {
        said += &format!(": {message}");
    }
    let pending = run.pending_tool_call_ids();
    if !pending.is_empty() {
        said += &format!(", {}", text::count(pending.len() as u64, "tool call to answer", "tool calls to answer"));
    }
    let open: Vec<String> = run.open().take(6).map(|item| format!("{} {}", item.kind, item.id())).collect();
    if !open.is_empty() {
        let more = run.open().len() - open.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        said += &format!(", never closed: {}{more}", open.join(", "));
    }
    said
}

fn duration(milliseconds: i64) -> String {
    let tenths = milliseconds.max(0) / 100;
    match tenths {
        0..600 => format!("{}.{} s", tenths / 10, tenths % 10),
        _ => format!("{} min {} s", tenths / 600, tenths % 600 / 10),
    }
}

/// The tokens that were used, as far as they are known.
fn tokens(usage: &[TokenUsage]) -> Option<String> {
    let sum = |count: fn(&TokenUsage) -> Option<u64>| {
        usage
            .iter()
            .filter_map(count)
            .try_fold(0_u64, u64::checked_add)
            .filter(|_| usage.iter().any(|usage| count(usage).is_some()))
    };
    let parts: Vec<String> = [
        (sum(|usage| usage.input_tokens), "tokens in"),
        (sum(|usage| usage.output_tokens), "out"),
        (sum(|usage| usage.reasoning_tokens), "reasoning"),
        (sum(|usage| usage.cached_input_tokens), "cached"),
    ]
    .into_iter()
    .filter_map(|(count, what)| Some(format!("{} {what}", text::grouped(count?))))
    .collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn shown_content(content: &Content, bytes: usize) -> String {
    match content {
        Content::Text(text) => text::excerpt(&text.to_cow(), bytes).into_owned(),
        Content::Parts(parts) => {
            let parts: Vec<String> = parts
                .iter()
                .map(|part| match part {
                    ContentPart::Text(part) => text::excerpt(&part.text.to_cow(), bytes).into_owned(),
                    ContentPart::Image(_) => "[image]".to_owned(),
                    ContentPart::Audio(_) => "[audio]".to_owned(),
                    ContentPart::Video(_) => "[video]".to_owned(),
                    ContentPart::Document(_) => "[document]".to_owned(),
                    _ => "[part]".to_owned(),
                })
                .collect();
            parts.join(" ")
        }
    }
}

/// The changes of a JSON value, a line for each place.
#[derive(Debug, Default)]
struct Changes {
    list: Vec<Change>,
    more: usize,
}

#[derive(Debug)]
struct Change {
    head: String,
    rest: String,
    style: Style,
}

impl Changes {
    const SHOWN: usize = 8;

    fn add(&mut self, path: &str, before: Option<&Value>, after: Option<&Value>) {
        if self.list.len() == Self::SHOWN {
            self.more += 1;
            return;
        }
        let path = if path.is_empty() { "(all)" } else { path };
        let (mark, rest, style) = match (before, after) {
            (None, Some(after)) => ("+", text::json(after, 200), ADDED),
            (Some(before), None) => ("-", text::json(before, 100), REMOVED),
            (Some(before), Some(after)) => {
                ("~", format!("{} → {}", text::json(before, 100), text::json(after, 200)), CHANGED)
            }
            (None, None) => return,
        };
        self.list.push(Change { head: format!("{mark} {path} "), rest, style });
    }
}

/// How one value differs from another.
fn diff(before: &Value, after: &Value) -> Changes {
    let mut changes = Changes::default();
    compare(before, after, &mut String::new(), &mut changes);
    changes
}

fn compare(before: &Value, after: &Value, path: &mut String, changes: &mut Changes) {
    if before == after {
        return;
    }
    let end = path.len();
    match (before, after) {
        (Value::Object(old), Value::Object(new)) if !new.is_empty() || old.is_empty() => {
            for (key, was) in old {
                step_into(path, key);
                match new.get(key) {
                    Some(is) => compare(was, is, path, changes),
                    None => changes.add(path, Some(was), None),
                }
                path.truncate(end);
            }
            for (key, is) in new.iter().filter(|(key, _)| !old.contains_key(*key)) {
                step_into(path, key);
                changes.add(path, None, Some(is));
                path.truncate(end);
            }
        }
        (Value::Array(old), Value::Array(new)) => {
            // Equal elements at both ends did not change.
            let same = |(one, other): &(&Value, &Value)| one == other;
            let front = old.iter().zip(new).take_while(same).count();
            let room = old.len().min(new.len()) - front;
            let back = old.iter().rev().zip(new.iter().rev()).take(room).take_while(same).count();
            let old = old.get(front..old.len() - back).unwrap_or_default();
            let new = new.get(front..new.len() - back).unwrap_or_default();
            for at in 0..old.len().max(new.len()) {
                step_into(path, &(front + at).to_string());
                match (old.get(at), new.get(at)) {
                    (Some(was), Some(is)) => compare(was, is, path, changes),
                    (was, is) => changes.add(path, was, is),
                }
                path.truncate(end);
            }
        }
        (was, is) => changes.add(path, Some(was), Some(is)),
    }
}

fn step_into(path: &mut String, key: &str) {
    path.push('/');
    path.push_str(&key.replace('~', "~0").replace('/', "~1"));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lines(before: &Value, after: &Value) -> Vec<String> {
        let changes = diff(before, after);
        let mut lines: Vec<String> =
            changes.list.iter().map(|change| format!("{}{}", change.head, change.rest)).collect();
        if changes.more > 0 {
            lines.push(format!("… {}", changes.more));
        }
        lines
    }

    #[test]
    fn a_diff_names_what_changed_and_nothing_else() {
        let before = json!({"a": 1, "b": {"c/d": [1, 2, 3, 4]}, "gone": null});
        let after = json!({"a": 2, "b": {"c/d": [1, 3, 4]}, "new": "x"});
        assert_eq!(lines(&before, &after), ["~ /a 1 → 2", "- /b/c~1d/1 2", "- /gone null", "+ /new \"x\""]);
        assert_eq!(lines(&json!({}), &json!({"a": {}})), ["+ /a {}"]);
        assert_eq!(lines(&json!({"a": 1}), &json!(null)), ["~ (all) {\"a\": 1} → null"]);
        assert_eq!(lines(&json!({"a": 1}), &json!({})), ["~ (all) {\"a\": 1} → {}"]);
        assert_eq!(lines(&json!([1]), &json!([1, 2, 3])), ["+ /1 2", "+ /2 3"]);
        assert_eq!(lines(&before, &before), [""; 0]);
        let many: Value = (0..20).map(|at| (at.to_string(), json!(at))).collect::<serde_json::Map<_, _>>().into();
        assert_eq!(lines(&json!({"x": 1}), &many).last().map(String::as_str), Some("… 13"));
    }

    #[test]
    fn durations_and_tokens_are_told_as_far_as_they_are_known() {
        assert_eq!(
            (duration(12_345).as_str(), duration(-5).as_str(), duration(61_000).as_str()),
            ("12.3 s", "0.0 s", "1 min 1 s")
        );
        let mut usage = TokenUsage::new();
        assert_eq!(tokens(&[usage.clone()]), None);
        usage.input_tokens = Some(1_200);
        assert_eq!(tokens(&[usage, TokenUsage::new()]).as_deref(), Some("1 200 tokens in"));
    }
}
