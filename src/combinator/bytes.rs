//! The combinators between bytes and events: `sse`, `json_lines`, `protobuf`, and `encode`.

use futures::stream::Stream;

#[cfg(feature = "__format")]
use super::{Decode, Encode};
use super::{ItemInput, ToJson, giving};
use crate::codec::JsonEncoder;
#[cfg(feature = "json-lines")]
use crate::codec::JsonLinesDecoder;
#[cfg(feature = "protobuf")]
use crate::codec::ProtobufDecoder;
#[cfg(feature = "sse")]
use crate::codec::SseDecoder;
#[cfg(feature = "__format")]
use crate::codec::{Encoder, Format, Piece};
#[cfg(doc)]
use crate::error::Error;
#[cfg(feature = "__format")]
use crate::machine::Push;
#[cfg(feature = "__format")]
use crate::raw::RawItem;

/// Decoders as methods of every stream of bytes: `Stream<Item = Result<B, E>>` with `B` a
/// [`Piece`], such as the body of a response, and [`Pieces`](super::Pieces) of a file or a
/// socket.
///
/// | method | reads |
/// |---|---|
/// | `sse` | server-sent events (rule T1) |
/// | `json_lines` | JSON Lines |
/// | `protobuf` | length-prefixed protobuf (rule T2) |
/// | [`decode`](ByteStreamExt::decode) | with a decoder of other options, or of your own |
///
/// Each gives [`RawItem`]s, for [`updates`](super::EventStreamExt::updates) or any other stage
/// that takes raw events.
///
/// # What holds for all
/// - **Ending**: with the source; the last event may lack its end mark, as the decoder describes.
/// - **Errors**: [`Error::Source`], the source's own; [`Error::LimitExceeded`];
///   [`Error::Truncated`] where the bytes end within an event (rule T1a);
///   [`Error::Malformed`] from protobuf only, since a JSON text is for enforcement to judge. The
///   error comes after every event before it, and is the last item.
/// - **Cost**: each byte is looked at once, however the bytes are cut. A JSON text that one piece holds whole is
///   not copied: it shares the memory of the piece, which lives as long as one of its events is kept. What is
///   held is one event, never more than [`Limits::max_event_bytes`](crate::Limits::max_event_bytes), and one
///   piece, which is read as far as events are asked for.
/// - **Cancel safety**: a dropped `next()` loses nothing.
///
/// # Examples
/// ```
/// use ag_ui_stream::{ByteStreamExt, EventStreamExt};
/// use futures::{TryStreamExt, stream};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), ag_ui_stream::Error<std::io::Error>> {
/// # #[cfg(feature = "sse")] {
/// // As a network cuts it.
/// let body = stream::iter([
///     Ok("data: {\"type\":\"RUN_STARTED\",\"threadId\":\"t\",\"runI"),
///     Ok("d\":\"r\"}\n\ndata: {\"type\":\"RUN_FINISHED\",\"threadId\":\"t\",\"runId\":\"r\"}\n\n"),
/// ]);
/// let events: Vec<_> = body.sse().events().try_collect().await?;
/// assert_eq!(events.len(), 2);
/// # }
/// # Ok(())
/// # }
/// ```
#[cfg(feature = "__format")]
pub trait ByteStreamExt: Stream {
    /// Server-sent events in, raw events out: [`SseDecoder`].
    ///
    /// With tolerances or other limits: `decode(SseDecoder::new().tolerate_done())`.
    #[cfg(feature = "sse")]
    fn sse<B, E>(self) -> Decode<Self, SseDecoder>
    where
        Self: Stream<Item = Result<B, E>> + Sized,
        B: Piece,
    {
        self.decode(SseDecoder::new())
    }

    /// JSON Lines in, raw events out: [`JsonLinesDecoder`].
    #[cfg(feature = "json-lines")]
    fn json_lines<B, E>(self) -> Decode<Self, JsonLinesDecoder>
    where
        Self: Stream<Item = Result<B, E>> + Sized,
        B: Piece,
    {
        self.decode(JsonLinesDecoder::new())
    }

    /// Length-prefixed protobuf in, raw events out: [`ProtobufDecoder`].
    #[cfg(feature = "protobuf")]
    fn protobuf<B, E>(self) -> Decode<Self, ProtobufDecoder>
    where
        Self: Stream<Item = Result<B, E>> + Sized,
        B: Piece,
    {
        self.decode(ProtobufDecoder::new())
    }

    /// Bytes in, the outputs of a decoder out: one with other options, or one of your own.
    fn decode<B, E, D>(self, decoder: D) -> Decode<Self, D>
    where
        Self: Stream<Item = Result<B, E>> + Sized,
        D: Push<B, Output = RawItem>,
    {
        giving::<RawItem, E, _>(Decode::new(self, decoder))
    }
}

