//! `inspect`: shows an AG-UI stream, and the rules that it breaks.
//!
//! Without arguments it plays a recorded run. With files, or `-` for standard input, it reads
//! recordings in any of the usual forms, and shows them, checks them, or turns them into JSON. With the
//! address of an agent it runs that. See `inspect --help`.
//!
//! ```sh
//! cargo run --example inspect
//! cargo run --example inspect --features full -- http://127.0.0.1:8000/agent --message "Hello"
//! ```

use std::io::{self, BufWriter, IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

use ag_ui_stream::machine::{Compactor, IdChecks, Repairs};
use ag_ui_stream::snapshot::Snapshot;
use clap::{Args, Parser, ValueEnum};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

mod diagnostic;
mod input;
mod json;
mod lint;
#[cfg(feature = "reqwest")]
mod live;
mod render;
mod report;
mod run;
mod screen;
mod text;

use input::{Input, Unreadable};
use lint::Linter;
use render::Renderer;
use report::Report;
use run::{Fault, History, Lines, Outcome, Settings};
use screen::Screen;

/// A recorded run, invented from beginning to end.
const DEMO: &[u8] = include_bytes!("demo.jsonl");

const DEMO_NAME: &str = "a recorded run";

const ABOUT: &str = "\
Shows what an AG-UI stream says, and whether it may.

Reads JSON Lines, a JSON array of events, an object with a `stream` array (and perhaps history in \
`input.messages` and `input.state`) or a capture of server-sent events, told apart by content. \
For the address of an agent, http://…, it runs the agent and shows what comes as it comes. \
Without any of these it plays a recorded run.";

const AFTER: &str = "\
Exit codes: 0 every recording completed (a run that failed with RUN_ERROR is a completed recording); \
1 a violation; 2 an input that cannot be read, an agent that cannot be run, a run that cannot be recorded; 3 a recording that ends without the terminal event of \
its run. Of several recordings the worst counts: 2, then 1, then 3.

--json prints, for each input, one object on a line:
  {\"source\":\"…\",\"outcome\":\"completed\"|\"failed\"|\"truncated\",
   \"error\":null|{\"rule\":\"S2\",\"event\":12,\"type\":\"TEXT_MESSAGE_CONTENT\",\"message\":\"…\",\"line\":13},
   \"runs\":[{\"threadId\":\"…\",\"runId\":\"…\",\"outcome\":\"success\"|\"interrupt\"|\"cancelled\"|\"error\"|\"truncated\"|\"rejected\",
            \"message\":null|\"…\",\"pendingToolCallIds\":[…],…}],
   \"events\":[…],\"warnings\":[{\"rule\":\"E2\",\"event\":3,\"type\":\"…\",\"path\":\"/extra\",\"message\":\"…\"}],
   \"messages\":[…],\"state\":…}
Events are counted from 0. The error of a truncated recording cites R8 and the number of its events. \
Where no rule is broken (an event beyond a limit, an input that cannot be read) `rule` is null, and \
the outcome is failed. With --lint there are also `violations` and `lints`.";

/// The command line.
#[derive(Debug, Parser)]
#[command(name = "inspect", about = ABOUT, after_help = AFTER, max_term_width = 100)]
#[allow(clippy::struct_excessive_bools, reason = "they are switches")]
struct Cli {
    /// Recordings, addresses of agents; `-` is standard input.
    #[arg(value_name = "FILE|URL")]
    files: Vec<String>,

    /// Print one JSON object a line for each input.
    #[arg(long, conflicts_with_all = ["events", "messages"])]
    json: bool,

    /// Print the delivered events as JSON Lines.
    #[arg(long, conflicts_with_all = ["messages", "lint"])]
    events: bool,

    /// Print the delivered events as JSON Lines, made short: fewer and shorter ones that come to the same.
    #[arg(long, conflicts_with_all = ["json", "events", "messages", "lint"])]
    compact: bool,

    /// Print the final messages as JSON Lines.
    #[arg(long, conflicts_with = "lint")]
    messages: bool,

    /// Go on after violations, and report what is legal but suspect as well.
    #[arg(long)]
    lint: bool,

    /// Say what a rule or a lint is about: S2, repeated-text.
    #[arg(long, value_name = "RULE")]
    explain: Option<String>,

    /// The conversation from before: a JSON array of messages, or an object with `messages` and
    /// `state`.
    #[arg(long, value_name = "FILE")]
    history: Option<String>,

    /// Reject what 1.0 only warns about (rule R10).
    #[arg(long)]
    strict: bool,

    /// Repair faults of the producer, each with a warning (rules X1 to X5): all, or those named, with
    /// a comma between each two: result-after-finish, reopen, open-unopened, ignore-frames,
    /// close-at-finish.
    #[arg(
        long,
        value_name = "NAMES",
        num_args = 0..=1,
        require_equals = true,
        default_value_t,
        default_missing_value = "all",
        hide_default_value = true,
        conflicts_with = "lint"
    )]
    repair: Repairs,

    /// Leave out the compatibility boundary (rules B1 to B3).
    #[arg(long)]
    no_compat: bool,

    /// Do not wait between the events of the recorded run.
    #[arg(long)]
    no_delay: bool,

    /// Play recordings in their time, this many times as fast: that of --record, or else of their
    /// timestamps. The recorded run is played anyway.
    #[arg(long, value_name = "FACTOR")]
    speed: Option<f64>,

    /// When to use colours.
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    color: When,

    #[command(flatten)]
    run: RunOptions,
}

