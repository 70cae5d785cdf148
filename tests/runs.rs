//! Verification of runs: rules R1 to R8a, R10 and R11, and the resets of R6.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "helpers of tests")]

mod support;

use ag_ui_stream::error::{History, Subject, SubjectKind, Truncated, TruncatedBy, Violation};
use ag_ui_stream::input::PROTOCOL_VERSION;
use ag_ui_stream::machine::{Enforcer, Expander, IdChecks, Machine, Pipeline, Push, Verifier};
use ag_ui_stream::{Error, Event, EventType, Item, Rule, Warning};
use serde_json::{Value, json};
use support::verified::*;
use support::*;

fn truncated(driven: Driven<Item>) -> Truncated {
    let Some(Error::Truncated(truncated)) = driven.error else { panic!("not truncated: {driven:#?}") };
    *truncated
}

fn started(run: &str, thread: &str) -> Value {
    with(run_started(), json!({"runId": run, "threadId": thread}))
}

fn finished(run: &str, thread: &str) -> Value {
    with(run_finished(), json!({"runId": run, "threadId": thread}))
}

// R1

#[test]
fn r1_nothing_but_a_run_or_an_error_comes_first() {
    for (event, about) in cases(inner_events()) {
        let event_type = wire(&event);
        let mut expected =
            Violation::new(Rule::R1, 0, event_type, "RUN_STARTED or RUN_ERROR as the first event", event_type.as_str());
        if let Some(about) = about {
            expected = expected.about(about, History::NeverOpened);
        }
        assert_eq!(violation(&[event]), expected);
    }
}

#[test]
fn r1_run_finished_does_not_come_first() {
    let expected = Violation::new(
        Rule::R1,
        0,
        EventType::RunFinished,
        "RUN_STARTED or RUN_ERROR as the first event",
        "RUN_FINISHED",
    )
    .about(subject(SubjectKind::Run, "r"), History::NeverOpened);
    assert_eq!(violation(&[run_finished()]), expected);
}

#[test]
fn r1_a_run_or_an_error_comes_first() {
    accepts(&[run_started(), run_finished()]);
    accepts(&[run_error()]);
    accepts(&[run_error(), run_started(), run_finished()]);
}

// R2

#[test]
fn r2_a_run_within_a_run_is_rejected() {
    for id in cases(["r", "other"]) {
        let error = violation(&[run_started(), custom(), started(id, "t")]);
        let expected = Violation::new(
            Rule::R2,
            2,
            EventType::RunStarted,
            "the end of the active run",
            format!("the start of run {id:?}"),
        )
        .about(subject(SubjectKind::Run, "r"), open(0, None));
        assert_eq!(error, expected);
    }
}

#[test]
fn r2_a_run_may_follow_a_run() {
    accepts(&[run_started(), run_finished(), started("r2", "t"), finished("r2", "t")]);
    accepts(&[run_started(), run_error(), started("r2", "t"), finished("r2", "t")]);
    accepts(&[run_started(), run_finished(), run_error(), run_started(), run_finished()]);
}

// R3

fn still_open(event: u64, others: Vec<(Subject, History)>) -> Violation {
    let mut expected =
        Violation::new(Rule::R3, event, EventType::RunFinished, "nothing open", format!("{} still open", others.len()))
            .about(subject(SubjectKind::Run, "r"), open(0, None));
    expected.others = others;
    expected
}

#[test]
fn r3_run_finished_with_an_open_item_is_rejected() {
    for kind in cases(KINDS) {
        let error = violation_in_run([(kind.start)("x"), run_finished()]);
        assert_eq!(error, still_open(2, vec![(kind.subject("x"), open(1, None))]));
    }
}

#[test]
fn r3_run_finished_with_an_open_step_is_rejected() {
    let error = violation_in_run([step_started("s"), by("a", step_started("s")), step_finished("s"), run_finished()]);
    assert_eq!(error, still_open(4, vec![(subject(SubjectKind::Step, "s"), open(2, Some("a")))]));
}

