//! Verification of who owns what: rules O1 to O8.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "helpers of tests")]

mod support;

use ag_ui_stream::error::{History, Subject, SubjectKind, Violation};
use ag_ui_stream::machine::{Enforcer, Push};
use ag_ui_stream::message::AssistantMessage;
use ag_ui_stream::{EventType, Message, Options, Rule};
use serde_json::{Value, json};
use support::verified::*;
use support::*;

/// An owner as a tag and in the words of errors.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Who {
    tag: Option<&'static str>,
    name: &'static str,
}

const PARENT: Who = Who { tag: None, name: "the parent agent" };
const A: Who = Who { tag: Some("a"), name: "subagent \"a\"" };
const B: Who = Who { tag: Some("b"), name: "subagent \"b\"" };
/// E8: a subagent, not the parent.
const EMPTY: Who = Who { tag: Some(""), name: "subagent \"\"" };

/// Owner and tag that disagree. No tag agrees with every owner.
const MISMATCHES: [(Who, Who); 6] = [(PARENT, A), (A, B), (A, EMPTY), (EMPTY, A), (PARENT, EMPTY), (EMPTY, B)];
const OWNERS: [Who; 3] = [PARENT, A, EMPTY];

impl Who {
    fn sends(self, event: Value) -> Value {
        self.tag.map_or(event.clone(), |tag| by(tag, event))
    }
}

fn mismatch(rule: Rule, event: u64, event_type: EventType, owner: Who, tag: Who) -> Violation {
    Violation::new(rule, event, event_type, owner.name, tag.name)
}

fn call_of(parent: &str, call: &str) -> Value {
    with(call_start(call), json!({"parentMessageId": parent}))
}

/// The recorded owner of a message, found by the error for a foreign tag.
#[track_caller]
fn owner_of_message(events: impl IntoIterator<Item = Value>) -> String {
    owner(events, encrypted_value("message", "m"))
}

#[track_caller]
fn owner_of_call(events: impl IntoIterator<Item = Value>) -> String {
    owner(events, encrypted_value("tool-call", "c"))
}

#[track_caller]
fn owner_of_activity(events: impl IntoIterator<Item = Value>) -> String {
    owner(events, activity_delta("v"))
}

#[track_caller]
fn owner(events: impl IntoIterator<Item = Value>, probe: Value) -> String {
    let events: Vec<_> = events.into_iter().chain([by("nobody", probe)]).collect();
    let error = violation_in_run(events);
    assert_eq!((error.rule, &*error.found), (Rule::O6, "subagent \"nobody\""));
    error.expected.into_owned()
}

// O1

#[test]
fn o1_a_null_tag_is_malformed() {
    for event in cases([text_start("m"), text_content("m"), step_started("s"), custom(), activity_delta("v")]) {
        let error = Enforcer::new().push(with(event, json!({"subagentRunId": null}))).unwrap_err();
        assert_eq!(error.rule(), Some(Rule::E5));
    }
}

#[test]
fn o1_tags_need_no_announcement() {
    for kind in KINDS {
        let mut events = vec![by("a", (kind.start)("x"))];
        events.extend(kind.continuations().map(|event| by("a", event("x"))));
        accepts_in_run(events);
    }
    accepts_in_run([by("a", step_started("s")), by("a", custom()), by("a", step_finished("s"))]);
}

// O2

#[test]
fn o2_a_continuation_with_another_tag_is_rejected() {
    for kind in cases(KINDS) {
        for continuation in kind.continuations() {
            for (owner, tag) in cases(MISMATCHES) {
                let event = tag.sends(continuation("x"));
                let expected =
                    mismatch(Rule::O2, 2, wire(&event), owner, tag).about(kind.subject("x"), open(1, owner.tag));
                assert_eq!(violation_in_run([owner.sends((kind.start)("x")), event]), expected);
            }
        }
    }
}

#[test]
fn o2_a_reopening_with_another_tag_is_rejected() {
    for kind in cases(KINDS) {
        for (owner, tag) in cases(MISMATCHES) {
            let event = tag.sends((kind.start)("x"));
            let expected =
                mismatch(Rule::O2, 3, wire(&event), owner, tag).about(kind.subject("x"), closed(2, owner.tag));
            assert_eq!(violation_in_run([owner.sends((kind.start)("x")), (kind.end)("x"), event]), expected);
        }
    }
}

#[test]
fn o2_the_same_tag_and_no_tag_agree() {
    for kind in KINDS {
        for owner in OWNERS {
            for repeats in [owner, PARENT] {
                let mut events = Vec::new();
                for start in [owner, repeats] {
                    events.push(start.sends((kind.start)("x")));
                    events.extend(kind.continuations().map(|event| repeats.sends(event("x"))));
                }
                accepts_in_run(events);
            }
        }
    }
}