/// The options for running an agent.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Running an agent")]
struct RunOptions {
    /// What to say to the agent: a user message after those of --history or --input. Without any
    /// of the three it is "Hello".
    #[arg(short, long, value_name = "TEXT")]
    message: Option<String>,

    /// The input of the run, as JSON; `-` is standard input.
    #[arg(long, value_name = "FILE", conflicts_with = "history")]
    input: Option<String>,

    /// A header of the request: "Name: value". May be given several times.
    #[arg(long = "header", value_name = "HEADER")]
    headers: Vec<String>,

    /// A bearer token for the request.
    #[arg(long, value_name = "TOKEN", env = "AG_UI_TOKEN", hide_env_values = true)]
    bearer: Option<String>,

    /// Write the run to a file as it comes, with its times.
    #[arg(long, value_name = "FILE")]
    record: Option<String>,
}

impl RunOptions {
    /// The options that only make sense with an agent to run.
    fn given(&self) -> Option<&'static str> {
        let given = [
            (self.message.is_some(), "--message"),
            (self.input.is_some(), "--input"),
            (!self.headers.is_empty(), "--header"),
            (self.record.is_some(), "--record"),
        ];
        given.into_iter().find_map(|(given, name)| given.then_some(name))
    }
}

fn is_url(source: &str) -> bool {
    let scheme = source.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    matches!(scheme.as_deref(), Some("http" | "https"))
}

