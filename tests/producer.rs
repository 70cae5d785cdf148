//! Producers: whatever is called, the events are legal and say what was written.

#![allow(missing_docs, reason = "a test")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test")]

use std::collections::BTreeMap;
use std::task::Poll;
use std::time::Duration;

use ag_ui_stream::agent::AgentError;
use ag_ui_stream::error::SubjectKind;
use ag_ui_stream::event::{Interrupt, SubagentStartedEvent, TextMessageStartEvent};
use ag_ui_stream::message::{AssistantMessage, UserMessage};
use ag_ui_stream::producer::{
    self, Delta, Failure, Finish, OpenReasoning, OpenStep, OpenSubagent, OpenText, OpenToolCall, ProducedRun,
    RunContext, RunWriter,
};
use ag_ui_stream::{AgentExt, Error, Event, EventStreamExt, Rule, RunAgentInput, Snapshot};
use futures::stream::FusedStream;
use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio_test::{assert_pending, task};

mod support;

use support::seeded;

fn input() -> RunAgentInput {
    RunAgentInput::new("t", "r", [UserMessage::new("u", "Go").into()])
}

/// The conversation of a run, which must be legal.
async fn snapshot(run: ProducedRun) -> Snapshot {
    let updates: Vec<_> = run.updates().try_collect().await.unwrap();
    updates.last().unwrap().snapshot().clone()
}

async fn types(run: ProducedRun) -> Vec<&'static str> {
    run.map(|event| event.event_type().as_str()).collect().await
}

fn written(writer: &mut RunWriter) -> Vec<Value> {
    std::iter::from_fn(|| writer.pop()).map(|event| json!(event)).collect()
}

#[test]
fn r1_r11_a_run_begins_with_the_ids_of_its_input_and_our_version() {
    let mut asked = input();
    asked.parent_run_id = Some("before".into());
    let mut writer = RunWriter::new(&asked);
    let started = json!({
        "type": "RUN_STARTED", "threadId": "t", "runId": "r", "protocolVersion": "1.0", "parentRunId": "before"
    });
    assert_eq!(written(&mut writer), [started]);
}

#[test]
fn an_illegal_event_is_refused_by_rule_and_the_run_goes_on() {
    let mut writer = RunWriter::new(&input());
    writer.emit(Event::text_start("m")).unwrap();
    let null_result = {
        let mut finished = ag_ui_stream::event::RunFinishedEvent::new("t", "r");
        finished.result = Some(Value::Null);
        finished
    };
    for (event, rule) in [
        (Event::text_start("m"), Rule::S2),
        (Event::text_end("other"), Rule::S2),
        (Event::text_chunk("n", "x"), Rule::C1),
        (Event::step_finished("s"), Rule::S8),
        (Event::run_started("t", "r2"), Rule::R2),
        (Event::run_finished("t", "r"), Rule::R3),
    ] {
        let refused = writer.emit(event.clone()).unwrap_err();
        assert_eq!(refused.rule(), Some(rule), "{event:?}");
    }
    writer.emit(Event::text_end("m")).unwrap();
    assert_eq!(writer.emit(null_result).unwrap_err().rule(), Some(Rule::E5));
    writer.finish(()).unwrap();
    assert_eq!(writer.finish(()).unwrap_err().rule(), Some(Rule::R4));
    assert_eq!(writer.emit(Event::text_start("late")).unwrap_err().rule(), Some(Rule::R4));
    let events = written(&mut writer);
    assert_eq!(events.len(), 4);
    assert_eq!(events[3]["type"], "RUN_FINISHED");
}

#[test]
fn r10_interrupts_that_share_an_id_are_refused_and_the_run_goes_on() {
    let mut writer = RunWriter::new(&input());
    let twice = [Interrupt::new("i", "one"), Interrupt::new("i", "two")];
    assert_eq!(writer.finish(Finish::interrupt(twice)).unwrap_err().rule(), Some(Rule::R10));
    assert!(!writer.is_over());
    writer.finish(()).unwrap();
    assert!(writer.is_over());
}

