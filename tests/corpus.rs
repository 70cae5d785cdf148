//! The AG-UI conformance corpus and the cases from public reports, run through
//! [`Pipeline`](ag_ui_stream::machine::Pipeline).
//!
//! The files under `tests/data` are taken as they are. Where an expectation is in somebody's own
//! words (the text of an error or warning), a table here says which rule must be cited instead.
//! Every run prints how many fixtures pass.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "a test")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use ag_ui_stream::codec::{Decoder, JsonLinesDecoder, SseDecoder};
use ag_ui_stream::id::SequentialIds;
use ag_ui_stream::input::{Outgoing, ProtocolVersion};
use ag_ui_stream::machine::{Downgrader, EventPipeline, IdChecks, Machine, Push};
use ag_ui_stream::snapshot::{RunOutcome, Snapshot};
use ag_ui_stream::{Error, Event, EventType, Message, Options, RawItem, Rule, Warning};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// A fixture of either collection. The events stay text: a `Value` holds no lone surrogate.
#[derive(Deserialize)]
struct Fixture {
    name: String,
    #[serde(default)]
    stream: Vec<Box<RawValue>>,
    /// The bytes of a stream, in place of its events: server-sent events, or JSON Lines.
    raw: Option<String>,
    #[serde(default)]
    input: Input,
    #[serde(default)]
    client: Client,
    expect: BTreeMap<String, Value>,
}

#[derive(Default, Deserialize)]
struct Input {
    messages: Option<Box<RawValue>>,
    state: Option<Value>,
}

/// How the client is set up that the fixture is about.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Client {
    max_protocol_version: Option<String>,
}

/// The input that was sent, and the outputs of a pipeline for the stream.
struct Run {
    request: Value,
    events: Vec<Event>,
    warnings: Vec<Warning>,
    error: Option<Error>,
    snapshot: Snapshot,
}

impl Run {
    fn of(fixture: &Fixture, strictness: IdChecks) -> Self {
        let mut builder = Options::new().id_checks(strictness).ids(SequentialIds::new("generated-"));
        if let Some(messages) = &fixture.input.messages {
            builder = builder.history(read_messages(messages.get()));
        }
        if let Some(state) = &fixture.input.state {
            builder = builder.state(state.clone());
        }
        let mut pipeline = builder.build();
        let peer = fixture
            .client
            .max_protocol_version
            .as_deref()
            .map_or_else(ProtocolVersion::default, |version| version.parse().unwrap());
        let (request, mut warnings) = fixture.request(peer);
        let mut downgrade = Downgrader::new(peer);
        let (mut events, mut error) = (Vec::new(), None);
        let inputs = fixture.inputs().into_iter().map(Some).chain([None]);
        for input in inputs {
            let verdict = match input {
                Some(raw) => {
                    downgrade.push(raw).unwrap();
                    std::iter::from_fn(|| downgrade.pop()).try_for_each(|raw| pipeline.push(raw))
                }
                None => pipeline.finish(),
            };
            while let Some(update) = pipeline.pop() {
                events.extend(update.event().cloned());
                warnings.extend(update.warning().cloned());
            }
            if let Err(fault) = verdict {
                error = Some(fault);
                break;
            }
        }
        Self { request, events, warnings, error, snapshot: pipeline.snapshot().clone() }
    }

    fn outcome(&self) -> &'static str {
        match &self.error {
            None => "completed",
            Some(error) if error.is_truncated() => "truncated",
            Some(_) => "failed",
        }
    }

    fn event_types(&self) -> Vec<&'static str> {
        self.events.iter().map(|event| event.event_type().as_str()).collect()
    }

    fn event(&self, index: usize) -> Option<Value> {
        self.events.get(index).map(|event| serde_json::to_value(event).unwrap())
    }
}

impl Fixture {
    /// The events, or those that a decoder finds in the bytes.
    fn inputs(&self) -> Vec<RawItem> {
        let Some(bytes) = &self.raw else {
            let texts = self.stream.iter().map(|raw| raw.get().into());
            return texts.zip(0..).map(|(raw, index)| RawItem::Event { raw, index }).collect();
        };
        let mut decoder: Decoder =
            if bytes.starts_with('{') { JsonLinesDecoder::new().into() } else { SseDecoder::new().into() };
        decoder.push(bytes.as_bytes()).unwrap();
        decoder.finish().unwrap();
        std::iter::from_fn(|| decoder.pop()).collect()
    }

