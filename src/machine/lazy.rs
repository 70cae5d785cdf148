//! What is only made when it is first changed.

use core::ops::{Deref, DerefMut};

use crate::limits::Limits;

/// A table, or several, which can be empty without taking memory.
pub(super) trait Empty: Default + 'static {
    /// It, empty, to be read where there is none.
    const EMPTY: &'static Self;
}

/// A value that takes one pointer as long as it is empty, and a box of its own from its first change on:
/// most runs never need most tables.
#[derive(Clone, Debug)]
pub(super) struct Lazy<T>(Option<Box<T>>);

impl<T> Lazy<T> {
    /// What there is to change, if anything was made.
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
