//! A persistent map from ids to places.

use super::list::Tree;
use crate::id::Id;

/// Ids to values, copy on write: a clone is one pointer, and an insertion while clones are held
/// copies one path. Entries are never removed; whoever drops messages builds a new index.
#[derive(Clone, Debug)]
pub(crate) struct Index<V> {
    /// Keyed by the id's hash, or by the next free key behind it where two hashes are equal.
    tree: Tree<(Id, V)>,
}

impl<V: Clone> Index<V> {
    pub(crate) fn new() -> Self {
        Self { tree: Tree::new() }
    }

    fn find(&self, hash: u64, text: &str) -> Result<u64, u64> {
        let mut key = hash;
        loop {
            match self.tree.get(key) {
                Some((id, _)) if id.as_str() == text => return Ok(key),
                Some(_) => key = key.wrapping_add(1),
                None => return Err(key),
            }
        }
    }

    pub(crate) fn get(&self, id: &Id) -> Option<&V> {
        let mut key = id.hash_value();
        loop {
            match self.tree.get(key) {
                Some((held, value)) if held == id => return Some(value),
                Some(_) => key = key.wrapping_add(1),
                None => return None,
            }
        }
    }

    pub(crate) fn get_str(&self, text: &str) -> Option<&V> {
        let key = self.find(Id::hash_of(text), text).ok()?;
        self.tree.get(key).map(|(_, value)| value)
    }

    pub(crate) fn get_mut(&mut self, id: &Id) -> Option<&mut V> {
        let key = self.find(id.hash_value(), id.as_str()).ok()?;
        self.tree.get_mut(key).map(|(_, value)| value)
    }

    /// Sets the value of an id.
    pub(crate) fn insert(&mut self, id: Id, value: V) {
        let (Ok(key) | Err(key)) = self.find(id.hash_value(), id.as_str());
        self.tree.insert(key, (id, value));
    }

    /// Sets the value of an id that has none; the first one stands.
    pub(crate) fn insert_first(&mut self, id: &Id, value: V) {
        if let Err(key) = self.find(id.hash_value(), id.as_str()) {
            self.tree.insert(key, (id.clone(), value));
        }
    }
}