#[test]
fn r3_run_finished_with_an_active_subagent_is_rejected() {
    let child = with(subagent_started("b"), json!({"parentSubagentRunId": "a"}));
    let error = violation_in_run([subagent_started("a"), child, subagent_finished("a"), run_finished()]);
    assert_eq!(error, still_open(4, vec![(subject(SubjectKind::Subagent, "b"), open(2, Some("a")))]));
}

#[test]
fn r3_an_outcome_of_any_kind_finds_nothing_open() {
    for outcome in cases([
        json!({"type": "success"}),
        json!({"type": "cancelled"}),
        json!({"type": "interrupt", "interrupts": [{"id": "i", "reason": "ask"}]}),
    ]) {
        let end = with(run_finished(), json!({"outcome": outcome}));
        assert_eq!(violation_in_run([text_start("x"), end.clone()]).rule, Rule::R3);
        accepts(&run([text_start("x"), text_end("x"), end]));
    }
}

#[test]
fn r3_names_all_that_is_open_in_the_order_of_opening() {
    let error = violation_in_run([
        subagent_started("a"),         // 1
        text_start("m"),               // 2
        by("a", call_start("m")),      // 3
        step_started("s"),             // 4
        reasoning_start("m"),          // 5
        text_end("m"),                 // 6
        thought_start("m"),            // 7
        text_start("n"),               // 8
        text_start("m"),               // 9: open again, hence last
        text_end("n"),                 // 10
        by("a", step_started("late")), // 11
        run_finished(),                // 12
    ]);
    let expected = still_open(
        12,
        vec![
            (subject(SubjectKind::Subagent, "a"), open(1, None)),
            (subject(SubjectKind::ToolCall, "m"), open(3, Some("a"))),
            (subject(SubjectKind::Step, "s"), open(4, None)),
            (subject(SubjectKind::ReasoningSpan, "m"), open(5, None)),
            (subject(SubjectKind::ReasoningMessage, "m"), open(7, None)),
            (subject(SubjectKind::TextMessage, "m"), open(9, None)),
            (subject(SubjectKind::Step, "late"), open(11, Some("a"))),
        ],
    );
    assert_eq!(error, expected);
    assert_eq!(
        error.to_string(),
        "R3: RUN_FINISHED (event 12): run \"r\": expected nothing open, found 7 still open (open since event 0); \
         subagent \"a\" open since event 1, owned by the parent agent; \
         tool call \"m\" open since event 3, owned by subagent \"a\"; \
         step \"s\" open since event 4, owned by the parent agent; \
         reasoning span \"m\" open since event 5, owned by the parent agent; \
         reasoning message \"m\" open since event 7, owned by the parent agent; \
         text message \"m\" open since event 9, owned by the parent agent; \
         step \"late\" open since event 11, owned by subagent \"a\""
    );
}

#[test]
fn r3_run_finished_with_all_closed_is_accepted() {
    let mut events = vec![subagent_started("a"), step_started("s")];
    for kind in KINDS {
        events.extend([(kind.start)("x"), (kind.start)("y"), (kind.end)("x"), (kind.end)("y"), (kind.start)("x")]);
    }
    events.extend(KINDS.map(|kind| (kind.end)("x")));
    events.extend([step_finished("s"), subagent_error("a")]);
    accepts_in_run(events);
}

#[test]
fn r3_run_finished_without_a_run_is_rejected() {
    let expected = Violation::new(Rule::R3, 1, EventType::RunFinished, "an active run", "none")
        .about(subject(SubjectKind::Run, "r"), History::NeverOpened);
    assert_eq!(violation(&[run_error(), run_finished()]), expected);
}

// R4

