//! Writes a tree of JSON as text or as a value.

use serde_json::{Map, Value};

use super::node::{Node, Num};
use super::string::Str;

impl Node<'_> {
    /// The tree as JSON text, which reads back as the same tree: numbers stay as they were written, and
    /// halves of surrogate pairs stay halves (rule E11).
    pub(crate) fn to_text(&self) -> String {
        let mut text = String::new();
        self.write(&mut text);
        text
    }

    fn write(&self, out: &mut String) {
        match self {
            Node::Null => out.push_str("null"),
            Node::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Node::Number(Num::Text(text)) => out.push_str(text),
            Node::Number(Num::Value(number)) => out.push_str(&number.to_string()),
            Node::String(text) => text.write(out),
            Node::Array(elements) => {
                out.push('[');
                for (at, element) in elements.iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    element.write(out);
                }
                out.push(']');
            }
            Node::Object(members) => {
                out.push('{');
                for (at, (key, value)) in members.iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    key.write(out);
                    out.push(':');
                    value.write(out);
                }
                out.push('}');
            }
        }
    }

    /// The tree as a value; `None` where a number is beyond a double.
    pub(crate) fn to_value(&self) -> Option<Value> {
        Some(match self {
            Node::Null => Value::Null,
            Node::Bool(value) => Value::Bool(*value),
            Node::Number(number) => Value::Number(number.to_number()?),
            Node::String(text) => Value::String(text.as_str().to_owned()),
            Node::Array(elements) => Value::Array(elements.iter().map(Node::to_value).collect::<Option<_>>()?),
            Node::Object(members) => {
                let members = members.iter().map(|(key, value)| Some((key.as_str().to_owned(), value.to_value()?)));
                Value::Object(members.collect::<Option<Map<_, _>>>()?)
            }
        })
    }
}

impl Str<'_> {
    fn write(&self, out: &mut String) {
        out.push('"');
        let text = self.as_str();
        let last = text.char_indices().next_back().map_or(0, |(at, _)| at);
        // The places of inner halves are not known, only that there was one. The first U+FFFD that is
        // not a half at an end stands for it, and reads back the same.
        let mut inner = self.lone.inner;
        for (at, character) in text.char_indices() {
            match character {
                char::REPLACEMENT_CHARACTER if at == 0 && self.lone.leading != 0 => unit(self.lone.leading, out),
                char::REPLACEMENT_CHARACTER if at == last && self.lone.trailing != 0 => unit(self.lone.trailing, out),
                char::REPLACEMENT_CHARACTER if inner => {
                    inner = false;
                    // A low half at the start, or a high one at the end, would be one at that end.
                    unit(if at == 0 { 0xd800 } else { 0xdc00 }, out);
                }
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\"),
                '\0'..='\u{1f}' => unit(u16::try_from(u32::from(character)).unwrap_or_default(), out),
                _ => out.push(character),
            }
        }
        out.push('"');
    }
}

fn unit(unit: u16, out: &mut String) {
    out.push_str(&format!("\\u{unit:04x}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn e11_a_written_tree_reads_back_with_its_halves() {
        for body in [
            "",
            "plain",
            r"\ud83d",
            r"\ude00",
            r"\ude00\ud83d",
            r"\ud83d\ude00",
            r"\ud83dx",
            r"x\ude00",
            r"x\ud83dy",
            r"\ud83d\ud83d",
            r"\ude00\ude00",
            r"\ude00\ufffd\ud83dx\ud83d",
            r"\ufffd",
            r"\ufffd\ufffdx\ude00",
            r#"\"\\\/\b\f\n\r\t\u0000\u001f"#,
        ] {
            let text = format!("\"{body}\"");
            let written = Node::parse(&text, 1).unwrap().to_text();
            let (Node::String(before), Node::String(after)) =
                (Node::parse(&text, 1).unwrap(), Node::parse(&written, 1).unwrap())
            else {
                panic!("{body} is a string");
            };
            assert_eq!((before.text, before.lone), (after.text, after.lone), "{body} as {written}");
        }
    }

    #[test]
    fn e10_a_written_tree_keeps_numbers_as_they_were() {
        for text in
            ["1.7e12", "-0", "1e400", "123456789012345678901234567890", "[1,2.50,{\"a\":null,\"b\":[true,false]}]"]
        {
            assert_eq!(Node::parse(text, 64).unwrap().to_text(), text);
        }
    }
}
