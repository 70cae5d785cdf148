//! `LatestMap`: a map by id that keeps its latest entry apart, for open items.

use crate::id::{Id, IdMap};

/// Values by id. The one that was added last is kept outside the table, so that nothing is hashed while
/// items open and close one after the other.
#[derive(Debug)]
pub(crate) struct LatestMap<V> {
    latest: Option<(Id, V)>,
    others: IdMap<Id, V>,
}

impl<V> Default for LatestMap<V> {
    fn default() -> Self {
        Self { latest: None, others: IdMap::default() }
    }
}

impl<V> LatestMap<V> {
    #[inline]
    pub(crate) fn get(&self, id: &Id) -> Option<&V> {
        match &self.latest {
            Some((latest, value)) if latest == id => Some(value),
            _ => self.others.get(id),
        }
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, id: &Id) -> Option<&mut V> {
        match &mut self.latest {
            Some((latest, value)) if latest == id => Some(value),
            _ => self.others.get_mut(id),
        }
    }

    /// Sets the value of an id, whatever it was.
    pub(crate) fn insert(&mut self, id: Id, value: V) {
        if !self.others.is_empty() {
            self.others.remove(&id);
        }
        if let Some((before, value)) = self.latest.take().filter(|(before, _)| *before != id) {
            self.others.insert(before, value);
        }
        self.latest = Some((id, value));
    }

    pub(crate) fn remove(&mut self, id: &Id) -> Option<V> {
        match &self.latest {
            Some((latest, _)) if latest == id => self.latest.take().map(|(_, value)| value),
            _ => self.others.remove(id),
        }
    }

    pub(crate) fn clear(&mut self) {
        self.latest = None;
        self.others.clear();
    }

    /// The entries, in no particular order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Id, &V)> {
        self.latest.iter().map(|(id, value)| (id, value)).chain(&self.others)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_does_what_a_map_does() {
        let ids: Vec<Id> = ["a", "b", "c"].map(Id::new).into();
        let mut random = 1_u64;
        let (mut table, mut map) = (LatestMap::default(), IdMap::default());
        for step in 0..2000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let Some(id) = ids.get((random >> 40) as usize % 3) else { continue };
            match (random >> 50) % 16 {
                0 => {
                    table.clear();
                    map.clear();
                }
                1..8 => assert_eq!(table.remove(id), map.remove(id)),
                _ => {
                    table.insert(id.clone(), step);
                    map.insert(id.clone(), step);
                }
            }
            for id in &ids {
                assert_eq!(table.get(id), map.get(id));
                assert_eq!(table.get_mut(id), map.get_mut(id));
            }
            let ours: std::collections::BTreeMap<_, _> = table.iter().map(|(id, value)| (id.as_str(), value)).collect();
            assert_eq!(ours, map.iter().map(|(id, value)| (id.as_str(), value)).collect());
            assert_eq!(table.iter().count(), map.len());
        }
    }
}
