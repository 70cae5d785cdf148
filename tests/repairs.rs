//! Repairs of the faults of real producers, by rule: X1 to X5.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test")]

use std::path::{Path, PathBuf};

use ag_ui_stream::codec::{Decoder, Format, SseDecoder};
use ag_ui_stream::machine::{Machine, Push, Repair, Repairer, Repairs, Verifier};
use ag_ui_stream::snapshot::{RunOutcome, Snapshot};
use ag_ui_stream::{Error, Event, Item, Options, RawItem, Rule, Warning};
use proptest::prelude::*;
use serde_json::{Value, json};

mod support;

use support::*;

/// The result of a pipeline with these repairs for a stream.
struct Run {
    events: Vec<Event>,
    warnings: Vec<Warning>,
    error: Option<Error>,
    snapshot: Snapshot,
}

fn run(repairs: impl Into<Repairs>, events: &[Value]) -> Run {
    let mut pipeline = Options::new().repairs(repairs).build();
    let driven = drive(&mut pipeline, events);
    let (mut events, mut warnings) = (Vec::new(), Vec::new());
    for update in driven.out {
        events.extend(update.event().cloned());
        warnings.extend(update.warning().cloned());
    }
    Run { events, warnings, error: driven.error, snapshot: pipeline.snapshot().clone() }
}

impl Run {
    /// The events in a few words, to be compared with a list.
    fn told(&self) -> Vec<String> {
        self.events.iter().map(tell).collect()
    }

    /// The rules of the repairs that were made, each with the event that it was about.
    fn repaired(&self) -> Vec<(&'static str, u64)> {
        let repairs = self.warnings.iter().filter(|warning| is_repair(warning.rule));
        repairs.map(|warning| (warning.rule.as_str(), warning.event)).collect()
    }

    fn outcome(&self) -> RunOutcome {
        self.snapshot.runs().last().unwrap().outcome.clone()
    }

    fn rule(&self) -> Option<Rule> {
        self.error.as_ref().and_then(Error::rule)
    }

    /// Asserts that the output is legal without any repair.
    fn assert_legal(&self) {
        let driven = drive(&mut Verifier::new(), self.events.clone());
        let rule = driven.error.as_ref().and_then(Error::rule);
        assert_eq!(rule, self.rule().filter(|rule| *rule == Rule::R8), "{:?}", self.told());
    }
}

fn is_repair(rule: Rule) -> bool {
    Repair::ALL.iter().any(|repair| repair.rule() == rule)
}

fn tell(event: &Event) -> String {
    let json = serde_json::to_value(event).unwrap();
    let member = |key: &str| json[key].as_str().map(|text| format!(" {text}")).unwrap_or_default();
    let id = if json["toolCallId"].is_null() { member("messageId") } else { member("toolCallId") };
    format!("{}{id}{}{}", event.event_type(), member("stepName"), member("subagentRunId"))
}

/// A run around these events.
fn within(events: impl IntoIterator<Item = Value>) -> Vec<Value> {
    [run_started()].into_iter().chain(events).chain([run_finished()]).collect()
}

fn finished_with(members: Value) -> Value {
    with(run_finished(), members)
}

fn used(tokens: u64) -> Value {
    finished_with(json!({"usage": [{"inputTokens": tokens}]}))
}

// X1

#[test]
fn x1_a_result_after_run_finished_belongs_to_the_run() {
    let call = [call_start("c"), call_args("c"), call_end("c")];
    let events: Vec<_> = within(call).into_iter().chain([call_result("r", "c")]).collect();
    assert_eq!(run(Repairs::NONE, &events).rule(), Some(Rule::R4));
    let run = run(Repair::ResultAfterFinish, &events);
    assert_eq!(run.error, None);
    assert_eq!(run.told()[4..], ["TOOL_CALL_RESULT c", "RUN_FINISHED"]);
    assert_eq!(run.repaired(), [("X1", 5)]);
    assert!(run.warnings[0].message.contains("R4"), "{}", run.warnings[0]);
    assert!(matches!(run.outcome(), RunOutcome::Success { pending_tool_call_ids } if pending_tool_call_ids.is_empty()));
    run.assert_legal();
}