    /// The input that a client sends to a peer of this version, and its warnings.
    fn request(&self, peer: ProtocolVersion) -> (Value, Vec<Warning>) {
        // A `Value` holds no half of a surrogate pair: no such history can be sent.
        let messages =
            self.input.messages.as_ref().and_then(|messages| serde_json::from_str::<Value>(messages.get()).ok());
        let mut input = json!({"threadId": "t", "runId": "r", "messages": messages.unwrap_or_else(|| json!([]))});
        if let (Some(state), Some(members)) = (&self.input.state, input.as_object_mut()) {
            members.insert("state".to_owned(), state.clone());
        }
        let outgoing = Outgoing::new().max_protocol_version(peer);
        let (input, warnings) = outgoing.prepare_value(input).unwrap();
        (serde_json::to_value(input).unwrap(), warnings)
    }
}

/// Reads messages as a producer would send them.
fn read_messages(json: &str) -> Vec<Message> {
    let mut pipeline = EventPipeline::new();
    pipeline.push(r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#).unwrap();
    pipeline.push(format!(r#"{{"type":"MESSAGES_SNAPSHOT","messages":{json}}}"#)).unwrap();
    std::iter::from_fn(|| pipeline.pop())
        .find_map(|item| match item.into_event() {
            Some(Event::MessagesSnapshot(event)) => Some(event.messages),
            _ => None,
        })
        .unwrap()
}

fn data(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(folder)
}

fn read(folder: &str) -> Vec<Fixture> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(data(folder)).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    assert!(!paths.is_empty(), "{folder} is empty");
    let parse = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).unwrap();
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    paths.iter().map(parse).collect()
}

/// The rules that a fixture demands, for fixtures that demand the words of one client.
struct Demand {
    /// The rule of the error; its path, if malformed; and what else its text must name.
    error: Option<(Rule, &'static str, &'static str)>,
    /// The warnings, by rule, type and path.
    warnings: &'static [(Rule, &'static str, &'static str)],
}

const fn fatal(rule: Rule, path: &'static str, names: &'static str) -> Demand {
    Demand { error: Some((rule, path, names)), warnings: &[] }
}

const fn warns(warnings: &'static [(Rule, &'static str, &'static str)]) -> Demand {
    Demand { error: None, warnings }
}

const DEMANDS: &[(&str, Demand)] = &[
    ("chunk-conflicting-role-fatal", fatal(Rule::C5, "", "role")),
    ("chunk-conflicting-tool-name-fatal", fatal(Rule::C5, "", "toolCallName")),
    ("content-without-start-fatal", fatal(Rule::S2, "", "orphan-content-m1")),
    ("custom-closes-chunk-stream-fatal", fatal(Rule::C2, "", "messageId")),
    ("event-after-run-finished-fatal", fatal(Rule::R4, "", "RUN_FINISHED")),
    ("first-chunk-missing-id-fatal", fatal(Rule::C2, "", "messageId")),
    ("first-event-not-run-started-fatal", fatal(Rule::R1, "", "RUN_STARTED")),
    ("first-tool-chunk-missing-name-fatal", fatal(Rule::C2, "", "toolCallName")),
    ("malformed-known-field-fatal", fatal(Rule::E5, "/delta", "")),
    ("nested-run-started-fatal", fatal(Rule::R2, "", "nested-run-started-r-1")),
    ("open-message-at-run-finished-fatal", fatal(Rule::R3, "", "open-message-at-run-finished-m-1")),
    ("reasoning-discipline-verified", fatal(Rule::S2, "", "m-reasoning-discipline-1")),
    ("reasoning-message-wrong-role-fatal", fatal(Rule::E5, "/role", "reasoning")),
    ("run-finished-with-active-subagent-fatal", fatal(Rule::R3, "", "s-run-finished-active-subagent-1")),
    ("step-finished-without-start-fatal", fatal(Rule::S8, "", "step-finished-without-start-never-opened")),
    ("subagent-attribution-mismatch-fatal", fatal(Rule::O2, "", "tc-subagent-attribution-mismatch-1")),
    ("subagent-finished-unstarted-fatal", fatal(Rule::O5, "", "s-subagent-finished-unstarted-1")),
    ("subagent-started-missing-name-fatal", fatal(Rule::E5, "/name", "")),
    ("unknown-outcome-array-fatal", fatal(Rule::E5, "/outcome", "array")),
    ("activity-delta-missing-target-tolerated", warns(&[(Rule::A5, "ACTIVITY_DELTA", "/messageId")])),
    ("encrypted-value-unknown-entity-tolerated", warns(&[(Rule::A7, "REASONING_ENCRYPTED_VALUE", "/entityId")])),
    ("era-0-0-39-flattens-content", warns(&[(Rule::R11, "RunAgentInput", "/messages/0/content")])),
    ("era-0-0-57-subagent-dropped-with-warning", warns(&[(Rule::R11, "SUBAGENT_STARTED", "")])),
    ("era-0-0-45-thinking-translated", warns(&[(Rule::B1, "THINKING_START", "")])),
    ("producer-declares-newer-version-warns", warns(&[(Rule::R11, "RUN_STARTED", "/protocolVersion")])),
    ("producer-declares-uninterpretable-version-warns", warns(&[(Rule::R11, "RUN_STARTED", "/protocolVersion")])),
    ("state-delta-unappliable-warns-and-keeps", warns(&[(Rule::A6, "STATE_DELTA", "/delta")])),
    ("state-delta-unknown-op-dropped", warns(&[(Rule::E3, "STATE_DELTA", "/delta/0")])),
    ("unknown-event-dropped", warns(&[(Rule::E1, "FUTURE_EVENT", "")])),
    ("unknown-outcome-stripped", warns(&[(Rule::E3, "RUN_FINISHED", "/outcome")])),
    ("unknown-part-in-message-list", warns(&[(Rule::E3, "MESSAGES_SNAPSHOT", "/messages/0/content/1")])),
    ("unknown-property-stripped", warns(&[(Rule::E2, "TEXT_MESSAGE_CONTENT", "/futureProp")])),
    // Inverted, see `invert`.
    ("unknown-enum-value-role-fatal", warns(&[(Rule::E4, "TEXT_MESSAGE_START", "/role")])),
    ("truncated-run-reported-as-completed", fatal(Rule::R8, "", "r-truncated-run")),
    // The next draft.
    ("duplicate-interrupt-id-fatal", fatal(Rule::R10, "/outcome/interrupts/1/id", "i-duplicate-interrupt")),
    ("run-finished-wrong-run-id-fatal", fatal(Rule::R10, "/runId", "r-run-id-mismatch-other")),
    ("run-finished-wrong-thread-id-fatal", fatal(Rule::R10, "/threadId", "t-thread-id-mismatch-other")),
    ("second-run-on-another-thread-fatal", fatal(Rule::R10, "/threadId", "t-second-run-thread-other")),
    ("truncated-stream-fails-the-run", fatal(Rule::R8, "", "r-truncated")),
];

fn demand(name: &str) -> Option<&'static Demand> {
    DEMANDS.iter().find(|(fixture, _)| *fixture == name).map(|(_, demand)| demand)
}

