//! A JSON string that remembers halves of surrogate pairs without a partner (rule E11).

use std::borrow::Cow;

/// A string, with U+FFFD where the source had half a surrogate pair.
#[derive(Debug)]
pub(crate) struct Str<'a> {
    pub(crate) text: Cow<'a, str>,
    pub(crate) lone: Lone,
}

/// The halves of surrogate pairs that a string had without their other half.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lone {
    /// The low half that the string begins with, or 0.
    pub(crate) leading: u16,
    /// The high half that the string ends with, or 0.
    pub(crate) trailing: u16,
    /// Whether there is another, which no neighbouring string can complete.
    pub(crate) inner: bool,
}

impl Lone {
    pub(crate) fn any(self) -> bool {
        self.leading != 0 || self.trailing != 0 || self.inner
    }
}

impl<'a> Str<'a> {
    pub(crate) fn borrowed(text: &'a str) -> Self {
        Self { text: Cow::Borrowed(text), lone: Lone::default() }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }
}