#[test]
fn x1_of_several_run_finished_the_last_is_delivered_with_the_usage_of_all() {
    let turn = |id: &str| [text_start(id), text_content(id), text_end(id)];
    let mut events = vec![run_started()];
    events.extend(turn("a").into_iter().chain([used(1)]));
    events.extend(turn("b").into_iter().chain([run_finished()]));
    events.extend(turn("c").into_iter().chain([with(used(3), json!({"result": "last"}))]));
    let run = run(Repair::ResultAfterFinish, &events);
    assert_eq!(run.error, None);
    assert_eq!(run.repaired(), [("X1", 5), ("X1", 4), ("X1", 9), ("X1", 8)]);
    let ends: Vec<_> = run.events.iter().filter(|event| matches!(event, Event::RunFinished(_))).collect();
    let expected = with(run_finished(), json!({"usage": [{"inputTokens": 1}, {"inputTokens": 3}], "result": "last"}));
    assert_eq!(ends, [&event(expected)]);
    assert_eq!(run.snapshot.messages().len(), 3);
    run.assert_legal();
}

#[test]
fn x1_a_run_finished_that_nothing_follows_is_delivered_unchanged_and_unwarned() {
    let end = finished_with(json!({"usage": [], "result": 1, "outcome": {"type": "cancelled"}}));
    for then in [vec![], vec![run_started(), run_finished()], vec![run_error()]] {
        let events: Vec<_> = [run_started(), end.clone()].into_iter().chain(then).collect();
        let (plain, repaired) = (run(Repairs::NONE, &events), run(Repair::ResultAfterFinish, &events));
        assert_eq!(plain.error, None);
        assert_eq!((repaired.error, repaired.warnings), (None, plain.warnings));
        assert_eq!(repaired.events, plain.events);
        assert_eq!(repaired.snapshot, plain.snapshot);
    }
}

#[test]
fn x1_an_item_open_after_run_finished_leaves_the_run_truncated() {
    for end in [run_finished(), finished_with(json!({"outcome": {"type": "success"}}))] {
        let events = [run_started(), end, text_start("m"), text_content("m")];
        for repairs in [Repairs::from(Repair::ResultAfterFinish), Repairs::ALL] {
            let run = run(repairs, &events);
            assert!(run.error.as_ref().is_some_and(Error::is_truncated), "{:?}", run.error);
            assert_eq!(run.outcome(), RunOutcome::Truncated);
            assert_eq!(run.told().last().unwrap(), "TEXT_MESSAGE_CONTENT m");
            run.assert_legal();
        }
    }
}

#[test]
fn x1_a_failure_in_the_next_turn_is_the_outcome() {
    for (open, dropped) in [(false, false), (true, true)] {
        let turn = [text_start("m"), text_content("m")].into_iter().chain((!open).then(|| text_end("m")));
        let events: Vec<_> = [run_started(), used(1)].into_iter().chain(turn).chain([run_error()]).collect();
        for repairs in [Repairs::from(Repair::ResultAfterFinish), Repairs::ALL] {
            let run = run(repairs, &events);
            assert_eq!(run.error, None);
            assert!(matches!(run.outcome(), RunOutcome::Error { .. }));
            assert_eq!(run.told().contains(&"RUN_FINISHED".to_owned()), !dropped);
            assert_eq!(run.repaired().len(), 1 + usize::from(dropped));
            run.assert_legal();
        }
    }
}

#[test]
fn x1_after_run_error_nothing_is_repaired() {
    for events in [[run_started(), run_error(), text_start("m")], [run_error(), run_finished(), run_started()]] {
        assert_eq!(run(Repairs::ALL, &events).error, run(Repairs::NONE, &events).error);
    }
}

#[test]
fn r8a_a_fault_after_a_held_run_finished_does_not_take_back_its_outcome() {
    for fault in [json!([]), json!({"type": "TEXT_MESSAGE_START"}), json!({"type": "TOOL_CALL_CHUNK", "delta": "x"})] {
        let events = [run_started(), run_finished(), fault];
        let (plain, repaired) = (run(Repairs::NONE, &events), run(Repairs::ALL, &events));
        assert_eq!(repaired.rule(), plain.rule());
        assert_eq!(repaired.told(), ["RUN_STARTED", "RUN_FINISHED"]);
        assert!(matches!(repaired.outcome(), RunOutcome::Success { .. }), "{:?}", repaired.outcome());
        // Where the run went on, it had not ended.
        let went_on = [run_started(), run_finished(), custom(), events[2].clone()];
        assert_eq!(run(Repairs::ALL, &went_on).outcome(), RunOutcome::Rejected);
    }
}

