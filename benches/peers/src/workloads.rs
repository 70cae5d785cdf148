//! The six benchmark workloads and their sized variants.
//!
//! Everything here is a pure function of its arguments and written out by hand:
//! the same call gives the same bytes on every machine and with every set of
//! features, so a ratio measured today can be compared with one measured next
//! year. Each event is one JSON text of its own, as a
//! transport would hand it over, with `type` first, and every sequence is legal
//! AG-UI 1.0.
//!
//! | name | what it is | what it stresses |
//! |---|---|---|
//! | `W1` | one message, 20 000 deltas of five characters | the cost of one event |
//! | `W2` | one message, 200 000 deltas of five characters | growth with the message |
//! | `W3` | 2 000 messages, each 10 deltas of 20 characters | growth with the thread |
//! | `W4` | `W1` written as `TEXT_MESSAGE_CHUNK` | chunk expansion |
//! | `W5` | 64 subagents taking turns at random, 20 000 tagged deltas | ownership and lanes |
//! | `W6` | 200 runs of text, reasoning, tool calls, state and steps, 20 000 events | breadth |
//! | `W7` | one message of 10 000 deltas, one tool call of as many, each event with all that any may carry | `timestamp`, `rawEvent`, `metadata` |
//!
//! [`text`] and [`thread`] give the two axes of the cost plots. The file needs
//! nothing but `std` and `serde_json`, so another package can include it with
//! `#[path]`.

// Whoever includes this file uses a part of it.
#![allow(dead_code, unreachable_pub)]

use serde_json::Value;

/// The conversation every workload belongs to.
pub const THREAD_ID: &str = "thread-1";

/// One benchmark input and what must come out of it.
#[derive(Clone, Debug)]
pub struct Workload {
    /// `W1` … `W6`, or the name of the sized variant.
    pub name: String,
    /// The events, one JSON text each, in arrival order.
    pub events: Vec<String>,
    /// Index of the first event to measure. What comes before only builds up
    /// the conversation; it is zero for everything but [`thread`].
    pub timed_from: usize,
    /// How many of the events are history: whole runs before the measured one.
    pub history_events: usize,
    /// The messages that the history builds, for a consumer that is started
    /// with them instead of being fed `events[..history_events]`.
    pub history: Vec<Text>,
    /// Every text message as it stands at the end, in order of appearance.
    pub texts: Vec<Text>,
}

/// A text message: its id and all of its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    /// The message id.
    pub id: String,
    /// All deltas, concatenated.
    pub text: String,
}

/// `W1` … `W6`, in order.
pub fn all() -> Vec<Workload> {
    vec![w1(), w2(), w3(), w4(), w5(), w6()]
}

/// One message of 20 000 five-character deltas.
pub fn w1() -> Workload {
    named("W1", text(20_000))
}

/// One message of 200 000 five-character deltas.
pub fn w2() -> Workload {
    named("W2", text(200_000))
}

/// One run of 2 000 messages, each of 10 deltas of 20 characters.
pub fn w3() -> Workload {
    let mut build = Builder::new("W3");
    build.run_started("run-1");
    for message in 0..2_000 {
        build.message(&format!("msg-{message}"), 10, 20);
    }
    build.run_finished("run-1");
    build.workload
}