#[test]
fn o2_s2_comes_first() {
    for kind in cases(KINDS) {
        for continuation in kind.continuations() {
            let error = violation_in_run([(kind.start)("x"), (kind.end)("x"), by("a", continuation("x"))]);
            assert_eq!((error.rule, error.history), (Rule::S2, closed(2, None)));
        }
    }
}

#[test]
fn o2_both_owners_are_told_in_words() {
    let error = violation_in_run([by("a", thought_start("x")), by("b", thought_content("x"))]);
    assert_eq!(
        error.to_string(),
        "O2: REASONING_MESSAGE_CONTENT (event 2): reasoning message \"x\": expected subagent \"a\", \
         found subagent \"b\" (open since event 1, owned by subagent \"a\")"
    );
}

#[test]
fn o2_owners_are_told_apart_in_interleaved_items() {
    // The item of the previous event does not decide the owner of this one.
    let mut events = Vec::new();
    for kind in cases(KINDS) {
        for (id, owner) in [("x", A), ("y", B), ("z", PARENT)] {
            events.push(owner.sends((kind.start)(id)));
        }
        for _ in 0..2 {
            for (id, owner) in [("x", A), ("y", B), ("z", PARENT), ("y", B), ("x", A)] {
                events.extend(kind.content.map(|content| owner.sends(content(id))));
            }
        }
        let mut wrong = events.clone();
        wrong.push(by("a", (kind.end)("y")));
        let error = violation_in_run(wrong);
        assert_eq!((error.rule, &*error.expected, &*error.found), (Rule::O2, B.name, A.name));
        for (id, owner) in [("x", A), ("y", B), ("z", PARENT)] {
            events.push(owner.sends((kind.end)(id)));
        }
    }
    accepts_in_run(events);
}

// O3

#[test]
fn o3_an_untagged_reopening_does_not_change_the_owner() {
    for kind in cases(KINDS) {
        let events = [by("a", (kind.start)("x")), (kind.end)("x"), (kind.start)("x"), by("b", (kind.end)("x"))];
        let expected = mismatch(Rule::O2, 4, wire(&events[3]), A, B).about(kind.subject("x"), open(3, A.tag));
        assert_eq!(violation_in_run(events), expected);
        accepts_in_run([by("a", (kind.start)("x")), (kind.end)("x"), (kind.start)("x"), by("a", (kind.end)("x"))]);
    }
}

#[test]
fn o3_owners_are_recorded_per_kind() {
    for first in cases(KINDS) {
        for second in KINDS.into_iter().filter(|second| second.kind != first.kind) {
            let events = [
                by("a", (first.start)("x")),
                by("b", (second.start)("x")),
                (first.end)("x"),
                by("b", (second.end)("x")),
            ];
            // Spans and reasoning messages have one owner between them.
            let reasoning =
                |kind: Kind| matches!(kind.kind, SubjectKind::ReasoningSpan | SubjectKind::ReasoningMessage);
            if reasoning(first) && reasoning(second) {
                let mut expected =
                    mismatch(Rule::O2, 2, wire(&events[1]), A, B).about(second.subject("x"), History::NeverOpened);
                // It is the other one that brought the owner.
                expected.others = vec![(first.subject("x"), open(1, A.tag))];
                assert_eq!(violation_in_run(events.into_iter().take(2)), expected);
            } else {
                accepts_in_run(events);
            }
        }
    }
    accepts_in_run([
        by("a", text_start("x")),
        by("b", activity_snapshot("x")),
        by("b", activity_delta("x")),
        by("a", text_end("x")),
    ]);
}

#[test]
fn o3_owners_outlive_their_items() {
    assert_eq!(owner_of_message([by("a", text_start("m")), text_end("m"), custom(), custom()]), A.name);
    assert_eq!(owner_of_call([by("a", call_start("c")), call_end("c"), call_result("m", "c")]), A.name);
}

#[test]
fn o3_a_result_sets_the_owner_of_its_message() {
    for owner in cases(OWNERS) {
        assert_eq!(owner_of_message([owner.sends(call_result("m", "c"))]), owner.name);
        // The first writer wins: under the id of another message it is one of its own (A10).
        assert_eq!(owner_of_message([by("b", call_result("m", "c")), owner.sends(call_result("m", "d"))]), B.name);
    }
    for (owner, executor) in MISMATCHES.into_iter().chain([(A, PARENT), (EMPTY, PARENT)]) {
        accepts_in_run([
            owner.sends(text_start("m")),
            executor.sends(call_result("m", "c")),
            owner.sends(text_content("m")),
            owner.sends(text_end("m")),
        ]);
    }
    // It says nothing about the call.
    accepts_in_run([by("a", call_result("m", "c")), by("b", call_start("c")), by("b", call_end("c"))]);
}