#[cfg(feature = "stream")]
#[test]
fn r8a_a_source_that_fails_after_a_held_run_finished_does_not_take_back_its_outcome() {
    use ag_ui_stream::EventStreamExt;
    use futures::{StreamExt, executor::block_on, stream};

    for (more, outcome) in [(None, "success"), (Some(custom()), "truncated")] {
        let events = [run_started(), run_finished()].into_iter().chain(more).map(Ok).chain([Err("reset")]);
        let mut updates = stream::iter(events).updates_with(Options::new().repairs(Repairs::ALL));
        let last = block_on(std::pin::pin!(&mut updates).fold(None, |_, update| async { Some(update) }));
        assert!(matches!(last, Some(Err(Error::Source("reset")))), "{last:?}");
        assert_eq!(updates.snapshot().run().unwrap().outcome.as_str(), outcome);
    }
}

#[test]
fn x1_the_usage_kept_is_bounded() {
    let many = finished_with(json!({"usage": vec![json!({}); 40_000]}));
    let events = [run_started(), many.clone(), custom(), many, custom(), run_finished()];
    let run = run(Repair::ResultAfterFinish, &events);
    let Some(Event::RunFinished(end)) = run.events.last() else { panic!("an end") };
    assert_eq!(end.usage.as_ref().map(Vec::len), Some(40_000));
    assert!(run.warnings.iter().any(|warning| warning.message.contains("its usage is lost")));
}

// X2

#[test]
fn x2_late_arguments_open_the_call_again_until_its_result() {
    let start = with(call_start("c"), json!({"parentMessageId": "m", "subagentRunId": "s"}));
    let events = within([start, call_end("c"), call_args("c"), call_args("c"), call_result("r", "c")]);
    assert_eq!(run(Repairs::NONE, &events).rule(), Some(Rule::S2));
    let run = run(Repair::Reopen, &events);
    assert_eq!(run.error, None);
    assert_eq!(
        run.told()[1..],
        [
            "TOOL_CALL_START c s",
            "TOOL_CALL_END c",
            "TOOL_CALL_START c s",
            "TOOL_CALL_ARGS c",
            "TOOL_CALL_ARGS c",
            "TOOL_CALL_END c s",
            "TOOL_CALL_RESULT c",
            "RUN_FINISHED",
        ]
    );
    assert_eq!(run.events[1], run.events[3], "as it was established");
    assert_eq!(run.repaired(), [("X2", 3)]);
    assert!(run.warnings[0].message.contains("S2"), "{}", run.warnings[0]);
    assert_eq!(run.snapshot.messages().len(), 2);
    run.assert_legal();
}

#[test]
fn x2_it_is_closed_by_its_own_end_or_before_run_finished() {
    let start = with(text_start("m"), json!({"role": "user", "name": "n", "metadata": {"a": 1}}));
    for own_end in [true, false] {
        let late = [start.clone(), text_end("m"), text_content("m")].into_iter();
        let events = within(late.chain(own_end.then(|| text_end("m"))));
        let run = run(Repair::Reopen, &events);
        assert_eq!((run.error.clone(), run.repaired()), (None, vec![("X2", 3)]));
        assert_eq!(
            run.told()[3..],
            ["TEXT_MESSAGE_START m", "TEXT_MESSAGE_CONTENT m", "TEXT_MESSAGE_END m", "RUN_FINISHED"]
        );
        assert_eq!(run.events[3], event(with(text_start("m"), json!({"role": "user", "name": "n"}))));
        run.assert_legal();
    }
    for (start, end, content) in
        [(thought_start("m"), thought_end("m"), thought_content("m")), (call_start("m"), call_end("m"), call_args("m"))]
    {
        let run = run(Repair::Reopen, &within([start, end, content]));
        assert_eq!((run.error.clone(), run.repaired()), (None, vec![("X2", 3)]));
        run.assert_legal();
    }
}

#[test]
fn x2_an_end_alone_is_dropped() {
    for (start, end) in [
        (text_start("m"), text_end("m")),
        (call_start("m"), call_end("m")),
        (thought_start("m"), thought_end("m")),
        (reasoning_start("m"), reasoning_end("m")),
    ] {
        let run = run(Repair::Reopen, &within([start, end.clone(), end]));
        assert_eq!((run.error.clone(), run.repaired(), run.events.len()), (None, vec![("X2", 3)], 4));
        run.assert_legal();
    }
}

