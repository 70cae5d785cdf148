//! `Conversation`: many runs, what the thread keeps however a run ends, interrupts, tool calls, and tools.

#![allow(missing_docs, reason = "a test")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use ag_ui_stream::agent::{AgentError, RawEventStream, raw_event_stream};
use ag_ui_stream::conversation::{AnswerError, Consent, Conversation, Thread, TooManyRounds, ToolFailed, Tools};
use ag_ui_stream::id::SequentialIds;
use ag_ui_stream::input::{Context, ResumeError, ResumeStatus, Tool};
use ag_ui_stream::message::{Message, SystemMessage, UserMessage};
use ag_ui_stream::snapshot::ItemStatus;
use ag_ui_stream::{Agent, Error, Limits, Options, Rule, RunAgentInput};
use futures::future::poll_immediate;
use futures::stream::{self, FusedStream};
use futures::{StreamExt, TryStreamExt};
use serde_json::{Value, json};

/// One step of a run: `Err` is a source that fails, `Hang` a source that gives nothing more.
enum Step {
    Gives(Value),
    Fails,
    Hangs,
}

use Step::{Fails, Gives, Hangs};

/// An agent that does what the script says, run after run, and notes what it was given.
#[derive(Clone, Default)]
struct Script(Arc<Scripted>);

#[derive(Default)]
struct Scripted {
    /// `None` for a run that cannot be started.
    runs: Mutex<VecDeque<Option<Vec<Step>>>>,
    inputs: Mutex<Vec<RunAgentInput>>,
}

impl Script {
    fn new(runs: impl IntoIterator<Item = Vec<Step>>) -> Self {
        let script = Self::default();
        script.0.runs.lock().unwrap().extend(runs.into_iter().map(Some));
        script
    }

    fn then(self, run: Option<Vec<Step>>) -> Self {
        self.0.runs.lock().unwrap().push_back(run);
        self
    }

    fn inputs(&self) -> Vec<RunAgentInput> {
        self.0.inputs.lock().unwrap().clone()
    }

    fn conversation(&self) -> Conversation<Self> {
        Conversation::new(self.clone(), Thread::new("t")).with_ids(SequentialIds::new("id-"))
    }
}

#[async_trait::async_trait]
impl Agent for Script {
    async fn run(&self, input: RunAgentInput) -> Result<RawEventStream, AgentError> {
        self.0.inputs.lock().unwrap().push(input.clone());
        let steps = self.0.runs.lock().unwrap().pop_front().unwrap().ok_or("unreachable")?;
        let mut steps = VecDeque::from(steps);
        let events = stream::poll_fn(move |_| match steps.pop_front() {
            Some(Gives(event)) => std::task::Poll::Ready(Some(Ok(event))),
            Some(Fails) => std::task::Poll::Ready(Some(Err(std::io::Error::other("reset")))),
            Some(Hangs) => {
                steps.push_front(Hangs);
                std::task::Poll::Pending
            }
            None => std::task::Poll::Ready(None),
        });
        Ok(raw_event_stream(&input, events))
    }
}

fn started(run: &str) -> Step {
    Gives(json!({"type": "RUN_STARTED", "threadId": "t", "runId": run}))
}

fn finished(run: &str) -> Step {
    Gives(json!({"type": "RUN_FINISHED", "threadId": "t", "runId": run}))
}

fn says(id: &str, text: &str) -> Step {
    Gives(json!({"type": "TEXT_MESSAGE_CHUNK", "messageId": id, "delta": text}))
}

fn asks(run: &str, interrupts: Value) -> Step {
    let outcome = json!({"type": "interrupt", "interrupts": interrupts});
    Gives(json!({"type": "RUN_FINISHED", "threadId": "t", "runId": run, "outcome": outcome}))
}

fn calls(id: &str, name: &str, arguments: &str) -> Step {
    Gives(
        json!({"type": "TOOL_CALL_CHUNK", "toolCallId": id, "toolCallName": name, "parentMessageId": "a", "delta": arguments}),
    )
}

/// The roles and texts of messages.
fn shown(messages: &[Message]) -> Vec<String> {
    let text = |message: &Message| message.text().map(|text| text.to_string()).unwrap_or_default();
    messages.iter().map(|message| format!("{}: {}", message.role(), text(message))).collect()
}

