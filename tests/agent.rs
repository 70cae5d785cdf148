//! The `Agent` trait: as an object, for closures, for replays.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ag_ui_stream::agent::{AgentError, BoxError, RawEventStream, Replay, agent_fn, raw_event_stream};
use ag_ui_stream::event::{RunFinishedEvent, RunStartedEvent, TextMessageChunkEvent};
use ag_ui_stream::machine::IdChecks;
use ag_ui_stream::message::{Message, UserMessage};
use ag_ui_stream::{
    Agent, AgentExt, Error, Event, EventStreamExt, Item, Limits, Options, Raw, RawItem, Rule, RunAgentInput,
};
#[cfg(feature = "sse")]
use ag_ui_stream::{ByteStreamExt, codec::SseDecoder};
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::json;

const STARTED: &str = r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#;
const FINISHED: &str = r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#;

fn input() -> RunAgentInput {
    RunAgentInput::new("t", "r", [])
}

/// An agent that repeats its input.
fn echo() -> impl Agent {
    agent_fn(|input| async move {
        let mut chunk = TextMessageChunkEvent::new();
        chunk.message_id = Some("answer".into());
        chunk.delta = input.messages.last().and_then(Message::text).map(|text| text.to_cow().into());
        Ok(stream::iter([
            Event::from(RunStartedEvent::new(input.thread_id.clone(), input.run_id.clone())),
            chunk.into(),
            RunFinishedEvent::new(input.thread_id, input.run_id).into(),
        ]))
    })
}

#[tokio::test]
async fn agents_are_objects() {
    let shared: Arc<dyn Agent> = Arc::new(echo());
    let agents: Vec<Box<dyn Agent>> = vec![
        Box::new(Replay::new([STARTED, FINISHED])),
        Box::new(echo()),
        Box::new(|_: RunAgentInput| async { Ok(stream::iter([Ok::<_, io::Error>(STARTED), Ok(FINISHED)])) }),
        Box::new(Arc::clone(&shared)),
    ];
    for agent in &agents {
        let events: Vec<Event> = agent.events(input()).await.unwrap().try_collect().await.unwrap();
        assert_eq!(events[0], RunStartedEvent::new("t", "r").into());
        assert_eq!(events.last(), Some(&RunFinishedEvent::new("t", "r").into()));
    }
}

#[tokio::test]
async fn o4_the_history_of_the_input_counts_however_the_run_is_read() {
    // Two subagents call under one message, which may be one from before.
    let agent = Replay::new([
        STARTED,
        r#"{"type":"SUBAGENT_STARTED","subagentRunId":"a","name":"a"}"#,
        r#"{"type":"SUBAGENT_STARTED","subagentRunId":"b","name":"b"}"#,
        r#"{"type":"TOOL_CALL_START","toolCallId":"c1","toolCallName":"f","parentMessageId":"m","subagentRunId":"a"}"#,
        r#"{"type":"TOOL_CALL_END","toolCallId":"c1"}"#,
        r#"{"type":"TOOL_CALL_START","toolCallId":"c2","toolCallName":"f","parentMessageId":"m","subagentRunId":"b"}"#,
        r#"{"type":"TOOL_CALL_END","toolCallId":"c2"}"#,
    ]);
    let rule = |error: Error<AgentError>| error.rule();
    for (messages, expected) in [(vec![], Rule::O4), (vec![UserMessage::new("m", "Hello").into()], Rule::R8)] {
        let input = RunAgentInput::new("t", "r", messages);
        let updates = agent.updates(input.clone()).await.unwrap().try_collect::<Vec<_>>().await;
        assert_eq!(updates.map_err(rule).unwrap_err(), Some(expected));
        let snapshots = agent.snapshots(input.clone()).await.unwrap().try_collect::<Vec<_>>().await;
        assert_eq!(snapshots.map_err(rule).unwrap_err(), Some(expected));
        let events = agent.events(input.clone()).await.unwrap().try_collect::<Vec<_>>().await;
        assert_eq!(events.map_err(rule).unwrap_err(), Some(expected));
        let items = agent.items(input).await.unwrap().try_collect::<Vec<_>>().await;
        assert_eq!(items.map_err(rule).unwrap_err(), Some(expected));
    }
}