#[test]
fn r4_a_run_that_finished_may_fail_late_and_only_once() {
    let mut writer = RunWriter::new(&input());
    writer.finish(()).unwrap();
    writer.fail(Failure::new("late")).unwrap();
    assert_eq!(writer.fail(Failure::new("later")).unwrap_err().rule(), Some(Rule::R4));
    let types: Vec<_> = written(&mut writer).into_iter().map(|event| event["type"].clone()).collect();
    assert_eq!(types, ["RUN_STARTED", "RUN_FINISHED", "RUN_ERROR"]);
}

#[test]
fn r3_open_items_are_closed_in_reverse_order_with_their_owner() {
    let mut writer = RunWriter::new(&input());
    writer.emit(SubagentStartedEvent::new("sub", "helper")).unwrap();
    let mut start = TextMessageStartEvent::new("m");
    start.subagent_run_id = Some("sub".into());
    writer.emit(start).unwrap();
    writer.emit(Event::step_started("s")).unwrap();
    writer.emit(Event::tool_call_start("c", "f")).unwrap();
    assert_eq!(
        writer.open().iter().map(|(subject, _)| subject.kind).collect::<Vec<_>>(),
        [SubjectKind::Subagent, SubjectKind::TextMessage, SubjectKind::Step, SubjectKind::ToolCall]
    );
    let mut asks = Interrupt::new("i", "sure");
    asks.subagent_run_id = Some("sub".into());
    writer.finish(Finish::interrupt(asks.clone())).unwrap();
    assert_eq!(
        written(&mut writer)[5..],
        [
            json!({"type": "TOOL_CALL_END", "toolCallId": "c"}),
            json!({"type": "STEP_FINISHED", "stepName": "s"}),
            json!({"type": "TEXT_MESSAGE_END", "messageId": "m", "subagentRunId": "sub"}),
            json!({
                "type": "SUBAGENT_FINISHED", "subagentRunId": "sub",
                "outcome": {"type": "suspended", "interruptIds": ["i"]}
            }),
            json!({
                "type": "RUN_FINISHED", "threadId": "t", "runId": "r",
                "outcome": {"type": "interrupt", "interrupts": [asks]}
            }),
        ]
    );
}

#[test]
fn ids_are_fresh_even_where_a_run_is_tried_again() {
    let mut asked = input();
    asked.messages.push(AssistantMessage::new("r-7").into());
    asked.messages.push(AssistantMessage::new("r-none").into());
    let mut writer = RunWriter::new(&asked);
    assert_eq!([writer.fresh_id(), writer.fresh_id()], ["r-8", "r-9"]);
}

#[test]
fn a6_a_changed_state_is_written_in_the_shorter_form() {
    let mut writer = RunWriter::new(&input());
    let _ = written(&mut writer);
    let long = "a long text that a patch need not repeat";
    let snapshot = |state: &Value| json!({"type": "STATE_SNAPSHOT", "snapshot": state});
    let patch = json!({"type": "STATE_DELTA", "delta": [{"op": "replace", "path": "/a~1~0", "value": 2}]});
    for (state, expected) in [
        (json!({}), Some(snapshot(&json!({})))),
        (json!({}), None),
        (json!({"a/~": 1, "b": long}), Some(snapshot(&json!({"a/~": 1, "b": long})))),
        (json!({"a/~": 2, "b": long}), Some(patch)),
        (json!({"a/~": 2, "b": long}), None),
        (Value::Null, Some(snapshot(&Value::Null))),
    ] {
        writer.state(&state).unwrap();
        assert_eq!(written(&mut writer), Vec::from_iter(expected), "{state}");
    }
    // After a patch by `emit` the writer does not know the state, so it writes a snapshot.
    writer.emit(Event::state_delta(ag_ui_stream::event::JsonPatch::default())).unwrap();
    writer.state(&Value::Null).unwrap();
    assert_eq!(written(&mut writer)[1]["type"], "STATE_SNAPSHOT");
    // A map whose keys are not strings.
    let keys = BTreeMap::from([((1, 2), 3)]);
    assert_eq!(writer.state(&keys).unwrap_err().rule(), Some(Rule::E5));
}