/// The two fixtures that pin gaps of the reference client, which its authors admit. They demand the
/// opposite of the specification, so here they demand the specification.
fn invert(fixture: &mut Fixture) {
    let outcome = match fixture.name.as_str() {
        // E4: a role that this version does not know is stripped with a warning; the message is an
        // assistant's then, and the run goes on. The reference rejects the stream.
        "unknown-enum-value-role-fatal" => "completed",
        // R8: a stream that ends without its terminal event is truncated, and no success. The
        // reference reports the run as completed.
        "truncated-run-reported-as-completed" => "truncated",
        _ => return,
    };
    fixture.expect.insert("outcome".to_owned(), outcome.into());
    fixture.expect.remove("errorContains");
}

/// Whether `found` has everything that `wanted` says: arrays are equally long, objects need only
/// the keys that are named.
fn matches(found: &Value, wanted: &Value) -> bool {
    match (found, wanted) {
        (Value::Array(found), Value::Array(wanted)) => {
            found.len() == wanted.len() && found.iter().zip(wanted).all(|(found, wanted)| matches(found, wanted))
        }
        (Value::Object(found), Value::Object(wanted)) => {
            wanted.iter().all(|(key, wanted)| found.get(key).is_some_and(|found| matches(found, wanted)))
        }
        (Value::Number(found), Value::Number(wanted)) => found.as_f64() == wanted.as_f64(),
        (found, wanted) => found == wanted,
    }
}

