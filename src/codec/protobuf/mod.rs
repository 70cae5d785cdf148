//! The decoder and encoder of length-prefixed protobuf: <https://docs.ag-ui.com/spec/1.0/basic/transports/http-protobuf>.

use std::collections::VecDeque;

use bytes::Bytes;

use self::schema::Reading;
use self::wire::{Field, Fields, broken, is_message, put_varint};
use super::feed::{Count, Feed, Framing, read_in_place};
use crate::error::{Error, Limit, LimitExceeded, LimitStage, Malformed};
use crate::event::{Event, EventType};
use crate::limits::Limits;
use crate::raw::{Raw, RawItem};
use crate::rule::Rule;

mod open;
mod schema;
mod wire;

/// The bytes of the length of a frame.
const PREFIX: usize = 4;

/// Why a frame is rejected.
#[derive(Debug, PartialEq, Eq)]
enum Fault {
    /// It cannot be read; this was found.
    Broken(String),
    /// An open value in it is nested too deep.
    TooDeep,
    /// As JSON it would be longer than an event may be.
    TooLong,
}

/// Reads events from length-prefixed protobuf (rule T2), wire-compatible with npm `@ag-ui/proto`
/// 1.0.0 for all 31 types.
///
/// In: bytes, cut anywhere. Out, in order, for each frame: a [`Warning`](crate::Warning) for every
/// content part that is not known here (rule E3) and every open value that holds numbers which JSON
/// cannot say (rule E10), then the event, as the JSON that it stands for, so that enforcement comes to the
/// same verdict as on JSON (rule P4): as text ([`Raw::Text`]) where it is no more than strings, else as a
/// [`Raw::Value`]. A frame that holds an event from a later version is dropped with a warning: it has no
/// name to pass on.
///
/// - A frame is a length of four bytes, the highest first, and one `Event` message.
/// - Unknown fields are ignored; fields that occur twice are merged; an absent field is absent.
/// - An absent required string is the empty string: protobuf does not distinguish them.
/// - Unknown roles, outcomes and patch operations are passed on to enforcement.
/// - Numbers in open values are doubles; whole ones become integers. NaN and the infinities, which JSON
///   cannot express, become null with a warning (rules E10 and P4).
///
/// # Ending
/// An end within a frame is [`Error::Truncated`].
///
/// # Errors
/// [`Error::Malformed`] (rule T2) for a frame that cannot be read: invalid protobuf, strings that are
/// not UTF-8, no event or two in one envelope, a base that is missing or names another type, a
/// union with two members. [`Error::LimitExceeded`] for a frame longer than
/// [`Limits::max_event_bytes`], before the memory is taken; for one that would be longer than that
/// as JSON; for open values nested deeper than [`Limits::max_depth`]. All events before the error are
/// popped before [`fault`](ProtobufDecoder::fault) gives it.
///
/// # Cost
/// An event of strings: one pass over the bytes, and one copy. Others: two passes, one that finds out what is
/// there and what it will take, one that copies. A frame that comes in one piece is read where it is.
///
/// # Examples
/// ```
/// use ag_ui_stream::codec::{Format, ProtobufDecoder};
/// use ag_ui_stream::event::StepStartedEvent;
/// use ag_ui_stream::{Raw, RawItem};
///
/// let frame = Format::Protobuf.encode(&StepStartedEvent::new("think").into())?;
/// let mut decoder = ProtobufDecoder::new();
/// decoder.push(&frame[..7])?;
/// assert_eq!(decoder.pop(), None);
/// decoder.push(&frame[7..])?;
/// let json = r#"{"type":"STEP_STARTED","stepName":"think"}"#;
/// assert_eq!(decoder.pop(), Some(RawItem::Event { raw: Raw::Text(json.to_owned()), index: 0 }));
/// decoder.finish()?;
/// # Ok::<(), ag_ui_stream::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct ProtobufDecoder {
    pub(super) feed: Feed<ProtobufFraming>,
}

decoder!(ProtobufDecoder: "[`Error::Malformed`] and [`Error::LimitExceeded`].", "T2");

impl ProtobufDecoder {
    /// A decoder with the default [`Limits`].
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same with other bounds.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.feed.framing.limits = limits;
        self
    }
}

