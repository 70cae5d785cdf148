//! The runs of a snapshot: rules R5 to R9 and R11, and the open items at any time.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "helpers of tests")]

mod support;

use ag_ui_stream::error::SubjectKind;
use ag_ui_stream::event::{SubagentFinishedOutcome, TokenUsage};
use ag_ui_stream::input::Outgoing;
use ag_ui_stream::machine::{Cut, Machine, Pipeline, Push};
use ag_ui_stream::snapshot::{ItemStatus, Run, RunOutcome, SubagentStatus};
use serde_json::{Value, json};
use support::assembled::*;
use support::*;

fn finished(outcome: Value) -> Value {
    with(run_finished(), json!({"outcome": outcome}))
}

#[track_caller]
fn last_run(events: &[Value]) -> Run {
    assemble(events).snapshot.run().unwrap().clone()
}

fn ids(run: &Run) -> Vec<&str> {
    run.pending_tool_call_ids().iter().map(AsRef::as_ref).collect()
}

/// The open items: kind, id, owner, since when.
fn open(run: &Run) -> Vec<(SubjectKind, &str, Option<&str>, u64)> {
    run.open().map(|item| (item.kind, item.id(), item.owner.as_ref().map(AsRef::as_ref), item.since)).collect()
}

// How it ended

#[test]
fn a_run_says_how_it_was_started() {
    let started =
        json!({"type": "RUN_STARTED", "threadId": "t1", "runId": "r1", "parentRunId": "r0", "protocolVersion": "1.0"});
    let assembled = assemble_with(builder(), &[started]);
    // Only while the stream goes on is it running.
    let run = assembled.updates[0].snapshot().run().unwrap();
    assert!(run.is_running());
    assert_eq!(run.outcome.as_str(), "running");
    assert_eq!(run.thread_id.as_ref().unwrap(), "t1");
    assert_eq!(run.run_id.as_ref().unwrap(), "r1");
    assert_eq!(run.parent_run_id.as_ref().unwrap(), "r0");
    assert_eq!(run.protocol_version.as_deref(), Some("1.0"));
    assert!(run.pending_tool_call_ids().is_empty());
}

#[test]
fn r7_an_absent_outcome_is_success_and_so_is_one_that_was_stripped() {
    for (event, warnings) in
        [(run_finished(), 0), (finished(json!({"type": "success"})), 0), (finished(json!({"type": "later"})), 1)]
    {
        let assembled = assemble(&[run_started(), with(event, json!({"result": {"a": 1}}))]);
        let run = assembled.snapshot.run().unwrap();
        assert!(matches!(run.outcome, RunOutcome::Success { .. }));
        assert_eq!(run.result.as_deref(), Some(&json!({"a": 1})));
        assert_eq!(assembled.warned().len(), warnings);
        assert!(assembled.at(1).changed_run());
    }
}

#[test]
fn r7_an_interrupt_waits() {
    let outcome = json!({"type": "interrupt", "interrupts": [{"id": "i", "reason": "why"}]});
    let run = last_run(&[run_started(), call_start("c"), call_end("c"), finished(outcome)]);
    let RunOutcome::Interrupt { interrupts, .. } = &run.outcome else { panic!("{run:?}") };
    assert_eq!(interrupts.iter().map(|interrupt| interrupt.id.to_string()).collect::<Vec<_>>(), ["i"]);
    assert_eq!(ids(&run), ["c"]);
}

#[test]
fn r7_a_cancelled_run_neither_succeeded_nor_failed_and_waits_for_nothing() {
    let run = last_run(&[run_started(), call_start("c"), call_end("c"), finished(json!({"type": "cancelled"}))]);
    assert_eq!(run.outcome, RunOutcome::Cancelled);
    assert!(ids(&run).is_empty());
}

