//! Runs the scripts of `tests/interop` if Node or Python and their packages are installed.

#![allow(dead_code, reason = "each test uses its own part")]
#![allow(unreachable_pub, reason = "each test has its own copy")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "helpers of tests")]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use ag_ui_stream::Event;
use serde_json::{Value, json};

/// A program that runs scripts with the packages of a peer.
#[derive(Clone, Debug)]
pub struct Peer {
    program: &'static str,
    folder: PathBuf,
    /// Where its packages are, for one that does not look beside the script.
    packages: Option<PathBuf>,
}

/// Node with the packages of `package.json`, or `None` after saying why the test is skipped.
///
/// Where `AG_UI_INTEROP` is `require`, nothing is skipped.
pub fn node() -> Option<Peer> {
    let install = "npm install --prefix tests/interop";
    let packages: Vec<_> = ["client", "encoder", "proto"]
        .map(|name| (format!("node_modules/@ag-ui/{name}/package.json"), "\"version\": \"1.0.0\""))
        .into();
    Peer::find("node", &packages, install)
}

/// Python with `ag-ui-protocol` 1.0.0; the same.
pub fn python() -> Option<Peer> {
    python_with("1.0.0", "site-packages", "requirements.txt")
}

/// Python with `ag-ui-protocol` 0.1.9, from before AG-UI 1.0; the same.
pub fn old_python() -> Option<Peer> {
    python_with("0.1.9", "site-packages-0.1.9", "requirements-0.1.9.txt")
}

fn python_with(version: &str, packages: &str, requirements: &str) -> Option<Peer> {
    let install =
        format!("python3 -m pip install --upgrade --target tests/interop/{packages} -r tests/interop/{requirements}");
    let metadata = format!("{packages}/ag_ui_protocol-{version}.dist-info/METADATA");
    let mut peer = Peer::find("python3", &[(metadata, &format!("Version: {version}"))], &install)?;
    peer.packages = Some(peer.folder.join(packages));
    Some(peer)
}

impl Peer {
    /// The packages are files, and what tells their version within them.
    fn find(program: &'static str, packages: &[(String, &str)], install: &str) -> Option<Self> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop");
        let version = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        let is_installed = |(file, version): &(String, &str)| {
            fs::read_to_string(folder.join(file)).is_ok_and(|text| text.contains(version))
        };
        let missing = if !version.is_ok_and(|status| status.success()) {
            format!("there is no `{program}` here")
        } else if !packages.iter().all(is_installed) {
            format!("the packages are not installed, or in another version: {install}")
        } else {
            return Some(Self { program, folder, packages: None });
        };
        assert!(std::env::var("AG_UI_INTEROP").as_deref() != Ok("require"), "{missing}");
        eprintln!("skipped: {missing}");
        None
    }

    fn command(&self, script: &str) -> Command {
        let mut command = Command::new(self.program);
        command.arg(self.folder.join(script)).stdin(Stdio::piped()).stdout(Stdio::piped());
        if let Some(packages) = &self.packages {
            command.env("PYTHONPATH", packages).env("PYTHONDONTWRITEBYTECODE", "1");
        }
        command
    }

    /// Runs a script with JSON on its standard input; its output is JSON too.
    pub fn ask(&self, script: &str, question: &Value) -> Value {
        let mut process = self.command(script).spawn().unwrap();
        let mut input = process.stdin.take().unwrap();
        let question = question.to_string();
        let writer = std::thread::spawn(move || input.write_all(question.as_bytes()));
        let output = process.wait_with_output().unwrap();
        writer.join().unwrap().unwrap();
        assert!(output.status.success(), "{script} failed");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Starts a script that serves what it reads from its standard input.
    pub fn serve(&self, script: &str, what: &Value) -> Server {
        let mut process = self.command(script).spawn().unwrap();
        process.stdin.take().unwrap().write_all(what.to_string().as_bytes()).unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Server { port: line.trim().parse().unwrap(), process }
    }
}

/// A server in another language, ended with the test.
#[derive(Debug)]
pub struct Server {
    process: Child,
    pub port: u16,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Every JSON file of a folder under `tests/data`, by name.
pub fn files(folder: &str) -> Vec<(String, Value)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(folder);
    let mut paths: Vec<_> = fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "{folder} is empty");
    // One has halves of surrogate pairs, which `Value` cannot hold.
    let read = |path: PathBuf| {
        let value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).ok()?;
        Some((path.display().to_string(), value))
    };
    paths.into_iter().filter_map(read).collect()
}

/// The input that one of its parts makes, of this definition of the schema.
pub fn input_with(definition: &str, part: &Value) -> Value {
    let mut input = json!({"threadId": "t", "runId": "r", "messages": []});
    let list = match definition {
        "RunAgentInput" => return part.clone(),
        "Tool" => "tools",
        "ResumeEntry" => "resume",
        _ => "messages",
    };
    if let Some(members) = input.as_object_mut() {
        members.insert(list.to_owned(), json!([part]));
    }
    input
}

/// Every input that the schema's fixtures have, valid or invalid.
pub fn fixture_inputs(verdict: &str) -> Vec<(String, Value)> {
    ["RunAgentInput", "UserMessage", "ToolMessage", "Tool", "ResumeEntry"]
        .into_iter()
        .flat_map(|definition| {
            let files = files(&format!("fixtures/{definition}/{verdict}"));
            files.into_iter().map(move |(name, part)| (name, input_with(definition, &part)))
        })
        .collect()
}

/// Every valid event of the schema's fixtures, and some that carry more.
pub fn fixture_events() -> Vec<(String, Value)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/fixtures");
    let mut events = Vec::new();
    for definition in fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()) {
        if !definition.join("valid").is_dir() {
            continue;
        }
        let definition = definition.file_name().unwrap().to_str().unwrap().to_owned();
        for (name, value) in files(&format!("fixtures/{definition}/valid")) {
            let event = match definition.as_str() {
                "Interrupt" => json!({"type": "RUN_FINISHED", "threadId": "t", "runId": "r",
                                      "outcome": {"type": "interrupt", "interrupts": [value]}}),
                "RunAgentInput" | "ResumeEntry" | "Tool" => {
                    json!({"type": "RUN_STARTED", "threadId": "t", "runId": "r", "input": input_with(&definition, &value)})
                }
                "UserMessage" | "ToolMessage" => json!({"type": "MESSAGES_SNAPSHOT", "messages": [value]}),
                _ => value,
            };
            events.push((name, event));
        }
    }
    events.sort_by(|one, other| one.0.cmp(&other.0));
    assert!(events.len() > 100, "the fixtures are there");
    let more: Vec<Value> = serde_json::from_str(include_str!("../interop/events.json")).unwrap();
    events.extend(more.into_iter().enumerate().map(|(index, event)| (format!("events.json {index}"), event)));
    events
}

/// A valid event, typed.
pub fn typed(json: &Value) -> Event {
    let (event, warnings) = Event::from_value(json).unwrap_or_else(|error| panic!("{error}: {json}"));
    assert_eq!(warnings, [], "{json}");
    event.unwrap()
}