#[test]
fn x2_does_not_apply_to_unopened_items_other_runs_or_other_owners() {
    for events in [
        within([text_content("m")]),
        within([text_end("m")]),
        within([call_args("m")]),
        within([text_start("m"), text_end("m"), run_finished(), run_started(), text_content("m")]),
        within([step_started("s"), step_finished("s"), step_finished("s")]),
        within([text_start("m"), text_start("m")]),
    ] {
        let (plain, repaired) = (run(Repairs::NONE, &events), run(Repair::Reopen, &events));
        assert_eq!(repaired.error, plain.error);
        assert_eq!(repaired.repaired(), []);
    }
    let foreign = within([text_start("m"), text_end("m"), by("s", text_content("m"))]);
    assert_eq!(run(Repairs::ALL, &foreign).rule(), Some(Rule::O2));
}

#[test]
fn x2_a_late_start_is_legal() {
    let events =
        within([text_start("m"), text_end("m"), text_content("m"), text_start("m"), text_content("m"), text_end("m")]);
    let run = run(Repair::Reopen, &events);
    assert_eq!((run.error.clone(), run.repaired()), (None, vec![("X2", 3)]));
    assert_eq!(run.snapshot.message("m").unwrap().text().unwrap(), "xx");
    run.assert_legal();
}

#[test]
fn x2_the_owner_that_a_snapshot_sets_stands() {
    let held = json!([{"id": "m", "role": "assistant", "content": "", "subagentRunId": "b",
        "toolCalls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": ""}}]}]);
    let opened = [by("a", text_start("m")), by("a", text_end("m")), by("a", call_start("c")), by("a", call_end("c"))];
    let events = within(opened.into_iter().chain([messages_snapshot(held), text_content("m"), call_args("c")]));
    let run = run(Repair::Reopen, &events);
    assert_eq!((run.error.clone(), run.repaired().len()), (None, 2), "{:?}", run.error);
    run.assert_legal();
}

// X3

#[test]
fn x3_content_opens_a_message_that_nothing_opened() {
    for (content, end, types) in [
        (
            text_content("m"),
            text_end("m"),
            ["TEXT_MESSAGE_START m s", "TEXT_MESSAGE_CONTENT m s", "TEXT_MESSAGE_END m"],
        ),
        (
            thought_content("m"),
            thought_end("m"),
            ["REASONING_MESSAGE_START m s", "REASONING_MESSAGE_CONTENT m s", "REASONING_MESSAGE_END m"],
        ),
    ] {
        for own_end in [true, false] {
            let events = within([by("s", content.clone())].into_iter().chain(own_end.then(|| end.clone())));
            assert_eq!(run(Repairs::NONE, &events).rule(), Some(Rule::S2));
            let run = run(Repair::OpenUnopened, &events);
            assert_eq!((run.error.clone(), run.repaired()), (None, vec![("X3", 1)]));
            assert_eq!(run.told()[1..3], types[..2]);
            assert!(run.told()[3].starts_with(types[2]));
            assert!(run.warnings[0].message.contains("S2"), "{}", run.warnings[0]);
            run.assert_legal();
        }
    }
}

#[test]
fn x3_is_for_messages_and_for_content() {
    for events in [
        within([call_args("m")]),
        within([text_end("m")]),
        within([reasoning_end("m")]),
        within([text_start("m"), text_end("m"), text_content("m")]),
        vec![text_content("m")],
    ] {
        let (plain, repaired) = (run(Repairs::NONE, &events), run(Repair::OpenUnopened, &events));
        assert_eq!((repaired.error, repaired.events), (plain.error, plain.events));
    }
}

// X4

fn decoded(decoder: impl Into<Decoder>, text: &str) -> Vec<String> {
    let mut decoder = decoder.into();
    let mut shown = Vec::new();
    for byte in text.as_bytes().chunks(1) {
        decoder.push(byte).unwrap();
    }
    decoder.finish().unwrap();
    while let Some(item) = decoder.pop() {
        shown.push(match item {
            RawItem::Warning(warning) => format!("{} {} {}", warning.rule, warning.event, warning.message),
            RawItem::Event { index, .. } => format!("event {index}"),
            other => panic!("{other:?}"),
        });
    }
    shown
}