#[test]
fn r5_a_failed_run_keeps_its_messages_and_its_open_items() {
    let error = json!({"type": "RUN_ERROR", "message": "no", "code": "E"});
    let events = [
        run_started(),
        subagent_started("s"),
        step_started("p"),
        by("s", text_start("m")),
        by("s", delta("m", "x")),
        call_start("c"),
        error,
    ];
    let assembled = assemble(&events);
    let run = assembled.snapshot.run().unwrap();
    assert_eq!(run.outcome, RunOutcome::Error { message: "no".into(), code: Some("E".into()) });
    let expected = [
        (SubjectKind::Subagent, "s", None, 1),
        (SubjectKind::Step, "p", None, 2),
        (SubjectKind::TextMessage, "m", Some("s"), 3),
        (SubjectKind::ToolCall, "c", None, 5),
    ];
    assert_eq!(open(run), expected);
    assert_eq!(assembled.snapshot.subagent("s").unwrap().status, SubagentStatus::Abandoned);
    assert_eq!(assembled.snapshot.message_status("m"), Some(ItemStatus::Abandoned));
    assert_eq!(assembled.messages(), [by("s", assistant("m", "x")), caller("c", &[("c", "")])]);
    assert!(ids(run).is_empty());
}

#[test]
fn r4_a_late_error_turns_a_finished_run_into_a_failed_one() {
    let usage = json!([{"inputTokens": 1}]);
    let done = with(run_finished(), json!({"usage": usage, "result": 7}));
    let assembled = assemble(&[run_started(), call_start("c"), call_end("c"), done.clone(), run_error()]);
    assert_eq!(assembled.snapshot.runs().len(), 1);
    let run = assembled.snapshot.run().unwrap();
    assert_eq!(run.outcome, RunOutcome::Error { message: "no".into(), code: None });
    assert_eq!(run.total_usage().unwrap().input_tokens, Some(1));
    assert_eq!(run.result.as_deref(), Some(&json!(7)));
    assert!(ids(run).is_empty());
    // What the error says of usage counts, if it says something.
    let failed = with(run_error(), json!({"usage": [{"inputTokens": 5}]}));
    assert_eq!(last_run(&[run_started(), done, failed]).total_usage().unwrap().input_tokens, Some(5));
}

#[test]
fn r1_an_error_first_is_a_run_without_ids() {
    let mut events = vec![run_error()];
    let run = last_run(&events);
    assert_eq!((&run.thread_id, &run.run_id), (&None, &None));
    assert_eq!(run.outcome, RunOutcome::Error { message: "no".into(), code: None });
    events.extend(in_run([]));
    let assembled = assemble(&events);
    let outcomes: Vec<_> = assembled.snapshot.runs().map(|run| run.outcome.as_str()).collect();
    assert_eq!(outcomes, ["error", "success"]);
}

#[test]
fn r8_a_stream_that_ends_in_a_run_is_truncated() {
    let assembled = assemble_with(builder(), &[run_started(), text_start("m"), delta("m", "x")]);
    assert!(assembled.error.unwrap().is_truncated());
    let run = assembled.snapshot.run().unwrap();
    assert_eq!(run.outcome, RunOutcome::Truncated);
    assert_eq!(open(run), [(SubjectKind::TextMessage, "m", None, 1)]);
    assert_eq!(assembled.snapshot.message_status("m"), Some(ItemStatus::Abandoned));
}

#[test]
fn r8a_what_comes_after_its_end_does_not_take_back_the_outcome() {
    let events = [run_started(), run_finished(), text_start("m")];
    let assembled = assemble_with(builder(), &events);
    assert!(assembled.error.is_some());
    assert!(matches!(assembled.snapshot.run().unwrap().outcome, RunOutcome::Success { .. }));
}

#[test]
fn a_run_that_breaks_a_rule_is_rejected() {
    let assembled = assemble_with(builder(), &[run_started(), subagent_started("s"), text_end("m")]);
    assert_eq!(assembled.snapshot.run().unwrap().outcome, RunOutcome::Rejected);
    assert_eq!(assembled.snapshot.subagent("s").unwrap().status, SubagentStatus::Abandoned);
    for (cut, outcome) in cases([(Cut::Truncated, RunOutcome::Truncated), (Cut::Rejected, RunOutcome::Rejected)]) {
        let mut pipeline = Pipeline::new();
        pipeline.push(run_started()).unwrap();
        pipeline.cut(cut);
        assert_eq!(pipeline.snapshot().run().unwrap().outcome, outcome);
    }
}

// Pending calls

