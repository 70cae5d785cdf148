//! The compatibility boundary: translates retired shapes of older producers (rules B1 to B3).

use core::fmt;
use std::borrow::Cow;
use std::collections::{HashSet, VecDeque};

use super::lazy::Lazy;
use super::{Push, queued_machine};
use crate::error::Error;
use crate::excerpt::excerpt;
use crate::id::{IdGenerator, RandomIds};
use crate::item::Counter;
use crate::json::node::Node;
use crate::json::scan::has_at_most;
use crate::json::string::Str;
use crate::limits::Limits;
use crate::raw::{Body, Owned, Raw, RawEvent, RawItem};
use crate::rule::Rule;
use crate::warning::{Notes, Warning};

/// Translates retired shapes of older producers into those of AG-UI 1.0 (rules B1 to B3).
///
/// In: any [`RawEvent`]. Out, for each: a [`Warning`] for every translation, in the order below,
/// then the event, in the form it came in.
/// 1. B1: a THINKING event becomes the corresponding reasoning event, with a generated id.
/// 2. B2: `null` becomes absence, in these fields and no others: `rawEvent`; `parentMessageId` of
///    TOOL_CALL_START and TOOL_CALL_CHUNK; `outcome` of RUN_FINISHED; `result` of RUN_FINISHED and
///    SUBAGENT_FINISHED; in the input of RUN_STARTED `forwardedProps`, `parameters` of a tool and
///    `payload` of a resume entry; and `metadata` of a media part, there and in
///    MESSAGES_SNAPSHOT.
/// 3. B3: a `binary` part in those messages becomes an image, audio, video or document part by
///    its MIME type: `data` before `url`, `filename` into `metadata`. If the message has the same
///    part in the new shape too, the old one is removed. One that has only an id stays; enforcement
///    removes it.
///
/// Everything else passes through unchanged, also malformed events, which enforcement rejects. Typed
/// events have no old shapes. Halves of surrogate pairs survive a translation (E11).
///
/// # Errors
/// None.
///
/// # Cost
/// Text is searched for the few words of old shapes, and parsed only if there is one; owned text and
/// values are moved, not copied.
///
/// # Examples
/// ```
/// use ag_ui_stream::machine::{Machine, Push, Upgrader};
/// use ag_ui_stream::id::SequentialIds;
/// use ag_ui_stream::{Raw, RawItem, Rule};
///
/// let mut upgrader = Upgrader::new().with_ids(SequentialIds::new("thought-"));
/// upgrader.push(r#"{"type":"THINKING_TEXT_MESSAGE_START"}"#)?;
///
/// let Some(RawItem::Warning(warning)) = upgrader.pop() else { panic!() };
/// assert_eq!(warning.rule, Rule::B1);
/// let Some(RawItem::Event { raw: Raw::Text(text), index: 0 }) = upgrader.pop() else { panic!() };
/// assert_eq!(text, r#"{"type":"REASONING_MESSAGE_START","messageId":"thought-1","role":"reasoning"}"#);
/// # Ok::<(), ag_ui_stream::Error>(())
/// ```
pub struct Upgrader {
    ids: Box<dyn IdGenerator>,
    limits: Lazy<Limits>,
    counter: Counter,
    /// The ids of the THINKING span and of the THINKING message that are open.
    span: Option<String>,
    message: Option<String>,
    ready: VecDeque<RawItem>,
}

impl Upgrader {
    /// A boundary with [`RandomIds`].
    #[must_use]
    pub fn new() -> Self {
        Self {
            ids: Box::new(RandomIds::new()),
            limits: Lazy::default(),
            counter: Counter::default(),
            span: None,
            message: None,
            ready: VecDeque::new(),
        }
    }

    /// The same, with another generator of ids (rule B1).
    #[must_use]
    pub fn with_ids(mut self, ids: impl IdGenerator + 'static) -> Self {
        self.ids = Box::new(ids);
        self
    }

