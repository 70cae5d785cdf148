//! Snapshots and updates: rule A8, look-ups, the changes that an update tells of, and `to_events`.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "helpers of tests")]

mod support;

use ag_ui_stream::Message;
use ag_ui_stream::machine::{Assembler, Machine, Pipeline, Push};
use ag_ui_stream::message::Role;
use ag_ui_stream::snapshot::{ItemStatus, Snapshot, Update};
use serde_json::{Value, json};
use support::assembled::*;
use support::*;

/// Some of everything, with every way in which messages are replaced, moved and dropped.
fn mixed() -> Vec<Value> {
    let under = |parent: &str, event: Value| with(event, json!({"parentMessageId": parent}));
    let mut events = vec![run_started(), step_started("p"), text_start("m"), delta("m", "a"), delta("m", "b")];
    events.extend([subagent_started("s"), by("s", under("t", call_start("c"))), args("c", "{"), args("c", "1")]);
    events.extend([
        delta("m", "c"),
        thought_start("m"),
        thought("m", "x"),
        thought("m", "y"),
        args("c", "}"),
        call_end("c"),
    ]);
    events.extend([result("r", "c", json!("1")), text_end("m"), activity("act", json!({"n": 1}))]);
    events.extend([
        activity_patch("act", json!([{"op": "replace", "path": "/n", "value": 2}])),
        state(json!({"l": [1]})),
    ]);
    events.extend([state_patch(json!([{"op": "add", "path": "/l/-", "value": 2}])), encrypted_value("tool-call", "c")]);
    events.extend([result("r2", "c", json!("2")), result("r", "c", json!("3")), thought_end("m")]);
    events.extend([by("s", text_start("u")), with(by("s", delta("u", "x")), json!({"metadata": {"k": 1}}))]);
    events.extend([delta("u", "x"), delta("u", "y")]);
    let copies =
        [by("s", assistant("u", "XY")), by("s", caller("t", &[("c", "{}")])), tool("r", "c", "9"), user("new", "x")];
    events.extend([messages_snapshot(json!(copies)), delta("u", "z"), delta("u", "z"), activity("new", json!({}))]);
    events.extend([by("s", text_end("u")), subagent_finished("s"), step_finished("p"), run_finished()]);
    events.extend([run_started(), text_start("u"), delta("u", "!"), call_start("open"), run_error()]);
    events
}

/// A snapshot in full, as values that share nothing with it.
fn copy(snapshot: &Snapshot) -> (Vec<Value>, Value, String, Vec<Option<ItemStatus>>) {
    let ids = ["m", "t", "r", "r2", "u", "act", "new", "open"];
    let statuses = ids
        .map(|id| snapshot.message_status(id))
        .into_iter()
        .chain(["c", "open"].map(|id| snapshot.tool_call_status(id)));
    let runs = format!("{:?}", snapshot.runs().collect::<Vec<_>>());
    (messages(snapshot), snapshot.state().to_value(), runs, statuses.collect())
}

#[test]
fn a8_a_held_snapshot_never_changes() {
    let mut pipeline = Pipeline::new();
    let mut held: Vec<(Snapshot, _)> = Vec::new();
    for event in &mixed() {
        pipeline.push(event).unwrap();
        while let Some(update) = pipeline.pop() {
            held.push((update.snapshot().clone(), copy(update.snapshot())));
        }
        for (snapshot, expected) in &held {
            assert_eq!(copy(snapshot), *expected);
        }
    }
}

#[test]
fn a8_whether_snapshots_are_held_makes_no_difference() {
    let events = mixed();
    let held = assemble(&events).updates;
    let mut pipeline = Pipeline::new();
    let mut seen = held.iter();
    for event in &events {
        pipeline.push(event).unwrap();
        while let Some(update) = pipeline.pop() {
            let other = seen.next().unwrap();
            assert_eq!(update.item(), other.item());
            assert_eq!(copy(update.snapshot()), copy(other.snapshot()));
            assert_eq!((update.message_index(), update.is_change()), (other.message_index(), other.is_change()));
        }
    }
    assert!(seen.next().is_none());
}