fn held(conversation: &Conversation<Script>) -> Vec<String> {
    shown(&conversation.snapshot().messages().iter().cloned().collect::<Vec<_>>())
}

fn outcome(conversation: &Conversation<Script>) -> &'static str {
    conversation.snapshot().run().map_or("none", |run| run.outcome.as_str())
}

#[tokio::test]
async fn messages_and_state_go_from_run_to_run() {
    let state = Gives(json!({"type": "STATE_SNAPSHOT", "snapshot": {"count": 1}}));
    let nothing = Gives(json!({"type": "STATE_SNAPSHOT", "snapshot": null}));
    let agent = Script::new([
        vec![started("1"), says("a", "Hi"), state, finished("1")],
        vec![started("2"), nothing, finished("2")],
        vec![started("3"), finished("3")],
    ]);
    let mut conversation = agent.conversation();
    conversation.thread_mut().push(SystemMessage::new("s", "Be brief."));
    conversation.thread_mut().set_context([Context::new("where", "here")]);
    conversation.thread_mut().set_forwarded_props(json!({"model": "m"}));

    let mut turn = conversation.send("Hello");
    let mut texts = Vec::new();
    while let Some(update) = turn.try_next().await.unwrap() {
        texts.extend(update.message().and_then(Message::text).map(|text| text.to_string()));
    }
    assert!(turn.is_terminated() && turn.next().await.is_none());
    assert_eq!((texts.last().unwrap().as_str(), turn.snapshot().messages().len()), ("Hi", 3));
    drop(turn);
    let (snapshot, ended) = conversation.send(UserMessage::new("mine", "More")).finish().await;
    ended.unwrap();
    assert_eq!(snapshot.message("mine").unwrap().text().unwrap(), "More");
    // A6: null cannot be sent.
    assert!(snapshot.state().to_value().is_null());
    conversation.run().finish().await.1.unwrap();

    let inputs = agent.inputs();
    assert_eq!(shown(&inputs[0].messages), ["system: Be brief.", "user: Hello"]);
    assert_eq!(shown(&inputs[1].messages), ["system: Be brief.", "user: Hello", "assistant: Hi", "user: More"]);
    assert_eq!(inputs[2].messages, inputs[1].messages);
    assert_eq!(
        inputs.iter().map(|input| input.state.clone()).collect::<Vec<_>>(),
        [Some(json!({})), Some(json!({"count": 1})), None]
    );
    for input in &inputs {
        assert_eq!(input.thread_id.as_str(), "t");
        assert_eq!(input.context.as_ref().unwrap().len(), 1);
        assert_eq!(input.forwarded_props, Some(json!({"model": "m"})));
        assert!(input.resume.is_none() && input.tools.is_none());
    }
    // The first message was `id-1`; each run has a new id.
    assert_eq!(inputs.iter().map(|input| input.run_id.as_str()).collect::<Vec<_>>(), ["id-2", "id-3", "id-4"]);
}

#[tokio::test]
async fn nothing_happens_before_the_first_poll() {
    let agent = Script::new([vec![started("1"), finished("1")]]);
    let mut conversation = agent.conversation();
    drop(conversation.send("Hello"));
    assert_eq!((held(&conversation).len(), agent.inputs().len()), (0, 0));
}

/// A run with something of everything open somewhere.
fn long_run() -> Vec<Step> {
    let event = |event: Value| Gives(event);
    vec![
        started("1"),
        event(json!({"type": "STEP_STARTED", "stepName": "s"})),
        says("a", "one "),
        says("a", "two"),
        calls("c", "book", "{\"to\": "),
        calls("c", "book", "\"Paris\"}"),
        event(json!({"type": "STATE_DELTA", "delta": [{"op": "add", "path": "/x", "value": 1}]})),
        event(json!({"type": "STEP_FINISHED", "stepName": "s"})),
        finished("1"),
    ]
}