/// A recording, or an agent that is about to be run.
fn open(cli: &Cli, settings: &Settings, source: &str) -> Result<Input, Unreadable> {
    if !is_url(source) {
        return Input::open(source).map(|input| input.with_repairs(settings.repairs));
    }
    #[cfg(feature = "reqwest")]
    return live::run(source, &cli.run, settings);
    #[cfg(not(feature = "reqwest"))]
    {
        let _ = (cli, settings);
        let message =
            format!("this tool is built without a client: cargo run --example inspect --features reqwest -- {source}");
        Err(Unreadable { what: "run the agent", ..Unreadable::new(message) })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum When {
    Auto,
    Always,
    Never,
}

impl When {
    fn on(self, terminal: bool) -> bool {
        let unwanted = || std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        match self {
            When::Auto => terminal && !unwanted(),
            When::Always => true,
            When::Never => false,
        }
    }
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    match inspect(&cli) {
        Ok(outcome) => ExitCode::from(outcome.exit_code()),
        // The reader of the output has closed it.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            complain(&error.to_string());
            ExitCode::from(Outcome::Unreadable.exit_code())
        }
    }
}

fn inspect(cli: &Cli) -> io::Result<Outcome> {
    let mut settings = Settings {
        strictness: if cli.strict { IdChecks::Reject } else { IdChecks::Warn },
        repairs: cli.repair,
        compat: !cli.no_compat,
        history: History::default(),
    };
    if let Some(path) = &cli.history {
        let read = std::fs::read(path).map_err(Unreadable::from);
        match read.and_then(|json| settings.read_history(&json)) {
            Ok(history) => settings.history = history,
            Err(error) => {
                complain(&format!("cannot read the history in {path}: {}", error.message));
                return Ok(Outcome::Unreadable);
            }
        }
    }
    if let Some(name) = &cli.explain {
        return explain(name);
    }
    let agents = cli.files.iter().filter(|source| is_url(source)).count();
    if let Some(option) = cli.run.given().filter(|_| agents == 0) {
        complain(&format!("{option} is for the run of an agent, and no address of one is given"));
        return Ok(Outcome::Unreadable);
    }
    if cli.run.record.is_some() && agents > 1 {
        complain("--record is for one run, and there are several agents");
        return Ok(Outcome::Unreadable);
    }
    let mut worst = Outcome::Completed;
    let mut out = BufWriter::new(io::stdout().lock());
    let demo = cli.files.is_empty().then(|| (DEMO_NAME, Input::of(DEMO, None)));
    let files = cli.files.iter().map(|path| (path.as_str(), open(cli, &settings, path)));
    for (source, input) in demo.into_iter().chain(files) {
        let with_history = |mut input| settings.history_of(&mut input).map(|history| (input, history));
        let outcome = match input.and_then(with_history) {
            Ok((mut input, history)) => {
                let read = Read { source, input: &mut input, history, settings: &settings };
                let outcome = match () {
                    () if cli.lint => lint(cli, read, &mut out)?,
                    () if cli.compact => compact(cli, read, &mut out)?,
                    () if cli.json || cli.events || cli.messages => write_json(cli, read, &mut out)?,
                    () => show(cli, read, &mut out)?,
                };
                match input.close() {
                    Some(complaint) => {
                        out.flush()?;
                        complain(&complaint);
                        outcome.max(Outcome::Unreadable)
                    }
                    None => outcome,
                }
            }
            Err(error) => unreadable(cli, source, error, &mut out)?,
        };
        worst = worst.max(outcome);
    }
    out.flush()?;
    Ok(worst)
}

/// Explains a rule or a lint.
fn explain(name: &str) -> io::Result<Outcome> {
    if let Some(explanation) = lint::explain(name) {
        io::stdout().write_all(explanation.as_bytes())?;
        return Ok(Outcome::Completed);
    }
    let rules: Vec<&str> = ag_ui_stream::Rule::ALL.iter().map(|rule| rule.as_str()).collect();
    let lints: Vec<&str> = lint::Lint::ALL.iter().map(|lint| lint.name()).collect();
    let lists = [("rules", rules), ("lints", lints)].map(|(title, names)| {
        let mut lines = Vec::new();
        let mut wrapper = text::Wrapper::new(74);
        wrapper.push(&names.join(" "), &mut lines);
        wrapper.finish(&mut lines);
        format!("{title}: {}\n", lines.join("\n       "))
    });
    complain(&format!("no rule or lint is called {name:?}"));
    say(&lists.concat());
    Ok(Outcome::Unreadable)
}

/// An input to read, with its name, history and settings.
struct Read<'a> {
    source: &'a str,
    input: &'a mut Input,
    history: History,
    settings: &'a Settings,
}