fn after(end: &[Value], expected: &'static str, allowed: fn(EventType) -> bool) {
    let at = end.len() as u64 - 1;
    let more = [(run_finished(), None), (run_error(), None)];
    for (event, about) in inner_events().into_iter().chain(more) {
        let event_type = wire(&event);
        let mut events = end.to_vec();
        events.push(event);
        if allowed(event_type) {
            accepts(&events);
            continue;
        }
        let mut expected = Violation::new(Rule::R4, at + 1, event_type, expected, event_type.as_str())
            .about(subject(SubjectKind::Run, "r"), closed(at, None));
        expected.others = about.map(|about| (about, History::None)).into_iter().collect();
        assert_eq!(violation(&events), expected);
    }
    let mut events = end.to_vec();
    events.extend([run_started(), run_finished()]);
    accepts(&events);
}

#[test]
fn r4_after_run_finished_only_a_run_or_an_error_may_come() {
    let end = [run_started(), custom(), run_finished()];
    after(&end, "RUN_STARTED or RUN_ERROR after RUN_FINISHED", |event| event == EventType::RunError);
}

#[test]
fn r4_after_run_error_only_a_run_may_come() {
    after(&[run_started(), custom(), run_error()], "RUN_STARTED after RUN_ERROR", |_| false);
}

#[test]
fn r4_after_a_late_run_error_only_a_run_may_come() {
    after(&[run_started(), run_finished(), run_error()], "RUN_STARTED after RUN_ERROR", |_| false);
}

#[test]
fn r4_after_a_run_error_without_a_run_only_a_run_may_come() {
    for (event, about) in inner_events().into_iter().chain([(run_error(), None)]) {
        let event_type = wire(&event);
        let mut expected = Violation::new(Rule::R4, 1, event_type, "RUN_STARTED after RUN_ERROR", event_type.as_str());
        if let Some(about) = about {
            expected = expected.about(about, History::NeverOpened);
        }
        assert_eq!(violation(&[run_error(), event]), expected);
    }
}

#[test]
fn r4_names_what_the_late_event_is_about() {
    let error = violation_in_run([text_start("m"), text_end("m"), run_finished(), text_content("m")]);
    assert_eq!(error.subject, Some(subject(SubjectKind::Run, "r")));
    assert_eq!(error.history, closed(3, None));
    assert_eq!(error.others, [(subject(SubjectKind::TextMessage, "m"), History::None)]);
    assert_eq!(
        error.to_string(),
        "R4: TEXT_MESSAGE_CONTENT (event 4): run \"r\": expected RUN_STARTED or RUN_ERROR after RUN_FINISHED, \
         found TEXT_MESSAGE_CONTENT (closed at event 3); text message \"m\""
    );
}

#[test]
fn r4_names_a_chunk_as_it_was_sent() {
    let chunk = json!({"type": "TOOL_CALL_CHUNK", "toolCallId": "c", "toolCallName": "f"});
    let mut expander = Expander::new();
    let items = drive(&mut expander, enforced(&[run_started(), run_finished(), chunk])).out;
    let error = broken(drive(&mut Verifier::new(), items), 3);
    assert_eq!((error.rule, error.event_type, &*error.found), (Rule::R4, EventType::ToolCallChunk, "TOOL_CALL_CHUNK"));
}

// R5

#[test]
fn r5_run_error_abandons_what_is_open() {
    let mut events = run(KINDS.map(|kind| (kind.start)("x")));
    events.extend([step_started("s"), subagent_started("a"), run_error()]);
    accepts(&events);
    // And the next run can finish.
    events.extend([run_started(), run_finished()]);
    accepts(&events);
}

#[test]
fn r5_a_failed_run_has_nothing_open() {
    let mut verifier = Verifier::new();
    for item in enforced(&run([text_start("m"), by("a", step_started("s"))])) {
        verifier.push(item).unwrap();
    }
    assert_eq!(verifier.active_run().unwrap(), "r");
    assert_eq!(
        verifier.open(),
        [
            (subject(SubjectKind::TextMessage, "m"), open(1, None)),
            (subject(SubjectKind::Step, "s"), open(2, Some("a"))),
        ]
    );
    verifier.push(event(run_error())).unwrap();
    assert_eq!(verifier.active_run(), None);
    assert_eq!(verifier.open(), []);
}

