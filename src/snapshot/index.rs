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

    /// Sets the value of an id that has none, and says whether that is so; the first one stands.
    pub(crate) fn insert_first(&mut self, id: &Id, value: V) -> bool {
        // Its own key is free as a rule, so it is taken first and given back where it was not.
        let hash = id.hash_value();
        let Some(held) = self.tree.insert(hash, (id.clone(), value.clone())) else { return true };
        let is_same = held.0 == *id;
        self.tree.insert(hash, held);
        if is_same {
            return false;
        }
        let place = self.find(hash, id.as_str());
        if let Err(key) = place {
            self.tree.insert(key, (id.clone(), value));
        }
        place.is_err()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_with_one_hash_are_kept_apart() {
        let mut index = Index::new();
        let ids: Vec<Id> = ["a", "b", "c"].iter().map(|text| Id::with_hash(text, u64::MAX)).collect();
        for (at, id) in ids.iter().enumerate() {
            assert!(index.insert_first(id, at));
            assert!(!index.insert_first(id, 9));
        }
        assert_eq!(ids.iter().map(|id| index.get(id).copied()).collect::<Vec<_>>(), [Some(0), Some(1), Some(2)]);
        index.insert(ids[1].clone(), 7);
        *index.get_mut(&ids[2]).unwrap() += 1;
        assert_eq!(ids.iter().map(|id| index.get(id).copied()).collect::<Vec<_>>(), [Some(0), Some(7), Some(3)]);
        assert_eq!(index.get(&Id::with_hash("d", u64::MAX)), None);
    }
}