#[tokio::test]
async fn s7_reasoning_is_written_as_a_message_in_a_span() {
    let run = producer::run(input(), async |run| {
        run.reasoning("Hm.").await?;
        Ok(())
    });
    assert_eq!(
        types(run).await,
        [
            "RUN_STARTED",
            "REASONING_START",
            "REASONING_MESSAGE_START",
            "REASONING_MESSAGE_CONTENT",
            "REASONING_MESSAGE_END",
            "REASONING_END",
            "RUN_FINISHED"
        ]
    );
}

#[tokio::test]
async fn r5_a_failing_run_abandons_its_open_items() {
    let run = producer::run(input(), async |run| {
        run.text("whole").await?;
        let mut call = run.open_tool_call("f").await?;
        call.push("{\"of\":").await?;
        Err::<(), _>(AgentError::from(Failure::new("no more tokens").with_code("quota")))
    });
    let events: Vec<_> = run.map(|event| json!(event)).collect().await;
    let types: Vec<_> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    // There is no TOOL_CALL_END, which would mean that the arguments are whole.
    assert_eq!(types[4..], ["TOOL_CALL_START", "TOOL_CALL_ARGS", "RUN_ERROR"]);
    assert_eq!(events[6], json!({"type": "RUN_ERROR", "message": "no more tokens", "code": "quota"}));
}

#[tokio::test]
async fn a_dropped_item_is_closed_before_the_next_event_or_while_the_agent_waits() {
    let run = producer::run(input(), async |run| {
        drop(run.open_text().await?);
        tokio::time::sleep(Duration::from_millis(1)).await;
        let _first = run.open_text().await?;
        drop(_first);
        run.custom("next", &1).await?;
        Ok(())
    });
    let mut run = task::spawn(run);
    let mut seen = Vec::new();
    while let Poll::Ready(Some(event)) = run.poll_next() {
        seen.push(event.event_type().as_str());
    }
    assert_eq!(seen, ["RUN_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_END"]);
    let rest: Vec<_> = run.into_inner().map(|event| event.event_type().as_str()).collect().await;
    assert_eq!(rest, ["TEXT_MESSAGE_START", "TEXT_MESSAGE_END", "CUSTOM", "RUN_FINISHED"]);
}

#[tokio::test]
async fn o1_events_of_a_subagent_are_attributed_to_it() {
    let run = producer::run(input(), async |run| {
        let researcher = run.subagent("researcher").await?;
        let step = researcher.step("look").await?;
        step.text("found").await?;
        let nested = step.subagent("clerk").await?;
        nested.state(&json!({"a": 1})).await?;
        nested.end_with(3).await?;
        step.end().await?;
        let _left_open = researcher.open_text().await?;
        researcher.fail("tired").await?;
        run.text("done").await?;
        Ok(())
    });
    let events: Vec<_> = run.map(|event| json!(event)).collect().await;
    let tags: Vec<_> = events
        .iter()
        .map(|event| (event["type"].as_str().unwrap(), event["subagentRunId"].as_str()))
        .filter(|(kind, _)| !kind.starts_with("RUN"))
        .collect();
    let (one, two) = (Some("r-1"), Some("r-3"));
    assert_eq!(
        tags,
        [
            ("SUBAGENT_STARTED", one),
            ("STEP_STARTED", one),
            ("TEXT_MESSAGE_START", one),
            ("TEXT_MESSAGE_CONTENT", one),
            ("TEXT_MESSAGE_END", one),
            ("SUBAGENT_STARTED", two),
            ("STATE_SNAPSHOT", two),
            ("SUBAGENT_FINISHED", two),
            ("STEP_FINISHED", one),
            ("TEXT_MESSAGE_START", one),
            ("TEXT_MESSAGE_END", one),
            ("SUBAGENT_ERROR", one),
            ("TEXT_MESSAGE_START", None),
            ("TEXT_MESSAGE_CONTENT", None),
            ("TEXT_MESSAGE_END", None),
        ]
    );
    assert_eq!(events[6]["parentSubagentRunId"], "r-1");
    assert_eq!(events[8]["result"], 3);
}