    /// The same with other bounds. An event beyond them is not translated; enforcement, given the
    /// same bounds, rejects it.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = Lazy::of(limits);
        self
    }

    /// The event without retired shapes, and a warning for each that it had; `None` if it has none, or
    /// is beyond the limits.
    pub(super) fn upgrade(&mut self, body: &Body<'_>, index: u64) -> Option<(Raw, Vec<Warning>)> {
        match body {
            Body::Text(text) => self.upgrade_text(text, index).map(|(text, warnings)| (Raw::Text(text), warnings)),
            Body::Bytes(bytes) => {
                let (text, warnings) = self.upgrade_text(core::str::from_utf8(bytes).ok()?, index)?;
                Some((Raw::Bytes(text.into()), warnings))
            }
            Body::Value(value) if may_be_retired(value) => {
                let mut node = Node::from_value(value, self.limits.depth())?;
                let warnings = self.upgrade_node(&mut node, index)?;
                Some((Raw::Value(node.to_value()?), warnings))
            }
            Body::Value(_) | Body::Event(_) | Body::Warning(_) | Body::Options(_) => None,
        }
    }

    fn upgrade_text(&mut self, text: &str, index: u64) -> Option<(String, Vec<Warning>)> {
        if !needs_translation(text) || text.len() > self.limits.max_event_bytes {
            return None;
        }
        if text.len() > self.limits.unquestioned_bytes() && !has_at_most(self.limits.max_event_values, text) {
            return None;
        }
        let mut node = Node::parse(text, self.limits.depth()).ok()?;
        let warnings = self.upgrade_node(&mut node, index)?;
        Some((node.to_text(), warnings))
    }

    fn upgrade_node(&mut self, node: &mut Node<'_>, index: u64) -> Option<Vec<Warning>> {
        let Node::Object(members) = node else { return None };
        let sent_as = string(members, "type")?.as_str().to_owned();
        let mut notes = Notes::default();
        self.translate_thinking(members, &sent_as, &mut notes);
        drop_null(&mut notes, members, "rawEvent", "");
        match sent_as.as_str() {
            "TOOL_CALL_START" | "TOOL_CALL_CHUNK" => drop_null(&mut notes, members, "parentMessageId", ""),
            "RUN_FINISHED" => {
                drop_null(&mut notes, members, "outcome", "");
                drop_null(&mut notes, members, "result", "");
            }
            "SUBAGENT_FINISHED" => drop_null(&mut notes, members, "result", ""),
            "MESSAGES_SNAPSHOT" => translate_messages(members, "", &mut notes),
            "RUN_STARTED" => {
                if let Some(Node::Object(input)) = get_mut(members, "input") {
                    drop_null(&mut notes, input, "forwardedProps", "/input");
                    drop_null_in_each(&mut notes, input, "tools", "parameters");
                    drop_null_in_each(&mut notes, input, "resume", "payload");
                    translate_messages(input, "/input", &mut notes);
                }
            }
            _ => {}
        }
        let notes = notes.take();
        (!notes.is_empty()).then(|| notes.into_iter().map(|note| note.about(index, &sent_as)).collect())
    }

    /// Rule B1.
    fn translate_thinking(&mut self, members: &mut Members<'_>, sent_as: &str, notes: &mut Notes) {
        let ids = &mut self.ids;
        // The new type; the id; the event that should have come before, if it did not.
        let (becomes, id, missing) = match sent_as {
            "THINKING_START" => ("REASONING_START", self.span.insert(ids.next_id()).clone(), None),
            "THINKING_END" => match self.span.take() {
                Some(id) => ("REASONING_END", id, None),
                None => ("REASONING_END", ids.next_id(), Some("THINKING_START")),
            },
            "THINKING_TEXT_MESSAGE_START" => {
                ("REASONING_MESSAGE_START", self.message.insert(ids.next_id()).clone(), None)
            }
            "THINKING_TEXT_MESSAGE_CONTENT" => match &self.message {
                Some(id) => ("REASONING_MESSAGE_CONTENT", id.clone(), None),
                None => ("REASONING_MESSAGE_CONTENT", ids.next_id(), Some("THINKING_TEXT_MESSAGE_START")),
            },
            "THINKING_TEXT_MESSAGE_END" => match self.message.take() {
                Some(id) => ("REASONING_MESSAGE_END", id, None),
                None => ("REASONING_MESSAGE_END", ids.next_id(), Some("THINKING_TEXT_MESSAGE_START")),
            },
            _ => return,
        };
        let mut message = format!("translated to {becomes} with the generated id {:?}", excerpt(&id, 80));
        if let Some(missing) = missing {
            message.push_str(&format!(", which nothing opened, as no {missing} came before"));
        }
        set(members, "type", Str::borrowed(becomes));
        set(members, "messageId", owned(id));
        if becomes == "REASONING_MESSAGE_START" {
            set(members, "role", Str::borrowed("reasoning"));
        }
        if becomes == "REASONING_START" {
            match remove(members, "title") {
                None | Some(Node::Null) => {}
                Some(Node::String(title)) => {
                    message.push_str(&format!("; its title {:?} is lost", excerpt(title.as_str(), 80)));
                }
                Some(_) => message.push_str("; its title is lost"),
            }
        }
        notes.add(Rule::B1, "", message);
    }
}

