//! Verification of streamed items: rules S1, S2, S4, S5, S7, S8, S9, and E8 for ids.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "helpers of tests")]

mod support;

use ag_ui_stream::error::{History, SubjectKind, Violation};
use ag_ui_stream::machine::{Expander, Verifier};
use ag_ui_stream::{EventType, Rule};
use serde_json::{Value, json};
use support::verified::*;
use support::*;

fn not_open(kind: Kind, event: u64, event_type: EventType, found: &'static str, history: History) -> Violation {
    Violation::new(Rule::S2, event, event_type, format!("a {} that is open", kind.name), found)
        .about(kind.subject("x"), history)
}

// S1

#[test]
fn s1_kinds_do_not_share_their_ids() {
    // All four under one id at once, closed in every order.
    for first in 0..KINDS.len() {
        let mut events: Vec<Value> = KINDS.iter().map(|kind| (kind.start)("x")).collect();
        events.extend(KINDS.iter().filter_map(|kind| kind.content).map(|content| content("x")));
        events.extend(KINDS.iter().cycle().skip(first).take(KINDS.len()).map(|kind| (kind.end)("x")));
        accepts_in_run(events);
    }
}

#[test]
fn s1_an_open_item_of_another_kind_does_not_match() {
    for opened in cases(KINDS) {
        for kind in KINDS.into_iter().filter(|kind| kind.kind != opened.kind) {
            for continuation in kind.continuations() {
                let event = continuation("x");
                let expected = not_open(kind, 2, wire(&event), "an unknown one", History::NeverOpened);
                assert_eq!(violation_in_run([(opened.start)("x"), event]), expected);
            }
        }
    }
}

#[test]
fn s1_an_end_closes_its_own_id_only() {
    for kind in cases(KINDS) {
        accepts_in_run([(kind.start)("x"), (kind.start)("y"), (kind.end)("x"), (kind.end)("y")]);
        let error = violation_in_run([(kind.start)("x"), (kind.start)("y"), (kind.end)("x"), run_finished()]);
        assert_eq!(error.others, [(kind.subject("y"), open(2, None))]);
    }
}

// S2

#[test]
fn s2_an_unopened_item_is_neither_continued_nor_closed() {
    for kind in cases(KINDS) {
        for continuation in kind.continuations() {
            let event = continuation("x");
            let expected = not_open(kind, 1, wire(&event), "an unknown one", History::NeverOpened);
            assert_eq!(violation_in_run([event.clone()]), expected);
            // An open item of another id does not matter.
            let expected = not_open(kind, 2, wire(&event), "an unknown one", History::NeverOpened);
            assert_eq!(violation_in_run([(kind.start)("y"), event]), expected);
        }
    }
}

#[test]
fn s2_a_closed_item_is_neither_continued_nor_closed() {
    for kind in cases(KINDS) {
        for continuation in kind.continuations() {
            let event = continuation("x");
            let expected = not_open(kind, 4, wire(&event), "one that is not", closed(2, Some("a")));
            assert_eq!(violation_in_run([by("a", (kind.start)("x")), (kind.end)("x"), custom(), event]), expected);
        }
    }
}

#[test]
fn s2_an_open_item_is_not_opened() {
    for kind in cases(KINDS) {
        for tag in cases([None, Some("a")]) {
            let tagged = |event: Value| tag.map_or(event.clone(), |tag| by(tag, event));
            let start = (kind.start)("x");
            let expected =
                Violation::new(Rule::S2, 3, wire(&start), format!("a {} that is not open", kind.name), "one that is")
                    .about(kind.subject("x"), open(1, tag));
            assert_eq!(violation_in_run([tagged(start.clone()), custom(), start.clone()]), expected);
            // It stays S2 where the owner differs as well.
            assert_eq!(violation_in_run([tagged(start.clone()), custom(), by("b", start)]), expected);
        }
    }
}

#[test]
fn s2_a_message_named_by_a_list_is_not_open() {
    let messages = json!([
        {"id": "x", "role": "assistant", "toolCalls": [
            {"id": "x", "type": "function", "function": {"name": "f", "arguments": ""}}], "subagentRunId": "a"},
        {"id": "x", "role": "reasoning", "content": "", "subagentRunId": "a"},
    ]);
    let input = json!({"input": {"threadId": "t", "runId": "r", "messages": messages}});
    for kind in cases(KINDS) {
        for continuation in kind.continuations() {
            let event = continuation("x");
            // Lists have no spans: a reasoning message of the same id does not count.
            let (found, by_snapshot, by_input) = match kind.kind {
                SubjectKind::ReasoningSpan => ("an unknown one", History::NeverOpened, History::NeverOpened),
                _ => ("one that is not", known(1, Some("a")), known(0, Some("a"))),
            };
            let expected = not_open(kind, 2, wire(&event), found, by_snapshot);
            assert_eq!(violation_in_run([messages_snapshot(messages.clone()), event.clone()]), expected);
            let expected = not_open(kind, 1, wire(&event), found, by_input);
            assert_eq!(violation(&[with(run_started(), input.clone()), event]), expected);
        }
    }
}