#[test]
fn r9_calls_without_a_result_are_pending_in_the_order_made() {
    let mut events = vec![run_started()];
    events.extend(["c", "a", "b", "d"].into_iter().flat_map(|id| call(id, "{}")));
    // Reopened, a call is made once.
    events.extend(call("c", "{}"));
    events.extend([result("r", "a", json!("x")), result("s", "elsewhere", json!("x")), run_finished()]);
    assert_eq!(ids(&last_run(&events)), ["c", "b", "d"]);
}

#[test]
fn r9_the_outcome_s_own_list_counts_unless_it_is_empty() {
    let events = |named: Value| {
        let outcome = json!({"type": "success", "pendingToolCallIds": named});
        [run_started(), call_start("c"), call_end("c"), finished(outcome)]
    };
    assert_eq!(ids(&last_run(&events(json!(["x", "c"])))), ["x", "c"]);
    assert_eq!(ids(&last_run(&events(json!([])))), ["c"]);
}

#[test]
fn r6_the_tally_of_calls_is_reset_by_each_run() {
    let mut events = in_run(call("c", "{}"));
    events.extend(in_run(call("d", "{}")));
    assert_eq!(ids(&last_run(&events)), ["d"]);
    // Answered in the run before, and made again.
    let mut events = in_run(call("c", "{}").into_iter().chain([result("r", "c", json!("x"))]));
    events.extend(in_run(call("c", "{}")));
    assert_eq!(ids(&last_run(&events)), ["c"]);
}

// Usage

#[test]
fn usage_is_kept_as_sent_and_summed_count_by_count() {
    let usage = json!([
        {"model": "a", "provider": "p", "inputTokens": 1, "outputTokens": 2, "totalTokens": 3, "reasoningTokens": 0},
        {"model": "b", "inputTokens": 10, "outputTokens": 20, "cachedInputTokens": 5, "cacheWriteInputTokens": 0},
    ]);
    let run = last_run(&[run_started(), with(run_finished(), json!({"usage": usage}))]);
    assert_eq!(serde_json::to_value(run.usage.as_deref()).unwrap(), usage);
    let total = run.total_usage().unwrap();
    assert_eq!((total.input_tokens, total.output_tokens), (Some(11), Some(22)));
    // Absent somewhere is not zero there.
    assert_eq!((total.total_tokens, total.reasoning_tokens), (None, None));
    assert_eq!((total.cached_input_tokens, total.cache_write_input_tokens), (None, None));
    assert_eq!((total.model, total.provider), (None, None));
}

#[test]
fn a_run_without_usage_has_no_total() {
    for usage in cases([json!({}), json!({"usage": []})]) {
        assert_eq!(last_run(&[run_started(), with(run_finished(), usage)]).total_usage(), None);
    }
    let mut run = last_run(&in_run([]));
    let mut entry = TokenUsage::new();
    (entry.input_tokens, entry.output_tokens) = (Some(u64::MAX), Some(1));
    run.usage = Some([entry.clone(), entry].into());
    let total = run.total_usage().unwrap();
    assert_eq!((total.input_tokens, total.output_tokens), (None, Some(2)));
}

// Subagents

#[test]
fn subagents_are_values_with_their_origin_and_end() {
    let started = with(
        subagent_started("a"),
        json!({"name": "n", "description": "d", "parentToolCallId": "c", "parentMessageId": "m"}),
    );
    let nested = with(subagent_started("b"), json!({"parentSubagentRunId": "a"}));
    let suspended = json!({"type": "suspended", "interruptIds": ["i"]});
    let assembled = assemble_run([
        started,
        nested,
        subagent_started("c"),
        with(subagent_finished("b"), json!({"outcome": suspended})),
        with(subagent_finished("a"), json!({"result": [1]})),
        with(subagent_error("c"), json!({"code": "E"})),
    ]);
    // While both run, the parent is what opened the nested one.
    let run = assembled.at(2).snapshot().run().unwrap();
    assert_eq!(open(run), [(SubjectKind::Subagent, "a", None, 1), (SubjectKind::Subagent, "b", Some("a"), 2)]);
    assert_eq!(assembled.at(2).snapshot().subagent("b").unwrap().status, SubagentStatus::Running);

    let run = assembled.snapshot.run().unwrap();
    assert_eq!(
        run.subagents().map(|subagent| subagent.subagent_run_id.to_string()).collect::<Vec<_>>(),
        ["a", "b", "c"]
    );
    let a = assembled.snapshot.subagent("a").unwrap();
    assert_eq!((&*a.name, a.description.as_deref()), ("n", Some("d")));
    assert_eq!(a.parent_tool_call_id.as_ref().unwrap(), "c");
    assert_eq!(a.parent_message_id.as_ref().unwrap(), "m");
    assert_eq!(a.parent_subagent_run_id, None);
    assert!(matches!(a.status, SubagentStatus::Finished(SubagentFinishedOutcome::Success(_))));
    assert_eq!(a.result.as_deref(), Some(&json!([1])));
    let b = assembled.snapshot.subagent("b").unwrap();
    assert_eq!(b.parent_subagent_run_id.as_ref().unwrap(), "a");
    let SubagentStatus::Finished(SubagentFinishedOutcome::Suspended(outcome)) = &b.status else { panic!("{b:?}") };
    assert_eq!(serde_json::to_value(outcome).unwrap(), suspended);
    let error = SubagentStatus::Error { message: "no".into(), code: Some("E".into()) };
    assert_eq!(assembled.snapshot.subagent("c").unwrap().status, error);
    assert_eq!(assembled.snapshot.subagent("none"), None);
}

