//! Draws blocks of text on a terminal while several of them grow.
//!
//! A block is a message, a tool call, or a line about a step. Blocks at the front whose text is final
//! are written once and scroll away. Below them, at the bottom of the terminal, is a live part that is
//! drawn again whenever a block grew. Without a terminal there is no live part, and the output is the
//! same.
//!
//! A block keeps its place as long as nothing of its lane was completed after it; later text of it is
//! then shown in a block of its own. So a lane reads from top to bottom, and two lanes can grow side by
//! side.

use std::collections::{HashMap, VecDeque};
use std::fmt::Write as _;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use anstyle::Style;

use crate::diagnostic::{DIM, paint};
use crate::text::{self, Wrapper};

/// Which block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct BlockId(u64);

/// The mark of a subagent: a bar in its colour, or a digit where there are no colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bar {
    pub(crate) style: Style,
    pub(crate) digit: u64,
}

/// How a block looks.
#[derive(Clone, Debug)]
pub(crate) struct Look {
    /// The bars in front of it, one for each subagent it is within, outermost first.
    pub(crate) bars: Vec<Bar>,
    pub(crate) label: String,
    pub(crate) label_style: Style,
    pub(crate) style: Style,
    /// Whether blank lines set it apart.
    pub(crate) apart: bool,
    /// Whether it is an aside in its lane, and completes nothing.
    pub(crate) aside: bool,
    /// Whose it is: blocks with the same key read from top to bottom.
    pub(crate) lane: u64,
}

#[derive(Debug)]
struct Block {
    id: BlockId,
    look: Look,
    wrapper: Wrapper,
    /// Full lines that are not written yet.
    lines: VecDeque<String>,
    drawn: Drawn,
    open: bool,
}

/// How far a block is drawn.
#[derive(Clone, Copy, Debug)]
struct Drawn {
    /// The number of the next bytes that are in another style.
    lead: (usize, Style),
    /// Whether its first line was written.
    begun: bool,
}

/// The last line written, as far as the next one depends on it.
#[derive(Clone, Debug, Default)]
struct Above {
    anything: bool,
    apart: bool,
    bars: Vec<Bar>,
}

/// The columns of the labels.
const LABEL: usize = 12;

#[derive(Debug)]
pub(crate) struct Screen<W> {
    out: W,
    terminal: bool,
    colors: bool,
    columns: usize,
    rows: usize,
    blocks: VecDeque<Block>,
    /// What is still open, in its place or not.
    open: HashMap<BlockId, Look>,
    next: u64,
    above: Above,
    /// How many lines the live part has.
    live: usize,
    /// The line below the live part.
    status: Option<String>,
    painted: Option<Instant>,
}

impl<W: Write> Screen<W> {
    /// A screen that writes here; `terminal` if the output is one, whose size is then asked for.
    pub(crate) fn new(out: W, terminal: bool, colors: bool) -> Self {
        let mut screen = Self {
            out,
            terminal,
            colors,
            columns: 80,
            rows: 200,
            blocks: VecDeque::new(),
            open: HashMap::new(),
            next: 0,
            above: Above::default(),
            live: 0,
            status: None,
            painted: None,
        };
        screen.measure();
        screen
    }

    fn measure(&mut self) {
        let term = console::Term::stdout();
        if let Some((rows, columns)) = term.size_checked().filter(|_| self.terminal) {
            self.columns = usize::from(columns).max(40);
            self.rows = usize::from(rows).max(8);
        }
    }

    pub(crate) fn columns(&self) -> usize {
        self.columns
    }

    pub(crate) fn colors(&self) -> bool {
        self.colors
    }

    /// Begins a block, with this much of its text in another style.
    pub(crate) fn open(&mut self, look: Look, lead: &str, lead_style: Style) -> BlockId {
        let id = BlockId(self.next);
        self.next += 1;
        let (label, lead) = (text::said(&look.label).into_owned(), text::said(lead));
        let look = Look { label, ..look };
        self.open.insert(id, look.clone());
        self.place(id, look, (lead.len(), lead_style));
        self.append(id, &lead);
        id
    }