#[tokio::test]
async fn a_function_of_an_agent_takes_an_object() {
    async fn count(agent: impl Agent) -> usize {
        agent.events(input()).await.unwrap().count().await
    }
    let boxed: Box<dyn Agent> = Box::new(Replay::new([STARTED, FINISHED]));
    assert_eq!(count(&*boxed).await, 2);
    assert_eq!(count(boxed).await, 2);
    assert_eq!(count(Arc::new(Replay::new([STARTED, FINISHED]))).await, 2);
    assert_eq!(count(Arc::new(echo()) as Arc<dyn Agent>).await, 4);
}

#[tokio::test]
async fn an_agent_runs_in_another_task() {
    let agent: Arc<dyn Agent> = Arc::new(echo());
    let runs = (0..4).map(|_| {
        let agent = Arc::clone(&agent);
        tokio::spawn(async move { agent.updates(input()).await?.try_collect::<Vec<_>>().await })
    });
    for run in futures::future::join_all(runs).await {
        assert_eq!(run.unwrap().unwrap().len(), 4);
    }
}

#[tokio::test]
async fn the_conversation_begins_with_the_input() {
    let mut input = RunAgentInput::new("t", "r", [Message::User(UserMessage::new("q", "Say this."))]);
    input.state = Some(json!({"count": 1}));
    let last = echo().updates(input.clone()).await.unwrap().try_fold(None, |_, update| async { Ok(Some(update)) });
    let last = last.await.unwrap().unwrap();
    let ids: Vec<_> = last.snapshot().messages().iter().map(|message| message.id().as_str()).collect();
    assert_eq!(ids, ["q", "answer"]);
    assert_eq!(last.snapshot().message("answer").unwrap().text().unwrap(), "Say this.");
    assert_eq!(last.snapshot().state(), &json!({"count": 1}));

    let changes: Vec<_> = echo().snapshots(input).await.unwrap().try_collect().await.unwrap();
    assert!(changes[0].snapshot().message("q").is_some());
    assert_eq!(changes.last().unwrap().snapshot(), last.snapshot());
}

#[tokio::test]
async fn a_run_that_cannot_start_and_one_that_breaks_off_are_errors_of_the_source() {
    let down = Replay::unreachable(io::Error::new(io::ErrorKind::ConnectionRefused, "refused"));
    let error = down.events(input()).await.unwrap_err();
    let Error::Source(error) = error else { panic!("{error:?}") };
    assert_eq!(error.downcast_ref::<io::Error>().unwrap().kind(), io::ErrorKind::ConnectionRefused);

    let breaks = Replay::new([STARTED]).failing("reset");
    for _ in 0..2 {
        let mut updates = breaks.updates(input()).await.unwrap();
        assert!(updates.next().await.unwrap().is_ok());
        let error = updates.next().await.unwrap().unwrap_err();
        assert!(matches!(&error, Error::Source(error) if error.to_string() == "reset"));
        assert!(updates.next().await.is_none());
        assert_eq!(updates.machine().snapshot().run().unwrap().outcome.as_str(), "truncated");
    }
}

#[tokio::test]
async fn errors_of_a_closure_s_stream_keep_their_type() {
    let agent = agent_fn(|_| async {
        Ok(stream::iter([Ok(STARTED), Err(io::Error::new(io::ErrorKind::TimedOut, "too slow"))]))
    });
    let raw: Vec<_> = agent.run(input()).await.unwrap().collect().await;
    assert_eq!(*raw[0].as_ref().unwrap(), RawItem::Event { raw: Raw::from(STARTED), index: 0 });
    let Err(Error::Source(error)) = &raw[1] else { panic!("{raw:?}") };
    assert_eq!(error.downcast_ref::<io::Error>().unwrap().kind(), io::ErrorKind::TimedOut);
    assert!(error.get_ref().is::<io::Error>());
}