/// Reports every fault of a recording, and what is suspect.
fn lint(cli: &Cli, read: Read<'_>, out: &mut impl Write) -> io::Result<Outcome> {
    let Read { source, input, history, settings } = read;
    let terminal = io::stdout().is_terminal();
    let bar = progress_bar(input, true);
    let linter = Linter::new(settings, history, source, cli.json, cli.color.on(terminal), width());
    let outcome = linter.run(input, out, |input, out, shown| {
        bar.set_position(input.progress().0);
        if shown.is_empty() {
            return Ok(());
        }
        // The bar is hidden while text is written.
        bar.suspend(|| {
            out.write_all(shown.as_bytes())?;
            if terminal || input.is_drained() { out.flush() } else { Ok(()) }
        })
    })?;
    bar.finish_and_clear();
    Ok(outcome)
}

/// Reports an input that cannot be read, in the form that the command line asks for.
fn unreadable(cli: &Cli, source: &str, error: Unreadable, out: &mut impl Write) -> io::Result<Outcome> {
    let fault = Fault::Input(error);
    out.flush()?;
    say(&fault.diagnostic(&Lines::default()).show(source, colors_of_stderr(cli), width()));
    if cli.json {
        Report::new().write(out, source, fault.outcome(), Some(&fault), &Snapshot::default())?;
    }
    Ok(fault.outcome())
}

/// A recording as JSON, in the form that the command line asks for.
fn write_json(cli: &Cli, read: Read<'_>, out: &mut impl Write) -> io::Result<Outcome> {
    let Read { source, input, history, settings } = read;
    let bar = progress_bar(input, !cli.events || !io::stdout().is_terminal());
    let mut lines = Lines::default();
    let mut report = Report::new();
    let mut pipeline = settings.pipeline(history);
    let fault = run::run(input, &mut pipeline, &mut lines, |update, input| {
        bar.set_position(input.progress().0);
        match (update.event(), update.warning()) {
            (Some(event), _) if cli.events => {
                report::write_line(out, event)?;
                if input.is_drained() { out.flush() } else { Ok(()) }
            }
            (Some(event), _) if cli.json => report.events.push(event),
            (_, Some(warning)) if cli.json => report.warnings.push(&report::WarningReport::new(warning)),
            _ => Ok(()),
        }
    })?;
    bar.finish_and_clear();
    let outcome = fault.as_ref().map_or(Outcome::Completed, Fault::outcome);
    if cli.json {
        report.write(out, source, outcome, fault.as_ref(), pipeline.snapshot())?;
    } else if cli.messages {
        report::write_messages(out, pipeline.snapshot().messages())?;
    }
    if let Some(fault) = fault.filter(|fault| !cli.json || fault.outcome() == Outcome::Unreadable) {
        out.flush()?;
        say(&fault.diagnostic(&lines).show(source, colors_of_stderr(cli), width()));
    }
    Ok(outcome)
}

/// A recording made short.
fn compact(cli: &Cli, read: Read<'_>, out: &mut impl Write) -> io::Result<Outcome> {
    let Read { source, input, history, settings } = read;
    let mut lines = Lines::default();
    let mut compactor = Compactor::with_pipeline(settings.pipeline(history));
    let fault = run::run(input, &mut compactor, &mut lines, |event, input| {
        report::write_line(out, &event)?;
        if input.is_drained() { out.flush() } else { Ok(()) }
    })?;
    let Some(fault) = fault else { return Ok(Outcome::Completed) };
    out.flush()?;
    say(&fault.diagnostic(&lines).show(source, colors_of_stderr(cli), width()));
    Ok(fault.outcome())
}

