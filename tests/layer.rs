//! Layers around agents: a legal run stays legal, an error stays the same, and no item is left out in part.

#![allow(missing_docs, reason = "a test")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test")]

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ag_ui_stream::agent::{AgentError, RawEventStream, Replay, agent_fn, raw_event_stream};
use ag_ui_stream::event::Interrupt;
use ag_ui_stream::input::{ResumeEntry, ResumeStatus};
use ag_ui_stream::layer::{Coalesce, EventKind, Filter, IdKind, Observe, Retry, RewriteIds, Seen, merge};
use ag_ui_stream::message::UserMessage;
use ag_ui_stream::producer::{self, Failure, Finish};
use ag_ui_stream::{Agent, AgentExt, Error, Event, EventType, Item, Limits, Options, RawItem, RunAgentInput, Snapshot};
use futures::{StreamExt, TryStreamExt, future, stream};
use proptest::prelude::*;
use serde_json::{Value, json};

#[path = "support/interop.rs"]
mod interop;
#[allow(unreachable_pub, reason = "each test has its own copy")]
#[path = "support/streams.rs"]
mod streams;
mod support;

use support::*;

fn input() -> RunAgentInput {
    RunAgentInput::new("t", "r", [])
}

async fn events(agent: impl Agent) -> Vec<Event> {
    agent.events(input()).await.unwrap().try_collect().await.unwrap()
}

fn types(events: &[Event]) -> Vec<&'static str> {
    events.iter().map(|event| event.event_type().as_str()).collect()
}

/// The conversation at the end, and the error if there was one.
async fn conversation(agent: impl Agent) -> (Option<Snapshot>, Option<Error<AgentError>>) {
    let mut updates = agent.updates(input()).await.unwrap();
    let mut last = None;
    loop {
        match updates.try_next().await {
            Ok(Some(update)) => last = Some(update.snapshot().clone()),
            Ok(None) => return (last, None),
            Err(error) => return (last, Some(error)),
        }
    }
}

/// The whole conversation as JSON.
fn said(snapshot: &Snapshot) -> Value {
    let messages: Vec<_> = snapshot.messages().iter().collect();
    let run = snapshot.run().map(|run| run.outcome.as_str());
    json!({"messages": messages, "state": snapshot.state(), "run": run})
}

#[tokio::test]
async fn a_filter_by_tool_leaves_out_all_of_a_call() {
    let agent = Replay::new([
        run_started(),
        call_start("open"),
        with(call_start("secret"), json!({"toolCallName": "hidden", "parentMessageId": "p"})),
        call_args("secret"),
        call_args("open"),
        encrypted_value("tool-call", "secret"),
        call_end("secret"),
        call_result("result", "secret"),
        call_end("open"),
        messages_snapshot(json!([
            {"id": "open", "role": "assistant", "toolCalls": [
                {"id": "open", "type": "function", "function": {"name": "f", "arguments": "{}"}}
            ]},
            {"id": "p", "role": "assistant", "toolCalls": [
                {"id": "secret", "type": "function", "function": {"name": "hidden", "arguments": "{}"}}
            ]},
            {"id": "result", "role": "tool", "toolCallId": "secret", "content": "x"}
        ])),
        with(run_finished(), json!({"outcome": {"type": "success", "pendingToolCallIds": ["secret", "open"]}})),
    ]);
    let (snapshot, error) = conversation(agent.layer(Filter::tools(|name| name != "hidden"))).await;
    assert!(error.is_none(), "{error:?}");
    let said = said(&snapshot.unwrap());
    assert_eq!(said["messages"].as_array().unwrap().len(), 1);
    assert!(!said.to_string().contains("secret"), "{said}");
}

