//! Runs, their open items, outcomes and subagents (rules R4 to R9, R12).

use std::sync::Arc;

use serde_json::Value;

use super::{Assembler, size};
use crate::error::{Error, SubjectKind};
use crate::event::{
    RunErrorEvent, RunFinishedEvent, RunFinishedOutcome, RunStartedEvent, SubagentStartedEvent, TokenUsage,
};
use crate::id::{Id, SubagentRunId, ToolCallId};
use crate::shared::Document;
use crate::shared::index::Index;
use crate::snapshot::run::{OpenItem, Run, RunOutcome, Subagent, SubagentStatus};
use crate::snapshot::{Change, ItemStatus, MessageChange};

impl Assembler {
    pub(super) fn open_item(&mut self, kind: SubjectKind, id: &Id, owner: Option<&SubagentRunId>, since: u64) -> u64 {
        let Self { snapshot, live, .. } = self;
        let rest = Arc::make_mut(&mut Arc::make_mut(&mut snapshot.0).rest);
        live.open_item(rest, OpenItem { kind, id: id.clone(), owner: owner.cloned(), since })
    }

    pub(super) fn close_item(&mut self, seq: u64) {
        if let Some(item) = self.run().and_then(|run| run.open.remove(seq)) {
            self.live.bytes.remove(size::open(&item));
        }
    }

    /// Adds a run, and forgets the oldest where that is one too many.
    fn push_run(&mut self, run: Run) {
        self.live.bytes.add(size::run(&run));
        let max = self.limits.max_runs.max(1);
        let rest = self.rest();
        rest.runs.push(Arc::new(run));
        rest.subagents = Index::new();
        while self.snapshot.0.rest.runs.len() > max {
            let Some((first, _)) = self.snapshot.0.rest.runs.nth(0) else { break };
            let Some(forgotten) = self.rest().runs.remove(first) else { break };
            self.live.bytes.remove(size::run(&forgotten));
        }
    }

    /// Changes how the latest run ends.
    fn end(&mut self, change: impl FnOnce(&mut Run)) {
        let Some(run) = self.run() else { return };
        let before = size::ends_of(run);
        change(run);
        let after = size::ends_of(run);
        self.live.bytes.resize(before, after);
    }

    pub(super) fn open_bracket(
        &mut self,
        kind: SubjectKind,
        id: Id,
        owner: Option<&SubagentRunId>,
        since: u64,
    ) -> Change {
        let seq = self.open_item(kind, &id, owner, since);
        let owner = if kind == SubjectKind::Step { owner.cloned() } else { None };
        self.live.brackets.insert((kind, id, owner), seq);
        Change { run: true, ..Change::default() }
    }

    pub(super) fn close_bracket(&mut self, kind: SubjectKind, id: Id, owner: Option<&SubagentRunId>) -> Change {
        let Some(seq) = self.live.brackets.remove(&(kind, id, owner.cloned())) else { return Change::default() };
        self.close_item(seq);
        Change { run: true, ..Change::default() }
    }

    pub(super) fn start_run(&mut self, event: &RunStartedEvent, at: u64) -> Result<Change, Error> {
        let input = event.input.as_ref();
        // A consumer that did not send the input learns the initial state from its echo.
        let echoed = input.and_then(|input| input.state.as_ref()).filter(|_| !self.live.state_is_set);
        let echoed = echoed.map(Document::from);
        if let Some(input) = input {
            let rest = &self.snapshot.0.rest;
            let new = input.messages.iter().filter(|message| rest.index.get(message.id().id()).is_none());
            let new = new.fold(0, |bytes: usize, message| bytes.saturating_add(message.document_bytes()));
            let state = echoed.as_ref().unwrap_or(&rest.state).bytes();
            self.check_room(state, rest.activity_bytes.saturating_add(new), at)?;
        }
        // In a verified stream no run is active here.
        self.end_run(RunOutcome::Truncated);
        if let Some(live) = self.live.made() {
            live.forget_run();
        }
        let mut run = Run::new(Some(event.thread_id.clone()), Some(event.run_id.clone()));
        run.parent_run_id = event.parent_run_id.clone();
        run.protocol_version = event.protocol_version.clone();
        run.resume = event.input.as_ref().and_then(|input| input.resume.as_deref()).map(Into::into);
        let mut change = Change { run: true, ..Change::default() };
        self.push_run(run);
        let Some(input) = input else { return Ok(change) };
        for message in &input.messages {
            if self.held(message.id()).is_none() {
                self.append(message.clone(), ItemStatus::Complete);
                change.messages = MessageChange::MANY;
            }
        }
        if let Some(state) = echoed {
            self.live.state_is_set = true;
            change.state = *self.snapshot.state() != state;
            self.rest().state = state;
        }
        Ok(change)
    }

    /// The calls that the run started and that got no result, in the order made (`Rule::R9`).
    pub(super) fn pending(&self) -> Arc<[ToolCallId]> {
        let unanswered = self.live.made.iter().filter(|(_, made)| !made.answered);
        let mut unanswered: Vec<(u64, &Id)> = unanswered.filter_map(|(id, made)| Some((made.started?, id))).collect();
        unanswered.sort_unstable_by_key(|(started, _)| *started);
        unanswered.into_iter().map(|(_, id)| ToolCallId::from_id(id.clone())).collect()
    }

