//! Values as compact JSON text: the same bytes as those of `serde_json`, in less time.
//!
//! `serde_json` looks at each byte of a string on its own and grows its buffer with each of many small
//! pieces. Here a string is gone through eight bytes at a time and written in one piece. Numbers are left to
//! `serde_json`.

use core::fmt::Display;

use serde::ser::{self, Error as _, Serialize};
use serde_json::{Error, Result};

use super::scan::{run_of_text, specials};

/// Appends a value; what cannot be written leaves a part of it there.
pub(crate) fn write(value: &(impl Serialize + ?Sized), out: &mut Vec<u8>) -> Result<()> {
    value.serialize(Json { out })
}

/// The same as text of its own.
pub(crate) fn to_string(value: &(impl Serialize + ?Sized)) -> Result<String> {
    let mut out = Vec::with_capacity(USUAL);
    write(value, &mut out)?;
    String::from_utf8(out).map_err(Error::custom)
}

/// What most events do not outgrow.
pub(crate) const USUAL: usize = 256;

/// Writes one value.
struct Json<'a> {
    out: &'a mut Vec<u8>,
}

impl Json<'_> {
    #[inline]
    fn string(self, text: &str) {
        let Self { out } = self;
        let text = text.as_bytes();
        out.reserve(text.len() + 2);
        out.push(b'"');
        if is_plain(text) {
            out.extend_from_slice(text);
        } else {
            escaped(text, out);
        }
        out.push(b'"');
    }
}

/// Whether nothing in a text has to be escaped.
#[inline]
pub(crate) fn is_plain(text: &[u8]) -> bool {
    let mut rest = text;
    while let Some((word, tail)) = rest.split_first_chunk::<8>() {
        if specials(u64::from_le_bytes(*word)) != 0 {
            return false;
        }
        rest = tail;
    }
    // The bytes that are left, some of them twice, beside others that are plain.
    match (text.last_chunk::<8>(), rest.first_chunk::<4>(), rest.last_chunk::<4>()) {
        (Some(word), ..) => specials(u64::from_le_bytes(*word)) == 0,
        (None, Some(first), Some(last)) => {
            let word = u64::from(u32::from_le_bytes(*first)) | u64::from(u32::from_le_bytes(*last)) << 32;
            specials(word) == 0
        }
        _ => !rest.iter().any(|byte| matches!(byte, b'"' | b'\\' | 0..=0x1f)),
    }
}

#[cold]
fn escaped(text: &[u8], out: &mut Vec<u8>) {
    let mut rest = text;
    loop {
        let (plain, tail) = rest.split_at(run_of_text(rest));
        out.extend_from_slice(plain);
        let [special, tail @ ..] = tail else { break };
        escape(*special, out);
        rest = tail;
    }
}

fn escape(byte: u8, out: &mut Vec<u8>) {
    let letter = match byte {
        b'"' | b'\\' => byte,
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        0x08 => b'b',
        0x0c => b'f',
        _ => return out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
    };
    out.extend_from_slice(&[b'\\', letter]);
}

/// The struct that a number says it is where a crate of the same build has turned on `arbitrary_precision` of
/// `serde_json`: its only field is a string, which is to be written without its quotes.
const NUMBER: &str = "$serde_json::private::Number";

/// Writes what is within an array or an object.
struct Within<'a> {
    out: &'a mut Vec<u8>,
    is_first: bool,
    end: &'static [u8],
}

impl<'a> Within<'a> {
    fn new(out: &'a mut Vec<u8>, begin: &[u8], end: &'static [u8]) -> Self {
        out.extend_from_slice(begin);
        Self { out, is_first: true, end }
    }

    /// The same, as the value of the only member of an object.
    fn of_variant(out: &'a mut Vec<u8>, variant: &str, begin: &[u8], end: &'static [u8]) -> Self {
        out.push(b'{');
        Json { out }.string(variant);
        out.push(b':');
        Self::new(out, begin, end)
    }