#[tokio::test]
async fn a_writer_waits_if_it_is_faster_than_the_reader() {
    let (written, mut count) = tokio::sync::mpsc::unbounded_channel();
    let run = producer::run(input(), async move |run| {
        let mut answer = run.open_text().await?;
        for _ in 0..1000 {
            answer.push("x").await?;
            let _ = written.send(());
        }
        Ok(())
    });
    let mut run = task::spawn(run);
    // The closure is first polled after RUN_STARTED was read.
    assert!(run.poll_next().is_ready() && run.poll_next().is_ready());
    assert!(count.len() < 40, "{}", count.len());
    assert_eq!(run.into_inner().count().await, 1000 + 2);
    assert_eq!(count.recv().await, Some(()));
}

#[tokio::test]
async fn another_task_may_write_until_the_run_is_over_or_dropped() {
    let (give, given) = tokio::sync::oneshot::channel();
    let (give, mut run) = {
        let run = producer::run(input(), async move |run| {
            let _ = give.send(run.clone());
            run.text("first").await?;
            std::future::pending::<()>().await;
            Ok(())
        });
        (given, task::spawn(run))
    };
    while run.poll_next().is_ready() {}
    let context = give.await.unwrap();
    context.text("from elsewhere").await.unwrap();
    assert!(run.is_woken());
    let mut texts = Vec::new();
    while let Poll::Ready(Some(event)) = run.poll_next() {
        texts.push(event.event_type().as_str());
    }
    assert_eq!(texts, ["TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"]);
    assert_pending!(run.poll_next());
    drop(run);
    assert!(context.text("nobody reads").await.unwrap_err().is_truncated());

    let (give, given) = tokio::sync::oneshot::channel();
    let mut run = producer::run(input(), async move |run| {
        let _ = give.send(run);
        Ok(())
    });
    while run.next().await.is_some() {}
    assert!(run.is_terminated());
    assert_eq!(given.await.unwrap().text("too late").await.unwrap_err().rule(), Some(Rule::R4));
}

#[tokio::test]
async fn r7_a_cancelled_run_is_neither_success_nor_failure_and_leaves_nothing_open() {
    let run = producer::run(input(), async |run| {
        let step = run.step("wait").await?;
        let mut answer = step.open_text().await?;
        answer.push("Half an ans").await?;
        std::future::pending::<()>().await;
        Ok(())
    });
    let snapshot = snapshot(run.cancelled_by(async {}.boxed())).await;
    assert_eq!(snapshot.run().unwrap().outcome.as_str(), "cancelled");
}

#[tokio::test]
async fn a_panic_of_the_closure_fails_the_run() {
    let mut run = producer::run(input(), async |run| {
        run.text("so far").await?;
        if run.input().messages.len() == 1 {
            panic!("a fault of the agent");
        }
        Ok(())
    });
    let mut seen = Vec::new();
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    loop {
        match std::panic::AssertUnwindSafe(run.next()).catch_unwind().await {
            Ok(Some(event)) => seen.push(event.event_type().as_str()),
            Ok(None) => break,
            Err(_) => {}
        }
    }
    std::panic::set_hook(hook);
    assert_eq!(seen.last(), Some(&"RUN_ERROR"));
}

#[tokio::test]
async fn an_agent_of_a_closure_runs_each_input() {
    let agent = producer::agent(async |run: RunContext| {
        run.text(format!("run {}", run.run_id())).await?;
        Ok(Finish::new().with_result(json!({"done": true})))
    });
    for id in ["one", "two"] {
        let updates: Vec<_> =
            agent.updates(RunAgentInput::new("t", id, [])).await.unwrap().try_collect().await.unwrap();
        let text = updates.last().unwrap().snapshot().messages().iter().next_back().unwrap().text().unwrap();
        assert_eq!(text.to_string(), format!("run {id}"));
    }
}

