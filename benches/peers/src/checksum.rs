//! Checksums of the conversation that a contender has assembled, and the slow,
//! obvious assembly it is checked against.

use std::collections::HashMap;

use serde_json::Value;

/// One hash for each thing a consumer may assemble; `None` for what it does
/// not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checksum {
    /// All text deltas in order of arrival, in one string.
    pub arrival: Option<u64>,
    /// Each text message, by id.
    pub texts: Option<u64>,
    /// The arguments of each tool call, by id.
    pub calls: Option<u64>,
    /// Each reasoning message, by id.
    pub thoughts: Option<u64>,
    /// The shared state.
    pub state: Option<u64>,
}

impl Checksum {
    /// Panics unless `who` has assembled this, in everything that it assembles.
    pub fn assert_equals(&self, got: &Self, who: &str) {
        let pairs = [
            (got.arrival, self.arrival, "text in order of arrival"),
            (got.texts, self.texts, "messages"),
            (got.calls, self.calls, "tool calls"),
            (got.thoughts, self.thoughts, "reasoning"),
            (got.state, self.state, "state"),
        ];
        assert!(pairs.iter().any(|(got, ..)| got.is_some()), "{who} shows no result");
        for (got, expected, what) in pairs {
            if got.is_some() {
                assert_eq!(got, expected, "{who} assembled other {what} than was sent");
            }
        }
    }
}

/// Hashes `(id, text)` pairs; their order counts.
pub fn hash_texts<'a>(texts: impl IntoIterator<Item = (&'a str, &'a str)>) -> u64 {
    let mut hash = Fnv::default();
    for (id, text) in texts {
        hash.string(id);
        hash.string(text);
    }
    hash.0
}

/// Hashes a JSON value; the order of object members does not count.
pub fn hash_value(value: &Value) -> u64 {
    let mut hash = Fnv::default();
    hash.value(value);
    hash.0
}

/// Hashes one string.
pub fn hash_text(text: &str) -> u64 {
    let mut hash = Fnv::default();
    hash.string(text);
    hash.0
}

/// Assembles the workload, or the first part of one, in the plainest way.
pub fn expected(events: &[String]) -> Checksum {
    let mut arrival = String::new();
    let mut texts = Entries::default();
    let mut calls = Entries::default();
    let mut thoughts = Entries::default();
    let mut state = Value::Object(serde_json::Map::new());
    for event in events {
        let event: Value = serde_json::from_str(event).expect("a workload event is JSON");
        let field = |name: &str| event[name].as_str().unwrap_or_default();
        match field("type") {
            "TEXT_MESSAGE_START" => texts.extend(field("messageId"), ""),
            "TEXT_MESSAGE_CONTENT" | "TEXT_MESSAGE_CHUNK" => {
                arrival.push_str(field("delta"));
                texts.extend(field("messageId"), field("delta"));
            }
            "TOOL_CALL_START" => calls.extend(field("toolCallId"), ""),
            "TOOL_CALL_ARGS" => calls.extend(field("toolCallId"), field("delta")),
            "REASONING_MESSAGE_START" => thoughts.extend(field("messageId"), ""),
            "REASONING_MESSAGE_CONTENT" => thoughts.extend(field("messageId"), field("delta")),
            "STATE_SNAPSHOT" => state = event["snapshot"].clone(),
            "STATE_DELTA" => {
                let patch: json_patch::Patch =
                    serde_json::from_value(event["delta"].clone()).expect("a workload patch parses");
                json_patch::patch(&mut state, &patch).expect("a workload patch applies");
            }
            _ => {}
        }
    }
    Checksum {
        arrival: Some(hash_text(&arrival)),
        texts: Some(texts.hash()),
        calls: Some(calls.hash()),
        thoughts: Some(thoughts.hash()),
        state: Some(hash_value(&state)),
    }
}

/// Texts in order of first appearance.
#[derive(Default)]
struct Entries {
    list: Vec<(String, String)>,
    places: HashMap<String, usize>,
}

impl Entries {
    fn extend(&mut self, id: &str, delta: &str) {
        let place = *self.places.entry(id.to_owned()).or_insert_with(|| {
            self.list.push((id.to_owned(), String::new()));
            self.list.len() - 1
        });
        self.list[place].1.push_str(delta);
    }

    fn hash(&self) -> u64 {
        hash_texts(self.list.iter().map(|(id, text)| (id.as_str(), text.as_str())))
    }
}

/// FNV-1a: short, and the same everywhere.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    fn byte(&mut self, byte: u8) {
        self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }

    fn string(&mut self, text: &str) {
        text.bytes().for_each(|byte| self.byte(byte));
        // No UTF-8 text contains 0xff, so the pieces cannot run together.
        self.byte(0xff);
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Object(members) => {
                let mut members: Vec<_> = members.iter().collect();
                members.sort_by_key(|(name, _)| name.as_str());
                self.byte(b'{');
                for (name, value) in members {
                    self.string(name);
                    self.value(value);
                }
                self.byte(b'}');
            }
            Value::Array(items) => {
                self.byte(b'[');
                items.iter().for_each(|item| self.value(item));
                self.byte(b']');
            }
            scalar => self.string(&scalar.to_string()),
        }
    }
}