#[test]
fn s2_the_error_tells_the_history_in_words() {
    let error = violation_in_run([by("a", call_start("c")), call_end("c"), call_args("c")]);
    assert_eq!(
        error.to_string(),
        "S2: TOOL_CALL_ARGS (event 3): tool call \"c\": expected a tool call that is open, \
         found one that is not (closed at event 2, owned by subagent \"a\")"
    );
}

#[test]
fn s2_a_snapshot_does_not_close_open_items() {
    accepts_in_run([text_start("m"), messages_snapshot(json!([])), text_content("m"), text_end("m")]);
    let held = messages_snapshot(json!([{"id": "m", "role": "assistant"}]));
    accepts_in_run([text_start("m"), held.clone(), text_content("m"), text_end("m")]);
    // And one that is closed stays closed, since then.
    let error = violation_in_run([text_start("m"), text_end("m"), held, text_end("m")]);
    assert_eq!((error.rule, error.history), (Rule::S2, closed(2, None)));
}

// S3

#[test]
fn s3_empty_deltas_are_legal() {
    for kind in KINDS {
        if let Some(content) = kind.content {
            let empty = with(content("x"), json!({"delta": ""}));
            accepts_in_run([(kind.start)("x"), empty.clone(), empty, (kind.end)("x")]);
        }
    }
}

// S4

#[test]
fn s4_items_interleave_freely() {
    accepts_in_run([
        text_start("m"),
        call_start("c"),
        text_content("m"),
        call_args("c"),
        text_start("n"),
        thought_start("m"),
        call_start("d"),
        text_content("n"),
        text_end("m"),
        call_args("d"),
        call_end("c"),
        thought_content("m"),
        call_end("d"),
        thought_end("m"),
        text_content("n"),
        text_end("n"),
    ]);
}

#[test]
fn s4_standalone_events_may_come_anywhere_in_a_run() {
    let standalone = [
        state_snapshot(),
        state_delta(),
        messages_snapshot(json!([])),
        activity_snapshot("a"),
        activity_delta("a"),
        activity_delta("unknown"),
        custom(),
        raw(),
        encrypted_value("message", "unknown"),
        encrypted_value("tool-call", "unknown"),
        call_result("result", "unknown"),
    ];
    accepts_in_run(standalone.clone());
    for kind in KINDS {
        let mut events = vec![(kind.start)("x")];
        events.extend(standalone.clone());
        events.extend(kind.content.map(|content| content("x")));
        events.extend(standalone.clone());
        events.push((kind.end)("x"));
        accepts_in_run(events);
    }
}

// S5

#[test]
fn s5_a_closed_item_may_be_opened_again() {
    for kind in cases(KINDS) {
        let mut events = Vec::new();
        for _ in 0..3 {
            events.push((kind.start)("x"));
            events.extend(kind.content.map(|content| content("x")));
            events.push((kind.end)("x"));
        }
        accepts_in_run(events.clone());
        // Open since the last START.
        events.extend([(kind.start)("x"), run_finished()]);
        let error = violation_in_run(events.clone());
        assert_eq!(error.others, [(kind.subject("x"), open(error.event - 1, None))]);
    }
}

#[test]
fn s5_role_and_name_need_not_be_repeated() {
    accepts_in_run([
        with(text_start("m"), json!({"role": "user", "name": "Ada"})),
        text_end("m"),
        with(text_start("m"), json!({"role": "developer", "name": "Bob"})),
        text_end("m"),
        call_start("c"),
        call_end("c"),
        with(call_start("c"), json!({"toolCallName": "another"})),
        call_end("c"),
    ]);
}

// S7

#[test]
fn s7_spans_and_reasoning_messages_are_apart() {
    // Within the span, across its end, and without one.
    accepts_in_run([
        reasoning_start("x"),
        thought_start("x"),
        reasoning_end("x"),
        thought_content("x"),
        thought_end("x"),
        thought_start("x"),
        reasoning_start("x"),
        thought_end("x"),
        reasoning_end("x"),
    ]);
    // Closing one leaves the other as it was.
    let error = violation_in_run([reasoning_start("x"), thought_start("x"), reasoning_end("x"), reasoning_end("x")]);
    assert_eq!((error.rule, error.history), (Rule::S2, closed(3, None)));
    assert_eq!(error.subject, Some(subject(SubjectKind::ReasoningSpan, "x")));
    let error = violation_in_run([reasoning_start("x"), thought_start("x"), thought_end("x"), thought_content("x")]);
    assert_eq!((error.rule, error.history), (Rule::S2, closed(3, None)));
    assert_eq!(error.subject, Some(subject(SubjectKind::ReasoningMessage, "x")));
}

