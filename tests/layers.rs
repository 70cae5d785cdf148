//! The table of the crate's rooms by layer, and a check that every import points to a lower layer.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// From the ground up: each line is a layer, and each name a module of the crate, a file or a folder
/// under `src`. A room may import from itself and from the layers below its own.
const LAYERS: &[(&str, &[&str])] = &[
    ("bounds", &["limits"]),
    ("words: names and excerpts", &["event_type", "excerpt", "id", "iso8601", "rule", "version"]),
    ("JSON as text, and containers whose clones share", &["json", "shared"]),
    ("the log", &["log"]),
    ("errors and warnings", &["error", "warning"]),
    ("the tables of the wire types, and enforcement over them", &["schema"]),
    ("messages", &["message"]),
    ("the input of a run", &["run_input"]),
    ("the options of how a stream is read", &["options"]),
    ("events", &["event"]),
    ("the outputs of the stages", &["item"]),
    ("the inputs of the stages", &["raw"]),
    ("the conversation", &["snapshot"]),
    ("answers to interrupts", &["resume"]),
    ("the stages, without async", &["machine"]),
    ("codecs, and the input that is sent", &["codec", "outgoing"]),
    ("combinators over streams", &["combinator"]),
    ("agents", &["agent"]),
    ("producers", &["producer"]),
    ("layers around agents", &["layer"]),
    ("conversations, recordings, clients and servers", &["client", "conversation", "record", "server"]),
    ("the search for an error of the crate within an error of a source", &["source_error"]),
];

/// The layer of a room.
fn layer(room: &str) -> usize {
    LAYERS.iter().position(|(_, rooms)| rooms.contains(&room)).unwrap_or_else(|| {
        panic!("`{room}` has no layer: enter it in the table of tests/layers.rs, or name the room of an item")
    })
}

fn rust_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// The code of a file: without comments, without its unit tests, and without what only its
/// documentation imports.
fn code(text: &str) -> String {
    let text = text.split("\n#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let mut code = String::new();
    let mut only_for_docs = false;
    for line in text.lines() {
        let line = line.trim();
        if only_for_docs {
            only_for_docs = !line.ends_with(';');
        } else if line == "#[cfg(doc)]" {
            only_for_docs = true;
        } else if !line.starts_with("//") {
            code.push_str(line);
            code.push('\n');
        }
    }
    code
}

/// The modules that the code names as `crate::module`.
fn imports(code: &str) -> BTreeSet<String> {
    code.split("crate::")
        .skip(1)
        .flat_map(|rest| match rest.strip_prefix('{') {
            Some(list) => list.split('}').next().unwrap_or_default().split(',').map(str::trim).collect(),
            None => vec![rest],
        })
        .map(|rest| rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect())
        .filter(|name: &String| !name.is_empty())
        .collect()
}

#[test]
fn every_import_points_down() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    rust_files(&root, &mut files);
    let mut rooms = BTreeSet::new();
    let mut upward = Vec::new();
    for file in files {
        let path = file.strip_prefix(&root).unwrap();
        let room = path.components().next().unwrap().as_os_str().to_str().unwrap();
        let room = room.strip_suffix(".rs").unwrap_or(room);
        if room == "lib" {
            continue;
        }
        rooms.insert(room.to_owned());
        for import in imports(&code(&fs::read_to_string(&file).unwrap())) {
            if import != room && layer(&import) >= layer(room) {
                upward.push(format!("{} imports from `{import}`", path.display()));
            }
        }
    }
    assert!(upward.is_empty(), "arrows that run up:\n{}", upward.join("\n"));
    let table: BTreeSet<_> = LAYERS.iter().flat_map(|(_, rooms)| *rooms).map(|&room| room.to_owned()).collect();
    assert_eq!(rooms, table, "each room of `src` stands once in the table, and nothing else does");
}