impl Default for Upgrader {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Upgrader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upgrader")
            .field("events", &self.counter.next())
            .field("ready", &self.ready.len())
            .finish_non_exhaustive()
    }
}

impl<R: RawEvent> Push<R> for Upgrader {
    fn push(&mut self, input: R) -> Result<(), Error> {
        match input.own() {
            Owned::Event(raw, index) => {
                let index = self.counter.count(index);
                let upgraded = match &raw {
                    Raw::Text(text) => self.upgrade(&Body::Text(text), index),
                    Raw::Bytes(bytes) => self.upgrade(&Body::Bytes(bytes), index),
                    Raw::Value(value) => self.upgrade(&Body::Value(value), index),
                    Raw::Event(_) => None,
                };
                let (raw, warnings) = upgraded.unwrap_or((raw, Vec::new()));
                self.ready.extend(warnings.into_iter().map(RawItem::Warning));
                self.ready.push_back(RawItem::Event { raw, index });
            }
            Owned::Warning(warning) => self.ready.push_back(RawItem::Warning(warning)),
            Owned::Options(options) => {
                self.limits = Lazy::of(options.limits_over(*self.limits));
                self.ready.push_back(RawItem::Options(options));
            }
        }
        Ok(())
    }
}

queued_machine!(Upgrader: RawItem);

/// Whether JSON text may have a retired shape in it: each has one of these words. `false` is certain.
#[inline]
fn needs_translation(text: &str) -> bool {
    text.contains("null") || text.contains("THINKING") || text.contains("binary") || has_escaped_letters(text)
}

/// Whether letters are escaped, as in `\u0041`: nobody does so, but it is legal.
#[inline]
pub(super) fn has_escaped_letters(text: &str) -> bool {
    text.contains("\\u00")
        && text.split("\\u00").skip(1).any(|rest| matches!(rest.as_bytes().first(), Some(b'4'..=b'7')))
}

/// The same for a value, from its members only.
fn may_be_retired(value: &serde_json::Value) -> bool {
    let serde_json::Value::Object(members) = value else { return false };
    let deep = match members.get("type").and_then(serde_json::Value::as_str) {
        Some("RUN_STARTED" | "MESSAGES_SNAPSHOT") => true,
        Some(name) => name.starts_with("THINKING"),
        None => false,
    };
    deep || members.values().any(serde_json::Value::is_null)
}

/// Rules B2 and B3 for the `messages` of this object.
fn translate_messages(members: &mut Members<'_>, path: &str, notes: &mut Notes) {
    let Some(Node::Array(messages)) = get_mut(members, "messages") else { return };
    for (at, message) in messages.iter_mut().enumerate() {
        let Node::Object(message) = message else { continue };
        let Some(Node::Array(parts)) = get_mut(message, "content") else { continue };
        translate_parts(parts, &format!("{path}/messages/{at}/content"), notes);
    }
}

fn translate_parts(parts: &mut Vec<Node<'_>>, path: &str, notes: &mut Notes) {
    for (at, part) in parts.iter_mut().enumerate() {
        if let Node::Object(members) = part {
            if let Some("image" | "audio" | "video" | "document") = string(members, "type").map(Str::as_str) {
                drop_null(notes, members, "metadata", &format!("{path}/{at}"));
            }
        }
    }
    upgrade_parts(parts, |at, binary, is_repeated| {
        notes.add(Rule::B3, format!("{path}/{at}"), binary.message(is_repeated));
    });
}

/// Rule B3 for these parts; calls `note` for each binary part, with its index and whether it was only
/// removed.
fn upgrade_parts(parts: &mut Vec<Node<'_>>, mut note: impl FnMut(usize, &Binary<'_>, bool)) {
    // Compared before any part is translated.
    let repeated: Vec<bool> = {
        let sent: HashSet<Media<'_>> = parts.iter().flat_map(Media::of).collect();
        parts.iter().map(|part| Binary::of(part).is_some_and(|binary| sent.contains(&binary.media()))).collect()
    };
    for (at, (part, repeated)) in parts.iter_mut().zip(&repeated).enumerate() {
        if let Some(binary) = Binary::of(part) {
            note(at, &binary, *repeated);
            let (becomes, source) = (binary.becomes, binary.source);
            if let Node::Object(members) = part {
                to_media(members, becomes, source);
            }
        }
    }
    let mut repeated = repeated.into_iter();
    parts.retain(|_| !repeated.next().unwrap_or(false));
}

