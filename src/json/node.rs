//! A tree of JSON that borrows from its source, text or a [`Value`].
//!
//! Unlike `serde_json` it keeps lone halves of surrogate pairs (rule E11), numbers as they were written
//! (rule E10), and the order of keys. Events that need none of this are read from text without it.

use core::fmt;

use serde_json::{Map, Number, Value};

use super::scan::{Scanner, SyntaxError};
use super::string::Str;
use crate::excerpt::excerpt;

/// A JSON value.
#[derive(Debug)]
pub(crate) enum Node<'a> {
    Null,
    Bool(bool),
    Number(Num<'a>),
    String(Str<'a>),
    Array(Vec<Node<'a>>),
    /// Keys are distinct: of equal ones the last is kept.
    Object(Vec<(Str<'a>, Node<'a>)>),
}

/// A number: as it was written, or as a [`Value`] holds it.
#[derive(Debug)]
pub(crate) enum Num<'a> {
    Text(&'a str),
    Value(&'a Number),
}

impl<'a> Node<'a> {
    /// Parses a whole JSON text.
    pub(crate) fn parse(text: &'a str, max_depth: usize) -> Result<Self, SyntaxError> {
        let mut scanner = Scanner::new(text);
        scanner.skip_whitespace();
        let node = Self::parse_value(&mut scanner, max_depth)?;
        scanner.skip_whitespace();
        if scanner.is_at_end() { Ok(node) } else { Err(scanner.error("more text after the end of the value")) }
    }

    fn parse_value(scanner: &mut Scanner<'a>, depth: usize) -> Result<Self, SyntaxError> {
        match scanner.peek() {
            Some(b'{') => Self::parse_object(scanner, depth),
            Some(b'[') => Self::parse_array(scanner, depth),
            Some(b'"') => scanner.string().map(Node::String),
            Some(b't') => scanner.literal("true").map(|()| Node::Bool(true)),
            Some(b'f') => scanner.literal("false").map(|()| Node::Bool(false)),
            Some(b'n') => scanner.literal("null").map(|()| Node::Null),
            Some(b'-' | b'0'..=b'9') => scanner.number().map(|text| Node::Number(Num::Text(text))),
            Some(_) => Err(scanner.error("expected a value")),
            None => Err(scanner.error("the text ends where a value should be")),
        }
    }

    fn parse_array(scanner: &mut Scanner<'a>, depth: usize) -> Result<Self, SyntaxError> {
        let depth = depth.checked_sub(1).ok_or_else(|| scanner.too_deep())?;
        scanner.advance();
        scanner.skip_whitespace();
        let mut elements = Vec::new();
        if scanner.take(b']') {
            return Ok(Node::Array(elements));
        }
        loop {
            elements.push(Self::parse_value(scanner, depth)?);
            scanner.skip_whitespace();
            if scanner.take(b',') {
                scanner.skip_whitespace();
            } else if scanner.take(b']') {
                return Ok(Node::Array(elements));
            } else {
                return Err(scanner.error("expected `,` or `]`"));
            }
        }
    }

    fn parse_object(scanner: &mut Scanner<'a>, depth: usize) -> Result<Self, SyntaxError> {
        let depth = depth.checked_sub(1).ok_or_else(|| scanner.too_deep())?;
        scanner.advance();
        scanner.skip_whitespace();
        let mut members = Vec::new();
        if scanner.take(b'}') {
            return Ok(Node::Object(members));
        }
        loop {
            if scanner.peek() != Some(b'"') {
                return Err(scanner.error("expected a key"));
            }
            let key = scanner.string()?;
            scanner.skip_whitespace();
            if !scanner.take(b':') {
                return Err(scanner.error("expected `:`"));
            }
            scanner.skip_whitespace();
            members.push((key, Self::parse_value(scanner, depth)?));
            scanner.skip_whitespace();
            if scanner.take(b',') {
                scanner.skip_whitespace();
            } else if scanner.take(b'}') {
                keep_last_of_equal_keys(&mut members);
                return Ok(Node::Object(members));
            } else {
                return Err(scanner.error("expected `,` or `}`"));
            }
        }
    }

    /// The same tree over a [`Value`]; `None` where it is nested deeper than allowed.
    pub(crate) fn from_value(value: &'a Value, max_depth: usize) -> Option<Self> {
        Some(match value {
            Value::Null => Node::Null,
            Value::Bool(value) => Node::Bool(*value),
            Value::Number(number) => Node::Number(Num::Value(number)),
            Value::String(text) => Node::String(Str::borrowed(text)),
            Value::Array(elements) => {
                let depth = max_depth.checked_sub(1)?;
                Node::Array(elements.iter().map(|element| Self::from_value(element, depth)).collect::<Option<_>>()?)
            }
            Value::Object(members) => Self::from_map(members, max_depth)?,
        })
    }

    /// The same for an object.
    pub(crate) fn from_map(members: &'a Map<String, Value>, max_depth: usize) -> Option<Self> {
        let depth = max_depth.checked_sub(1)?;
        let members = members.iter().map(|(key, value)| Some((Str::borrowed(key), Self::from_value(value, depth)?)));
        Some(Node::Object(members.collect::<Option<_>>()?))
    }

    /// The value in words, for an error message.
    pub(crate) fn describe(&self) -> String {
        match self {
            Node::Null => "null".into(),
            Node::Bool(value) => value.to_string(),
            Node::Number(number) => format!("the number {number}"),
            Node::String(text) => format!("the string {:?}", excerpt(text.as_str(), 40)),
            Node::Array(_) => "an array".into(),
            Node::Object(_) => "an object".into(),
        }
    }

    /// The beginning of the value as compact JSON, at most `max` bytes, for an error to quote. Members are
    /// sorted, so that the quote does not depend on the form of the input.
    pub(crate) fn beginning(&self, max: usize) -> String {
        let mut text = String::new();
        self.write_beginning(&mut text, max);
        excerpt(&text, max).into_owned()
    }

    fn write_beginning(&self, text: &mut String, max: usize) {
        let quoted = |name: &Str<'_>| Value::from(excerpt(name.as_str(), max)).to_string();
        match self {
            // What follows is beyond the quote.
            _ if text.len() > max => {}
            Node::Null => text.push_str("null"),
            Node::Bool(value) => text.push_str(if *value { "true" } else { "false" }),
            Node::Number(number) => {
                text.push_str(&number.to_number().map_or("null".to_owned(), |number| number.to_string()))
            }
            Node::String(value) => text.push_str(&quoted(value)),
            Node::Array(elements) => {
                for (at, element) in elements.iter().enumerate().take(max) {
                    text.push(if at == 0 { '[' } else { ',' });
                    element.write_beginning(text, max);
                }
                text.push_str(if elements.is_empty() { "[]" } else { "]" });
            }
            Node::Object(members) => {
                let mut members: Vec<_> = members.iter().collect();
                members.sort_unstable_by_key(|(name, _)| name.as_str());
                for (at, (name, value)) in members.iter().enumerate().take(max) {
                    text.push(if at == 0 { '{' } else { ',' });
                    text.push_str(&quoted(name));
                    text.push(':');
                    value.write_beginning(text, max);
                }
                text.push_str(if members.is_empty() { "{}" } else { "}" });
            }
        }
    }
}

impl fmt::Display for Num<'_> {
    /// The number as it was written, cut if it is long.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Num::Text(text) => f.write_str(&excerpt(text, 40)),
            Num::Value(number) => number.fmt(f),
        }
    }
}

