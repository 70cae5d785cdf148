//! All streams that `tests/data` holds, as they were sent.

use std::path::{Path, PathBuf};

use ag_ui_stream::Options;
use ag_ui_stream::codec::{Decoder, JsonLinesDecoder, SseDecoder};
use ag_ui_stream::id::SequentialIds;
use ag_ui_stream::machine::{Pipeline, Push};
use ag_ui_stream::{Message, RawItem};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// A stream, and the conversation from before it.
pub struct Recorded {
    pub name: String,
    pub events: Vec<RawItem>,
    messages: Vec<Message>,
    state: Option<Value>,
}

#[derive(Deserialize)]
struct Fixture {
    #[serde(default)]
    stream: Vec<Box<RawValue>>,
    raw: Option<String>,
    #[serde(default)]
    input: Input,
}

#[derive(Default, Deserialize)]
struct Input {
    messages: Option<Box<RawValue>>,
    state: Option<Value>,
}

impl Recorded {
    /// A stream without anything before it.
    pub fn new(name: impl Into<String>, events: impl IntoIterator<Item = String>) -> Self {
        let events = (0..).zip(events).map(|(index, text)| RawItem::Event { raw: text.into(), index }).collect();
        Self { name: name.into(), events, messages: Vec::new(), state: None }
    }

    /// A pipeline for it.
    pub fn builder(&self) -> Options {
        let builder = Options::new().ids(SequentialIds::new("generated-")).history(self.messages.iter().cloned());
        self.state.iter().fold(builder, |builder, state| builder.state(state.clone()))
    }
}

fn files(folder: &str, extension: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(folder);
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|found| found == extension));
    paths.sort();
    paths
}

fn decoded(mut decoder: Decoder, bytes: &[u8]) -> Vec<RawItem> {
    let mut events = Vec::new();
    let _ = decoder.push(bytes);
    events.extend(std::iter::from_fn(|| decoder.pop()));
    let _ = decoder.finish();
    events.extend(std::iter::from_fn(|| decoder.pop()));
    events
}

/// The conformance streams, the cases from public reports, and the captures of producers.
pub fn recorded() -> Vec<Recorded> {
    let mut all = Vec::new();
    for folder in ["conformance/streams", "conformance/draft", "cases"] {
        for path in files(folder, "json") {
            let fixture: Fixture = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
            let name = path.file_stem().unwrap().to_string_lossy();
            let texts = fixture.stream.iter().map(|raw| raw.get().to_owned());
            let mut stream = Recorded::new(name, texts);
            if let Some(raw) = &fixture.raw {
                let is_lines = raw.starts_with('{');
                let decoder = if is_lines { JsonLinesDecoder::new().into() } else { SseDecoder::new().into() };
                stream.events = decoded(decoder, raw.as_bytes());
            }
            if let Some(messages) = &fixture.input.messages {
                let restated = format!(r#"{{"type":"MESSAGES_SNAPSHOT","messages":{}}}"#, messages.get());
                let mut pipeline = Pipeline::new();
                pipeline.push(r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#).unwrap();
                pipeline.push(restated).unwrap();
                stream.messages = pipeline.snapshot().messages().iter().cloned().collect();
            }
            stream.state = fixture.input.state;
            all.push(stream);
        }
    }
    for path in files("producers", "sse") {
        let mut stream = Recorded::new(path.file_stem().unwrap().to_string_lossy(), []);
        stream.events = decoded(SseDecoder::new().into(), &std::fs::read(&path).unwrap());
        all.push(stream);
    }
    assert!(all.len() > 150, "they are there");
    all
}