#[test]
fn x4_frames_that_are_not_events_are_skipped() {
    let ignoring = || SseDecoder::new().with_repairs(Repair::IgnoreFrames);
    for (frame, what) in [
        ("data: [DONE]\n\n", "[DONE]"),
        ("data:\n\n", "its data is empty"),
        ("data: \n\n", "its data is empty"),
        ("data: null\n\n", "null"),
        ("event: ping\ndata: {}\n\n", "it is named \"ping\""),
        ("data: 7\nevent:ping\n\n", "it is named \"ping\""),
        ("event: endpoint\r\ndata: /messages?session=9\r\n\r\n", "it is named \"endpoint\""),
        ("event: keep-alive\ndata: \"x\"\n\n", "it is named \"keep-alive\""),
    ] {
        let text = format!("data: {{\"type\":\"RUN_STARTED\"}}\n\n{frame}data: {{\"type\":\"x\"}}\n\n");
        let skipped = format!("X4 1 skipped a frame that is no event: {what} (T1a)");
        assert_eq!(decoded(ignoring(), &text), ["event 0".to_owned(), skipped, "event 2".to_owned()], "{frame}");
        let repairs: Repairs = Repairs::ALL.iter().filter(|repair| *repair != Repair::IgnoreFrames).collect();
        assert_eq!(decoded(SseDecoder::new().with_repairs(repairs), &text), ["event 0", "event 1", "event 2"]);
    }
}

#[test]
fn x4_frames_that_may_be_events_are_not_skipped() {
    for frame in [
        "data: ping\n\n",
        "event: error\ndata: {\"error\":{\"message\":\"quota used up\"}}\n\n",
        "event: server_error\ndata: no\n\n",
        "event: ping\ndata: {\"type\":\"RUN_ERROR\",\"message\":\"no\"}\n\n",
        "event: ping\nevent: message\ndata: x\n\n",
        "event: ping\nevent\ndata: x\n\n",
        "event: ping\n\ndata: x\n\n",
        "event: message\ndata: {\n\n",
        "event: TEXT_MESSAGE_CONTENT\ndata: {\"delta\":\"x\"}\n\n",
        "events: ping\ndata: x\n\n",
        "even: ping\ndata: x\n\n",
        "event : ping\ndata: x\n\n",
    ] {
        assert_eq!(decoded(SseDecoder::new().with_repairs(Repairs::ALL), frame), ["event 0"], "{frame}");
    }
    assert_eq!(decoded(Decoder::new(Format::Sse).with_repairs(Repairs::ALL), "event: ping\ndata: {}\n\n").len(), 1);
}

// X5

#[test]
fn x5_items_open_at_run_finished_are_closed_before_it() {
    let open = [
        by("s", step_started("a")),
        reasoning_start("m"),
        thought_start("m"),
        by("s", text_start("m")),
        call_start("c"),
        call_args("c"),
    ];
    let events = within(open);
    assert_eq!(run(Repairs::NONE, &events).rule(), Some(Rule::R3));
    let run = run(Repair::CloseAtFinish, &events);
    assert_eq!(run.error, None);
    assert_eq!(
        run.told()[7..],
        [
            "TOOL_CALL_END c",
            "TEXT_MESSAGE_END m s",
            "REASONING_MESSAGE_END m",
            "REASONING_END m",
            "STEP_FINISHED a s",
            "RUN_FINISHED"
        ]
    );
    assert_eq!(run.repaired(), [("X5", 7); 5]);
    let warnings: Vec<_> = run.warnings.iter().filter(|warning| warning.rule == Rule::X5).collect();
    assert!(warnings.iter().all(|warning| warning.message.contains("R3")), "{warnings:?}");
    run.assert_legal();
}

#[test]
fn x5_subagents_are_not_closed() {
    let events = within([subagent_started("s"), text_start("m")]);
    let run = run(Repairs::ALL, &events);
    assert_eq!((run.rule(), run.repaired()), (Some(Rule::R3), vec![("X5", 3)]));
    assert_eq!(run.outcome(), RunOutcome::Rejected);
}

#[test]
fn x5_is_for_run_finished_only() {
    for end in [vec![], vec![run_error()]] {
        let events: Vec<_> = [run_started(), text_start("m")].into_iter().chain(end).collect();
        let (plain, repaired) = (run(Repairs::NONE, &events), run(Repairs::ALL, &events));
        assert_eq!((repaired.error, repaired.events), (plain.error, plain.events));
    }
}

// All of them