    fn place(&mut self, id: BlockId, look: Look, lead: (usize, Style)) {
        let margin = margin(&look.bars) + LABEL;
        let wrapper = Wrapper::new(self.columns.saturating_sub(margin + 1).min(110));
        let block =
            Block { id, look, wrapper, lines: VecDeque::new(), drawn: Drawn { lead, begun: false }, open: true };
        self.blocks.push_back(block);
    }

    fn block(&mut self, id: BlockId) -> Option<&mut Block> {
        // A growing block is near the end.
        self.blocks.iter_mut().rev().find(|block| block.id == id && block.open)
    }

    /// Whether these are the last blocks, and wait for one before them to be completed.
    pub(crate) fn are_held(&self, ids: &[BlockId]) -> bool {
        let Some(first) = self.blocks.len().checked_sub(ids.len()) else { return false };
        let waits = self.blocks.iter().take(first).any(|block| block.open);
        waits && self.blocks.iter().skip(first).map(|block| &block.id).eq(ids)
    }

    /// Adds text to a block that is open.
    pub(crate) fn append(&mut self, id: BlockId, text: &str) {
        if text.is_empty() {
            return;
        }
        if self.block(id).is_none() {
            let Some(look) = self.open.get(&id) else { return };
            let look = Look { label: format!("… {}", look.label.trim_start_matches("… ")), ..look.clone() };
            self.place(id, look, (0, Style::new()));
        }
        if let Some(block) = self.block(id) {
            block.wrapper.push(text, &mut block.lines);
        }
    }

    /// Closes a block: nothing more comes for it.
    pub(crate) fn close(&mut self, id: BlockId) {
        let Some(look) = self.open.remove(&id) else { return };
        let Some(at) = self.blocks.iter().rposition(|block| block.id == id && block.open) else { return };
        for (place, block) in self.blocks.iter_mut().enumerate() {
            if place == at || (place < at && !look.aside && block.look.lane == look.lane) {
                block.settle();
            }
        }
    }

    /// A block that is complete at once, of text that may have lines of its own.
    pub(crate) fn text(&mut self, look: Look, lead: (&str, Style), text: &str) -> BlockId {
        let id = self.open(look, lead.0, lead.1);
        self.append(id, if text.is_empty() { " " } else { text });
        self.close(id);
        id
    }

    /// The same for a note, which is cut and on one line.
    pub(crate) fn line(&mut self, look: Look, said: &str) -> BlockId {
        self.text(look, ("", Style::new()), &text::said(said))
    }

    /// Takes back a block that is complete and of which nothing is written.
    pub(crate) fn retract(&mut self, id: BlockId) {
        self.blocks.retain(|block| block.id != id || block.drawn.begun);
    }

    /// Writes text unchanged after everything so far; it has to be escaped already.
    pub(crate) fn raw(&mut self, text: &str) -> io::Result<()> {
        self.blocks.iter_mut().for_each(Block::settle);
        let mut out = self.take_final();
        if self.above.anything {
            out.push("");
        }
        for line in text.lines() {
            out.push(line);
        }
        self.above = Above { anything: true, apart: true, bars: Vec::new() };
        self.write(out, Vec::new())
    }

    /// Sets the line below everything.
    pub(crate) fn set_status(&mut self, status: Option<String>) {
        self.status = status;
    }

    /// Draws what has changed, for somebody to see now: nothing may follow for a while.
    pub(crate) fn paint_now(&mut self) -> io::Result<()> {
        self.paint()?;
        self.out.flush()
    }

    /// Draws what has changed; on a terminal, unless that was done just now. Without one, what is
    /// written must not depend on the time.
    pub(crate) fn paint_soon(&mut self) -> io::Result<()> {
        /// With more blocks, a search takes longer than to draw them.
        const MANY: usize = 64;
        let just_now = self.painted.is_some_and(|painted| painted.elapsed() < Duration::from_millis(33));
        if self.terminal && just_now && self.blocks.len() < MANY {
            return Ok(());
        }
        self.paint()
    }