/// The message of [`w1`], each delta a `TEXT_MESSAGE_CHUNK` that repeats the
/// message id; `RUN_FINISHED` closes it.
pub fn w4() -> Workload {
    let mut build = Builder::new("W4");
    build.run_started("run-1");
    let at = build.expect_text("msg-1");
    for _ in 0..20_000 {
        let delta = build.words.take(5);
        build.push(format!(r#"{{"type":"TEXT_MESSAGE_CHUNK","messageId":"msg-1","delta":"{delta}"}}"#));
        build.extend_text(at, &delta);
    }
    build.run_finished("run-1");
    build.workload
}

/// 64 announced subagents, each streaming one message; 20 000 five-character
/// deltas come from them in random order, and every event between the two
/// terminal ones carries its `subagentRunId`.
pub fn w5() -> Workload {
    const SUBAGENTS: usize = 64;
    let mut build = Builder::new("W5");
    build.run_started("run-1");
    for agent in 0..SUBAGENTS {
        build.push(format!(r#"{{"type":"SUBAGENT_STARTED","subagentRunId":"sub-{agent}","name":"researcher"}}"#));
    }
    let mut messages = Vec::new();
    for agent in 0..SUBAGENTS {
        build.push(format!(
            r#"{{"type":"TEXT_MESSAGE_START","messageId":"msg-{agent}","role":"assistant","subagentRunId":"sub-{agent}"}}"#
        ));
        messages.push(build.expect_text(&format!("msg-{agent}")));
    }
    for _ in 0..20_000 {
        let agent = build.words.below(SUBAGENTS);
        let delta = build.words.take(5);
        build.push(format!(
            r#"{{"type":"TEXT_MESSAGE_CONTENT","messageId":"msg-{agent}","delta":"{delta}","subagentRunId":"sub-{agent}"}}"#
        ));
        if let Some(&at) = messages.get(agent) {
            build.extend_text(at, &delta);
        }
    }
    for agent in 0..SUBAGENTS {
        build.push(format!(r#"{{"type":"TEXT_MESSAGE_END","messageId":"msg-{agent}","subagentRunId":"sub-{agent}"}}"#));
    }
    for agent in 0..SUBAGENTS {
        build.push(format!(r#"{{"type":"SUBAGENT_FINISHED","subagentRunId":"sub-{agent}"}}"#));
    }
    build.run_finished("run-1");
    build.workload
}

/// 200 runs of 100 events: a step of reasoning, then a step with an answer, two
/// interleaved tool calls and their results, state patches and a second answer.
///
/// The state stays the same size, so that what grows is the conversation.
pub fn w6() -> Workload {
    let mut build = Builder::new("W6");
    for run in 0..200 {
        build.mixed_run(run);
    }
    build.workload
}

/// One message and one tool call, each of 10 000 five-character deltas in turns; every event has a
/// timestamp, the event of the framework that it was made of, and metadata. Not one of [`all`]: what
/// the others give is compared with other libraries, which drop most of this.
pub fn w7() -> Workload {
    let mut build = Builder::new("W7");
    build.run_started("run-1");
    let mut count = 0_u64;
    let mut extra = || {
        count += 1;
        format!(
            r#""timestamp":{},"rawEvent":{{"event":"on_chat_model_stream","run":"lc-1","data":{{"chunk":{{"index":{count},"finish":null}}}}}},"metadata":{{"node":"writer","step":{count}}}"#,
            1_760_000_000_000 + count
        )
    };
    let at = build.expect_text("msg-1");
    build.push(format!(r#"{{"type":"TEXT_MESSAGE_START","messageId":"msg-1","role":"assistant",{}}}"#, extra()));
    build.push(format!(r#"{{"type":"TOOL_CALL_START","toolCallId":"call-1","toolCallName":"search",{}}}"#, extra()));
    for _ in 0..10_000 {
        let delta = build.words.take(5);
        build.push(format!(r#"{{"type":"TEXT_MESSAGE_CONTENT","messageId":"msg-1","delta":"{delta}",{}}}"#, extra()));
        build.extend_text(at, &delta);
        let delta = build.words.take(5);
        build.push(format!(r#"{{"type":"TOOL_CALL_ARGS","toolCallId":"call-1","delta":"{delta}",{}}}"#, extra()));
    }
    build.push(format!(r#"{{"type":"TEXT_MESSAGE_END","messageId":"msg-1",{}}}"#, extra()));
    build.push(format!(r#"{{"type":"TOOL_CALL_END","toolCallId":"call-1",{}}}"#, extra()));
    build.run_finished("run-1");
    build.workload
}

/// One run of one message of `deltas` five-character deltas: the axis "length
/// of the message".
pub fn text(deltas: usize) -> Workload {
    let mut build = Builder::new(&format!("text({deltas})"));
    build.run_started("run-1");
    build.message("msg-1", deltas, 5);
    build.run_finished("run-1");
    build.workload
}

/// A run that leaves `messages` finished messages of 40 characters, then the
/// measured one, streaming a message of 2 000 five-character deltas: the axis
/// "length of the thread".
///
/// The second `RUN_STARTED` is not measured: it is where a consumer clears what
/// it tracked of the run before (rule R6), which that run has to answer for.
pub fn thread(messages: usize) -> Workload {
    let mut build = Builder::new(&format!("thread({messages})"));
    build.run_started("run-1");
    for message in 0..messages {
        build.message(&format!("old-{message}"), 1, 40);
    }
    build.run_finished("run-1");
    build.workload.history_events = build.workload.events.len();
    build.workload.history = build.workload.texts.clone();
    build.run_started("run-2");
    build.workload.timed_from = build.workload.events.len();
    build.message("msg-1", 2_000, 5);
    build.run_finished("run-2");
    build.workload
}

fn named(name: &str, mut workload: Workload) -> Workload {
    name.clone_into(&mut workload.name);
    workload
}

/// Writes events and keeps account of the text they must add up to.
struct Builder {
    workload: Workload,
    words: Words,
}

impl Builder {
    fn new(name: &str) -> Self {
        Self {
            workload: Workload {
                name: name.to_owned(),
                events: Vec::new(),
                timed_from: 0,
                history_events: 0,
                history: Vec::new(),
                texts: Vec::new(),
            },
            words: Words(0x5eed),
        }
    }

    fn push(&mut self, event: String) {
        self.workload.events.push(event);
    }

    /// Notes a new message and gives its place in the expectation.
    fn expect_text(&mut self, id: &str) -> usize {
        self.workload.texts.push(Text { id: id.to_owned(), text: String::new() });
        self.workload.texts.len() - 1
    }

    fn extend_text(&mut self, at: usize, delta: &str) {
        if let Some(expected) = self.workload.texts.get_mut(at) {
            expected.text.push_str(delta);
        }
    }

    fn run_started(&mut self, run_id: &str) {
        self.push(format!(r#"{{"type":"RUN_STARTED","threadId":"{THREAD_ID}","runId":"{run_id}"}}"#));
    }

    fn run_finished(&mut self, run_id: &str) {
        self.push(format!(
            r#"{{"type":"RUN_FINISHED","threadId":"{THREAD_ID}","runId":"{run_id}","outcome":{{"type":"success"}}}}"#
        ));
    }

    /// A whole assistant message: start, `deltas` deltas of `width` characters, end.
    fn message(&mut self, id: &str, deltas: usize, width: usize) {
        let at = self.expect_text(id);
        self.push(format!(r#"{{"type":"TEXT_MESSAGE_START","messageId":"{id}","role":"assistant"}}"#));
        for _ in 0..deltas {
            let delta = self.words.take(width);
            self.push(format!(r#"{{"type":"TEXT_MESSAGE_CONTENT","messageId":"{id}","delta":"{delta}"}}"#));
            self.extend_text(at, &delta);
        }
        self.push(format!(r#"{{"type":"TEXT_MESSAGE_END","messageId":"{id}"}}"#));
    }

    /// One of the 200 runs of [`w6`]: exactly 100 events.
    fn mixed_run(&mut self, run: usize) {
        let run_id = format!("run-{run}");
        self.run_started(&run_id);
        let plan: Vec<String> = (0..8).map(|item| format!(r#"{{"title":"item {item}","done":false}}"#)).collect();
        self.push(format!(
            r#"{{"type":"STATE_SNAPSHOT","snapshot":{{"run":{run},"progress":0,"status":"idle","plan":[{}],"log":["begin"]}}}}"#,
            plan.join(",")
        ));

        self.step("STEP_STARTED", "think");
        let thought = format!("thought-{run}");
        self.push(format!(r#"{{"type":"REASONING_START","messageId":"{thought}"}}"#));
        self.push(format!(r#"{{"type":"REASONING_MESSAGE_START","messageId":"{thought}","role":"reasoning"}}"#));
        for _ in 0..16 {
            let delta = self.words.take(12);
            self.push(format!(r#"{{"type":"REASONING_MESSAGE_CONTENT","messageId":"{thought}","delta":"{delta}"}}"#));
        }
        self.push(format!(r#"{{"type":"REASONING_MESSAGE_END","messageId":"{thought}"}}"#));
        self.push(format!(r#"{{"type":"REASONING_END","messageId":"{thought}"}}"#));
        self.step("STEP_FINISHED", "think");

        self.step("STEP_STARTED", "act");
        let before = format!("before-{run}");
        self.message(&before, 24, 8);
        self.patch(r#"[{"op":"replace","path":"/status","value":"calling tools"}]"#);
        let calls = [format!("call-{run}-a"), format!("call-{run}-b")];
        let arguments = calls.each_ref().map(|_| {
            let city = self.words.take(9);
            format!(r#"{{"city":"{city}","days":{},"units":"metric"}}"#, run % 9)
        });
        for call in &calls {
            self.push(format!(
                r#"{{"type":"TOOL_CALL_START","toolCallId":"{call}","toolCallName":"weather","parentMessageId":"{before}"}}"#
            ));
        }
        for part in 0..8 {
            for (call, arguments) in calls.iter().zip(&arguments) {
                let delta: String =
                    arguments.chars().skip(part * 6).take(if part == 7 { usize::MAX } else { 6 }).collect();
                self.push(format!(
                    r#"{{"type":"TOOL_CALL_ARGS","toolCallId":"{call}","delta":{}}}"#,
                    Value::from(delta)
                ));
            }
        }
        for call in &calls {
            self.push(format!(r#"{{"type":"TOOL_CALL_END","toolCallId":"{call}"}}"#));
        }
        for (index, call) in calls.iter().enumerate() {
            self.push(format!(
                r#"{{"type":"TOOL_CALL_RESULT","messageId":"result-{run}-{index}","toolCallId":"{call}","content":"sunny, 21 degrees","role":"tool"}}"#
            ));
        }
        for item in 0..4 {
            let (progress, done) = (25 * (item + 1), (run + item) % 8);
            self.patch(&format!(
                r#"[{{"op":"replace","path":"/progress","value":{progress}}},{{"op":"replace","path":"/plan/{done}/done","value":true}},{{"op":"add","path":"/log/-","value":"did item {item}"}},{{"op":"remove","path":"/log/0"}}]"#
            ));
        }
        self.push(r#"{"type":"CUSTOM","name":"trace","value":{"spans":3}}"#.to_owned());
        self.message(&format!("after-{run}"), 16, 8);
        self.patch(r#"[{"op":"replace","path":"/status","value":"done"}]"#);
        self.step("STEP_FINISHED", "act");
        self.run_finished(&run_id);
    }

    fn step(&mut self, kind: &str, name: &str) {
        self.push(format!(r#"{{"type":"{kind}","stepName":"{name}"}}"#));
    }

    fn patch(&mut self, operations: &str) {
        self.push(format!(r#"{{"type":"STATE_DELTA","delta":{operations}}}"#));
    }
}

/// A stream of lower-case letters and spaces that needs no escaping in JSON:
/// splitmix64, because it is five lines and good enough for filler.
struct Words(u64);

impl Words {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        // The remainder of a u64 by a usize fits a usize.
        (self.next() % bound as u64) as usize
    }

    /// `width` characters, one byte each.
    fn take(&mut self, width: usize) -> String {
        (0..width)
            .map(|_| match self.below(27) {
                26 => ' ',
                letter => char::from(b'a' + letter as u8),
            })
            .collect()
    }
}
