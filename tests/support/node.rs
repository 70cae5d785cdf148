//! Runs the scripts of `tests/interop`, where Node and the packages that they compare with are
//! there.

#![allow(unreachable_pub, reason = "each test has its own copy")]
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "helpers of tests")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// A folder with `node_modules`, or `None` after saying why the test is skipped.
///
/// Where `AG_UI_INTEROP` is `require`, nothing is skipped.
pub fn interop() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop");
    let node = Command::new("node").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    let missing = if !node.is_ok_and(|status| status.success()) {
        "there is no `node` here"
    } else if !folder.join("node_modules").exists() {
        "the packages are not installed: npm install --prefix tests/interop"
    } else {
        return Some(folder);
    };
    assert!(std::env::var("AG_UI_INTEROP").as_deref() != Ok("require"), "{missing}");
    eprintln!("skipped: {missing}");
    None
}

/// Runs a script with JSON on its standard input; its output is JSON too.
pub fn ask(folder: &Path, script: &str, question: &Value) -> Value {
    let mut node =
        Command::new("node").arg(folder.join(script)).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = node.stdin.take().unwrap();
    let question = question.to_string();
    let writer = std::thread::spawn(move || input.write_all(question.as_bytes()));
    let output = node.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success(), "{script} failed");
    serde_json::from_slice(&output.stdout).unwrap()
}
