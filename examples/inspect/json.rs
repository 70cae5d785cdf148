//! Finds the parts of a JSON text by its brackets and quotes: the text may be cut or broken.

use std::ops::Range;

/// A member of an object or an element of an array.
#[derive(Debug)]
pub(crate) struct Entry {
    /// A member's name.
    pub(crate) name: Option<String>,
    /// The range of its value, to the end of the text if it is cut.
    pub(crate) value: Range<usize>,
}

/// The entries of the object or array that a text begins with.
#[derive(Debug)]
pub(crate) struct Entries<'t> {
    text: &'t [u8],
    at: usize,
    is_object: bool,
    over: bool,
    /// Whether the text ended before the object or array did.
    pub(crate) is_cut: bool,
}

impl<'t> Entries<'t> {
    pub(crate) fn of(text: &'t [u8]) -> Self {
        let mut entries = Self { text, at: 0, is_object: false, over: false, is_cut: false };
        let first = entries.skip_space();
        entries.is_object = first == Some(b'{');
        entries.over = !matches!(first, Some(b'{' | b'['));
        entries.is_cut = first.is_none();
        entries.at += 1;
        entries
    }

    fn rest(&self) -> &'t [u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn skip_space(&mut self) -> Option<u8> {
        self.at = self.text.len() - self.rest().trim_ascii_start().len();
        self.rest().first().copied()
    }

    /// Takes a byte that has to come next.
    fn take(&mut self, wanted: u8) -> Option<()> {
        let found = self.skip_space();
        self.is_cut = found.is_none();
        self.at += 1;
        (found == Some(wanted)).then_some(())
    }

    fn take_value(&mut self) -> Range<usize> {
        self.skip_space();
        let (length, ends) = value_length(self.rest());
        self.is_cut = !ends;
        let from = self.at;
        self.at += length;
        from..self.at
    }

    fn entry(&mut self) -> Option<Entry> {
        let mut name = None;
        if self.is_object {
            let key = self.take_value();
            name = Some(serde_json::from_slice(self.text.get(key)?).ok()?);
            self.take(b':')?;
        }
        let value = self.take_value();
        if value.is_empty() && !self.is_cut {
            return None;
        }
        self.over = self.is_cut || self.skip_space() != Some(b',');
        self.is_cut |= self.rest().is_empty();
        self.at += 1;
        Some(Entry { name, value })
    }
}

impl Iterator for Entries<'_> {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        if self.over {
            return None;
        }
        let entry = self.entry();
        self.over |= entry.is_none();
        entry
    }
}

/// The length of the first JSON value of a text, and whether the value is complete.
pub(crate) fn value_length(text: &[u8]) -> (usize, bool) {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for (at, byte) in text.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => continue,
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth > 0 => depth -= 1,
            b'}' | b']' | b',' | b':' | b' ' | b'\t' | b'\r' | b'\n' if depth == 0 => return (at, true),
            _ => continue,
        }
        if depth == 0 && !in_string {
            return (at + 1, true);
        }
    }
    (text.len(), false)
}

/// The range of the value at a JSON pointer in a JSON text.
pub(crate) fn locate(text: &[u8], pointer: &str) -> Option<Range<usize>> {
    let from = text.len() - text.trim_ascii_start().len();
    let (length, ends) = value_length(text.get(from..)?);
    let mut found = Some(from..from + length).filter(|_| length > 0 && (ends || !pointer.is_empty()))?;
    for token in pointer.split('/').skip(1) {
        let token = token.replace("~1", "/").replace("~0", "~");
        let mut entries = Entries::of(text.get(found.clone())?);
        let mut within = None;
        for (count, entry) in entries.by_ref().enumerate() {
            // The last of several equal keys counts.
            if entry.name.map_or_else(|| token.parse() == Ok(count), |name| name == token) {
                within = Some(entry.value);
            }
        }
        let within = within?;
        found = found.start + within.start..found.start + within.end;
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found<'t>(text: &'t str, pointer: &str) -> Option<&'t str> {
        locate(text.as_bytes(), pointer).map(|range| &text[range])
    }

    #[test]
    fn a_pointer_leads_to_its_value() {
        let text = r#" {"a" : {"b/c":[1, {"d":"x\",y"} ]}, "a~":null,"e":1,"e":2}"#;
        assert_eq!(found(text, "/a/b~1c/1/d"), Some(r#""x\",y""#));
        assert_eq!(found(text, "/a/b~1c/0"), Some("1"));
        assert_eq!(found(text, "/a~0"), Some("null"));
        assert_eq!(found(text, "/e"), Some("2"));
        assert_eq!(found(text, ""), Some(text.trim()));
        for absent in ["/z", "/a/b~1c/2", "/e/f", "/a/x"] {
            assert_eq!(found(text, absent), None, "{absent}");
        }
        for broken in ["", "{", "{\"a\"", "{a:1}", "[1 2", "]", "{\"a\" 1}", "[]", "{}"] {
            assert_eq!(found(broken, "/a"), None, "{broken}");
        }
        // Of a text that is cut, the part that is there.
        assert_eq!(found("{\"a\":{\"b\":1},\"c\":\"x", "/a/b"), Some("1"));
    }

    #[test]
    fn whoever_looks_knows_whether_more_may_come() {
        for (text, names, is_cut) in [
            ("", &[][..], true),
            (" {", &[], true),
            ("{}", &[], false),
            ("{\"a\"", &[], true),
            ("{\"a\":", &["a"], true),
            ("{\"a\":\"x", &["a"], true),
            ("{\"a\":1", &["a"], true),
            ("{\"a\":1,", &["a"], true),
            ("{\"a\":[1],\"b\":2}", &["a", "b"], false),
            ("{\"a\" 1}", &[], false),
            ("{\"a\":1 ;", &["a"], false),
            ("x", &[], false),
        ] {
            let mut entries = Entries::of(text.as_bytes());
            let found: Vec<String> = entries.by_ref().filter_map(|entry| entry.name).collect();
            assert_eq!(
                (found.iter().map(String::as_str).collect::<Vec<_>>(), entries.is_cut),
                (names.to_vec(), is_cut),
                "{text}"
            );
        }
    }
}
