//! The plot: cost per event against the length of the message and against the
//! length of the thread, both axes logarithmic, as SVG.

use std::fmt::Write;

use crate::report::{Axis, Record, count, time};

const WIDTH: f64 = 1100.0;
const PANEL_TOP: f64 = 64.0;
const PANEL_HEIGHT: f64 = 430.0;
const PANEL_WIDTH: f64 = 460.0;
const LEFTS: [f64; 2] = [84.0, 610.0];
const LEGEND_TOP: f64 = PANEL_TOP + PANEL_HEIGHT + 78.0;
const LEGEND_ROW: f64 = 24.0;
const LEGEND_COLUMNS: usize = 3;

const CAPTION: &str = "Dashed: a snapshot of the conversation is read after every event. \
    On the left, a line ends where a whole message takes longer than a few seconds.";

/// How a contender is drawn. Colour tells the contender, the dash the reading.
struct Style {
    contender: &'static str,
    reading: &'static str,
    label: &'static str,
    colour: &'static str,
    dash: &'static str,
    width: f64,
}

const fn style(contender: &'static str, reading: &'static str, label: &'static str, colour: &'static str) -> Style {
    let dash = match reading.as_bytes() {
        b"none" => "none",
        b"latest" => "7 4",
        _ => "2 3",
    };
    let ours = matches!(contender.as_bytes(), b"ours" | b"ours async");
    Style { contender, reading, label, colour, dash, width: if ours { 2.6 } else { 1.8 } }
}

/// Colours that stay apart for colour-blind readers (Okabe and Ito).
const STYLES: [Style; 13] = [
    style("floor", "none", "floor: parse only", "#555555"),
    style("ours", "none", "ag-ui-stream", "#0072b2"),
    style("ours", "latest", "ag-ui-stream, snapshots", "#0072b2"),
    style("ours", "held", "ag-ui-stream, all snapshots kept", "#0072b2"),
    style("ours async", "latest", "ag-ui-stream async, snapshots", "#56b4e9"),
    style("everruns-core", "none", "everruns-core", "#e69f00"),
    style("everruns-core", "latest", "everruns-core, snapshots", "#e69f00"),
    style("everruns-core typed", "none", "everruns-core, unenforced", "#a6761d"),
    style("ag-ui by hand", "none", "ag-ui by hand, unenforced", "#009e73"),
    style("ag-ui by hand", "latest", "ag-ui by hand, snapshots", "#009e73"),
    style("ag-ui Thread", "none", "ag-ui Thread", "#cc79a7"),
    style("ag-ui Thread", "latest", "ag-ui Thread, snapshots", "#cc79a7"),
    style("reference runAgent", "latest", "TypeScript reference, runAgent", "#d55e00"),
];