#[tokio::test]
async fn deltas_of_a_kind_make_one_item_and_several_calls_stay_open() {
    let deltas = [
        Delta::reasoning("Two "),
        Delta::reasoning("calls."),
        Delta::text("I look."),
        Delta::tool_call("a", "f", "{"),
        Delta::tool_call("b", "g", "["),
        Delta::arguments("a", "}"),
        Delta::arguments("b", "]"),
        Delta::tool_result("a", "1"),
        Delta::arguments("b", "?"),
        Delta::State(json!({"n": 1})),
        Delta::text("Done."),
        Delta::Finish(Finish::new()),
        Delta::text("never read"),
    ];
    let run = producer::from_deltas(input(), stream::iter(deltas.clone()));
    assert_eq!(
        types(run).await,
        [
            "RUN_STARTED",
            "REASONING_START",
            "REASONING_MESSAGE_START",
            "REASONING_MESSAGE_CONTENT",
            "REASONING_MESSAGE_CONTENT",
            "REASONING_MESSAGE_END",
            "REASONING_END",
            "TEXT_MESSAGE_START",
            "TEXT_MESSAGE_CONTENT",
            "TEXT_MESSAGE_END",
            "TOOL_CALL_START",
            "TOOL_CALL_ARGS",
            "TOOL_CALL_START",
            "TOOL_CALL_ARGS",
            "TOOL_CALL_ARGS",
            "TOOL_CALL_ARGS",
            "TOOL_CALL_END",
            "TOOL_CALL_END",
            "TOOL_CALL_RESULT",
            "TOOL_CALL_START",
            "TOOL_CALL_ARGS",
            "STATE_SNAPSHOT",
            "TOOL_CALL_END",
            "TEXT_MESSAGE_START",
            "TEXT_MESSAGE_CONTENT",
            "TEXT_MESSAGE_END",
            "RUN_FINISHED"
        ]
    );
    let snapshot = snapshot(producer::from_deltas(input(), stream::iter(deltas))).await;
    let said: Vec<_> = snapshot.messages().iter().map(|message| message.role().as_str()).collect();
    assert_eq!(said, ["reasoning", "assistant", "tool", "assistant"]);
    let calls: Vec<_> = snapshot.messages().iter().flat_map(|message| message.tool_calls()).collect();
    assert_eq!(calls.iter().map(|call| call.function.arguments.to_string()).collect::<Vec<_>>(), ["{}", "[]?"]);
}

#[tokio::test]
async fn a_source_of_deltas_that_fails_fails_the_run_with_its_error() {
    let source = stream::iter([Ok("Half "), Err("reset")]);
    let events: Vec<_> = producer::from_deltas(input(), source).map(|event| json!(event)).collect().await;
    assert_eq!(events.len(), 4);
    assert_eq!(events[3], json!({"type": "RUN_ERROR", "message": "reset"}));
    // A first piece of a call has to name its tool.
    let source = stream::iter([Delta::arguments("c", "{}")]);
    let events: Vec<_> = producer::from_deltas(input(), source).collect().await;
    assert!(matches!(events.last(), Some(Event::RunError(_))));
}

/// An open item, as the property test holds it.
enum Held {
    Text(OpenText),
    Thought(OpenReasoning),
    Call(OpenToolCall),
    Step(OpenStep),
    Subagent(OpenSubagent),
}

