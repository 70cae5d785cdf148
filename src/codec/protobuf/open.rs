//! Open values in protobuf: JSON as `google.protobuf.Value` and `google.protobuf.Struct`
//! (<https://protobuf.dev/reference/protobuf/google.protobuf/#value>).
//!
//! Not read through `prost`, whose limit of 100 nested messages is 33 levels of JSON: the bound on depth
//! is that of [`Limits`](crate::Limits) (rules E10 and P4).

use serde_json::{Map, Number, Value};

use super::Fault;
use super::wire::{Field, Fields, broken, put_varint};

/// Reads a `Value` from all occurrences of its field, which count as one message.
///
/// `None` for one without content. Costs one pass over the bytes and one copy of the strings. NaN and
/// the infinities, which JSON cannot express, become null and are counted in `lost` (rules E10 and P4).
pub(super) fn value(occurrences: &[Vec<u8>], depth: usize, lost: &mut usize) -> Result<Option<Value>, Fault> {
    let mut value = None;
    for bytes in occurrences {
        merge_value(&mut value, bytes, depth, lost)?;
    }
    Ok(value)
}

/// The same for a `Struct`; `None` if it does not occur.
pub(super) fn object(occurrences: &[Vec<u8>], depth: usize, lost: &mut usize) -> Result<Option<Value>, Fault> {
    if occurrences.is_empty() {
        return Ok(None);
    }
    let mut object = None;
    for bytes in occurrences {
        merge_struct(object_in(&mut object), bytes, depth, lost)?;
    }
    Ok(object)
}

/// Of several kinds in one `Value` the last counts; objects and lists in several pieces are merged.
///
/// This and the two below call each other once a level, so they use little stack: parts that need more
/// are functions of their own.
fn merge_value(value: &mut Option<Value>, bytes: &[u8], depth: usize, lost: &mut usize) -> Result<(), Fault> {
    let mut fields = Fields::of(bytes);
    while let Some(field) = fields.next()? {
        match field {
            (5, Field::Bytes(bytes)) => merge_struct(object_in(value), bytes, depth, lost)?,
            (6, Field::Bytes(bytes)) => merge_list(list_in(value), bytes, depth, lost)?,
            scalar => merge_scalar(value, scalar, lost)?,
        }
    }
    Ok(())
}