/// Draws the records of the two plot axes.
pub fn draw(records: &[Record]) -> String {
    let drawn: Vec<&Style> = STYLES
        .iter()
        .filter(|style| records.iter().any(|record| record.axis != Axis::Table && is_in(record, style)))
        .collect();
    let rows = drawn.len().div_ceil(LEGEND_COLUMNS);
    let caption = LEGEND_TOP + rows as f64 * LEGEND_ROW + 8.0;
    let height = caption + 22.0;
    let mut svg = Svg(String::new());
    svg.line(format_args!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="system-ui, 'Segoe UI', Helvetica, Arial, sans-serif" font-size="13" fill="#222">"##
    ));
    svg.line(format_args!(r##"<rect width="{WIDTH}" height="{height}" fill="#fff"/>"##));

    let plotted = records.iter().filter(|record| record.axis != Axis::Table);
    let costs = Scale::around(plotted.map(|record| record.min), PANEL_TOP + PANEL_HEIGHT, PANEL_TOP);
    let panels = [
        (Axis::Text, "Cost of an event, by length of the message", "deltas in the one message"),
        (Axis::Thread, "Cost of an event, by length of the thread", "messages before the streaming one"),
    ];
    for ((axis, title, unit), left) in panels.into_iter().zip(LEFTS) {
        let points = records.iter().filter(|record| record.axis == axis);
        let sizes = Scale::within(points.map(|record| record.size as f64), left, left + PANEL_WIDTH);
        svg.grid(&sizes, &costs, title, unit);
        for style in &drawn {
            let points: Vec<(f64, f64)> = records
                .iter()
                .filter(|record| record.axis == axis && is_in(record, style))
                .map(|record| (sizes.at(record.size as f64), costs.at(record.min)))
                .collect();
            svg.series(style, &points);
        }
    }
    for (at, style) in drawn.iter().enumerate() {
        let x = LEFTS[0] + (at / rows) as f64 * 335.0;
        let y = LEGEND_TOP + (at % rows) as f64 * LEGEND_ROW;
        svg.series(style, &[(x, y), (x + 21.0, y), (x + 42.0, y)]);
        svg.text(x + 52.0, y + 4.5, "start", style.label);
    }
    svg.line(format_args!(r##"<g fill="#666">"##));
    svg.text(LEFTS[0], caption, "start", CAPTION);
    svg.line(format_args!("</g>\n</svg>"));
    svg.0
}

fn is_in(record: &Record, style: &Style) -> bool {
    record.contender == style.contender && record.reading == style.reading
}

/// A logarithmic scale from values to places.
struct Scale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Scale {
    /// From the whole decade below the values to the one above.
    fn around(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Self {
        let exact = Self::within(values, from, to);
        Self { low: exact.low.floor(), high: exact.high.ceil(), ..exact }
    }

    /// From the least value to the greatest.
    fn within(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Self {
        let (low, high) =
            values.fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value.log10()), high.max(value.log10())));
        Self { low, high: high.max(low + 1.0), from, to }
    }

    fn at(&self, value: f64) -> f64 {
        let part = (value.log10() - self.low) / (self.high - self.low);
        self.from + part * (self.to - self.from)
    }

    /// The powers of ten within the scale.
    fn decades(&self) -> impl Iterator<Item = f64> {
        let near = 1e-9;
        ((self.low - near).ceil() as i32..=(self.high + near).floor() as i32).map(|power| 10_f64.powi(power))
    }
}

struct Svg(String);

impl Svg {
    fn line(&mut self, element: std::fmt::Arguments<'_>) {
        writeln!(self.0, "{element}").expect("writing to a string cannot fail");
    }

    fn text(&mut self, x: f64, y: f64, anchor: &str, text: &str) {
        self.line(format_args!(r#"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}">{text}</text>"#));
    }

    fn grid(&mut self, sizes: &Scale, costs: &Scale, title: &str, unit: &str) {
        let (left, right) = (sizes.from, sizes.to);
        let bottom = PANEL_TOP + PANEL_HEIGHT;
        self.line(format_args!(
            r#"<text x="{left}" y="{}" font-size="16" font-weight="600">{title}</text>"#,
            PANEL_TOP - 22.0
        ));
        for cost in costs.decades() {
            let y = costs.at(cost);
            self.line(format_args!(r##"<path d="M{left:.1} {y:.1}H{right:.1}" stroke="#ddd" fill="none"/>"##));
            // Whole decades need no decimals.
            self.text(left - 10.0, y + 4.5, "end", &time(cost).replace(".00", "").replace(".0", ""));
        }
        for size in sizes.decades() {
            let x = sizes.at(size);
            self.line(format_args!(r##"<path d="M{x:.1} {PANEL_TOP}V{bottom}" stroke="#ddd" fill="none"/>"##));
            self.text(x, bottom + 20.0, "middle", &count(size.round() as usize));
        }
        self.line(format_args!(
            r##"<path d="M{left:.1} {PANEL_TOP}V{bottom}H{right:.1}" stroke="#888" fill="none"/>"##
        ));
        self.text(f64::midpoint(left, right), bottom + 42.0, "middle", unit);
    }

    fn series(&mut self, style: &Style, points: &[(f64, f64)]) {
        let Style { colour, dash, width, .. } = style;
        let line: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        self.line(format_args!(
            r#"<polyline points="{}" fill="none" stroke="{colour}" stroke-width="{width}" stroke-dasharray="{dash}" stroke-linejoin="round"/>"#,
            line.join(" ")
        ));
        for (x, y) in points {
            self.line(format_args!(r#"<circle cx="{x:.1}" cy="{y:.1}" r="{:.1}" fill="{colour}"/>"#, width + 0.8));
        }
    }
}