/// A recording as people read it.
fn show(cli: &Cli, read: Read<'_>, out: &mut impl Write) -> io::Result<Outcome> {
    let Read { source, input, history, settings } = read;
    let terminal = io::stdout().is_terminal();
    let screen = Screen::new(out, terminal, cli.color.on(terminal));
    let speed = cli.speed.or(cli.files.is_empty().then_some(1.0)).filter(|_| terminal && !cli.no_delay);
    // A live run comes in its own time.
    let speed = speed.filter(|_| !input.is_live());
    let mut player = Player { speed, last: None };
    let mut lines = Lines::default();
    let bar = progress_bar(input, !terminal);
    let mut pipeline = settings.pipeline(history);
    let mut renderer = Renderer::new(screen, pipeline.snapshot().clone());
    let name = if source == "-" { "standard input" } else { source };
    renderer.title(name, input.is_live())?;
    if input.is_drained() {
        renderer.paint_now()?;
    }
    let mut shown = None;
    let fault = run::run(input, &mut pipeline, &mut lines, |update, input| {
        let (read, size) = input.progress();
        bar.set_position(read);
        let percent = size.filter(|size| *size > LONG).map(|size| read.saturating_mul(100) / size);
        if percent != shown {
            renderer.set_status(percent.map(|percent| format!("{percent} %")));
            shown = percent;
        }
        let stamp = || update.event().and_then(|event| event.base().timestamp);
        let came_at = input.came_at().and_then(|at| i64::try_from(at.as_millis()).ok());
        if let Some(wait) = player.wait_for(came_at.or_else(stamp)) {
            renderer.paint()?;
            std::thread::sleep(wait);
        }
        renderer.update(&update)?;
        if input.is_drained() { renderer.paint_now() } else { Ok(()) }
    })?;
    bar.finish_and_clear();
    let outcome = fault.as_ref().map_or(Outcome::Completed, Fault::outcome);
    renderer.finish(name, outcome, fault.as_ref(), pipeline.snapshot(), &lines)?;
    Ok(outcome)
}

/// Waits as long as passed between the events when they were recorded.
struct Player {
    /// How many times as fast; `None` does not wait.
    speed: Option<f64>,
    last: Option<i64>,
}

impl Player {
    /// Nobody wants to see an agent think for a minute.
    const LONGEST: Duration = Duration::from_millis(1_500);

    fn wait_for(&mut self, timestamp: Option<i64>) -> Option<Duration> {
        let (speed, now) = self.speed.filter(|speed| *speed > 0.0).zip(timestamp)?;
        let gap = now - self.last.replace(now)?;
        let seconds = u32::try_from(gap).ok().filter(|gap| *gap > 0)?;
        Duration::try_from_secs_f64(f64::from(seconds) / 1_000.0 / speed).ok().map(|wait| wait.min(Self::LONGEST))
    }
}

/// From this many bytes on an input takes long enough for a progress bar.
const LONG: u64 = 4_000_000;

/// A bar on standard error for inputs that take a while, where somebody sees it and nothing else
/// is written there.
fn progress_bar(input: &Input, free: bool) -> ProgressBar {
    let (_, size) = input.progress();
    match size.filter(|size| *size > LONG && free && io::stderr().is_terminal()) {
        None => ProgressBar::hidden(),
        Some(size) => {
            let bar = ProgressBar::with_draw_target(Some(size), ProgressDrawTarget::stderr_with_hz(10));
            if let Ok(style) =
                ProgressStyle::with_template("{wide_bar:.cyan/blue} {bytes} of {total_bytes}, {eta} left")
            {
                bar.set_style(style);
            }
            bar
        }
    }
}

/// Reports a fault of the command line.
fn complain(text: &str) {
    say(&format!("inspect: {}\n", text::said(text)));
}

/// Writes escaped text to standard error; a failure of that is ignored.
fn say(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

fn colors_of_stderr(cli: &Cli) -> bool {
    cli.color.on(io::stderr().is_terminal())
}

/// The columns of the terminal.
fn width() -> usize {
    let (_, columns) = console::Term::stderr().size();
    usize::from(columns).clamp(40, 160)
}