#[test]
fn an_agent_error_is_transparent() {
    #[derive(Debug)]
    struct Outer(io::Error);

    impl std::fmt::Display for Outer {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("outer")
        }
    }

    impl std::error::Error for Outer {
        fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
            Some(&self.0)
        }
    }

    let error = AgentError::new(Outer(io::Error::other("inner")));
    let again = AgentError::new(BoxError::from(error.clone()));
    assert!(again.downcast_ref::<Outer>().is_some(), "not wrapped twice");

    let whole: Error<AgentError> = Error::Source(error);
    let chain: Vec<String> = std::iter::successors(Some(&whole as &dyn std::error::Error), |error| error.source())
        .map(|e| e.to_string())
        .collect();
    assert_eq!(chain, ["the source failed: outer", "inner"], "each is said once");
    assert_eq!(AgentError::from("text").to_string(), "text");

    // An agent that is made of the checked events of another one.
    let checked = futures::executor::block_on(stream::iter([STARTED]).events().try_collect::<Vec<_>>()).unwrap_err();
    let said = checked.to_string();
    let error = AgentError::from(checked);
    assert!(error.to_string() == said && error.downcast_ref::<Error>().is_some_and(Error::is_truncated));
}

#[tokio::test]
async fn a_fault_found_by_the_crate_is_reported_once() {
    for (events, said) in [
        (vec![STARTED, "[]"], "E9: event 1: expected a JSON object, found an array"),
        (vec![STARTED, STARTED], "R2: RUN_STARTED (event 1): "),
        (vec![STARTED], "R8: truncated: the stream ended after 1 event without a terminal event for run \"r\""),
    ] {
        let error = stream::iter(events).events().try_collect::<Vec<_>>().await.unwrap_err();
        assert!(error.to_string().starts_with(said), "{error}");
        assert!(std::error::Error::source(&error).is_none(), "{error}");
    }
}

#[tokio::test]
async fn a_boxed_error_of_a_source_is_wrapped_to_be_an_error() {
    let source = stream::iter([Ok(STARTED), Err(BoxError::from("connection reset"))]);
    let events = source.map_err(AgentError::new).events().try_collect::<Vec<_>>().await;
    let error: BoxError = events.unwrap_err().into();
    assert_eq!(error.to_string(), "the source failed: connection reset");
}