// R6

/// What `before` records in one run has no hold on `after` in the next, whichever way it ends;
/// within one run it has.
#[track_caller]
fn forgotten(before: &[Value], after: &[Value], rule: Rule) {
    let one_run: Vec<Value> = run(before.iter().chain(after).cloned());
    assert_eq!(verify(&one_run).error.and_then(|error| error.rule()), Some(rule), "within one run");
    for end in [run_finished(), run_error()] {
        let mut events = run(before.to_vec());
        if verify(&events).error.is_some_and(|error| matches!(error, Error::Truncated(open) if !open.open.is_empty()))
            && end == run_finished()
        {
            continue;
        }
        events.extend([end, run_started()]);
        events.extend_from_slice(after);
        // Whatever the next run opened, an error may end it.
        events.push(run_error());
        accepts(&events);
    }
}

#[test]
fn r6_a_run_forgets_what_was_open() {
    for kind in KINDS {
        forgotten(&[(kind.start)("x")], &[(kind.start)("x")], Rule::S2);
    }
    forgotten(&[step_started("s")], &[step_started("s")], Rule::S8);
    forgotten(&[subagent_started("a")], &[subagent_started("a")], Rule::O5);
}

#[test]
fn r6_a_run_forgets_owners() {
    for kind in KINDS {
        forgotten(&[by("a", (kind.start)("x")), (kind.end)("x")], &[by("b", (kind.start)("x"))], Rule::O2);
        forgotten(&[(kind.start)("x"), (kind.end)("x")], &[by("b", (kind.start)("x"))], Rule::O2);
    }
    forgotten(&[by("a", activity_snapshot("x"))], &[by("b", activity_delta("x"))], Rule::O6);
    forgotten(&[by("a", call_result("m", "c"))], &[by("b", encrypted_value("message", "m"))], Rule::O6);
    let snapshot = messages_snapshot(json!([{"id": "m", "role": "assistant", "subagentRunId": "a"}]));
    forgotten(&[snapshot], &[by("b", text_start("m"))], Rule::O2);
    let parent = [by("a", text_start("m")), text_end("m")];
    forgotten(&parent, &[by("b", with(call_start("c"), json!({"parentMessageId": "m"})))], Rule::O4);
}

#[test]
fn r6_a_run_forgets_finished_subagents() {
    forgotten(&[subagent_started("a"), subagent_finished("a")], &[subagent_started("a")], Rule::O5);
    forgotten(&[subagent_started("a"), subagent_error("a")], &[subagent_started("a")], Rule::O5);
}

#[test]
fn r6_items_of_an_earlier_run_are_unknown() {
    let earlier = [
        run_started(),
        text_start("m"),
        call_start("c"),
        thought_start("m"),
        reasoning_start("m"),
        step_started("s"),
        subagent_started("a"),
        run_error(),
        run_started(),
    ];
    for continuation in [
        text_content("m"),
        text_end("m"),
        call_args("c"),
        call_end("c"),
        thought_content("m"),
        thought_end("m"),
        reasoning_end("m"),
        step_finished("s"),
        subagent_finished("a"),
        subagent_error("a"),
        with(subagent_started("b"), json!({"parentSubagentRunId": "a"})),
    ] {
        let mut events = earlier.to_vec();
        events.push(continuation);
        let error = violation(&events);
        assert_eq!(error.history, History::NeverOpened, "{error}");
        assert!(matches!(error.rule, Rule::S2 | Rule::S8 | Rule::O5), "{error}");
    }
}

// R8, R8a

#[test]
fn r8_no_event_at_all_is_truncated() {
    let expected = Truncated::new(0, None, TruncatedBy::Close);
    assert_eq!(truncated(verify(&[])), expected);
    assert_eq!(expected.open, []);
}