#[cfg(feature = "__format")]
impl<S: Stream + ?Sized> ByteStreamExt for S {}

/// The encoders as methods of every stream of events: those of
/// [`items`](super::EventStreamExt::items), [`events`](super::EventStreamExt::events) and the
/// single stages, or plain events ([`ItemInput`]).
///
/// For each event, one piece of bytes, or one text; warnings are not written. A gateway is
/// `upstream.sse().items().to_sse()`: its output is legal and without chunks.
///
/// # Errors
/// Those of the source, unchanged, and those of `Format::encode`. An error ends the stream. In the
/// body of a response it breaks the body off, so that the client sees a truncated run and not a
/// success. To tell the client more, turn the error into a `RUN_ERROR` event before it is encoded.
///
/// # Cost
/// Memory of its own for each event.
///
/// # Cancel safety
/// A dropped `next()` loses nothing.
///
/// # Examples
/// ```
/// use ag_ui_stream::{EncodeStreamExt, EventStreamExt};
/// use futures::{TryStreamExt, stream};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), ag_ui_stream::Error> {
/// # #[cfg(feature = "sse")] {
/// let source = stream::iter([
///     r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#,
///     r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r","unknown":1}"#,
/// ]);
/// let body = source.items().to_sse().try_concat().await?;
/// assert_eq!(
///     String::from_utf8(body).unwrap(),
///     concat!(
///         "data: {\"type\":\"RUN_STARTED\",\"threadId\":\"t\",\"runId\":\"r\"}\n\n",
///         "data: {\"type\":\"RUN_FINISHED\",\"threadId\":\"t\",\"runId\":\"r\"}\n\n",
///     )
/// );
/// # }
/// # Ok(())
/// # }
/// ```
pub trait EncodeStreamExt: Stream {
    /// Events in, server-sent events out. [`Encode::keep_alive`] adds comments while no event comes.
    #[cfg(feature = "sse")]
    fn to_sse(self) -> Encode<Self>
    where
        Self: Sized,
        Self::Item: ItemInput,
    {
        self.encode(Format::Sse)
    }

    /// Events in, JSON Lines out.
    #[cfg(feature = "json-lines")]
    fn to_json_lines(self) -> Encode<Self>
    where
        Self: Sized,
        Self::Item: ItemInput,
    {
        self.encode(Format::JsonLines)
    }

    /// Events in, length-prefixed protobuf out.
    #[cfg(feature = "protobuf")]
    fn to_protobuf(self) -> Encode<Self>
    where
        Self: Sized,
        Self::Item: ItemInput,
    {
        self.encode(Format::Protobuf)
    }

    /// Events in, JSON texts out, one each, for a transport with frames of its own: the text messages of
    /// a WebSocket, a channel, a database.
    ///
    /// For binary messages use `to_protobuf`, which gives one piece of bytes for each event.
    ///
    /// # Examples
    /// A run to a WebSocket; that of axum has the same methods, and a `Message` of its own. With
    /// `forward` instead of `send`, unflushed messages are lost if the run breaks off.
    /// ```
    /// # #[cfg(feature = "websocket")]
    /// # mod example {
    /// use std::pin::pin;
    ///
    /// use ag_ui_stream::client::tungstenite::{Error, Message, protocol::CloseFrame};
    /// use ag_ui_stream::{EncodeStreamExt, Event, EventStreamExt};
    /// use futures::{Sink, SinkExt, Stream, StreamExt};
    ///
    /// async fn send<S>(run: impl Stream<Item = Event>, mut socket: S) -> Result<(), Error>
    /// where
    ///     S: Sink<Message, Error = Error> + Unpin,
    /// {
    ///     // Expanded and verified on the way out.
    ///     let mut texts = pin!(run.items().to_json());
    ///     let (code, reason) = loop {
    ///         match texts.next().await {
    ///             Some(Ok(text)) => socket.send(Message::text(text)).await?,
    ///             Some(Err(_)) => break (1011, "the run broke off"),
    ///             None => break (1000, ""),
    ///         }
    ///     };
    ///     socket.send(Message::Close(Some(CloseFrame { code: code.into(), reason: reason.into() }))).await
    /// }
    /// # }
    /// ```
    fn to_json(self) -> ToJson<Self>
    where
        Self: Sized,
        Self::Item: ItemInput,
    {
        giving::<String, <Self::Item as ItemInput>::Error, _>(ToJson::new(self, JsonEncoder::new()))
    }

    /// Events in, bytes of this format out.
    #[cfg(feature = "__format")]
    fn encode(self, format: Format) -> Encode<Self>
    where
        Self: Sized,
        Self::Item: ItemInput,
    {
        giving::<Vec<u8>, <Self::Item as ItemInput>::Error, _>(Encode::new(self, Encoder::new(format)))
    }
}

impl<S: Stream + ?Sized> EncodeStreamExt for S {}
