//! `Format`: the formats by name, their media types, and the encoding of an event.

use crate::error::Error;
use crate::event::Event;

/// A way to write events as bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// Server-sent events: <https://docs.ag-ui.com/spec/1.0/basic/transports/http-sse>.
    #[cfg(feature = "sse")]
    Sse,
    /// JSON Lines: <https://jsonlines.org>.
    #[cfg(feature = "json-lines")]
    JsonLines,
    /// Length-prefixed protobuf:
    /// <https://docs.ag-ui.com/spec/1.0/basic/transports/http-protobuf>.
    #[cfg(feature = "protobuf")]
    Protobuf,
}

impl Format {
    /// The media type, for a `Content-Type`.
    #[must_use]
    pub const fn media_type(self) -> &'static str {
        match self {
            #[cfg(feature = "sse")]
            Format::Sse => "text/event-stream",
            #[cfg(feature = "json-lines")]
            Format::JsonLines => "application/x-ndjson",
            #[cfg(feature = "protobuf")]
            Format::Protobuf => "application/vnd.ag-ui.event+proto",
        }
    }

    /// The format of a `Content-Type`; `None` for any other, and for one whose feature is
    /// off.
    ///
    /// Parameters such as a charset and the case of letters do not matter. JSON Lines go by
    /// several names, none of them registered.
    ///
    /// # Examples
    /// ```
    /// use ag_ui_stream::codec::Format;
    ///
    /// assert_eq!(Format::from_content_type("text/event-stream; charset=utf-8"), Some(Format::Sse));
    /// assert_eq!(Format::from_content_type("text/html"), None);
    /// ```
    #[must_use]
    pub fn from_content_type(content_type: &str) -> Option<Self> {
        let essence = content_type.split(';').next().unwrap_or_default().trim();
        let is = |media_type: &str| essence.eq_ignore_ascii_case(media_type);
        match () {
            #[cfg(feature = "sse")]
            () if is(Format::Sse.media_type()) => Some(Format::Sse),
            #[cfg(feature = "json-lines")]
            () if ["application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines"]
                .into_iter()
                .any(is) =>
            {
                Some(Format::JsonLines)
            }
            #[cfg(feature = "protobuf")]
            () if is(Format::Protobuf.media_type()) => Some(Format::Protobuf),
            () => None,
        }
    }

    /// The format that an `Accept` asks for before the others; `None` where it wants none of those whose
    /// features are on.
    ///
    /// The more specific range decides about a format, then the quality, then the order of the variants,
    /// except that JSON Lines, which is no binding of the protocol, comes last. An empty text asks for
    /// anything.
    ///
    /// # Examples
    /// ```
    /// use ag_ui_stream::codec::Format;
    ///
    /// assert_eq!(Format::from_accept("text/html, text/*;q=0.5"), Some(Format::Sse));
    /// assert_eq!(Format::from_accept("*/*, text/event-stream;q=0.1"), Format::from_accept("application/*").or(Some(Format::Sse)));
    /// assert_eq!(Format::from_accept("text/html"), None);
    /// ```
    #[must_use]
    pub fn from_accept(accept: &str) -> Option<Self> {
        let formats = [
            #[cfg(feature = "sse")]
            Format::Sse,
            #[cfg(feature = "protobuf")]
            Format::Protobuf,
            #[cfg(feature = "json-lines")]
            Format::JsonLines,
        ];
        if accept.trim().is_empty() {
            return formats.first().copied();
        }
        let mut best = None;
        for format in formats {
            let quality = accept.split(',').filter_map(|range| format.quality(range)).max_by_key(|&(rank, _)| rank);
            match (quality, best) {
                (None | Some((_, 0)), _) => {}
                (Some((_, quality)), Some((_, before))) if quality <= before => {}
                (Some((_, quality)), _) => best = Some((format, quality)),
            }
        }
        best.map(|(format, _)| format)
    }

    /// How specific a range of an `Accept` is that this format is within, and its quality in thousandths.
    fn quality(self, range: &str) -> Option<(u8, u16)> {
        let mut parts = range.split(';').map(str::trim);
        let essence = parts.next().unwrap_or_default();
        let kind = self.media_type().split_once('/').map_or("", |(kind, _)| kind);
        let rank = match essence.split_once('/') {
            Some(("*", "*")) => 0,
            Some((of, "*")) if of.eq_ignore_ascii_case(kind) => 1,
            _ if Self::from_content_type(essence) == Some(self) => 2,
            _ => return None,
        };
        let quality = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
        let quality = quality.map_or(1.0, |quality| quality.trim().parse::<f32>().unwrap_or(0.0));
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and 1000")]
        Some((rank, (quality.clamp(0.0, 1.0) * 1000.0) as u16))
    }

    /// An event as bytes, framed: an SSE event with its blank line, a line with its LF, a frame
    /// with its length.
    ///
    /// JSON is written in one line, without absent fields, whatever the event's strings hold.
    /// Protobuf is wire-compatible with npm `@ag-ui/proto` 1.0.0, and cannot express everything: other
    /// members of a patch operation are left out, an empty list that may be absent becomes absent, an
    /// absent list of a run's input becomes empty, and numbers in open values become doubles.
    ///
    /// # Errors
    /// [`Error::Malformed`] (rule E9) for an event that JSON cannot hold, never for an enforced one;
    /// [`Error::LimitExceeded`] for a protobuf frame of more than 4 GiB.
    ///
    /// # Cost
    /// JSON: one pass over the event, into memory of its own. Protobuf: two copies of the event on
    /// the way.
    ///
    /// # Examples
    /// ```
    /// use ag_ui_stream::codec::Format;
    /// use ag_ui_stream::event::StepStartedEvent;
    ///
    /// let bytes = Format::Sse.encode(&StepStartedEvent::new("two\nlines").into())?;
    /// assert_eq!(bytes, b"data: {\"type\":\"STEP_STARTED\",\"stepName\":\"two\\nlines\"}\n\n");
    /// # Ok::<(), ag_ui_stream::Error>(())
    /// ```
    pub fn encode(self, event: &Event) -> Result<Vec<u8>, Error> {
        super::encode::encode(self, event, 0)
    }

    /// Bytes without meaning between two events, to keep a connection open; `None` if the format has
    /// none.
    #[must_use]
    pub const fn keep_alive(self) -> Option<&'static [u8]> {
        match self {
            #[cfg(feature = "sse")]
            Format::Sse => Some(b":\n\n"),
            #[cfg(feature = "json-lines")]
            Format::JsonLines => None,
            #[cfg(feature = "protobuf")]
            Format::Protobuf => None,
        }
    }
}
