//! Shows faults and findings as a compiler does: what, where, the event itself, and why.

use std::fmt::{self, Write as _};
use std::ops::Range;

use ag_ui_stream::error::{History, Subject, SubjectKind, TruncatedBy};
use ag_ui_stream::{Error, Rule, Warning};
use anstyle::{AnsiColor, Style};

use crate::json::locate;
use crate::run::Lines;
use crate::text;

pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const RED: Style = AnsiColor::Red.on_default().bold();
pub(crate) const YELLOW: Style = AnsiColor::Yellow.on_default().bold();
pub(crate) const CYAN: Style = AnsiColor::Cyan.on_default().bold();
const BLUE: Style = AnsiColor::Blue.on_default().bold();

/// Text in a style, if styles are shown.
pub(crate) fn paint(colors: bool, style: Style, text: impl fmt::Display) -> String {
    if colors { format!("{style}{text}{style:#}") } else { text.to_string() }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    Error,
    Warning,
    Lint,
}

impl Level {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Level::Error => "error",
            Level::Warning => "warning",
            Level::Lint => "lint",
        }
    }

    pub(crate) fn style(self) -> Style {
        match self {
            Level::Error => RED,
            Level::Warning => YELLOW,
            Level::Lint => CYAN,
        }
    }
}

/// A fault or finding about a recording.
#[derive(Debug)]
pub(crate) struct Diagnostic {
    pub(crate) level: Level,
    /// The rule's id or the lint's name.
    pub(crate) code: Option<String>,
    pub(crate) title: String,
    pub(crate) event: Option<u64>,
    pub(crate) line: Option<u64>,
    /// The event as it was recorded, or the beginning of it.
    pub(crate) text: Vec<u8>,
    /// The part of it at fault, and a note beside it.
    pub(crate) mark: Option<(Range<usize>, String)>,
    /// The subject of the note, for when it does not fit beside the mark.
    pub(crate) about: Option<String>,
    pub(crate) notes: Vec<String>,
}

/// The most bytes of an event that are kept to be shown.
const KEPT: usize = 64 * 1024;

/// The beginning of an event's text.
pub(crate) fn head(text: &[u8]) -> &[u8] {
    text.get(..KEPT).unwrap_or(text)
}

/// The beginning of an event's text on one line: space between its members that breaks the line
/// is left out.
pub(crate) fn on_a_line(text: &[u8]) -> Vec<u8> {
    let text = head(text).trim_ascii();
    let mut kept = Vec::with_capacity(text.len());
    let (mut in_string, mut escaped) = (false, false);
    let mut rest = text;
    while let Some((byte, after)) = rest.split_first() {
        let space = rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let (blank, beyond) = rest.split_at(space);
        if !in_string && blank.contains(&b'\n') {
            // As it is written on one line by most.
            if matches!(kept.last(), Some(b',')) {
                kept.push(b' ');
            }
            rest = beyond;
            continue;
        }
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ => {}
        }
        kept.push(*byte);
        rest = after;
    }
    kept
}

impl Diagnostic {
    /// The diagnostic of an error about an event, or about the end of the input.
    pub(crate) fn of_error(error: &Error, line: Option<u64>, text: &[u8], lines: &Lines) -> Self {
        let rule = error.rule();
        let text = &on_a_line(text);
        let mut diagnostic = Self {
            level: Level::Error,
            code: rule.map(|rule| rule.as_str().to_owned()),
            title: rule.map_or_else(|| error.to_string(), |rule| rule.title().to_owned()),
            event: error.event_index(),
            line,
            text: text.to_vec(),
            mark: None,
            about: None,
            notes: Vec::new(),
        };
        match error {
            Error::Malformed(fault) => {
                let what = format!("expected {}, found {}", fault.expected, fault.found);
                match locate(text, &fault.path).filter(|_| !fault.path.is_empty()) {
                    Some(range) => {
                        diagnostic.about = Some(format!("{}:", fault.path));
                        diagnostic.mark = Some((range, what));
                    }
                    None if fault.path.is_empty() => diagnostic.notes.push(what),
                    None => diagnostic.notes.push(format!("{}: {what}", fault.path)),
                }
            }
            Error::Violation(fault) => {
                diagnostic.notes.push(format!("expected {}, found {}", fault.expected, fault.found));
                if let Some(subject) = &fault.subject {
                    let past = past(&fault.history, subject.kind, lines);
                    match (find_id(text, subject), past) {
                        (Some(range), Some(past)) => {
                            diagnostic.about = Some(subject.to_string());
                            diagnostic.mark = Some((range, past));
                        }
                        (_, Some(past)) => diagnostic.notes.push(format!("{subject} {past}")),
                        (_, None) => diagnostic.notes.push(format!("about {subject}")),
                    }
                }
                diagnostic.note_others(&fault.others, lines);
            }
            Error::Truncated(fault) => {
                let after = text::count(fault.events, "event", "events");
                diagnostic.notes.push(match &fault.run_id {
                    Some(run) => format!("run {run:?} has no RUN_FINISHED or RUN_ERROR; the input ended after {after}"),
                    None if fault.events == 0 => "the input holds no events".to_owned(),
                    None => format!("the input ended after {after}"),
                });
                if fault.by == TruncatedBy::Partial {
                    diagnostic.notes.push("the input ended within an event".to_owned());
                }
                diagnostic.note_others(&fault.open, lines);
            }
            Error::LimitExceeded(fault) => diagnostic.notes.push(fault.to_string()),
            _ => {}
        }
        if let Some(rule) = rule {
            diagnostic.note_rule(rule);
        }
        diagnostic
    }