#[test]
fn an_update_marks_what_its_event_changed() {
    let assembled = assemble(&mixed());
    let mut before = Snapshot::default();
    for update in &assembled.updates {
        let after = update.snapshot();
        let (old, new) = (messages(&before), messages(after));
        let status = |snapshot: &Snapshot, id: &str| (snapshot.message_status(id), snapshot.tool_call_status(id));
        let same_state = before.state() == after.state();
        let same_runs = before.runs().eq(after.runs());
        // Warnings come first, with the conversation after their event.
        if update.warning().is_some() {
            assert!(!update.is_change() && update.event().is_none());
            continue;
        }
        let about = format!("{:?}", update.item());
        assert_eq!(update.changed_state(), !same_state, "{about}");
        assert!(update.changed_run() || same_runs, "{about}");
        match (update.message(), update.message_index()) {
            (Some(message), Some(index)) => {
                assert!(update.changed_messages());
                assert_eq!(after.messages().get(index), Some(message), "{about}");
                // Every other message is unchanged.
                let id = message.id().as_str();
                let others =
                    |all: &[Value]| all.iter().filter(|message| message["id"] != id).cloned().collect::<Vec<_>>();
                assert_eq!(others(&old), others(&new), "{about}");
                for other in after.messages().iter().filter(|other| *other.id() != id) {
                    assert_eq!(status(&before, other.id().as_str()).0, status(after, other.id().as_str()).0);
                }
            }
            (None, None) if update.changed_messages() => {}
            (None, None) => assert_eq!(old, new, "{about}"),
            other => panic!("{other:?} {about}"),
        }
        let changed = update.changed();
        assert_eq!(changed.is_some(), update.is_change());
        if let Some(changed) = changed {
            assert_eq!((changed.message(), changed.message_index()), (update.message(), update.message_index()));
        }
        assert!(update.clone().into_snapshot().ptr_eq(after));
        assert_eq!(update.clone().into_event().as_ref(), update.event());
        before = after.clone();
    }
    assert_eq!(before, assembled.snapshot);
}

#[test]
fn messages_are_found_by_id_by_place_and_in_order() {
    let snapshot = assemble(&mixed()).snapshot;
    let all: Vec<&Message> = snapshot.messages().iter().collect();
    assert_eq!(snapshot.messages().len(), all.len());
    assert_eq!(snapshot.messages().iter().rev().collect::<Vec<_>>(), all.iter().rev().copied().collect::<Vec<_>>());
    assert_eq!(snapshot.messages().into_iter().len(), all.len());
    for (index, message) in all.iter().enumerate() {
        assert_eq!(snapshot.messages().get(index), Some(*message));
        assert_eq!(snapshot.message(message.id()).unwrap().id(), message.id());
    }
    assert_eq!(snapshot.messages().first(), all.first().copied());
    assert_eq!(snapshot.messages().last(), all.last().copied());
    assert_eq!(snapshot.messages().get(all.len()), None);
    assert_eq!((snapshot.message("none"), snapshot.message_status("none")), (None, None));
    assert_eq!(serde_json::to_value(snapshot.messages()).unwrap(), json!(messages(&snapshot)));
    let empty = Snapshot::default();
    assert_eq!((empty.messages().first(), empty.messages().last(), empty.messages().is_empty()), (None, None, true));
}

#[test]
fn a_message_that_grows_is_found_like_any_other() {
    let assembled =
        assemble_open([text_start("a"), text_start("b"), delta("a", "x"), delta("a", "y"), delta("a", "z")]);
    let snapshot = &assembled.snapshot;
    assert_eq!(snapshot.message("a").unwrap().text().unwrap(), "xyz");
    assert_eq!(messages(snapshot), [assistant("a", "xyz"), assistant("b", "")]);
    assert_eq!(snapshot.messages().get(0), snapshot.message("a"));
    assert_eq!(assembled.at(5).message_index(), Some(0));
    assert_eq!(assembled.at(5).message().unwrap().text().unwrap(), "xyz");
}

