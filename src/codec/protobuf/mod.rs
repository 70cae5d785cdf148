//! Length-prefixed protobuf: <https://docs.ag-ui.com/spec/1.0/basic/transports/http-protobuf>.

use self::schema::Reading;
use self::wire::{Field, Fields, broken, is_message, put_varint};
use super::Ready;
use crate::error::{Error, Limit, LimitExceeded, Malformed};
use crate::event::{Event, EventType};
use crate::limits::Limits;
use crate::machine::Machine;
use crate::rule::Rule;
use crate::wire::{Raw, RawItem};

mod open;
mod schema;
mod wire;

/// The media type of a stream of events in protobuf.
pub const PROTOBUF_MEDIA_TYPE: &str = "application/vnd.ag-ui.event+proto";

/// How many bytes say how long a frame is.
const PREFIX: usize = 4;

/// Why a frame is no event.
#[derive(Debug, PartialEq, Eq)]
enum Fault {
    /// It cannot be read; what is there instead.
    Broken(String),
    /// An open value in it is nested too deep.
    TooDeep,
    /// It is longer as JSON than an event may be.
    TooLong,
}

/// Reads events from length-prefixed protobuf (rule T2), wire-compatible with npm `@ag-ui/proto`
/// 1.0.0 for all 31 types.
///
/// In: bytes, cut anywhere. Out, in order, for each frame: a [`Warning`](crate::Warning) for every
/// content part that is not known here (rule E3), then the event, as the JSON that it stands for
/// ([`Raw::Value`]), so that enforcement comes to the same verdict as on JSON (rule P4). A frame
/// that holds an event from a later version is dropped with a warning: it has no name to pass on.
///
/// - A frame is a length of four bytes, the highest first, and one `Event` message.
/// - Unknown fields are ignored; fields that occur twice are merged; an absent field is absent.
/// - A required string that is absent is empty, which is what protobuf has for the empty string.
/// - Unknown roles, outcomes and patch operations are passed on for enforcement to judge.
/// - Numbers in open values are doubles; whole ones become integers.
///
/// # Ending
/// An end within a frame is [`Error::Truncated`].
///
/// # Errors
/// [`Error::Malformed`] (rule T2) for a frame that cannot be read: no protobuf, strings that are
/// not UTF-8, no event or two in one envelope, a base that is missing or names another type, a
/// union with two members. [`Error::LimitExceeded`] for a frame longer than
/// [`Limits::max_event_bytes`], before the memory is taken; for one that would be longer than that
/// as JSON; for open values nested deeper than [`Limits::max_depth`]. What came before it is still
/// to be popped.
///
/// # Cost
/// Two passes over the bytes: one that finds out what is there and what it will take, one that
/// copies. A frame that comes in one piece is read where it is.
///
/// # Examples
/// ```
/// use ag_ui_stream::codec::{ProtobufDecoder, encode_protobuf};
/// use ag_ui_stream::event::StepStartedEvent;
/// use ag_ui_stream::{Raw, RawItem};
/// use serde_json::json;
///
/// let frame = encode_protobuf(&StepStartedEvent::new("think").into())?;
/// let mut decoder = ProtobufDecoder::new();
/// decoder.push(&frame[..7])?;
/// assert_eq!(decoder.pop(), None);
/// decoder.push(&frame[7..])?;
/// let raw = Raw::Value(json!({"type": "STEP_STARTED", "stepName": "think"}));
/// assert_eq!(decoder.pop(), Some(RawItem::Event { raw, index: 0 }));
/// decoder.finish()?;
/// # Ok::<(), ag_ui_stream::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct ProtobufDecoder {
    limits: Limits,
    /// The beginning of a frame, its length included, that did not come in one piece.
    frame: Vec<u8>,
    ready: Ready,
    ended: bool,
}