#[tokio::test]
async fn a_filter_by_kind_leaves_out_all_of_the_kind() {
    let agent = producer::agent(async |run| {
        run.reasoning("hm").await?;
        let step = run.step("s").await?;
        let helper = step.subagent("helper").await?;
        helper.text("x").await?;
        helper.end().await?;
        run.tool_call("f", &1).await?;
        run.state(&json!({})).await?;
        run.custom("c", &1).await?;
        Ok(())
    });
    let agent: Arc<dyn Agent> = Arc::new(agent);
    for kind in [
        EventKind::Reasoning,
        EventKind::Steps,
        EventKind::Subagents,
        EventKind::Text,
        EventKind::ToolCalls,
        EventKind::State,
        EventKind::Custom,
    ] {
        let all = events(Arc::clone(&agent)).await;
        let expected: Vec<_> = all.into_iter().filter(|event| EventKind::of(event) != Some(kind)).collect();
        assert_eq!(events(Arc::clone(&agent).layer(Filter::kinds(move |of| of != kind))).await, expected, "{kind:?}");
    }
}

#[tokio::test]
async fn ids_are_rewritten_everywhere_and_turned_back_in_the_input() {
    let seen = Arc::new(Mutex::new(None));
    let see = Arc::clone(&seen);
    let agent = producer::agent(move |run| {
        *see.lock().unwrap() = Some(run.input().clone());
        async move {
            let call = run.tool_call("f", &1).await?;
            run.tool_result(&call, "ok").await?;
            let helper = run.subagent("helper").await?;
            helper.text("x").await?;
            Ok(Finish::interrupt(Interrupt::new("i", "sure")))
        }
    });
    let agent = agent.layer(
        RewriteIds::new(|kind, id| format!("{kind:?}:{id}"))
            .input(|_, id| id.split_once(':').map_or(id, |(_, id)| id).to_owned()),
    );
    let mut asked = input();
    asked.resume = Some(vec![ResumeEntry::new("Interrupt:old", ResumeStatus::Resolved)]);
    let updates: Vec<_> = agent.updates(asked).await.unwrap().try_collect().await.unwrap();
    let said = said(updates.last().unwrap().snapshot());
    assert_eq!(said["messages"][0]["toolCalls"][0]["id"], "ToolCall:r-1");
    assert_eq!(said["messages"][1]["toolCallId"], "ToolCall:r-1");
    assert_eq!(said["messages"][1]["id"], "Message:r-2");
    assert_eq!(said["messages"][2]["subagentRunId"], "Subagent:r-3");
    let resumed = seen.lock().unwrap().take().unwrap().resume.unwrap();
    assert_eq!(resumed[0].interrupt_id, "old");
}

#[test]
fn every_id_of_every_fixture_is_rewritten() {
    // The fields that hold an id by the schema, without those of runs and threads.
    const IDS: [&str; 9] = [
        "messageId",
        "toolCallId",
        "parentMessageId",
        "entityId",
        "subagentRunId",
        "parentSubagentRunId",
        "parentToolCallId",
        "pendingToolCallIds",
        "interruptIds",
    ];
    fn check(value: &Value, name: &str) {
        match value {
            Value::Object(members) => {
                for (key, value) in members {
                    if IDS.contains(&key.as_str()) {
                        let ids = value.as_array().cloned().unwrap_or_else(|| vec![value.clone()]);
                        assert!(
                            ids.iter().all(|id| id.as_str().unwrap().starts_with("new ")),
                            "{name}: {key}: {value}"
                        );
                    } else if !["value", "event", "rawEvent", "metadata", "content", "state", "input"]
                        .contains(&key.as_str())
                    {
                        check(value, name);
                    }
                }
            }
            Value::Array(elements) => elements.iter().for_each(|value| check(value, name)),
            _ => {}
        }
    }
    for (name, event) in interop::fixture_events() {
        let kind = event["type"].as_str().unwrap();
        if kind.ends_with("_CHUNK") || kind == "RUN_STARTED" {
            continue;
        }
        let agent = Replay::new([run_started(), event.clone()]);
        let layered = agent.layer(RewriteIds::new(|_: IdKind, id| format!("new {id}")));
        let run = futures::executor::block_on(layered.run(input())).unwrap();
        let items: Vec<_> = futures::executor::block_on(run.collect::<Vec<_>>());
        for item in items.into_iter().flatten() {
            if let Some(ag_ui_stream::Raw::Event(event)) = item.raw() {
                check(&json!(event), &name);
            }
        }
    }
}