    #[inline(always)]
    fn element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        if !core::mem::take(&mut self.is_first) {
            self.out.push(b',');
        }
        value.serialize(Json { out: self.out })
    }

    #[inline(always)]
    fn key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<()> {
        let start = self.out.len() + usize::from(!self.is_first);
        self.element(key)?;
        if self.out.get(start) != Some(&b'"') {
            return Err(Error::custom("a key is a string"));
        }
        Ok(())
    }

    #[inline(always)]
    fn value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        self.out.push(b':');
        value.serialize(Json { out: self.out })
    }

    fn field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<()> {
        if key == NUMBER {
            let start = self.out.len();
            value.serialize(Json { out: self.out })?;
            self.out.pop();
            self.out.remove(start);
            return Ok(());
        }
        self.key(key)?;
        self.value(value)
    }

    #[inline]
    fn finish(self) -> Result<()> {
        self.out.extend_from_slice(self.end);
        Ok(())
    }
}

macro_rules! by_serde_json {
    ($($method:ident: $type:ty;)*) => {$(
        fn $method(self, value: $type) -> Result<()> {
            serde_json::to_writer(self.out, &value)
        }
    )*};
}

impl<'a> ser::Serializer for Json<'a> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Within<'a>;
    type SerializeTuple = Within<'a>;
    type SerializeTupleStruct = Within<'a>;
    type SerializeTupleVariant = Within<'a>;
    type SerializeMap = Within<'a>;
    type SerializeStruct = Within<'a>;
    type SerializeStructVariant = Within<'a>;

    by_serde_json! {
        serialize_i8: i8;
        serialize_i16: i16;
        serialize_i32: i32;
        serialize_i64: i64;
        serialize_i128: i128;
        serialize_u8: u8;
        serialize_u16: u16;
        serialize_u32: u32;
        serialize_u64: u64;
        serialize_u128: u128;
        serialize_f32: f32;
        serialize_f64: f64;
        serialize_char: char;
    }

    fn serialize_bool(self, value: bool) -> Result<()> {
        self.out.extend_from_slice(if value { b"true" } else { b"false" });
        Ok(())
    }

    #[inline]
    fn serialize_str(self, value: &str) -> Result<()> {
        self.string(value);
        Ok(())
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<()> {
        value.serialize(self)
    }

    fn serialize_none(self) -> Result<()> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<()> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<()> {
        self.out.extend_from_slice(b"null");
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<()> {
        self.serialize_unit()
    }

    /// A name of the code, which has nothing to escape.
    #[inline(always)]
    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<()> {
        let Self { out } = self;
        out.push(b'"');
        out.extend_from_slice(variant.as_bytes());
        out.push(b'"');
        Ok(())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Result<()> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<()> {
        let within = Within::of_variant(self.out, variant, b"", b"}");
        value.serialize(Json { out: within.out })?;
        within.finish()
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Within<'a>> {
        Ok(Within::new(self.out, b"[", b"]"))
    }

    fn serialize_tuple(self, _: usize) -> Result<Within<'a>> {
        Ok(Within::new(self.out, b"[", b"]"))
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Within<'a>> {
        Ok(Within::new(self.out, b"[", b"]"))
    }

    fn serialize_tuple_variant(self, _: &'static str, _: u32, variant: &'static str, _: usize) -> Result<Within<'a>> {
        Ok(Within::of_variant(self.out, variant, b"[", b"]}"))
    }

    #[inline]
    fn serialize_map(self, _: Option<usize>) -> Result<Within<'a>> {
        Ok(Within::new(self.out, b"{", b"}"))
    }

    fn serialize_struct(self, name: &'static str, _: usize) -> Result<Within<'a>> {
        let (begin, end): (&[u8], &[u8]) = if name == NUMBER { (b"", b"") } else { (b"{", b"}") };
        Ok(Within::new(self.out, begin, end))
    }

    fn serialize_struct_variant(self, _: &'static str, _: u32, variant: &'static str, _: usize) -> Result<Within<'a>> {
        Ok(Within::of_variant(self.out, variant, b"{", b"}}"))
    }

    fn collect_str<T: Display + ?Sized>(self, value: &T) -> Result<()> {
        self.string(&value.to_string());
        Ok(())
    }
}