#[test]
fn r8_a_run_without_an_end_is_truncated() {
    let driven = verify(&run([text_start("m"), text_end("m")]));
    assert_eq!(driven.events().len(), 3);
    let error = truncated(driven);
    assert_eq!(error, Truncated::new(3, Some("r".to_owned()), TruncatedBy::Close));
}

#[test]
fn r8_the_second_run_without_an_end_is_truncated() {
    let error = truncated(verify(&[run_started(), run_finished(), started("r2", "t")]));
    assert_eq!(error, Truncated::new(3, Some("r2".to_owned()), TruncatedBy::Close));
}

#[test]
fn r8_a_truncation_names_what_is_open() {
    let error = truncated(verify(&run([subagent_started("a"), by("a", text_start("m")), step_started("s")])));
    assert_eq!(
        error.open,
        [
            (subject(SubjectKind::Subagent, "a"), open(1, None)),
            (subject(SubjectKind::TextMessage, "m"), open(2, Some("a"))),
            (subject(SubjectKind::Step, "s"), open(3, None)),
        ]
    );
}

#[test]
fn r8_dropped_events_came_too() {
    let events = [run_started(), json!({"type": "LATER"}), custom(), json!({"type": "LATER"})];
    let driven = verify(&events);
    assert_eq!(driven.warnings().len(), 2);
    assert_eq!(truncated(driven).events, 4);
    let only_unknown = verify(&[json!({"type": "LATER"})]);
    assert_eq!(truncated(only_unknown), Truncated::new(1, None, TruncatedBy::Close));
}

#[test]
fn r8a_the_input_may_end_after_the_end_of_a_run() {
    for end in [vec![run_finished()], vec![run_error()], vec![run_finished(), run_error()]] {
        accepts(&run(end));
    }
    accepts(&[run_error()]);
}

#[test]
fn r8_dropped_events_came_through_the_whole_pipeline_too() {
    let mut pipeline = Pipeline::new();
    for event in [run_started(), json!({"type": "LATER"}), custom(), json!({"type": "LATER"})] {
        pipeline.push(event).unwrap();
    }
    let Err(Error::Truncated(error)) = pipeline.finish() else { panic!("not truncated") };
    assert_eq!(*error, Truncated::new(4, Some("r".to_owned()), TruncatedBy::Close));
}

// R10