/// The streams of the corpus and of the producers, as a decoder or a list gives them.
fn streams() -> Vec<(String, Vec<RawItem>)> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let mut paths: Vec<PathBuf> = ["conformance/streams", "conformance/draft", "cases", "producers"]
        .iter()
        .flat_map(|folder| std::fs::read_dir(data.join(folder)).unwrap().map(|entry| entry.unwrap().path()))
        .collect();
    paths.sort();
    let mut streams = Vec::new();
    for path in paths {
        let text = std::fs::read_to_string(&path).unwrap();
        let items = if path.extension().is_some_and(|extension| extension == "sse") {
            let mut decoder = SseDecoder::new();
            decoder.push(text.as_bytes()).unwrap();
            decoder.finish().unwrap();
            std::iter::from_fn(|| decoder.pop()).collect()
        } else {
            // One has halves of surrogate pairs, which `Value` cannot hold.
            let Ok(fixture) = serde_json::from_str::<Value>(&text) else { continue };
            let Some(events) = fixture["stream"].as_array() else { continue };
            events.iter().zip(0..).map(|(event, index)| RawItem::Event { raw: event.clone().into(), index }).collect()
        };
        streams.push((path.display().to_string(), items));
    }
    assert!(streams.len() > 200, "the streams are there");
    streams
}

fn through(repairs: Repairs, items: &[RawItem]) -> Driven<Item> {
    let ids = ag_ui_stream::id::SequentialIds::new("generated-");
    drive(&mut Options::new().ids(ids).repairs(repairs).build_events(), items.to_vec())
}

#[test]
fn a_stream_that_needs_no_repair_is_unchanged() {
    let mut unchanged = 0;
    for (name, items) in streams() {
        let (plain, repaired) = (through(Repairs::NONE, &items), through(Repairs::ALL, &items));
        if plain.error.as_ref().is_none_or(Error::is_truncated) {
            assert_eq!(repaired, plain, "{name}");
            unchanged += 1;
        }
    }
    assert!(unchanged > 150, "{unchanged}");
}

#[test]
fn what_a_repair_lets_through_is_legal_without_it() {
    for (name, items) in streams() {
        let repaired = through(Repairs::ALL, &items);
        let events: Vec<_> = repaired.events().into_iter().cloned().collect();
        let error = drive(&mut Verifier::new(), events).error;
        assert!(error.as_ref().is_none_or(Error::is_truncated), "{name}: {error:?}");
    }
}

#[test]
fn the_producers_that_need_repairs_complete_with_all_of_their_messages() {
    for (name, rule, messages) in [
        ("tanstack-TOOL", Rule::X1, &["assistant", "tool", "assistant"][..]),
        ("tanstack-PAR", Rule::X1, &["assistant", "tool", "tool", "tool", "assistant"]),
        ("tanstack-MULTI", Rule::X1, &["assistant", "tool", "assistant", "tool", "assistant", "tool", "assistant"]),
        ("pydantic-par", Rule::X2, &["reasoning", "assistant", "tool", "tool", "assistant"]),
        (
            "pydantic-interleave",
            Rule::X3,
            &["assistant", "reasoning", "assistant", "tool", "assistant", "reasoning", "assistant"],
        ),
    ] {
        let path = format!("{}/tests/data/producers/{name}.sse", env!("CARGO_MANIFEST_DIR"));
        let mut decoder = SseDecoder::new();
        decoder.push(std::fs::read(path).unwrap()).unwrap();
        let items: Vec<RawItem> = std::iter::from_fn(|| decoder.pop()).collect();
        let repair = *Repair::ALL.iter().find(|repair| repair.rule() == rule).unwrap();
        for repairs in [Repairs::from(repair), Repairs::ALL] {
            let mut pipeline = Options::new().repairs(repairs).build();
            let driven = drive(&mut pipeline, items.clone());
            assert_eq!(driven.error, None, "{name}");
            let mut warnings = driven.out.iter().filter_map(|update| update.warning());
            assert!(warnings.any(|warning| warning.rule == rule), "{name}");
            let roles: Vec<_> = pipeline.snapshot().messages().iter().map(|message| message.role().as_str()).collect();
            assert_eq!(roles, messages, "{name}");
        }
    }
}

