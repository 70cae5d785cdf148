//! Reads the wire format of protobuf without a schema:
//! <https://protobuf.dev/programming-guides/encoding/>.

use super::Fault;

/// Reads the fields of one message, in the order they came.
#[derive(Debug)]
pub(super) struct Fields<'a> {
    rest: &'a [u8],
}

/// The content of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field<'a> {
    Varint(u64),
    Fixed64(u64),
    /// A message, a string or bytes: only the schema tells.
    Bytes(&'a [u8]),
    Fixed32,
    /// A group, which AG-UI does not use; it is skipped.
    Group,
}

const GROUP_START: u64 = 3;
const GROUP_END: u64 = 4;

impl<'a> Fields<'a> {
    pub(super) fn of(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next field and its number.
    #[inline]
    pub(super) fn next(&mut self) -> Result<Option<(u32, Field<'a>)>, Fault> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let (number, wire_type) = self.tag()?;
        let field = match wire_type {
            GROUP_START => {
                self.skip_group(number)?;
                Field::Group
            }
            GROUP_END => return Err(broken("the end of a group that did not begin")),
            wire_type => self.value(wire_type)?,
        };
        Ok(Some((number, field)))
    }

    #[inline]
    fn tag(&mut self) -> Result<(u32, u64), Fault> {
        let tag = self.varint()?;
        match u32::try_from(tag >> 3) {
            Ok(number @ 1..0x2000_0000) => Ok((number, tag & 7)),
            _ => Err(broken("an invalid field number")),
        }
    }

    #[inline]
    fn value(&mut self, wire_type: u64) -> Result<Field<'a>, Fault> {
        Ok(match wire_type {
            0 => Field::Varint(self.varint()?),
            1 => Field::Fixed64(u64::from_le_bytes(*self.take_array()?)),
            2 => {
                let len = self.varint()?;
                // A length that does not fit is longer than the message.
                Field::Bytes(self.take(usize::try_from(len).unwrap_or(usize::MAX))?)
            }
            5 => {
                self.take_array::<4>()?;
                Field::Fixed32
            }
            _ => return Err(broken("an invalid wire type")),
        })
    }

    /// Groups nest; their ends are matched without recursion.
    fn skip_group(&mut self, number: u32) -> Result<(), Fault> {
        let mut open = vec![number];
        while let Some(inner) = open.last() {
            match self.tag()? {
                (number, GROUP_START) => open.push(number),
                (number, GROUP_END) if number == *inner => {
                    open.pop();
                }
                (_, GROUP_END) => return Err(broken("the end of another group")),
                (_, wire_type) => {
                    self.value(wire_type)?;
                }
            }
        }
        Ok(())
    }

    #[inline]
    fn varint(&mut self) -> Result<u64, Fault> {
        // Nearly all are of one byte.
        match self.rest {
            [byte @ ..0x80, rest @ ..] => {
                self.rest = rest;
                Ok(u64::from(*byte))
            }
            _ => self.long_varint(),
        }
    }

    fn long_varint(&mut self) -> Result<u64, Fault> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let [byte] = *self.take_array()?;
            // The tenth byte has room for one bit.
            if shift == 63 && byte > 1 {
                break;
            }
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(broken("a number of more than 64 bits"))
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], Fault> {
        let (taken, rest) =
            self.rest.split_at_checked(len).ok_or_else(|| broken("the end of the message within a field"))?;
        self.rest = rest;
        Ok(taken)
    }

    fn take_array<const N: usize>(&mut self) -> Result<&'a [u8; N], Fault> {
        let (taken, rest) =
            self.rest.split_first_chunk().ok_or_else(|| broken("the end of the message within a field"))?;
        self.rest = rest;
        Ok(taken)
    }
}

/// Whether bytes are a message of any schema. The content of its fields is not checked.
pub(super) fn is_message(bytes: &[u8]) -> bool {
    let mut fields = Fields::of(bytes);
    loop {
        match fields.next() {
            Ok(Some(_)) => {}
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}

pub(super) fn broken(found: impl Into<String>) -> Fault {
    Fault::Broken(found.into())
}

/// Appends a number in base 128, the lowest digits first.
pub(super) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        #[allow(clippy::cast_possible_truncation, reason = "the low seven bits")]
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    #[allow(clippy::cast_possible_truncation, reason = "less than 128")]
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(bytes: &[u8]) -> Result<Vec<(u32, Field<'_>)>, Fault> {
        let mut fields = Fields::of(bytes);
        let mut all = Vec::new();
        while let Some(field) = fields.next()? {
            all.push(field);
        }
        Ok(all)
    }

    #[test]
    fn t2_fields_of_every_wire_type_are_read() {
        let bytes = [
            0x08, 0x96, 0x01, // 1: 150
            0x11, 1, 0, 0, 0, 0, 0, 0, 0, // 2: a fixed 64
            0x1a, 2, b'h', b'i', // 3: two bytes
            0x23, 0x2b, 0x08, 0x01, 0x2c, 0x12, 1, b'x', 0x24, // 4: a group with a group in it
            0x2d, 0, 0, 0, 0, // 5: a fixed 32
            0xfa, 0xff, 0xff, 0xff, 0x0f, 0, // the highest field number: nothing
        ];
        let expected = [
            (1, Field::Varint(150)),
            (2, Field::Fixed64(1)),
            (3, Field::Bytes(b"hi")),
            (4, Field::Group),
            (5, Field::Fixed32),
            (0x1fff_ffff, Field::Bytes(b"")),
        ];
        assert_eq!(all(&bytes).unwrap(), expected);
        assert!(is_message(&bytes));
        // Cut anywhere but between two fields, it is no message.
        let ends = [0, 3, 12, 16, 25, 30, 36];
        for len in 0..=bytes.len() {
            assert_eq!(is_message(&bytes[..len]), ends.contains(&len), "{len}");
        }
    }

    #[test]
    fn t2_what_is_no_protobuf_is_found() {
        for bytes in [
            &[0x00][..],                                                               // field 0
            &[0x0e],                                                                   // wire type 6
            &[0x0f],                                                                   // wire type 7
            &[0x0c],                                                                   // an end without a group
            &[0x0b, 0x14],                                                             // the end of another
            &[0x0b, 0x0b, 0x0c],                                                       // a group without end
            &[0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],       // too long for any address
            &[0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02],       // 65 bits
            &[0x08, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00], // eleven bytes
            &[0x82, 0x80, 0x80, 0x80, 0x10, 0x00],                                     // a field number of 30 bits
        ] {
            assert!(all(bytes).is_err(), "{bytes:?}");
        }
        // As far as 64 bits go, it is a number.
        let most = [0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert_eq!(all(&most).unwrap(), [(1, Field::Varint(u64::MAX))]);
    }

    #[test]
    fn t2_groups_may_nest_as_deep_as_they_like() {
        let mut bytes = vec![0x0b; 1_000_000];
        bytes.resize(2_000_000, 0x0c);
        assert_eq!(all(&bytes).unwrap(), [(1, Field::Group)]);
    }

    #[test]
    fn numbers_are_written_as_they_are_read() {
        for value in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX - 1, u64::MAX] {
            let mut bytes = vec![0x08];
            put_varint(&mut bytes, value);
            assert_eq!(all(&bytes).unwrap(), [(1, Field::Varint(value))]);
        }
    }
}
