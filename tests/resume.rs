//! The answers to the interrupts of a run (rule T4).

#![allow(missing_docs, reason = "a test")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::time::{Duration, SystemTime};

use ag_ui_stream::Rule;
use ag_ui_stream::event::Interrupt;
use ag_ui_stream::id::InterruptId;
use ag_ui_stream::input::{Resume, ResumeEntry, ResumeError, ResumeStatus};
use ag_ui_stream::machine::{Machine, Pipeline, Push};
use serde_json::{Value, json};

/// 2026-08-21T12:00:00Z.
const NOON: Duration = Duration::from_secs(1_787_313_600);

fn noon() -> SystemTime {
    SystemTime::UNIX_EPOCH + NOON
}

fn until(expires_at: &str) -> Interrupt {
    let mut interrupt = Interrupt::new("i", "approval");
    interrupt.expires_at = Some(expires_at.into());
    interrupt
}

fn two() -> Resume {
    Resume::new([Interrupt::new("a", "approval"), Interrupt::new("b", "approval")])
}

fn id(id: &str) -> InterruptId {
    id.into()
}

#[test]
fn t4_every_interrupt_is_answered_or_abandoned() {
    let mut resume = two();
    let missing = |resume: &Resume| resume.clone().into_entries().unwrap_err();
    assert_eq!(missing(&resume), ResumeError::Missing { interrupt_ids: vec![id("a"), id("b")] });
    resume.resolve("b", json!("yes"), noon()).unwrap();
    assert_eq!(missing(&resume), ResumeError::Missing { interrupt_ids: vec![id("a")] });
    assert_eq!(resume.open().map(|interrupt| interrupt.id.as_str()).collect::<Vec<_>>(), ["a"]);
    resume.cancel("a").unwrap();
    let entries = serde_json::to_value(resume.into_entries().unwrap()).unwrap();
    let in_order = json!([
        {"interruptId": "a", "status": "cancelled"},
        {"interruptId": "b", "status": "resolved", "payload": "yes"},
    ]);
    assert_eq!(entries, in_order);
}

#[test]
fn t4_what_is_not_answered_can_be_abandoned_at_once() {
    let mut resume = two();
    resume.resolve("a", None, noon()).unwrap();
    resume.cancel_rest();
    let entries = resume.into_entries().unwrap();
    assert_eq!(
        entries.iter().map(|entry| entry.status).collect::<Vec<_>>(),
        [ResumeStatus::Resolved, ResumeStatus::Cancelled]
    );
    assert_eq!(entries[0].payload, None);
}

#[test]
fn t4_what_was_not_asked_cannot_be_answered() {
    let mut resume = two();
    let unknown = ResumeError::Unknown { interrupt_id: id("c") };
    assert_eq!(resume.resolve("c", None, noon()), Err(unknown.clone()));
    assert_eq!(resume.cancel("c"), Err(unknown));
    assert_eq!(resume.open().count(), 2);
}

#[test]
fn t4_one_answer_each() {
    let mut resume = two();
    resume.resolve("a", json!(1), noon()).unwrap();
    let repeated = Err(ResumeError::Repeated { interrupt_id: id("a") });
    assert_eq!(resume.resolve("a", json!(2), noon()), repeated);
    assert_eq!(resume.cancel("a"), repeated);
    resume.cancel_rest();
    assert_eq!(resume.into_entries().unwrap()[0].payload, Some(json!(1)));
}

#[test]
fn t4_what_has_expired_can_only_be_abandoned() {
    let expired = until("2026-08-21T12:00:00Z");
    let mut resume = Resume::new([expired.clone()]);
    let error = resume.resolve("i", json!("yes"), noon()).unwrap_err();
    assert_eq!(error, ResumeError::Expired { interrupt_id: id("i"), expires_at: "2026-08-21T12:00:00Z".into() });
    assert_eq!(resume.open().count(), 1, "nothing is changed");
    resume.cancel("i").unwrap();
    assert!(resume.into_entries().is_ok());

    let mut resume = Resume::new([expired]);
    resume.resolve("i", json!("yes"), noon() - Duration::from_nanos(1)).unwrap();
}

#[test]
fn t4_times_are_iso_8601_and_what_is_none_never_comes() {
    for same in ["2026-08-21T12:00:00Z", "2026-08-21T14:00:00+02:00", "2026-08-21t12:00:00.000z", "2026-08-21T12:00:00"]
    {
        assert_eq!(until(same).expires(), Some(noon()), "{same}");
    }
    assert_eq!(until("2026-08-21").expires(), Some(noon() - Duration::from_secs(12 * 3600)));
    assert!(until("0001-01-01T00:00:00Z").is_expired(noon()));
    for never in ["", "tomorrow", "1787313600", "2026-13-01T00:00:00Z", "2026-08-21T12:00:00+99:99"] {
        assert_eq!(until(never).expires(), None, "{never}");
        assert!(!until(never).is_expired(noon()), "{never}");
    }
    assert!(!Interrupt::new("i", "approval").is_expired(noon()));
}