fn merge_scalar(value: &mut Option<Value>, field: (u32, Field<'_>), lost: &mut usize) -> Result<(), Fault> {
    *value = Some(match field {
        (1, Field::Varint(_)) => Value::Null,
        (2, Field::Fixed64(bits)) => number(f64::from_bits(bits)).map_or_else(
            || {
                *lost = lost.saturating_add(1);
                Value::Null
            },
            Value::Number,
        ),
        (3, Field::Bytes(bytes)) => Value::String(text(bytes)?.to_owned()),
        (4, Field::Varint(bit)) => Value::Bool(bit != 0),
        // Unknown fields are ignored, as everywhere in protobuf.
        _ => return Ok(()),
    });
    Ok(())
}

/// The object in a value, made if it is not one.
fn object_in(value: &mut Option<Value>) -> Option<&mut Map<String, Value>> {
    if !matches!(value, Some(Value::Object(_))) {
        *value = Some(Value::Object(Map::new()));
    }
    value.as_mut().and_then(Value::as_object_mut)
}

/// The list in a value, made if it is not one.
fn list_in(value: &mut Option<Value>) -> Option<&mut Vec<Value>> {
    if !matches!(value, Some(Value::Array(_))) {
        *value = Some(Value::Array(Vec::new()));
    }
    value.as_mut().and_then(Value::as_array_mut)
}

fn merge_struct(
    object: Option<&mut Map<String, Value>>,
    bytes: &[u8],
    depth: usize,
    lost: &mut usize,
) -> Result<(), Fault> {
    let (Some(object), Some(depth)) = (object, depth.checked_sub(1)) else { return Err(Fault::TooDeep) };
    let mut entries = Fields::of(bytes);
    while let Some(entry) = entries.next()? {
        if let (1, Field::Bytes(entry)) = entry {
            let mut value = None;
            let mut fields = Fields::of(entry);
            while let Some(field) = fields.next()? {
                if let (2, Field::Bytes(bytes)) = field {
                    merge_value(&mut value, bytes, depth, lost)?;
                }
            }
            put(object, entry, value)?;
        }
    }
    Ok(())
}

/// Adds a member under the key of its entry. An entry without a value is left out: JSON cannot express
/// it.
fn put(object: &mut Map<String, Value>, entry: &[u8], value: Option<Value>) -> Result<(), Fault> {
    let mut key = "";
    let mut fields = Fields::of(entry);
    while let Some(field) = fields.next()? {
        if let (1, Field::Bytes(bytes)) = field {
            key = text(bytes)?;
        }
    }
    if let Some(value) = value {
        object.insert(key.to_owned(), value);
    }
    Ok(())
}

fn merge_list(list: Option<&mut Vec<Value>>, bytes: &[u8], depth: usize, lost: &mut usize) -> Result<(), Fault> {
    let (Some(list), Some(depth)) = (list, depth.checked_sub(1)) else { return Err(Fault::TooDeep) };
    let mut elements = Fields::of(bytes);
    while let Some(element) = elements.next()? {
        if let (1, Field::Bytes(bytes)) = element {
            let mut value = None;
            merge_value(&mut value, bytes, depth, lost)?;
            // Null, not nothing, as the places of the others count.
            list.push(value.unwrap_or_default());
        }
    }
    Ok(())
}

/// The number after JSON.stringify and JSON.parse: whole ones are integers. `None` if JSON.stringify
/// writes null.
fn number(value: f64) -> Option<Number> {
    const TWO_TO_64: f64 = 18_446_744_073_709_551_616.0;
    if value.fract() == 0.0 && !(value == 0.0 && value.is_sign_negative()) {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole and within the range")]
        if (0.0..TWO_TO_64).contains(&value) {
            return Some((value as u64).into());
        } else if (-TWO_TO_64 / 2.0..0.0).contains(&value) {
            return Some((value as i64).into());
        }
    }
    Number::from_f64(value)
}

fn text(bytes: &[u8]) -> Result<&str, Fault> {
    core::str::from_utf8(bytes).map_err(|_| broken("a string that is not UTF-8"))
}

/// Writes a `Value`.
///
/// Costs one pass over the value: a message is written from its end, so that its length is known
/// when it is wanted, and turned around as a whole.
pub(super) fn write_value(value: &Value) -> Vec<u8> {
    let mut out = Backwards::default();
    out.value(value);
    out.finish()
}

/// Writes a `Struct`.
pub(super) fn write_object(object: &Map<String, Value>) -> Vec<u8> {
    let mut out = Backwards::default();
    out.fields(object);
    out.finish()
}

#[derive(Default)]
struct Backwards(Vec<u8>);

impl Backwards {
    fn value(&mut self, value: &Value) {
        match value {
            Value::Null => self.0.extend([0, 0x08]),
            Value::Bool(bit) => self.0.extend([u8::from(*bit), 0x20]),
            Value::Number(number) => {
                // Every number of JSON is a double here, as it is in JavaScript.
                let bits = number.as_f64().unwrap_or_default().to_bits();
                self.0.extend(bits.to_be_bytes());
                self.0.push(0x11);
            }
            Value::String(text) => self.delimited(0x1a, |out| out.text(text)),
            Value::Array(elements) => self.delimited(0x32, |out| {
                for element in elements.iter().rev() {
                    out.delimited(0x0a, |out| out.value(element));
                }
            }),
            Value::Object(object) => self.delimited(0x2a, |out| out.fields(object)),
        }
    }

    fn fields(&mut self, object: &Map<String, Value>) {
        for (key, value) in object.iter().rev() {
            self.delimited(0x0a, |out| {
                out.delimited(0x12, |out| out.value(value));
                if !key.is_empty() {
                    out.delimited(0x0a, |out| out.text(key));
                }
            });
        }
    }

    fn text(&mut self, text: &str) {
        self.0.extend(text.bytes().rev());
    }

    fn delimited(&mut self, tag: u8, write: impl FnOnce(&mut Self)) {
        let start = self.0.len();
        write(self);
        let len = self.0.len() - start;
        let head = self.0.len();
        self.0.push(tag);
        put_varint(&mut self.0, len as u64);
        self.0.get_mut(head..).unwrap_or_default().reverse();
    }

    fn finish(mut self) -> Vec<u8> {
        self.0.reverse();
        self.0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::limits::Limits;

    fn read(bytes: &[u8]) -> Result<Option<Value>, Fault> {
        value(&[bytes.to_vec()], 8, &mut 0)
    }

    #[test]
    fn every_kind_of_value_is_read_as_it_was_written() {
        let value = json!({
            "": null, "a": [true, false, 0, -1, 1.5, 1e300, "", "ä😀", [], {}],
            "b": {"b": {"b": [[[1]]]}}, "max": 9_007_199_254_740_991_i64,
        });
        assert_eq!(read(&write_value(&value)).unwrap(), Some(value.clone()));
        let Value::Object(map) = &value else { unreachable!() };
        assert_eq!(object(&[write_object(map)], 8, &mut 0).unwrap(), Some(value));
        let bytes = [0x2a, 13, 0x0a, 11, 0x0a, 1, b'a', 0x12, 6, 0x32, 4, 0x0a, 2, 8, 0];
        assert_eq!(write_value(&json!({"a": [null]})), bytes);
    }

    #[test]
    fn numbers_are_what_javascript_makes_of_them() {
        for (number, expected) in [
            (0.0, json!(0)),
            (1.0, json!(1)),
            (-5.0, json!(-5)),
            (0.1, json!(0.1)),
            (9_007_199_254_740_992.0, json!(9_007_199_254_740_992_u64)),
            (18_446_744_073_709_549_568.0, json!(18_446_744_073_709_549_568_u64)),
            (18_446_744_073_709_551_616.0, json!(18_446_744_073_709_551_616.0)),
            (-9_223_372_036_854_775_808.0, json!(i64::MIN)),
            (-1e19, json!(-1e19)),
            (-0.0, json!(-0.0)),
            (1e21, json!(1e21)),
        ] {
            let mut bytes = vec![0x11];
            bytes.extend(f64::to_le_bytes(number));
            assert_eq!(read(&bytes).unwrap(), Some(expected), "{number}");
        }
    }

    #[test]
    fn what_comes_in_pieces_is_merged_as_protobuf_merges() {
        let list = |text: &str| write_value(&serde_json::from_str(text).unwrap());
        let both = |one: &str, two: &str| {
            let merged = read(&[list(one), list(two)].concat()).unwrap();
            assert_eq!(merged, value(&[list(one), list(two)], 8, &mut 0).unwrap());
            merged
        };
        assert_eq!(
            both(r#"{"a":1,"b":{"x":1}}"#, r#"{"b":{"y":2},"c":3}"#),
            Some(json!({"a": 1, "b": {"y": 2}, "c": 3}))
        );
        assert_eq!(both("[1]", "[2]"), Some(json!([1, 2])));
        assert_eq!(both("[1]", "{}"), Some(json!({})));
        assert_eq!(both("1", "\"x\""), Some(json!("x")));
        // The value of one entry in two pieces.
        let entry = [0x0a, 1, b'k', 0x12, 4, 0x32, 2, 0x0a, 0, 0x12, 4, 0x32, 2, 0x0a, 0];
        let bytes = [&[0x2a, 17, 0x0a, 15][..], &entry].concat();
        assert_eq!(read(&bytes).unwrap(), Some(json!({"k": [null, null]})));
    }

    #[test]
    fn what_has_no_content_is_absent_but_keeps_its_place_in_a_list() {
        assert_eq!(read(b"").unwrap(), None);
        assert_eq!(read(&[0x3a, 0]).unwrap(), None);
        assert_eq!(read(&[0x2a, 0]).unwrap(), Some(json!({})));
        assert_eq!(read(&[0x2a, 5, 0x0a, 3, 0x0a, 1, b'k']).unwrap(), Some(json!({})));
        assert_eq!(read(&[0x32, 2, 0x0a, 0]).unwrap(), Some(json!([null])));
        assert_eq!(object(&[], 8, &mut 0).unwrap(), None);
        assert_eq!(object(&[vec![]], 8, &mut 0).unwrap(), Some(json!({})));
    }

    #[test]
    fn strings_are_utf_8() {
        assert!(matches!(read(&[0x1a, 1, 0xff]), Err(Fault::Broken(_))));
        assert!(matches!(read(&[0x2a, 5, 0x0a, 3, 0x0a, 1, 0xff]), Err(Fault::Broken(_))));
    }

    #[test]
    fn e10_depth_is_a_limit_and_never_the_stack() {
        let nested = |levels: usize| {
            let value = (0..levels).fold(Value::Null, |inner, level| match level % 2 {
                0 => json!({"k": inner}),
                _ => json!([inner]),
            });
            vec![write_value(&value)]
        };
        let deepest = Limits::CEILING_DEPTH;
        assert!(value(&nested(deepest), deepest, &mut 0).is_ok());
        assert!(matches!(value(&nested(deepest + 1), deepest, &mut 0), Err(Fault::TooDeep)));
        assert!(matches!(value(&nested(5), 4, &mut 0), Err(Fault::TooDeep)));
        assert!(object(&[write_object(&Map::new())], 0, &mut 0).is_err());
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (-(1i64 << 53)..(1 << 53)).prop_map(Value::from),
            any::<f64>()
                .prop_map(|number| number.fract())
                .prop_filter("JSON has it", |number| *number != 0.0)
                .prop_map(Value::from),
            "[a-zä😀]{0,200}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 64, 8, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
                proptest::collection::btree_map("[a-c]{0,2}", inner, 0..8)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_value_is_read_as_it_was_written(value in any_value()) {
            prop_assert_eq!(super::value(&[write_value(&value)], 8, &mut 0).unwrap(), Some(value));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(prop_oneof![any::<u8>(), 0u8..0x40], 0..100)) {
            let _ = read(&bytes);
            let _ = object(&[bytes], 8, &mut 0);
        }
    }
}
