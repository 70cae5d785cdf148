//! Measures `ag-ui-stream` beside its peers, on the same workloads, in one
//! process.
//!
//! ```text
//! ag-ui-stream-peers events DIR                    write the workloads for the Node reference
//! ag-ui-stream-peers measure                       print one JSON record a measurement
//! ag-ui-stream-peers report [--svg FILE] FILE...   print the tables, draw the plot
//! ag-ui-stream-peers repeat WORKLOAD CONTENDER [snapshots]
//!                                                  nothing but that for ten seconds, for a profiler
//! ```
//!
//! `run.sh` does the first three, with the reference in between.
//!
//! The contenders take turns, repetition by repetition, so that noise on the
//! machine falls on all of them; the minimum is the number to compare, the
//! median tells how noisy it was. What each one has assembled is checked
//! after every repetition, outside the measured time.

mod checksum;
mod clock;
mod floor;
mod ours;
mod peer_ag_ui;
mod peer_everruns;
mod plot;
mod report;
mod workloads;

use std::collections::HashMap;
use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use serde_json::json;

use checksum::{Checksum, expected, hash_texts};
use clock::Clock;
use report::{Axis, Record};
use workloads::Workload;

/// What the application reads while events come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reading {
    /// Nothing before the end.
    None,
    /// A snapshot of the conversation after every event, dropped at once.
    Latest,
    /// A snapshot after every event, all of them kept to the end.
    Held,
}