/// The value at `2.delta.0.op`: the event with that index, then keys and indices.
fn at_path(run: &Run, path: &str) -> Option<Value> {
    let (index, rest) = path.split_once('.').unwrap_or((path, ""));
    within(&run.event(index.parse().unwrap())?, rest).cloned()
}

/// The value at `delta.0.op` within another.
fn within<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    path.split('.').filter(|key| !key.is_empty()).try_fold(value, |value, key| match value {
        Value::Array(elements) => elements.get(key.parse::<usize>().ok()?),
        Value::Object(members) => members.get(key),
        _ => None,
    })
}

/// The faults of a run, one line each.
#[derive(Default)]
struct Faults(Vec<String>);

impl Faults {
    fn check(&mut self, holds: bool, message: impl FnOnce() -> String) {
        if !holds {
            self.0.push(message());
        }
    }

    fn check_key(&mut self, fixture: &Fixture, key: &str, wanted: &Value, run: &Run) {
        let messages = || serde_json::to_value(run.snapshot.messages()).unwrap();
        match key {
            "outcome" => self.check(run.outcome() == wanted, || {
                let error = run.error.as_ref().map(ToString::to_string).unwrap_or_default();
                format!("outcome {}, not {wanted}: {error}", run.outcome())
            }),
            "errorContains" => match demand(&fixture.name).and_then(|demand| demand.error) {
                Some(demand) => self.check_error(demand, run.error.as_ref()),
                None => self.0.push("no demand on the error in the table".to_owned()),
            },
            "warnings" => {
                let demanded = demand(&fixture.name).map_or(&[][..], |demand| demand.warnings);
                let wanted = wanted.as_array().unwrap();
                self.check(wanted.is_empty() || !demanded.is_empty(), || {
                    "no demand on the warnings in the table".to_owned()
                });
            }
            "noWarnings" => self.check(run.warnings.is_empty(), || format!("warnings: {:?}", run.warnings)),
            "eventTypes" => {
                let found = run.event_types();
                self.check(Value::from(found.clone()) == *wanted, || format!("event types {found:?}"));
            }
            "eventTypesAbsent" => {
                let found = run.event_types();
                for absent in wanted.as_array().unwrap() {
                    self.check(!found.iter().any(|found| found == absent), || format!("{absent} was delivered"));
                }
            }
            "eventPaths" => {
                for (path, wanted) in wanted.as_object().unwrap() {
                    let found = at_path(run, path);
                    self.check(found.as_ref() == Some(wanted), || format!("{path} is {found:?}, not {wanted}"));
                }
            }
            "eventAbsentPaths" => {
                for path in wanted.as_array().unwrap() {
                    let found = at_path(run, path.as_str().unwrap());
                    self.check(found.is_none(), || format!("{path} is {found:?}"));
                }
            }
            "request" => {
                self.check(matches(&run.request, wanted), || format!("sent\n      {}\n  not {wanted}", run.request))
            }
            "requestAbsentPaths" => {
                for path in wanted.as_array().unwrap() {
                    let found = within(&run.request, path.as_str().unwrap());
                    self.check(found.is_none(), || format!("{path} of the request is {found:?}"));
                }
            }
            "messageCount" => {
                let found = run.snapshot.messages().len();
                self.check(wanted.as_u64() == Some(found as u64), || format!("{found} messages, not {wanted}"));
            }
            "messages" => {
                let found = messages();
                self.check(matches(&found, wanted), || format!("messages\n      {found}\n  not {wanted}"));
            }
            "state" => {
                let found = run.snapshot.state().to_value();
                self.check(matches(&found, wanted), || format!("state {found}, not {wanted}"));
            }
            "runError" => {
                let failed = run.snapshot.runs().any(|run| match (&run.outcome, wanted) {
                    (RunOutcome::Error { message, .. }, Value::String(part)) => message.contains(part.as_str()),
                    (outcome, wanted) => wanted.as_bool() == Some(matches!(outcome, RunOutcome::Error { .. })),
                });
                self.check(failed, || format!("no run failed with {wanted}"));
            }
            "runs" => {
                let describe = |run: &ag_ui_stream::snapshot::Run| json!({"runId": run.run_id.as_ref().map(|id| id.as_str()), "outcome": run.outcome.as_str()});
                let found = Value::from_iter(run.snapshot.runs().map(describe));
                self.check(matches(&found, wanted), || format!("runs {found}, not {wanted}"));
            }
            "pendingToolCallIds" => {
                let last = run.snapshot.runs().last().map_or(&[][..], |run| run.pending_tool_call_ids());
                let found = Value::from_iter(last.iter().map(|id| id.as_str()));
                self.check(found == *wanted, || format!("pending calls {found}, not {wanted}"));
            }
            "errorNames" => {
                let found = run.error.as_ref().map(ToString::to_string).unwrap_or_default();
                self.check(found.contains(wanted.as_str().unwrap()), || format!("{found:?} does not name {wanted}"));
            }
            "rule" => {
                let found = run.error.as_ref().and_then(Error::rule).map(Rule::as_str);
                let holds = match wanted {
                    Value::Array(any) => any.iter().any(|rule| rule.as_str() == found),
                    rule => rule.as_str() == found,
                };
                self.check(holds, || format!("rule {found:?}, not {wanted}: {:?}", run.error));
            }
            "warningRules" => {
                for rule in wanted.as_array().unwrap() {
                    let found = run.warnings.iter().any(|warning| warning.rule.as_str() == rule);
                    self.check(found, || format!("no warning cites {rule}: {:?}", run.warnings));
                }
            }
            other => self.0.push(format!("unknown key {other}")),
        }
    }