impl ProtobufDecoder {
    /// A decoder with the default [`Limits`].
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same with other bounds.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// How many frames came so far, dropped ones included; the index of the next one.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.ready.frames
    }

    /// What is held of a frame that is not whole yet.
    #[must_use]
    pub fn partial(&self) -> &[u8] {
        &self.frame
    }

    /// Takes the next piece of the stream.
    ///
    /// # Errors
    /// [`Error::Malformed`] and [`Error::LimitExceeded`]; the decoder is then done, and what
    /// follows is ignored.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if self.ended {
            return Ok(());
        }
        let pushed = self.take(bytes);
        self.ended = pushed.is_err();
        pushed
    }

    /// The next event or warning that is ready.
    pub fn pop(&mut self) -> Option<RawItem> {
        self.ready.pop()
    }

    /// Says that the stream has ended.
    ///
    /// # Errors
    /// [`Error::Truncated`] where it ended within a frame (rule T2).
    pub fn finish(&mut self) -> Result<(), Error> {
        if core::mem::replace(&mut self.ended, true) || self.frame.is_empty() {
            return Ok(());
        }
        Err(self.ready.truncated())
    }

    fn take(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.frame.is_empty() {
                if let Some((prefix, tail)) = rest.split_first_chunk::<PREFIX>() {
                    if let Some((frame, tail)) = tail.split_at_checked(self.check_len(*prefix)?) {
                        self.read(frame)?;
                        rest = tail;
                        continue;
                    }
                }
            }
            let wanted = match self.frame.first_chunk::<PREFIX>() {
                None => PREFIX,
                Some(prefix) => PREFIX + self.check_len(*prefix)?,
            };
            let (taken, tail) = rest.split_at(rest.len().min(wanted - self.frame.len()));
            self.frame.extend_from_slice(taken);
            rest = tail;
            if let Some((prefix, frame)) = self.frame.split_first_chunk::<PREFIX>() {
                if frame.len() == self.check_len(*prefix)? {
                    let whole = core::mem::take(&mut self.frame);
                    self.read(whole.get(PREFIX..).unwrap_or_default())?;
                }
            }
        }
        Ok(())
    }

    fn check_len(&self, prefix: [u8; PREFIX]) -> Result<usize, Error> {
        let max = self.limits.max_event_bytes;
        usize::try_from(u32::from_be_bytes(prefix))
            .ok()
            .filter(|len| *len <= max)
            .ok_or_else(|| self.ready.too_long(max))
    }

    fn read(&mut self, frame: &[u8]) -> Result<(), Error> {
        match read_envelope(frame, self.limits.max_event_bytes) {
            Ok(Envelope::Event(event_type, occurrences)) => {
                let mut cx = Reading::new(event_type, self.limits.depth());
                let read = schema::read(&occurrences, &mut cx);
                let value = read.map_err(|fault| self.fault(fault, Some(event_type)))?;
                for path in cx.dropped {
                    let message = "removed a content part: nothing in it is known here";
                    self.ready.warn(Rule::E3, event_type.as_str(), path, message.to_owned());
                }
                self.ready.event(Raw::Value(value));
                Ok(())
            }
            Ok(Envelope::Unknown(field)) => {
                let message = format!("dropped an event of an unknown type: field {field} of the envelope");
                self.ready.skipped(Rule::T2, message);
                Ok(())
            }
            Err((fault, event_type)) => Err(self.fault(fault, event_type)),
        }
    }

    fn fault(&self, fault: Fault, event_type: Option<EventType>) -> Error {
        let event = self.ready.frames;
        match fault {
            Fault::TooLong => self.ready.too_long(self.limits.max_event_bytes),
            Fault::TooDeep => LimitExceeded::new(event, Limit::Depth, self.limits.depth()).into(),
            Fault::Broken(found) => Malformed {
                rule: Rule::T2,
                event,
                event_type,
                path: String::new(),
                expected: "an event in protobuf".into(),
                found,
            }
            .into(),
        }
    }
}

/// What a frame holds.
enum Envelope<'a> {
    /// Every occurrence of the event's field: together they are one message.
    Event(EventType, Vec<&'a [u8]>),
    /// One event in a field that this version does not know.
    Unknown(u32),
}

/// Finds the event in a frame, and looks it through.
fn read_envelope(frame: &[u8], max: usize) -> Result<Envelope<'_>, (Fault, Option<EventType>)> {
    let mut known = None;
    let mut occurrences = Vec::new();
    let mut unknown = None;
    let mut is_whole = true;
    let mut budget = max;
    let mut fields = Fields::of(frame);
    while let Some((number, field)) = fields.next().map_err(|fault| (fault, known))? {
        match (schema::event_of(number), field) {
            (Some((event_type, _)), _) if known.is_some_and(|known| known != event_type) => {
                return Err((broken(format!("a {event_type} in the same envelope")), known));
            }
            (Some((event_type, spec)), Field::Bytes(bytes)) => {
                known = Some(event_type);
                schema::check(bytes, spec, &mut budget).map_err(|fault| (fault, known))?;
                occurrences.push(bytes);
            }
            (Some((event_type, _)), _) => {
                return Err((broken("a number where the message should be"), Some(event_type)));
            }
            (None, Field::Bytes(bytes)) => {
                unknown.get_or_insert(number);
                is_whole &= is_message(bytes);
            }
            // A later version may add to the envelope.
            (None, _) => {}
        }
    }
    match (known, unknown) {
        (Some(event_type), _) => Ok(Envelope::Event(event_type, occurrences)),
        (None, Some(field)) if is_whole => Ok(Envelope::Unknown(field)),
        (None, Some(_)) => Err((broken("an unknown event that is no message"), None)),
        (None, None) => Err((broken("an envelope without one"), None)),
    }
}

impl<B: AsRef<[u8]>> Machine<B> for ProtobufDecoder {
    type Output = RawItem;

    fn push(&mut self, input: B) -> Result<(), Error> {
        ProtobufDecoder::push(self, input.as_ref())
    }

    fn pop(&mut self) -> Option<RawItem> {
        ProtobufDecoder::pop(self)
    }

    fn finish(&mut self) -> Result<(), Error> {
        ProtobufDecoder::finish(self)
    }
}

/// An event as a frame of length-prefixed protobuf (rule T2), wire-compatible with npm
/// `@ag-ui/proto` 1.0.0.
///
/// Protobuf has no room for everything that JSON has: extra members of a patch operation are left
/// out, an empty list that may be absent becomes absent and an absent one of a run's input empty,
/// and numbers in open values become doubles.
///
/// # Errors
/// [`Error::LimitExceeded`] for an event of more than 4 GiB; [`Error::Malformed`] for one that
/// cannot be written.
///
/// # Cost
/// One copy of the event as a [`Value`], one as messages.
pub fn encode_protobuf(event: &Event) -> Result<Vec<u8>, Error> {
    encode(event, 0)
}

fn encode(event: &Event, index: u64) -> Result<Vec<u8>, Error> {
    let json = super::to_value(event, index)?;
    let (field, message) = schema::write(event.event_type(), json);
    let mut frame = Vec::with_capacity(PREFIX + 12 + message.len());
    frame.extend([0; PREFIX]);
    put_varint(&mut frame, u64::from(field) << 3 | 2);
    put_varint(&mut frame, message.len() as u64);
    frame.extend_from_slice(&message);
    let max = u32::MAX as usize;
    let len = u32::try_from(frame.len() - PREFIX).map_err(|_| LimitExceeded::new(index, Limit::EventBytes, max))?;
    if let Some(prefix) = frame.first_chunk_mut() {
        *prefix = len.to_be_bytes();
    }
    Ok(frame)
}
