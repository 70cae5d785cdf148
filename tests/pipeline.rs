//! The pipeline reads common events in place; its stages, one by one, do not. Both say the same.

#![allow(missing_docs, reason = "a test")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod support;

use ag_ui_stream::machine::{Assembler, Compat, Enforcer, EventPipeline, Expander, Pipeline, Verifier};
use ag_ui_stream::snapshot::{Snapshot, Update};
use ag_ui_stream::{Error, Item, SequentialIds};
use proptest::prelude::*;
use serde_json::json;

/// Everything that came out, the error, and what the conversation came to.
type Outcome = (Vec<Item>, Option<Error>, Vec<String>);

fn outcome(items: Vec<Item>, error: Option<Error>, snapshot: &Snapshot) -> Outcome {
    (items, error, snapshot.messages().iter().map(|message| serde_json::to_string(message).unwrap()).collect())
}

fn whole(events: &[String]) -> Outcome {
    let mut pipeline = Pipeline::builder().ids(SequentialIds::new("id-")).build();
    let mut items = Vec::new();
    let mut error = None;
    for event in events {
        let pushed = pipeline.push(event.as_str());
        items.extend(std::iter::from_fn(|| pipeline.pop()).map(|update: Update| update.into_parts().0));
        if let Err(fault) = pushed {
            error = Some(fault);
            break;
        }
    }
    if error.is_none() {
        error = pipeline.finish().err();
        items.extend(std::iter::from_fn(|| pipeline.pop()).map(|update| update.into_parts().0));
    }
    outcome(items, error, pipeline.snapshot())
}

fn without_assembly(events: &[String]) -> (Vec<Item>, Option<Error>) {
    let mut pipeline = EventPipeline::builder().ids(SequentialIds::new("id-")).build_events();
    let mut items = Vec::new();
    for event in events {
        let pushed = pipeline.push(event.as_str());
        items.extend(std::iter::from_fn(|| pipeline.pop()));
        if let Err(fault) = pushed {
            return (items, Some(fault));
        }
    }
    let error = pipeline.finish().err();
    items.extend(std::iter::from_fn(|| pipeline.pop()));
    (items, error)
}

/// The machines one behind the other, each drained before the next input.
struct Stages {
    compat: Compat,
    enforcer: Enforcer,
    expander: Expander,
    verifier: Verifier,
    assembler: Assembler,
    items: Vec<Item>,
}

impl Stages {
    fn assemble(&mut self) {
        while let Some(item) = self.verifier.pop() {
            self.assembler.push(item).unwrap();
            self.items.extend(std::iter::from_fn(|| self.assembler.pop()).map(|update| update.into_parts().0));
        }
    }

    fn verify(&mut self) -> Result<(), Error> {
        while let Some(item) = self.expander.pop() {
            let pushed = self.verifier.push(item);
            self.assemble();
            pushed?;
        }
        Ok(())
    }

    fn expand(&mut self) -> Result<(), Error> {
        while let Some(item) = self.enforcer.pop() {
            let pushed = self.expander.push(item);
            self.verify()?;
            pushed?;
        }
        Ok(())
    }

    fn push(&mut self, event: &str) -> Result<(), Error> {
        self.compat.push(event)?;
        while let Some(raw) = self.compat.pop() {
            let pushed = self.enforcer.push(raw);
            self.expand()?;
            pushed?;
        }
        Ok(())
    }

    fn run(&mut self, events: &[String]) -> Result<(), Error> {
        events.iter().try_for_each(|event| self.push(event))?;
        self.expander.finish()?;
        self.verify()?;
        self.verifier.finish()
    }
}

fn one_by_one(events: &[String]) -> Outcome {
    let mut stages = Stages {
        compat: Compat::with_ids(SequentialIds::new("id-")),
        enforcer: Enforcer::new(),
        expander: Expander::new(),
        verifier: Verifier::new(),
        assembler: Assembler::new(),
        items: Vec::new(),
    };
    let error = stages.run(events).err();
    outcome(stages.items, error, stages.assembler.snapshot())
}