    /// Draws what has changed.
    pub(crate) fn paint(&mut self) -> io::Result<()> {
        if !self.terminal {
            let mut out = self.take_final();
            while self.blocks.iter().map(|block| block.lines.len() + 1).sum::<usize>() > self.rows {
                self.settle_front(&mut out);
            }
            return self.write(out, Vec::new());
        }
        self.measure();
        let mut out = self.take_final();
        let room = self.rows.saturating_sub(2 + usize::from(self.status.is_some()));
        let mut live = self.live_lines();
        while live.len() > room && !self.blocks.is_empty() {
            self.settle_front(&mut out);
            live = self.live_lines();
        }
        live.extend(self.status.clone());
        self.write(out, live)
    }

    /// Finishes blocks from the front that do not fit; later text of them gets a new block.
    fn settle_front(&mut self, out: &mut Lines) {
        if let Some(front) = self.blocks.front_mut() {
            front.settle();
        }
        out.0.extend(self.take_final().0);
    }

    /// Draws the last time.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        self.blocks.iter_mut().for_each(Block::settle);
        self.open.clear();
        self.status = None;
        self.paint()?;
        self.out.flush()
    }

    /// The lines that are final, which are then forgotten.
    fn take_final(&mut self) -> Lines {
        let mut out = Lines::default();
        while let Some(mut block) = self.blocks.pop_front() {
            while let Some(line) = block.lines.pop_front() {
                block.drawn.draw(&block.look, &line, self.colors, &mut self.above, &mut out);
            }
            if block.open {
                self.blocks.push_front(block);
                break;
            }
        }
        out
    }

    /// The lines that may still change.
    fn live_lines(&self) -> Vec<String> {
        let mut out = Lines::default();
        let mut above = self.above.clone();
        for block in &self.blocks {
            let mut drawn = block.drawn;
            let tail = block.wrapper.tail();
            let lines = block.lines.iter().map(String::as_str);
            // A block that is open shows that it is, even without text.
            for line in lines.chain((block.open && !(tail.is_empty() && block.drawn.begun)).then_some(tail)) {
                drawn.draw(&block.look, line, self.colors, &mut above, &mut out);
            }
        }
        out.0
    }

    fn write(&mut self, out: Lines, live: Vec<String>) -> io::Result<()> {
        if out.0.is_empty() && live.is_empty() && self.live == 0 {
            return Ok(());
        }
        let mut text = String::new();
        if self.terminal {
            // One update, without wrapping: the lines were counted.
            text.push_str("\x1b[?2026h\x1b[?7l");
            if self.live > 0 {
                let _ = write!(text, "\x1b[{}A\r", self.live);
            }
            for line in out.0.iter().chain(&live) {
                let _ = writeln!(text, "{line}\x1b[K");
            }
            text.push_str("\x1b[J\x1b[?7h\x1b[?2026l");
        } else {
            for line in &out.0 {
                let _ = writeln!(text, "{}", line.trim_end());
            }
        }
        self.live = live.len();
        self.out.write_all(text.as_bytes())?;
        let just_now = self.painted.is_some_and(|painted| painted.elapsed() < Duration::from_millis(33));
        if !self.terminal && just_now {
            return Ok(());
        }
        self.painted = Some(Instant::now());
        self.out.flush()
    }
}

/// Lines that are laid out.
#[derive(Debug, Default)]
struct Lines(Vec<String>);

impl Lines {
    fn push(&mut self, line: impl Into<String>) {
        self.0.push(line.into());
    }
}

fn margin(bars: &[Bar]) -> usize {
    (2 * bars.len()).max(2)
}

fn draw_bars(bars: &[Bar], colors: bool) -> String {
    if bars.is_empty() {
        return "  ".to_owned();
    }
    let draw = |bar: &Bar| if colors { paint(true, bar.style, "┃ ") } else { format!("{} ", bar.digit % 10) };
    bars.iter().map(draw).collect()
}

