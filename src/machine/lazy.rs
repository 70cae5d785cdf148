//! `Lazy`: a table that takes no memory until it is first changed.

use core::ops::{Deref, DerefMut};

use crate::limits::Limits;

/// A type whose empty value can be a constant: one table, or a struct of several.
pub(super) trait Empty: Default + 'static {
    /// The empty value, which is read as long as nothing was stored.
    const EMPTY: &'static Self;
}

/// A value behind one pointer: null as long as it is empty, a box from the first change on. Most runs never
/// need most tables.
#[derive(Clone, Debug)]
pub(super) struct Lazy<T>(Option<Box<T>>);

impl<T> Lazy<T> {
    /// The value, if it was ever changed. Unlike `deref_mut`, this does not make one.
    #[inline]
    pub(super) fn made(&mut self) -> Option<&mut T> {
        self.0.as_deref_mut()
    }
}

impl<T: Empty + PartialEq> Lazy<T> {
    /// This value, which takes nothing where it is the empty one.
    pub(super) fn of(value: T) -> Self {
        Self((value != *T::EMPTY).then(|| Box::new(value)))
    }
}

/// The defaults take nothing.
impl Empty for Limits {
    const EMPTY: &'static Self = &Self::DEFAULT;
}

impl<T> Default for Lazy<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: Empty> Deref for Lazy<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.0.as_deref().unwrap_or(T::EMPTY)
    }
}

impl<T: Empty> DerefMut for Lazy<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        self.0.get_or_insert_default()
    }
}