/// Finds the frames, and reads their events.
#[derive(Debug, Default)]
pub(super) struct ProtobufFraming {
    limits: Limits,
    /// The beginning of a frame, with its length, that did not come in one piece.
    frame: Vec<u8>,
    pub(super) count: Count,
    /// The outputs of one frame.
    ready: VecDeque<RawItem>,
}

impl Framing for ProtobufFraming {
    type Item = RawItem;

    fn next(&mut self, rest: &mut Bytes) -> Result<Option<RawItem>, Error> {
        read_in_place(rest, |rest, _| {
            while self.ready.is_empty() && !rest.is_empty() {
                self.take(rest)?;
            }
            Ok(self.ready.pop_front())
        })
    }

    fn end(&mut self) -> Result<Option<RawItem>, Error> {
        if self.frame.is_empty() { Ok(None) } else { Err(self.count.truncated()) }
    }
}

impl ProtobufFraming {
    pub(super) fn held(&self) -> &[u8] {
        &self.frame
    }

    /// Reads one frame, or a part of it.
    fn take(&mut self, rest: &mut &[u8]) -> Result<(), Error> {
        if self.frame.is_empty() {
            if let Some((prefix, tail)) = rest.split_first_chunk::<PREFIX>() {
                if let Some((frame, tail)) = tail.split_at_checked(self.check_len(*prefix)?) {
                    *rest = tail;
                    return read_event(&mut self.count, &self.limits, frame, &mut self.ready);
                }
            }
        }
        let wanted = match self.frame.first_chunk::<PREFIX>() {
            None => PREFIX,
            Some(prefix) => PREFIX + self.check_len(*prefix)?,
        };
        let (taken, tail) = rest.split_at(rest.len().min(wanted - self.frame.len()));
        self.frame.extend_from_slice(taken);
        *rest = tail;
        match self.frame.split_first_chunk::<PREFIX>() {
            Some((prefix, frame)) if frame.len() == self.check_len(*prefix)? => {
                let whole = core::mem::take(&mut self.frame);
                let frame = whole.get(PREFIX..).unwrap_or_default();
                read_event(&mut self.count, &self.limits, frame, &mut self.ready)
            }
            _ => Ok(()),
        }
    }

    fn check_len(&self, prefix: [u8; PREFIX]) -> Result<usize, Error> {
        let max = self.limits.max_event_bytes;
        usize::try_from(u32::from_be_bytes(prefix))
            .ok()
            .filter(|len| *len <= max)
            .ok_or_else(|| self.count.too_long(max))
    }
}

/// Whether a WebSocket message is frames, and not one event without a length.
///
/// The length of a frame below 16 MiB begins with a zero byte, and no protobuf message does. A larger
/// length is recognized if it is that of the rest.
#[cfg(feature = "websocket")]
pub(super) fn is_framed(message: &[u8]) -> bool {
    message.first() == Some(&0)
        || message.split_first_chunk().is_some_and(|(prefix, rest)| frame_len(*prefix) == rest.len())
}

/// Reads the next event of a WebSocket message.
#[cfg(feature = "websocket")]
pub(super) fn read_in_message(
    count: &mut Count,
    limits: &Limits,
    is_framed: bool,
    rest: &mut &[u8],
    out: &mut VecDeque<RawItem>,
) -> Result<(), Error> {
    let max = limits.max_event_bytes;
    let (len, tail) = if is_framed {
        // The rest of a frame does not come in another message.
        let cut = || fault(*count, limits, broken("a message that ends within a frame"), None);
        let (prefix, tail) = rest.split_first_chunk().ok_or_else(cut)?;
        let len = frame_len(*prefix);
        if len <= max && len > tail.len() {
            return Err(cut());
        }
        (len, tail)
    } else {
        (rest.len(), *rest)
    };
    if len > max {
        return Err(count.too_long(max));
    }
    let (frame, tail) = tail.split_at_checked(len).unwrap_or_default();
    *rest = tail;
    read_event(count, limits, frame, out)
}

#[cfg(feature = "websocket")]
fn frame_len(prefix: [u8; PREFIX]) -> usize {
    usize::try_from(u32::from_be_bytes(prefix)).unwrap_or(usize::MAX)
}

