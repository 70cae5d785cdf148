//! Reads a wire type on its own, not within a stream of events: a message, the input of a run, and all
//! types through serde.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::error::{Error, Limit, LimitExceeded, LimitStage, Malformed};
use crate::json::node::Node;
use crate::json::scan::has_at_most;
use crate::limits::Limits;
use crate::rule::Rule;
use crate::schema::decode::{Context, Decode, Reject};
use crate::warning::Warning;

/// The value and the warnings about removed parts; `None` if all of it was removed.
type Read<T> = Result<(Option<T>, Vec<Warning>), Error>;

/// From JSON text. Warnings have `name` in place of the type of an event; errors expect `what`.
pub(crate) fn from_json<T: Decode>(json: &[u8], name: &str, what: &'static str) -> Read<T> {
    let json = core::str::from_utf8(json)
        .map_err(|error| Malformed::new(Rule::E9, 0, what, format!("invalid UTF-8 at byte {}", error.valid_up_to())))?;
    let Limits { max_event_values, .. } = Limits::default();
    // Each value takes two bytes or more.
    if json.len() / 2 >= max_event_values && !has_at_most(max_event_values, json) {
        return Err(LimitExceeded::new(0, Limit::EventValues, max_event_values).of(LimitStage::Reader).into());
    }
    let depth = Limits::default().depth();
    let node = Node::parse(json, depth).map_err(|error| {
        if error.too_deep {
            return too_deep(depth);
        }
        Malformed::new(Rule::E9, 0, what, format!("invalid JSON: {} at byte {}", error.reason, error.offset)).into()
    })?;
    from_node(&node, name)
}

/// The same from a [`Value`].
pub(crate) fn from_value<T: Decode>(value: &Value, name: &str) -> Read<T> {
    let depth = Limits::default().depth();
    from_node(&Node::from_value(value, depth).ok_or_else(|| too_deep(depth))?, name)
}

/// The same through serde, which cannot return warnings: they are logged.
pub(crate) fn deserialize<'de, D: Deserializer<'de>, T: Decode>(deserializer: D, name: &str) -> Result<T, D::Error> {
    match from_value(&Value::deserialize(deserializer)?, name) {
        Ok((Some(read), warnings)) => {
            warnings.iter().for_each(Warning::log);
            Ok(read)
        }
        Ok((None, warnings)) => {
            let rule = warnings.first().map_or(Rule::E3, |warning| warning.rule);
            Err(D::Error::custom(format!("{rule}: {name}: it is unknown, or requires an unknown value")))
        }
        Err(error) => Err(D::Error::custom(error)),
    }
}

fn from_node<T: Decode>(node: &Node<'_>, name: &str) -> Read<T> {
    let mut cx = Context::default();
    match T::decode(node, &mut cx) {
        Ok(read) => Ok((Some(read), cx.removed.take().into_iter().map(|note| note.about(0, name)).collect())),
        Err(Reject::Unknown(rule)) => {
            let message = "removed all of it: a required value is unknown".to_owned();
            Ok((None, vec![Warning::new(rule, 0, name, String::new(), message)]))
        }
        Err(Reject::Malformed(fault)) => Err(fault.into_malformed(0, None).into()),
    }
}

fn too_deep(depth: usize) -> Error {
    LimitExceeded::new(0, Limit::Depth, depth).of(LimitStage::Reader).into()
}