impl Block {
    fn settle(&mut self) {
        self.wrapper.finish(&mut self.lines);
        self.open = false;
    }
}

impl Drawn {
    /// Draws the next line of a block that looks like this.
    fn draw(&mut self, look: &Look, line: &str, colors: bool, above: &mut Above, out: &mut Lines) {
        let first = !std::mem::replace(&mut self.begun, true);
        if first && above.anything && (look.apart || above.apart) {
            let common = above.bars.iter().zip(&look.bars).take_while(|(one, other)| one == other).count();
            let bars = look.bars.get(..common).unwrap_or_default();
            out.push(draw_bars(bars, colors).trim_end());
        }
        if first {
            *above = Above { anything: true, apart: look.apart, bars: look.bars.clone() };
        }
        let label = text::fit(if first { &look.label } else { "" }, LABEL - 1).into_owned();
        let pad = " ".repeat(LABEL.saturating_sub(text::width(&label)));
        let mut shown = draw_bars(&look.bars, colors) + &paint(colors && first, look.label_style, label) + &pad;
        let (led, rest) = line.split_at(at_boundary(line, self.lead.0));
        self.lead.0 = if rest.is_empty() { self.lead.0.saturating_sub(led.len() + 1) } else { 0 };
        if !led.is_empty() {
            shown += &paint(colors, self.lead.1, led);
        }
        if !rest.is_empty() {
            shown += &paint(colors, look.style, rest);
        }
        out.push(shown);
    }
}