    fn check_error(&mut self, (rule, path, names): (Rule, &str, &str), error: Option<&Error>) {
        let Some(error) = error else {
            self.0.push(format!("no error, {rule} demanded"));
            return;
        };
        self.check(error.rule() == Some(rule), || format!("rule {:?}, not {rule}: {error}", error.rule()));
        if let Error::Malformed(malformed) = error {
            self.check(malformed.path == path, || format!("path {:?}, not {path:?}: {error}", malformed.path));
        }
        self.check(error.to_string().contains(names), || format!("the error does not name {names:?}: {error}"));
    }

    /// The warnings of the table, whether the fixture lists them or not.
    fn check_warnings(&mut self, demanded: &[(Rule, &str, &str)], run: &Run) {
        for (rule, event_type, path) in demanded {
            let found = run
                .warnings
                .iter()
                .any(|found| found.rule == *rule && found.event_type == *event_type && found.path == *path);
            self.check(found, || format!("no warning {rule} of {event_type} at {path:?}: {:?}", run.warnings));
        }
    }
}

/// What holds for every stream, whatever its fixture says.
fn check_laws(run: &Run, faults: &mut Faults) {
    let chunks = [EventType::TextMessageChunk, EventType::ToolCallChunk, EventType::ReasoningMessageChunk];
    faults.check(!run.events.iter().any(|event| chunks.contains(&event.event_type())), || {
        "a chunk was delivered".to_owned()
    });
    faults.check(!run.snapshot.runs().any(ag_ui_stream::snapshot::Run::is_running), || {
        "a run is running after the end".to_owned()
    });
    for event in &run.events {
        let json = serde_json::to_string(event).unwrap();
        let read = Event::from_json(&json);
        faults.check(read == Ok((Some(event.clone()), Vec::new())), || format!("{json} reads as {read:?}"));
    }
}

#[derive(Default)]
struct Report {
    passed: usize,
    failed: Vec<String>,
}