#[tokio::test]
async fn r8_a_turn_that_is_dropped_after_any_poll_leaves_a_consistent_thread() {
    let whole = {
        let mut conversation = Script::new([long_run()]).conversation();
        conversation.send("Hello").count().await
    };
    for polls in 1..=whole + 1 {
        let agent = Script::new([long_run(), vec![started("2"), finished("2")]]);
        let mut conversation = agent.conversation();
        let mut turn = conversation.send("Hello");
        let mut last = None;
        for _ in 0..polls {
            if let Some(update) = turn.try_next().await.unwrap() {
                last = Some(update.into_snapshot());
            }
        }
        let last = last.unwrap();
        if polls % 2 == 0 {
            drop(turn);
        } else {
            turn.abort();
        }
        let is_over = last.run().unwrap().outcome.as_str() == "success";
        assert_eq!(outcome(&conversation), if is_over { "success" } else { "truncated" }, "after {polls}");
        let text =
            |id| conversation.snapshot().message(id).and_then(|message| message.text()).map(|text| text.to_string());
        let seen = last.message("a").and_then(|message| message.text()).map(|text| text.to_string());
        assert!(text("a").unwrap_or_default().starts_with(&seen.unwrap_or_default()), "after {polls}");
        let status = conversation.snapshot().tool_call_status("c");
        assert_ne!(status, Some(ItemStatus::Streaming), "after {polls}");

        // The thread is saved and restored, and the conversation goes on.
        let saved = serde_json::to_string(conversation.thread()).unwrap();
        let restored: Thread = serde_json::from_str(&saved).unwrap();
        assert_eq!(serde_json::to_string(&restored).unwrap(), saved, "after {polls}");
        conversation.send("On").finish().await.1.unwrap();
        let sent = &agent.inputs()[1];
        assert_eq!(sent.messages[..sent.messages.len() - 1], restored.next_input("").messages[..], "after {polls}");
        // A9: a call that was cut off is not sent.
        let sent_call = sent.messages.iter().any(|message| message.tool_calls().next().is_some());
        assert_eq!(sent_call, status == Some(ItemStatus::Complete), "after {polls}");
    }
}

#[tokio::test]
async fn the_thread_goes_on_after_any_failure() {
    let violates = Gives(json!({"type": "STEP_FINISHED", "stepName": "never"}));
    let failed = Gives(json!({"type": "RUN_ERROR", "message": "overloaded"}));
    let agent = Script::default()
        .then(None)
        .then(Some(vec![started("1"), says("a", "x"), Fails]))
        .then(Some(vec![started("2"), violates]))
        .then(Some(vec![started("3"), says("b", "y")]))
        .then(Some(vec![started("4"), failed]))
        .then(Some(vec![started("5"), finished("5")]));
    let mut conversation = agent.conversation();
    let (_, ended) = conversation.send("Hello").finish().await;
    assert!(matches!(ended, Err(Error::Source(error)) if error.to_string() == "unreachable"));
    assert_eq!(held(&conversation), ["user: Hello"]);
    let (snapshot, ended) = conversation.run().finish().await;
    assert!(ended.unwrap_err().is_transport());
    assert_eq!(snapshot.run().unwrap().outcome.as_str(), "truncated");
    let (snapshot, ended) = conversation.run().finish().await;
    assert_eq!(ended.unwrap_err().rule(), Some(Rule::S8));
    assert_eq!(snapshot.run().unwrap().outcome.as_str(), "rejected");
    let mut turn = conversation.run();
    while let Some(Ok(_)) = turn.next().await {}
    assert!(turn.next().await.is_none());
    drop(turn);
    assert_eq!(outcome(&conversation), "truncated");
    conversation.run().finish().await.1.unwrap();
    assert_eq!(outcome(&conversation), "error");
    conversation.send("Still there?").finish().await.1.unwrap();
    assert_eq!(held(&conversation), ["user: Hello", "assistant: x", "assistant: y", "user: Still there?"]);
}

#[tokio::test]
async fn a_turn_that_hangs_can_be_dropped() {
    let agent =
        Script::new([vec![Hangs], vec![started("1"), says("a", "x"), Hangs], vec![started("2"), finished("2")]]);
    let mut conversation = agent.conversation();
    let mut turn = conversation.send("Hello");
    assert!(poll_immediate(turn.next()).await.is_none());
    drop(turn);
    assert_eq!((held(&conversation).len(), outcome(&conversation)), (1, "none"));
    let mut turn = conversation.run();
    while poll_immediate(turn.next()).await.is_some() {}
    assert_eq!(turn.abort().message("a").unwrap().text().unwrap(), "x");
    assert_eq!(outcome(&conversation), "truncated");
    conversation.run().finish().await.1.unwrap();
}