    pub(crate) fn of_warning(warning: &Warning, line: Option<u64>, text: &[u8]) -> Self {
        let text = &on_a_line(text);
        let at = format!("at {}", warning.path);
        let (path, what) = match warning.rule {
            Rule::E1 => ("/type", "unknown here"),
            _ => (warning.path.as_str(), at.as_str()),
        };
        let range = Some(path).filter(|path| !path.is_empty()).and_then(|path| locate(text, path));
        let mut diagnostic = Self {
            level: Level::Warning,
            code: Some(warning.rule.as_str().to_owned()),
            title: warning.message.clone(),
            event: Some(warning.event),
            line,
            text: text.to_vec(),
            mark: range.map(|range| (range, what.to_owned())),
            about: None,
            notes: Vec::new(),
        };
        if diagnostic.mark.is_none() && !warning.path.is_empty() {
            diagnostic.notes.push(at);
        }
        diagnostic.notes.push(format!("{}: {}", warning.rule, warning.rule.title()));
        diagnostic
    }

    fn note_others(&mut self, others: &[(Subject, History)], lines: &Lines) {
        const SHOWN: usize = 8;
        for (subject, history) in others.iter().take(SHOWN) {
            let past = past(history, subject.kind, lines).unwrap_or_default();
            self.notes.push(format!("{subject} {past}").trim_end().to_owned());
        }
        if others.len() > SHOWN {
            self.notes.push(format!("and {} more", others.len() - SHOWN));
        }
    }

    fn note_rule(&mut self, rule: Rule) {
        self.notes.push(format!("{rule}: {}", rule.explanation()));
        self.notes.push(page(rule));
    }

    /// Writes it, as wide as `columns`.
    pub(crate) fn show(&self, source: &str, colors: bool, columns: usize) -> String {
        let mut out = String::new();
        let style = self.level.style();
        let code = self.code.as_ref().map(|code| format!("[{code}]")).unwrap_or_default();
        let head = format!("{}{code}", self.level.word());
        let bar = paint(colors, BLUE, "|");
        let title = text::said(&self.title);
        let _ = writeln!(out, "{}{}", paint(colors, style, head), paint(colors, BOLD, format!(": {title}")));
        let line = self.line.map(|line| format!(":{line}")).unwrap_or_default();
        let event = self.event.map(|event| format!(" (event {event})")).unwrap_or_default();
        let _ = writeln!(out, "  {} {}{line}{event}", paint(colors, BLUE, "-->"), text::said(source));
        if !self.text.is_empty() {
            let (event, mark) = self.excerpt(columns.saturating_sub(5).max(20));
            let _ = writeln!(out, "   {bar}\n   {bar} {event}");
            if let Some((before, width, what)) = mark {
                let pointer = "^".repeat(width.max(1));
                let indent = " ".repeat(before);
                // The note is beside the mark if there is room, else below it.
                let wide = before + width + 1 + text::width(&what) + 5;
                if wide <= columns {
                    let _ = writeln!(out, "   {bar} {indent}{}", paint(colors, style, format!("{pointer} {what}")));
                } else {
                    let _ = writeln!(out, "   {bar} {indent}{}", paint(colors, style, pointer));
                    let about = self.about.as_ref().map(|about| format!("{about} ")).unwrap_or_default();
                    self.note(&mut out, &format!("{about}{what}"), colors, columns);
                    return self.notes(out, colors, columns);
                }
            }
            let _ = writeln!(out, "   {bar}");
        }
        self.notes(out, colors, columns)
    }

    fn notes(&self, mut out: String, colors: bool, columns: usize) -> String {
        for note in &self.notes {
            self.note(&mut out, note, colors, columns);
        }
        out
    }

    fn note(&self, out: &mut String, note: &str, colors: bool, columns: usize) {
        let mut lines = Vec::new();
        let mut wrapper = text::Wrapper::new(columns.saturating_sub(6));
        wrapper.push(&text::said(note), &mut lines);
        wrapper.finish(&mut lines);
        for (at, line) in lines.iter().enumerate() {
            let lead = if at == 0 { paint(colors, BLUE, "=") } else { " ".to_owned() };
            let _ = writeln!(out, "   {lead} {line}");
        }
    }

