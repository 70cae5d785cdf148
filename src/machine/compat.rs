//! The compatibility boundary (rules B1 to B3).

use std::collections::VecDeque;
use std::fmt;

use serde_json::Value;

use super::Machine;
use crate::error::Error;
use crate::id::{IdGenerator, RandomIds};
use crate::wire::raw::RawItem;

/// Translates retired shapes.
pub struct Compat {
    _ids: Box<dyn IdGenerator>,
    ready: VecDeque<RawItem>,
}

impl fmt::Debug for Compat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compat").finish_non_exhaustive()
    }
}

impl Default for Compat {
    fn default() -> Self {
        Self::with_ids(RandomIds::new())
    }
}

impl Compat {
    /// With ids from this generator.
    pub fn with_ids(ids: impl IdGenerator + 'static) -> Self {
        Self { _ids: Box::new(ids), ready: VecDeque::new() }
    }

    pub(crate) fn needs_translation(_: &str) -> bool {
        false
    }

    pub(crate) fn may_concern(_: &Value) -> bool {
        false
    }
}

impl Machine<RawItem> for Compat {
    type Output = RawItem;

    fn push(&mut self, input: RawItem) -> Result<(), Error> {
        self.ready.push_back(input);
        Ok(())
    }

    fn pop(&mut self) -> Option<RawItem> {
        self.ready.pop_front()
    }

    fn finish(&mut self) -> Result<(), Error> {
        Ok(())
    }
}
