//! Runs thousands of generated streams through the crate's pipeline and through that of npm
//! `@ag-ui/client` 1.0.0: verdict, events, outcomes, messages and state are equal, except for the
//! differences in one table, which `docs/differences.md` explains.
//!
//! `DIFFERENTIAL_STREAMS=20000 cargo test --all-features --test differential` runs as many.

#![allow(missing_docs, reason = "a test")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, clippy::print_stderr, reason = "a test")]

use std::collections::BTreeMap;

use ag_ui_stream::id::SequentialIds;
use ag_ui_stream::machine::{Machine, Push};
use ag_ui_stream::snapshot::RunOutcome;
use ag_ui_stream::{Error, Event, Options, Rule, Warning};
use serde_json::{Value, json};

mod support {
    #![allow(unreachable_pub, reason = "each test has its own copy")]
    pub mod differences;
    pub mod interop;
    pub mod streams;
}

use support::differences::{Aspect, DIFFERENCES, How};
use support::interop::{Peer, node};
use support::streams::stream;

/// What one side made of a stream.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// The output of verification, with chunks expanded.
    pub events: Vec<Value>,
    /// How each run ended; for a success with the tool calls that are pending.
    pub outcomes: Vec<Value>,
    pub messages: Vec<Value>,
    pub state: Value,
    pub error: Option<String>,
}

/// A stream, and what both sides made of it.
#[derive(Clone, Debug)]
pub struct Case {
    /// The events, each as JSON.
    pub stream: Vec<String>,
    pub ours: Seen,
    pub theirs: Seen,
    pub our_error: Option<Error>,
    pub our_warnings: Vec<Warning>,
}

impl Case {
    fn new(stream: Vec<String>, theirs: &Value) -> Self {
        let mut pipeline = Options::new().ids(SequentialIds::new("generated-")).build();
        let (mut ours, mut warnings, mut error) = (Seen::default(), Vec::new(), None);
        for input in stream.iter().map(|event| Some(event.as_str())).chain([None]) {
            let verdict = match input {
                Some(event) => pipeline.push(event),
                None => pipeline.finish(),
            };
            while let Some(update) = pipeline.pop() {
                warnings.extend(update.warning().cloned());
                let Some(event) = update.event() else { continue };
                ours.events.push(serde_json::to_value(event).unwrap());
                if matches!(event, Event::RunFinished(_) | Event::RunError(_)) {
                    let outcome = update.snapshot().run().map(|run| &run.outcome);
                    ours.outcomes.push(outcome.map_or(json!(["failed"]), outcome_as_theirs));
                }
            }
            if let Err(fault) = verdict {
                error = Some(fault);
                break;
            }
        }
        let snapshot = pipeline.snapshot();
        ours.messages = snapshot.messages().iter().map(|message| serde_json::to_value(message).unwrap()).collect();
        ours.state = serde_json::to_value(snapshot.state()).unwrap();
        ours.error = error.as_ref().map(ToString::to_string);
        let list = |key: &str| theirs[key].as_array().cloned().unwrap();
        let theirs = Seen {
            events: list("events"),
            outcomes: list("outcomes"),
            messages: list("messages"),
            state: theirs["state"].clone(),
            error: theirs["error"].as_str().map(str::to_owned),
        };
        Self { stream, ours, theirs, our_error: error, our_warnings: warnings }
    }

    /// In what the two sides differ.
    fn differs_in(&self) -> Vec<Aspect> {
        let (ours, theirs) = (&self.ours, &self.theirs);
        [
            (Aspect::Verdict, ours.error.is_none() == theirs.error.is_none()),
            (Aspect::Events, same_lists(&ours.events, &theirs.events)),
            (Aspect::Outcomes, same_lists(&ours.outcomes, &theirs.outcomes)),
            (Aspect::Messages, same_lists(&ours.messages, &theirs.messages)),
            (Aspect::State, same(&ours.state, &theirs.state)),
        ]
        .into_iter()
        .filter_map(|(aspect, is_same)| (!is_same).then_some(aspect))
        .collect()
    }

    /// The names of the differences that explain this one, or the parts that none of them explains.
    fn explanation(&self) -> Result<Vec<&'static str>, Vec<Aspect>> {
        let mut case = self.clone();
        let mut left = case.differs_in();
        let mut names = Vec::new();
        for difference in DIFFERENCES {
            if !left.iter().any(|aspect| difference.aspects.contains(aspect)) {
                continue;
            }
            match difference.how {
                How::Spelled(_) | How::Rewritten(_) => {
                    if let How::Rewritten(rewrite) = difference.how {
                        rewrite(&mut case);
                    }
                    if let How::Spelled(unspell) = difference.how {
                        for seen in [&mut case.ours, &mut case.theirs] {
                            seen.events.iter_mut().chain(&mut seen.messages).for_each(unspell);
                        }
                    }
                    // What another difference explained stays explained.
                    let differs = case.differs_in();
                    let before = left.len();
                    left.retain(|aspect| differs.contains(aspect));
                    if left.len() < before {
                        names.push(difference.name);
                    }
                }
                How::When(is_at_work) if is_at_work(self) => {
                    left.retain(|aspect| !difference.aspects.contains(aspect));
                    names.push(difference.name);
                }
                How::When(_) => {}
            }
        }
        if left.is_empty() { Ok(names) } else { Err(left) }
    }

    /// Whether a warning or the error of ours cites the rule.
    pub fn cites(&self, rule: Rule) -> bool {
        self.warns(rule) || self.rejects(rule)
    }

    pub fn warns(&self, rule: Rule) -> bool {
        self.our_warnings.iter().any(|warning| warning.rule == rule)
    }

    pub fn rejects(&self, rule: Rule) -> bool {
        self.our_error.as_ref().is_some_and(|error| error.rule() == Some(rule))
    }

    fn report(&self, aspects: &[Aspect]) -> String {
        let mut report =
            format!("{aspects:?} differ, and nothing in the table says why:\n{}\n", self.stream.join("\n"));
        for (name, seen) in [("ours", &self.ours), ("theirs", &self.theirs)] {
            report += &format!("{name}: {}\n", seen.error.as_deref().unwrap_or("no error"));
            for aspect in aspects {
                let values: Vec<_> = match aspect {
                    Aspect::Verdict => continue,
                    Aspect::Events => seen.events.iter().collect(),
                    Aspect::Outcomes => seen.outcomes.iter().collect(),
                    Aspect::Messages => seen.messages.iter().collect(),
                    Aspect::State => vec![&seen.state],
                };
                values.iter().for_each(|value| report += &format!("    {value}\n"));
            }
        }
        self.our_warnings.iter().for_each(|warning| report += &format!("warning: {warning}\n"));
        report
    }
}