#[test]
fn r6_an_invocation_of_the_same_id_in_a_later_run_is_another_one() {
    let mut events = in_run([with(subagent_started("s"), json!({"name": "first"})), subagent_finished("s")]);
    events.extend([run_started(), with(subagent_started("s"), json!({"name": "second"})), run_error()]);
    let assembled = assemble(&events);
    assert_eq!(&*assembled.snapshot.subagent("s").unwrap().name, "second");
    let names: Vec<_> = assembled
        .snapshot
        .runs()
        .map(|run| run.subagents().map(|s| (&*s.name, &s.status)).collect::<Vec<_>>())
        .collect();
    assert!(matches!(names[0][..], [("first", SubagentStatus::Finished(_))]));
    assert_eq!(names[1], [("second", &SubagentStatus::Abandoned)]);
    // A run that announces another subagent has none of this id.
    let mut other = events.clone();
    other.extend(in_run([subagent_started("u"), subagent_finished("u")]));
    assert_eq!(assemble(&other).snapshot.subagent("s"), None);
    // A run that announces no subagent has none.
    events.extend(in_run([by("s", text_start("m")), text_end("m")]));
    assert_eq!(assemble(&events).snapshot.subagent("s"), None);
}

// What is open

#[test]
fn s8_steps_of_one_name_are_open_per_owner() {
    let events =
        [step_started("p"), by("a", step_started("p")), by("b", step_started("p")), by("a", step_finished("p"))];
    let assembled = assemble_open(events);
    let run = assembled.snapshot.run().unwrap();
    let owners: Vec<_> = run.open_steps().map(|(name, owner)| (name, owner.map(AsRef::as_ref))).collect();
    assert_eq!(owners, [("p", None), ("p", Some("b"))]);
}

#[test]
fn s1_items_of_one_id_are_open_per_kind() {
    let starts = [
        text_start("x"),
        call_start("x"),
        thought_start("x"),
        reasoning_start("x"),
        step_started("x"),
        subagent_started("x"),
    ];
    let kinds = [
        SubjectKind::TextMessage,
        SubjectKind::ToolCall,
        SubjectKind::ReasoningMessage,
        SubjectKind::ReasoningSpan,
        SubjectKind::Step,
        SubjectKind::Subagent,
    ];
    let ends = [
        text_end("x"),
        call_end("x"),
        thought_end("x"),
        reasoning_end("x"),
        step_finished("x"),
        subagent_finished("x"),
    ];
    for (at, end) in ends.into_iter().enumerate() {
        let assembled = assemble_open(starts.iter().cloned().chain([end]));
        let left: Vec<_> = assembled.snapshot.run().unwrap().open().map(|item| item.kind).collect();
        let expected: Vec<_> =
            kinds.into_iter().enumerate().filter(|(other, _)| *other != at).map(|(_, kind)| kind).collect();
        assert_eq!(left, expected);
        assert!(assembled.at(7).changed_run());
    }
}

#[test]
fn o3_an_untagged_reopening_keeps_the_owner() {
    let assembled = assemble_open([by("s", text_start("m")), text_end("m"), text_start("m")]);
    assert_eq!(open(assembled.snapshot.run().unwrap()), [(SubjectKind::TextMessage, "m", Some("s"), 3)]);
}