/// Events that belong together often enough to get somewhere, and go wrong now and then.
fn event() -> impl Strategy<Value = String> {
    let id = prop_oneof![4 => Just("a"), 2 => Just("b"), 1 => Just("")];
    let tag = prop_oneof![6 => Just(None), 1 => Just(Some("s")), 1 => Just(Some("t"))];
    let delta = prop_oneof![
        3 => Just(r"text".to_owned()),
        1 => Just(r"".to_owned()),
        1 => Just(r"a \ud83d".to_owned()),
        1 => Just(r"\ude00 b".to_owned()),
        1 => Just(r"a\n\u00e9 longer than what an event can store in itself".to_owned()),
    ];
    let extra = prop_oneof![
        12 => Just(""),
        1 => Just(r#","extra":1"#),
        1 => Just(r#","metadata":{"k":1}"#),
        1 => Just(r#","timestamp":17"#),
        1 => Just(r#","rawEvent":null"#),
    ];
    (0..16u8, id, tag, delta, extra).prop_map(|(kind, id, tag, delta, extra)| {
        let tag = tag.map(|tag| format!(r#","subagentRunId":"{tag}""#)).unwrap_or_default();
        match kind {
            0 => format!(r#"{{"type":"TEXT_MESSAGE_START","messageId":"{id}"{tag}{extra}}}"#),
            1..=3 => format!(r#"{{"type":"TEXT_MESSAGE_CONTENT","messageId":"{id}","delta":"{delta}"{tag}{extra}}}"#),
            4 => format!(r#"{{"type":"TEXT_MESSAGE_END","messageId":"{id}"{tag}{extra}}}"#),
            5..=7 => format!(r#"{{"type":"TEXT_MESSAGE_CHUNK","messageId":"{id}","delta":"{delta}"{tag}{extra}}}"#),
            8 => format!(r#"{{"type":"TEXT_MESSAGE_CHUNK","delta":"{delta}"{tag}{extra}}}"#),
            9 => format!(
                r#"{{ "messageId" : "{id}" , "delta" : "{delta}" , "type" : "TEXT_MESSAGE_CHUNK" {tag}{extra}}}"#
            ),
            10 => format!(
                r#"{{"type":"TOOL_CALL_CHUNK","toolCallId":"{id}","toolCallName":"f","delta":"{delta}"{tag}{extra}}}"#
            ),
            11 => format!(r#"{{"type":"REASONING_MESSAGE_CHUNK","messageId":"{id}","delta":"{delta}"{tag}{extra}}}"#),
            12 => format!(r#"{{"type":"STATE_SNAPSHOT","snapshot":{{"n":1}}{extra}}}"#),
            13 => format!(r#"{{"type":"RAW","event":"{delta}"{extra}}}"#),
            14 => format!(r#"{{"type":"THINKING_TEXT_MESSAGE_CONTENT","delta":"{delta}"}}"#),
            _ => format!(r#"{{"type":"FUTURE","x":"{delta}"}}"#),
        }
    })
}

proptest! {
    #![proptest_config(support::seeded(2000))]

    #[test]
    fn p1_the_pipeline_says_what_its_stages_say(middle in prop::collection::vec(event(), 0..12), ends in any::<bool>()) {
        let mut events = vec![json!({"type": "RUN_STARTED", "threadId": "t", "runId": "r"}).to_string()];
        events.extend(middle);
        if ends {
            events.push(json!({"type": "RUN_FINISHED", "threadId": "t", "runId": "r"}).to_string());
        }
        let (items, error, messages) = one_by_one(&events);
        let without_warnings_of_assembly: Vec<Item> = items
            .iter()
            .filter(|item| item.warning().is_none_or(|warning| !warning.rule.code().starts_with('A')))
            .cloned()
            .collect();
        prop_assert_eq!(whole(&events), (items, error.clone(), messages));
        prop_assert_eq!(without_assembly(&events), (without_warnings_of_assembly, error));
    }
}