// O4

fn foreign_call(event: u64, owner: Who, found: Who, history: History, parent: (Subject, History)) -> Violation {
    let mut expected = mismatch(Rule::O4, event, EventType::ToolCallStart, owner, found)
        .about(subject(SubjectKind::ToolCall, "c"), history);
    expected.others = vec![parent];
    expected
}

#[test]
fn o4_a_call_with_another_tag_than_its_message_is_rejected() {
    let message = || subject(SubjectKind::TextMessage, "m");
    for (owner, tag) in cases(MISMATCHES) {
        let start = owner.sends(text_start("m"));
        let call = tag.sends(call_of("m", "c"));
        let expected = foreign_call(2, owner, tag, History::NeverOpened, (message(), open(1, owner.tag)));
        assert_eq!(violation_in_run([start.clone(), call.clone()]), expected);
        let expected = foreign_call(3, owner, tag, History::NeverOpened, (message(), closed(2, owner.tag)));
        assert_eq!(violation_in_run([start, text_end("m"), call.clone()]), expected);
        let mut named = json!({"id": "m", "role": "assistant"});
        if let Some(owner) = owner.tag {
            named = by(owner, named);
        }
        let expected = foreign_call(2, owner, tag, History::NeverOpened, (message(), known(1, owner.tag)));
        assert_eq!(violation_in_run([messages_snapshot(json!([named])), call]), expected);
    }
}

#[test]
fn o4_an_untagged_call_inherits_the_owner_of_its_message() {
    for owner in cases(OWNERS) {
        let start = owner.sends(text_start("m"));
        assert_eq!(owner_of_call([start.clone(), call_of("m", "c")]), owner.name);
        assert_eq!(owner_of_call([start.clone(), text_end("m"), call_of("m", "c"), call_end("c")]), owner.name);
        accepts_in_run([
            start,
            text_end("m"),
            call_of("m", "c"),
            owner.sends(call_args("c")),
            owner.sends(call_end("c")),
        ]);
    }
    // With an unknown message, or none, it belongs to the parent, unless it has a tag.
    assert_eq!(owner_of_call([call_of("m", "c")]), PARENT.name);
    assert_eq!(owner_of_call([by("a", call_of("m", "c"))]), A.name);
    assert_eq!(owner_of_call([by("a", text_start("n")), call_start("c")]), PARENT.name);
    // A reasoning message or an activity of that id does not count.
    assert_eq!(owner_of_call([by("a", thought_start("m")), call_of("m", "c")]), PARENT.name);
    assert_eq!(owner_of_call([by("a", activity_snapshot("m")), call_of("m", "c")]), PARENT.name);
}

#[test]
fn o4_a_message_that_a_call_makes_has_the_owner_of_the_call() {
    let message = (subject(SubjectKind::TextMessage, "m"), known(1, A.tag));
    let first = by("a", call_of("m", "b"));
    let expected = foreign_call(2, A, B, History::NeverOpened, message.clone());
    assert_eq!(violation_in_run([first.clone(), by("b", call_of("m", "c"))]), expected);
    let expected = mismatch(Rule::O2, 2, EventType::TextMessageStart, A, B).about(message.0, message.1);
    assert_eq!(violation_in_run([first.clone(), by("b", text_start("m"))]), expected);
    assert_eq!(owner_of_message([first.clone()]), A.name);
    assert_eq!(owner_of_call([first.clone(), call_of("m", "c")]), A.name);
    accepts_in_run([
        first,
        call_end("b"),
        by("a", text_start("m")),
        text_end("m"),
        by("a", call_of("m", "c")),
        call_end("c"),
    ]);
    // A call without a tag does not say whose the message is.
    for owner in OWNERS {
        accepts_in_run([call_of("m", "b"), call_end("b"), owner.sends(text_start("m")), text_end("m")]);
    }
    // Nor does one that gets a message of its own, as a thought and an activity carry no calls.
    for other in [vec![by("a", thought_start("m")), thought_end("m")], vec![by("a", activity_snapshot("m"))]] {
        let events = [by("a", call_of("m", "c")), call_end("c"), by("b", text_start("m")), text_end("m")];
        accepts_in_run(other.into_iter().chain(events));
    }
    // A span does not count as a message.
    let span = [by("b", reasoning_start("m")), by("a", call_of("m", "c")), by("b", text_start("m"))];
    assert_eq!(violation_in_run(span).rule, Rule::O2);
}