fn r10(event: u64, event_type: EventType, path: &str, message: &str) -> Warning {
    // A warning of the crate's own making, with its fields put in place.
    let mut warning = Event::from_json(r#"{"type":"RUN_ERROR","message":"","x":0}"#).unwrap().1.remove(0);
    warning.rule = Rule::R10;
    warning.event = event;
    warning.event_type = event_type.as_str().to_owned();
    warning.path = path.to_owned();
    warning.message = message.to_owned();
    warning
}

/// Lenient: delivered with these warnings. Strict: the first of them is this violation.
#[track_caller]
fn judged(events: &[Value], warnings: &[Warning], violation: Violation) {
    let lenient = verify(events);
    assert_eq!(lenient.error, None);
    assert_eq!(lenient.warnings(), warnings.iter().collect::<Vec<_>>());
    assert_eq!(lenient.events().len(), events.len());
    // A warning comes before its event.
    let at = lenient.out.iter().position(|item| item.warning().is_some()).unwrap();
    let indexed = lenient.out[at..].iter().find_map(|item| match item {
        Item::Event(indexed) => indexed.index(),
        Item::Warning(_) => None,
    });
    assert_eq!(indexed, Some(violation.event));

    let at = violation.event as usize;
    let strict = verify_strictly(events);
    assert_eq!(strict.warnings(), Vec::<&Warning>::new());
    assert_eq!(strict.events().len(), at);
    assert_eq!(strict.error, Some(violation.into()));
}

#[test]
fn r10_run_finished_repeats_its_run_id() {
    let expected = "the run of its RUN_STARTED, \"r\"";
    judged(
        &[run_started(), custom(), finished("other", "t")],
        &[r10(2, EventType::RunFinished, "/runId", &format!("expected {expected}, found run \"other\""))],
        Violation::new(Rule::R10, 2, EventType::RunFinished, expected, "run \"other\"")
            .about(subject(SubjectKind::Run, "r"), open(0, None)),
    );
}

#[test]
fn r10_run_finished_repeats_its_thread_id() {
    let expected = "the thread of its RUN_STARTED, \"t\"";
    judged(
        &[run_started(), finished("r", "other")],
        &[r10(1, EventType::RunFinished, "/threadId", &format!("expected {expected}, found thread \"other\""))],
        Violation::new(Rule::R10, 1, EventType::RunFinished, expected, "thread \"other\"")
            .about(subject(SubjectKind::Thread, "t"), known(0, None)),
    );
}

#[test]
fn r10_a_later_run_keeps_the_thread() {
    let expected = "the thread of the first run, \"t\"";
    let events = [
        run_error(),
        run_started(),
        run_finished(),
        started("r2", "other"),
        finished("r2", "other"),
        started("r3", "t"),
        finished("r3", "t"),
        started("r4", "other"),
        run_error(),
    ];
    let warning =
        |event| r10(event, EventType::RunStarted, "/threadId", &format!("expected {expected}, found thread \"other\""));
    judged(
        &events,
        &[warning(3), warning(7)],
        Violation::new(Rule::R10, 3, EventType::RunStarted, expected, "thread \"other\"")
            .about(subject(SubjectKind::Thread, "t"), known(1, None)),
    );
}

#[test]
fn r10_the_interrupts_of_a_run_have_ids_of_their_own() {
    let interrupt = |id: &str| json!({"id": id, "reason": "ask"});
    let interrupts = [interrupt("i"), interrupt("j"), interrupt("i"), interrupt(""), interrupt(""), interrupt("i")];
    let events = run([with(run_finished(), json!({"outcome": {"type": "interrupt", "interrupts": interrupts}}))]);
    let found = |at: usize, id: &str, first: usize| format!("interrupt {at} with the id {id:?} of interrupt {first}");
    let expected = "an id of its own for each interrupt";
    let warning = |at: usize, id: &str, first: usize| {
        let message = format!("expected {expected}, found {}", found(at, id, first));
        r10(1, EventType::RunFinished, &format!("/outcome/interrupts/{at}/id"), &message)
    };
    judged(
        &events,
        &[warning(2, "i", 0), warning(4, "", 3), warning(5, "i", 0)],
        Violation::new(Rule::R10, 1, EventType::RunFinished, expected, found(2, "i", 0))
            .about(subject(SubjectKind::Interrupt, "i"), History::None),
    );
}

#[test]
fn r10_an_interrupt_id_may_come_again_in_another_run() {
    let end = with(
        run_finished(),
        json!({"outcome": {"type": "interrupt", "interrupts": [{"id": "i", "reason": "ask"}, {"id": "j", "reason": "ask"}]}}),
    );
    let events = [run_started(), end.clone(), run_started(), end];
    accepts(&events);
    assert_eq!(verify_strictly(&events).error, None);
}

#[test]
fn r10_every_breach_of_one_event_is_reported() {
    let end = with(
        finished("other", "another"),
        json!({"outcome": {"type": "interrupt", "interrupts": [{"id": "i", "reason": "ask"}, {"id": "i", "reason": "ask"}]}}),
    );
    let driven = verify(&run([end]));
    assert_eq!(driven.error, None);
    let paths: Vec<_> = driven.warnings().iter().map(|warning| warning.path.as_str()).collect();
    assert_eq!(paths, ["/threadId", "/runId", "/outcome/interrupts/1/id"]);
}

#[test]
fn r10_id_checks_change_no_other_verdict() {
    // R3 comes before R10, in both.
    let events = run([text_start("m"), finished("other", "another")]);
    for driven in cases([verify(&events), verify_strictly(&events)]) {
        assert_eq!(driven.warnings(), Vec::<&Warning>::new());
        assert_eq!(broken(driven, 3).rule, Rule::R3);
    }
    assert_eq!(Verifier::new().id_checks(), IdChecks::Warn);
    assert_eq!(IdChecks::default(), IdChecks::Warn);
    assert_eq!(Verifier::new().with_id_checks(IdChecks::Reject).id_checks(), IdChecks::Reject);
}

#[test]
fn r10_the_fixtures_of_the_draft_are_fatal_when_strict() {
    let fixtures = [
        ("duplicate-interrupt-id-fatal", Some((Rule::R10, 1))),
        ("run-finished-wrong-run-id-fatal", Some((Rule::R10, 1))),
        ("run-finished-wrong-thread-id-fatal", Some((Rule::R10, 1))),
        ("second-run-on-another-thread-fatal", Some((Rule::R10, 2))),
        ("truncated-stream-fails-the-run", None),
    ];
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/conformance/draft");
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), fixtures.len());
    for (name, expected) in fixtures {
        let text = std::fs::read_to_string(folder.join(format!("{name}.json"))).unwrap();
        let fixture: Value = serde_json::from_str(&text).unwrap();
        let events = fixture["stream"].as_array().unwrap();
        let error = verify_strictly(events).error.unwrap();
        match expected {
            Some((rule, at)) => {
                assert_eq!((error.rule(), error.event_index()), (Some(rule), Some(at)), "{name}");
                let lenient = verify(events);
                assert_eq!(lenient.error, None, "{name}");
                assert_eq!(lenient.warnings()[0].rule, Rule::R10, "{name}");
            }
            None => assert!(error.is_truncated(), "{name}"),
        }
    }
}