// S8

fn step(event: u64, event_type: EventType, expected: &str, found: &str, history: History) -> Violation {
    Violation::new(Rule::S8, event, event_type, expected.to_owned(), found.to_owned())
        .about(subject(SubjectKind::Step, "s"), history)
}

#[test]
fn s8_a_step_is_not_started_twice_by_one_owner() {
    let expected =
        step(2, EventType::StepStarted, "a step that is not open for the parent agent", "one that is", open(1, None));
    assert_eq!(violation_in_run([step_started("s"), step_started("s")]), expected);
    let expected = step(
        3,
        EventType::StepStarted,
        "a step that is not open for subagent \"a\"",
        "one that is",
        open(1, Some("a")),
    );
    let events = [by("a", step_started("s")), step_started("s"), by("a", step_started("s"))];
    assert_eq!(violation_in_run(events), expected);
}

#[test]
fn s8_a_step_that_was_never_started_is_not_finished() {
    let expected = step(
        2,
        EventType::StepFinished,
        "a step that is open for the parent agent",
        "an unknown one",
        History::NeverOpened,
    );
    assert_eq!(violation_in_run([step_started("other"), step_finished("s")]), expected);
}

#[test]
fn s8_a_finished_step_is_not_finished_again() {
    let expected = step(
        3,
        EventType::StepFinished,
        "a step that is open for subagent \"a\"",
        "one that is not",
        closed(2, Some("a")),
    );
    let events = [by("a", step_started("s")), by("a", step_finished("s")), by("a", step_finished("s"))];
    assert_eq!(violation_in_run(events), expected);
}

#[test]
fn s8_a_step_is_finished_by_whoever_started_it() {
    let expected = step(2, EventType::StepFinished, "subagent \"a\"", "the parent agent", open(1, Some("a")));
    assert_eq!(violation_in_run([by("a", step_started("s")), step_finished("s")]), expected);
    let expected = step(2, EventType::StepFinished, "the parent agent", "subagent \"a\"", open(1, None));
    assert_eq!(violation_in_run([step_started("s"), by("a", step_finished("s"))]), expected);
    let expected = step(2, EventType::StepFinished, "subagent \"a\"", "subagent \"b\"", open(1, Some("a")));
    assert_eq!(violation_in_run([by("a", step_started("s")), by("b", step_finished("s"))]), expected);
    // The empty id is a subagent, too (E8).
    let expected = step(2, EventType::StepFinished, "the parent agent", "subagent \"\"", open(1, None));
    assert_eq!(violation_in_run([step_started("s"), by("", step_finished("s"))]), expected);
}

#[test]
fn s8_all_who_have_the_step_open_are_named() {
    let mut expected = step(7, EventType::StepFinished, "subagent \"b\"", "subagent \"d\"", open(2, Some("b")));
    expected.others = vec![
        (subject(SubjectKind::Step, "s"), open(4, Some("c"))),
        // Started again, hence last.
        (subject(SubjectKind::Step, "s"), open(6, Some("a"))),
    ];
    let events = [
        by("a", step_started("s")),
        by("b", step_started("s")),
        by("a", step_finished("s")),
        by("c", step_started("s")),
        by("c", step_started("other")),
        by("a", step_started("s")),
        by("d", step_finished("s")),
    ];
    assert_eq!(violation_in_run(events), expected);
}

#[test]
fn s8_each_owner_has_steps_of_its_own_and_may_repeat_them() {
    accepts_in_run([
        step_started("s"),
        by("a", step_started("s")),
        by("", step_started("s")),
        step_started("t"),
        step_finished("s"),
        by("", step_finished("s")),
        step_started("s"),
        by("a", step_finished("s")),
        step_finished("t"),
        step_finished("s"),
        by("a", step_started("s")),
        by("a", step_finished("s")),
    ]);
}

// S9

#[test]
fn s9_a_result_needs_no_open_call_and_opens_none() {
    accepts_in_run([call_result("m", "c")]);
    accepts_in_run([call_start("c"), call_result("m", "c"), call_end("c"), call_result("m", "c")]);
    let error = violation_in_run([call_start("c"), call_end("c"), call_result("m", "c"), call_args("c")]);
    assert_eq!((error.rule, error.history), (Rule::S2, closed(2, None)));
    let error = violation_in_run([call_result("m", "c"), call_args("c")]);
    assert_eq!((error.rule, error.history), (Rule::S2, History::NeverOpened));
    // Nor does it open the message that it is.
    let error = violation_in_run([by("a", call_result("m", "c")), text_content("m")]);
    assert_eq!((error.rule, error.history), (Rule::S2, known(1, Some("a"))));
}