/// Events in any order: what a repair makes of them is legal, whatever it is, and a run succeeds only
/// where a RUN_FINISHED came.
fn any_event() -> impl Strategy<Value = Value> {
    let id = prop::sample::select(vec!["a", "b"]);
    let make = prop::sample::select(vec![
        text_start as fn(&str) -> Value,
        text_content,
        text_content,
        text_end,
        call_start,
        call_args,
        call_args,
        call_end,
        thought_start,
        thought_content,
        thought_end,
        reasoning_start,
        reasoning_end,
        step_started,
        step_finished,
        |id| call_result("r", id),
        |id| by("s", text_content(id)),
        |id| json!({"type": "TEXT_MESSAGE_CHUNK", "messageId": id, "delta": "x"}),
        |_| json!({"type": "TEXT_MESSAGE_CHUNK", "delta": "x"}),
        |_| custom(),
        |_| run_finished(),
        |_| run_finished(),
        |_| run_started(),
        |_| run_error(),
    ]);
    (make, id).prop_map(|(make, id)| make(id))
}

proptest! {
    #![proptest_config(seeded(2000))]

    #[test]
    fn any_order_with_any_repairs_gives_legal_events_and_no_unwarned_change(
        events in prop::collection::vec(any_event(), 0..14),
        names in prop::collection::vec(prop::sample::select(Repair::ALL), 0..5),
    ) {
        let events: Vec<Value> = [run_started()].into_iter().chain(events).collect();
        let repairs = Repairs::from_iter(names);
        let (plain, repaired) = (run(Repairs::NONE, &events), run(repairs, &events));
        let legal = drive(&mut Verifier::new(), repaired.events.clone()).error;
        prop_assert!(legal.as_ref().is_none_or(Error::is_truncated), "{:?}", legal);
        let texts: Vec<String> = events.iter().map(Value::to_string).collect();
        let mut pipeline = Options::new().repairs(repairs).build();
        prop_assert_eq!(&drive(&mut pipeline, texts.iter().map(String::as_str)).error, &repaired.error);
        prop_assert_eq!(pipeline.snapshot(), &repaired.snapshot);
        if repaired.repaired().is_empty() {
            prop_assert_eq!(&repaired.events, &plain.events);
            prop_assert_eq!(&repaired.error, &plain.error);
            prop_assert_eq!(&repaired.snapshot, &plain.snapshot);
        }
        prop_assert!(plain.error.is_some() || repaired.repaired().is_empty());
        // No text is invented, and none is lost except after an error.
        let text = |events: &[Event]| -> Vec<Event> {
            let is_text = |event: &&Event| matches!(event, Event::TextMessageContent(_) | Event::ToolCallArgs(_) | Event::ReasoningMessageContent(_));
            events.iter().filter(is_text).cloned().collect()
        };
        let (plain, repaired) = (text(&plain.events), text(&repaired.events));
        prop_assert_eq!(&repaired[..plain.len()], &plain[..]);
    }

    #[test]
    fn a_repairer_of_its_own_gives_what_the_pipeline_gives(events in prop::collection::vec(any_event(), 0..14)) {
        let events: Vec<Value> = [run_started()].into_iter().chain(events).filter(|event| event["type"] != "TEXT_MESSAGE_CHUNK").collect();
        let repaired = drive(&mut Repairer::new(Repairs::ALL), enforced(&events));
        let alone = drive(&mut Verifier::new(), repaired.out);
        let whole = drive(&mut Options::new().repairs(Repairs::ALL).build_events(), &events);
        prop_assert_eq!(whole.events(), alone.events());
    }
}

#[test]
fn repairs_are_named() {
    let names = "result-after-finish,reopen,open-unopened,ignore-frames,close-at-finish";
    assert_eq!(Repairs::ALL.to_string(), names);
    assert_eq!(names.to_uppercase().parse(), Ok(Repairs::ALL));
    let rules: Vec<_> = Repairs::ALL.iter().map(|repair| repair.rule().as_str()).collect();
    assert_eq!(rules, ["X1", "X2", "X3", "X4", "X5"]);
    assert_eq!(" reopen , reopen".parse(), Ok(Repairs::from(Repair::Reopen)));
    assert_eq!("".parse(), Ok(Repairs::NONE));
    let error = "reopen,repoen".parse::<Repairs>().unwrap_err().to_string();
    assert!(error.contains("\"repoen\"") && error.contains(names), "{error}");
    let mut repairer = Repairer::default();
    assert!(repairer.repairs().is_empty());
    repairer.push(event(text_content("m"))).unwrap();
    assert_eq!(repairer.ready(), 1);
}