impl Report {
    fn add(&mut self, fixture: &Fixture, faults: Faults) {
        if faults.0.is_empty() {
            self.passed += 1;
        } else {
            self.failed.push(format!("{}\n    {}", fixture.name, faults.0.join("\n    ")));
        }
    }

    fn close(self, what: &str) {
        let total = self.passed + self.failed.len();
        let mut text = format!("{what}: {} of {total} pass", self.passed);
        if !self.failed.is_empty() {
            let _ = write!(text, "\nfailed:\n  {}", self.failed.join("\n  "));
        }
        println!("{text}");
        assert!(self.failed.is_empty(), "{text}");
    }
}

#[test]
fn the_conformance_corpus_passes() {
    let mut report = Report::default();
    for mut fixture in read("conformance/streams") {
        invert(&mut fixture);
        let run = Run::of(&fixture, IdChecks::Warn);
        let mut faults = Faults::default();
        for (key, wanted) in &fixture.expect {
            faults.check_key(&fixture, key, wanted, &run);
        }
        if let Some(demand) = demand(&fixture.name) {
            faults.check_warnings(demand.warnings, &run);
            if let Some(error) = demand.error {
                faults.check_error(error, run.error.as_ref());
            }
        }
        check_laws(&run, &mut faults);
        report.add(&fixture, faults);
    }
    report.close("conformance corpus");
}

#[test]
fn the_conformance_corpus_passes_in_full_when_strict_too() {
    let mut report = Report::default();
    for fixture in read("conformance/streams") {
        let (lenient, strict) = (Run::of(&fixture, IdChecks::Warn), Run::of(&fixture, IdChecks::Reject));
        let mut faults = Faults::default();
        // None of them breaks R10.
        faults.check(lenient.error == strict.error, || format!("strict: {:?}", strict.error));
        faults.check(lenient.snapshot == strict.snapshot, || "strict: another snapshot".to_owned());
        report.add(&fixture, faults);
    }
    report.close("conformance corpus, strict");
}

#[test]
fn the_draft_fails_when_strict_and_warns_otherwise() {
    let mut report = Report::default();
    for fixture in read("conformance/draft") {
        let mut faults = Faults::default();
        let Some((rule, path, names)) = demand(&fixture.name).and_then(|demand| demand.error) else {
            panic!("{} is not in the table", fixture.name);
        };
        let strict = Run::of(&fixture, IdChecks::Reject);
        faults.check_error((rule, path, names), strict.error.as_ref());
        let lenient = Run::of(&fixture, IdChecks::Warn);
        if rule == Rule::R8 {
            // Truncation is one in both.
            faults.check(strict.outcome() == "truncated", || format!("strict: {}", strict.outcome()));
            faults.check(lenient.outcome() == "truncated", || format!("lenient: {}", lenient.outcome()));
        } else {
            faults.check(strict.outcome() == "failed", || format!("strict: {}", strict.outcome()));
            faults.check(lenient.outcome() == "completed", || format!("lenient: {:?}", lenient.error));
            faults.check(lenient.warnings.iter().any(|found| found.rule == rule && found.path == path), || {
                format!("lenient: no warning {rule} at {path}: {:?}", lenient.warnings)
            });
        }
        report.add(&fixture, faults);
    }
    report.close("draft");
}

#[test]
fn the_cases_from_public_reports_pass() {
    let mut report = Report::default();
    for fixture in read("cases") {
        let run = Run::of(&fixture, IdChecks::Warn);
        let mut faults = Faults::default();
        for (key, wanted) in &fixture.expect {
            faults.check_key(&fixture, key, wanted, &run);
        }
        check_laws(&run, &mut faults);
        report.add(&fixture, faults);
    }
    report.close("cases");
}

#[test]
fn the_tables_speak_of_fixtures_that_exist() {
    let names: Vec<String> =
        ["conformance/streams", "conformance/draft"].into_iter().flat_map(read).map(|fixture| fixture.name).collect();
    let spoken_of = DEMANDS.iter().map(|(name, _)| name);
    for name in spoken_of {
        assert!(names.iter().any(|known| known == name), "{name}");
    }
}