#[test]
fn o4_r6_a_call_does_not_claim_a_message_that_may_be_held_from_before() {
    // Two subagents call under a message of an earlier run, or of the history, whose owner is not
    // known in this run.
    let calls = || {
        [
            by("a", call_of("m", "c")),
            by("a", call_end("c")),
            by("b", call_of("m", "d")),
            by("b", call_end("d")),
            by("b", text_start("m")),
            by("b", text_end("m")),
        ]
    };
    let run = |events: Vec<Value>| [vec![run_started()], events, vec![run_finished()]].concat();
    let stream = |history: bool, runs: &[Vec<Value>]| {
        let builder = Options::new();
        let held = Message::from(AssistantMessage::new("m"));
        let mut pipeline = if history { builder.history([held]) } else { builder }.build();
        runs.concat().iter().try_for_each(|event| pipeline.push(event))
    };
    let spoken = || run(vec![text_start("m"), text_end("m")]);
    assert_eq!(stream(false, &[spoken(), run(calls().to_vec())]), Ok(()));
    assert_eq!(stream(false, &[vec![run_started(), run_error()], run(calls().to_vec())]), Ok(()));
    assert_eq!(stream(true, &[run(calls().to_vec())]), Ok(()));
    // With nothing before, the first call makes the message, and it is that call's.
    for runs in cases([vec![run(calls().to_vec())], vec![vec![run_error()], run(calls().to_vec())]]) {
        assert_eq!(stream(false, &runs).unwrap_err().rule(), Some(Rule::O4));
    }
}

#[test]
fn o4_a_call_with_the_tag_of_its_message_is_accepted() {
    for owner in OWNERS {
        accepts_in_run([
            owner.sends(text_start("m")),
            text_end("m"),
            owner.sends(call_of("m", "c")),
            call_end("c"),
            owner.sends(call_of("m", "c")),
            owner.sends(call_end("c")),
        ]);
    }
}

#[test]
fn o4_an_untagged_reopening_under_the_message_of_another_is_rejected() {
    for (message_owner, call_owner) in cases([(A, B), (A, PARENT), (PARENT, A), (EMPTY, PARENT), (PARENT, EMPTY)]) {
        let events =
            [call_owner.sends(call_start("c")), call_end("c"), message_owner.sends(text_start("m")), call_of("m", "c")];
        let parent = (subject(SubjectKind::TextMessage, "m"), open(3, message_owner.tag));
        let expected = foreign_call(4, message_owner, call_owner, closed(2, call_owner.tag), parent);
        assert_eq!(violation_in_run(events), expected);
    }
}

#[test]
fn o4_comes_before_o2_and_after_s2() {
    // The message's owner is checked first, as the tag is the call's claim to it.
    let closed_call = [by("a", call_start("c")), call_end("c"), by("a", text_start("m"))];
    let error = violation_in_run(closed_call.iter().cloned().chain([by("b", call_of("m", "c"))]));
    assert_eq!((error.rule, error.history), (Rule::O4, closed(2, A.tag)));
    // With the message's tag and another's call, it is the call that disagrees.
    let closed_call = [by("a", call_start("c")), call_end("c"), by("b", text_start("m"))];
    let error = violation_in_run(closed_call.iter().cloned().chain([by("b", call_of("m", "c"))]));
    assert_eq!((error.rule, &*error.expected, &*error.found), (Rule::O2, A.name, B.name));
    // An open call is S2 whatever else is wrong.
    let error = violation_in_run([by("a", call_start("c")), by("a", text_start("m")), by("b", call_of("m", "c"))]);
    assert_eq!((error.rule, error.history), (Rule::S2, open(1, A.tag)));
}

// O5

fn subagent(
    event: u64,
    event_type: EventType,
    expected: &'static str,
    found: &'static str,
    history: History,
) -> Violation {
    Violation::new(Rule::O5, event, event_type, expected, found).about(subject(SubjectKind::Subagent, "a"), history)
}

#[test]
fn o5_a_subagent_starts_once_in_a_run() {
    let expected = "an id that is new in this run";
    let again = subagent(2, EventType::SubagentStarted, expected, "one that is not", open(1, None));
    assert_eq!(violation_in_run([subagent_started("a"), subagent_started("a")]), again);
    for end in cases([subagent_finished("a"), subagent_error("a")]) {
        let again = subagent(3, EventType::SubagentStarted, expected, "one that is not", closed(2, None));
        assert_eq!(violation_in_run([subagent_started("a"), end, subagent_started("a")]), again);
    }
}