// R11

fn declares(version: &str) -> Vec<Value> {
    vec![with(run_started(), json!({"protocolVersion": version})), run_finished()]
}

#[test]
fn r11_an_equal_or_older_version_is_silent() {
    assert_eq!(PROTOCOL_VERSION, "1.0");
    for version in ["1.0", "01.0", "1.000", "0.9", "0.0", "0.99999999999999999999999999999"] {
        accepts(&declares(version));
    }
    accepts(&[run_started(), run_finished()]);
}

#[test]
fn r11_a_newer_version_is_served_with_a_warning() {
    for version in
        cases(["1.1", "1.10", "2.0", "10.0", "1.18446744073709551616", "340282366920938463463374607431768211456.0"])
    {
        let driven = verify(&declares(version));
        assert_eq!(driven.error, None);
        let message = format!("the producer speaks version {version:?}, newer than 1.0");
        let mut expected = r10(0, EventType::RunStarted, "/protocolVersion", &message);
        expected.rule = Rule::R11;
        assert_eq!(driven.out[0], Item::Warning(expected));
        assert_eq!(driven.out.len(), 3);
    }
}

#[test]
fn r11_a_version_that_cannot_be_read_is_served_with_a_warning() {
    for version in
        cases(["draft", "", "1", "1.", ".0", "1.0.0", "v1.0", "1.0-rc", "+1.0", "1.-0", " 1.0", "1.0\n", "𝟏.𝟎"])
    {
        let driven = verify(&declares(version));
        assert_eq!(driven.error, None);
        let message = format!("cannot interpret the protocol version {version:?}; ours is 1.0");
        let mut expected = r10(0, EventType::RunStarted, "/protocolVersion", &message);
        expected.rule = Rule::R11;
        assert_eq!(driven.out[0], Item::Warning(expected));
    }
}

#[test]
fn r11_id_checks_do_not_matter_and_each_run_is_judged_alone() {
    let mut events = declares("9.9");
    events.extend(declares("1.0"));
    events.extend(declares("x"));
    let driven = verify_strictly(&events);
    assert_eq!(driven.error, None);
    let warned: Vec<_> = driven.warnings().iter().map(|warning| (warning.rule, warning.event)).collect();
    assert_eq!(warned, [(Rule::R11, 0), (Rule::R11, 4)]);
}

