//! The records of all contenders, as Markdown tables.

use std::fs;
use std::io;

use serde::{Deserialize, Serialize};

use crate::{Reading, plot};

/// Where a measurement belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Axis {
    /// `W1` … `W6`.
    Table,
    /// Cost against the length of the message.
    Text,
    /// Cost against the length of the thread.
    Thread,
}

impl Axis {
    /// The name in the records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Table => "table",
            Self::Text => "text",
            Self::Thread => "thread",
        }
    }
}

/// The name of a reading in the records.
pub fn reading_name(reading: Reading) -> &'static str {
    match reading {
        Reading::None => "none",
        Reading::Latest => "latest",
        Reading::Held => "held",
    }
}

/// One measurement: nanoseconds per event of one contender on one workload.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Record {
    pub axis: Axis,
    pub workload: String,
    /// What the workload is sized by; zero for `W1` … `W6`.
    pub size: usize,
    pub contender: String,
    pub reading: String,
    /// The best repetition.
    pub min: f64,
    /// The middle one.
    pub median: f64,
    /// How many events were measured …
    pub measured: usize,
    /// … of how many.
    pub events: usize,
}

impl Record {
    /// Whether the record is of this contender, read in this way.
    pub fn is_of(&self, contender: &str, reading: Reading) -> bool {
        self.contender == contender && self.reading == reading_name(reading)
    }

    /// Whether the time was up before the events were.
    pub fn cut(&self) -> bool {
        self.measured < self.events
    }
}

/// A column: its heading, and which records are in it.
type Column = (&'static str, &'static str, Reading);

const WITHOUT: [Column; 7] = [
    ("floor", "floor", Reading::None),
    ("ours", "ours", Reading::None),
    ("ours, async", "ours async", Reading::None),
    ("everruns-core", "everruns-core", Reading::None),
    ("ag-ui `Thread`", "ag-ui Thread", Reading::None),
    ("everruns-core typed †", "everruns-core typed", Reading::None),
    ("ag-ui by hand †", "ag-ui by hand", Reading::None),
];

const WITH: [Column; 8] = [
    ("ours", "ours", Reading::Latest),
    ("ours, async", "ours async", Reading::Latest),
    ("ours, all kept", "ours", Reading::Held),
    ("everruns-core", "everruns-core", Reading::Latest),
    ("ag-ui `Thread`", "ag-ui Thread", Reading::Latest),
    ("everruns-core typed †", "everruns-core typed", Reading::Latest),
    ("ag-ui by hand †", "ag-ui by hand", Reading::Latest),
    ("reference `runAgent`", REFERENCE, Reading::Latest),
];

/// The contender that the Node script reports.
const REFERENCE: &str = "reference runAgent";

const WORKLOADS: [&str; 6] = ["W1", "W2", "W3", "W4", "W5", "W6"];

/// Prints the tables of the records in `files`, and draws the plot to `svg`.
pub fn print(files: &[&str], svg: Option<&str>) -> io::Result<()> {
    let mut records: Vec<Record> = Vec::new();
    for file in files {
        for line in fs::read_to_string(file)?.lines() {
            records.push(serde_json::from_str(line)?);
        }
    }
    let records = Records(records);

    println!("### Time per event, nothing read before the end\n");
    records.times(&WITHOUT);
    println!("\n### Time per event, a snapshot of the conversation read after every event\n");
    records.times(&WITH);
    println!(
        "\nThe best repetition, the median in brackets. † skips enforcement. \
         everruns-core keeps no reasoning, state or tool results. \
         * cut off: measured on the first part of the workload only \
         (the number of events beside it), where a cost that grows is still low.\n"
    );
    println!("### Times the floor\n");
    records.ratios(&floor_columns());
    println!("\n### Ours beside the others\n");
    records.ratios(&our_columns());
    println!("\n### Growth\n");
    records.growth();

    if let Some(svg) = svg {
        fs::write(svg, plot::draw(&records.0))?;
    }
    Ok(())
}