/// Reads one event, without its length.
fn read_event(count: &mut Count, limits: &Limits, frame: &[u8], out: &mut VecDeque<RawItem>) -> Result<(), Error> {
    if let Some(json) = schema::plain(frame, limits.max_event_bytes) {
        out.push_back(count.event(Raw::Text(json)));
        return Ok(());
    }
    match read_envelope(frame, limits.max_event_bytes) {
        Ok(Envelope::Event(event_type, occurrences)) => {
            let mut cx = Reading::new(event_type, limits.depth());
            let read = schema::read(&occurrences, &mut cx);
            let value = read.map_err(|found| fault(*count, limits, found, Some(event_type)))?;
            for (rule, path, message) in cx.warnings {
                out.push_back(count.warning(rule, event_type.as_str(), path, message));
            }
            out.push_back(count.event(Raw::Value(value)));
            Ok(())
        }
        Ok(Envelope::Unknown(field)) => {
            let message = format!("dropped an event of an unknown type: field {field} of the envelope");
            out.push_back(count.skipped(Rule::T2, message));
            Ok(())
        }
        Err((found, event_type)) => Err(fault(*count, limits, found, event_type)),
    }
}

fn fault(count: Count, limits: &Limits, fault: Fault, event_type: Option<EventType>) -> Error {
    match fault {
        Fault::TooLong => count.too_long(limits.max_event_bytes),
        Fault::TooDeep => LimitExceeded::new(count.0, Limit::Depth, limits.depth()).of(LimitStage::Decoder).into(),
        Fault::Broken(found) => {
            Malformed { event_type, ..Malformed::new(Rule::T2, count.0, "an event in protobuf", found) }.into()
        }
    }
}

/// The content of a frame.
enum Envelope<'a> {
    /// Every occurrence of the event's field: together they are one message.
    Event(EventType, Vec<&'a [u8]>),
    /// One event in a field that this version does not know.
    Unknown(u32),
}

/// Finds the event in a frame, and checks it.
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
        (None, Some(_)) => Err((broken("an unknown event that is not a message"), None)),
        (None, None) => Err((broken("an empty envelope"), None)),
    }
}