/// Rule B3 for the input of a run that is to be sent. `None` if nothing had to change; else the input,
/// and the path and a message for each part that lost something.
pub(crate) fn upgrade_input(
    input: &serde_json::Value,
    depth: usize,
) -> Option<(serde_json::Value, Vec<(String, String)>)> {
    let mut node = Node::from_value(input, depth)?;
    let Node::Object(members) = &mut node else { return None };
    let Some(Node::Array(messages)) = get_mut(members, "messages") else { return None };
    let (mut changed, mut losses) = (false, Vec::new());
    for (place, message) in messages.iter_mut().enumerate() {
        let Node::Object(message) = message else { continue };
        let Some(Node::Array(parts)) = get_mut(message, "content") else { continue };
        upgrade_parts(parts, |at, binary, is_repeated| {
            changed = true;
            if !is_repeated && !binary.lost.is_empty() {
                losses.push((format!("/messages/{place}/content/{at}"), binary.message(false)));
            }
        });
    }
    changed.then(|| node.to_value()).flatten().map(|input| (input, losses))
}

/// A `binary` part that can be translated (rule B3).
struct Binary<'n> {
    becomes: &'static str,
    source: &'static str,
    value: &'n str,
    mime_type: &'n str,
    filename: Option<&'n str>,
    /// The members that the new part cannot have.
    lost: Vec<&'static str>,
}

impl<'n> Binary<'n> {
    fn of(part: &'n Node<'_>) -> Option<Self> {
        let Node::Object(members) = part else { return None };
        // An empty string counts as absent, as older consumers had it.
        let text = |key| string(members, key).map(Str::as_str).filter(|text| !text.is_empty());
        if text("type") != Some("binary") {
            return None;
        }
        let mime_type = string(members, "mimeType")?.as_str();
        let (source, value) = match (text("data"), text("url")) {
            (Some(data), _) => ("data", data),
            (None, Some(url)) => ("url", url),
            (None, None) => return None,
        };
        let filename = text("filename");
        let mut lost = Vec::new();
        if source == "data" && text("url").is_some() {
            lost.push("url");
        }
        if text("id").is_some() {
            lost.push("id");
        }
        if filename.is_some() && !matches!(get(members, "metadata"), None | Some(Node::Null | Node::Object(_))) {
            lost.push("filename");
        }
        Some(Self { becomes: media_type(mime_type), source, value, mime_type, filename, lost })
    }

    /// The part that it would become.
    fn media(&self) -> Media<'n> {
        Media {
            part: self.becomes,
            source: self.source,
            value: self.value,
            mime_type: self.mime_type,
            filename: self.filename,
        }
    }

    fn message(&self, is_repeated: bool) -> String {
        if is_repeated {
            return format!("removed a binary part: the {} part beside it says the same", self.becomes);
        }
        let mut message = format!("translated a binary part to {} with its {}", self.becomes, self.source);
        if !self.lost.is_empty() {
            message.push_str(&format!("; lost: {}", self.lost.join(", ")));
        }
        message
    }
}

/// The members of a media part that a binary part has too, to compare them: producers in transition
/// send both.
#[derive(PartialEq, Eq, Hash)]
struct Media<'n> {
    part: &'n str,
    source: &'n str,
    value: &'n str,
    mime_type: &'n str,
    filename: Option<&'n str>,
}

impl<'n> Media<'n> {
    /// The forms in which a binary part may repeat this part: with its filename, if any, or without.
    fn of(part: &'n Node<'_>) -> impl Iterator<Item = Self> {
        let media = |with_filename: bool| {
            let Node::Object(members) = part else { return None };
            let Node::Object(from) = get(members, "source")? else { return None };
            let filename = match get(members, "metadata") {
                Some(Node::Object(metadata)) if with_filename => Some(string(metadata, "filename")?.as_str()),
                _ if with_filename => return None,
                _ => None,
            };
            Some(Self {
                part: string(members, "type")?.as_str(),
                source: string(from, "type")?.as_str(),
                value: string(from, "value")?.as_str(),
                mime_type: string(from, "mimeType")?.as_str(),
                filename,
            })
        };
        media(false).into_iter().chain(media(true))
    }
}

fn media_type(mime_type: &str) -> &'static str {
    let family = mime_type.split('/').next().unwrap_or_default();
    ["image", "audio", "video"].into_iter().find(|known| family.eq_ignore_ascii_case(known)).unwrap_or("document")
}