#[derive(Clone, Debug)]
enum Op {
    Open(u8, u8),
    Push(u8, String),
    End(u8),
    Drop(u8),
    State(Value),
    Text(u8, String),
    Call(u8, Value),
    Emit(u8, u8),
    Yield,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let value = prop_oneof![
        Just(json!(null)),
        any::<i8>().prop_map(|n| json!({"n": n})),
        proptest::collection::vec(any::<u8>(), 0..4).prop_map(|list| json!({"list": list, "a/b": {"c": [list.len()]}})),
    ];
    let op = prop_oneof![
        3 => (any::<u8>(), any::<u8>()).prop_map(|(kind, by)| Op::Open(kind, by)),
        5 => (any::<u8>(), "[a-zäß🍎]{0,3}").prop_map(|(at, text)| Op::Push(at, text)),
        2 => any::<u8>().prop_map(Op::End),
        2 => any::<u8>().prop_map(Op::Drop),
        2 => value.clone().prop_map(Op::State),
        1 => (any::<u8>(), "[a-z]{0,3}").prop_map(|(by, text)| Op::Text(by, text)),
        1 => (any::<u8>(), value).prop_map(|(by, arguments)| Op::Call(by, arguments)),
        2 => (any::<u8>(), any::<u8>()).prop_map(|(kind, id)| Op::Emit(kind, id)),
        1 => Just(Op::Yield),
    ];
    proptest::collection::vec(op, 0..60)
}

/// The texts that were written, to be found again in the conversation.
#[derive(Debug, Default, PartialEq)]
struct Said {
    texts: BTreeMap<String, String>,
    calls: BTreeMap<String, String>,
    state: Option<Value>,
    refused: usize,
}

/// Makes these calls on a run; the caller ends it.
async fn follow(run: RunContext, ops: Vec<Op>, said: std::sync::Arc<std::sync::Mutex<Said>>) -> Result<(), Error> {
    let mut held: Vec<Held> = Vec::new();
    let mut contexts = vec![run];
    for op in ops {
        let by = |by: u8| contexts[usize::from(by) % contexts.len()].clone();
        let at = |at: u8| if held.is_empty() { None } else { Some(usize::from(at) % held.len()) };
        match op {
            Op::Open(kind, owner) => {
                let run = by(owner);
                held.push(match kind % 5 {
                    0 => Held::Text(run.open_text().await?),
                    1 => Held::Thought(run.open_reasoning().await?),
                    2 => Held::Call(run.open_tool_call("f").await?),
                    3 => match run.step(format!("step {}", kind % 3)).await {
                        Ok(step) => Held::Step(step),
                        Err(error) => {
                            assert_eq!(error.rule(), Some(Rule::S8));
                            continue;
                        }
                    },
                    _ => {
                        let subagent = run.subagent("helper").await?;
                        contexts.push((*subagent).clone());
                        Held::Subagent(subagent)
                    }
                });
            }
            Op::Push(which, text) => {
                let Some(at) = at(which) else { continue };
                // If its subagent ended first, the item is closed, and the call is refused.
                let (pushed, id, is_call) = match &mut held[at] {
                    Held::Text(open) => (open.push(&*text).await, open.id().to_string(), false),
                    Held::Thought(open) => (open.push(&*text).await, open.id().to_string(), false),
                    Held::Call(open) => (open.push(&*text).await, open.id().to_string(), true),
                    Held::Step(_) | Held::Subagent(_) => continue,
                };
                let mut said = said.lock().unwrap();
                match pushed {
                    Ok(()) if is_call => said.calls.entry(id).or_default().push_str(&text),
                    Ok(()) => said.texts.entry(id).or_default().push_str(&text),
                    Err(error) => {
                        assert_eq!(error.rule(), Some(Rule::S2));
                        said.refused += 1;
                    }
                }
            }
            Op::End(which) => {
                let Some(at) = at(which) else { continue };
                let ended = match held.remove(at) {
                    Held::Text(open) => open.end().await.map(drop),
                    Held::Thought(open) => open.end().await.map(drop),
                    Held::Call(open) => open.end().await.map(drop),
                    Held::Step(open) => open.end().await,
                    Held::Subagent(open) => open.end().await,
                };
                said.lock().unwrap().refused += usize::from(ended.is_err());
            }
            Op::Drop(which) => {
                let Some(at) = at(which) else { continue };
                drop(held.remove(at));
            }
            Op::State(state) => {
                contexts[0].state(&state).await?;
                said.lock().unwrap().state = Some(state);
            }
            Op::Text(owner, text) => {
                let id = by(owner).text(&text).await?;
                said.lock().unwrap().texts.insert(id.to_string(), text);
            }
            Op::Call(owner, arguments) => {
                let id = by(owner).tool_call("g", &arguments).await?;
                by(owner).tool_result(&id, "ok").await?;
                said.lock().unwrap().calls.insert(id.to_string(), arguments.to_string());
            }
            Op::Emit(kind, id) => {
                let id = format!("wild {}", id % 2);
                let event = match kind % 8 {
                    0 => Event::text_end(id),
                    1 => Event::tool_call_end(id),
                    2 => Event::step_finished(id),
                    3 => Event::reasoning_message_end(id),
                    4 => Event::run_started("t", id),
                    5 => Event::text_chunk(id, "x"),
                    6 => Event::text_content(id, "x"),
                    _ => ag_ui_stream::event::SubagentFinishedEvent::new(id).into(),
                };
                contexts[0].emit(event).await.unwrap_err();
            }
            Op::Yield => tokio::task::yield_now().await,
        }
    }
    // The values that are left are dropped, or outlive the run.
    Ok(())
}

