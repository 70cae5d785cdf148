//! Laws of assembly, on random legal streams of all events, with few ids, so that they collide.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "helpers of tests")]

mod support;

use ag_ui_stream::Event;
use ag_ui_stream::machine::{Assembler, Machine, Pipeline, Push, Recovery, Verifier};
use ag_ui_stream::snapshot::{ItemStatus, Snapshot, Update};
use proptest::prelude::*;
use serde_json::{Value, json};
use support::assembled::*;
use support::model::Model;
use support::*;

// Streams

/// Decisions, one after the other; 0 when they run out.
struct Tape<'t>(std::slice::Iter<'t, u16>);

impl Tape<'_> {
    fn pick(&mut self, choices: usize) -> usize {
        usize::from(self.0.next().copied().unwrap_or_default()) % choices
    }

    fn one<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.pick(of.len())].clone()
    }
}

/// The ids of all things, so that they meet.
const IDS: [&str; 4] = ["a", "b", "c", "d"];

fn message(tape: &mut Tape<'_>) -> Value {
    let id = tape.one(&IDS);
    let message = match tape.pick(8) {
        0 => user(id, "u"),
        1 => tool(id, tape.one(&IDS), "t"),
        2 => reasoned(id, "r"),
        3 => active(id, json!({"x": 1})),
        4 => with(user(id, ""), json!({"content": [{"type": "text", "text": "p"}]})),
        5 => with(user(id, ""), json!({"content": [{"type": "image", "source": {"type": "url", "value": "u"}}]})),
        _ => assistant(id, "m"),
    };
    if tape.pick(4) == 0 { by("s", message) } else { message }
}

fn patch(tape: &mut Tape<'_>) -> Value {
    let operations = (0..tape.pick(4)).map(|_| {
        let path = tape.one(&["/x", "/y", "/z"]);
        json!({"op": tape.one(&["add", "add", "replace", "remove"]), "path": path, "value": tape.pick(9)})
    });
    json!(operations.collect::<Vec<_>>())
}

/// The conversation, changed a little.
fn restated(tape: &mut Tape<'_>, model: &Model) -> Value {
    let mut copies: Vec<Value> = model.messages().into_iter().filter(|_| tape.pick(4) != 0).collect();
    if let (false, 0) = (copies.is_empty(), tape.pick(2)) {
        let (from, to) = (tape.pick(copies.len()), tape.pick(copies.len()));
        copies.swap(from, to);
    }
    for _ in 0..tape.pick(3) {
        let at = tape.pick(copies.len() + 1);
        copies.insert(at, message(tape));
    }
    messages_snapshot(json!(copies))
}

fn any_event(tape: &mut Tape<'_>, model: &Model) -> Value {
    let id = tape.one(&IDS);
    let text = tape.one(&["", "x", "yz", "\u{e9}"]);
    let event = match tape.pick(34) {
        0..=2 => text_start(id),
        3 => with(text_start(id), json!({"role": tape.one(&["user", "system", "developer", "assistant"])})),
        4..=8 => delta(id, text),
        9 | 10 => text_end(id),
        11 | 12 => thought_start(id),
        13..=15 => thought(id, text),
        16 => thought_end(id),
        17 => call_start(id),
        18 => with(call_start(id), json!({"parentMessageId": tape.one(&IDS)})),
        19 | 20 => args(id, text),
        21 => call_end(id),
        22 | 23 => result(id, tape.one(&IDS), json!(text)),
        24 => activity(id, json!({"x": tape.pick(9)})),
        25 => with(activity(id, json!({"y": 1})), json!({"replace": false})),
        26 => activity_patch(id, patch(tape)),
        27 => encrypted_value(tape.one(&["message", "tool-call"]), id),
        28 => state_patch(patch(tape)),
        29 => state(tape.one(&[json!({"x": 1}), json!(null), json!([1])])),
        30 => restated(tape, model),
        31 => {
            tape.one(&[custom(), raw(), step_started("p"), step_finished("p"), reasoning_start(id), reasoning_end(id)])
        }
        32 => tape.one(&[run_finished(), run_error(), subagent_started(id), subagent_finished(id)]),
        _ => match tape.pick(2) {
            0 => run_started(),
            _ => {
                let messages: Vec<Value> = (0..tape.pick(4)).map(|_| message(tape)).collect();
                with(run_started(), json!({"input": {"threadId": "t", "runId": "r", "messages": messages}}))
            }
        },
    };
    let is_streamed = event.get("messageId").is_some() || event.get("toolCallId").is_some();
    let tag = tape.pick(6);
    let event = if is_streamed && tag == 0 { by("s", event) } else { event };
    if is_streamed && tape.pick(6) == 0 {
        with(event, json!({"metadata": {tape.one(&IDS): tape.pick(9)}}))
    } else {
        event
    }
}

