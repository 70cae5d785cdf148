//! What fuzzing begins with: every stream of the conformance corpus, some patches, some schedules.

use std::path::Path;
use std::{fs, io};

use ag_ui_stream::Event;
use ag_ui_stream::codec::Format;
use ag_ui_stream::record::RecordStreamExt;
use futures::executor::block_on;
use futures::{StreamExt, stream};
use serde_json::Value;

/// An input for a target.
#[derive(Debug)]
pub struct Seed {
    pub target: &'static str,
    pub name: String,
    pub input: Vec<u8>,
}

const PATCHES: [&str; 4] = [
    r#"{"a":[1,{"b":"text"}],"c":null}
[{"op":"add","path":"/a/-","value":2},{"op":"move","from":"/a/0","path":"/d"},{"op":"test","path":"/d","value":1}]
[{"op":"copy","from":"/a","path":"/a/0"},{"op":"remove","path":"/c"},{"op":"replace","path":"","value":[]}]"#,
    r#"{"k":{"long key":[0,0,0,0]}}
[{"op":"copy","from":"","path":"/k/x"},{"op":"copy","from":"","path":"/k/y"},{"op":"copy","from":"","path":"/k/z"}]
[{"op":"copy","from":"/k","path":"/k/long key/0"},{"op":"remove","path":"/k/x/k"}]
[{"op":"move","from":"/k/y","path":"/k/x/y"},{"op":"add","path":"/~0~1","value":{}}]"#,
    r#"[[[[[]]]]]
[{"op":"copy","from":"/0","path":"/0/0/0/0/0"},{"op":"move","from":"/0/0","path":"/0/1"},{"op":"remove","path":"/0"}]"#,
    r#""text"
[{"op":"replace","path":"","value":{"a":1}},{"op":"test","path":"/a","value":1.0},{"op":"remove","path":"/none"}]"#,
];

/// All of them, in the same order each time.
///
/// # Errors
/// Those of reading the corpus.
pub fn seeds() -> io::Result<Vec<Seed>> {
    let mut seeds = Vec::new();
    let mut add = |target, name: String, input: Vec<u8>| seeds.push(Seed { target, name, input });
    for (at, patches) in PATCHES.iter().enumerate() {
        add("patch", at.to_string(), patches.as_bytes().to_vec());
    }
    for at in 0..16_u8 {
        let schedule = (0..64).map(|step: u8| step.wrapping_mul(at.wrapping_mul(2).wrapping_add(37)));
        add("split", at.to_string(), [at, 7 + at].into_iter().chain(schedule).collect());
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/conformance/streams");
    let mut files = fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
    files.sort_by_key(fs::DirEntry::file_name);
    for file in files {
        let fixture: Value = serde_json::from_slice(&fs::read(file.path())?)?;
        let events = fixture["stream"].as_array().cloned().unwrap_or_default();
        let lines: Vec<String> = events.iter().map(Value::to_string).collect();
        let name = file.file_name().to_string_lossy().into_owned();
        add("pipeline", name.clone(), lines.join("\n").into_bytes());
        for (number, format) in [Format::Sse, Format::JsonLines, Format::Protobuf].into_iter().enumerate() {
            let mut bytes = vec![number as u8, 7];
            for event in events.iter().filter_map(|event| Event::from_value(event).ok()?.0) {
                // Protobuf cannot carry all of them.
                bytes.extend(format.encode(&event).unwrap_or_default());
            }
            add("decoders", format!("{number}-{name}"), bytes);
        }
        // Every other event in several lines, for the comment that tells their ends.
        let texts: Vec<String> = events
            .iter()
            .zip(lines)
            .enumerate()
            .map(|(at, (event, line))| if at % 2 == 0 { line } else { format!("{event:#}").replace('\n', "\r\n") })
            .collect();
        let array = texts.join(",");
        let mut recording = vec![3, 7];
        block_on(stream::iter(texts).record(&mut recording).for_each(async |_| {}));
        add("decoders", format!("3-{name}"), recording);
        add("decoders", format!("array-{name}"), format!("\u{3}\u{7}[{array}]").into_bytes());
    }
    Ok(seeds)
}