/// A ratio: its heading, the dividends of which the smallest counts, the divisor.
type Ratio = (&'static str, Vec<(&'static str, Reading)>, (&'static str, Reading));

fn floor_columns() -> Vec<Ratio> {
    let floor = ("floor", Reading::None);
    vec![
        ("ours", vec![("ours", Reading::None)], floor),
        ("ours, snapshots", vec![("ours", Reading::Latest)], floor),
        ("ours, all kept", vec![("ours", Reading::Held)], floor),
        ("everruns-core", vec![("everruns-core", Reading::None)], floor),
        ("ag-ui `Thread`", vec![("ag-ui Thread", Reading::None)], floor),
        ("everruns-core typed †", vec![("everruns-core typed", Reading::None)], floor),
        ("ag-ui by hand †", vec![("ag-ui by hand", Reading::None)], floor),
    ]
}

fn our_columns() -> Vec<Ratio> {
    use Reading::{Latest, None};
    let full = ["everruns-core", "ag-ui Thread"];
    let shortcut = ["everruns-core typed", "ag-ui by hand"];
    let every = full.iter().chain(&shortcut);
    vec![
        ("async ÷ bare", vec![("ours async", Latest)], ("ours", Latest)),
        ("fastest full peer ÷ ours", full.map(|name| (name, None)).to_vec(), ("ours", None)),
        ("fastest shortcut † ÷ ours", shortcut.map(|name| (name, None)).to_vec(), ("ours", None)),
        ("fastest peer ÷ ours, snapshots", every.map(|&name| (name, Latest)).collect(), ("ours", Latest)),
        ("reference ÷ ours, snapshots", vec![(REFERENCE, Latest)], ("ours", Latest)),
    ]
}

struct Records(Vec<Record>);

impl Records {
    fn find(&self, axis: Axis, workload: &str, name: &str, reading: Reading) -> Option<&Record> {
        self.0.iter().find(|record| record.axis == axis && record.workload == workload && record.is_of(name, reading))
    }

    fn times(&self, columns: &[Column]) {
        head(columns.iter().map(|(heading, ..)| *heading));
        for workload in WORKLOADS {
            row(
                workload,
                columns.iter().map(|(_, name, reading)| {
                    self.find(Axis::Table, workload, name, *reading).map(|record| {
                        let cell = format!("{} ({})", time(record.min), time(record.median));
                        if record.cut() { format!("{cell} *{}", count(record.measured)) } else { cell }
                    })
                }),
            );
        }
    }

    fn ratios(&self, columns: &[Ratio]) {
        head(columns.iter().map(|(heading, ..)| *heading));
        for workload in WORKLOADS {
            row(
                workload,
                columns.iter().map(|(_, dividends, (name, reading))| {
                    let divisor = self.find(Axis::Table, workload, name, *reading)?.min;
                    let dividend = dividends
                        .iter()
                        .filter_map(|(name, reading)| self.find(Axis::Table, workload, name, *reading))
                        .min_by(|a, b| a.min.total_cmp(&b.min))?;
                    let at_least = if dividend.cut() { "≥ " } else { "" };
                    Some(format!("{at_least}{}", ratio(dividend.min / divisor)))
                }),
            );
        }
    }

    /// How much dearer an event gets in a long message and in a long thread.
    fn growth(&self) {
        head(["200 000 deltas ÷ 1 000", "20 000 messages ÷ 10"]);
        let mut seen = Vec::new();
        for record in self.0.iter().filter(|record| record.axis == Axis::Thread) {
            let key = (record.contender.as_str(), record.reading.as_str());
            if seen.contains(&key) {
                continue;
            }
            seen.push(key);
            let between = |axis, from: &str, to: &str| {
                let find = |workload: &str| {
                    self.0.iter().find(|other| {
                        other.axis == axis
                            && other.workload == workload
                            && (other.contender.as_str(), other.reading.as_str()) == key
                    })
                };
                Some(ratio(find(to)?.min / find(from)?.min))
            };
            let name = match key.1 {
                "latest" => format!("{}, snapshots", key.0),
                "held" => format!("{}, all kept", key.0),
                _ => key.0.to_owned(),
            };
            row(
                &name,
                [
                    between(Axis::Text, "text(1000)", "text(200000)"),
                    between(Axis::Thread, "thread(10)", "thread(20000)"),
                ],
            );
        }
    }
}

fn head<'a>(headings: impl IntoIterator<Item = &'a str>) {
    let headings: Vec<&str> = headings.into_iter().collect();
    println!("| | {} |", headings.join(" | "));
    println!("|---|{}", "---:|".repeat(headings.len()));
}

fn row(name: &str, cells: impl IntoIterator<Item = Option<String>>) {
    let cells: Vec<String> = cells.into_iter().map(|cell| cell.unwrap_or_else(|| "–".to_owned())).collect();
    println!("| {name} | {} |", cells.join(" | "));
}

/// Three digits and a unit.
pub fn time(nanos: f64) -> String {
    let (value, unit) = match nanos {
        _ if nanos < 999.5 => (nanos, "ns"),
        _ if nanos < 999.5e3 => (nanos / 1e3, "µs"),
        _ => (nanos / 1e6, "ms"),
    };
    format!("{} {unit}", three_digits(value))
}

fn ratio(value: f64) -> String {
    three_digits(value)
}

fn three_digits(value: f64) -> String {
    match value {
        _ if value < 9.995 => format!("{value:.2}"),
        _ if value < 99.95 => format!("{value:.1}"),
        _ => count(value.round() as usize),
    }
}

/// An integer with a space before every three digits.
pub fn count(value: usize) -> String {
    let digits = value.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            out.push(' ');
        }
        out.push(digit);
    }
    out
}