macro_rules! within {
    ($($trait:ident: $method:ident;)*) => {$(
        impl ser::$trait for Within<'_> {
            type Ok = ();
            type Error = Error;

            #[inline]
            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
                self.element(value)
            }

            fn end(self) -> Result<()> {
                self.finish()
            }
        }
    )*};
    (fields $($trait:ident;)*) => {$(
        impl ser::$trait for Within<'_> {
            type Ok = ();
            type Error = Error;

            fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<()> {
                self.field(key, value)
            }

            fn end(self) -> Result<()> {
                self.finish()
            }
        }
    )*};
}

within! {
    SerializeSeq: serialize_element;
    SerializeTuple: serialize_element;
    SerializeTupleStruct: serialize_field;
    SerializeTupleVariant: serialize_field;
}

within! { fields
    SerializeStruct;
    SerializeStructVariant;
}

impl ser::SerializeMap for Within<'_> {
    type Ok = ();
    type Error = Error;

    /// Within the struct that it is a field of, where the key is known: written in a move or two.
    #[inline(always)]
    fn serialize_entry<K: Serialize + ?Sized, V: Serialize + ?Sized>(&mut self, key: &K, value: &V) -> Result<()> {
        self.key(key)?;
        self.value(value)
    }

    #[inline]
    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<()> {
        self.key(key)
    }

    #[inline]
    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        self.value(value)
    }

    #[inline]
    fn end(self) -> Result<()> {
        self.finish()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    #[track_caller]
    fn check(value: &(impl Serialize + ?Sized)) {
        assert_eq!(to_string(value).unwrap(), serde_json::to_string(value).unwrap());
    }

    #[derive(serde::Serialize)]
    enum Shape {
        Unit,
        Newtype(u8),
        Tuple(i64, f64),
        Struct { a: Option<bool>, b: () },
    }

    #[derive(serde::Serialize)]
    #[serde(tag = "type")]
    enum Tagged {
        Of(BTreeMap<String, char>),
    }

    #[test]
    fn all_that_serde_knows_is_written_as_serde_json_does() {
        check(&json!({"a": [1, -2, 2.5, 1e300, null, true, "x"], "": {}, "e": [], "\"\\": {"b": [[]]}}));
        check(&[Shape::Unit, Shape::Newtype(1), Shape::Tuple(-1, f64::NAN), Shape::Struct { a: Some(true), b: () }]);
        check(&Tagged::Of(BTreeMap::from([("k".to_owned(), '"')])));
        check(&(1_u8, "two", i128::MIN, [0.1_f32; 2], Some(()), None::<u8>));
        check(&format_args!("{}\n", 1));
        check(&std::str::from_utf8(&(0..=127).collect::<Vec<u8>>()).unwrap());
    }

    #[test]
    fn a_key_that_is_no_string_is_an_error() {
        assert!(to_string(&BTreeMap::from([(vec![1], 1)])).is_err());
    }

    #[test]
    fn a_number_of_arbitrary_precision_has_no_quotes() {
        #[derive(serde::Serialize)]
        #[serde(rename = "$serde_json::private::Number")]
        struct Number {
            #[serde(rename = "$serde_json::private::Number")]
            text: &'static str,
        }
        assert_eq!(to_string(&[Number { text: "1.50" }, Number { text: "2" }]).unwrap(), "[1.50,2]");
    }

    proptest! {
        #[test]
        fn any_text_is_written_as_serde_json_does(text in "(?s).{0,40}", key in "(?s).{0,10}") {
            let value = Value::Object([(key, Value::String(text))].into_iter().collect());
            prop_assert_eq!(to_string(&value).unwrap(), serde_json::to_string(&value).unwrap());
        }
    }
}