impl Num<'_> {
    /// The number as JSON.parse reads it; `None` if it is not finite.
    pub(crate) fn to_number(&self) -> Option<Number> {
        match self {
            Num::Value(number) => Some((*number).clone()),
            Num::Text(text) => {
                if let Ok(value) = text.parse::<u64>() {
                    return Some(value.into());
                }
                // "-0" is a float in JSON.parse and in serde_json: an integer has no negative zero.
                if *text != "-0" {
                    if let Ok(value) = text.parse::<i64>() {
                        return Some(value.into());
                    }
                }
                text.parse::<f64>().ok().and_then(Number::from_f64)
            }
        }
    }

    /// The number as an integer, judged by its value (rule E10).
    pub(crate) fn to_integer(&self) -> Option<i64> {
        let number = self.to_number()?;
        if let Some(value) = number.as_i64() {
            return Some(value);
        }
        let value = number.as_f64()?;
        // No integer field accepts a value beyond this range, so precision does not matter there.
        #[allow(clippy::cast_possible_truncation, reason = "whole and within the range of i64")]
        (value.fract() == 0.0 && value.abs() < 9.2e18).then_some(value as i64)
    }
}

fn keep_last_of_equal_keys(members: &mut Vec<(Str<'_>, Node<'_>)>) {
    // Most objects are small; the set only pays for larger ones.
    let repeated = if members.len() <= 16 {
        members
            .iter()
            .enumerate()
            .any(|(at, (key, _))| members.iter().take(at).any(|(other, _)| other.text == key.text))
    } else {
        let mut seen = std::collections::HashSet::with_capacity(members.len());
        !members.iter().all(|(key, _)| seen.insert(key.as_str()))
    };
    if repeated {
        let mut seen = std::collections::HashSet::with_capacity(members.len());
        let mut keep: Vec<bool> = members.iter().rev().map(|(key, _)| seen.insert(key.as_str().to_owned())).collect();
        members.retain(|_| keep.pop().unwrap_or(true));
    }
}