/// Says of each event whether it may come next.
#[derive(Default)]
struct Judge(Verifier, Vec<Event>);

impl Judge {
    fn allows(&mut self, json: &Value) -> bool {
        let event = event(json.clone());
        if self.0.push(event.clone()).is_ok() {
            self.1.push(event);
            return true;
        }
        if self.0.recover() == Some(Recovery::Forced) {
            self.0 = Verifier::new();
            self.1.iter().for_each(|event| self.0.push(event.clone()).unwrap());
        }
        false
    }
}

/// What closes everything that may be open.
fn ends(model: &Model) -> Vec<Value> {
    let items = model.open().map(|(kind, id)| match kind {
        "TEXT_MESSAGE" => text_end(id),
        "REASONING_MESSAGE" => thought_end(id),
        _ => call_end(id),
    });
    let brackets = IDS.iter().flat_map(|id| [reasoning_end(id), subagent_finished(id)]);
    items.chain(brackets).chain([step_finished("p")]).collect()
}

/// A legal stream of runs, the last of which may still be active, and the model after it.
fn stream(tape: &[u16]) -> (Vec<Value>, Model) {
    let mut tape = Tape(tape.iter());
    let mut model = Model::default();
    let mut judge = Judge::default();
    assert!(judge.allows(&run_started()));
    let mut events = vec![run_started()];
    while !tape.0.as_slice().is_empty() {
        let event = any_event(&mut tape, &model);
        // A run may finish once everything is closed; left to chance it hardly ever would be.
        let closing = if event["type"] == "RUN_FINISHED" { ends(&model) } else { Vec::new() };
        for event in closing.into_iter().chain([event]) {
            if judge.allows(&event) {
                model.apply(&event, events.len() as u64);
                events.push(event);
            }
        }
    }
    (events, model)
}

fn tapes() -> impl Strategy<Value = Vec<u16>> {
    proptest::collection::vec(any::<u16>(), 0..800)
}

/// What assembly makes of events, without verification.
fn assembled(events: &[Event]) -> (Snapshot, Vec<Update>) {
    let mut assembler = Assembler::new();
    events.iter().cloned().for_each(|event| assembler.push(event).unwrap());
    let updates = std::iter::from_fn(|| assembler.pop()).collect();
    (assembler.snapshot().clone(), updates)
}

fn has_twins(snapshot: &Snapshot) -> bool {
    let mut seen = std::collections::HashSet::new();
    !snapshot.messages().iter().all(|message| seen.insert(message.id()))
}

/// Everything that can be asked of a snapshot, as values that share nothing with it.
fn copy(snapshot: &Snapshot) -> (Vec<Value>, Value, String, Vec<[Option<ItemStatus>; 2]>) {
    let statuses = IDS.map(|id| [snapshot.message_status(id), snapshot.tool_call_status(id)]);
    let runs = format!("{:?}", snapshot.runs().collect::<Vec<_>>());
    (messages(snapshot), snapshot.state().to_value(), runs, statuses.to_vec())
}