#[test]
fn o5_a_suspended_subagent_starts_again_in_the_next_run_only() {
    let suspended = with(subagent_finished("a"), json!({"outcome": {"type": "suspended"}}));
    let error = violation_in_run([subagent_started("a"), suspended.clone(), subagent_started("a")]);
    assert_eq!((error.rule, error.history), (Rule::O5, closed(2, None)));
    accepts(&[
        run_started(),
        subagent_started("a"),
        suspended,
        run_finished(),
        run_started(),
        subagent_started("a"),
        subagent_finished("a"),
        run_finished(),
    ]);
}

#[test]
fn o5_a_subagent_that_is_not_active_does_not_end() {
    let expected = "a subagent that is active";
    for end in cases([subagent_finished("a"), subagent_error("a")]) {
        let never = subagent(2, wire(&end), expected, "an unknown one", History::NeverOpened);
        assert_eq!(violation_in_run([subagent_started("b"), end.clone()]), never);
        // Attribution is not an announcement.
        assert_eq!(violation_in_run([by("a", custom()), end.clone()]), never);
        for first in cases([subagent_finished("a"), subagent_error("a")]) {
            let twice = subagent(3, wire(&end), expected, "one that is not", closed(2, None));
            assert_eq!(violation_in_run([subagent_started("a"), first, end.clone()]), twice);
        }
    }
}

#[test]
fn o5_the_parent_of_a_subagent_was_announced() {
    let child = |parent: &str| with(subagent_started("a"), json!({"parentSubagentRunId": parent}));
    for (before, parent) in
        cases([(subagent_started("b"), "p"), (by("p", custom()), "p"), (custom(), "a"), (custom(), "")])
    {
        let mut expected = subagent(
            2,
            EventType::SubagentStarted,
            "a parentSubagentRunId that was announced in this run",
            "one that was not",
            History::NeverOpened,
        );
        expected.others = vec![(subject(SubjectKind::Subagent, parent), History::NeverOpened)];
        assert_eq!(violation_in_run([before, child(parent)]), expected);
    }
    accepts_in_run([subagent_started("p"), child("p"), subagent_finished("p"), subagent_finished("a")]);
    // It stays announced after it has ended.
    accepts_in_run([subagent_started("p"), subagent_error("p"), child("p"), subagent_finished("a")]);
    accepts_in_run([subagent_started(""), child(""), subagent_finished("a"), subagent_finished("")]);
}

#[test]
fn o5_subagents_are_active_at_once_and_end_in_any_order() {
    accepts_in_run([
        subagent_started("a"),
        subagent_started("b"),
        by("a", text_start("m")),
        by("b", text_start("n")),
        by("a", text_content("m")),
        subagent_finished("b"),
        // The end of one closes nothing, neither its own nor another's.
        by("a", text_content("m")),
        by("b", text_content("n")),
        by("a", text_end("m")),
        subagent_error("a"),
        by("b", text_end("n")),
    ]);
    let events = [subagent_started("a"), by("a", text_start("m")), subagent_finished("a"), run_finished()];
    let error = violation_in_run(events);
    assert_eq!((error.rule, error.others), (Rule::R3, vec![(subject(SubjectKind::TextMessage, "m"), open(2, A.tag))]));
}

// O6

#[test]
fn o6_an_encrypted_value_for_the_item_of_another_is_rejected() {
    let targets = [
        ("message", KINDS[0]), // text
        ("tool-call", KINDS[1]),
        ("message", KINDS[2]), // reasoning
    ];
    for (subtype, kind) in targets {
        for (owner, tag) in cases(MISMATCHES) {
            let value = tag.sends(encrypted_value(subtype, "x"));
            let start = owner.sends((kind.start)("x"));
            let expected = mismatch(Rule::O6, 2, EventType::ReasoningEncryptedValue, owner, tag);
            let expected = expected.about(kind.subject("x"), open(1, owner.tag));
            assert_eq!(violation_in_run([start.clone(), value.clone()]), expected);
            let expected = mismatch(Rule::O6, 3, EventType::ReasoningEncryptedValue, owner, tag);
            let expected = expected.about(kind.subject("x"), closed(2, owner.tag));
            assert_eq!(violation_in_run([start, (kind.end)("x"), value]), expected);
        }
        for owner in OWNERS {
            let events = [owner.sends((kind.start)("x")), (kind.end)("x")];
            accepts_in_run(events.iter().cloned().chain([owner.sends(encrypted_value(subtype, "x"))]));
            accepts_in_run(events.into_iter().chain([encrypted_value(subtype, "x")]));
        }
    }
}