#[tokio::test]
async fn options_hold_for_every_run() {
    let deep = Gives(json!({"type": "CUSTOM", "name": "deep", "value": [[[[1]]]]}));
    let agent = Script::new([vec![started("1"), deep, finished("1")]]);
    let limits = Limits { max_depth: 4, ..Limits::default() };
    let mut conversation = agent.conversation().with_options(Options::new().limits(limits));
    assert!(matches!(conversation.send("Hello").finish().await.1, Err(Error::LimitExceeded(_))));
}

#[tokio::test]
async fn t4_interrupts_wait_in_the_thread_and_are_all_answered_at_once() {
    let asked = || json!([{"id": "deploy", "reason": "approval"}, {"id": "old", "reason": "r", "expiresAt": "2020-01-01T00:00:00Z"}]);
    let agent = Script::new([vec![started("1"), asks("1", asked())], vec![started("2"), finished("2")]])
        .then(None)
        .then(Some(vec![Gives(json!({"type": "RUN_ERROR", "message": "down"}))]))
        .then(Some(vec![started("3"), finished("3")]));
    let mut conversation = agent.conversation();
    conversation.send("Deploy").finish().await.1.unwrap();
    // A plain run answers nothing.
    conversation.send("Well?").finish().await.1.unwrap();
    let ids = |thread: &Thread| thread.interrupts().iter().map(|asked| asked.id.to_string()).collect::<Vec<_>>();
    assert_eq!(ids(conversation.thread()), ["deploy", "old"]);
    assert!(agent.inputs()[1].resume.is_none());
    let restored: Thread = serde_json::from_value(serde_json::to_value(conversation.thread()).unwrap()).unwrap();
    assert_eq!(restored.interrupts(), conversation.thread().interrupts());

    let mut answers = conversation.answers();
    let unknown = answers.resolve("other", json!(1)).unwrap_err();
    assert!(matches!(unknown, AnswerError::Resume(ResumeError::Unknown { .. })));
    let expired = answers.resolve("old", json!(1)).unwrap_err();
    assert!(matches!(expired, AnswerError::Resume(ResumeError::Expired { .. })));
    answers.resolve("deploy", json!({"approved": true})).unwrap();
    let repeated = answers.cancel("deploy").unwrap_err();
    assert!(matches!(repeated, AnswerError::Resume(ResumeError::Repeated { .. })));
    assert_eq!(answers.interrupts().count(), 1);
    let missing = answers.send().map(drop).unwrap_err();
    assert_eq!(missing.to_string(), "T4: neither resolved nor cancelled: interrupt \"old\"");
    assert_eq!(agent.inputs().len(), 2);

    // An answer that no run was given stays open: the run cannot be started, or fails before it begins.
    for _ in 0..2 {
        let mut answers = conversation.answers();
        answers.resolve("deploy", None).unwrap().decline_rest("no");
        let _ = answers.send().unwrap().finish().await;
        assert_eq!(conversation.thread().interrupts().len(), 2);
    }
    let mut answers = conversation.answers();
    answers.resolve("deploy", json!({"approved": true})).unwrap().cancel("old").unwrap().message("Go on.");
    answers.send().unwrap().finish().await.1.unwrap();
    assert!(conversation.thread().interrupts().is_empty());
    let inputs = agent.inputs();
    let resume = inputs[4].resume.as_deref().unwrap();
    assert_eq!((resume[0].status, resume[1].status), (ResumeStatus::Resolved, ResumeStatus::Cancelled));
    assert_eq!(resume[0].payload, Some(json!({"approved": true})));
    assert_eq!(shown(&inputs[4].messages).last().unwrap(), "user: Go on.");
}

