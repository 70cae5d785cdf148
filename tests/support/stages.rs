//! One stream of events through the whole pipeline, and through its stages one by one.

use ag_ui_stream::id::SequentialIds;
use ag_ui_stream::machine::{Assembler, Enforcer, Expander, Machine, Push, Upgrader, Verifier};
use ag_ui_stream::snapshot::{Snapshot, Update};
use ag_ui_stream::{Error, Item, Options};

/// Everything that came out, the error, and what the conversation came to.
pub type Outcome = (Vec<Item>, Option<Error>, Vec<String>);

fn outcome(items: Vec<Item>, error: Option<Error>, snapshot: &Snapshot) -> Outcome {
    (items, error, snapshot.messages().iter().map(|message| serde_json::to_string(message).unwrap()).collect())
}

pub fn whole(events: &[String]) -> Outcome {
    let mut pipeline = Options::new().ids(SequentialIds::new("id-")).build();
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

pub fn without_assembly(events: &[String]) -> (Vec<Item>, Option<Error>) {
    let mut pipeline = Options::new().ids(SequentialIds::new("id-")).build_events();
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

/// The machines one after the other, each drained before the next input.
struct Stages {
    upgrader: Upgrader,
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
        self.upgrader.push(event)?;
        while let Some(raw) = self.upgrader.pop() {
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

pub fn one_by_one(events: &[String]) -> Outcome {
    let mut stages = Stages {
        upgrader: Upgrader::new().with_ids(SequentialIds::new("id-")),
        enforcer: Enforcer::new(),
        expander: Expander::new(),
        verifier: Verifier::new(),
        assembler: Assembler::new(),
        items: Vec::new(),
    };
    let error = stages.run(events).err();
    outcome(stages.items, error, stages.assembler.snapshot())
}