#[test]
fn r11_a_long_version_makes_no_long_warning() {
    let driven = verify(&declares(&"9".repeat(100_000)));
    assert!(driven.warnings()[0].message.len() < 200);
    assert!(driven.warnings()[0].message.contains("9999"));
}

// The machine itself

#[test]
fn a_machine_that_failed_repeats_itself() {
    let mut verifier = Verifier::new();
    let mut items = enforced(&run([text_content("m"), text_start("m")])).into_iter();
    verifier.push(items.next().unwrap()).unwrap();
    let error = verifier.push(items.next().unwrap()).unwrap_err();
    assert_eq!(error.rule(), Some(Rule::S2));
    assert_eq!(verifier.push(items.next().unwrap()), Err(error.clone()));
    assert_eq!(verifier.push(event(run_error())), Err(error.clone()));
    let warning = r10(0, EventType::Custom, "", "");
    assert_eq!(verifier.push(warning), Err(error.clone()));
    assert_eq!(verifier.finish(), Err(error.clone()));
    // Only the outputs from before the fault are left.
    assert_eq!(verifier.pop().unwrap().into_event(), Some(event(run_started())));
    assert_eq!(verifier.pop(), None);
    assert_eq!(verifier.active_run(), None);
    assert_eq!(verifier.open(), []);
}

#[test]
fn a_truncated_machine_stays_truncated() {
    let mut verifier = Verifier::new();
    verifier.push(event(run_started())).unwrap();
    let error = verifier.finish().unwrap_err();
    assert!(error.is_truncated());
    assert_eq!(verifier.finish(), Err(error.clone()));
    assert_eq!(verifier.push(event(run_finished())), Err(error));
}

#[test]
fn events_without_an_index_are_counted() {
    let mut verifier = Verifier::new();
    verifier.push(event(run_started())).unwrap();
    verifier.push(event(text_start("m"))).unwrap();
    let error = verifier.push(event(text_start("m"))).unwrap_err();
    assert_eq!(error.event_index(), Some(2));
    let Error::Violation(error) = error else { panic!("{error}") };
    assert_eq!(error.history, open(1, None));
}

#[test]
fn an_event_that_middleware_added_has_the_next_index() {
    let mut enforcer = Enforcer::new();
    let mut verifier = Verifier::new();
    let unknown = json!({"type": "LATER"});
    for event in [&run_started(), &unknown, &unknown, &custom()] {
        enforcer.push(event).unwrap();
    }
    while let Some(item) = enforcer.pop() {
        verifier.push(item).unwrap();
    }
    let error = verifier.push(event(text_end("m"))).unwrap_err();
    assert_eq!(error.event_index(), Some(4));
}

#[test]
fn warnings_pass_in_their_place() {
    let events = [
        with(run_started(), json!({"protocolVersion": "7.0", "shade": "blue"})),
        with(text_start("m"), json!({"shade": "blue"})),
        text_end("m"),
        with(finished("other", "t"), json!({"shade": "blue"})),
    ];
    let driven = verify(&events);
    assert_eq!(driven.error, None);
    let seen: Vec<_> = driven
        .out
        .iter()
        .map(|item| match item {
            Item::Event(indexed) => (indexed.event.event_type().as_str(), indexed.index().unwrap()),
            Item::Warning(warning) => (warning.rule.as_str(), warning.event),
        })
        .collect();
    assert_eq!(
        seen,
        [
            ("E2", 0),
            ("R11", 0),
            ("RUN_STARTED", 0),
            ("E2", 1),
            ("TEXT_MESSAGE_START", 1),
            ("TEXT_MESSAGE_END", 2),
            ("E2", 3),
            ("R10", 3),
            ("RUN_FINISHED", 3),
        ]
    );
}