#[test]
fn tool_calls_are_found_by_id() {
    let under = with(call_start("b"), json!({"parentMessageId": "m"}));
    let assembled = assemble_open([call_start("a"), call_end("a"), under, args("b", "1")]);
    let snapshot = &assembled.snapshot;
    assert_eq!(snapshot.tool_call("b").unwrap().function.arguments, "1");
    assert_eq!(snapshot.tool_call_message("b").unwrap().id(), "m");
    assert_eq!(snapshot.tool_call_status("a"), Some(ItemStatus::Complete));
    assert_eq!(snapshot.tool_call_status("b"), Some(ItemStatus::Streaming));
    assert_eq!(snapshot.message("m").unwrap().tool_calls().map(|call| call.id.to_string()).collect::<Vec<_>>(), ["b"]);
    assert_eq!((snapshot.tool_call("m"), snapshot.tool_call_status("m")), (None, None));
}

#[test]
fn messages_are_grouped_by_owner() {
    let events = [
        text("a", "1").to_vec(),
        text("b", "2").map(|e| by("s", e)).to_vec(),
        text("c", "3").to_vec(),
        text("d", "4").map(|e| by("t", e)).to_vec(),
        text("e", "5").map(|e| by("s", e)).to_vec(),
    ];
    let snapshot = assemble_run(events.concat()).snapshot;
    let groups: Vec<_> = snapshot
        .messages_by_owner()
        .into_iter()
        .map(|(owner, messages)| {
            (owner.map(ToString::to_string), messages.iter().map(|m| m.id().to_string()).collect::<Vec<_>>())
        })
        .collect();
    let ids = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
    assert_eq!(
        groups,
        [(None, ids(&["a", "c"])), (Some("s".into()), ids(&["b", "e"])), (Some("t".into()), ids(&["d"]))]
    );
    let owner = "s".into();
    assert_eq!(snapshot.messages_of(Some(&owner)).count(), 2);
    assert_eq!(snapshot.messages_of(None).count(), 2);
}

#[test]
fn the_text_of_a_message_is_without_its_other_parts() {
    let parts = json!([{"type": "text", "text": "a"}, {"type": "image", "source": {"type": "url", "value": "u"}}, {"type": "text", "text": "b"}]);
    let image = json!([{"type": "image", "source": {"type": "url", "value": "u"}}]);
    for (message, expected) in [
        (with(user("m", ""), json!({"content": parts})), Some("ab")),
        (with(tool("m", "c", ""), json!({"content": parts})), Some("ab")),
        (with(user("m", ""), json!({"content": image})), None),
        (caller("m", &[("c", "")]), None),
        (assistant("m", "x"), Some("x")),
        (reasoned("m", "x"), Some("x")),
        (active("m", json!({"text": "x"})), None),
    ] {
        let message = &typed(&[message])[0];
        assert_eq!(message.text().map(|text| text.to_string()).as_deref(), expected, "{message:?}");
    }
    assert_eq!(typed(&[reasoned("m", "x")])[0].role(), Role::Reasoning);
}

#[test]
fn a_snapshot_rebuilds_the_conversation_in_another_consumer() {
    // While a run is active, with open items.
    let events = mixed();
    for end in 1..events.len() {
        let mut pipeline = Pipeline::new();
        events[..end].iter().for_each(|event| pipeline.push(event).unwrap());
        let snapshot = pipeline.snapshot().clone();
        // A MESSAGES_SNAPSHOT cannot carry two messages of one id (rule A10).
        if snapshot.messages().iter().filter(|message| *message.id() == "m").count() > 1 {
            continue;
        }
        let mut other = Pipeline::new();
        other.push(run_started()).unwrap();
        for event in snapshot.to_events() {
            // Over the wire, as another consumer gets it.
            other.push(serde_json::to_value(event).unwrap()).unwrap();
        }
        assert_eq!(messages(other.snapshot()), messages(&snapshot), "{end}");
        assert_eq!(other.snapshot().state(), snapshot.state());
        let warnings = std::iter::from_fn(|| other.pop()).filter(|u| u.warning().is_some()).count();
        assert_eq!(warnings, 0);
    }
}