proptest! {
    #![proptest_config(seeded(400))]

    /// Any calls in any order, and any end, give a legal run.
    #[test]
    fn what_comes_out_is_legal_and_comes_to_what_was_written(ops in ops(), end in 0..4usize) {
        let said = std::sync::Arc::new(std::sync::Mutex::new(Said::default()));
        let inner = std::sync::Arc::clone(&said);
        let run = producer::run(input(), async move |run| {
            follow(run, ops, inner).await?;
            match end {
                0 => Ok(Finish::new()),
                1 => Ok(Finish::interrupt(Interrupt::new("i", "sure"))),
                2 => Ok(Finish::cancelled()),
                _ => Err(AgentError::new("no")),
            }
        });
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let snapshot = runtime.block_on(snapshot(run));
        let outcome = ["success", "interrupt", "cancelled", "error"][end];
        prop_assert_eq!(snapshot.run().unwrap().outcome.as_str(), outcome);
        let said = std::mem::take(&mut *said.lock().unwrap());
        let held = |id: &String| snapshot.message(id.as_str()).unwrap().text().map_or_else(String::new, |text| text.to_string());
        for (id, text) in &said.texts {
            prop_assert_eq!(&held(id), text);
        }
        let calls: BTreeMap<_, _> = snapshot
            .messages()
            .iter()
            .flat_map(|message| message.tool_calls())
            .map(|call| (call.id.to_string(), call.function.arguments.to_string()))
            .collect();
        for (id, arguments) in &said.calls {
            prop_assert_eq!(&calls[id], arguments);
        }
        if let Some(state) = said.state {
            prop_assert_eq!(snapshot.state(), &state);
        }
    }

    /// Any stream of deltas gives a legal run with all of its texts.
    #[test]
    fn any_stream_of_deltas_is_a_legal_run(kinds in proptest::collection::vec((0..6u8, 0..3u8, "[a-z]{1,3}"), 0..40)) {
        let deltas: Vec<_> = kinds
            .iter()
            .map(|(kind, id, text)| match kind {
                0 | 1 => Delta::text(text.as_str()),
                2 => Delta::reasoning(text.as_str()),
                3 | 4 => Delta::tool_call(format!("call {id}"), "f", text.as_str()),
                _ => Delta::tool_result(format!("call {id}"), text.as_str()),
            })
            .collect();
        let all = |wanted: &[u8]| kinds.iter().filter(|(kind, ..)| wanted.contains(kind)).map(|(.., text)| text.as_str()).collect::<String>();
        let run = producer::from_deltas(input(), stream::iter(deltas));
        let snapshot = futures::executor::block_on(snapshot(run));
        prop_assert_eq!(snapshot.run().unwrap().outcome.as_str(), "success");
        let texts = |role: &str| {
            let of_role = snapshot.messages().iter().filter(|message| message.role().as_str() == role);
            of_role.filter_map(|message| message.text()).map(|text| text.to_string()).collect::<String>()
        };
        prop_assert_eq!(texts("assistant"), all(&[0, 1]));
        prop_assert_eq!(texts("reasoning"), all(&[2]));
    }
}