#[test]
fn o6_the_target_is_sought_by_subtype_and_text_comes_before_reasoning() {
    // Owned by a as a tool call, by b as a text message, by c as reasoning.
    let all = [
        by("a", call_start("x")),
        call_end("x"),
        by("b", text_start("x")),
        text_end("x"),
        by("c", thought_start("x")),
        thought_end("x"),
    ];
    let with_value = |events: &[Value], tag: &str, subtype: &str| {
        events.iter().cloned().chain([by(tag, encrypted_value(subtype, "x"))]).collect::<Vec<_>>()
    };
    accepts_in_run(with_value(&all, "a", "tool-call"));
    accepts_in_run(with_value(&all, "b", "message"));
    assert_eq!(violation_in_run(with_value(&all, "b", "tool-call")).subject, Some(subject(SubjectKind::ToolCall, "x")));
    assert_eq!(
        violation_in_run(with_value(&all, "c", "message")).subject,
        Some(subject(SubjectKind::TextMessage, "x"))
    );
    // Without the text message it is the reasoning message that is meant, never the call.
    let no_text = [&all[..2], &all[4..]].concat();
    accepts_in_run(with_value(&no_text, "c", "message"));
    let error = violation_in_run(with_value(&no_text, "a", "message"));
    assert_eq!(error.subject, Some(subject(SubjectKind::ReasoningMessage, "x")));
    accepts_in_run(with_value(&all[..2], "z", "message"));
    accepts_in_run(with_value(&all[2..], "z", "tool-call"));
}

#[test]
fn o6_a_span_alone_has_an_owner_too() {
    let mut expected = mismatch(Rule::O6, 2, EventType::ReasoningEncryptedValue, A, B)
        .about(subject(SubjectKind::ReasoningMessage, "x"), History::NeverOpened);
    expected.others = vec![(subject(SubjectKind::ReasoningSpan, "x"), open(1, A.tag))];
    let events = [by("a", reasoning_start("x")), by("b", encrypted_value("message", "x"))];
    assert_eq!(violation_in_run(events), expected);
}

#[test]
fn o6_an_activity_delta_for_the_activity_of_another_is_rejected() {
    for (owner, tag) in cases(MISMATCHES) {
        let expected = mismatch(Rule::O6, 2, EventType::ActivityDelta, owner, tag)
            .about(subject(SubjectKind::Activity, "v"), known(1, owner.tag));
        assert_eq!(violation_in_run([owner.sends(activity_snapshot("v")), tag.sends(activity_delta("v"))]), expected);
    }
    for owner in OWNERS {
        accepts_in_run([owner.sends(activity_snapshot("v")), owner.sends(activity_delta("v")), activity_delta("v")]);
    }
    // Without a target there is no owner to differ from.
    accepts_in_run([by("a", activity_delta("v")), by("b", activity_delta("v"))]);
    // A delta claims nothing.
    accepts_in_run([by("a", activity_delta("v")), by("b", activity_snapshot("v")), by("b", activity_delta("v"))]);
}

#[test]
fn a5_a_snapshot_takes_over_an_activity_unless_replace_is_false() {
    let kept = |who: Who, replace: Value| with(who.sends(activity_snapshot("v")), json!({"replace": replace}));
    assert_eq!(owner_of_activity([by("a", activity_snapshot("v")), by("b", activity_snapshot("v"))]), B.name);
    assert_eq!(owner_of_activity([by("a", activity_snapshot("v")), activity_snapshot("v")]), PARENT.name);
    assert_eq!(owner_of_activity([by("a", activity_snapshot("v")), kept(B, json!(true))]), B.name);
    assert_eq!(owner_of_activity([by("a", activity_snapshot("v")), kept(B, json!(false))]), A.name);
    assert_eq!(owner_of_activity([activity_snapshot("v"), kept(B, json!(false))]), PARENT.name);
    assert_eq!(owner_of_activity([kept(B, json!(false))]), B.name);
    let named = messages_snapshot(json!([
        {"id": "v", "role": "activity", "activityType": "plan", "content": {}, "subagentRunId": "a"}]));
    assert_eq!(owner_of_activity([named.clone()]), A.name);
    assert_eq!(owner_of_activity([named, kept(B, json!(false))]), A.name);
}

#[test]
fn a5_a_snapshot_that_leaves_another_message_alone_makes_no_activity_to_own() {
    let gently = |owner: &str| with(by(owner, activity_snapshot("m")), json!({"replace": false}));
    for other in [vec![text_start("m"), text_end("m")], vec![thought_start("m"), thought_end("m")]] {
        let events = other.iter().cloned().chain([gently("a"), by("b", activity_delta("m"))]);
        accepts_in_run(events);
        // One that takes its place is an activity, and owned.
        let events =
            other.iter().cloned().chain([by("a", activity_snapshot("m")), gently("b"), by("b", activity_delta("m"))]);
        assert_eq!(violation_in_run(events).rule, Rule::O6);
    }
    assert_eq!(violation_in_run([gently("a"), by("b", activity_delta("m"))]).rule, Rule::O6);
    // A span makes no message.
    let events = [reasoning_start("m"), gently("a"), by("b", activity_delta("m"))];
    assert_eq!(violation_in_run(events).rule, Rule::O6);
}

