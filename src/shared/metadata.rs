//! Open data of the producer, merged key by key.

use std::sync::Arc;

use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

/// Open data of the producer's, by key: kept whole (rule E6) and merged key by key (rule A1).
///
/// A clone shares the map.
///
/// ```
/// use ag_ui_stream::event::Metadata;
///
/// let metadata = Metadata::from_iter([("model", "small"), ("region", "west")]);
/// assert_eq!(metadata.get("model").and_then(|model| model.as_str()), Some("small"));
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metadata(Arc<Map<String, Value>>);

impl Metadata {
    /// The value under a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.get(key)
    }

    /// The whole map.
    #[must_use]
    pub fn as_map(&self) -> &Map<String, Value> {
        &self.0
    }

    /// Takes over every key of `other`; an equal key is overwritten, never merged (rule A1).
    /// Costs the keys of `other`, and a copy of the map if it is shared.
    pub fn merge(&mut self, other: &Metadata) {
        if self.0.is_empty() {
            *self = other.clone();
        } else if !other.0.is_empty() {
            let map = Arc::make_mut(&mut self.0);
            for (key, value) in other.0.iter() {
                map.insert(key.clone(), value.clone());
            }
        }
    }
}

impl From<Map<String, Value>> for Metadata {
    fn from(map: Map<String, Value>) -> Self {
        Self(Arc::new(map))
    }
}

impl<K: Into<String>, V: Into<Value>> FromIterator<(K, V)> for Metadata {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(members: I) -> Self {
        members.into_iter().map(|(key, value)| (key.into(), value.into())).collect::<Map<_, _>>().into()
    }
}

impl Serialize for Metadata {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}