#[test]
fn a_server_s_own_events_are_assembled_without_verification() {
    let mut assembler = Assembler::new();
    for json in in_run(text("m", "x")) {
        assembler.push(event(json)).unwrap();
    }
    // Events out of order are ignored.
    for json in
        [delta("m", "y"), text_end("m"), args("c", "z"), call_end("c"), step_finished("p"), subagent_finished("s")]
    {
        assembler.push(event(json)).unwrap();
    }
    assert_eq!(messages(assembler.snapshot()), [assistant("m", "x")]);
    let updates: Vec<Update> = std::iter::from_fn(|| assembler.pop()).collect();
    assert_eq!(updates.len(), 11);
    assert!(updates[5..9].iter().all(|update| !update.changed_messages()));
}

#[test]
fn snapshots_are_compared_by_what_they_say() {
    let (a, b) = (assemble(&mixed()).snapshot, assemble(&mixed()).snapshot);
    assert_eq!(a, b);
    assert!(!a.ptr_eq(&b) && a.ptr_eq(&a.clone()));
    assert_ne!(a, Snapshot::default());
}

#[test]
fn r6_open_items_are_abandoned_whatever_ends_the_run() {
    // As after `Verifier::recover`, which forces a run to begin or to end.
    for next in [run_started(), run_finished(), run_error()] {
        let mut assembler = Assembler::new();
        let open = [run_started(), text_start("m"), delta("m", "x"), thought_start("t"), call_start("c"), next];
        for json in open.into_iter().chain([delta("m", "y"), thought("t", "y"), args("c", "y")]) {
            assembler.push(event(json)).unwrap();
        }
        let snapshot = assembler.snapshot();
        assert_eq!(messages(snapshot), [assistant("m", "x"), reasoned("t", ""), caller("c", &[("c", "")])]);
        assert_eq!(["m", "t"].map(|id| snapshot.message_status(id)), [Some(ItemStatus::Abandoned); 2]);
        assert_eq!(snapshot.tool_call_status("c"), Some(ItemStatus::Abandoned));
        assert!(!snapshot.runs().next().unwrap().is_running());
    }
}

/// Many messages that grow in turns, close and open again, while a reader holds now nothing, now
/// every snapshot: each shows what had come by then, for good.
#[test]
fn messages_that_take_turns_under_any_reader() {
    const MESSAGES: usize = 80;
    /// The expected text and status of a message; absent before its first START.
    type Said = Option<(String, ItemStatus)>;
    let mut seed = 7u64;
    let mut below = move |end: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(seed >> 33).unwrap() % end
    };
    let mut pipeline = Pipeline::new();
    let mut push = |event: Value| -> Update {
        pipeline.push(&event).unwrap();
        pipeline.pop().unwrap()
    };
    push(json!({"type": "RUN_STARTED", "threadId": "t", "runId": "r"}));
    let mut model: Vec<Said> = vec![None; MESSAGES];
    let mut order: Vec<usize> = Vec::new();
    let mut held: Vec<(Snapshot, Vec<Said>, Vec<usize>)> = Vec::new();
    let check = |snapshot: &Snapshot, model: &[Said], order: &[usize]| {
        let ids: Vec<String> = snapshot.messages().iter().map(|message| message.id().to_string()).collect();
        assert_eq!(ids, order.iter().map(|at| format!("m{at}")).collect::<Vec<_>>());
        for (at, expected) in model.iter().enumerate() {
            let id = format!("m{at}");
            let found = snapshot.message(&id).map(|message| message.text().unwrap().to_string());
            let found = found.zip(snapshot.message_status(&id));
            assert_eq!(found, *expected, "{id}");
        }
        let texts = snapshot.messages().iter().map(|message| message.text().unwrap().to_string());
        let expected = order.iter().map(|at| model[*at].as_ref().unwrap().0.clone());
        assert!(texts.eq(expected));
    };
    let (mut active, mut patience) = (MESSAGES, 0);
    for step in 0..6000 {
        // Phases: few messages or many take turns, and a reader holds none, some or all.
        if step % 200 == 0 {
            active = [1, 2, 5, MESSAGES][below(4)];
            patience = [0, 1, 30][below(3)];
            if below(3) == 0 {
                held.clear();
            }
        }
        let at = below(active);
        let id = format!("m{at}");
        let update = match &mut model[at] {
            Some((_, status @ ItemStatus::Streaming)) if below(40) == 0 => {
                *status = ItemStatus::Complete;
                push(json!({"type": "TEXT_MESSAGE_END", "messageId": id}))
            }
            Some((text, ItemStatus::Streaming)) => {
                let delta = "abcdefgh".get(..1 + below(8)).unwrap();
                text.push_str(delta);
                push(json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": id, "delta": delta}))
            }
            slot => {
                if slot.is_none() {
                    order.push(at);
                }
                let text = slot.take().map_or_else(String::new, |(text, _)| text);
                *slot = Some((text, ItemStatus::Streaming));
                push(json!({"type": "TEXT_MESSAGE_START", "messageId": id}))
            }
        };
        assert_eq!(update.message().unwrap().text().unwrap(), model[at].as_ref().unwrap().0);
        if patience == 1 || (patience > 1 && below(patience) == 0) {
            held.push((update.into_parts().1, model.clone(), order.clone()));
        } else if below(50) == 0 {
            check(update.snapshot(), &model, &order);
        }
    }
    let failed = push(json!({"type": "RUN_ERROR", "message": "x"}));
    for (_, status) in model.iter_mut().flatten() {
        if *status == ItemStatus::Streaming {
            *status = ItemStatus::Abandoned;
        }
    }
    check(failed.snapshot(), &model, &order);
    assert!(held.len() > 100, "{}", held.len());
    for (snapshot, model, order) in &held {
        check(snapshot, model, order);
    }
}