#[tokio::test]
async fn coalesced_deltas_lose_nothing_before_an_error_or_the_end() {
    let deltas = |last: Option<Event>| {
        let mut events = vec![Event::run_started("t", "r"), Event::text_start("m")];
        events.extend(["a", "b", "c"].map(|delta| Event::text_content("m", delta)));
        events.extend(last);
        events
    };
    let agent = Replay::new(deltas(None)).failing("reset").layer(Coalesce::new());
    let (snapshot, error) = conversation(agent).await;
    assert_eq!(snapshot.unwrap().message("m").unwrap().text().unwrap(), "abc");
    assert!(matches!(error, Some(Error::Source(error)) if error.to_string() == "reset"));
    // At most this many bytes.
    let agent = Replay::new(deltas(Some(Event::run_error("no")))).layer(Coalesce::new().max_bytes(2));
    let joined: Vec<_> =
        events(agent).await.into_iter().filter(|event| event.event_type() == EventType::TextMessageContent).collect();
    assert_eq!(joined, [Event::text_content("m", "ab"), Event::text_content("m", "c")]);
}

#[tokio::test(start_paused = true)]
async fn coalescing_waits_no_longer_than_its_limit() {
    let timed = agent_fn(|_| async {
        let events = [Event::run_started("t", "r"), Event::text_start("m")];
        let deltas = (0..6).map(|at| Event::text_content("m", at.to_string()));
        Ok(stream::iter(events.into_iter().chain(deltas)).then(|event| async move {
            tokio::time::sleep(Duration::from_millis(10)).await;
            event
        }))
    });
    let agent = timed.layer(Coalesce::new().within(Duration::from_millis(25)));
    let mut events = agent.events(input()).await.unwrap();
    let mut texts = Vec::new();
    while let Some(Ok(event)) = events.next().await {
        if let Event::TextMessageContent(event) = event {
            texts.push(event.delta.to_string());
        }
    }
    assert_eq!(texts, ["012", "345"]);
}

#[tokio::test]
async fn a_closure_observes_every_item_and_the_end() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let see = {
        let seen = Arc::clone(&seen);
        move |run: &ag_ui_stream::id::RunId, what: Seen<'_>| {
            let text = match what {
                Seen::Item(Item::Event(indexed)) => indexed.event.event_type().to_string(),
                Seen::Item(Item::Warning(warning)) => warning.rule.to_string(),
                Seen::Error(error) => error.to_string(),
                Seen::End => "end".to_owned(),
                _ => unreachable!(),
            };
            seen.lock().unwrap().push(format!("{run} {text}"));
        }
    };
    let agent = Replay::new([with(run_error(), json!({"new": 1}))]);
    assert_eq!(events(agent.clone().layer(Observe::new(see.clone()))).await.len(), 1);
    assert_eq!(std::mem::take(&mut *seen.lock().unwrap()), ["r E2", "r RUN_ERROR", "r end"]);
    let (_, error) = conversation(agent.failing("reset").layer(Observe::new(see))).await;
    assert!(error.is_some());
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    assert_eq!(seen, ["r E2", "r RUN_ERROR", "r the source failed: reset"]);
}

#[tokio::test]
async fn an_error_is_the_same_after_all_layers() {
    let agents = [
        Replay::new([run_started(), text_end("m")]),
        Replay::new([run_started()]),
        Replay::new([json!({"type": "RUN_STARTED", "threadId": 1})]),
        Replay::new([run_started()]).failing("reset"),
    ];
    for agent in agents {
        let bare = conversation(agent.clone()).await.1.unwrap();
        let layered = agent.layer(Coalesce::new()).layer(Filter::tools(|_| true)).layer(Observe::new(|_, _| {}));
        let layered = conversation(layered).await.1.unwrap();
        assert_eq!(layered.rule(), bare.rule());
        assert_eq!(layered.is_transport(), bare.is_transport());
        assert_eq!(layered.to_string(), bare.to_string());
    }
}

/// An agent that fails this many times before it runs.
fn flaky(fails: u32, with: fn() -> Result<RawEventStream, AgentError>) -> (impl Agent, Arc<AtomicU32>) {
    let attempts = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&attempts);
    struct Flaky(Arc<AtomicU32>, u32, fn() -> Result<RawEventStream, AgentError>);

    #[async_trait::async_trait]
    impl Agent for Flaky {
        async fn run(&self, _: RunAgentInput) -> Result<RawEventStream, AgentError> {
            if self.0.fetch_add(1, Ordering::SeqCst) < self.1 {
                return (self.2)();
            }
            Ok(raw_event_stream(&input(), stream::iter([Event::run_started("t", "r"), Event::run_finished("t", "r")])))
        }
    }

    (Flaky(attempts, fails, with), counted)
}