proptest! {
    #![proptest_config(seeded(400))]

    #[test]
    fn assembly_agrees_with_the_model_after_every_event(tape in tapes()) {
        let (events, _) = stream(&tape);
        let mut model = Model::default();
        let mut pipeline = Pipeline::new();
        let mut warned = Vec::new();
        for (index, event) in (0..).zip(&events) {
            pipeline.push(event).unwrap();
            let warnings = std::iter::from_fn(|| pipeline.pop()).filter_map(|update| update.warning().cloned());
            warned.extend(warnings.map(|warning| (warning.rule, warning.event)));
            model.apply(event, index);
            let about = || events[..=index as usize].iter().map(|event| format!("\n{event}")).collect::<String>();
            let snapshot = pipeline.snapshot();
            prop_assert_eq!(messages(snapshot), model.messages(), "{}", about());
            prop_assert_eq!(snapshot.state(), &model.state, "{}", about());
            prop_assert_eq!(&warned, &model.warned, "{}", about());
            if let "RUN_FINISHED" | "RUN_ERROR" = model::text(event, "type") {
                let pending: Vec<String> = snapshot.run().unwrap().pending_tool_call_ids().iter().map(ToString::to_string).collect();
                prop_assert_eq!(&pending, &model.pending);
            }
        }
    }

    #[test]
    fn what_streams_has_the_status_of_it(tape in tapes()) {
        // From the events alone: the open item of an id determines its message and call.
        let (events, _) = stream(&tape);
        let updates = assemble_with(builder(), &events).updates;
        for update in updates.iter().filter(|update| update.event().is_some()) {
            let snapshot = update.snapshot();
            let run = snapshot.run().unwrap();
            for id in IDS {
                let is_open = run.is_running() && run.open().any(|item| item.id() == id);
                for status in [snapshot.message_status(id), snapshot.tool_call_status(id)] {
                    prop_assert!(is_open || status != Some(ItemStatus::Streaming), "{} {:?}", id, update.item());
                }
            }
        }
    }

    #[test]
    fn a8_held_snapshots_never_change_and_make_no_difference(tape in tapes()) {
        let (events, _) = stream(&tape);
        let mut held: Vec<(Snapshot, _)> = Vec::new();
        let (mut holding, mut letting_go) = (Pipeline::new(), Pipeline::new());
        for event in &events {
            holding.push(event).unwrap();
            letting_go.push(event).unwrap();
            while let Some(update) = holding.pop() {
                held.push((update.snapshot().clone(), copy(update.snapshot())));
            }
            while letting_go.pop().is_some() {}
            prop_assert_eq!(copy(holding.snapshot()), copy(letting_go.snapshot()));
        }
        for (snapshot, expected) in &held {
            prop_assert_eq!(&copy(snapshot), expected);
        }
    }

    #[test]
    fn a2_a_snapshot_of_the_conversation_changes_nothing_wherever_it_comes(tape in tapes(), at in any::<prop::sample::Index>()) {
        let (events, _) = stream(&tape);
        let events: Vec<Event> = events.into_iter().map(event).collect();
        let at = at.index(events.len()) + 1;
        let (so_far, _) = assembled(&events[..at]);
        // Messages of one id are one in a MESSAGES_SNAPSHOT (rule A10).
        prop_assume!(!has_twins(&so_far));
        let [own, _] = so_far.to_events();
        let mut with_own = events.clone();
        with_own.insert(at, own);
        let ((straight, quiet), (detour, told)) = (assembled(&events), assembled(&with_own));
        prop_assert_eq!(messages(&straight), messages(&detour));
        prop_assert_eq!(straight.state(), detour.state());
        let warned = |updates: &[Update]| updates.iter().filter_map(Update::warning).map(|warning| warning.message.clone()).collect::<Vec<_>>();
        prop_assert_eq!(warned(&quiet), warned(&told));
        // And on top of itself, all at once.
        prop_assert_eq!(messages(&so_far), messages(&assembled(&with_own[..=at]).0));
    }

    #[test]
    fn two_subagents_give_each_the_same_messages_however_they_interleave(
        left in proptest::collection::vec((0..4_usize, 0..3_usize), 0..12),
        right in proptest::collection::vec((0..4_usize, 0..3_usize), 0..12),
        order in proptest::collection::vec(any::<bool>(), 0..200),
    ) {
        // Each owner's messages in their order. Between owners the order is that of arrival, and a
        // result for an unknown call goes to the very end, so there are none here.
        let [left, right] = [("s", left), ("t", right)].map(|(owner, items)| subagent(owner, &items));
        let alone = |events: &[Value]| messages(&assemble_run(events.iter().cloned()).snapshot);
        let mut mixed = Vec::new();
        let (mut lefts, mut rights, mut order) = (left.iter(), right.iter(), order.into_iter());
        loop {
            let next = if order.next().unwrap_or(true) { lefts.next().or_else(|| rights.next()) } else { rights.next().or_else(|| lefts.next()) };
            let Some(next) = next else { break };
            mixed.push(next.clone());
        }
        let snapshot = assemble_run(mixed).snapshot;
        for (owner, events) in [("s", &left), ("t", &right)] {
            let owner = owner.into();
            let own: Vec<Value> = snapshot.messages_of(Some(&owner)).map(|message| serde_json::to_value(message).unwrap()).collect();
            prop_assert_eq!(own, alone(events));
        }
        prop_assert_eq!(snapshot.messages().len(), alone(&left).len() + alone(&right).len());
    }

    #[test]
    fn c1_chunks_give_the_events_and_messages_of_the_explicit_spelling(
        items in proptest::collection::vec((0..3_usize, any::<bool>(), proptest::collection::vec("[a-z\u{e9}]{1,3}", 1..4)), 0..8),
    ) {
        let (mut chunked, mut explicit) = (Vec::new(), Vec::new());
        for (at, (kind, is_tagged, deltas)) in items.iter().enumerate() {
            let id = format!("i{at}");
            let tagged = |event: Value| if *is_tagged { by("s", event) } else { event };
            let (kind, key) = [("TEXT_MESSAGE", "messageId"), ("TOOL_CALL", "toolCallId"), ("REASONING_MESSAGE", "messageId")][*kind];
            let middle = if kind == "TOOL_CALL" { "ARGS" } else { "CONTENT" };
            let of = |part: &str, members: Value| tagged(with(json!({"type": format!("{kind}_{part}"), key: id}), members));
            let opening = match kind {
                "TOOL_CALL" => json!({"toolCallName": "f"}),
                "TEXT_MESSAGE" => json!({"role": "user"}),
                _ => json!({}),
            };
            let started = if kind == "REASONING_MESSAGE" { json!({"role": "reasoning"}) } else { opening.clone() };
            explicit.push(of("START", started));
            for (at, delta) in deltas.iter().enumerate() {
                let delta = json!({"delta": delta, "metadata": {"n": at}});
                if at == 0 {
                    let first = explicit.len() - 1;
                    explicit[first] = with(explicit[first].clone(), json!({"metadata": {"n": 0}}));
                }
                explicit.push(of(middle, delta.clone()));
                chunked.push(if at == 0 { of("CHUNK", with(delta, opening.clone())) } else { of("CHUNK", delta) });
            }
            explicit.push(of("END", json!({})));
            // In any lane, the next event closes the chunks.
            chunked.push(tagged(custom()));
            explicit.push(tagged(custom()));
        }
        let (chunked, explicit) = (assemble_run(chunked), assemble_run(explicit));
        prop_assert_eq!(chunked.messages(), explicit.messages());
        let events = |assembled: &Assembled| assembled.updates.iter().filter_map(Update::event).map(|event| serde_json::to_value(event).unwrap()).collect::<Vec<_>>();
        prop_assert_eq!(events(&chunked), events(&explicit));
    }
}

/// What one subagent sends: texts, thoughts, calls with results, activities, all of its own.
fn subagent(owner: &str, items: &[(usize, usize)]) -> Vec<Value> {
    let mut events = vec![subagent_started(owner)];
    for (at, (kind, variant)) in items.iter().enumerate() {
        let id = format!("{owner}{at}");
        events.extend(match kind {
            0 => text(&id, &"x".repeat(*variant)).to_vec(),
            1 => reasoning(&id, "hm").to_vec(),
            2 => {
                let results = (0..*variant).map(|number| result(&format!("{id}r{number}"), &id, json!("x")));
                call(&id, "{}").into_iter().chain(results).collect()
            }
            _ => vec![activity(&id, json!({"x": 1})), activity_patch(&id, json!([{"op": "remove", "path": "/x"}]))],
        });
    }
    let mut events: Vec<Value> = events.into_iter().map(|event| by(owner, event)).collect();
    events.push(subagent_finished(owner));
    events
}