/// An outcome in the words of the reference, which names pending calls for a success only.
fn outcome_as_theirs(outcome: &RunOutcome) -> Value {
    match outcome {
        RunOutcome::Success { pending_tool_call_ids } => {
            let ids = pending_tool_call_ids.iter().map(|id| json!(id.as_str()));
            std::iter::once(json!("success")).chain(ids).collect()
        }
        RunOutcome::Error { .. } => json!(["failed"]),
        other => json!([other.as_str()]),
    }
}

/// Whether two values are the same to JavaScript, which has one kind of number.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Array(one), Value::Array(other)) => same_lists(one, other),
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(key, one)| other.get(key).is_some_and(|other| same(one, other)))
        }
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        (one, other) => one == other,
    }
}

fn same_lists(one: &[Value], other: &[Value]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
}

/// Both sides on all of these streams.
fn cases(node: &Peer, streams: Vec<Vec<String>>) -> Vec<Case> {
    let theirs = node.ask("replay.mjs", &json!(streams));
    let theirs = theirs.as_array().unwrap();
    assert_eq!(theirs.len(), streams.len());
    streams.into_iter().zip(theirs).map(|(stream, theirs)| Case::new(stream, theirs)).collect()
}

/// The shortest streams within these that differ in the same, still without an explanation.
fn shortened(node: &Peer, mut found: Vec<Case>) -> Vec<Case> {
    loop {
        let shorter = found.iter().map(|case| {
            (0..case.stream.len()).map(|index| {
                let mut stream = case.stream.clone();
                stream.remove(index);
                stream
            })
        });
        let mut shorter = cases(node, shorter.flatten().collect()).into_iter();
        let mut is_done = true;
        for case in &mut found {
            let fewer = shorter.by_ref().take(case.stream.len()).collect::<Vec<_>>();
            let aspects = case.explanation();
            if let Some(fewer) = fewer.into_iter().find(|fewer| fewer.explanation() == aspects) {
                (*case, is_done) = (fewer, false);
            }
        }
        if is_done {
            return found;
        }
    }
}

#[test]
fn the_reference_agrees_but_for_the_differences_in_the_table() {
    let Some(node) = node() else { return };
    let count = std::env::var("DIFFERENTIAL_STREAMS").map_or(2_000, |count| count.parse().unwrap());
    let cases = cases(&node, (0..count).map(stream).collect());
    let accepted = cases.iter().filter(|case| case.ours.error.is_none()).count();
    let mut explained = BTreeMap::<&str, usize>::new();
    let mut equal = 0;
    let mut unexplained = Vec::new();
    for case in cases {
        match case.explanation() {
            Ok(names) if names.is_empty() => equal += 1,
            Ok(names) => names.into_iter().for_each(|name| *explained.entry(name).or_default() += 1),
            Err(_) => unexplained.push(case),
        }
    }
    eprintln!("{count} streams, {accepted} legal to their end, {equal} equal; differences: {explained:#?}");
    let number = unexplained.len();
    unexplained.truncate(5);
    let reports = shortened(&node, unexplained)
        .iter()
        .map(|case| case.report(&case.explanation().unwrap_err()))
        .collect::<Vec<_>>();
    assert!(number == 0, "{number} streams differ.\n{}", reports.join("\n\n"));
    // A generator that makes only noise, or only what the table excludes, compares nothing.
    assert!(accepted * 2 > count as usize && equal * 2 > count as usize);
}

#[test]
fn every_difference_has_a_stream_that_shows_it() {
    let Some(node) = node() else { return };
    let streams = DIFFERENCES.iter().map(|difference| difference.example.lines().map(str::to_owned).collect());
    for (difference, case) in DIFFERENCES.iter().zip(cases(&node, streams.collect())) {
        assert_eq!(case.explanation(), Ok(vec![difference.name]), "{}", case.report(&case.differs_in()));
    }
}

#[test]
fn the_document_has_the_same_differences_as_the_table() {
    let document = include_str!("../docs/differences.md");
    let headings = document.lines().filter_map(|line| line.strip_prefix("### "));
    let table = DIFFERENCES.iter().map(|difference| format!("{}: {}", difference.rule, difference.name));
    assert_eq!(headings.collect::<Vec<_>>(), table.collect::<Vec<_>>());
}