#[tokio::test]
async fn a_run_is_retried_only_if_it_did_not_begin() {
    let backoff = |_: u32, _: &Error<AgentError>| Some(async {});
    let unreachable: fn() -> _ = || Err(AgentError::new("refused"));
    let empty: fn() -> _ = || Ok(raw_event_stream(&input(), stream::empty::<Event>()));
    let fails_first: fn() -> _ = || Ok(raw_event_stream(&input(), stream::iter([Err::<Event, _>("reset")])));
    for how in [unreachable, empty, fails_first] {
        let (agent, attempts) = flaky(2, how);
        assert_eq!(events(agent.layer(Retry::new(3, backoff))).await.len(), 2);
        assert_eq!(attempts.load(Ordering::SeqCst), 3);
        let (agent, attempts) = flaky(9, how);
        let retried = agent.layer(Retry::new(3, backoff));
        assert!(match retried.items(input()).await {
            Ok(mut items) => items.next().await.unwrap().is_err(),
            Err(_) => true,
        });
        assert_eq!(attempts.load(Ordering::SeqCst), 3);
    }
    let fails_later: fn() -> _ =
        || Ok(raw_event_stream(&input(), stream::iter([Ok(Event::run_started("t", "r")), Err("reset")])));
    let (agent, attempts) = flaky(9, fails_later);
    assert!(conversation(agent.layer(Retry::new(3, backoff))).await.1.is_some());
    assert_eq!(attempts.load(Ordering::SeqCst), 1);
    // The closure may give up sooner.
    let (agent, attempts) = flaky(9, unreachable);
    let gives_up = |attempt: u32, error: &Error<AgentError>| {
        assert_eq!(error.to_string(), "the source failed: refused");
        (attempt < 2).then_some(async {})
    };
    assert!(agent.layer(Retry::new(5, gives_up)).items(input()).await.is_err());
    assert_eq!(attempts.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_closure_is_a_layer() {
    let agent = Replay::new([run_error()]).layer(|agent: Replay| agent.failing("late"));
    assert!(conversation(agent.layer(Filter::tools(|_| true))).await.1.is_some());
}

#[tokio::test]
async fn the_limits_of_an_agent_hold_through_layers() {
    let long = "x".repeat(2 * Limits::default().max_event_bytes);
    let long = json!({"type": "STATE_SNAPSHOT", "snapshot": long}).to_string();
    let events = [run_started().to_string(), long, run_finished().to_string()];
    let raised = Limits {
        max_event_bytes: 64 << 20,
        max_document_bytes: 64 << 20,
        max_conversation_bytes: 64 << 20,
        ..Limits::default()
    };
    let few = Limits { max_document_bytes: 100, ..raised };
    for (limits, is_whole) in [(None, false), (Some(raised), true), (Some(few), false)] {
        let events = events.clone();
        let agent = agent_fn(move |_| {
            let said = limits.map(|limits| RawItem::Options(Box::new(Options::new().limits(limits))));
            let events = (0..).zip(events.clone()).map(|(index, event)| RawItem::Event { raw: event.into(), index });
            future::ready(Ok(stream::iter(said.into_iter().chain(events).collect::<Vec<_>>())))
        });
        let agent: Arc<dyn Agent> = Arc::new(agent);
        let bare = conversation(Arc::clone(&agent)).await.1.map(|error| error.to_string());
        assert_eq!(bare.is_none(), is_whole, "{bare:?}");
        let layered = agent.layer(Coalesce::new()).layer(Filter::tools(|_| true)).layer(Observe::new(|_, _| {}));
        // With and without a conversation before it, of which the stream speaks first.
        assert_eq!(conversation(&layered as &dyn Agent).await.1.map(|error| error.to_string()), bare);
        let later = RunAgentInput::new("t", "r", [UserMessage::new("u", "Hi").into()]);
        let updates = layered.updates(later.clone()).await.unwrap().try_collect::<Vec<_>>().await;
        assert_eq!(updates.as_ref().err().map(ToString::to_string), bare);
        if let Ok(updates) = updates {
            assert_eq!(updates.last().unwrap().snapshot().messages().len(), 1);
            // What the outermost call says comes first.
            let strict = layered.updates_with(later, Options::new().limits(few)).await.unwrap();
            assert!(strict.try_collect::<Vec<_>>().await.is_err());
        }
    }
}

#[tokio::test]
async fn merged_agents_run_as_subagents_and_the_run_ends_when_all_have() {
    let quick = producer::agent(async |run| {
        run.text("quick").await?;
        Ok(Finish::new().with_result(1))
    });
    let slow = producer::agent(async |run| {
        let mut answer = run.open_text().await?;
        for word in ["slow", "er"] {
            tokio::task::yield_now().await;
            answer.push(word).await?;
        }
        let helper = run.subagent("helper").await?;
        helper.tool_call("f", &1).await?;
        Ok(())
    });
    let events = events(merge([("quick", quick)]).and("slow", slow)).await;
    let owners: Vec<_> = events
        .iter()
        .filter_map(|event| Some((event.event_type().as_str(), event.subagent_run_id()?.as_str())))
        .filter(|(kind, _)| kind.ends_with("STARTED") || kind.ends_with("START") || kind.starts_with("SUBAGENT"))
        .collect();
    assert_eq!(
        owners,
        [
            ("SUBAGENT_STARTED", "quick"),
            ("SUBAGENT_STARTED", "slow"),
            ("TEXT_MESSAGE_START", "quick"),
            ("SUBAGENT_FINISHED", "quick"),
            ("TEXT_MESSAGE_START", "slow"),
            ("SUBAGENT_STARTED", "slow/r-2"),
            ("TOOL_CALL_START", "slow/r-2"),
            ("SUBAGENT_FINISHED", "slow/r-2"),
            ("SUBAGENT_FINISHED", "slow"),
        ]
    );
    assert_eq!(types(&events).last(), Some(&"RUN_FINISHED"));
    assert_eq!(json!(events[4])["delta"], "quick");
}

#[tokio::test]
async fn o5_a_failed_agent_is_closed_and_the_others_go_on() {
    let fails = Replay::new([run_started(), text_start("m"), step_started("s"), run_error()]);
    let breaks = Replay::new([run_started(), text_start("m")]).failing("reset");
    let illegal = Replay::new([run_started(), text_start("m"), text_start("m")]);
    let away = Replay::unreachable("refused");
    let works = producer::agent(async |run| {
        run.text("done").await?;
        Ok(())
    });
    let all = merge([("fails", fails.clone()), ("breaks", breaks), ("illegal", illegal), ("away", away)]);
    let (snapshot, error) = conversation(all.clone().and("works", works)).await;
    assert!(error.is_none(), "{error:?}");
    assert_eq!(snapshot.unwrap().run().unwrap().outcome.as_str(), "success");
    let events = events(all).await;
    let errors: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Event::SubagentError(error) => Some(error.message.to_string()),
            _ => None,
        })
        .collect();
    assert_eq!(errors.len(), 4);
    assert!(errors.iter().any(|message| message.contains("S2")), "{errors:?}");
    let Some(Event::RunError(failed)) = events.last() else { panic!("{events:?}") };
    assert!(failed.message.contains("fails: no") && failed.message.contains("away: refused"), "{}", failed.message);
}

