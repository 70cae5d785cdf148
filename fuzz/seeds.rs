//! Writes what fuzzing begins with: every stream of the conformance corpus, for each target, and recordings in each form.

use std::path::Path;
use std::{fs, io};

use ag_ui_stream::Event;
use ag_ui_stream::codec::Format;
use serde_json::Value;

fn main() -> io::Result<()> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let [pipeline, decoders, recordings] =
        ["pipeline", "decoders", "recordings"].map(|target| here.join("corpus").join(target));
    for folder in [&pipeline, &decoders, &recordings] {
        fs::create_dir_all(folder)?;
    }
    for file in fs::read_dir(here.join("../tests/data/conformance/streams"))? {
        let file = file?;
        let fixture: Value = serde_json::from_slice(&fs::read(file.path())?)?;
        let events = fixture["stream"].as_array().cloned().unwrap_or_default();
        let lines: Vec<String> = events.iter().map(Value::to_string).collect();
        fs::write(pipeline.join(file.file_name()), lines.join("\n"))?;

        let timed: Vec<String> = lines.iter().map(|line| format!(": +0.5s\ndata: {line}\n\n")).collect();
        let capture = format!(": ag-ui-recording 1\n\n{}: +0.5s end\n", timed.concat());
        for (form, text) in
            [("sse", capture), ("lines", lines.join("\n")), ("array", Value::from(events.clone()).to_string())]
        {
            let name = format!("{form}-{}", file.file_name().to_string_lossy());
            fs::write(recordings.join(name), ["\u{7}", &text].concat())?;
        }

        for (number, format) in [Format::Sse, Format::JsonLines, Format::Protobuf].into_iter().enumerate() {
            let mut bytes = vec![number as u8, 7];
            for event in events.iter().filter_map(|event| Event::from_value(event).ok()?.0) {
                // Protobuf cannot carry all of them.
                bytes.extend(format.encode(&event).unwrap_or_default());
            }
            fs::write(decoders.join(format!("{number}-{}", file.file_name().to_string_lossy())), bytes)?;
        }
    }
    Ok(())
}
