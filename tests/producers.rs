//! Captures of public agent frameworks: every one under `tests/data/producers` completes without a
//! violation, except those that its README names.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::path::{Path, PathBuf};

use ag_ui_stream::codec::SseDecoder;
use ag_ui_stream::machine::{Machine, Pipeline, Push};
use ag_ui_stream::{Error, Event, Rule, Warning};

/// The result of a pipeline for a capture.
#[derive(Debug, PartialEq)]
struct Run {
    events: Vec<Event>,
    warnings: Vec<Warning>,
    error: Option<Error>,
}

/// A capture in pieces of so many bytes.
fn run(bytes: &[u8], piece: usize) -> Run {
    let mut run = Run { events: Vec::new(), warnings: Vec::new(), error: None };
    let (mut decoder, mut pipeline) = (SseDecoder::new(), Pipeline::new());
    let mut ended = false;
    for piece in bytes.chunks(piece).map(Some).chain([None]) {
        let decoded = match piece {
            Some(piece) => decoder.push(piece),
            None => decoder.finish(),
        };
        let mut verdict = Ok(());
        while let (Ok(()), Some(raw)) = (&verdict, decoder.pop()) {
            verdict = pipeline.push(raw);
        }
        if piece.is_none() && verdict.is_ok() && decoded.is_ok() {
            verdict = pipeline.finish();
        }
        while let Some(update) = pipeline.pop() {
            run.events.extend(update.event().cloned());
            run.warnings.extend(update.warning().cloned());
        }
        run.error = verdict.and(decoded).err();
        ended |= run.error.is_some();
        if ended {
            break;
        }
    }
    run
}

fn captures() -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/producers");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "sse"));
    paths.sort();
    assert!(paths.len() > 90, "the captures are there");
    let read =
        |path: PathBuf| (path.file_stem().unwrap().to_string_lossy().into_owned(), std::fs::read(&path).unwrap());
    paths.into_iter().map(read).collect()
}

/// The rule that a capture breaks, by the README of the captures.
fn broken(name: &str) -> Option<Rule> {
    match name {
        "tanstack-TOOL" | "tanstack-PAR" | "tanstack-TOOLERR" | "tanstack-THINKTOOL" | "tanstack-MULTI" => {
            Some(Rule::R4)
        }
        "pydantic-par" | "pydantic-interleave" => Some(Rule::S2),
        "mastra-ERR500" | "mastra-ERRMID" => Some(Rule::R8),
        // No stream: the body of a response with status 500.
        "crewai-c-TEXT" => Some(Rule::R8),
        _ => None,
    }
}

/// Properties that a producer sends and no version of the protocol has (rule E2), by JSON path.
fn removed(name: &str) -> &'static [&'static str] {
    match name {
        "copilotkit-TEXT" => &["/finishReason"],
        "crewai-f-ERR500" | "crewai-f-ERRMID" => &["/threadId", "/runId"],
        _ => &[],
    }
}

#[test]
fn every_capture_completes_but_for_those_that_break_a_rule() {
    let mut faults = Vec::new();
    for (name, bytes) in captures() {
        let whole = run(&bytes, bytes.len());
        if whole.error.as_ref().and_then(Error::rule) != broken(&name) {
            faults.push(format!("{name}: {:?} and not {:?}", whole.error, broken(&name)));
        }
        let mut wanted: Vec<_> = removed(&name).iter().map(|path| (Rule::E2, *path)).collect();
        let mut found: Vec<_> = whole.warnings.iter().map(|found| (found.rule, &*found.path)).collect();
        wanted.sort_unstable();
        found.sort_unstable();
        if found != wanted {
            faults.push(format!("{name}: {:?}", whole.warnings));
        }
        for piece in [1, 7, 1000] {
            if run(&bytes, piece) != whole {
                faults.push(format!("{name}: something else in pieces of {piece} bytes"));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