#[tokio::test]
async fn r7_a_merged_run_waits_for_all_answers_and_the_agents_that_asked_get_them() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let asks = |name: &'static str| {
        let asked = Arc::clone(&asked);
        producer::agent(move |run| {
            asked.lock().unwrap().push((name, run.input().resume.clone()));
            async move {
                if run.input().resume.is_some() {
                    return Ok(Finish::new());
                }
                Ok(if name == "c" { Finish::cancelled() } else { Finish::interrupt(Interrupt::new("i", "sure")) })
            }
        })
    };
    let agents = merge([("a", asks("a")), ("b", asks("b")), ("c", asks("c"))]);
    let updates: Vec<_> = agents.updates(input()).await.unwrap().try_collect().await.unwrap();
    let run = updates.last().unwrap().snapshot().run().unwrap().clone();
    assert_eq!(run.outcome.as_str(), "interrupt");
    asked.lock().unwrap().clear();
    let mut next = input();
    next.resume = Some(vec![ResumeEntry::new("b/i", ResumeStatus::Resolved)]);
    let updates: Vec<_> = agents.updates(next).await.unwrap().try_collect().await.unwrap();
    assert_eq!(updates.last().unwrap().snapshot().run().unwrap().outcome.as_str(), "success");
    let asked = std::mem::take(&mut *asked.lock().unwrap());
    assert_eq!(asked, [("b", Some(vec![ResumeEntry::new("i", ResumeStatus::Resolved)]))]);
}