#[test]
fn o6_the_run_decides_the_owner_and_the_held_messages_the_target() {
    // The text is an activity by then; its owner counts all the same (O3), and the value finds the
    // reasoning message of its id, which is held (A7).
    let events = |tag| {
        let mut events = vec![by("b", text_start("x")), text_end("x"), by("c", thought_start("x")), thought_end("x")];
        events.extend([activity_snapshot("x"), by(tag, encrypted_value("message", "x"))]);
        events
    };
    accepts_in_run(events("b"));
    assert_eq!(violation_in_run(events("c")).rule, Rule::O6);
}

// O7

fn every_role(id: &str) -> Vec<(Value, SubjectKind)> {
    let content = |role: &str| json!({"id": id, "role": role, "content": "x"});
    vec![
        (content("developer"), SubjectKind::TextMessage),
        (content("system"), SubjectKind::TextMessage),
        (content("user"), SubjectKind::TextMessage),
        (content("assistant"), SubjectKind::TextMessage),
        (with(content("tool"), json!({"toolCallId": "c"})), SubjectKind::TextMessage),
        (content("reasoning"), SubjectKind::ReasoningMessage),
        (json!({"id": id, "role": "activity", "activityType": "plan", "content": {}}), SubjectKind::Activity),
    ]
}

fn probe(kind: SubjectKind, id: &str) -> Value {
    match kind {
        SubjectKind::Activity => activity_delta(id),
        SubjectKind::ToolCall => encrypted_value("tool-call", id),
        _ => encrypted_value("message", id),
    }
}

fn input(messages: &Value) -> Value {
    with(run_started(), json!({"input": {"threadId": "t", "runId": "r", "messages": messages}}))
}

#[test]
fn o7_messages_of_every_role_bring_their_owner() {
    for owner in cases(OWNERS) {
        for (message, kind) in every_role("m") {
            let messages = json!([owner.sends(message)]);
            let value = by("b", probe(kind, "m"));
            let expected = |event, at| {
                mismatch(Rule::O6, event, wire(&value), owner, B).about(subject(kind, "m"), known(at, owner.tag))
            };
            assert_eq!(violation_in_run([messages_snapshot(messages.clone()), value.clone()]), expected(2, 1));
            assert_eq!(violation(&[input(&messages), value.clone()]), expected(1, 0));
            accepts(&[input(&messages), owner.sends(probe(kind, "m")), run_finished()]);
        }
    }
}

#[test]
fn o7_tool_calls_have_the_owner_of_their_message() {
    let call = |id: &str| json!({"id": id, "type": "function", "function": {"name": "f", "arguments": ""}});
    for owner in cases(OWNERS) {
        let messages =
            json!([owner.sends(json!({"id": "m", "role": "assistant", "toolCalls": [call("b"), call("c")]}))]);
        assert_eq!(owner_of_call([messages_snapshot(messages.clone())]), owner.name);
        let error = violation(&[input(&messages), by("nobody", encrypted_value("tool-call", "b"))]);
        assert_eq!((&*error.expected, error.history), (owner.name, known(0, owner.tag)));
    }
}

#[test]
fn o7_a_snapshot_sets_owners_outright() {
    let call = json!({"id": "c", "type": "function", "function": {"name": "f", "arguments": ""}});
    let snapshot = |who: Who| {
        messages_snapshot(json!([
            who.sends(json!({"id": "m", "role": "assistant", "toolCalls": [call]})),
            who.sends(json!({"id": "m", "role": "reasoning", "content": ""})),
            who.sends(json!({"id": "v", "role": "activity", "activityType": "plan", "content": {}})),
        ]))
    };
    for owner in cases(OWNERS) {
        let before = || [by("b", text_start("m")), by("b", call_start("c")), by("b", activity_snapshot("v"))];
        assert_eq!(owner_of_message(before().into_iter().chain([snapshot(owner)])), owner.name);
        assert_eq!(owner_of_call(before().into_iter().chain([snapshot(owner)])), owner.name);
        assert_eq!(owner_of_activity(before().into_iter().chain([snapshot(owner)])), owner.name);
        // Twice, and the last one counts.
        assert_eq!(owner_of_message([snapshot(B), snapshot(owner)]), owner.name);
        // Of open items too: the new owner may go on, the old one may not.
        for kind in &KINDS[..3] {
            let id = if kind.kind == SubjectKind::ToolCall { "c" } else { "m" };
            let start = by("b", (kind.start)(id));
            accepts_in_run([start.clone(), snapshot(owner), owner.sends((kind.end)(id))]);
            let end = by("b", (kind.end)(id));
            let expected = mismatch(Rule::O2, 3, wire(&end), owner, B).about(kind.subject(id), open(1, owner.tag));
            assert_eq!(violation_in_run([start, snapshot(owner), end]), expected);
        }
    }
}