#[tokio::test]
async fn r9_results_of_pending_calls_come_after_the_message_of_the_call() {
    let calling =
        vec![started("1"), calls("c1", "book", "{}"), calls("c2", "pay", "{}"), says("after", "Wait."), finished("1")];
    let agent = Script::new([calling, vec![started("2"), finished("2")], vec![started("3"), finished("3")]]);
    let mut conversation = agent.conversation();
    conversation.send("Book").finish().await.1.unwrap();
    conversation.send("And?").finish().await.1.unwrap();
    let restored: Thread = serde_json::from_value(serde_json::to_value(conversation.thread()).unwrap()).unwrap();
    for thread in [conversation.thread(), &restored] {
        let names: Vec<_> = thread.pending_calls().map(|call| call.function.name.to_string()).collect();
        assert_eq!(names, ["book", "pay"]);
    }
    let mut answers = conversation.answers();
    answers.result("c2", "paid").unwrap();
    assert_eq!(answers.result("c2", "twice").unwrap_err().to_string(), "tool call \"c2\" already has a result");
    assert_eq!(answers.result("c9", "").unwrap_err().to_string(), "tool call \"c9\" does not wait for a result");
    let missing = answers.send().map(drop).unwrap_err();
    assert!(matches!(&missing, AnswerError::MissingResults { tool_call_ids } if tool_call_ids[0].as_str() == "c1"));
    assert_eq!(agent.inputs().len(), 2);

    let mut answers = conversation.answers();
    answers.decline("c1", "fully booked").unwrap().result("c2", "paid").unwrap();
    answers.send().unwrap().finish().await.1.unwrap();
    assert_eq!(conversation.thread().pending_calls().count(), 0);
    let messages = &agent.inputs()[2].messages;
    assert_eq!(
        shown(messages),
        ["user: Book", "assistant: ", "tool: fully booked", "tool: paid", "assistant: Wait.", "user: And?"]
    );
    let Message::Tool(declined) = &messages[2] else { panic!("{messages:?}") };
    assert_eq!(declined.error.as_deref(), Some("fully booked"));
}

#[derive(serde::Deserialize)]
struct Sum {
    a: i64,
    b: i64,
}

fn tool(name: &str) -> Tool {
    Tool::new(name, name)
}

fn adder() -> Tools {
    Tools::new().with(tool("add"), |sum: Sum| async move {
        sum.a.checked_add(sum.b).ok_or_else(|| ToolFailed::new("too large"))
    })
}

#[tokio::test]
async fn tools_are_run_after_their_run_and_the_next_run_gets_the_results() {
    let calling = vec![started("1"), calls("c1", "add", "{\"a\": 1, \"b\": 2}"), calls("c2", "now", ""), finished("1")];
    let agent = Script::new([calling, vec![started("2"), says("b", "3"), finished("2")]]);
    let tools = adder().with(tool("now"), |_: Value| async { Ok(json!({"hour": 12})) });
    let mut conversation = agent.conversation().with_tools(tools);
    let mut turn = conversation.send("1 + 2?");
    let mut runs = 0;
    while let Some(update) = turn.try_next().await.unwrap() {
        runs += usize::from(update.event().is_some_and(|event| event.event_type().as_str() == "RUN_STARTED"));
        if update.snapshot().run().unwrap().run_id.as_ref().unwrap().as_str() == "1" {
            assert!(update.snapshot().messages().iter().all(|message| !matches!(message, Message::Tool(_))));
        }
    }
    drop(turn);
    assert_eq!(runs, 2);
    assert_eq!(held(&conversation), ["user: 1 + 2?", "assistant: ", "tool: 3", "tool: {\"hour\":12}", "assistant: 3"]);
    let inputs = agent.inputs();
    assert_eq!(inputs[0].tools.as_ref().unwrap().len(), 2);
    assert_ne!(inputs[0].run_id, inputs[1].run_id);
    assert_eq!(shown(&inputs[1].messages), held(&conversation)[..4]);
}