#[test]
fn o4_a_call_without_a_tag_belongs_to_the_owner_of_its_message() {
    let call = with(call_start("c"), json!({"parentMessageId": "m"}));
    let assembled = assemble_open([by("s", text_start("m")), text_end("m"), call]);
    assert_eq!(open(assembled.snapshot.run().unwrap()), [(SubjectKind::ToolCall, "c", Some("s"), 3)]);
}

#[test]
fn r6_nothing_is_open_when_a_run_begins() {
    let assembled =
        assemble(&[run_started(), text_start("m"), step_started("p"), run_error(), run_started(), run_finished()]);
    let run = assembled.at(4).snapshot().run().unwrap();
    assert_eq!(run.open().len(), 0);
    let before = assembled.at(4).snapshot().runs().next().unwrap();
    assert_eq!(before.open().len(), 2);
}

#[test]
fn a_hundred_subagents_at_once() {
    let names: Vec<String> = (0..100).map(|at| format!("s{at}")).collect();
    let mut events: Vec<Value> = names.iter().map(|name| subagent_started(name)).collect();
    events.extend(names.iter().map(|name| by(name, text_start(name))));
    for _ in 0..3 {
        events.extend(names.iter().map(|name| by(name, delta(name, name))));
    }
    events.extend(names.iter().rev().flat_map(|name| [by(name, text_end(name)), subagent_finished(name)]));
    let assembled = assemble_run(events);
    let expected: Vec<Value> = names.iter().map(|name| by(name, assistant(name, &name.repeat(3)))).collect();
    assert_eq!(assembled.messages(), expected);
    assert_eq!(assembled.snapshot.messages_by_owner().len(), 100);
    assert_eq!(assembled.snapshot.run().unwrap().subagents().len(), 100);
}

#[test]
fn a9_calls_that_were_never_closed_are_not_given_to_the_next_run() {
    let mut events = vec![run_started()];
    events.extend(text("m", "hello"));
    events.extend(call("whole", "{}"));
    events.push(result("r", "whole", json!("1")));
    events.extend([with(call_start("cut"), json!({"parentMessageId": "m"})), args("cut", "{\"to\": \"Par")]);
    events.extend([with(call_start("also whole"), json!({"parentMessageId": "m"})), call_end("also whole")]);
    events.extend([call_start("alone"), args("alone", "{"), result("s", "alone", json!("2"))]);
    events.extend([text_start("half"), delta("half", "and th"), run_error()]);
    let failed = assemble(&events).snapshot;
    let input = failed.next_input("t", "next");
    let expected = [
        with(caller("m", &[("also whole", "")]), json!({"content": "hello"})),
        caller("whole", &[("whole", "{}")]),
        tool("r", "whole", "1"),
        assistant("half", "and th"),
    ];
    assert_eq!(serde_json::to_value(&input.messages).unwrap(), json!(expected));
    assert_eq!((input.thread_id.as_str(), input.run_id.as_str()), ("t", "next"));
    assert_eq!(failed.messages().len(), 6, "the conversation itself keeps them");
    // A message closed before the run failed is complete.
    let whole: Vec<Value> = call("c", "{}").into_iter().chain([run_error()]).collect();
    let events: Vec<Value> = [run_started()].into_iter().chain(whole).collect();
    assert_eq!(assemble(&events).snapshot.next_input("t", "r").messages.len(), 1);
}

#[test]
fn a6_the_state_is_given_to_the_next_run_unless_it_is_null() {
    for (held, given) in [(json!({"a": 1}), Some(json!({"a": 1}))), (json!(0), Some(json!(0))), (json!(null), None)] {
        let snapshot = assemble_run([state(held)]).snapshot;
        let input = snapshot.next_input("t", "r");
        assert_eq!(input.state, given);
        let (sent, warnings) = Outgoing::new().prepare(input.clone()).unwrap();
        assert_eq!((sent.state, warnings.len()), (Some(given.clone().unwrap_or(json!({}))), 0));
        let next = builder().input(&input).build();
        assert_eq!(next.snapshot().state(), &given.unwrap_or(json!({})), "both sides start from the same");
    }
}