#[test]
fn t4_of_interrupts_that_share_an_id_the_first_counts() {
    let mut resume = Resume::new([Interrupt::new("i", "approval"), until("2000-01-01")]);
    assert_eq!(resume.open().count(), 1);
    resume.resolve("i", None, noon()).unwrap();
    assert_eq!(resume.open().count(), 0);
    resume.cancel_rest();
    assert_eq!(resume.into_entries().unwrap(), [ResumeEntry::new("i", ResumeStatus::Resolved)]);
}

#[test]
fn t4_answers_made_elsewhere_are_checked_by_the_same_rule() {
    let asked = [Interrupt::new("a", "approval"), until("2026-08-21T12:00:00Z")];
    let entry = |id: &str, status| ResumeEntry::new(id, status);
    let (resolved, cancelled) = (ResumeStatus::Resolved, ResumeStatus::Cancelled);
    let check = |entries: &[ResumeEntry]| Resume::check(asked.clone(), entries, noon());
    assert_eq!(check(&[entry("i", cancelled), entry("a", resolved)]), Ok(()));
    assert!(matches!(check(&[entry("a", resolved)]), Err(ResumeError::Missing { .. })));
    assert!(matches!(check(&[entry("a", resolved), entry("i", resolved)]), Err(ResumeError::Expired { .. })));
    assert_eq!(Resume::check([], &[], noon()), Ok(()));
}

#[test]
fn t4_the_interrupts_of_a_run_are_those_that_the_next_one_has_to_answer() {
    let mut pipeline = Pipeline::new();
    let mut feed = |event: Value| {
        pipeline.push(event).unwrap();
        std::iter::from_fn(|| pipeline.pop()).last().unwrap().snapshot().run().unwrap().resume().open().count()
    };
    assert_eq!(feed(json!({"type": "RUN_STARTED", "threadId": "t", "runId": "r"})), 0);
    let outcome = json!({"type": "interrupt", "interrupts": [{"id": "i", "reason": "approval"}]});
    assert_eq!(feed(json!({"type": "RUN_FINISHED", "threadId": "t", "runId": "r", "outcome": outcome})), 1);
}

/// The interrupts that a stream of runs leaves unanswered; each run is what it was given as `resume`, and
/// what it asks.
fn unanswered(runs: &[(Option<&[&str]>, &[&str])]) -> Vec<String> {
    let mut pipeline = Pipeline::new();
    for (answers, asks) in runs {
        let mut started = json!({"type": "RUN_STARTED", "threadId": "t", "runId": "r"});
        if let Some(answers) = answers {
            let answer = |id: &&str| json!({"interruptId": id, "status": "cancelled"});
            let answers: Vec<Value> = answers.iter().map(answer).collect();
            started["input"] = json!({"threadId": "t", "runId": "r", "messages": [], "resume": answers});
        }
        let asks: Vec<Value> = asks.iter().map(|id| json!({"id": id, "reason": "approval"})).collect();
        let mut finished = json!({"type": "RUN_FINISHED", "threadId": "t", "runId": "r"});
        if !asks.is_empty() {
            finished["outcome"] = json!({"type": "interrupt", "interrupts": asks});
        }
        pipeline.push(started).unwrap();
        pipeline.push(finished).unwrap();
    }
    pipeline.snapshot().resume().open().map(|interrupt| interrupt.id.to_string()).collect()
}

#[test]
fn t4_the_thread_remembers_what_a_later_run_left_unanswered() {
    assert_eq!(unanswered(&[(None, &["i", "j"])]), ["i", "j"]);
    assert_eq!(unanswered(&[(None, &["i"]), (None, &[])]), ["i"]);
    assert_eq!(unanswered(&[(None, &["i"]), (Some(&[]), &[])]), ["i"]);
    assert_eq!(unanswered(&[(None, &["i", "j"]), (Some(&["i", "j"]), &[])]), [""; 0]);
    assert_eq!(unanswered(&[(None, &["i"]), (None, &["j"])]), ["i", "j"]);
    assert_eq!(unanswered(&[(None, &["i", "j"]), (Some(&["i"]), &["k", "j"])]), ["k", "j"]);
    assert_eq!(unanswered(&[(None, &["i"]), (Some(&["i"]), &["i"])]), ["i"], "asked again");
    assert_eq!(unanswered(&[]), [""; 0]);
}

#[test]
fn each_error_says_its_rule_and_which_interrupt() {
    for error in [
        ResumeError::Unknown { interrupt_id: id("i") },
        ResumeError::Repeated { interrupt_id: id("i") },
        ResumeError::Expired { interrupt_id: id("i"), expires_at: "2026".into() },
        ResumeError::Missing { interrupt_ids: vec![id("i"), id("j")] },
    ] {
        assert_eq!(error.rule(), Rule::T4);
        assert!(error.to_string().starts_with("T4: "), "{error}");
        assert!(error.to_string().contains("\"i\""), "{error}");
    }
}