#[test]
fn o7_a_snapshot_leaves_the_owners_of_what_it_does_not_contain() {
    let other = messages_snapshot(json!([{"id": "other", "role": "assistant", "subagentRunId": "b"}]));
    assert_eq!(owner_of_message([by("a", text_start("m")), other.clone()]), A.name);
    assert_eq!(owner_of_call([by("a", call_start("c")), other.clone()]), A.name);
    assert_eq!(owner_of_activity([by("a", activity_snapshot("v")), other]), A.name);
    // A message says nothing about a reasoning message of its id, and the other way round.
    let text = messages_snapshot(json!([{"id": "x", "role": "assistant", "subagentRunId": "b"}]));
    accepts_in_run([by("a", thought_start("x")), text, by("a", thought_end("x"))]);
    let thought = messages_snapshot(json!([{"id": "x", "role": "reasoning", "content": "", "subagentRunId": "b"}]));
    accepts_in_run([by("a", text_start("x")), thought, by("a", text_end("x"))]);
}

#[test]
fn o7_the_history_of_a_run_fills_in_only_what_is_unclaimed() {
    // Within one list the first message of an id claims it; in a snapshot the last.
    let messages = json!([
        {"id": "m", "role": "user", "content": "", "subagentRunId": "a"},
        {"id": "m", "role": "assistant", "subagentRunId": "b"},
    ]);
    let value = by("nobody", encrypted_value("message", "m"));
    assert_eq!(violation(&[input(&messages), value]).expected, A.name);
    assert_eq!(owner_of_message([messages_snapshot(messages)]), B.name);
    // What the run before claimed is forgotten (R6) and then filled in.
    let history = json!([{"id": "m", "role": "assistant", "subagentRunId": "b"}]);
    let first = [run_started(), by("a", text_start("m")), text_end("m"), run_finished()];
    let events = first.iter().cloned().chain([input(&history), by("a", text_start("m"))]).collect::<Vec<_>>();
    let expected = mismatch(Rule::O2, 5, EventType::TextMessageStart, B, A)
        .about(subject(SubjectKind::TextMessage, "m"), known(4, B.tag));
    assert_eq!(violation(&events), expected);
}

#[test]
fn o7_a_message_of_the_history_is_continued_by_its_owner() {
    let messages = json!([
        {"id": "m", "role": "assistant", "subagentRunId": "a", "toolCalls": [
            {"id": "c", "type": "function", "function": {"name": "f", "arguments": ""}}]},
        {"id": "m", "role": "reasoning", "content": "", "subagentRunId": "a"},
    ]);
    for kind in cases(KINDS) {
        let id = if kind.kind == SubjectKind::ToolCall { "c" } else { "m" };
        accepts(&[input(&messages), (kind.start)(id), by("a", (kind.end)(id)), run_finished()]);
        let start = by("b", (kind.start)(id));
        let error = violation(&[input(&messages), start]);
        assert_eq!((error.rule, &*error.expected, &*error.found), (Rule::O2, A.name, B.name));
    }
    let error = violation(&[input(&messages), by("b", call_of("m", "new"))]);
    assert_eq!(error.rule, Rule::O4);
    assert_eq!(error.others, [(subject(SubjectKind::TextMessage, "m"), known(0, A.tag))]);
}

#[test]
fn o7_the_event_that_set_the_owner_is_named() {
    let snapshot = |owner: &str| messages_snapshot(json!([{"id": "m", "role": "assistant", "subagentRunId": owner}]));
    let value = || by("c", encrypted_value("message", "m"));
    let error = violation_in_run([snapshot("a"), custom(), snapshot("b"), value()]);
    assert_eq!((&*error.expected, error.history), (B.name, known(3, B.tag)));
    let error = violation(&[input(&json!([{"id": "m", "role": "assistant"}])), snapshot("b"), value()]);
    assert_eq!((&*error.expected, error.history), (B.name, known(1, B.tag)));
}

// O8

#[test]
fn o8_a_tag_on_a_standalone_event_owns_nothing() {
    let mut events = Vec::new();
    for event in [state_snapshot(), state_delta(), custom(), raw()] {
        events.extend([event.clone(), by("a", event.clone()), by("b", event)]);
    }
    accepts_in_run(events);
}
