//! The content of user and tool messages: text, or a list of parts with media.

use std::sync::Arc;

use serde::Serialize;

use crate::json::node::Node;
use crate::schema::check::Flaws;
use crate::schema::decode::{Context, Decode, Decoded};
use crate::schema::text::Reader;
use crate::shared::Text;

/// The content of a user or tool message.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Content {
    /// Text.
    Text(Text),
    /// Parts, in order. A clone shares them.
    Parts(Arc<Vec<ContentPart>>),
}

impl Content {
    /// The text without the other parts; `None` where there is no text part.
    #[must_use]
    pub fn text(&self) -> Option<Text> {
        match self {
            Content::Text(text) => Some(text.clone()),
            Content::Parts(parts) => {
                let mut texts = parts.iter().filter_map(|part| match part {
                    ContentPart::Text(part) => Some(&part.text),
                    _ => None,
                });
                let mut all = texts.next()?.clone();
                for text in texts {
                    all.extend(text.chunks());
                }
                Some(all)
            }
        }
    }

    /// Appends to the text, to a last part of text, or as a new text part (rule A4).
    pub(crate) fn push_str(&mut self, delta: &str) {
        match self {
            Content::Text(text) => text.push_str(delta),
            Content::Parts(parts) => {
                let parts = Arc::make_mut(parts);
                match parts.last_mut() {
                    Some(ContentPart::Text(part)) => part.text.push_str(delta),
                    _ => parts.push(ContentPart::Text(TextPart::new(delta))),
                }
            }
        }
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Content::Text(text.into())
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Content::Text(text.into())
    }
}

impl From<Text> for Content {
    fn from(text: Text) -> Self {
        Content::Text(text)
    }
}

impl From<Vec<ContentPart>> for Content {
    fn from(parts: Vec<ContentPart>) -> Self {
        Content::Parts(Arc::new(parts))
    }
}

impl Decode for Content {
    fn decode(node: &Node<'_>, cx: &mut Context) -> Decoded<Self> {
        match node {
            Node::String(_) => Decode::decode(node, cx).map(Content::Text),
            Node::Array(_) => Decode::decode(node, cx).map(Content::Parts),
            other => Err(cx.malformed("a string or an array of parts", other)),
        }
    }

    fn read(reader: &mut Reader<'_, '_>) -> Option<Self> {
        if reader.peek() == Some(b'"') {
            return Decode::read(reader).map(Content::Text);
        }
        Decode::read(reader).map(Content::Parts)
    }

    fn check(&self, depth: usize, flaws: &mut Flaws) {
        if let Content::Parts(parts) = self {
            parts.check(depth, flaws);
        }
    }
}

deserialize!(Content);

object! {
    /// Text.
    pub struct TextPart {
        tag "type" "text";
        required {
            /// The text.
            text: Text = "text",
        }
        ident {
            /// The part's id.
            id = "id",
        }
        nonnull {
            /// The producer's own data, any value except null.
            metadata = "metadata",
        }
    }
}

object! {
    /// An image.
    pub struct ImagePart {
        tag "type" "image";
        required {
            /// Where its data is.
            source: PartSource = "source",
        }
        ident {
            /// The part's id.
            id = "id",
        }
        nonnull {
            /// The producer's own data, any value except null.
            metadata = "metadata",
        }
    }
}

object! {
    /// Audio.
    pub struct AudioPart {
        tag "type" "audio";
        required {
            /// Where its data is.
            source: PartSource = "source",
        }
        ident {
            /// The part's id.
            id = "id",
        }
        nonnull {
            /// The producer's own data, any value except null.
            metadata = "metadata",
        }
    }
}

object! {
    /// A video.
    pub struct VideoPart {
        tag "type" "video";
        required {
            /// Where its data is.
            source: PartSource = "source",
        }
        ident {
            /// The part's id.
            id = "id",
        }
        nonnull {
            /// The producer's own data, any value except null.
            metadata = "metadata",
        }
    }
}

object! {
    /// Any other document.
    pub struct DocumentPart {
        tag "type" "document";
        required {
            /// Where its data is.
            source: PartSource = "source",
        }
        ident {
            /// The part's id.
            id = "id",
        }
        nonnull {
            /// The producer's own data, any value except null.
            metadata = "metadata",
        }
    }
}

union! {
    /// A part of a message.
    pub enum ContentPart by "type" {
        /// Text.
        Text "text" TextPart,
        /// An image.
        Image "image" ImagePart,
        /// Audio.
        Audio "audio" AudioPart,
        /// A video.
        Video "video" VideoPart,
        /// Any other document.
        Document "document" DocumentPart,
    }
}

object! {
    /// The data, in the message.
    pub struct DataSource {
        tag "type" "data";
        required {
            /// The data in base64.
            value: String = "value",
            /// Its media type.
            mime_type: String = "mimeType",
        }
    }
}

object! {
    /// The address of the data.
    pub struct UrlSource {
        tag "type" "url";
        required {
            /// The address.
            value: String = "value",
        }
        optional {
            /// The media type of the data there.
            mime_type: String = "mimeType",
        }
    }
}

object! {
    /// A file that a provider holds; its handle is opaque.
    pub struct FileSource {
        tag "type" "file";
        required {
            /// The handle.
            value: String = "value",
        }
        optional {
            /// Who holds it.
            provider: String = "provider",
            /// Its media type.
            mime_type: String = "mimeType",
        }
    }
}

union! {
    /// Where the data of a media part is.
    pub enum PartSource by "type" {
        /// In the message.
        Data "data" DataSource,
        /// At an address.
        Url "url" UrlSource,
        /// With a provider.
        File "file" FileSource,
    }
}