#[tokio::test]
async fn a_failed_tool_call_has_a_result_with_the_error() {
    let big = format!("{{\"a\": {}, \"b\": 1}}", i64::MAX);
    let calling = vec![
        started("1"),
        calls("c1", "add", &big),
        calls("c2", "add", "{\"a\": 1}"),
        calls("c3", "panics", "{}"),
        calls("c4", "secret", "{}"),
        finished("1"),
    ];
    let agent = Script::new([calling, vec![started("2"), finished("2")]]);
    let done = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&done);
    let tools = adder()
        .with(tool("panics"), |_: Value| async { if true { panic!("the tool") } else { Ok(()) } })
        .with(tool("secret"), move |_: Value| {
            let counted = Arc::clone(&counted);
            async move { Ok(counted.fetch_add(1, Ordering::SeqCst)) }
        })
        .with_consent(|call| async move {
            if &*call.function.name == "secret" { Consent::Deny("not allowed".to_owned()) } else { Consent::Allow }
        });
    let mut conversation = agent.conversation().with_tools(tools);
    conversation.send("Go").finish().await.1.unwrap();
    let sent = &agent.inputs()[1].messages;
    let errors: Vec<_> = sent
        .iter()
        .filter_map(|message| match message {
            Message::Tool(result) => Some(result.error.as_deref().unwrap_or("none").to_owned()),
            _ => None,
        })
        .collect();
    assert_eq!(errors[0], "too large");
    assert!(errors[1].starts_with("the arguments do not fit: missing field `b`"), "{errors:?}");
    assert_eq!(errors[2..], ["the tool panicked", "not allowed"]);
    assert_eq!(shown(sent)[5], "tool: not allowed");
    assert_eq!(done.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn the_runs_that_follow_on_tools_are_bounded() {
    let run = |n: usize| vec![started("r"), calls(&format!("c{n}"), "add", "{\"a\": 1, \"b\": 1}"), finished("r")];
    let agent = Script::new([run(0), run(1), run(2), run(3)]);
    let mut conversation = agent.conversation().with_tools(adder().with_max_rounds(2));
    let (_, ended) = conversation.send("Go").finish().await;
    let Err(Error::Source(error)) = ended else { panic!("{ended:?}") };
    assert_eq!(error.downcast_ref::<TooManyRounds>().unwrap().max, 2);
    assert_eq!(agent.inputs().len(), 3);
    // The last call waits; the application decides.
    assert_eq!(conversation.thread().pending_calls().count(), 1);
    let mut answers = conversation.answers();
    answers.decline_rest("enough");
    let turn = answers.send().unwrap();
    drop(turn);
    assert_eq!(conversation.thread().pending_calls().count(), 1);
}

#[tokio::test]
async fn a_turn_ends_when_the_application_has_to_answer() {
    // A tool that is not in the registry.
    let calling =
        vec![started("1"), calls("c1", "add", "{\"a\": 1, \"b\": 1}"), calls("c2", "paint", "{}"), finished("1")];
    let agent = Script::new([calling, vec![started("2"), finished("2")]]);
    let mut conversation = agent.conversation().with_tools(adder().declare(tool("paint")));
    conversation.send("Go").finish().await.1.unwrap();
    assert_eq!(agent.inputs().len(), 1);
    let pending: Vec<_> = conversation.thread().pending_calls().map(|call| call.id.to_string()).collect();
    assert_eq!(pending, ["c2"]);
    let mut answers = conversation.answers();
    answers.result("c2", "painted").unwrap();
    answers.send().unwrap().finish().await.1.unwrap();
    assert_eq!(shown(&agent.inputs()[1].messages)[2..], ["tool: 2", "tool: painted"]);

    // A call that an interrupt is about is made by the agent, after the interrupt is answered.
    let about = json!([{"id": "i", "reason": "approval", "toolCallId": "c1"}]);
    let agent = Script::new([vec![started("1"), calls("c1", "add", "{\"a\": 1, \"b\": 1}"), asks("1", about)]]);
    let mut conversation = agent.conversation().with_tools(adder());
    conversation.send("Go").finish().await.1.unwrap();
    assert_eq!((conversation.thread().pending_calls().count(), conversation.thread().interrupts().len()), (0, 1));
    assert_eq!(held(&conversation).len(), 2);

    // R5, R7: no tool is run for a run that failed.
    let failed = Gives(json!({"type": "RUN_ERROR", "message": "down"}));
    let agent = Script::new([vec![started("1"), calls("c1", "add", "{\"a\": 1, \"b\": 1}"), failed]]);
    let mut conversation = agent.conversation().with_tools(adder());
    conversation.send("Go").finish().await.1.unwrap();
    assert_eq!((conversation.thread().pending_calls().count(), agent.inputs().len()), (0, 1));
}

#[tokio::test]
async fn a_tool_call_still_waits_after_its_turn_is_dropped() {
    let calling =
        vec![started("1"), calls("c1", "add", "{\"a\": 1, \"b\": 1}"), calls("c2", "slow", "{}"), finished("1")];
    let agent = Script::new([calling, vec![started("2"), finished("2")]]);
    let tools = adder().with(tool("slow"), |_: Value| std::future::pending::<Result<(), ToolFailed>>());
    let mut conversation = agent.conversation().with_tools(tools);
    let mut turn = conversation.send("Go");
    while poll_immediate(turn.next()).await.is_some() {}
    drop(turn);
    // The call that was made is kept, and not made again.
    assert_eq!(held(&conversation), ["user: Go", "assistant: ", "tool: 2"]);
    let pending: Vec<_> = conversation.thread().pending_calls().map(|call| call.id.to_string()).collect();
    assert_eq!(pending, ["c2"]);
}

#[test]
fn a_conversation_can_be_moved_to_another_thread() {
    fn check<T: Send>(_: &T) {}
    let mut conversation = Conversation::new(Box::new(Script::default()) as Box<dyn Agent>, Thread::new("t"));
    check(&conversation);
    check(&conversation.answers());
    check(&conversation.send("Hello").finish());
}

#[cfg(feature = "reqwest")]
mod http {
    use super::*;
    use ag_ui_stream::client::{HttpAgent, reqwest};
    use ag_ui_stream::{EncodeStreamExt, Event, EventStreamExt};
    use axum::Json;
    use axum::body::Body;
    use axum::http::header::CONTENT_TYPE;
    use axum::response::IntoResponse;
    use axum::routing::post;

    /// Calls a tool, and says what it gave.
    async fn agent(Json(input): Json<RunAgentInput>) -> impl IntoResponse {
        let (thread, run) = (input.thread_id.as_str(), input.run_id.as_str());
        let result = input.messages.iter().rev().find_map(|message| match message {
            Message::Tool(result) => result.content.text().map(|text| text.to_string()),
            _ => None,
        });
        let event = match result {
            None => {
                json!({"type": "TOOL_CALL_CHUNK", "toolCallId": "c", "toolCallName": input.tools.unwrap()[0].name, "delta": "{\"a\": 20, \"b\": 22}"})
            }
            Some(result) => {
                json!({"type": "TEXT_MESSAGE_CHUNK", "messageId": "a", "delta": format!("It is {result}.")})
            }
        };
        let events = [
            json!({"type": "RUN_STARTED", "threadId": thread, "runId": run}),
            event,
            json!({"type": "RUN_FINISHED", "threadId": thread, "runId": run}),
        ];
        let body = stream::iter(events).items().or_run_error().to_sse();
        ([(CONTENT_TYPE, "text/event-stream")], Body::from_stream(body))
    }

    async fn serve() -> String {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = axum::Router::new().route("/", post(agent));
        tokio::spawn(async move { axum::serve(listener, router).await });
        format!("http://{address}/")
    }

    #[tokio::test]
    async fn a_conversation_with_tools_over_http() {
        let url = serve().await;
        let agent = HttpAgent::new(&url).unwrap();
        let mut conversation = Conversation::new(agent, Thread::new("t")).with_tools(adder());
        let events: Vec<Event> = conversation
            .send("20 + 22?")
            .try_filter_map(|update| async { Ok(update.into_event()) })
            .try_collect()
            .await
            .unwrap();
        assert_eq!(events.iter().filter(|event| matches!(event, Event::RunFinished(_))).count(), 2);
        assert_eq!(conversation.snapshot().message("a").unwrap().text().unwrap(), "It is 42.");
        let messages = conversation.snapshot().messages().len();

        // E5: the extractor rejects an invalid input.
        let refused = reqwest::Client::new()
            .post(&url)
            .header("content-type", "application/json")
            .body("{\"threadId\": \"t\", \"messages\": []}")
            .send()
            .await
            .unwrap();
        assert_eq!(refused.status().as_u16(), 422);
        assert!(refused.text().await.unwrap().contains("runId"));

        let saved = serde_json::to_string(conversation.thread()).unwrap();
        let restored: Thread = serde_json::from_str(&saved).unwrap();
        assert_eq!(restored.snapshot().messages().len(), messages);
    }
}