fn to_media(members: &mut Members<'_>, becomes: &'static str, source: &'static str) {
    let value = remove(members, source);
    let mime_type = remove(members, "mimeType");
    let filename = remove(members, "filename");
    let filename = filename.filter(|name| matches!(name, Node::String(name) if !name.as_str().is_empty()));
    for key in ["data", "url", "id"] {
        remove(members, key);
    }
    set(members, "type", Str::borrowed(becomes));
    let mut from = vec![(Str::borrowed("type"), Node::String(Str::borrowed(source)))];
    from.extend(value.map(|value| (Str::borrowed("value"), value)));
    from.extend(mime_type.map(|mime_type| (Str::borrowed("mimeType"), mime_type)));
    set_node(members, "source", Node::Object(from));
    let metadata = match (remove(members, "metadata"), filename) {
        (None | Some(Node::Null), Some(filename)) => Some(Node::Object(vec![(Str::borrowed("filename"), filename)])),
        (Some(Node::Object(mut metadata)), Some(filename)) if get(&metadata, "filename").is_none() => {
            metadata.push((Str::borrowed("filename"), filename));
            Some(Node::Object(metadata))
        }
        (metadata, _) => metadata.filter(|metadata| !matches!(metadata, Node::Null)),
    };
    if let Some(metadata) = metadata {
        set_node(members, "metadata", metadata);
    }
}

/// Rule B2 for one field of the object at `path`.
fn drop_null(notes: &mut Notes, members: &mut Members<'_>, key: &'static str, path: &str) {
    if let Some(Node::Null) = get(members, key) {
        remove(members, key);
        notes.add(Rule::B2, format!("{path}/{key}"), format!("`{key}: null` was read as no `{key}` at all"));
    }
}

/// The same for each object of a list in the input of a run.
fn drop_null_in_each(notes: &mut Notes, input: &mut Members<'_>, list: &'static str, key: &'static str) {
    let Some(Node::Array(elements)) = get_mut(input, list) else { return };
    for (at, element) in elements.iter_mut().enumerate() {
        if let Node::Object(members) = element {
            drop_null(notes, members, key, &format!("/input/{list}/{at}"));
        }
    }
}

pub(super) type Members<'a> = Vec<(Str<'a>, Node<'a>)>;

pub(super) fn get<'n, 'a>(members: &'n Members<'a>, key: &str) -> Option<&'n Node<'a>> {
    members.iter().find(|(name, _)| name.as_str() == key).map(|(_, value)| value)
}

pub(super) fn get_mut<'n, 'a>(members: &'n mut Members<'a>, key: &str) -> Option<&'n mut Node<'a>> {
    members.iter_mut().find(|(name, _)| name.as_str() == key).map(|(_, value)| value)
}

pub(super) fn string<'n, 'a>(members: &'n Members<'a>, key: &str) -> Option<&'n Str<'a>> {
    match get(members, key) {
        Some(Node::String(text)) => Some(text),
        _ => None,
    }
}

pub(super) fn remove<'a>(members: &mut Members<'a>, key: &str) -> Option<Node<'a>> {
    let at = members.iter().position(|(name, _)| name.as_str() == key)?;
    Some(members.remove(at).1)
}

fn set<'a>(members: &mut Members<'a>, key: &'static str, text: Str<'a>) {
    set_node(members, key, Node::String(text));
}

fn set_node<'a>(members: &mut Members<'a>, key: &'static str, node: Node<'a>) {
    match get_mut(members, key) {
        Some(held) => *held = node,
        None => members.push((Str::borrowed(key), node)),
    }
}

fn owned<'a>(text: String) -> Str<'a> {
    Str { text: Cow::Owned(text), ..Str::borrowed("") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Machine;

    #[test]
    fn only_the_words_of_old_shapes_need_a_closer_look() {
        for text in [
            r#"{"a":null}"#,
            r#"{"type":"THINKING_END"}"#,
            r#"{"type":"binary"}"#,
            r#"{"type":"binar\u0079"}"#,
            r"\u007f",
        ] {
            assert!(needs_translation(text), "{text}");
        }
        for text in ["", "nul", r#"{"delta":"I think\u00e9 \u0022 \ud83d"}"#, r"\u00", r"\u0031"] {
            assert!(!needs_translation(text), "{text}");
        }
    }

    #[test]
    fn text_that_needs_nothing_is_moved_through() {
        let text = String::from(r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"null"}"#);
        let before = text.as_ptr();
        let mut upgrader = Upgrader::new();
        upgrader.push(text).unwrap();
        let Some(RawItem::Event { raw: Raw::Text(text), .. }) = upgrader.pop() else { panic!("the text") };
        assert_eq!(text.as_ptr(), before);
    }
}