    pub(super) fn finish_run(&mut self, event: &RunFinishedEvent) -> Change {
        let pending = self.pending();
        let outcome = match &event.outcome {
            Some(RunFinishedOutcome::Interrupt(outcome)) => RunOutcome::Interrupt {
                interrupts: outcome.interrupts.as_slice().into(),
                pending_tool_call_ids: pending,
            },
            Some(RunFinishedOutcome::Cancelled(_)) => RunOutcome::Cancelled,
            Some(RunFinishedOutcome::Success(success)) => RunOutcome::Success {
                pending_tool_call_ids: match &success.pending_tool_call_ids {
                    Some(named) if !named.is_empty() => named.as_slice().into(),
                    _ => pending,
                },
            },
            None => RunOutcome::Success { pending_tool_call_ids: pending },
        };
        self.end(|run| {
            run.outcome = outcome;
            run.result = event.result.clone().map(Arc::new);
            run.usage = event.usage.as_deref().map(Into::into);
        });
        self.abandon();
        Change { run: true, ..Change::default() }
    }

    pub(super) fn fail_run(&mut self, event: &RunErrorEvent) -> Change {
        let ended = self.snapshot.run().is_none_or(|run| matches!(run.outcome, RunOutcome::Error { .. }));
        if ended {
            self.push_run(Run::new(None, None));
        }
        let usage: Option<Arc<[TokenUsage]>> = event.usage.as_deref().map(Into::into);
        let change = self.end_run(RunOutcome::Error { message: event.message.clone(), code: event.code.clone() });
        if usage.is_some() {
            self.end(|run| run.usage = usage);
        }
        change
    }

    /// Leaves the open items as they are, and resets the tables of the run.
    fn abandon(&mut self) {
        let messages: Vec<u64> =
            self.live.text.iter().chain(self.live.reasoning.iter()).filter_map(|(_, open)| open.target).collect();
        for key in messages {
            if let Some(entry) = self.entry_mut(key) {
                entry.status = ItemStatus::Abandoned;
            }
        }
        let calls: Vec<ToolCallId> = self.live.calls.iter().map(|(id, _)| ToolCallId::from_id(id.clone())).collect();
        for id in calls {
            self.set_call_status(&id, ItemStatus::Abandoned);
        }
        self.inner().settle_all();
        if let Some(live) = self.live.made() {
            live.forget_run();
        }
    }

    /// Ends the latest run without its terminal event; its open items are abandoned (rule R5).
    pub(crate) fn end_run(&mut self, outcome: RunOutcome) -> Change {
        let late_failure = matches!(outcome, RunOutcome::Error { .. });
        if !self.snapshot.run().is_some_and(|run| run.is_running() || late_failure) {
            return Change::default();
        }
        self.abandon();
        self.end(|run| run.outcome = outcome);
        if let Some(run) = self.run() {
            let running: Vec<u64> = run
                .subagents
                .iter_keys()
                .filter(|(_, subagent)| subagent.status == SubagentStatus::Running)
                .map(|(key, _)| key)
                .collect();
            for key in running {
                if let Some(subagent) = run.subagents.get_key_mut(key) {
                    Arc::make_mut(subagent).status = SubagentStatus::Abandoned;
                }
            }
        }
        Change { run: true, ..Change::default() }
    }

    pub(super) fn start_subagent(&mut self, event: &SubagentStartedEvent, since: u64) -> Change {
        let parent = event.parent_subagent_run_id.as_ref();
        self.open_bracket(SubjectKind::Subagent, event.subagent_run_id.id().clone(), parent, since);
        let subagent = Subagent {
            subagent_run_id: event.subagent_run_id.clone(),
            name: event.name.clone(),
            description: event.description.clone(),
            parent_subagent_run_id: event.parent_subagent_run_id.clone(),
            parent_tool_call_id: event.parent_tool_call_id.clone(),
            parent_message_id: event.parent_message_id.clone(),
            status: SubagentStatus::Running,
            result: None,
        };
        let taken = size::subagent(&subagent);
        if let Some(run) = self.run() {
            let key = run.subagents.push(Arc::new(subagent));
            self.rest().subagents.insert(event.subagent_run_id.id().clone(), key);
            self.live.bytes.add(taken);
        }
        Change { run: true, ..Change::default() }
    }

    pub(super) fn end_subagent(
        &mut self,
        id: &SubagentRunId,
        status: SubagentStatus,
        result: Option<Arc<Value>>,
    ) -> Change {
        self.close_bracket(SubjectKind::Subagent, id.id().clone(), None);
        let key = self.snapshot.0.rest.subagents.get(id.id()).copied();
        if let Some((run, key)) = self.run().zip(key) {
            if let Some(subagent) = run.subagents.get_key_mut(key) {
                let subagent = Arc::make_mut(subagent);
                let before = size::subagent(subagent);
                subagent.status = status;
                subagent.result = result;
                let after = size::subagent(subagent);
                self.live.bytes.resize(before, after);
            }
        }
        Change { run: true, ..Change::default() }
    }
}