#[tokio::test]
async fn merged_agents_with_the_same_name_get_different_ids() {
    let agent = Replay::new([run_started(), text_start("m"), text_end("m"), run_finished()]);
    let (snapshot, error) = conversation(merge([("a/b", agent.clone()), ("a/b", agent.clone()), ("a", agent)])).await;
    assert!(error.is_none(), "{error:?}");
    let ids: Vec<_> = snapshot.unwrap().messages().iter().map(|message| message.id().to_string()).collect();
    assert_eq!(ids, ["a_b/m", "a_b-2/m", "a/m"]);
}

#[tokio::test]
async fn the_code_of_a_failure_reaches_the_subagent() {
    let fails = producer::agent(async |_| Err::<(), _>(Failure::new("quota").with_code("q").into()));
    let events = events(merge([("a", fails)])).await;
    assert!(
        events.iter().any(|event| matches!(event, Event::SubagentError(error) if error.code.as_deref() == Some("q")))
    );
}

proptest! {
    #![proptest_config(seeded(200))]

    /// Any legal stream gives the same conversation if its deltas are joined.
    #[test]
    fn coalesced_is_the_same_conversation(events in any::<u64>().prop_map(streams::stream), max in 1..20usize) {
        let agent = Replay::new(events);
        let bare = futures::executor::block_on(conversation(agent.clone()));
        let joined = futures::executor::block_on(conversation(agent.layer(Coalesce::new().max_bytes(max))));
        prop_assert_eq!(joined.0.as_ref().map(said), bare.0.as_ref().map(said));
        prop_assert_eq!(joined.1.map(|error| error.rule()), bare.1.map(|error| error.rule()));
    }

    /// The rest of any legal stream, after a filter, is legal.
    #[test]
    fn a_filtered_stream_verifies(events in any::<u64>().prop_map(streams::stream), kept in any::<u16>()) {
        let agent = Replay::new(events);
        let bare = futures::executor::block_on(conversation(agent.clone())).1;
        let by_kind = agent.clone().layer(Filter::kinds(move |kind| kept & (1 << (kind as u16)) != 0));
        let by_tool = agent.layer(Filter::tools(|_| false));
        for (_, error) in [futures::executor::block_on(conversation(by_kind)), futures::executor::block_on(conversation(by_tool))] {
            prop_assert_eq!(error.map(|error| error.rule()), bare.as_ref().map(Error::rule));
        }
    }

    /// Any agents make one legal run.
    #[test]
    fn a_merged_stream_verifies(one in any::<u64>().prop_map(streams::stream), other in any::<u64>().prop_map(streams::stream)) {
        let merged = merge([("one", Replay::new(one)), ("other", Replay::new(other))]);
        let (snapshot, error) = futures::executor::block_on(conversation(merged));
        prop_assert!(error.is_none(), "{:?}", error);
        prop_assert!(snapshot.unwrap().run().unwrap().outcome.as_str() != "running");
    }

    /// Any legal stream stays legal if its ids are replaced by different ones.
    #[test]
    fn a_stream_with_other_ids_verifies(events in any::<u64>().prop_map(streams::stream)) {
        let agent = Replay::new(events);
        let bare = futures::executor::block_on(conversation(agent.clone())).1;
        let (_, error) = futures::executor::block_on(conversation(agent.layer(RewriteIds::new(|_, id| format!("x{id}")))));
        prop_assert_eq!(error.map(|error| error.rule()), bare.map(|error| error.rule()));
    }
}