    /// The part of the event that fits, and its mark: columns before it, its width, and the note.
    fn excerpt(&self, columns: usize) -> (String, Option<(usize, usize, String)>) {
        let shown = |range: Range<usize>| {
            text::one_line(String::from_utf8_lossy(self.text.get(range).unwrap_or_default()).trim()).into_owned()
        };
        let all = 0..self.text.len();
        let Some((range, what)) = &self.mark else {
            return (text::fit(&shown(all), columns).into_owned(), None);
        };
        let untrimmed = |range: Range<usize>| {
            text::one_line(&String::from_utf8_lossy(self.text.get(range).unwrap_or_default())).into_owned()
        };
        let before = untrimmed(all.start..range.start).trim_start().to_owned();
        let marked = text::fit(&untrimmed(range.clone()), columns / 2).into_owned();
        let after = untrimmed(range.end..all.end).trim_end().to_owned();
        let (width, total) = (text::width(&marked), text::width(&before) + text::width(&marked));
        // Room for a little text after the mark.
        let tail = text::width(&after).min(12);
        let before = if total + tail > columns {
            let room = columns.saturating_sub(width + tail).max(1);
            let reversed: String = before.chars().rev().collect();
            text::fit(&reversed, room).chars().rev().collect()
        } else {
            before
        };
        let used = text::width(&before) + width;
        let after = text::fit(&after, columns.saturating_sub(used)).into_owned();
        (format!("{before}{marked}{after}"), Some((text::width(&before), width, text::said(what).into_owned())))
    }
}

/// The page of the specification.
pub(crate) fn page(rule: Rule) -> String {
    format!("https://docs.ag-ui.com/spec/1.0/{}", rule.page())
}

/// The history of a subject, with lines if they are known.
fn past(history: &History, kind: SubjectKind, lines: &Lines) -> Option<String> {
    let at = |event: &u64| match lines.of(*event) {
        Some(line) => format!("event {event} (line {line})"),
        None => format!("event {event}"),
    };
    let (text, owner) = match history {
        History::NeverOpened => return Some("was never opened in this run".to_owned()),
        History::Open { since, .. } if kind == SubjectKind::Run => (format!("began with {}", at(since)), &None),
        History::Closed { at: event, .. } if kind == SubjectKind::Run => (format!("ended with {}", at(event)), &None),
        History::Open { since, owner } => (format!("is open since {}", at(since)), owner),
        History::Closed { at: event, owner } => (format!("was closed by {}", at(event)), owner),
        History::Known { at: event, owner } => (format!("is known since {}", at(event)), owner),
        _ => return None,
    };
    Some(match (kind, owner) {
        (SubjectKind::Run | SubjectKind::Thread | SubjectKind::Interrupt, _) => text,
        (_, Some(owner)) => format!("{text}, owned by subagent {:?}", text::excerpt(owner, 80)),
        (_, None) => format!("{text}, owned by the parent agent"),
    })
}

/// The place of the subject's id in an event.
fn find_id(text: &[u8], subject: &Subject) -> Option<Range<usize>> {
    let keys: &[&str] = match subject.kind {
        SubjectKind::ToolCall => &["toolCallId", "entityId"],
        SubjectKind::Step => &["stepName"],
        SubjectKind::Subagent => &["subagentRunId", "parentSubagentRunId"],
        SubjectKind::Run => &["runId"],
        SubjectKind::Thread => &["threadId"],
        _ => &["messageId", "entityId", "parentMessageId"],
    };
    keys.iter().find_map(|key| {
        let range = locate(text, &format!("/{key}"))?;
        let id: String = serde_json::from_slice(text.get(range.clone())?).ok()?;
        (id == subject.id).then_some(range)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_shown_on_one_line() {
        let text = b" {\n  \"a\": \"x\\\" \n y\",\n  \"b\": [\r\n1,\n 2 ]\n}\n";
        assert_eq!(String::from_utf8(on_a_line(text)).unwrap(), "{\"a\": \"x\\\" \n y\", \"b\": [1, 2 ]}");
        assert_eq!(on_a_line(b" not json "), b"not json");
    }

    #[test]
    fn the_mark_stays_in_view() {
        let text = format!(r#"{{"type":"X","pad":"{}","id":"here","more":"{}"}}"#, "p".repeat(200), "q".repeat(200));
        let range = locate(text.as_bytes(), "/id").unwrap();
        let diagnostic = Diagnostic {
            level: Level::Error,
            code: Some("S2".to_owned()),
            title: "a title".to_owned(),
            event: Some(7),
            line: Some(8),
            text: text.into_bytes(),
            mark: Some((range, "was never opened".to_owned())),
            about: None,
            notes: vec!["a note".to_owned()],
        };
        for columns in [60, 80, 120] {
            let shown = diagnostic.show("file.jsonl", false, columns);
            let lines: Vec<&str> = shown.lines().collect();
            assert_eq!(lines[0], "error[S2]: a title");
            assert_eq!(lines[1], "  --> file.jsonl:8 (event 7)");
            assert!(lines.iter().all(|line| text::width(line) <= columns), "{shown}");
            let marked = lines[4].find('^').map(|at| text::width(&lines[4][..at])).unwrap();
            let here = lines[3].find("\"here\"").map(|at| text::width(&lines[3][..at])).unwrap();
            assert_eq!(marked, here, "{shown}");
            assert_eq!(lines.last(), Some(&"   = a note"));
        }
    }
}