/// Appends an event as a frame.
pub(super) fn write(event: &Event, index: u64, out: &mut Vec<u8>) -> Result<(), Error> {
    let json = serde_json::to_value(event).map_err(|error| super::json::unwritable(event, index, &error))?;
    let (field, message) = schema::write(event.event_type(), json);
    let start = out.len();
    out.reserve(PREFIX + 12 + message.len());
    out.extend([0; PREFIX]);
    put_varint(out, u64::from(field) << 3 | 2);
    put_varint(out, message.len() as u64);
    out.extend_from_slice(&message);
    let len = u32::try_from(out.len() - start - PREFIX)
        .map_err(|_| LimitExceeded::new(index, Limit::EventBytes, u32::MAX as usize).of(LimitStage::Encoder))?;
    if let Some(prefix) = out.get_mut(start..).and_then(<[u8]>::first_chunk_mut) {
        *prefix = len.to_be_bytes();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::codec::Format;
    use crate::codec::testing::{cut, run, run_in_pieces};
    use crate::error::TruncatedBy;
    use crate::event::{RunErrorEvent, StepStartedEvent};
    use crate::machine::Enforcer;

    /// A field of bytes.
    fn field(number: u64, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        put_varint(&mut out, number << 3 | 2);
        put_varint(&mut out, bytes.len() as u64);
        out.extend_from_slice(bytes);
        out
    }

    fn frame(envelope: &[u8]) -> Vec<u8> {
        [&u32::try_from(envelope.len()).unwrap().to_be_bytes(), envelope].concat()
    }

    /// An event in the field of its type, with a base of that type and these fields.
    fn event(number: u64, event_type: u8, fields: &[Vec<u8>]) -> Vec<u8> {
        field(number, &[field(1, &[8, event_type]), fields.concat()].concat())
    }

    fn messages(messages: &[Vec<u8>]) -> Vec<u8> {
        event(9, 8, &messages.iter().map(|message| field(2, message)).collect::<Vec<_>>())
    }

    fn decode(envelope: &[u8]) -> (Vec<RawItem>, Option<Error>) {
        run(ProtobufDecoder::new(), &frame(envelope))
    }

    #[track_caller]
    fn value(envelope: &[u8]) -> Value {
        match decode(envelope) {
            (items, None) => match &items[..] {
                [RawItem::Event { raw: Raw::Value(value), index: 0 }] => value.clone(),
                [RawItem::Event { raw: Raw::Text(json), index: 0 }] => serde_json::from_str(json).unwrap(),
                other => panic!("{other:?}"),
            },
            (_, Some(error)) => panic!("{error}"),
        }
    }

    #[track_caller]
    fn fault(envelope: &[u8]) -> String {
        let (items, error) = decode(envelope);
        assert_eq!(items, []);
        let Some(Error::Malformed(malformed)) = error else { panic!("{error:?}") };
        assert_eq!(malformed.rule, Rule::T2);
        malformed.to_string()
    }

    #[test]
    fn t2_a_frame_is_read_in_any_pieces() {
        let frames = [
            Format::Protobuf.encode(&StepStartedEvent::new("s".repeat(300)).into()).unwrap(),
            Format::Protobuf.encode(&RunErrorEvent::new("no").into()).unwrap(),
            frame(&field(99, b"")),
            Format::Protobuf.encode(&StepStartedEvent::new("").into()).unwrap(),
        ]
        .concat();
        let (items, error) = run(ProtobufDecoder::new(), &frames);
        assert_eq!((items.len(), &error), (4, &None));
        for at in 0..=frames.len() {
            let (one, other) = frames.split_at(at);
            assert_eq!(run_in_pieces(ProtobufDecoder::new(), [one, other]), (items.clone(), None), "{at}");
        }
        assert_eq!(run_in_pieces(ProtobufDecoder::new(), frames.chunks(1)), (items.clone(), None));
    }

    #[test]
    fn t2_an_end_within_a_frame_is_a_truncation() {
        let frames =
            [frame(&field(99, b"")), Format::Protobuf.encode(&RunErrorEvent::new("no").into()).unwrap()].concat();
        let first = frame(&field(99, b"")).len();
        for len in 0..frames.len() {
            let (items, error) = run(ProtobufDecoder::new(), &frames[..len]);
            assert_eq!(items.len(), usize::from(len >= first));
            match error {
                None => assert!(len == 0 || len == first),
                Some(Error::Truncated(truncated)) => {
                    assert_eq!((truncated.by, truncated.events), (TruncatedBy::Partial, items.len() as u64));
                }
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn t2_an_event_from_a_later_version_is_dropped_with_a_warning() {
        let error = event(14, 13, &[field(3, b"no")]);
        for unknown in [field(32, b""), field(32, &[8, 1]), [field(536, b"\x0a\x00"), vec![0xc0, 0x3e, 1]].concat()] {
            let (items, error) = run(ProtobufDecoder::new(), &[frame(&unknown), frame(&error)].concat());
            assert_eq!(error, None);
            let [RawItem::Warning(warning), RawItem::Event { index: 1, .. }] = &items[..] else { panic!("{items:?}") };
            assert_eq!((warning.rule, warning.event, warning.event_type.as_str()), (Rule::T2, 0, ""));
            assert!(warning.message.starts_with("dropped an event of an unknown type: field "), "{warning}");
        }
        // Beside a known event it is a field like any other unknown one.
        assert_eq!(value(&[error, field(32, b"\xff")].concat()), json!({"type": "RUN_ERROR", "message": "no"}));
    }

    #[test]
    fn t2_what_cannot_be_read_is_fatal_and_says_why() {
        let head = "expected an event in protobuf, found ";
        for (envelope, found) in [
            (vec![], "T2: event 0: {}an empty envelope"),
            (vec![0x08], "T2: event 0: {}the end of the message within a field"),
            (vec![0x08, 1], "T2: TEXT_MESSAGE_START (event 0): {}a number where the message should be"),
            (vec![0xc0, 0x3e, 1], "T2: event 0: {}an empty envelope"),
            (field(32, b"\xff"), "T2: event 0: {}an unknown event that is not a message"),
            (field(14, b""), "T2: RUN_ERROR (event 0): {}an event without its base"),
            (event(14, 12, &[]), "T2: RUN_ERROR (event 0): {}an event whose base names the type number 12"),
            (field(1, b"\x0a\x00\x12"), "T2: TEXT_MESSAGE_START (event 0): {}the end of the message within a field"),
            (
                [event(14, 13, &[]), event(15, 14, &[])].concat(),
                "T2: RUN_ERROR (event 0): {}a STEP_STARTED in the same envelope",
            ),
        ] {
            let found = found.replace("{}", head);
            assert_eq!(fault(&envelope), found);
        }
        let text = fault(&event(14, 13, &[field(3, b"\xff")]));
        assert!(text.contains("RunErrorEvent.message") && text.contains("UTF-8"), "{text}");
    }

    #[test]
    fn what_came_before_a_fault_is_delivered() {
        let error = frame(&event(14, 13, &[field(3, b"no")]));
        let bytes = [error.clone(), frame(b""), error].concat();
        let (items, error) = run(ProtobufDecoder::new(), &bytes);
        assert_eq!((items.len(), error.unwrap().event_index()), (1, Some(1)));
        let mut decoder = ProtobufDecoder::new();
        decoder.push(&bytes).unwrap();
        assert!(decoder.pop().is_some());
        assert_eq!(decoder.pop(), None);
        assert!(decoder.push(&bytes).is_err());
        assert_eq!((decoder.push(&bytes), decoder.pop(), decoder.finish()), (Ok(()), None, Ok(())));
    }

    #[test]
    fn t2_an_event_in_two_fields_of_one_envelope_is_merged() {
        let envelope = [event(4, 3, &[field(2, b"a"), field(3, b"b")]), field(4, &field(2, b"c"))].concat();
        assert_eq!(value(&envelope), json!({"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "b"}));
        // Open values in two pieces, too, at both levels.
        let raw = |text: &str| field(3, &open::write_value(&serde_json::from_str(text).unwrap()));
        let envelope = [
            field(14, &field(1, &[&[8, 13][..], &raw(r#"{"a":1}"#)].concat())),
            field(14, &field(1, &[raw(r#"{"b":2}"#), raw(r#"{"c":3}"#)].concat())),
        ]
        .concat();
        assert_eq!(value(&envelope)["rawEvent"], json!({"a": 1, "b": 2, "c": 3}));
    }

    #[test]
    fn t2_an_absent_string_is_empty_if_required_and_absent_if_not() {
        assert_eq!(value(&event(1, 0, &[])), json!({"type": "TEXT_MESSAGE_START", "messageId": ""}));
        assert_eq!(
            value(&event(1, 0, &[field(3, b""), field(5, b"")])),
            json!({"type": "TEXT_MESSAGE_START", "messageId": "", "role": "", "subagentRunId": ""})
        );
        // An absent open value stays absent: enforcement refuses the event.
        assert_eq!(value(&event(7, 6, &[])), json!({"type": "STATE_SNAPSHOT"}));
    }

    #[test]
    fn e3_what_has_a_name_that_is_not_known_is_left_to_enforcement() {
        let unknown = [field(1, b"m"), field(2, b"narrator"), field(3, b"text")].concat();
        assert_eq!(
            value(&messages(&[unknown]))["messages"],
            json!([{"id": "m", "role": "narrator", "content": "text"}])
        );
        let part = field(8, &field(1, &field(1, b"x")));
        assert_eq!(
            value(&messages(&[[field(2, b"narrator"), part.clone()].concat()]))["messages"],
            json!([{"id": "", "role": "narrator", "content": [{"type": "text", "text": "x"}]}])
        );
        assert_eq!(
            value(&event(13, 12, &[field(5, b"paused"), field(8, b"c")]))["outcome"],
            json!({"type": "paused", "pendingToolCallIds": ["c"]})
        );
        assert_eq!(
            value(&event(13, 12, &[field(5, b"interrupt")]))["outcome"],
            json!({"type": "interrupt", "interrupts": []})
        );
        let stray = value(&event(13, 12, &[field(8, b"c")]));
        assert_eq!((&stray["pendingToolCallIds"], stray.get("outcome")), (&json!(["c"]), None));
        assert_eq!(
            value(&event(
                8,
                7,
                &[field(2, &[8, 9]), field(2, &[8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1])]
            ))["delta"],
            json!([{"op": "9", "path": ""}, {"op": "-1", "path": ""}])
        );
    }

    #[test]
    fn e10_p4_a_number_that_json_cannot_say_is_null_with_a_warning() {
        let double = |number: f64| [&[0x11][..], &number.to_le_bytes()].concat();
        let list = [f64::NAN, 1.5, f64::NEG_INFINITY].map(|number| field(1, &double(number))).concat();
        for (snapshot, read, lost) in [
            (double(f64::INFINITY), json!(null), "1 number within, which is"),
            (field(6, &list), json!([null, 1.5, null]), "2 numbers within, which are"),
        ] {
            let (items, error) = decode(&event(7, 6, &[field(2, &snapshot)]));
            assert_eq!(error, None);
            let [RawItem::Warning(warning), RawItem::Event { raw: Raw::Value(event), .. }] = &items[..] else {
                panic!("{items:?}")
            };
            assert_eq!((warning.rule, warning.event_type.as_str()), (Rule::E10, "STATE_SNAPSHOT"));
            assert_eq!(warning.path, "/snapshot");
            assert_eq!(warning.message, format!("read as null: {lost} infinite or not a number"));
            assert_eq!(event, &json!({"type": "STATE_SNAPSHOT", "snapshot": read}));
        }
    }

    #[test]
    fn e3_a_content_part_without_a_name_is_dropped_with_a_warning() {
        let known = field(8, &field(1, &field(1, b"x")));
        let unknown = field(8, &field(6, b""));
        let unknown_source = field(8, &field(2, &field(1, &field(4, b""))));
        let user = [field(2, b"user"), known, unknown, unknown_source].concat();
        let (items, error) = decode(&messages(&[field(2, b"user"), user.clone()]));
        assert_eq!(error, None);
        let paths: Vec<_> = items[..2]
            .iter()
            .map(|item| match item {
                RawItem::Warning(warning) => (warning.rule, warning.event_type.as_str(), warning.path.as_str()),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(
            paths,
            [
                (Rule::E3, "MESSAGES_SNAPSHOT", "/messages/1/content/1"),
                (Rule::E3, "MESSAGES_SNAPSHOT", "/messages/1/content/2")
            ]
        );
        let RawItem::Event { raw: Raw::Value(json), index: 0 } = &items[2] else { panic!("{items:?}") };
        assert_eq!(json["messages"][1]["content"], json!([{"type": "text", "text": "x"}]));

        let (items, _) = decode(&event(12, 11, &[field(5, &field(5, &user))]));
        let RawItem::Warning(warning) = &items[0] else { panic!("{items:?}") };
        assert_eq!(warning.path, "/input/messages/0/content/1");
        let (items, _) = decode(&event(22, 21, &[field(7, b"")]));
        let RawItem::Warning(warning) = &items[0] else { panic!("{items:?}") };
        assert_eq!(warning.path, "/content/0");
        // A media part without a source is another matter: the source is required.
        assert_eq!(value(&event(22, 21, &[field(7, &field(2, b""))]))["content"], json!([{"type": "image"}]));
    }

    #[test]
    fn t2_content_that_contradicts_itself_is_fatal() {
        let (text, part, activity) = (field(3, b""), field(8, b""), field(13, b""));
        let role = |role: &str| field(2, role.as_bytes());
        for message in [
            [role("user"), text.clone(), part.clone()],
            [role("user"), activity.clone(), vec![]],
            [role("assistant"), part.clone(), vec![]],
            [role("assistant"), activity.clone(), text.clone()],
            [role("activity"), text.clone(), vec![]],
            [role("activity"), activity.clone(), part.clone()],
            [role("narrator"), text.clone(), part.clone()],
            [role("narrator"), part.clone(), activity.clone()],
        ] {
            let text = fault(&messages(&[message.concat()]));
            assert!(text.ends_with("with two contents"), "{text}");
        }
        let text = fault(&event(22, 21, &[field(5, b""), field(7, b"")]));
        assert!(text.ends_with("a result with both text and parts"), "{text}");
        let two = [field(1, b""), field(2, b"")].concat();
        assert!(fault(&event(22, 21, &[field(7, &two)])).ends_with("a union with more than one member"));
        assert!(fault(&event(22, 21, &[field(7, &field(2, &field(1, &two)))])).ends_with("more than one member"));
    }

    #[test]
    fn a_frame_beyond_the_limit_is_refused_before_it_is_held() {
        let decoder = || ProtobufDecoder::new().with_limits(Limits { max_event_bytes: 100, ..Limits::default() });
        let long = Format::Protobuf.encode(&StepStartedEvent::new("s".repeat(100)).into()).unwrap();
        let short = Format::Protobuf.encode(&StepStartedEvent::new("s".repeat(80)).into()).unwrap();
        let bytes = [short, long].concat();
        for pieces in [vec![&bytes[..]], bytes.chunks(1).collect(), bytes.chunks(33).collect()] {
            let (items, error) = run_in_pieces(decoder(), pieces);
            assert_eq!(items.len(), 1);
            assert_eq!(
                error.unwrap().to_string(),
                "event 1 is longer than 100 bytes, the `max_event_bytes` of the decoder"
            );
        }
        let mut decoder = decoder();
        decoder.push([0xff; 4]).unwrap();
        assert_eq!(decoder.pop(), None);
        assert!(decoder.fault().is_some());
        assert!(decoder.partial().len() <= 4);
    }

    #[test]
    fn a_frame_that_would_be_too_long_as_json_is_refused_before_it_is_built() {
        let limits = Limits { max_event_bytes: 10_000, ..Limits::default() };
        let empty_messages = |count| frame(&messages(&vec![vec![]; count]));
        // {"id":"","role":""} and a comma
        assert_eq!(run(ProtobufDecoder::new().with_limits(limits), &empty_messages(499)).1, None);
        let error = run(ProtobufDecoder::new().with_limits(limits), &empty_messages(500)).1;
        assert_eq!(
            error.unwrap().to_string(),
            "event 0 is longer than 10000 bytes, the `max_event_bytes` of the decoder"
        );
    }

    #[test]
    fn e10_depth_is_a_limit() {
        let nested = (0..600).fold(Value::Null, |inner, _| json!([inner]));
        let frame = frame(&event(7, 6, &[field(2, &open::write_value(&nested))]));
        for limits in [Limits::default(), Limits { max_depth: 1000, ..Limits::default() }] {
            let error = run(ProtobufDecoder::new().with_limits(limits), &frame).1.unwrap();
            assert_eq!(error.to_string(), "event 0 is nested deeper than 512 levels, the `max_depth` of the decoder");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused_in_bounded_memory(
            pieces in proptest::collection::vec(
                proptest::collection::vec(prop_oneof![any::<u8>(), 0u8..0x40, Just(0)], 0..40),
                0..10,
            ),
            cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..8),
        ) {
            let limits = Limits { max_event_bytes: 32, ..Limits::default() };
            let mut decoder = ProtobufDecoder::new().with_limits(limits);
            for piece in &pieces {
                let _ = decoder.push(piece);
                while decoder.pop().is_some() {}
                prop_assert!(decoder.partial().len() < PREFIX + 32);
            }
            let bytes = pieces.concat();
            prop_assert_eq!(
                run(ProtobufDecoder::new().with_limits(limits), &bytes),
                run_in_pieces(ProtobufDecoder::new().with_limits(limits), cut(&bytes, &cuts))
            );
        }

        #[test]
        fn p4_any_envelope_that_is_read_is_judged_without_panic(
            number in 0u64..40,
            event_type in 0u8..40,
            fields in proptest::collection::vec((1u64..15, proptest::collection::vec(0u8..0x50, 0..12)), 0..6),
        ) {
            let fields: Vec<_> = fields.iter().map(|(number, bytes)| field(*number, bytes)).collect();
            let (items, _) = decode(&event(number, event_type, &fields));
            let mut enforcer = Enforcer::new();
            for item in items {
                let _ = crate::machine::Push::push(&mut enforcer, item);
            }
        }
    }
}