// C1

#[test]
fn c1_a_chunk_that_was_not_expanded_is_rejected() {
    let chunks = [
        (json!({"type": "TEXT_MESSAGE_CHUNK", "messageId": "x"}), Some(SubjectKind::TextMessage)),
        (json!({"type": "TOOL_CALL_CHUNK", "toolCallId": "x", "toolCallName": "f"}), Some(SubjectKind::ToolCall)),
        (json!({"type": "REASONING_MESSAGE_CHUNK", "messageId": "x"}), Some(SubjectKind::ReasoningMessage)),
        (json!({"type": "TEXT_MESSAGE_CHUNK"}), None),
        (json!({"type": "TOOL_CALL_CHUNK"}), None),
        (json!({"type": "REASONING_MESSAGE_CHUNK"}), None),
    ];
    for (chunk, kind) in chunks {
        let mut expected =
            Violation::new(Rule::C1, 1, wire(&chunk), "what expansion makes of a chunk", "the chunk itself");
        if let Some(kind) = kind {
            expected = expected.about(subject(kind, "x"), History::NeverOpened);
        }
        assert_eq!(violation_in_run([chunk]), expected);
    }
}

#[test]
fn c1_an_error_about_a_chunk_names_the_chunk() {
    let chunks = [
        (KINDS[0], json!({"type": "TEXT_MESSAGE_CHUNK", "messageId": "x", "delta": "x"})),
        (KINDS[1], json!({"type": "TOOL_CALL_CHUNK", "toolCallId": "x", "toolCallName": "f", "delta": "x"})),
        (KINDS[2], json!({"type": "REASONING_MESSAGE_CHUNK", "messageId": "x", "delta": "x"})),
    ];
    for (kind, chunk) in chunks {
        let events = run([(kind.start)("x"), chunk.clone()]);
        let error = broken(drive(&mut Verifier::new(), drive(&mut Expander::new(), enforced(&events)).out), 3);
        let expected =
            Violation::new(Rule::S2, 2, wire(&chunk), format!("a {} that is not open", kind.name), "one that is")
                .about(kind.subject("x"), open(1, None));
        assert_eq!(error, expected);
    }
}

// E7, E8

#[test]
fn e8_the_empty_id_is_an_id() {
    for kind in cases(KINDS) {
        accepts_in_run([(kind.start)(""), (kind.end)("")]);
        assert_eq!(violation_in_run([(kind.start)(""), (kind.start)("")]).subject, Some(kind.subject("")));
        assert_eq!(violation_in_run([(kind.start)("x"), (kind.end)("")]).history, History::NeverOpened);
    }
    accepts_in_run([step_started(""), step_finished("")]);
    accepts_in_run([subagent_started(""), subagent_finished("")]);
    assert_eq!(violation_in_run([subagent_started(""), subagent_started("")]).rule, Rule::O5);
    accepts(&[
        with(run_started(), json!({"runId": "", "threadId": ""})),
        with(run_finished(), json!({"runId": "", "threadId": ""})),
    ]);
}

#[test]
fn e7_no_id_is_special() {
    for id in cases(["constructor", "__proto__", "toString", "hasOwnProperty", "\u{0}", "🦀", " x", "x "]) {
        for kind in cases(KINDS) {
            for continuation in kind.continuations() {
                assert_eq!(violation_in_run([(kind.start)("x"), continuation(id)]).history, History::NeverOpened);
            }
            accepts_in_run([by(id, (kind.start)(id)), by(id, (kind.end)(id)), (kind.start)(id), (kind.end)(id)]);
        }
        accepts_in_run([step_started(id), by(id, step_started(id)), step_finished(id), by(id, step_finished(id))]);
        assert_eq!(violation_in_run([step_finished(id)]).history, History::NeverOpened);
        accepts_in_run([subagent_started(id), subagent_finished(id)]);
        assert_eq!(violation_in_run([subagent_finished(id)]).history, History::NeverOpened);
    }
}

#[test]
fn a_long_run_is_judged_in_full() {
    // Many items, few of them open, each closed and opened again in another order.
    let ids: Vec<String> = (0..2_000).map(|at| format!("id-{at}")).collect();
    let mut events = Vec::new();
    for id in &ids {
        events.extend(KINDS.map(|kind| (kind.start)(id)));
    }
    for id in ids.iter().rev() {
        events.extend(KINDS.iter().flat_map(|kind| [(kind.end)(id), (kind.start)(id), (kind.end)(id)]));
    }
    accepts_in_run(events);
}