#[tokio::test]
async fn to_drop_the_stream_is_to_give_up_the_run() {
    struct Counted(Arc<AtomicUsize>);

    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    let dropped = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&dropped);
    let agent = agent_fn(move |_| {
        let guard = Counted(Arc::clone(&counter));
        async move {
            Ok(stream::iter([STARTED]).chain(stream::pending()).inspect(move |_| {
                let _ = &guard;
            }))
        }
    });
    let mut updates = agent.updates(input()).await.unwrap();
    assert!(updates.next().await.unwrap().is_ok());
    assert_eq!(dropped.load(Ordering::SeqCst), 0);
    drop(updates);
    assert_eq!(dropped.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn agents_can_be_built_on_agents() {
    /// Leaves out what the application need not see.
    struct Quiet<A>(A);

    #[async_trait::async_trait]
    impl<A: Agent> Agent for Quiet<A> {
        async fn run(&self, input: RunAgentInput) -> Result<RawEventStream, AgentError> {
            let events = self.0.run(input).await?;
            let is_loud = |item: &RawItem| matches!(item.raw(), Some(Raw::Text(text)) if text.contains("CUSTOM"));
            Ok(events.try_filter(move |item| std::future::ready(!is_loud(item))).boxed())
        }
    }

    let agent = Quiet(Replay::new([STARTED, r#"{"type":"CUSTOM","name":"n","value":0}"#, FINISHED]));
    assert_eq!(agent.events(input()).await.unwrap().count().await, 2);
    let raw: RawEventStream = agent.run(input()).await.unwrap();
    assert_eq!(raw.items().count().await, 2);
}

#[cfg(feature = "sse")]
#[tokio::test]
async fn t1a_what_a_decoder_finds_passes_an_agent_as_it_is() {
    let agent = agent_fn(|_| async {
        let body = format!("data: [DONE]\n\ndata: {STARTED}\n\ndata: {{");
        let pieces = stream::iter([Ok::<_, io::Error>(body)]);
        Ok(pieces.decode(SseDecoder::new().tolerate_done()))
    });
    let mut items = agent.run(input()).await.unwrap().items();
    let warning = items.next().await.unwrap().unwrap();
    assert_eq!(warning.warning().map(|warning| (warning.rule, warning.event)), Some((Rule::T1a, 0)));
    let Some(Ok(Item::Event(started))) = items.next().await else { panic!("no event") };
    assert_eq!(started.index(), Some(1));
    let error = items.next().await.unwrap().unwrap_err();
    assert!(error.is_truncated(), "{error:?}");
    assert!(items.next().await.is_none());
}

#[tokio::test]
async fn what_has_no_place_is_counted_on_from_what_has() {
    let given = [3, u64::MAX].map(|index| RawItem::Event { raw: STARTED.into(), index });
    let kept: Vec<_> = raw_event_stream(&input(), stream::iter(given.clone())).map(Result::unwrap).collect().await;
    assert_eq!(kept, given);
    let counted = raw_event_stream(&input(), stream::iter([STARTED, FINISHED])).map(Result::unwrap).enumerate();
    counted
        .for_each(|(place, item)| async move {
            assert!(matches!(item, RawItem::Event { index, .. } if index == place as u64), "{item:?}");
        })
        .await;
}

/// What a run is given after the first turn.
fn later_input() -> RunAgentInput {
    let mut input = RunAgentInput::new("t", "r", [UserMessage::new("m1", "Hello").into()]);
    input.state = Some(serde_json::json!({"turn": 2}));
    input
}

/// An agent of one's own.
struct Own;

#[async_trait::async_trait]
impl Agent for Own {
    async fn run(&self, input: RunAgentInput) -> Result<RawEventStream, AgentError> {
        Ok(raw_event_stream(&input, stream::iter([STARTED, FINISHED])))
    }
}

#[tokio::test]
async fn the_stream_of_a_run_knows_the_conversation_before_it() {
    let closure = agent_fn(|_| async { Ok(stream::iter([STARTED, FINISHED])) });
    let agents: [Box<dyn Agent>; 3] = [Box::new(Own), Box::new(closure), Box::new(Replay::new([STARTED, FINISHED]))];
    for agent in agents {
        let mut updates = agent.run(later_input()).await.unwrap().take_run().updates();
        while updates.try_next().await.unwrap().is_some() {}
        assert_eq!(updates.snapshot().messages().len(), 1);
        assert_eq!(*updates.snapshot().state(), serde_json::json!({"turn": 2}));

        // What was said before is not overruled.
        let nothing = Options::new().history([]).state(serde_json::json!({}));
        let mut updates = agent.run(later_input()).await.unwrap().updates_with(nothing.clone());
        while updates.try_next().await.unwrap().is_some() {}
        assert_eq!(updates.snapshot().messages().len(), 0);
        assert_eq!(*updates.snapshot().state(), serde_json::json!({}));
        let updates = agent.updates_with(later_input(), nothing).await.unwrap();
        assert_eq!(updates.snapshot().messages().len(), 0);
    }
}

#[tokio::test]
async fn options_are_taken_by_every_entry_of_an_agent() {
    let long = Options::new().limits(Limits { max_event_bytes: 10, ..Limits::default() });
    let is_too_long = |error| matches!(error, Error::LimitExceeded(error) if error.max == 10);
    let options = || long.clone();
    let events = Own.events_with(input(), options()).await.unwrap().try_collect::<Vec<_>>().await;
    assert!(is_too_long(events.unwrap_err()));
    let items = Own.items_with(input(), options()).await.unwrap().try_collect::<Vec<_>>().await;
    assert!(is_too_long(items.unwrap_err()));
    let snapshots = Own.snapshots_with(input(), options()).await.unwrap().try_collect::<Vec<_>>().await;
    assert!(is_too_long(snapshots.unwrap_err()));
    let updates = Own.updates_with(input(), options()).await.unwrap().try_collect::<Vec<_>>().await;
    assert!(is_too_long(updates.unwrap_err()));
    // R10: the thread of the input is another.
    let other =
        agent_fn(|_| async { Ok(stream::iter([STARTED, r#"{"type":"RUN_FINISHED","threadId":"x","runId":"r"}"#])) });
    let strict = Options::new().id_checks(IdChecks::Reject);
    let error = other.updates_with(input(), strict).await.unwrap().try_collect::<Vec<_>>().await.unwrap_err();
    assert_eq!(error.rule(), Some(Rule::R10));
    assert_eq!(other.updates(input()).await.unwrap().try_collect::<Vec<_>>().await.unwrap().len(), 3);
}

#[tokio::test]
async fn what_middleware_over_typed_items_finds_keeps_its_kind() {
    const ENDS_NOTHING: &str = r#"{"type":"STEP_FINISHED","stepName":"s"}"#;
    const UNKNOWN: &str = r#"{"type":"FROM_THE_FUTURE"}"#;
    let source = || Replay::new([STARTED, UNKNOWN, ENDS_NOTHING]);
    let by_items = agent_fn(move |input| async move { Ok(source().run(input).await?.items()) });
    let by_stages = agent_fn(move |input| async move { Ok(source().run(input).await?.enforce().expand().verify()) });
    let by_events = agent_fn(move |input| async move { Ok(source().run(input).await?.events()) });
    let nested = agent_fn(move |input| async move {
        let inner = agent_fn(move |input| async move { Ok(source().run(input).await?.events()) });
        Ok(inner
            .run(input)
            .await?
            .enforce()
            .map_ok(|item| item.into_event())
            .map_err(AgentError::from)
            .try_filter_map(|event| async { Ok(event) }))
    });
    let agents: [(Box<dyn Agent>, usize); 4] =
        [(Box::new(by_items), 1), (Box::new(by_stages), 1), (Box::new(by_events), 0), (Box::new(nested), 0)];
    for (agent, warnings) in agents {
        let mut updates = agent.updates(later_input()).await.unwrap();
        let mut warned = 0;
        let error = loop {
            match updates.try_next().await {
                Ok(update) => warned += usize::from(update.unwrap().warning().is_some()),
                Err(error) => break error,
            }
        };
        assert!(matches!(&error, Error::Violation(error) if error.rule == Rule::S8 && error.event == 2), "{error:?}");
        assert_eq!(updates.snapshot().run().unwrap().outcome.as_str(), "rejected");
        assert_eq!((updates.snapshot().messages().len(), warned), (1, warnings));
    }
}

/// What comes of a source, with each error as an event.
async fn told(source: impl IntoIterator<Item = Result<&'static str, io::Error>>) -> Vec<Item> {
    stream::iter(source).items().or_run_error().collect().await
}

#[tokio::test]
async fn r5_a_source_that_fails_is_a_run_error_that_verification_lets_pass() {
    const STEP: &str = r#"{"type":"STEP_STARTED","stepName":"s"}"#;
    const BAD: &str = r#"{"type":"STEP_FINISHED","stepName":"other"}"#;
    let reset = || Err(io::Error::other("reset by 10.0.0.7"));
    for (source, events, is_told) in [
        (vec![reset()], 1, true),
        (vec![Ok(STARTED), Ok(STEP), reset()], 3, true),
        // R8: it just ends.
        (vec![Ok(STARTED), Ok(STEP)], 3, true),
        (vec![Ok(STARTED), Ok(BAD)], 2, true),
        (vec![Ok(STARTED), Ok(FINISHED), Ok(STARTED), reset()], 4, true),
        // R8a: it stays as it ended.
        (vec![Ok(STARTED), Ok(FINISHED), reset()], 2, false),
        (vec![Ok(STARTED), Ok(FINISHED)], 2, false),
    ] {
        let shown = format!("{source:?}");
        let items = told(source).await;
        assert_eq!(items.len(), events, "{shown}");
        let told =
            matches!(items.last().unwrap().event(), Some(Event::RunError(error)) if !error.message.contains("10."));
        assert_eq!(told, is_told, "{shown}");
        let again = stream::iter(items).verify().try_collect::<Vec<_>>().await;
        assert_eq!(again.unwrap().len(), events, "{shown}");
    }
}

#[test]
fn a_source_that_panics_is_a_run_error_once() {
    let mut polls = 0;
    let source = stream::poll_fn(move |_| {
        polls += 1;
        match polls {
            1 => std::task::Poll::Ready(Some(Event::from(RunStartedEvent::new("t", "r")))),
            2 => panic!("the source"),
            _ => unreachable!("polled again"),
        }
    });
    let mut items = source.or_run_error();
    let mut next =
        || std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| futures::executor::block_on(items.next())));
    assert!(next().unwrap().is_some());
    assert!(next().is_err());
    assert!(matches!(next().unwrap().unwrap().event(), Some(Event::RunError(_))));
    assert!(next().unwrap().is_none());
}
