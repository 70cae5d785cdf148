//! Writes what fuzzing begins with: every stream of the conformance corpus, for both targets.

use std::path::Path;
use std::{fs, io};

use ag_ui_stream::Event;
use ag_ui_stream::codec::Format;
use ag_ui_stream::record::RecordStreamExt;
use futures::executor::block_on;
use futures::{StreamExt, stream};
use serde_json::Value;

fn main() -> io::Result<()> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (pipeline, decoders) = (here.join("corpus/pipeline"), here.join("corpus/decoders"));
    fs::create_dir_all(&pipeline)?;
    fs::create_dir_all(&decoders)?;
    for file in fs::read_dir(here.join("../tests/data/conformance/streams"))? {
        let file = file?;
        let fixture: Value = serde_json::from_slice(&fs::read(file.path())?)?;
        let events = fixture["stream"].as_array().cloned().unwrap_or_default();
        let lines: Vec<String> = events.iter().map(Value::to_string).collect();
        fs::write(pipeline.join(file.file_name()), lines.join("\n"))?;
        let name = file.file_name();
        let name = name.to_string_lossy();

        for (number, format) in [Format::Sse, Format::JsonLines, Format::Protobuf].into_iter().enumerate() {
            let mut bytes = vec![number as u8, 7];
            for event in events.iter().filter_map(|event| Event::from_value(event).ok()?.0) {
                // Protobuf cannot carry all of them.
                bytes.extend(format.encode(&event).unwrap_or_default());
            }
            fs::write(decoders.join(format!("{number}-{name}")), bytes)?;
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
        fs::write(decoders.join(format!("3-{name}")), recording)?;
        fs::write(decoders.join(format!("array-{name}")), format!("\u{3}\u{7}[{array}]"))?;
    }
    Ok(())
}