/// Consumes a workload and says what came out.
type Run = fn(&'static Workload, Reading, &mut Clock) -> Checksum;

/// One way of consuming events: a column of the tables.
#[derive(Clone, Copy)]
struct Contender {
    name: &'static str,
    reading: Reading,
    run: Run,
}

fn contenders() -> Vec<Contender> {
    use Reading::{Held, Latest, None};
    let peer = |name, run: Run| [None, Latest].map(|reading| Contender { name, reading, run });
    let mut all =
        vec![Contender { name: "floor", reading: None, run: |workload, _, clock| floor::run(workload, clock) }];
    all.extend([None, Latest, Held].map(|reading| Contender { name: "ours", reading, run: ours::bare }));
    all.extend([None, Latest].map(|reading| Contender { name: "ours async", reading, run: ours::combined }));
    all.extend(peer("everruns-core", peer_everruns::full));
    all.extend(peer("everruns-core typed", peer_everruns::typed));
    all.extend(peer("ag-ui Thread", peer_ag_ui::thread));
    all.extend(peer("ag-ui by hand", peer_ag_ui::by_hand));
    all
}

/// How much time a contender gets in one pass over a workload.
struct Limits {
    /// Repetitions at most.
    rounds: usize,
    /// No further repetition once this much has gone into it.
    spend: Duration,
    /// A repetition is cut off after this.
    cut: Duration,
}

/// The tables are measured in several passes over all workloads, so that a
/// noisy minute does not spoil one of them.
const PASSES: usize = 3;

/// One pass of the tables: a contender over its time is measured on the first
/// part of the workload, in the first pass only.
const TABLE: Limits = Limits { rounds: 60, spend: Duration::from_millis(400), cut: Duration::from_millis(3_000) };

/// The plot over the length of the message: a contender over its time ends its
/// line there, for only a whole message says what a message of that length
/// costs.
const TEXT: Limits = Limits { rounds: 60, spend: Duration::from_millis(300), cut: Duration::from_millis(4_000) };

/// The plot over the length of the thread: the cost hardly changes within the
/// measured run, so its first part will do.
const THREAD: Limits = Limits { rounds: 40, spend: Duration::from_millis(400), cut: Duration::from_millis(800) };

/// Message lengths of the plot, in deltas.
const TEXT_SIZES: [usize; 8] = [100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 200_000];

/// Thread lengths of the plot, in messages.
const THREAD_SIZES: [usize; 6] = [10, 100, 1_000, 3_000, 10_000, 20_000];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match arguments.as_slice() {
        ["events", directory] => write_events(Path::new(directory)),
        ["measure"] => measure(),
        ["repeat", workload, contender] => repeat(workload, contender, Reading::None),
        ["repeat", workload, contender, "snapshots"] => repeat(workload, contender, Reading::Latest),
        ["report", "--svg", svg, files @ ..] => report::print(files, Some(svg)),
        ["report", files @ ..] => report::print(files, None),
        _ => {
            eprintln!(
                "usage: ag-ui-stream-peers events DIR | measure | report [--svg FILE] FILE... | repeat WORKLOAD CONTENDER [snapshots]"
            );
            return ExitCode::FAILURE;
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Gives a profiler one contender to look at.
fn repeat(workload: &str, name: &str, reading: Reading) -> io::Result<()> {
    let unknown = |what: &str| io::Error::other(format!("there is no {what:?}"));
    let found = workloads::all().into_iter().find(|one| one.name == workload);
    let workload: &'static Workload = Box::leak(Box::new(found.ok_or_else(|| unknown(workload))?));
    let contender = contenders().into_iter().find(|one| one.name == name && one.reading == reading);
    let contender = contender.ok_or_else(|| unknown(name))?;
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(10) {
        // Cut off early, and often: some become slower the longer they go on.
        let mut clock = Clock::new(workload.timed_from, Duration::from_secs(2));
        (contender.run)(workload, reading, &mut clock);
    }
    Ok(())
}

/// Writes every workload as JSON Lines, and an index that says what is in them.
fn write_events(directory: &Path) -> io::Result<()> {
    let table = workloads::all().into_iter().map(|workload| (Axis::Table, 0, workload));
    let text = TEXT_SIZES.map(|size| (Axis::Text, size, workloads::text(size)));
    let thread = THREAD_SIZES.map(|size| (Axis::Thread, size, workloads::thread(size)));
    let mut index = Vec::new();
    for (axis, size, workload) in table.chain(text).chain(thread) {
        let file = format!("{}.jsonl", workload.name);
        let mut out = BufWriter::new(fs::File::create(directory.join(&file))?);
        // The runs before the measured one are in `history`, assembled.
        for event in &workload.events[workload.history_events..] {
            writeln!(out, "{event}")?;
        }
        out.flush()?;
        let pairs =
            |texts: &[workloads::Text]| -> Vec<_> { texts.iter().map(|text| json!([text.id, text.text])).collect() };
        index.push(json!({
            "axis": axis.name(),
            "workload": workload.name,
            "size": size,
            "file": file,
            "history": pairs(&workload.history),
            "texts": pairs(&workload.texts),
        }));
    }
    fs::write(directory.join("index.json"), serde_json::to_vec(&index)?)
}

fn measure() -> io::Result<()> {
    let contenders = contenders();
    let started = Instant::now();
    let log = |what: &str| eprintln!("[{:>3} s] {what}", started.elapsed().as_secs());

    let mut trials: Vec<Trial> =
        workloads::all().into_iter().map(|workload| Trial::new(Axis::Table, 0, workload, &contenders)).collect();
    for pass in 1..=PASSES {
        log(&format!("W1 to W6, pass {pass} of {PASSES}"));
        trials.iter_mut().for_each(|trial| trial.run(&TABLE));
    }
    for trial in &trials {
        print(&trial.records())?;
    }

    let mut running = contenders.clone();
    for size in TEXT_SIZES {
        log(&format!("message of {size} deltas"));
        let mut trial = Trial::new(Axis::Text, size, workloads::text(size), &running);
        trial.run(&TEXT);
        let mut records = trial.records();
        records.retain(|record| !record.cut());
        running.retain(|contender| records.iter().any(|record| record.is_of(contender.name, contender.reading)));
        print(&records)?;
    }
    for size in THREAD_SIZES {
        log(&format!("thread of {size} messages"));
        let mut trial = Trial::new(Axis::Thread, size, workloads::thread(size), &contenders);
        trial.run(&THREAD);
        print(&trial.records())?;
    }
    log("done");
    Ok(())
}

fn print(records: &[Record]) -> io::Result<()> {
    for record in records {
        println!("{}", serde_json::to_string(record)?);
    }
    Ok(())
}

/// All contenders on one workload.
struct Trial {
    axis: Axis,
    size: usize,
    workload: &'static Workload,
    runners: Vec<Runner>,
    /// What must come out, by the number of events measured.
    expected: HashMap<usize, Checksum>,
}

/// A contender and its measurements.
struct Runner {
    contender: Contender,
    samples: Vec<f64>,
    measured: usize,
}

impl Trial {
    fn new(axis: Axis, size: usize, workload: Workload, contenders: &[Contender]) -> Self {
        // Some consumers want events that live for ever; a benchmark can afford it.
        let workload: &'static Workload = Box::leak(Box::new(workload));
        let whole = expected(&workload.events);
        let declared = workload.texts.iter().map(|text| (text.id.as_str(), text.text.as_str()));
        assert_eq!(whole.texts, Some(hash_texts(declared)), "{}", workload.name);

        let events = workload.events.len() - workload.timed_from;
        let runner = |&contender| Runner { contender, samples: Vec::new(), measured: events };
        Self {
            axis,
            size,
            workload,
            runners: contenders.iter().map(runner).collect(),
            expected: HashMap::from([(events, whole)]),
        }
    }

    fn events(&self) -> usize {
        self.workload.events.len() - self.workload.timed_from
    }

    /// One pass: the contenders in turns, until their rounds or their time is up.
    fn run(&mut self, limits: &Limits) {
        let mut spent = vec![Duration::ZERO; self.runners.len()];
        let events = self.events();
        for _ in 0..limits.rounds {
            for (runner, spent) in self.runners.iter_mut().zip(&mut spent) {
                // Once is enough for what does not get to the end.
                if *spent >= limits.spend || runner.measured < events {
                    continue;
                }
                let begun = Instant::now();
                let mut clock = Clock::new(self.workload.timed_from, limits.cut);
                let Contender { name, reading, run } = runner.contender;
                let sum = run(self.workload, reading, &mut clock);
                *spent += begun.elapsed();
                runner.samples.push(clock.per_event());
                runner.measured = clock.measured();
                let end = self.workload.timed_from + clock.measured();
                self.expected
                    .entry(clock.measured())
                    .or_insert_with(|| expected(&self.workload.events[..end]))
                    .assert_equals(&sum, &format!("{name} on {}", self.workload.name));
            }
        }
    }

    fn records(&self) -> Vec<Record> {
        let record = |runner: &Runner| {
            let mut samples = runner.samples.clone();
            samples.sort_by(f64::total_cmp);
            Record {
                axis: self.axis,
                workload: self.workload.name.clone(),
                size: self.size,
                contender: runner.contender.name.to_owned(),
                reading: report::reading_name(runner.contender.reading).to_owned(),
                min: samples[0],
                median: samples[samples.len() / 2],
                measured: runner.measured,
                events: self.events(),
            }
        };
        self.runners.iter().map(record).collect()
    }
}