#[test]
fn an_update_says_what_its_event_did_to_which_item() {
    let events = [
        run_started(),
        text_start("m"),
        delta("m", "x"),
        delta("m", ""),
        text_end("m"),
        by("s", call_start("c")),
        args("c", "{}"),
        encrypted_value("tool-call", "c"),
        call_end("c"),
        result("t", "c", json!("1")),
        thought_start("r"),
        encrypted_value("message", "r"),
        thought_end("r"),
        activity("v", json!({})),
        activity("v", json!({})),
        state(json!(1)),
        state_patch(json!([])),
        step_started("p"),
        step_finished("p"),
        messages_snapshot(json!([])),
        custom(),
        run_error(),
    ];
    let assembled = assemble(&events);
    let told = |at: usize| {
        let effect = assembled.at(at as u64).effect()?;
        Some(format!("{:?} {} {:?}", effect.action, effect.kind, effect.id))
    };
    let expected = [
        "Opened run \"r\"",
        "Opened text message \"m\"",
        "Extended text message \"m\"",
        "",
        "Closed text message \"m\"",
        "Opened tool call \"c\"",
        "Extended tool call \"c\"",
        "Set tool call \"c\"",
        "Closed tool call \"c\"",
        "Set tool call \"c\"",
        "Opened reasoning message \"r\"",
        "Set reasoning message \"r\"",
        "Closed reasoning message \"r\"",
        "Set activity \"v\"",
        "",
        "Set state \"\"",
        "",
        "Opened step \"p\"",
        "Closed step \"p\"",
        "",
        "",
        "Closed run \"r\"",
    ];
    for (at, expected) in expected.into_iter().enumerate() {
        assert_eq!(told(at).unwrap_or_default(), expected, "{}", events[at]);
    }
    for at in [5, 6, 7, 8, 9] {
        assert_eq!(assembled.at(at).tool_call().unwrap().id.as_str(), "c");
    }
    assert_eq!(assembled.at(6).tool_call().unwrap().function.arguments, "{}");
    assert!(assembled.at(4).tool_call().is_none());
}

#[test]
fn debug_is_short_and_alternate_debug_is_whole() {
    let long = "long ".repeat(500);
    let mut events: Vec<Value> = text("m", &long).into();
    events.push(state(json!({"a": long})));
    let assembled = assemble_run(events);
    for at in 0..5 {
        let update = assembled.at(at);
        let short = format!("{update:?}");
        assert!(short.len() < 300 && short.contains("Snapshot"), "{short}");
        assert!(format!("{update:#?}").len() > short.len());
    }
    assert!(format!("{:#?}", assembled.snapshot).contains(&long));
}