fn at_boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// A line across the screen, with text in it.
pub(crate) fn rule(columns: usize, colors: bool, style: Style, parts: &[String]) -> String {
    let mut said = String::new();
    let mut used = 2;
    for part in parts {
        let part = text::said(part);
        let part = text::fit(&part, columns.saturating_sub(used + 4)).into_owned();
        used += text::width(&part) + 4;
        let _ = write!(said, " {} {}", paint(colors, style, &part), paint(colors, DIM, "──"));
    }
    let fill = "─".repeat(columns.saturating_sub(used + 1));
    format!("{}{said}{}", paint(colors, DIM, "──"), paint(colors, DIM, fill))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(lane: u64, label: &str) -> Look {
        Look {
            bars: if lane == 0 { Vec::new() } else { vec![Bar { style: Style::new(), digit: lane }] },
            label: label.to_owned(),
            label_style: Style::new(),
            style: Style::new(),
            apart: true,
            aside: false,
            lane,
        }
    }

    /// What a terminal shows in the end, scrolled or not: it knows what the screen writes.
    fn replay(written: &[u8]) -> Vec<String> {
        let text = String::from_utf8(written.to_vec()).unwrap();
        let (mut rows, mut row, mut column) = (vec![Vec::new()], 0_usize, 0_usize);
        let mut rest = text.chars();
        while let Some(c) = rest.next() {
            match c {
                '\n' => {
                    (row, column) = (row + 1, 0);
                    rows.resize(rows.len().max(row + 1), Vec::new());
                }
                '\r' => column = 0,
                '\x1b' => {
                    let mut sequence = String::new();
                    while !sequence.ends_with(|c: char| c.is_ascii_alphabetic()) {
                        sequence.extend(rest.next().filter(|c| *c != '['));
                    }
                    let (argument, kind) = sequence.split_at(sequence.len() - 1);
                    match kind {
                        "A" => row -= argument.parse::<usize>().unwrap(),
                        "K" => rows[row].truncate(column),
                        "J" => {
                            rows.truncate(row + 1);
                            rows[row].truncate(column);
                        }
                        _ => assert!(argument.starts_with('?'), "{sequence}"),
                    }
                }
                c => {
                    let line = &mut rows[row];
                    line.resize(line.len().max(column + 1), ' ');
                    line[column] = c;
                    column += 1;
                }
            }
        }
        rows.into_iter().map(|row| row.into_iter().collect()).collect()
    }

    /// What these calls come to, with and without a terminal.
    fn drawn(act: impl Fn(&mut Screen<&mut Vec<u8>>)) -> Vec<String> {
        let mut plain = Vec::new();
        let mut screen = Screen::new(&mut plain, false, false);
        act(&mut screen);
        screen.finish().unwrap();
        let plain: Vec<String> = String::from_utf8(plain).unwrap().lines().map(str::to_owned).collect();

        let mut written = Vec::new();
        let mut screen = Screen::new(&mut written, true, false);
        act(&mut screen);
        screen.finish().unwrap();
        let mut terminal: Vec<String> = replay(&written).iter().map(|line| line.trim_end().to_owned()).collect();
        assert_eq!(terminal.pop().as_deref(), Some(""));
        assert_eq!(terminal, plain);
        plain
    }

    #[test]
    fn a_lane_reads_from_top_to_bottom() {
        let lines = drawn(|screen| {
            let first = screen.open(look(0, "first"), "", Style::new());
            screen.append(first, "one");
            screen.paint().unwrap();
            let second = screen.open(look(0, "second"), "", Style::new());
            screen.append(second, "two");
            screen.append(first, " one");
            screen.close(second);
            screen.append(first, "more");
            screen.paint().unwrap();
            screen.close(first);
        });
        assert_eq!(lines, ["  first       one one", "", "  second      two", "", "  … first     more"]);
    }

    #[test]
    fn lanes_grow_side_by_side() {
        let lines = drawn(|screen| {
            let first = screen.open(look(1, "first"), "", Style::new());
            let second = screen.open(look(2, "second"), "", Style::new());
            for word in ["a ", "b ", "c"] {
                screen.append(second, word);
                screen.paint().unwrap();
                screen.append(first, word);
            }
            screen.close(second);
            screen.close(first);
        });
        assert_eq!(lines, ["1 first       a b c", "", "2 second      a b c"]);
    }

    #[test]
    fn what_stands_aside_completes_nothing_and_may_be_taken_back() {
        let lines = drawn(|screen| {
            let text = screen.open(look(0, "text"), "", Style::new());
            screen.append(text, "one ");
            let aside = Look { aside: true, apart: false, ..look(0, "aside") };
            let first = screen.line(aside.clone(), "first");
            screen.append(text, "two");
            assert!(screen.are_held(&[first]));
            screen.retract(first);
            screen.line(aside, "second");
            screen.close(text);
        });
        assert_eq!(lines, ["  text        one two", "", "  aside       second"]);
    }

    #[test]
    fn the_live_part_leaves_nothing_behind() {
        let mut written = Vec::new();
        let mut screen = Screen::new(&mut written, true, false);
        (screen.columns, screen.rows) = (40, 12);
        let one = screen.open(look(1, "one"), "", Style::new());
        let two = screen.open(look(2, "two"), "", Style::new());
        for at in 0..60 {
            screen.append(one, &format!("{at} "));
            screen.append(two, &format!("{at} "));
            screen.paint().unwrap();
            assert!(screen.live <= screen.rows);
        }
        screen.close(one);
        screen.close(two);
        screen.finish().unwrap();
        let lines = replay(&written);
        let all: Vec<&str> = lines.iter().filter_map(|line| line.get(14..)).collect();
        let all = all.join(" ");
        let numbers = all.split_whitespace().filter_map(|word| word.parse::<u32>().ok());
        let mut numbers: Vec<u32> = numbers.collect();
        numbers.sort_unstable();
        let twice: Vec<u32> = (0..60).flat_map(|at| [at, at]).collect();
        assert_eq!(numbers, twice);
    }

    #[test]
    fn a_rule_is_as_wide_as_the_screen() {
        for columns in [40, 80, 120] {
            let line = rule(columns, false, Style::new(), &["run r-1".to_owned(), "thread t-1".to_owned()]);
            assert_eq!(text::width(&line), columns - 1, "{line}");
        }
    }
}
