//! Runs the scripts of `tests/interop`, where Node or Python and the packages that they compare with
//! are there.

#![allow(dead_code, reason = "each test uses its own part")]
#![allow(unreachable_pub, reason = "each test has its own copy")]
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "helpers of tests")]

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

/// A program that runs scripts with the packages of a peer.
#[derive(Clone, Debug)]
pub struct Peer {
    program: &'static str,
    folder: PathBuf,
    /// Where its packages are, for one that does not look beside the script.
    packages: Option<PathBuf>,
}

/// Node, or `None` after saying why the test is skipped.
///
/// Where `AG_UI_INTEROP` is `require`, nothing is skipped.
pub fn node() -> Option<Peer> {
    Peer::find("node", "node_modules/@ag-ui", "npm install --prefix tests/interop")
}

/// Python; the same.
pub fn python() -> Option<Peer> {
    let install = "python3 -m pip install --target tests/interop/site-packages -r tests/interop/requirements.txt";
    let mut peer = Peer::find("python3", "site-packages/ag_ui", install)?;
    peer.packages = Some(peer.folder.join("site-packages"));
    Some(peer)
}

impl Peer {
    fn find(program: &'static str, packages: &str, install: &str) -> Option<Self> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop");
        let version = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        let missing = if !version.is_ok_and(|status| status.success()) {
            format!("there is no `{program}` here")
        } else if !folder.join(packages).exists() {
            format!("the packages are not installed: {install}")
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
